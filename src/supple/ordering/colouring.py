"""Greedy node colouring: vertices of one colour share no stencil, so they can move at the same time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from supple.kernels import kernel


def incidence(stencils: np.ndarray, vertices: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(start, element, slot): the stencils (m, k) that touch vertex v, and in which slot, are entries
    start[v] to start[v + 1]; in the order of the elements. Negative ids are skipped."""
    k = stencils.shape[1]
    flat = stencils.ravel()
    order = np.argsort(flat, kind="stable")
    order = order[np.searchsorted(flat[order], 0) :]
    start = np.searchsorted(flat[order], np.arange(vertices + 1))
    return start, (order // k).astype(np.int64), (order % k).astype(np.int64)


@kernel
def _forbid(stencils, start, element, v, colour, forbidden):
    """Mark with v the colours of all vertices that share a stencil with v."""
    for i in range(start[v], start[v + 1]):
        for w in stencils[element[i]]:
            if w >= 0 and colour[w] >= 0:
                forbidden[colour[w]] = v


@kernel
def _greedy(stencils, start, element, active, colour, forbidden):
    for v in active:
        _forbid(stencils, start, element, v, colour, forbidden)
        c = 0
        while forbidden[c] == v:
            c += 1
        colour[v] = c


def colour_vertices(stencils: Sequence[np.ndarray], active: np.ndarray, vertices: int) -> np.ndarray:
    """Colour (n,) of every vertex, -1 where it is not active: the least one that no vertex sharing a
    stencil has, in the order of `active` [PBNG section 10]. stencils: (m, k) ids for each kind of term."""
    width = max(s.shape[1] for s in stencils)
    merged = np.concatenate(
        [np.pad(s, ((0, 0), (0, width - s.shape[1])), constant_values=-1) for s in stencils]
    ).astype(np.int32)
    start, element, _ = incidence(merged, vertices)
    colour = np.full(vertices, -1, np.int32)
    most = int(np.diff(start).max(initial=0)) * width + 1
    _greedy(merged, start, element, np.asarray(active, np.int64), colour, np.full(most + 1, -1, np.int64))
    return colour
