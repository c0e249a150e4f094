"""Recoloring of vertices for dynamic stencils [PBNG section 10.1].

A vertex keeps its color from the static stencils, unless a new stencil connects it to a vertex of the same
color; then it takes the smallest available color. Colors therefore depend on the current stencils only, not
on earlier ones. Vertices are processed in an order given by a hash of their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from supple.kernels import kernel
from supple.ordering.colouring import incidence, merge_stencils

MIXING = 2654435761
"""Multiplier of the hash: 2³² times the golden section [Knuth's multiplicative hashing]."""


@dataclass(frozen=True)
class LastingColours:
    """Colors by the static stencils, and work arrays of `recolour`.

    Attributes:
        colour: (n,) color of each vertex, -1 for pinned vertices.
        start, near: Free neighbors of vertex v by static stencils: near[start[v]:start[v + 1]].
        now: (n,) work array, equal to `colour` between calls.
        number: (n,) work array, -1 between calls.
    """

    colour: np.ndarray
    start: np.ndarray
    near: np.ndarray
    now: np.ndarray
    number: np.ndarray


def lasting_colours(colour: np.ndarray, stencils: Sequence[np.ndarray]) -> LastingColours:
    """Prepare recoloring from the static colors (n,) and the static stencils (m, k) of each term."""
    merged, n = merge_stencils(stencils), len(colour)
    first, element, _ = incidence(merged, n)
    start, near = np.zeros(n + 1, np.int64), np.empty(len(element) * (merged.shape[1] - 1), np.int32)
    count = _find_near(merged, first, element, colour, np.full(n, -1, np.int32), start, near)
    return LastingColours(colour, start, near[:count].copy(), colour.copy(), np.full(n, -1, np.int32))


def recolour(lasting: LastingColours, stencils: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Recolor vertices so that no two vertices of a new stencil have the same color.

    Args:
        lasting: Static colors.
        stencils: New stencils, one array (m, k) per term.

    Returns:
        Vertices that change color, and their new colors.
    """
    new, colour, now = merge_stencils(stencils), lasting.colour, lasting.now
    touched, numbered = np.empty(new.size, np.int32), np.empty(new.shape, np.int32)
    count = _number_touched(new, colour, lasting.number, touched, numbered)
    touched, first, element = touched[:count], np.zeros(count + 2, np.int32), np.empty(new.size, np.int32)
    _list_stencils(numbered, first, element)
    forbidden = np.full(int(colour.max(initial=-1)) + count + 2, -1, np.int32)
    work = numbered, first, element, lasting.start, lasting.near, now, forbidden
    found = colour[touched]
    _take_colours(_mixed_up(touched), touched, found, *work)
    moved = np.flatnonzero(found != colour[touched])
    now[touched], lasting.number[touched] = colour[touched], -1
    return touched[moved], found[moved]


def _mixed_up(vertices: np.ndarray) -> np.ndarray:
    """Order in which vertices are recolored: sorted by hash."""
    low = np.uint64(0xFFFFFFFF)
    hashed = (vertices.astype(np.uint64) * np.uint64(MIXING)) & low
    both = np.sort((hashed << np.uint64(32)) | np.arange(len(vertices), dtype=np.uint64))
    return (both & low).astype(np.int64)


@kernel
def _find_near(stencils, first, element, colour, seen, start, near):
    """List the free neighbors of each free vertex v through stencils element[first[v]:first[v + 1]].

    `seen` (n,) is work memory. Returns the number of entries.
    """
    count = 0
    for v in range(len(colour)):
        start[v] = count
        if colour[v] >= 0:
            for i in range(first[v], first[v + 1]):
                for slot in range(stencils.shape[1]):
                    w = stencils[element[i], slot]
                    if w >= 0 and w != v and colour[w] >= 0 and seen[w] != v:
                        seen[w] = v
                        near[count] = w
                        count += 1
    start[len(colour)] = count
    return count


@kernel
def _number_touched(stencils, colour, number, touched, numbered):
    """Number the free vertices in order of first appearance and write the number of each corner, or -1."""
    count = 0
    for e in range(len(stencils)):
        for slot in range(stencils.shape[1]):
            v, numbered[e, slot] = stencils[e, slot], -1
            if v >= 0 and colour[v] >= 0:  # pinned vertices cause no conflict
                if number[v] < 0:
                    number[v] = count
                    touched[count] = v
                    count += 1
                numbered[e, slot] = number[v]
    return count


@kernel
def _list_stencils(numbered, first, element):
    """List the stencils of vertex i as element[first[i]:first[i + 1]], once per corner; `first` has one spare
    entry."""
    for e in range(len(numbered)):
        for slot in range(numbered.shape[1]):
            if numbered[e, slot] >= 0:
                first[numbered[e, slot] + 2] += 1
    for i in range(2, len(first)):
        first[i] += first[i - 1]
    for e in range(len(numbered)):
        for slot in range(numbered.shape[1]):
            i = numbered[e, slot]
            if i >= 0:
                element[first[i + 1]] = e
                first[i + 1] += 1


@kernel
def _take_colours(order, touched, found, numbered, first, element, start, near, now, forbidden):
    """Assign each vertex its previous color or the smallest available one, stored in `found` (k,) and `now`
    (n,)."""
    for i in order:
        v = touched[i]
        for k in range(first[i], first[i + 1]):
            for slot in range(numbered.shape[1]):
                j = numbered[element[k], slot]
                if j >= 0 and j != i:
                    forbidden[found[j]] = i
        for k in range(start[v], start[v + 1]):
            forbidden[now[near[k]]] = i
        if forbidden[found[i]] == i:
            least = 0
            while forbidden[least] == i:
                least += 1
            found[i] = now[v] = least
