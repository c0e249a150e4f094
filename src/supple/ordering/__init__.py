"""Orderings: what may be updated at the same time."""

from supple.ordering.batches import VertexBatches, batch_elements, batch_vertices
from supple.ordering.clustering import cluster_elements
from supple.ordering.colouring import colour_vertices, incidence
from supple.ordering.elements import ElementBatches, batch_coloured_elements, colour_elements
from supple.ordering.links import Links, batch_links

__all__ = [
    "ElementBatches",
    "Links",
    "VertexBatches",
    "batch_coloured_elements",
    "batch_elements",
    "batch_links",
    "batch_vertices",
    "cluster_elements",
    "colour_elements",
    "colour_vertices",
    "incidence",
]
