"""Orderings: what may be updated at the same time."""

from supple.ordering.batches import VertexBatches, batch_elements, batch_vertices
from supple.ordering.colouring import colour_vertices, incidence
from supple.ordering.links import Links, batch_links

__all__ = [
    "Links",
    "VertexBatches",
    "batch_elements",
    "batch_links",
    "batch_vertices",
    "colour_vertices",
    "incidence",
]
