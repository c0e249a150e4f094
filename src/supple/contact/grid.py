"""Which vertices are near to which triangles, and which edges to which: by a grid of cells, hashed.

Things are entered into all cells that their boxes touch, and a pair is found in the first cell that both
boxes share, so that none is found twice or missed. Threads of the CPU or of a device write pairs down as they
find them, however many there are, and then into rows in order: who found what does not matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.contact.adding import PHASES, Starts
from supple.contact.arranging import Arranging, arrange
from supple.contact.cells import (
    ALL,
    ANY,
    BLOCK,
    NOTHING_FACES,
    ROUNDING,
    WITHIN,
    Wanted,
    cell_of,
    own_part,
    touching,
)
from supple.contact.points import Points
from supple.contact.table import Entered, entered, key_of, place_of
from supple.contact.things import face, may_face, octants_faced, share_a_corner, things_apart
from supple.kernels import HOST, Runner, count_up, do, each_item, kernel, physics

ROOM = 4
"""Pairs per thing for which there is room at first."""


class Search(NamedTuple):
    """Things `seek` (m, k) look for things `other` in a table, within `radius` of each other, or own_radius
    where both are of one body, in cells of a size; x: points; seeking and hiding: cells of both; here and
    there: boxes of both; facing: normals (t, 3) of triangles that must face each other, and whether they have
    no outside (t,), empty for anything else. count (m,) gets how many each has found, total (1,) how many
    there are; one and two: their numbers, as many as there is room for."""

    x: Any
    seek: Any
    other: Any
    radius: Any
    own_radius: Any
    size: Any
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
def _boxes_apart(s, m, o):
    """Distance² of the boxes of two things."""
    square = 0.0
    for axis in range(3):
        gap = max(s.there[o, axis] - s.here[m, 3 + axis], s.here[m, axis] - s.there[o, 3 + axis], 0.0)
        square += gap * gap
    return square


@physics
def _same_body(s, m, o):
    body = s.wanted.body
    return len(body) > 0 and body[s.seek[m, 0]] == body[s.other[o, 0]]


@physics
def _own_cells(s, m):
    """The first and the last cells that a thing touches with its own radius around it."""
    box, r, size = s.here, s.own_radius, s.size
    low = (
        cell_of((box[m, 0] - r) / size),
        cell_of((box[m, 1] - r) / size),
        cell_of((box[m, 2] - r) / size),
    )
    return low, (
        cell_of((box[m, 3] + r) / size),
        cell_of((box[m, 4] + r) / size),
        cell_of((box[m, 5] + r) / size),
    )


@physics
def _near_by(s, m, o, i, j, k, low):
    """Whether things face each other and their boxes are near, and no other cell counts the pair: this is the
    first that both boxes share; low: the first cells of those of one body."""
    if not face(s.facing, m, o):
        return False
    square, same, b = _boxes_apart(s, m, o), _same_body(s, m, o), s.hiding
    first = low if same else (s.seeking[m, 0], s.seeking[m, 1], s.seeking[m, 2])
    radius = s.own_radius if same else s.radius
    common = i == max(first[0], b[o, 0]) and j == max(first[1], b[o, 1]) and k == max(first[2], b[o, 2])
    return common and square < radius * radius


@physics
def _meet(s, m, o):
    """Whether things whose boxes are near are so themselves, and not too near at rest to count."""
    if not _wanted(s, m, o) or things_apart(s.x, s.seek, s.other, m, o) >= s.radius * s.radius:
        return False
    clear, body = s.wanted.clear, s.wanted.body
    if clear < 0.0 or body[s.seek[m, 0]] != body[s.other[o, 0]]:
        return True
    return things_apart(s.wanted.rest, s.seek, s.other, m, o) > clear * clear


@physics
def _own_only(s, m, at):
    """Whether at a place of the table there is nothing but of the body of a thing."""
    if len(s.wanted.body) == 0:
        return False
    own = s.wanted.body[s.seek[m, 0]]
    return s.table.least[at] == own and s.table.most[at] == own


@physics
def _worth_a_look(s, m, at, faced, i, j, k, own):
    """Whether something in a cell at a place of the table can be what a thing looks for: something that it
    may face, of another body or in cells that are its own."""
    if (s.table.octants[at] & faced) == 0:
        return False
    low, high = own
    inside = low[0] <= i <= high[0] and low[1] <= j <= high[1] and low[2] <= k <= high[2]
    return inside or not _own_only(s, m, at)


@do.of(Search)
def _look_around(s, place):
    c, places, alike = s.seeking, len(s.table.count), s.seek.shape[1] == s.other.shape[1]
    first, last, step = own_part(len(s.seek), place)
    for m in range(first, last, step):
        finds, faced, own = 0, octants_faced(s.facing, m), _own_cells(s, m)
        for i in range(c[m, 0], c[m, 3] + 1):
            for j in range(c[m, 1], c[m, 4] + 1):
                for k in range(c[m, 2], c[m, 5] + 1):
                    at, key = place_of(i, j, k, places), key_of(i, j, k)
                    begin, count = s.table.begin[at], s.table.count[at]
                    if count > 0 and not _worth_a_look(s, m, at, faced, i, j, k, own):
                        count = 0
                    for entry in range(begin, begin + count):
                        o = s.table.thing[entry]
                        later = o > m or not alike  # things that are alike look for later ones
                        later = later and may_face(s.facing, m, s.table.normal, entry)
                        here = later and _near_by(s, m, o, i, j, k, own[0]) and s.table.key[entry] == key
                        if here and _meet(s, m, o):
                            finds += 1
                            found = count_up(s.total, 0, 1)
                            if found < len(s.one):
                                s.one[found], s.two[found] = m, o
        s.count[m] = finds


@kernel
def search_all(team, cells, search):
    blocks = -(-len(search.seek) // BLOCK)
    each_item(team, 0, 0, blocks, cells)
    each_item(team, 1, 0, blocks, search)


class Found(NamedTuple):
    """Pairs one, two (p,) in order, those of the m-th thing from start[m] on, start (m + 1,)."""

    start: np.ndarray
    one: np.ndarray
    two: np.ndarray


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
    own_radius: float | None = None,
) -> Found:
    """Pairs that things `seek` (m, k) make with others that are in a table, as `find` does, where kernels see
    them; facing: as in `Search`; own_radius [m]: beyond which nobody asks for pairs of one body, of which
    some are found all the same."""
    cells = touching(there.x, seek, radius, there.size, wanted, runner)
    room = max(room, ROOM * len(seek))
    while True:
        count, total = runner.empty((len(seek),), np.int64), runner.zeros((1,), np.int64)
        one, two = (runner.empty((room,), np.int32) for _ in range(2))
        boxes = cells.cells, there.cells, cells.box, there.box
        radii = float(radius), (1 + ROUNDING) * float(radius if own_radius is None else own_radius)
        given = there.x, seek, there.things, *radii, there.size, wanted, *boxes, there.table, facing
        runner.run(search_all, 2, cells, Search(*given, count, total, one, two))
        runner.pull(total)
        if total[0] <= room:
            break
        room = int(total[0])
    starts = Starts.of(count, runner)
    first, second, ordered = (runner.empty((int(total[0]),), np.int32) for _ in range(3))
    rows = Arranging(one, two, starts.start, count, first, second)
    runner.run(arrange, PHASES + 3, starts, rows, ordered)
    return Found(starts.start, first, ordered)


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
