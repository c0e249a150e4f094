"""Which vertices are near to which triangles, and which edges to which: by a grid of cells, hashed.

Things are entered into all cells that their boxes touch. Cells have whole numbers; those that share a place
in the table are told apart by them, so that no pair is found twice or missed. Pairs are counted, and then
written into rows that are as long as it takes, in an order that does not depend on who found what.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.contact.closest import between, crosses, on_edges, on_triangle
from supple.kernels import do, each_item, kernel, number, physics, run, strides, threads_for

BLOCK = 64
"""Vertices or edges that a thread takes at once."""


class Boxes(NamedTuple):
    """Boxes of things: lower and upper (m, 3) cells, whole numbers."""

    lower: Any
    upper: Any


class Table(NamedTuple):
    """start (places + 1,): where each place of the table begins; of the entries, cell (e, 3) and thing
    (e,)."""

    start: Any
    cell: Any
    thing: Any


@physics
def _place(i, j, k, places):
    """Where a cell is in the table."""
    return ((i * 73856093) ^ (j * 19349663) ^ (k * 83492791)) & (places - 1)


@kernel
def _box(x, things, margin, size, lower, upper):
    """Cells that the boxes of things (m, k), points x, touch with a margin."""
    for m in range(things.shape[0]):
        for axis in range(3):
            least = most = x[things[m, 0], axis]
            for corner in range(1, things.shape[1]):
                value = x[things[m, corner], axis]
                least, most = min(least, value), max(most, value)
            lower[m, axis] = math.floor((least - margin) / size)
            upper[m, axis] = math.floor((most + margin) / size)


@kernel
def _count_entries(boxes, count):
    places = len(count)
    for m in range(len(boxes.lower)):
        for i in range(boxes.lower[m, 0], boxes.upper[m, 0] + 1):
            for j in range(boxes.lower[m, 1], boxes.upper[m, 1] + 1):
                for k in range(boxes.lower[m, 2], boxes.upper[m, 2] + 1):
                    count[_place(i, j, k, places)] += 1


@kernel
def _enter(boxes, free, cell, thing):
    """free (places,): the next entry that is free in each place; they come in the order of the things."""
    places = len(free)
    for m in range(len(boxes.lower)):
        for i in range(boxes.lower[m, 0], boxes.upper[m, 0] + 1):
            for j in range(boxes.lower[m, 1], boxes.upper[m, 1] + 1):
                for k in range(boxes.lower[m, 2], boxes.upper[m, 2] + 1):
                    place = _place(i, j, k, places)
                    entry = free[place]
                    free[place] = entry + 1
                    cell[entry, 0], cell[entry, 1], cell[entry, 2] = i, j, k
                    thing[entry] = m


def boxes_of(x: np.ndarray, things: np.ndarray, margin: float, size: float) -> Boxes:
    lower, upper = (np.zeros((len(things), 3), np.int64) for _ in range(2))
    _box(x, things, margin, size, lower, upper)
    return Boxes(lower, upper)


def table_of(boxes: Boxes) -> Table:
    """The table of all things with these boxes."""
    places = 1 << max(4, int(2 * len(boxes.lower)).bit_length())
    count = np.zeros(places, np.int64)
    _count_entries(boxes, count)
    start = np.concatenate([[0], np.cumsum(count)])
    cell, thing = np.zeros((start[-1], 3), np.int64), np.zeros(start[-1], np.int64)
    _enter(boxes, start[:-1].copy(), cell, thing)
    return Table(start, cell, thing)


class Search(NamedTuple):
    """Things `seek` (m, k) look for things `other` in a table, within `radius` of each other; x: points;
    seeking: their boxes; hiding: those of the others. count (m,) gets how many each has found, which go into
    found (pairs,) from begin (m,) on; while found is empty, those are counted whose boxes are near, which are
    no fewer."""

    x: Any
    seek: Any
    other: Any
    radius: Any
    seeking: Any
    hiding: Any
    table: Any
    begin: Any
    count: Any
    found: Any


@physics
def point(x, i):
    return (x[i, 0], x[i, 1], x[i, 2])


@physics
def boxes_apart(s, m, o):
    """Distance² of the boxes of two things: they are no nearer than that."""
    square = 0.0
    for axis in range(3):
        low = high = s.x[s.seek[m, 0], axis]
        for corner in range(1, s.seek.shape[1]):
            here = s.x[s.seek[m, corner], axis]
            low, high = min(low, here), max(high, here)
        least = most = s.x[s.other[o, 0], axis]
        for corner in range(1, s.other.shape[1]):
            there = s.x[s.other[o, corner], axis]
            least, most = min(least, there), max(most, there)
        gap = max(least - high, low - most, 0.0)
        square += gap * gap
    return square


@physics
def things_apart(s, m, o):
    """Distance² of the m-th thing from the o-th of the others; infinite where they share a corner, and for
    edges that do not cross a triangle; of two triangles that of their boxes."""
    for a in range(s.seek.shape[1]):
        for b in range(s.other.shape[1]):
            if s.seek[m, a] == s.other[o, b]:
                return math.inf
    if s.seek.shape[1] == 3:
        return boxes_apart(s, m, o)
    x, p = s.x, point(s.x, s.seek[m, 0])
    a, b = point(x, s.other[o, 0]), point(x, s.other[o, 1])
    if s.seek.shape[1] == 2 and s.other.shape[1] == 3:
        return 0.0 if crosses(p, point(x, s.seek[m, 1]), a, b, point(x, s.other[o, 2])) else math.inf
    if s.seek.shape[1] == 1:
        c = point(x, s.other[o, 2])
        u, v, w = on_triangle(p, a, b, c)
        gap = sub(p, add(add(scale(u, a), scale(v, b)), scale(w, c)))
    else:
        q = point(x, s.seek[m, 1])
        t, r = on_edges(p, q, a, b)
        gap = sub(between(t, p, q), between(r, a, b))
    return dot(gap, gap)


@physics
def _first_common(s, m, o, i, j, k):
    """Whether a cell is the first that two boxes share, and no other one therefore counts the pair."""
    a, b = s.seeking.lower, s.hiding.lower
    return i == max(a[m, 0], b[o, 0]) and j == max(a[m, 1], b[o, 1]) and k == max(a[m, 2], b[o, 2])


@do.of(Search)
def _search(s, place):
    first, step = strides(place)
    start = number(place) * BLOCK
    for m in range(start + first, min(len(s.seek), start + BLOCK), step):
        _look_around(s, m)


@physics
def _look_around(s, m):
    low, high, places = s.seeking.lower, s.seeking.upper, len(s.table.start) - 1
    finds = 0
    for i in range(low[m, 0], high[m, 0] + 1):
        for j in range(low[m, 1], high[m, 1] + 1):
            for k in range(low[m, 2], high[m, 2] + 1):
                at = _place(i, j, k, places)
                for entry in range(s.table.start[at], s.table.start[at + 1]):
                    o = s.table.thing[entry]
                    cell = s.table.cell
                    here = cell[entry, 0] == i and cell[entry, 1] == j and cell[entry, 2] == k
                    here = here and _wanted(s, m, o) and _first_common(s, m, o, i, j, k)
                    if here and boxes_apart(s, m, o) < s.radius * s.radius:
                        if len(s.found) == 0:
                            finds += 1
                        elif things_apart(s, m, o) < s.radius * s.radius:
                            _insert(s, s.begin[m], finds, o)
                            finds += 1
    s.count[m] = finds


@physics
def _wanted(s, m, o):
    """Edges and triangles look for later ones of their own only."""
    return s.seek.shape[1] != s.other.shape[1] or o > m


@physics
def _insert(s, begin, finds, o):
    """In order of the numbers."""
    at = begin + finds
    while at > begin and s.found[at - 1] > o:
        s.found[at] = s.found[at - 1]
        at -= 1
    s.found[at] = o


@kernel
def _pack(begin, start, loose, found):
    for m in range(len(begin)):
        for k in range(start[m + 1] - start[m]):
            found[start[m] + k] = loose[begin[m] + k]


@kernel
def _search_all(team, search):
    each_item(team, 0, 0, -(-len(search.seek) // BLOCK), search)


ENTRIES = 32
"""Cells that a thing may touch on average; where some are much larger than others, so are the cells."""


def _boxes(x: np.ndarray, seek: np.ndarray, other: np.ndarray, radius: float) -> tuple[Boxes, Boxes]:
    """In cells about as large as an edge."""
    edges = np.linalg.norm(x[other[:, 1]] - x[other[:, 0]], axis=1)
    size = max(float(edges.mean()) + radius, 1e-6 * float(np.abs(x).max()), 1e-300)
    while True:
        found = boxes_of(x, seek, radius / 2, size), boxes_of(x, other, radius / 2, size)
        entries = sum(float(np.prod(b.upper - b.lower + 1.0, axis=1).sum()) for b in found)
        if entries <= ENTRIES * (len(seek) + len(other)):
            return found
        size *= 2


def near(
    x: np.ndarray, seek: np.ndarray, other: np.ndarray, radius: float, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of things nearer to each other than a radius [m], which share no corner: start (m + 1,) and found
    (pairs,), the numbers of those near to each, in order. x (n, 3) points; seek (m, 1) vertices and other
    (o, 3) triangles, or edges (m, 2) in both, and then only those with larger numbers; or edges and
    triangles, and then those that cross, whatever the radius; or triangles in both, whose boxes are near."""
    x = np.ascontiguousarray(x, float)
    nothing = np.zeros(len(seek) + 1, np.int64), np.zeros(0, np.int64)
    if len(seek) == 0 or len(other) == 0:
        return nothing
    seek, other = (np.ascontiguousarray(things, np.int64) for things in (seek, other))
    seeking, hiding = _boxes(x, seek, other, radius)
    table = table_of(hiding)

    begin, count = (np.zeros(len(seek), np.int64) for _ in range(2))

    def look(found: np.ndarray) -> np.ndarray:
        search = Search(x, seek, other, float(radius), seeking, hiding, table, begin, count, found)
        run(_search_all, threads, threads_for(1), search)
        return np.concatenate([[0], np.cumsum(count)])

    room = look(nothing[1])
    if room[-1] == 0:
        return room, nothing[1]
    begin[:], loose = room[:-1], np.zeros(room[-1], np.int64)
    start = look(loose)
    found = np.zeros(start[-1], np.int64)
    _pack(begin, start, loose, found)
    return start, found
