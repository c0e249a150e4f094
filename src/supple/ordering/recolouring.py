"""Colours of vertices when stencils come and go [PBNG section 10.1].

A vertex keeps the colour that it has by the stencils that never change, unless one that shares a new stencil
with it has the same; then it takes the least that is free. So colours follow from the stencils that there
are, whatever there was before. Vertices are visited in an order that is mixed up by hashing their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from supple.kernels import kernel
from supple.ordering.colouring import incidence, merge_stencils

MIXING = 2654435761
"""2³² times the golden section, with which numbers are mixed up [Knuth's multiplicative hashing]."""


@dataclass(frozen=True)
class LastingColours:
    """colour (n,) by the stencils that never change, -1 where a vertex does not move; who shares one of these
    with vertex v, and moves, are entries start[v] to start[v + 1] of near; now (n,): the same colours, and
    number (n,): -1, which are as they were whenever colours have been found with them."""

    colour: np.ndarray
    start: np.ndarray
    near: np.ndarray
    now: np.ndarray
    number: np.ndarray


def lasting_colours(colour: np.ndarray, stencils: Sequence[np.ndarray]) -> LastingColours:
    merged, n = merge_stencils(stencils), len(colour)
    first, element, _ = incidence(merged, n)
    start, near = np.zeros(n + 1, np.int64), np.empty(len(element) * (merged.shape[1] - 1), np.int32)
    count = _find_near(merged, first, element, colour, np.full(n, -1, np.int32), start, near)
    return LastingColours(colour, start, near[:count].copy(), colour.copy(), np.full(n, -1, np.int32))


def recolour(lasting: LastingColours, stencils: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(vertices, colours): who must have other colours with further stencils (m, k) of several kinds, such
    that none that share one are equal, and which."""
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
    """In which order they are visited."""
    low = np.uint64(0xFFFFFFFF)
    hashed = (vertices.astype(np.uint64) * np.uint64(MIXING)) & low
    both = np.sort((hashed << np.uint64(32)) | np.arange(len(vertices), dtype=np.uint64))
    return (both & low).astype(np.int64)


@kernel
def _find_near(stencils, first, element, colour, seen, start, near):
    """Those that move and share stencils, entries first[v] to first[v + 1] of element, with each v that
    moves; seen (n,) is where it works. Returns how many there are in all."""
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
    """Number those that move as they come, and say for all corners which number they have, or -1."""
    count = 0
    for e in range(len(stencils)):
        for slot in range(stencils.shape[1]):
            v, numbered[e, slot] = stencils[e, slot], -1
            if v >= 0 and colour[v] >= 0:  # what does not move is in nobody's way
                if number[v] < 0:
                    number[v] = count
                    touched[count] = v
                    count += 1
                numbered[e, slot] = number[v]
    return count


@kernel
def _list_stencils(numbered, first, element):
    """The stencils that have the i-th vertex are entries first[i] to first[i + 1] of element, once for every
    corner; first has room for one more."""
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
    """One after the other, the colour of before, or the least that is free; found (k,) and now (n,) have
    it."""
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
