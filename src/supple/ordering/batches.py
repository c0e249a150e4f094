"""Batches: vertices or elements grouped by the number of lanes of a pack."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supple.kernels import lanes_of
from supple.ordering.coloring import color_vertices, incidence
from supple.terms import Elements, Incidence, Term


@dataclass(frozen=True)
class VertexBatches:
    """Free vertices in batches, sorted by color.

    Attributes:
        own: (batches, 1, lanes) vertex ids, padded with n, the number of vertices.
        width: (batches,) number of distinct vertices per batch; they fill the first lanes and repeat in the
            others.
        color_start: (colors + 1,) first batch of each color.
        terms: Packed incidence data of every term.
        element: For each term (rows, lanes), stencil of each incidence, or -1.
    """

    own: np.ndarray
    width: np.ndarray
    color_start: np.ndarray
    terms: tuple
    element: tuple[np.ndarray, ...]

    @property
    def colors(self) -> int:
        """Number of colors."""
        return len(self.color_start) - 1


BATCH_OVERHEAD = 2
"""Overhead of a batch in units of one incidence: on one H200 1.3 μs compared with 0.5 μs."""


def batch_vertices(
    terms: tuple[Term, ...],
    free: np.ndarray,
    dtype: np.dtype,
    lanes: int | None = None,
    concurrent_batches: float | None = None,
) -> VertexBatches:
    """Color the free vertices and group them into batches.

    Within a color, vertices are sorted by their number of incident stencils, rarer terms first, so that the
    lanes of a batch have similar numbers of incidences. If `concurrent_batches` is given, several lanes
    may share the incidences of a vertex; the lane count per vertex minimizes the time of each color.

    Args:
        terms: Terms of the model.
        free: (n,) mask of the free vertices.
        dtype: Floating-point type of the packed data.
        lanes: Lanes per batch; by default those of a CPU pack.
        concurrent_batches: Number of batches processed concurrently by the device.
    """
    n, lanes = len(free), lanes or lanes_of(dtype)
    stencils = [_unpadded_stencils(term) for term in terms]
    color = color_vertices(stencils, np.flatnonzero(free), n)
    incidences = [incidence(s, n) for s in stencils]
    valences = [np.diff(start) for start, _, _ in incidences]
    order = np.lexsort([*(-valences[i] for i in np.argsort([-len(s) for s in stencils])), color])
    order = order[color[order] >= 0]

    members = np.split(order, np.cumsum(np.bincount(color[order]))[:-1])
    own, widths, color_start = [], [], [0]
    for vertices in members:
        most = [int(valence[vertices].max(initial=0)) for valence in valences]
        width = (
            lanes
            if concurrent_batches is None
            else best_width(len(vertices), most, lanes, concurrent_batches)
        )
        table = np.full((-(-len(vertices) // width), width), n, np.int32)
        table.ravel()[: len(vertices)] = vertices
        own.append(np.tile(table, lanes // width))
        widths.append(np.full(len(table), width, np.int64))
        color_start.append(color_start[-1] + len(table))
    all_own = np.concatenate(own) if own else np.zeros((0, lanes), np.int32)
    all_widths = np.concatenate(widths) if widths else np.zeros(0, np.int64)
    by_vertex = [_batch_incidences(csr, all_own, all_widths, dtype) for csr in incidences]
    rows = tuple(term.rows(*packed) for term, packed in zip(terms, by_vertex, strict=True))
    element = tuple(packed.elements for packed, _ in by_vertex)
    starts = np.array(color_start, np.int64)
    return VertexBatches(all_own[:, None, :].copy(), all_widths, starts, rows, element)


def best_width(vertices: int, max_incidences: list[int], lanes: int, concurrent_batches: float) -> int:
    """Choose the number of vertices per batch with the least estimated time.

    Args:
        vertices: Number of vertices of the color.
        max_incidences: Largest number of incidences per vertex, for each term.
        lanes: Lanes per batch.
        concurrent_batches: Number of batches processed concurrently.
    """

    def cost(width: int) -> float:
        rounds = np.ceil(-(-vertices // width) / concurrent_batches)
        return float(rounds * (BATCH_OVERHEAD + sum(-(-count * width // lanes) for count in max_incidences)))

    return min((lanes >> k for k in range(lanes.bit_length())), key=cost)


def _batch_incidences(
    csr: tuple, own: np.ndarray, width: np.ndarray, dtype: np.dtype
) -> tuple[Incidence, np.ndarray]:
    """Incidences of all batches with the stencils of a term, and the first row of each batch."""
    first, element, slot = csr
    n, lanes = len(first) - 1, own.shape[1]
    parts = lanes // width
    valence = np.append(np.diff(first), 0)  # the padding vertex n has no incidences
    start = np.concatenate([[0], np.cumsum(-(-valence[own].max(axis=1, initial=0) // parts))]).astype(
        np.int64
    )
    batch_of, lane_of = np.full(n + 1, -1), np.full(n + 1, -1)
    batch, lane = np.nonzero(np.arange(lanes) < width[:, None])
    batch_of[own[batch, lane]], lane_of[own[batch, lane]] = batch, lane
    vertex = np.repeat(np.arange(n), np.diff(first))
    rank = np.arange(len(vertex)) - first[vertex]
    is_batched = batch_of[vertex] >= 0
    vertex, rank, element, slot = vertex[is_batched], rank[is_batched], element[is_batched], slot[is_batched]
    batch, lane = batch_of[vertex], lane_of[vertex]
    row, part = np.divmod(rank, parts[batch])
    own_of_row = np.repeat(own, np.diff(start), axis=0)
    row, lane = start[batch] + row, part * width[batch] + lane
    return Incidence(element, slot, row, lane, own_of_row, np.dtype(dtype), by_vertices=True), start


def _unpadded_stencils(term: Term) -> np.ndarray:
    """Stencils (m, k) of a term, with -1 for nodes that only pad a stencil."""
    if term.node_interpolation is None:
        return term.vertices
    filled = term.vertices == term.vertices[:, :1]
    filled[:, 0] = False
    return np.where(filled, -1, term.vertices)


def batch_elements(term: Term, dtype: np.dtype, padding: int, lanes: int | None = None) -> Elements:
    """Pack the stencils of a term, one incidence per stencil at its first vertex.

    Args:
        term: Term whose stencils are packed; the arrays are allocated for its capacity.
        dtype: Floating-point type of the packed data.
        padding: Vertex id of empty lanes.
        lanes: Lanes per row; by default those of a CPU pack.
    """
    m, lanes = len(term.vertices), lanes or lanes_of(dtype)
    row, lane = np.divmod(np.arange(m), lanes)
    own = np.full((-(-max(m, term.capacity or 0) // lanes), lanes), padding, np.int32)
    own[row, lane] = term.vertices[:, 0]
    incidence = Incidence(np.arange(m), np.zeros(m, np.int64), row, lane, own, np.dtype(dtype))
    rows = term.rows(incidence, np.zeros(1, np.int64))
    return Elements(own[:, None, :].copy(), rows, incidence.elements)
