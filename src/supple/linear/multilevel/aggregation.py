"""Aggregation hierarchy: the coarse levels of a mesh, built from its sparsity pattern alone.

Rows of all coarse levels are numbered consecutively, level after level, so that one array holds one quantity
of all levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from supple.kernels import kernel
from supple.linear.assembly.sparsity import Pattern

MAX_COARSEST_ROWS = 40
"""Number of rows at or below which a level is not coarsened further."""

STRENGTH_THRESHOLD = 0.1
"""Rows i and j are strongly connected if wᵢⱼ ≥ STRENGTH_THRESHOLD √(mᵢ mⱼ), where mᵢ is the largest weight of
row i."""

FREE, ISOLATED = -1, -2
"""Markers of rows without an aggregate: not assigned yet, and excluded from aggregation."""

LEAST_REDUCTION = 0.8
"""Largest ratio of coarse to fine rows for which a coarser level is kept."""


@dataclass(frozen=True)
class Levels:
    """Coarse levels: tree of aggregates, block sparsity patterns and sources of the Galerkin products.

    Attributes:
        start: (levels + 1,) first row of each coarse level.
        child_start, child: Children of row I are child[child_start[I]:child_start[I + 1]]: rows of the fine
            matrix on the first level, rows of the previous level on the others.
        fine_parent, parent: (f,) and (rows,) aggregate of each row; negative for rows without one, -1 on the
            last level.
        indptr, indices: Block row pointers (rows + 1,) and block columns of the 6×6 blocks.
        mirror: Slot of the transposed block for blocks left of the diagonal, otherwise -1.
        diagonal: (rows,) slot of each diagonal block.
        source_start, source, source_row: Block k is the sum of the Galerkin products of the finer blocks
            source[source_start[k]:source_start[k + 1]], which lie in the rows source_row.
        fine_slots, slots: Coarse block to which each fine block, and each coarse block, contributes.
    """

    start: np.ndarray
    child_start: np.ndarray
    child: np.ndarray
    fine_parent: np.ndarray
    parent: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    mirror: np.ndarray
    diagonal: np.ndarray
    source_start: np.ndarray
    source: np.ndarray
    source_row: np.ndarray
    fine_slots: np.ndarray
    slots: np.ndarray

    @property
    def rows(self) -> int:
        """Number of rows of all coarse levels."""
        return int(self.start[-1])

    @property
    def sizes(self) -> list[int]:
        """Number of rows of each coarse level."""
        return np.diff(self.start).tolist()

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum fine-row values over each coarse row.

        Args:
            values: (f,) values of the fine rows.

        Returns:
            (rows,) sums over all fine rows below each coarse row.
        """
        in_aggregate = self.fine_parent >= 0
        sums = np.bincount(self.fine_parent[in_aggregate], values[in_aggregate], self.rows)
        for first, last in pairwise(self.start[:-1]):
            sums += np.bincount(self.parent[first:last], sums[first:last], self.rows)
        return sums


def coarsen(pattern: Pattern, weight: np.ndarray, chosen: np.ndarray) -> Levels:
    """Build the aggregation hierarchy of a sparsity pattern.

    Args:
        pattern: Pattern of the fine matrix.
        weight: (blocks,) connection strength of the rows of each block, ≥ 0.
        chosen: (f,) mask of the fine rows to aggregate.
    """
    graphs: list[_Graph] = []
    graph = _Graph(pattern.indptr, pattern.indices, weight.astype(np.float32))
    while not graphs or (
        graph.rows > MAX_COARSEST_ROWS and graph.rows <= LEAST_REDUCTION * len(graphs[-1].owner)
    ):
        graph = graph.coarser(np.ones(graph.rows, bool) if graphs else chosen)
        graphs.append(graph)
    if len(graphs) > 1 and graph.rows > LEAST_REDUCTION * len(graph.owner):
        graphs.pop()
    return _join_levels(graphs, pattern)


