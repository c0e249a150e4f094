"""Batches: vertices or elements cut into groups of as many as a pack has lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supple.kernels import lanes_of
from supple.ordering.colouring import colour_vertices, incidence
from supple.terms import Elements, Term, Visits


@dataclass(frozen=True)
class VertexBatches:
    """Free vertices by colour. own (batches, 1, lanes): ids, padded with n, the number of vertices;
    colour_start (colours + 1,): first batch of each colour; terms: the rows of every term."""

    own: np.ndarray
    colour_start: np.ndarray
    terms: tuple

    @property
    def colours(self) -> int:
        return len(self.colour_start) - 1


def batch_vertices(
    terms: tuple[Term, ...], free: np.ndarray, dtype: np.dtype, lanes: int | None = None, parts: int = 1
) -> VertexBatches:
    """Batches of the free vertices (n,) bool. Within a colour, vertices are sorted by how many stencils
    touch them, rarer terms first, so that the lanes of a batch have nearly equally many visits. The rows of a
    term have `parts` times as many lanes: each holds that many visits of every vertex."""
    n, lanes = len(free), lanes or lanes_of(dtype)
    stencils = [term.vertices for term in terms]
    colour = colour_vertices(stencils, np.flatnonzero(free), n)
    incidences = [incidence(s, n) for s in stencils]
    keys = [-np.diff(start) for start, _, _ in incidences]
    order = np.lexsort([*(keys[i] for i in np.argsort([-len(s) for s in stencils])), colour])
    order = order[colour[order] >= 0]

    sizes = np.bincount(colour[order])
    batches = -(-sizes // lanes)
    colour_start = np.concatenate([[0], np.cumsum(batches)]).astype(np.int64)
    place = np.concatenate(
        [lanes * first + np.arange(size) for first, size in zip(colour_start[:-1], sizes, strict=True)]
    ).astype(np.int64)
    own = np.full(colour_start[-1] * lanes, n, np.int32)
    own[place] = order
    position = np.full(n, -1, np.int64)
    position[order] = place
    own = own.reshape(-1, lanes)
    rows = tuple(
        _rows_by_vertex(term, found, own, position, dtype, parts)
        for term, found in zip(terms, incidences, strict=True)
    )
    return VertexBatches(own[:, None, :].copy(), colour_start, rows)


def _rows_by_vertex(
    term: Term, found: tuple, own: np.ndarray, position: np.ndarray, dtype: np.dtype, parts: int
):
    first, element, slot = found
    n, lanes = len(position), own.shape[1]
    valence = np.append(np.diff(first), 0)  # the padding vertex n is touched by nothing
    start = np.concatenate([[0], np.cumsum(-(-valence[own].max(axis=1) // parts))]).astype(np.int64)
    vertex = np.repeat(np.arange(n), np.diff(first))
    rank = np.arange(len(vertex)) - first[vertex]
    kept = position[vertex] >= 0
    vertex, rank, element, slot = vertex[kept], rank[kept], element[kept], slot[kept]
    batch, lane = np.divmod(position[vertex], lanes)
    own_of_row = np.repeat(np.tile(own, parts), np.diff(start), axis=0)
    row, part = np.divmod(rank, parts)
    visits = Visits(element, slot, start[batch] + row, part * lanes + lane, own_of_row, np.dtype(dtype))
    return term.rows(visits, start)


def batch_elements(term: Term, dtype: np.dtype, padding: int, lanes: int | None = None) -> Elements:
    """One visit per stencil, seen from its first vertex; lanes without one refer to vertex `padding`."""
    m, lanes = len(term.vertices), lanes or lanes_of(dtype)
    row, lane = np.divmod(np.arange(m), lanes)
    own = np.full((-(-m // lanes), lanes), padding, np.int32)
    own[row, lane] = term.vertices[:, 0]
    visits = Visits(np.arange(m), np.zeros(m, np.int64), row, lane, own, np.dtype(dtype))
    return Elements(own[:, None, :].copy(), term.rows(visits, np.zeros(1, np.int64)))
