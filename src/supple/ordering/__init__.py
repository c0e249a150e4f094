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
from supple.ordering.dynamic_batches import DynamicBatches, DynamicElements, is_dynamic
from supple.ordering.element_batches import ElementBatches, batch_colored_elements, color_elements
from supple.ordering.row_trees import row_arrays
from supple.ordering.tie_elimination import (
    MIN_PIVOT_RATIO,
    TieElimination,
    TieEquations,
    eliminate_ties,
    tie_equations,
)
from supple.ordering.tied_groups import TiedGroups, batch_tied_groups

__all__ = [
    "MIN_PIVOT_RATIO",
    "Colors",
    "DynamicBatches",
    "DynamicElements",
    "ElementBatches",
    "ListedColors",
    "TieElimination",
    "TieEquations",
    "TiedGroups",
    "VertexBatches",
    "batch_colored_elements",
    "batch_elements",
    "batch_tied_groups",
    "batch_vertices",
    "cluster_elements",
    "color_bounds",
    "color_count",
    "color_elements",
    "color_vertices",
    "each_color",
    "eliminate_ties",
    "incidence",
    "is_dynamic",
    "row_arrays",
    "sort_corners",
    "tie_equations",
    "widest_color",
]
