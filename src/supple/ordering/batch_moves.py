"""Device kernels that update batch arrays when vertices move between slots and stencils change."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.kernels import (
    device_function,
    do,
    item_number,
    kernel,
    lane_stride,
    overload_by_type,
    parallel_for,
)
from supple.ordering.row_trees import row_arrays
from supple.terms import Incidence, Term, write_incidence


def swap_slots(arrays: Any, row: int, lane: int, new_row: int, new_lane: int) -> None:
    """Swap the entries of two slots in all arrays (rows, fields, lanes)."""


@overload_by_type(swap_slots)
def _swap_slots(arrays, row, lane, new_row, new_lane):
    if len(arrays) == 0:
        return lambda arrays, row, lane, new_row, new_lane: None

    def first_then_rest(arrays, row, lane, new_row, new_lane):
        array = arrays[0]
        for field in range(array.shape[1]):
            first_value, second_value = array[row, field, lane], array[new_row, field, new_lane]
            array[row, field, lane], array[new_row, field, new_lane] = second_value, first_value
        swap_slots(arrays[1:], row, lane, new_row, new_lane)

    return first_then_rest


class Swaps(NamedTuple):
    """Moves (k, 7) of vertices: first row, lane and batch width of the default slot, then of the target slot,
    and number of incidences. Vacant slots hold no incidences."""

    arrays: Any
    moves: Any


@do.of(Swaps)
def _swap(work, item):
    moves, k, lanes = work.moves, item_number(item), work.arrays[0].shape[2]
    first, step = lane_stride(item)
    for rank in range(first, moves[k, 6], step):
        row, lane = locate_incidence(rank, moves[k, 0], moves[k, 1], moves[k, 2], lanes)
        new_row, new_lane = locate_incidence(rank, moves[k, 3], moves[k, 4], moves[k, 5], lanes)
        swap_slots(work.arrays, row, lane, new_row, new_lane)


@device_function
def locate_incidence(rank, row, lane, width, lanes):
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
def swap_incidences(team, arrays, moves, back):
    """Return incidences of the first `back` moves to their default slots, then apply the other moves."""
    parallel_for(team, 0, 0, back, Swaps(arrays, moves))
    parallel_for(team, 1, back, len(moves), Swaps(arrays, moves))


def write_lane(arrays: Any, values: Any, batch: int, lane: int, k: int) -> None:
    """Write entry k of values (k, fields) into a lane of arrays (batches, fields, lanes).

    Values (blocks, k, fields) go to arrays (blocks, batches, fields, lanes).
    """


@overload_by_type(write_lane)
def _write_lane(arrays, values, batch, lane, k):
    if len(arrays) == 0:
        return lambda arrays, values, batch, lane, k: None

    def into_all(arrays, values, batch, lane, k):
        for field in range(arrays[0].shape[1]):
            arrays[0][batch, field, lane] = values[0][k, field]
        write_lane(arrays[1:], values[1:], batch, lane, k)

    def into_blocks(arrays, values, batch, lane, k):
        for block in range(arrays[0].shape[0]):
            for field in range(arrays[0].shape[2]):
                arrays[0][block, batch, field, lane] = values[0][block, k, field]
        write_lane(arrays[1:], values[1:], batch, lane, k)

    return into_all if arrays[0].ndim == 3 else into_blocks


class LaneWrites(NamedTuple):
    """Values written to slots (k, 2): batches and lanes, one warp per work item."""

    arrays: Any
    values: Any
    slots: Any


LANES_PER_ITEM = 32
"""Number of lanes written by one work item: the threads of a warp."""


@do.of(LaneWrites)
def _write_block(work, block):
    first, step = lane_stride(block)
    start = item_number(block) * LANES_PER_ITEM
    for k in range(start + first, min(len(work.slots), start + LANES_PER_ITEM), step):
        write_lane(work.arrays, work.values, work.slots[k, 0], work.slots[k, 1], k)


@kernel
def write_lanes(team, arrays, values, slots):
    """Write values into lanes of arrays, see `write_lane`."""
    parallel_for(team, 0, 0, -(-len(slots) // LANES_PER_ITEM), LaneWrites(arrays, values, slots))


def clear_entry(arrays: Any, row: int, lane: int, own: int) -> None:
    """Mark an entry of arrays (rows, fields, lanes) as empty: `own` for vertex ids, 0 for numbers."""


@overload_by_type(clear_entry)
def _clear_entry(arrays, row, lane, own):
    if len(arrays) == 0:
        return lambda arrays, row, lane, own: None

    def id_then_rest(arrays, row, lane, own):
        for field in range(arrays[0].shape[1]):
            arrays[0][row, field, lane] = own
        clear_entry(arrays[1:], row, lane, own)

    def zero_then_rest(arrays, row, lane, own):
        for field in range(arrays[0].shape[1]):
            arrays[0][row, field, lane] = 0
        clear_entry(arrays[1:], row, lane, own)

    return id_then_rest if hasattr(arrays[0].dtype, "signed") else zero_then_rest


class Fill(NamedTuple):
    """Rows start[b] to start[b + 1] - 1 of a dynamic term, for batch b.

    Attributes:
        arrays: Packed arrays (rows, fields, lanes).
        tables: Stencil data, see `write_incidence`.
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
def _fill(work, item):
    b = work.batches[item_number(item)]
    first, step = lane_stride(item)
    for row in range(work.start[b], work.start[b + 1]):
        for lane in range(first, work.element.shape[1], step):
            element = work.element[row, lane]
            if element < 0:
                clear_entry(work.arrays, row, lane, work.own[b, 0, lane])
            else:
                write_incidence(work.tables, work.arrays, row, lane, element, work.slot[row, lane])


@kernel
def fill_rows(team, work):
    """Write the rows of a term with changed stencils."""
    parallel_for(team, 0, 0, len(work.batches), work)


class PrecomputedRows(NamedTuple):
    """Precomputed rows of a term, (incidences, fields, 1): one incidence per stencil corner."""

    arrays: Any
    corners: Any


def stencil_tables(term: Term, dtype: np.dtype) -> Any:
    """Stencil data from which `write_incidence` writes the rows of a term."""
    tables = term.tables(dtype)
    if tables is not None:
        return tables
    own = term.vertices.astype(np.int32).reshape(-1, 1)
    every, corners = np.arange(len(own)), term.vertices.shape[1]
    incidences = Incidence(every // corners, every % corners, every, 0 * every, own, dtype)
    return PrecomputedRows(row_arrays(term.rows(incidences, np.zeros(1, np.int64))), corners)


def copy_incidence(source: Any, arrays: Any, row: int, lane: int, k: int) -> None:
    """Copy an incidence from arrays (incidences, fields, 1) to arrays (rows, fields, lanes)."""


@overload_by_type(copy_incidence)
def _copy_incidence(source, arrays, row, lane, k):
    if len(arrays) == 0:
        return lambda source, arrays, row, lane, k: None

    def first_then_rest(source, arrays, row, lane, k):
        for field in range(arrays[0].shape[1]):
            arrays[0][row, field, lane] = source[0][k, field, 0]
        copy_incidence(source[1:], arrays[1:], row, lane, k)

    return first_then_rest


@write_incidence.of(PrecomputedRows)
def _write_precomputed(tables, arrays, row, lane, element, slot):
    copy_incidence(tables.arrays, arrays, row, lane, element * tables.corners + slot)
