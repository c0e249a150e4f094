"""Aggregates of aggregates of vertices: the coarse levels of a mesh, which do not depend on its state.

Rows of all coarse levels stand one after the other and are numbered through, so that one array holds what all
levels have of a kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from supple.kernels import kernel
from supple.linear.pattern import Pattern

COARSEST = 40
"""Rows of a level that needs no coarser one."""

STRONG = 0.1
"""Two rows are strongly connected if their connection is this part of what each is connected with most."""

FREE, APART = -1, -2
"""Rows that have no aggregate yet, and those that shall have none."""

LEAST_REDUCTION = 0.8
"""A coarser level has at most this part of the rows, or there is none."""


@dataclass(frozen=True)
class Levels:
    """start (levels + 1,): first row of each coarse level. Children of row I are child[child_start[I]] to
    child[child_start[I + 1] - 1]: rows of the fine matrix for the first level, of the level before for
    others. fine_parent (f,) and parent (rows,) tell the opposite, negative for rows that are in no aggregate
    and -1 on the last level. Blocks 6×6 of row I
    are at indptr[I] to indptr[I + 1], in the columns `indices`; diagonal (rows,): that of each row. mirror:
    where the block across the diagonal is, for those left of it, else -1. Other blocks k are the sums of the
    products of blocks source[source_start[k]] to source[source_start[k + 1] - 1] of the finer level, which
    are in the rows source_row; fine_slots and slots tell the opposite, for all blocks."""

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
        return int(self.start[-1])

    @property
    def sizes(self) -> list[int]:
        return np.diff(self.start).tolist()

    def sums(self, values: np.ndarray) -> np.ndarray:
        """(rows,) of values (f,) of the fine rows, over all that are in each coarse row."""
        kept = self.fine_parent >= 0
        sums = np.bincount(self.fine_parent[kept], values[kept], self.rows)
        for first, last in pairwise(self.start[:-1]):
            sums += np.bincount(self.parent[first:last], sums[first:last], self.rows)
        return sums


def coarsen(pattern: Pattern, weight: np.ndarray, chosen: np.ndarray) -> Levels:
    """The levels above a pattern, whose blocks connect rows by weight (blocks,) ≥ 0: aggregates of the chosen
    rows (f,)."""
    graphs: list[_Graph] = []
    graph = _Graph(pattern.indptr, pattern.indices, weight.astype(np.float32))
    while not graphs or (graph.rows > COARSEST and graph.rows <= LEAST_REDUCTION * len(graphs[-1].owner)):
        graph = graph.coarser(np.ones(graph.rows, bool) if graphs else chosen)
        graphs.append(graph)
    if len(graphs) > 1 and graph.rows > LEAST_REDUCTION * len(graph.owner):
        graphs.pop()
    return _joined(graphs, pattern)


class _Graph:
    """Rows and what connects them; owner, child_start, child, slots: how it came from the one before."""

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, weight: np.ndarray) -> None:
        self.indptr, self.indices, self.weight = indptr, indices, weight
        self.owner = self.child_start = self.child = self.slots = np.zeros(0, np.int32)

    @property
    def rows(self) -> int:
        return len(self.indptr) - 1

    def coarser(self, chosen: np.ndarray) -> _Graph:
        n = self.rows
        owner, most = np.where(chosen, FREE, APART).astype(np.int32), np.zeros(n, np.float32)
        count = _aggregate(self.indptr, self.indices, self.weight, most, STRONG**2, owner, owner.copy())
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


def _joined(graphs: list[_Graph], fine: Pattern) -> Levels:
    """All levels in one numbering of rows and blocks."""
    rows = np.concatenate([[0], np.cumsum([g.rows for g in graphs])])
    blocks = np.concatenate([[0], np.cumsum([len(g.indices) for g in graphs])])
    before = [0, *rows[:-1]]  # where the rows of a level's children begin

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
    """Greedily: a row whose strong neighbours are all free makes an aggregate with them; what is left over
    joins the aggregate it is connected with most; what has no such neighbour makes aggregates of its own."""
    n = len(owner)
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] != i:
                most[i] = max(most[i], weight[k])
    count = 0
    for i in range(n):
        if owner[i] != FREE or most[i] == 0.0:
            continue
        alone = True
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if j != i and owner[j] >= 0 and weight[k] * weight[k] >= strong * most[i] * most[j]:
                alone = False
                break
        if alone:
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
def _connect(indptr, indices, weight, owner, child_start, child, place, coarse_indptr, columns, sums, slots):
    """The pattern of the coarse rows, the sums of what connects them, and the slot of every fine block."""
    blocks = 0
    for row in range(len(child_start) - 1):
        first = blocks
        for c in range(child_start[row], child_start[row + 1]):
            i = child[c]
            for k in range(indptr[i], indptr[i + 1]):
                column = owner[indices[k]]
                if column < 0:
                    continue
                if place[column] < first:
                    place[column] = blocks
                    columns[blocks] = column
                    blocks += 1
                slots[k] = place[column]
                if column != row:
                    sums[place[column]] += weight[k]
        coarse_indptr[row + 1] = blocks


@kernel
def _reflect(indptr, indices, mirror, diagonal):
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
    """start[k + 1] += how many blocks are sources of block k; returns the number of all. Blocks of the finest
    matrix whose rows are in no aggregate are none, and neither are those of the last level."""
    total = 0
    for row in range(len(indptr) - 1):
        for k in range(indptr[row], indptr[row + 1]):
            apart = (owner[row] < 0 or owner[indices[k]] < 0) if fine else slots[k] < 0
            if not apart and mirror[slots[k]] < 0:
                start[slots[k] + 1] += 1
                total += 1
    return total


@kernel
def _list_sources(indptr, indices, slots, owner, mirror, fine, filled, source, source_row):
    for row in range(len(indptr) - 1):
        for k in range(indptr[row], indptr[row + 1]):
            apart = (owner[row] < 0 or owner[indices[k]] < 0) if fine else slots[k] < 0
            if not apart and mirror[slots[k]] < 0:
                at = filled[slots[k]]
                source[at], source_row[at] = k, row
                filled[slots[k]] += 1
