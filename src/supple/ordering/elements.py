"""Orderings of elements: colours, clusters, and the batches that element-wise methods walk through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from supple.kernels import kernel, lanes_of
from supple.ordering.clustering import cluster_elements, smallest_degree_last
from supple.ordering.colouring import incidence
from supple.terms import Term, Visits


@kernel
def _greedy_groups(groups, stencils, start, element, group_of, colour, forbidden):
    """Least colour of each group of elements that no group sharing a vertex with it has."""
    for g in range(len(groups)):
        for e in groups[g]:
            if e >= 0:
                for v in stencils[e]:
                    for i in range(start[v], start[v + 1]):
                        other = group_of[element[i]]
                        if colour[other] >= 0:
                            forbidden[colour[other]] = g
        c = 0
        while forbidden[c] == g:
            c += 1
        colour[g] = c


def colour_groups(groups: np.ndarray, stencils: np.ndarray, vertices: int) -> np.ndarray:
    """Colour of every group (g, k) of elements (-1 is padding): groups of one colour share no vertex.
    In the order given, each takes the least colour that none of its neighbours has yet [PBNG section 10]."""
    start, element, _ = incidence(stencils, vertices)
    group_of = np.empty(len(stencils), np.int64)
    member = groups >= 0
    group_of[groups[member]] = np.nonzero(member)[0]
    colour = np.full(len(groups), -1, np.int64)
    most = groups.shape[1] * stencils.shape[1] * int(np.diff(start).max(initial=0)) + 1
    _greedy_groups(groups, stencils.astype(np.int64), start, element, group_of, colour, np.full(most, -1))
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


def element_groups(stencils: np.ndarray, vertices: int, cluster_size: int) -> np.ndarray:
    """(groups, k) elements to be done one after the other, in the order in which they should be coloured:
    single ones, or clusters of up to cluster_size [BNH Algorithm 4], those smallest degree last."""
    if cluster_size == 1:
        return np.arange(len(stencils))[:, None]
    groups = cluster_elements(stencils, vertices, cluster_size)
    group, place = np.nonzero(groups >= 0)
    ends = stencils[groups[group, place]]
    touched = csr_matrix(
        (np.ones(ends.size, np.int32), (np.repeat(group, ends.shape[1]), ends.ravel())),
        shape=(len(groups), vertices),
    )
    graph = touched @ touched.T
    graph.setdiag(0)
    graph.eliminate_zeros()
    return groups[smallest_degree_last(graph.indptr.astype(np.int64), graph.indices.astype(np.int64))]


def batch_coloured_elements(
    term: Term, vertices: int, dtype: np.dtype, cluster_size: int = 1, lanes: int | None = None
) -> ElementBatches:
    """Elements by colour, singly or in clusters."""
    lanes = lanes or lanes_of(dtype)
    groups = element_groups(term.vertices, vertices, cluster_size)
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
