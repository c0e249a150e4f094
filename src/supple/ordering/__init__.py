"""Orderings: what may be updated at the same time."""

from supple.ordering.batches import VertexBatches, batch_elements, batch_vertices
from supple.ordering.colouring import colour_vertices, incidence

__all__ = ["VertexBatches", "batch_elements", "batch_vertices", "colour_vertices", "incidence"]
