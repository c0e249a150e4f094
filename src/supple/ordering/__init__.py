"""Orderings for parallel updates: colors, clusters and batches of vertices and elements."""

from supple.ordering.batches import VertexBatches, batch_elements, batch_vertices
from supple.ordering.clustering import cluster_elements
from supple.ordering.coloring import (
    Colours,
    ListedColours,
    colour_bounds,
    colour_count,
    colour_vertices,
    each_colour,
    incidence,
    sort_corners,
    widest_colour,
)
from supple.ordering.dynamic_batches import ChangingBatches, ChangingElements, changes
from supple.ordering.element_batches import ElementBatches, batch_coloured_elements, colour_elements
from supple.ordering.row_trees import row_arrays
from supple.ordering.tie_elimination import NEARLY_LARGEST, Carrying, Equations, carrying, equations
from supple.ordering.tied_groups import Links, batch_links

__all__ = [
    "NEARLY_LARGEST",
    "Carrying",
    "ChangingBatches",
    "ChangingElements",
    "Colours",
    "ElementBatches",
    "Equations",
    "Links",
    "ListedColours",
    "VertexBatches",
    "batch_coloured_elements",
    "batch_elements",
    "batch_links",
    "batch_vertices",
    "carrying",
    "changes",
    "cluster_elements",
    "colour_bounds",
    "colour_count",
    "colour_elements",
    "colour_vertices",
    "each_colour",
    "equations",
    "incidence",
    "row_arrays",
    "sort_corners",
    "widest_colour",
]
