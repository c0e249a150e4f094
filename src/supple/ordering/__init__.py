"""Orderings for parallel updates: colors, clusters and batches of vertices and elements."""

from supple.ordering.batches import VertexBatches, batch_elements, batch_vertices
from supple.ordering.carrying import NEARLY_LARGEST, Carrying, Equations, carrying, equations
from supple.ordering.changing import ChangingBatches, changes
from supple.ordering.changing_elements import ChangingElements
from supple.ordering.clustering import cluster_elements
from supple.ordering.colouring import colour_vertices, incidence, sort_corners
from supple.ordering.colours import (
    Colours,
    ListedColours,
    colour_bounds,
    colour_count,
    each_colour,
    widest_colour,
)
from supple.ordering.elements import ElementBatches, batch_coloured_elements, colour_elements
from supple.ordering.links import Links, batch_links
from supple.ordering.rows import row_arrays

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