class _Graph:
    """Weighted row graph; `owner`, `child_start`, `child` and `slots` map the finer graph onto it."""

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, weight: np.ndarray) -> None:
        self.indptr, self.indices, self.weight = indptr, indices, weight
        self.owner = self.child_start = self.child = self.slots = np.zeros(0, np.int32)

    @property
    def rows(self) -> int:
        return len(self.indptr) - 1

    def coarser(self, chosen: np.ndarray) -> _Graph:
        n = self.rows
        owner, most = np.where(chosen, FREE, ISOLATED).astype(np.int32), np.zeros(n, np.float32)
        count = _aggregate(
            self.indptr, self.indices, self.weight, most, STRENGTH_THRESHOLD**2, owner, owner.copy()
        )
        child_start = np.zeros(count + 1, np.int32)
        np.cumsum(np.bincount(owner[chosen], minlength=count), out=child_start[1:])
        child = np.argsort(owner, kind="stable")[n - np.count_nonzero(chosen) :].astype(np.int32)
        indptr = np.zeros(count + 1, np.int32)
        indices, weight = np.empty(len(self.indices), np.int32), np.zeros(len(self.indices), np.float32)
        slots = np.zeros(len(self.indices), np.int32)
        fine = self.indptr, self.indices, self.weight, owner, child_start, child
        _connect(*fine, np.full(count, -1, np.int32), indptr, indices, weight, slots)
        blocks = int(indptr[-1])
        result = _Graph(indptr, indices[:blocks].copy(), weight[:blocks].copy())
        result.owner, result.child_start, result.child, result.slots = owner, child_start, child, slots
        return result


def _join_levels(graphs: list[_Graph], fine: Pattern) -> Levels:
    """Number rows and blocks of all levels consecutively and list the sources of their blocks."""
    rows = np.concatenate([[0], np.cumsum([g.rows for g in graphs])])
    blocks = np.concatenate([[0], np.cumsum([len(g.indices) for g in graphs])])
    before = [0, *rows[:-1]]  # first row of each level's children

    def chained(parts: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(parts).astype(np.int32) if parts else np.zeros(0, np.int32)

    level = range(len(graphs))
    kids = np.concatenate([[0], np.cumsum([len(g.child) for g in graphs])])
    indptr = np.append(chained([graphs[k].indptr[:-1] + blocks[k] for k in level]), np.int32(blocks[-1]))
    indices = chained([graphs[k].indices + rows[k] for k in level])
    mirror, diagonal = np.empty(len(indices), np.int32), np.empty(rows[-1], np.int32)
    _reflect(indptr, indices, mirror, diagonal)
    slots = chained(
        [graphs[k].slots + blocks[k] for k in level if k] + [np.full(len(graphs[-1].indices), -1, np.int32)]
    )
    finer = (fine.indptr, fine.indices, graphs[0].slots, graphs[0].owner), (indptr, indices, slots, slots)
    source_start = np.zeros(len(indices) + 1, np.int32)
    count = _count_sources(*finer[0], mirror, True, source_start)
    count += _count_sources(*finer[1], mirror, False, source_start)
    np.cumsum(source_start, out=source_start)
    source, source_row = np.empty(count, np.int32), np.empty(count, np.int32)
    filled = source_start[:-1].copy()
    _list_sources(*finer[0], mirror, True, filled, source, source_row)
    _list_sources(*finer[1], mirror, False, filled, source, source_row)
    return Levels(
        start=rows.astype(np.int64),
        child_start=np.append(
            chained([graphs[k].child_start[:-1] + kids[k] for k in level]), np.int32(kids[-1])
        ),
        child=chained([g.child + (before[k] if k else 0) for k, g in enumerate(graphs)]),
        fine_parent=graphs[0].owner,
        parent=chained(
            [graphs[k].owner + rows[k] for k in level if k] + [np.full(graphs[-1].rows, -1, np.int32)]
        ),
        indptr=indptr,
        indices=indices,
        mirror=mirror,
        diagonal=diagonal,
        source_start=source_start,
        source=source,
        source_row=source_row,
        fine_slots=graphs[0].slots,
        slots=slots,
    )


@kernel
def _aggregate(indptr, indices, weight, most, strong, owner, joined):
    """Greedy aggregation; returns the number of aggregates.

    Pass 1: a row whose strong neighbors are all free forms an aggregate with them. Pass 2: each remaining row
    joins the aggregate of its most strongly connected strong neighbor. Pass 3: remaining rows form new
    aggregates with their free strong neighbors.
    """
    n = len(owner)
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] != i:
                most[i] = max(most[i], weight[k])
    count = 0
    for i in range(n):
        if owner[i] != FREE or most[i] == 0.0:
            continue
        is_isolated = True
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if j != i and owner[j] >= 0 and weight[k] * weight[k] >= strong * most[i] * most[j]:
                is_isolated = False
                break
        if is_isolated:
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                if owner[j] == FREE and weight[k] * weight[k] >= strong * most[i] * most[j]:
                    owner[j] = count
            owner[i] = count
            count += 1
    for i in range(n):
        joined[i] = owner[i]
        if owner[i] != FREE:
            continue
        best = np.float32(0.0)
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            near = weight[k] * weight[k] >= strong * most[i] * most[j]
            if j != i and owner[j] >= 0 and near and weight[k] > best:
                best, joined[i] = weight[k], owner[j]
    for i in range(n):
        owner[i] = joined[i]
    for i in range(n):
        if owner[i] != FREE:
            continue
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if owner[j] == FREE and weight[k] * weight[k] >= strong * most[i] * most[j] and most[j] > 0.0:
                owner[j] = count
        owner[i] = count
        count += 1
    return count


