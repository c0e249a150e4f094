"""What becomes of the arrays of batches as vertices move and stencils change, where kernels see them: on the
CPU or a device."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.kernels import chosen_by_type, do, each_item, kernel, number, physics, strides
from supple.ordering.rows import row_arrays
from supple.terms import Term, Visits, put_visit


def swap_places(arrays: Any, row: int, lane: int, new_row: int, new_lane: int) -> None:
    """Let all arrays (rows, fields, lanes) have at one place what they have at another, and the other way."""


@chosen_by_type(swap_places)
def _swap_places(arrays, row, lane, new_row, new_lane):
    if len(arrays) == 0:
        return lambda arrays, row, lane, new_row, new_lane: None

    def first_then_rest(arrays, row, lane, new_row, new_lane):
        array = arrays[0]
        for field in range(array.shape[1]):
            here, there = array[row, field, lane], array[new_row, field, new_lane]
            array[row, field, lane], array[new_row, field, new_lane] = there, here
        swap_places(arrays[1:], row, lane, new_row, new_lane)

    return first_then_rest


class Swaps(NamedTuple):
    """moves (k, 7): the first row, the lane and the width of the batch where a vertex is at home, then where
    it goes, and how many visits it has. Where none of them is, there is nothing."""

    arrays: Any
    moves: Any


@do.of(Swaps)
def _swap(work, place):
    moves, k, lanes = work.moves, number(place), work.arrays[0].shape[2]
    first, step = strides(place)
    for rank in range(first, moves[k, 6], step):
        row, lane = place_of_visit(rank, moves[k, 0], moves[k, 1], moves[k, 2], lanes)
        new_row, new_lane = place_of_visit(rank, moves[k, 3], moves[k, 4], moves[k, 5], lanes)
        swap_places(work.arrays, row, lane, new_row, new_lane)


@physics
def place_of_visit(rank, row, lane, width, lanes):
    """(row, lane) of the rank-th visit of the vertex in a lane of a batch that begins at a row and has so
    many different vertices."""
    parts = lanes // width
    return row + rank // parts, rank % parts * width + lane


@kernel
def swap_visits(team, arrays, moves, back):
    """Let visits go home where the first `back` moves have taken them, then where the others take them."""
    each_item(team, 0, 0, back, Swaps(arrays, moves))
    each_item(team, 1, back, len(moves), Swaps(arrays, moves))


def put_lane(arrays: Any, values: Any, batch: int, lane: int, k: int) -> None:
    """Write the k-th of values (k, fields) into a lane of arrays (batches, fields, lanes); or of
    (blocks, k, fields) into (blocks, batches, fields, lanes)."""


@chosen_by_type(put_lane)
def _put_lane(arrays, values, batch, lane, k):
    if len(arrays) == 0:
        return lambda arrays, values, batch, lane, k: None

    def into_all(arrays, values, batch, lane, k):
        for field in range(arrays[0].shape[1]):
            arrays[0][batch, field, lane] = values[0][k, field]
        put_lane(arrays[1:], values[1:], batch, lane, k)

    def into_blocks(arrays, values, batch, lane, k):
        for block in range(arrays[0].shape[0]):
            for field in range(arrays[0].shape[2]):
                arrays[0][block, batch, field, lane] = values[0][block, k, field]
        put_lane(arrays[1:], values[1:], batch, lane, k)

    return into_all if arrays[0].ndim == 3 else into_blocks


class Puts(NamedTuple):
    """places (k, 2): batches and lanes, of which each item has as many as a warp has threads."""

    arrays: Any
    values: Any
    places: Any


AT_ONCE = 32
"""Lanes that are written by a warp together."""


@do.of(Puts)
def _put(work, block):
    first, step = strides(block)
    start = number(block) * AT_ONCE
    for k in range(start + first, min(len(work.places), start + AT_ONCE), step):
        put_lane(work.arrays, work.values, work.places[k, 0], work.places[k, 1], k)


@kernel
def put_lanes(team, arrays, values, places):
    """Write values into lanes of arrays, see `put_lane`."""
    each_item(team, 0, 0, -(-len(places) // AT_ONCE), Puts(arrays, values, places))


def put_nothing(arrays: Any, row: int, lane: int, own: int) -> None:
    """Write into a place of arrays (rows, fields, lanes) that there is no visit: whole numbers are ids."""


@chosen_by_type(put_nothing)
def _put_nothing(arrays, row, lane, own):
    if len(arrays) == 0:
        return lambda arrays, row, lane, own: None

    def id_then_rest(arrays, row, lane, own):
        for field in range(arrays[0].shape[1]):
            arrays[0][row, field, lane] = own
        put_nothing(arrays[1:], row, lane, own)

    def zero_then_rest(arrays, row, lane, own):
        for field in range(arrays[0].shape[1]):
            arrays[0][row, field, lane] = 0
        put_nothing(arrays[1:], row, lane, own)

    return id_then_rest if hasattr(arrays[0].dtype, "signed") else zero_then_rest


class Fill(NamedTuple):
    """Rows start[b] to start[b + 1] of arrays (rows, fields, lanes) are those of batch b, of vertices own
    (batches, 1, lanes); element and slot (rows, lanes): which stencil is where, -1 for none, and from which
    of its corners it is seen; tables: what stencils have, see `put_visit`; batches: those that have rows."""

    arrays: Any
    tables: Any
    start: Any
    own: Any
    element: Any
    slot: Any
    batches: Any


@do.of(Fill)
def _fill(work, place):
    b = work.batches[number(place)]
    first, step = strides(place)
    for row in range(work.start[b], work.start[b + 1]):
        for lane in range(first, work.element.shape[1], step):
            element = work.element[row, lane]
            if element < 0:
                put_nothing(work.arrays, row, lane, work.own[b, 0, lane])
            else:
                put_visit(work.tables, work.arrays, row, lane, element, work.slot[row, lane])


@kernel
def fill_rows(team, work):
    """Write the rows of a term whose stencils have changed."""
    each_item(team, 0, 0, len(work.batches), work)


class Arranged(NamedTuple):
    """A term's rows with one visit each (visits, fields, 1): of every stencil from all its corners."""

    arrays: Any
    corners: Any


def tables_of(term: Term, dtype: np.dtype) -> Any:
    """What `put_visit` makes a term's rows of."""
    tables = term.tables(dtype)
    if tables is not None:
        return tables
    own = term.vertices.astype(np.int32).reshape(-1, 1)
    every, corners = np.arange(len(own)), term.vertices.shape[1]
    visits = Visits(every // corners, every % corners, every, 0 * every, own, dtype)
    return Arranged(row_arrays(term.rows(visits, np.zeros(1, np.int64))), corners)


def copy_visit(found: Any, arrays: Any, row: int, lane: int, visit: int) -> None:
    """Copy a visit of what was found (visits, fields, 1) to a place of arrays (rows, fields, lanes)."""


@chosen_by_type(copy_visit)
def _copy_visit(found, arrays, row, lane, visit):
    if len(arrays) == 0:
        return lambda found, arrays, row, lane, visit: None

    def first_then_rest(found, arrays, row, lane, visit):
        for field in range(arrays[0].shape[1]):
            arrays[0][row, field, lane] = found[0][visit, field, 0]
        copy_visit(found[1:], arrays[1:], row, lane, visit)

    return first_then_rest


@put_visit.of(Arranged)
def _put_visit(tables, arrays, row, lane, element, slot):
    copy_visit(tables.arrays, arrays, row, lane, element * tables.corners + slot)
