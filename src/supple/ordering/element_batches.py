"""Element orderings: colors, clusters and batches for element-wise solvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from supple.kernels import kernel, lanes_of
from supple.ordering.clustering import cluster_elements, smallest_degree_last
from supple.terms import Incidence, Term


@kernel
def _greedy_groups(groups, stencils, first, used_colors, color):
    """Color groups greedily from group `first` on: the smallest color that no group with a common vertex has.

    Args:
        groups: (g, k) element ids, padded with -1.
        stencils: (m, corners) vertex ids.
        first: First group to color.
        used_colors: (n, words) bit set of the colors at each vertex.
        color: (g,) output.

    Returns:
        Number of colored groups; fewer than g if a color needs more bits.
    """
    for g in range(first, len(groups)):
        c = 0
        for word in range(used_colors.shape[1]):
            used = np.uint64(0)
            for e in groups[g]:
                if e >= 0:
                    for v in stencils[e]:
                        used |= used_colors[v, word]
            bit = 0
            while bit < 64 and (used >> np.uint64(bit)) & np.uint64(1):
                bit += 1
            c += bit
            if bit < 64:
                break
        if c == 64 * used_colors.shape[1]:
            return g
        color[g] = c
        for e in groups[g]:
            if e >= 0:
                for v in stencils[e]:
                    used_colors[v, c // 64] |= np.uint64(1) << np.uint64(c % 64)
    return len(groups)


def color_groups(groups: np.ndarray, stencils: np.ndarray, vertices: int) -> np.ndarray:
    """Color groups of elements so that groups of one color share no vertex.

    Each group takes the smallest color not used by its neighbors, in the given order [PBNG section 10].

    Args:
        groups: (g, k) element ids, padded with -1.
        stencils: (m, corners) vertex ids.
        vertices: Number of vertices.
    """
    color, done = np.empty(len(groups), np.int64), 0
    used_colors, stencils = np.zeros((vertices, 1), np.uint64), stencils.astype(np.int64)
    while (done := _greedy_groups(groups, stencils, done, used_colors, color)) < len(groups):
        used_colors = np.concatenate([used_colors, np.zeros_like(used_colors)], axis=1)
    return color


def color_elements(stencils: np.ndarray, vertices: int) -> np.ndarray:
    """Color elements so that elements of one color share no vertex."""
    return color_groups(np.arange(len(stencils))[:, None], stencils, vertices)


@dataclass(frozen=True)
class ElementBatches:
    """Elements of a term in batches, sorted by color.

    Batch b consists of the rows start[b] to start[b + 1] - 1, processed sequentially. The lanes of a row, and
    all batches of a color, share no vertex.

    Attributes:
        own: (rows, 1, lanes) first vertex of each element, n for padding.
        start: (batches + 1,) first row of each batch.
        color_start: (colors + 1,) first batch of each color.
        element: (rows, lanes) element id, -1 for padding.
        rows: Packed element data of the term.
    """

    own: np.ndarray
    start: np.ndarray
    color_start: np.ndarray
    element: np.ndarray
    rows: Any

    @property
    def colors(self) -> int:
        """Number of colors."""
        return len(self.color_start) - 1

    @property
    def lanes(self) -> int:
        """Number of lanes per row."""
        return self.own.shape[2]

    @property
    def projection_fields(self) -> tuple[Any, Any, Any, Any]:
        """First fields of every projection: color_start, start (() for batches of one row), own and rows."""
        single = len(self.start) == len(self.own) + 1
        return self.color_start, () if single else self.start, self.own, self.rows

    @property
    def corners(self) -> np.ndarray:
        """(rows, k, lanes) vertices of each element, starting with its first."""
        return np.concatenate([self.own, self.rows.others], axis=1)

    def gather_corners(self, values: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """(rows, k, lanes) values at the vertices of each element, from values (n + 1,) of all vertices."""
        return values[self.corners].astype(dtype)


def element_groups(
    stencils: np.ndarray,
    vertices: int,
    cluster_size: int,
    cells: bool = False,
    smallest_last: bool = False,
) -> np.ndarray:
    """Group elements for sequential processing, in the order in which the groups should be colored.

    Args:
        stencils: (m, k) vertex ids.
        vertices: Number of vertices.
        cluster_size: Largest cluster size [BNH Algorithm 4], clusters smallest degree last; 1 for single
            elements.
        cells: Group the tetrahedra of each hexahedral cell of a block.
        smallest_last: Sort elements by their vertices first, smallest degree last [BNH section 6.2];
            otherwise they keep the order of the mesh.

    Returns:
        (groups, k) element ids, padded with -1.
    """
    if cells:
        return cell_groups(stencils)
    if smallest_last:
        order = sort_by_vertices(stencils, vertices)
        groups = element_groups(stencils[order], vertices, cluster_size)
        return np.where(groups >= 0, order[groups], -1)
    if cluster_size == 1:
        return np.arange(len(stencils))[:, None]
    groups = cluster_elements(stencils, vertices, cluster_size)
    group, member = np.nonzero(groups >= 0)
    ends = stencils[groups[group, member]]
    membership = csr_matrix(
        (np.ones(ends.size, np.int32), (np.repeat(group, ends.shape[1]), ends.ravel())),
        shape=(len(groups), vertices),
    )
    return groups[_smallest_last(membership @ membership.T)]


def _smallest_last(graph: Any) -> np.ndarray:
    """Nodes of a symmetric graph, smallest degree last."""
    graph.setdiag(0)
    graph.eliminate_zeros()
    return smallest_degree_last(graph.indptr.astype(np.int64), graph.indices.astype(np.int64))


def sort_by_vertices(stencils: np.ndarray, vertices: int) -> np.ndarray:
    """(m,) elements sorted by their vertices, which are in smallest-degree-last order of the mesh graph."""
    count = stencils.shape[1]
    element = np.repeat(np.arange(len(stencils)), count)
    membership = csr_matrix(
        (np.ones(stencils.size, np.int32), (stencils.ravel(), element)), shape=(vertices, len(stencils))
    )
    rank = np.empty(vertices, np.int64)
    rank[_smallest_last(membership @ membership.T)] = np.arange(vertices)
    ranks = np.sort(rank[stencils], axis=1)
    return np.lexsort(ranks.T[::-1])


def cell_groups(stencils: np.ndarray) -> np.ndarray:
    """Group the tetrahedra of each hexahedral cell, (groups, 5 or 6), in meshes that list them cell by cell.

    Meshes of `block` do. Interior vertices belong to 8 cells, so 8 colors suffice [BNH section 4.1].
    """
    for size in (5, 6):
        if stencils.shape[1] == 4 and len(stencils) % size == 0:
            corners = np.sort(stencils.reshape(-1, size * 4), axis=1)
            if np.all((np.diff(corners, axis=1) > 0).sum(axis=1) == 7):
                return np.arange(len(stencils)).reshape(-1, size)
    raise ValueError(
        "ordering='cells' needs a mesh from supple.block (5 or 6 tetrahedra per cell, listed cell by "
        "cell); use ordering='clusters'"
    )


def batch_colored_elements(
    term: Term,
    vertices: int,
    dtype: np.dtype,
    cluster_size: int = 1,
    lanes: int | None = None,
    cells: bool = False,
    smallest_last: bool = False,
) -> ElementBatches:
    """Pack and color elements, or the groups of `element_groups`, into batches.

    Args:
        term: Term whose elements are packed.
        vertices: Number of vertices.
        dtype: Floating-point type of the packed data.
        cluster_size: Largest cluster size.
        lanes: Lanes per row; by default those of a CPU pack.
        cells: Group the tetrahedra of each hexahedral cell.
        smallest_last: Sort elements by their vertices first, smallest degree last.
    """
    lanes = lanes or lanes_of(dtype)
    groups = element_groups(term.vertices, vertices, cluster_size, cells, smallest_last)
    color = color_groups(groups, term.vertices, vertices)
    length = (groups >= 0).sum(axis=1)
    order = np.lexsort([-length, color])
    sizes = np.bincount(color)
    color_start = np.concatenate([[0], np.cumsum(-(-sizes // lanes))]).astype(np.int64)
    begin = np.cumsum(sizes) - sizes
    slot = np.arange(len(groups)) + np.repeat(lanes * color_start[:-1] - begin, sizes)
    table = np.full((color_start[-1] * lanes, groups.shape[1]), -1, np.int64)
    table[slot] = groups[order]
    table = table.reshape(-1, lanes, groups.shape[1])
    longest = (table >= 0).sum(axis=2).max(axis=1)
    start = np.concatenate([[0], np.cumsum(longest)]).astype(np.int64)
    element = np.full((start[-1], lanes), -1, np.int64)
    for k in range(groups.shape[1]):
        is_longer = longest > k
        element[start[:-1][is_longer] + k] = table[is_longer, :, k]

    row, lane = np.nonzero(element >= 0)
    chosen = element[row, lane]
    own = np.full(element.shape, vertices, np.int32)
    own[row, lane] = term.vertices[chosen, 0]
    incidence = Incidence(chosen, np.zeros(len(chosen), np.int64), row, lane, own, np.dtype(dtype))
    rows = term.rows(incidence, start)
    return ElementBatches(own[:, None, :].copy(), start, color_start, incidence.elements, rows)
