"""Orderings for parallel updates: colors, clusters and batches of vertices and elements."""

from supple.ordering.batches import VertexBatches, batch_elements, batch_vertices
from supple.ordering.clustering import cluster_elements
from supple.ordering.coloring import (
    Colors,
    ListedColors,
    color_bounds,
    color_count,
    color_vertices,
    each_color,
    incidence,
    sort_corners,
    widest_color,
)
from supple.ordering.dynamic_batches import ChangingBatches, ChangingElements, changes
from supple.ordering.element_batches import ElementBatches, batch_colored_elements, color_elements
from supple.ordering.row_trees import row_arrays
from supple.ordering.tie_elimination import NEARLY_LARGEST, Carrying, Equations, carrying, equations
from supple.ordering.tied_groups import Links, batch_links

__all__ = [
    "NEARLY_LARGEST",
    "Carrying",
    "ChangingBatches",
    "ChangingElements",
    "Colors",
    "ElementBatches",
    "Equations",
    "Links",
    "ListedColors",
    "VertexBatches",
    "batch_colored_elements",
    "batch_elements",
    "batch_links",
    "batch_vertices",
    "carrying",
    "changes",
    "cluster_elements",
    "color_bounds",
    "color_count",
    "color_elements",
    "color_vertices",
    "each_color",
    "equations",
    "incidence",
    "row_arrays",
    "sort_corners",
    "widest_color",
]
