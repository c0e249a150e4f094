"""Which vertices are near to which triangles, and which edges to which: by a grid of cells, hashed.

Things are entered into all cells that their boxes touch, and a pair is found in the first cell that both
boxes share, so that none is found twice or missed. Threads of the CPU or of a device write pairs down as they
find them, however many there are, and then into rows in order: who found what does not matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.contact.adding import PHASES, Starts, add_up
from supple.contact.cells import (
    ALL,
    ANY,
    BLOCK,
    WITHIN,
    Entered,
    Wanted,
    entered,
    key_of,
    own_part,
    place_of,
    touching,
)
from supple.contact.points import Points
from supple.contact.things import face, share_a_corner, things_apart
from supple.kernels import HOST, Runner, count_up, do, each_item, kernel, physics

ROOM = 4
"""Pairs per thing for which there is room at first."""

LONG = 64
"""Pairs in a row, such as those of a floor below a fine cloth, from which on it is sorted as a heap."""


class Search(NamedTuple):
    """Things `seek` (m, k) look for things `other` in a table, within `radius` of each other; x: points;
    seeking and hiding: cells of both; here and there: boxes of both; facing: normals (t, 3) of triangles that
    must face each other, and whether they have no outside (t,), empty for anything else. count (m,) gets how
    many each has found, total (1,) how many there are; one and two: their numbers, as many as there is room
    for."""

    x: Any
    seek: Any
    other: Any
    radius: Any
    wanted: Any
    seeking: Any
    hiding: Any
    here: Any
    there: Any
    table: Any
    facing: Any
    count: Any
    total: Any
    one: Any
    two: Any


@physics
def _wanted(s, m, o):
    """Nobody looks for what has the same corners, nor for what is in another body, or the same."""
    if s.wanted.which != ALL:
        same = s.wanted.body[s.seek[m, 0]] == s.wanted.body[s.other[o, 0]]
        if same != (s.wanted.which == WITHIN):
            return False
    return not share_a_corner(s.seek, s.other, m, o)


@physics
def _boxes_near(s, m, o):
    square = 0.0
    for axis in range(3):
        gap = max(s.there[o, axis] - s.here[m, 3 + axis], s.here[m, axis] - s.there[o, 3 + axis], 0.0)
        square += gap * gap
    return square < s.radius * s.radius


@physics
def _first_common(s, m, o, i, j, k):
    """Whether a cell is the first that two boxes share, and no other one therefore counts the pair."""
    a, b = s.seeking, s.hiding
    return i == max(a[m, 0], b[o, 0]) and j == max(a[m, 1], b[o, 1]) and k == max(a[m, 2], b[o, 2])


@physics
def _near_by(s, m, o, i, j, k):
    """Whether things face each other and their boxes are near, first of all in this cell."""
    return face(s.facing, m, o) and _boxes_near(s, m, o) and _first_common(s, m, o, i, j, k)


@physics
def _meet(s, m, o):
    """Whether things whose boxes are near are so themselves, and not too near at rest to count."""
    if not _wanted(s, m, o) or things_apart(s.x, s.seek, s.other, m, o) >= s.radius * s.radius:
        return False
    clear, body = s.wanted.clear, s.wanted.body
    if clear < 0.0 or body[s.seek[m, 0]] != body[s.other[o, 0]]:
        return True
    return things_apart(s.wanted.rest, s.seek, s.other, m, o) > clear * clear


@do.of(Search)
def _look_around(s, place):
    c, places, alike = s.seeking, len(s.table.count), s.seek.shape[1] == s.other.shape[1]
    first, last, step = own_part(len(s.seek), place)
    for m in range(first, last, step):
        finds = 0
        for i in range(c[m, 0], c[m, 3] + 1):
            for j in range(c[m, 1], c[m, 4] + 1):
                for k in range(c[m, 2], c[m, 5] + 1):
                    at, key = place_of(i, j, k, places), key_of(i, j, k)
                    begin = s.table.begin[at]
                    for entry in range(begin, begin + s.table.count[at]):
                        o = s.table.thing[entry]
                        later = o > m or not alike  # things that are alike look for later ones
                        here = later and _near_by(s, m, o, i, j, k) and s.table.key[entry] == key
                        if here and _meet(s, m, o):
                            finds += 1
                            found = count_up(s.total, 0, 1)
                            if found < len(s.one):
                                s.one[found], s.two[found] = m, o
        s.count[m] = finds


class Arranging(NamedTuple):
    """Pairs one, two (p,), in any order, go to first, second (p,), in rows from start (m + 1,) on; left (m,):
    how many of each row are to come."""

    one: Any
    two: Any
    start: Any
    left: Any
    first: Any
    second: Any


class Sort(NamedTuple):
    """Rows of numbers, from start (m + 1,) on."""

    start: Any
    numbers: Any


@do.of(Arranging)
def _into_rows(work, place):
    first, last, step = own_part(len(work.first), place)
    for p in range(first, last, step):
        m = work.one[p]
        at = work.start[m + 1] - count_up(work.left, m, -1)
        work.first[at], work.second[at] = m, work.two[p]


@do.of(Sort)
def _sort(work, place):
    numbers = work.numbers
    first, last, step = own_part(len(work.start) - 1, place)
    for m in range(first, last, step):
        begin, count = work.start[m], work.start[m + 1] - work.start[m]
        if count > LONG:
            _sort_heap(numbers, begin, count)
        else:
            for k in range(begin + 1, begin + count):
                value, at = numbers[k], k
                while at > begin and numbers[at - 1] > value:
                    numbers[at] = numbers[at - 1]
                    at -= 1
                numbers[at] = value


@physics
def _sort_heap(numbers, begin, count):
    """Numbers begin, ..., begin + count - 1 in order, in place, in a time of count log count."""
    for top in range(count // 2 - 1, -1, -1):
        _sink(numbers, begin, count, top)
    for last in range(count - 1, 0, -1):
        numbers[begin], numbers[begin + last] = numbers[begin + last], numbers[begin]
        _sink(numbers, begin, last, 0)


@physics
def _sink(numbers, begin, count, top):
    """Bring the number at a place of a heap to below all that are larger."""
    value = numbers[begin + top]
    while 2 * top + 1 < count:
        child = 2 * top + 1
        if child + 1 < count and numbers[begin + child + 1] > numbers[begin + child]:
            child += 1
        if numbers[begin + child] <= value:
            break
        numbers[begin + top] = numbers[begin + child]
        top = child
    numbers[begin + top] = value


@kernel
def search_all(team, cells, search):
    blocks = -(-len(search.seek) // BLOCK)
    each_item(team, 0, 0, blocks, cells)
    each_item(team, 1, 0, blocks, search)


@kernel
def arrange(team, starts, rows):
    add_up(team, 0, starts)
    each_item(team, PHASES, 0, -(-len(rows.first) // BLOCK), rows)
    each_item(team, PHASES + 1, 0, -(-(len(rows.start) - 1) // BLOCK), Sort(rows.start, rows.second))


class Found(NamedTuple):
    """Pairs one, two (p,) in order, those of the m-th thing from start[m] on, start (m + 1,)."""

    start: np.ndarray
    one: np.ndarray
    two: np.ndarray


NOTHING_FACES = np.zeros((0, 3)), np.zeros(0, bool)
"""What looks for each other need not face each other."""


def find(
    x: np.ndarray,
    seek: np.ndarray,
    other: np.ndarray,
    radius: float,
    runner: Runner = HOST,
    wanted: Wanted = ANY,
    size: float | None = None,
    room: int = 0,
) -> Found:
    """Pairs of things nearer to each other than a radius [m], which share no corner. x (n, 3) points; seek
    (m, 1) vertices and other (o, 3) triangles, or edges (m, 2) in both, and then only those with larger
    numbers; or edges and triangles, and then those that cross, whatever the radius; or triangles in both,
    whose boxes are near. size: about how large things are [m]; room: for how many pairs there should be."""
    there = None
    if len(seek) and len(other):
        size = _size(x, other) if size is None else size
        there = entered(Points.at(x), other, size + radius, wanted, runner)
    if there is None:
        return Found(np.zeros(len(seek) + 1, np.int64), *(np.zeros(0, np.int32) for _ in range(2)))
    found = search(there, seek, radius, runner, wanted, room)
    for array in found:
        runner.pull(array)
    return found


def _size(x: np.ndarray, things: np.ndarray) -> float:
    """About how large things are [m]."""
    return float(np.linalg.norm(x[things[:, 1]] - x[things[:, 0]], axis=1).mean())


def search(
    there: Entered,
    seek: np.ndarray,
    radius: float,
    runner: Runner,
    wanted: Wanted = ANY,
    room: int = 0,
    facing: tuple[np.ndarray, np.ndarray] = NOTHING_FACES,
) -> Found:
    """Pairs that things `seek` (m, k) make with others that are in a table, as `find` does, where kernels see
    them; facing: as in `Search`."""
    cells = touching(there.x, seek, radius, there.size, wanted, runner)
    room = max(room, ROOM * len(seek))
    while True:
        count, total = runner.empty((len(seek),), np.int64), runner.zeros((1,), np.int64)
        one, two = (runner.empty((room,), np.int32) for _ in range(2))
        boxes = cells.cells, there.cells, cells.box, there.box
        given = there.x, seek, there.things, float(radius), wanted, *boxes, there.table, facing
        runner.run(search_all, 2, cells, Search(*given, count, total, one, two))
        runner.pull(total)
        if total[0] <= room:
            break
        room = int(total[0])
    starts = Starts.of(count, runner)
    first, second = (runner.empty((int(total[0]),), np.int32) for _ in range(2))
    runner.run(arrange, PHASES + 2, starts, Arranging(one, two, starts.start, count, first, second))
    return Found(starts.start, first, second)


def near(
    x: np.ndarray, seek: np.ndarray, other: np.ndarray, radius: float, runner: Runner = HOST
) -> tuple[np.ndarray, np.ndarray]:
    """All pairs that `find` finds: start (m + 1,) and found (pairs,), the numbers of those near to each, in
    order."""
    x = np.ascontiguousarray(x, float)
    alike = seek is other
    other = np.ascontiguousarray(other, np.int64)
    found = find(x, other if alike else np.ascontiguousarray(seek, np.int64), other, radius, runner)
    return found.start, found.two
