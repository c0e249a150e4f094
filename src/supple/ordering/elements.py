"""Orderings of elements: colours, clusters, and the batches that element-wise methods walk through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from supple.kernels import kernel, lanes_of
from supple.ordering.clustering import cluster_elements, smallest_degree_last
from supple.terms import Term, Visits


@kernel
def _greedy_groups(groups, stencils, first, taken, colour):
    """Least colour of each group of elements, from the first on, that no group sharing a vertex with it has;
    taken (n, words): bits of the colours that a vertex has. Returns how many groups have one: one that needs
    more bits ends it."""
    for g in range(first, len(groups)):
        c = 0
        for word in range(taken.shape[1]):
            used = np.uint64(0)
            for e in groups[g]:
                if e >= 0:
                    for v in stencils[e]:
                        used |= taken[v, word]
            bit = 0
            while bit < 64 and (used >> np.uint64(bit)) & np.uint64(1):
                bit += 1
            c += bit
            if bit < 64:
                break
        if c == 64 * taken.shape[1]:
            return g
        colour[g] = c
        for e in groups[g]:
            if e >= 0:
                for v in stencils[e]:
                    taken[v, c // 64] |= np.uint64(1) << np.uint64(c % 64)
    return len(groups)


def colour_groups(groups: np.ndarray, stencils: np.ndarray, vertices: int) -> np.ndarray:
    """Colour of every group (g, k) of elements (-1 is padding): groups of one colour share no vertex.
    In the order given, each takes the least colour that none of its neighbours has yet [PBNG section 10]."""
    colour, done = np.empty(len(groups), np.int64), 0
    taken, stencils = np.zeros((vertices, 1), np.uint64), stencils.astype(np.int64)
    while (done := _greedy_groups(groups, stencils, done, taken, colour)) < len(groups):
        taken = np.concatenate([taken, np.zeros_like(taken)], axis=1)
    return colour


def colour_elements(stencils: np.ndarray, vertices: int) -> np.ndarray:
    """Colour of every element: elements of one colour share no vertex."""
    return colour_groups(np.arange(len(stencils))[:, None], stencils, vertices)


@dataclass(frozen=True)
class ElementBatches:
    """A term's elements by colour. Batch b is the rows start[b] to start[b + 1], to be done one after the
    other; the lanes of a row, and all batches of a colour, share no vertex. own (rows, 1, lanes): first
    vertex of each element, or n; colour_start (colours + 1,): first batch of each colour; element
    (rows, lanes): which element sits where, or -1; rows: the term's data."""

    own: np.ndarray
    start: np.ndarray
    colour_start: np.ndarray
    element: np.ndarray
    rows: Any

    @property
    def colours(self) -> int:
        return len(self.colour_start) - 1

    @property
    def lanes(self) -> int:
        return self.own.shape[2]

    @property
    def places(self) -> tuple[Any, Any, Any, Any]:
        """What every projection starts with: colour_start, start, or () where every batch is one row, own and
        the term's rows."""
        single = len(self.start) == len(self.own) + 1
        return self.colour_start, () if single else self.start, self.own, self.rows

    @property
    def corners(self) -> np.ndarray:
        """(rows, k, lanes): the vertices of each element, the first one leading."""
        return np.concatenate([self.own, self.rows.others], axis=1)

    def gather_corners(self, values: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """(rows, k, lanes): values (n + 1,) at the vertices of each element."""
        return values[self.corners].astype(dtype)


def element_groups(
    stencils: np.ndarray,
    vertices: int,
    cluster_size: int,
    cells: bool = False,
    smallest_last: bool = False,
) -> np.ndarray:
    """(groups, k) elements to be done one after the other, in the order in which they should be coloured:
    single ones, or clusters of up to cluster_size [BNH Algorithm 4], those smallest degree last, or the cells
    of a block. smallest_last: elements are taken in the order of their vertices, smallest degree last, before
    all that [BNH section 6.2]; otherwise as in the mesh."""
    if cells:
        return cell_groups(stencils)
    if smallest_last:
        order = in_order_of_vertices(stencils, vertices)
        groups = element_groups(stencils[order], vertices, cluster_size)
        return np.where(groups >= 0, order[groups], -1)
    if cluster_size == 1:
        return np.arange(len(stencils))[:, None]
    groups = cluster_elements(stencils, vertices, cluster_size)
    group, place = np.nonzero(groups >= 0)
    ends = stencils[groups[group, place]]
    touched = csr_matrix(
        (np.ones(ends.size, np.int32), (np.repeat(group, ends.shape[1]), ends.ravel())),
        shape=(len(groups), vertices),
    )
    return groups[_smallest_last(touched @ touched.T)]


def _smallest_last(graph: Any) -> np.ndarray:
    """The nodes of a symmetric graph, smallest degree last."""
    graph.setdiag(0)
    graph.eliminate_zeros()
    return smallest_degree_last(graph.indptr.astype(np.int64), graph.indices.astype(np.int64))


def in_order_of_vertices(stencils: np.ndarray, vertices: int) -> np.ndarray:
    """(m,) elements by their vertices, these smallest degree last in the graph of the mesh."""
    count = stencils.shape[1]
    element = np.repeat(np.arange(len(stencils)), count)
    touched = csr_matrix(
        (np.ones(stencils.size, np.int32), (stencils.ravel(), element)), shape=(vertices, len(stencils))
    )
    rank = np.empty(vertices, np.int64)
    rank[_smallest_last(touched @ touched.T)] = np.arange(vertices)
    ranks = np.sort(rank[stencils], axis=1)
    return np.lexsort(ranks.T[::-1])


def cell_groups(stencils: np.ndarray) -> np.ndarray:
    """(groups, 5 or 6) the tetrahedra of each hexahedral cell, for meshes that list them cell by cell, as
    blocks do: interior vertices are in 8 cells, so that 8 colours do [BNH section 4.1]."""
    for size in (5, 6):
        if stencils.shape[1] == 4 and len(stencils) % size == 0:
            corners = np.sort(stencils.reshape(-1, size * 4), axis=1)
            if np.all((np.diff(corners, axis=1) > 0).sum(axis=1) == 7):
                return np.arange(len(stencils)).reshape(-1, size)
    raise ValueError(
        'ordering "cells" is for meshes whose tetrahedra come five or six to a cell, cell by cell, as '
        'supple.block and supple.bar make them; "clusters" is for any'
    )


def batch_coloured_elements(
    term: Term,
    vertices: int,
    dtype: np.dtype,
    cluster_size: int = 1,
    lanes: int | None = None,
    cells: bool = False,
    smallest_last: bool = False,
) -> ElementBatches:
    """Elements by colour, singly or in the groups that `element_groups` makes."""
    lanes = lanes or lanes_of(dtype)
    groups = element_groups(term.vertices, vertices, cluster_size, cells, smallest_last)
    colour = colour_groups(groups, term.vertices, vertices)
    length = (groups >= 0).sum(axis=1)
    order = np.lexsort([-length, colour])
    sizes = np.bincount(colour)
    colour_start = np.concatenate([[0], np.cumsum(-(-sizes // lanes))]).astype(np.int64)
    begin = np.cumsum(sizes) - sizes
    place = np.arange(len(groups)) + np.repeat(lanes * colour_start[:-1] - begin, sizes)
    table = np.full((colour_start[-1] * lanes, groups.shape[1]), -1, np.int64)
    table[place] = groups[order]
    table = table.reshape(-1, lanes, groups.shape[1])
    longest = (table >= 0).sum(axis=2).max(axis=1)
    start = np.concatenate([[0], np.cumsum(longest)]).astype(np.int64)
    element = np.full((start[-1], lanes), -1, np.int64)
    for k in range(groups.shape[1]):
        there = longest > k
        element[start[:-1][there] + k] = table[there, :, k]

    row, lane = np.nonzero(element >= 0)
    chosen = element[row, lane]
    own = np.full(element.shape, vertices, np.int32)
    own[row, lane] = term.vertices[chosen, 0]
    visits = Visits(chosen, np.zeros(len(chosen), np.int64), row, lane, own, np.dtype(dtype))
    rows = term.rows(visits, start)
    return ElementBatches(own[:, None, :].copy(), start, colour_start, visits.elements, rows)
