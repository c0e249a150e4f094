"""Greedy node colouring: vertices of one colour share no stencil, so they can move at the same time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from supple.kernels import kernel


def incidence(stencils: np.ndarray, vertices: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(start, element, slot): the stencils (m, k) that touch vertex v, and in which slot, are entries
    start[v] to start[v + 1]; in the order of the elements. Negative ids are skipped."""
    corner = stencils.astype(np.int32).ravel()
    start, order = np.zeros(vertices + 1, np.int64), np.empty(int((corner >= 0).sum()), np.int64)
    sort_corners(corner, start, order)
    element, slot = np.divmod(order, stencils.shape[1])
    return start, element, slot


@kernel
def sort_corners(corner, start, incident):
    """incident[start[i] : start[i + 1]]: where row i stands among the corners."""
    for c in range(len(corner)):
        if corner[c] >= 0:
            start[corner[c] + 1] += 1
    for i in range(1, len(start)):
        start[i] += start[i - 1]
    for c in range(len(corner)):
        if corner[c] >= 0:
            incident[start[corner[c]]] = c
            start[corner[c]] += 1
    for i in range(len(start) - 1, 0, -1):
        start[i] = start[i - 1]
    start[0] = 0


def merge_stencils(stencils: Sequence[np.ndarray]) -> np.ndarray:
    """Stencils (m, k) of several kinds as one table, filled up with -1."""
    width = max((s.shape[1] for s in stencils), default=1)
    filled = [np.pad(s, ((0, 0), (0, width - s.shape[1])), constant_values=-1) for s in stencils]
    return np.concatenate([np.empty((0, width), np.int32), *filled]).astype(np.int32)


@kernel
def forbid(stencils, first, last, element, v, colour, forbidden):
    """Mark with v the colours of all vertices in its stencils, entries first to last of element."""
    for i in range(first, last):
        for w in stencils[element[i]]:
            if w >= 0 and colour[w] >= 0:
                forbidden[colour[w]] = v


@kernel
def _greedy(stencils, start, element, active, colour, forbidden):
    for v in active:
        forbid(stencils, start[v], start[v + 1], element, v, colour, forbidden)
        c = 0
        while forbidden[c] == v:
            c += 1
        colour[v] = c


def colour_vertices(stencils: Sequence[np.ndarray], active: np.ndarray, vertices: int) -> np.ndarray:
    """Colour (n,) of every vertex, -1 where it is not active: the least one that no vertex sharing a
    stencil has, in the order of `active` [PBNG section 10]. stencils: (m, k) ids for each kind of term."""
    merged = merge_stencils(stencils)
    start, element, _ = incidence(merged, vertices)
    colour = np.full(vertices, -1, np.int32)
    most = int(np.diff(start).max(initial=0)) * merged.shape[1] + 1
    _greedy(merged, start, element, np.asarray(active, np.int64), colour, np.full(most + 1, -1, np.int64))
    return colour