@kernel
def _connect(
    indptr, indices, weight, owner, child_start, child, slot_of, coarse_indptr, columns, sums, slots
):
    """Compute coarse pattern, summed connection weights and the coarse slot of every fine block."""
    blocks = 0
    for row in range(len(child_start) - 1):
        first = blocks
        for c in range(child_start[row], child_start[row + 1]):
            i = child[c]
            for k in range(indptr[i], indptr[i + 1]):
                column = owner[indices[k]]
                if column < 0:
                    continue
                if slot_of[column] < first:
                    slot_of[column] = blocks
                    columns[blocks] = column
                    blocks += 1
                slots[k] = slot_of[column]
                if column != row:
                    sums[slot_of[column]] += weight[k]
        coarse_indptr[row + 1] = blocks


@kernel
def _reflect(indptr, indices, mirror, diagonal):
    """Fill the slots of transposed blocks (`mirror`) and of diagonal blocks."""
    for row in range(len(indptr) - 1):
        for k in range(indptr[row], indptr[row + 1]):
            column = indices[k]
            mirror[k] = -1
            if column == row:
                diagonal[row] = k
            if column < row:
                for q in range(indptr[column], indptr[column + 1]):
                    if indices[q] == row:
                        mirror[k] = q


@kernel
def _count_sources(indptr, indices, slots, owner, mirror, fine, start):
    """Add the number of sources of block k to start[k + 1]; returns the total number.

    Skips fine blocks with a row outside all aggregates, and blocks of the last level.
    """
    total = 0
    for row in range(len(indptr) - 1):
        for k in range(indptr[row], indptr[row + 1]):
            is_separate = (owner[row] < 0 or owner[indices[k]] < 0) if fine else slots[k] < 0
            if not is_separate and mirror[slots[k]] < 0:
                start[slots[k] + 1] += 1
                total += 1
    return total


@kernel
def _list_sources(indptr, indices, slots, owner, mirror, fine, filled, source, source_row):
    """Fill source block and source row of every Galerkin product, in the order of `_count_sources`."""
    for row in range(len(indptr) - 1):
        for k in range(indptr[row], indptr[row + 1]):
            is_separate = (owner[row] < 0 or owner[indices[k]] < 0) if fine else slots[k] < 0
            if not is_separate and mirror[slots[k]] < 0:
                at = filled[slots[k]]
                source[at], source_row[at] = k, row
                filled[slots[k]] += 1
