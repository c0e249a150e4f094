"""Device kernels that update batch arrays when vertices move between slots and stencils change."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.kernels import chosen_by_type, do, each_item, kernel, number, physics, strides
from supple.ordering.row_trees import row_arrays
from supple.terms import Term, Visits, put_visit


def swap_places(arrays: Any, row: int, lane: int, new_row: int, new_lane: int) -> None:
    """Swap the entries of two slots in all arrays (rows, fields, lanes)."""


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
    """Moves (k, 7) of vertices: first row, lane and batch width of the default slot, then of the target slot,
    and number of incidences. Vacant slots hold no incidences."""

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
    """(row, lane) of the rank-th incidence of a vertex.

    Args:
        rank: Index of the incidence.
        row: First row of the batch.
        lane: Lane of the vertex.
        width: Number of distinct vertices of the batch.
        lanes: Lanes per row.
    """
    parts = lanes // width
    return row + rank // parts, rank % parts * width + lane


@kernel
def swap_visits(team, arrays, moves, back):
    """Return incidences of the first `back` moves to their default slots, then apply the other moves."""
    each_item(team, 0, 0, back, Swaps(arrays, moves))
    each_item(team, 1, back, len(moves), Swaps(arrays, moves))


def put_lane(arrays: Any, values: Any, batch: int, lane: int, k: int) -> None:
    """Write entry k of values (k, fields) into a lane of arrays (batches, fields, lanes).

    Values (blocks, k, fields) go to arrays (blocks, batches, fields, lanes).
    """


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
    """Values written to places (k, 2): batches and lanes, one warp per work item."""

    arrays: Any
    values: Any
    places: Any


AT_ONCE = 32
"""Number of lanes written by one work item: the threads of a warp."""


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
    """Mark an entry of arrays (rows, fields, lanes) as empty: `own` for vertex ids, 0 for numbers."""


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
    """Rows start[b] to start[b + 1] - 1 of a dynamic term, for batch b.

    Attributes:
        arrays: Packed arrays (rows, fields, lanes).
        tables: Stencil data, see `put_visit`.
        start: (batches + 1,) first row of each batch.
        own: (batches, 1, lanes) vertex ids.
        element, slot: (rows, lanes) stencil of each incidence, -1 for none, and corner of the vertex in it.
        batches: Batches that have rows.
    """

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
    """Write the rows of a term with changed stencils."""
    each_item(team, 0, 0, len(work.batches), work)


class Arranged(NamedTuple):
    """Precomputed rows of a term, (visits, fields, 1): one incidence per stencil corner."""

    arrays: Any
    corners: Any


def tables_of(term: Term, dtype: np.dtype) -> Any:
    """Stencil data from which `put_visit` writes the rows of a term."""
    tables = term.tables(dtype)
    if tables is not None:
        return tables
    own = term.vertices.astype(np.int32).reshape(-1, 1)
    every, corners = np.arange(len(own)), term.vertices.shape[1]
    visits = Visits(every // corners, every % corners, every, 0 * every, own, dtype)
    return Arranged(row_arrays(term.rows(visits, np.zeros(1, np.int64))), corners)


def copy_visit(found: Any, arrays: Any, row: int, lane: int, visit: int) -> None:
    """Copy an incidence from arrays (visits, fields, 1) to arrays (rows, fields, lanes)."""


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
