"""Kernels of Anderson acceleration: three phases after each sweep; anderson.py has the formulas."""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.kernels import (
    RECORD,
    device_function,
    do,
    item_number,
    lane_stride,
    member_of,
    number_at,
    numbers_at,
    pack_stride,
    parallel_for,
    records,
    records_at_once,
    store_number,
    store_numbers,
    sync_warp,
    vector_offset,
    warp_sum,
)
from supple.solvers.acceleration.acceleration import accelerate

SUM_BLOCKS = 128
"""Number of blocks of sums over all vertices, fixed so that the summation order never changes."""

RESTART_GROWTH = 2.0
"""Growth of |f| between sweeps at which earlier sweeps are discarded. A choice, not a measurement."""

REGULARIZATION = 1e-10
"""Regularization ε relative to the trace of ΔFᵀΔF, added to its diagonal.

It is well above the rounding of the sums, 1e-16.
"""


class AndersonMemory(NamedTuple):
    """Memory of Anderson acceleration in device memory.

    m is a multiple of 4 and m' a multiple of ROWS; both are greater than the largest window.

    Attributes:
        phases: Number of phases after a sweep.
        slot: (batch,) column of f and g of this sweep.
        known: (batch,) number of stored earlier sweeps.
        window: (batch,) number of earlier sweeps that may be used.
        x: Padded vectors x before the sweep.
        f, g: (m, records, 4) values of this sweep and, cyclically before it, of earlier ones.
        parts: (batch, PARTS, m) partial sums of products.
        products: (batch, m, m) products fᵢ · fⱼ.
        system: (batch, m', m) matrix ΔFᵀΔF and right-hand side ΔFᵀf.
        mix: (batch, m) weight of gᵢ in the next x.
    """

    phases: Any
    slot: Any
    known: Any
    window: Any
    x: Any
    f: Any
    g: Any
    parts: Any
    products: Any
    system: Any
    mix: Any


@device_function
def _back(slot, steps, columns):
    """Return the column of f and g `steps` sweeps before `slot`; a division would be slower."""
    return slot - steps if slot >= steps else slot - steps + columns


class StoreSweep(NamedTuple):
    """Store f and g of this sweep, and partial products of f with itself and earlier ones.

    `count` is the number of padded vectors of a batch member.
    """

    memory: Any
    u: Any
    count: Any


@do.of(StoreSweep)
def _store_sweep(work, item):
    a, u, count = work.memory, work.u, work.count
    columns = len(a.f)
    size, stride = -(-count // SUM_BLOCKS), RECORD * len(a.x)
    part = item_number(item) // columns  # adjacent items read the same u and x
    column = item_number(item) - part * columns
    member = member_of(item)
    age = _back(a.slot[member], column, columns)
    first, step = lane_stride(item)
    column_start, start = stride * column, RECORD * vector_offset(item)
    i, end = start + RECORD * part * size + first, start + RECORD * min(count, (part + 1) * size)
    total = 0.0
    if age == 0:
        while i < end:
            g = number_at(u, i)
            f = g - number_at(a.x, i)
            store_number(a.f, column_start + i, f)
            store_number(a.g, column_start + i, g)
            total += 1.0 * f * f  # 1.0 makes it float64
            i += step
    elif age <= min(a.known[member], a.window[member]):
        while i < end:
            f = number_at(u, i) - number_at(a.x, i)
            total += 1.0 * f * number_at(a.f, column_start + i)
            i += step
    total = warp_sum(item, total)
    if first == 0:
        a.parts[member, part, column] = total


class Weigh(NamedTuple):
    """Compute c = (ΔFᵀΔF + ε I)⁻¹ ΔFᵀf over the latest differences by elimination.

    If f has grown by `RESTART_GROWTH`, c is 0 and earlier sweeps are discarded.
    """

    memory: Any


@do.of(Weigh)
def _weigh(work, item):
    a = work.memory
    columns = len(a.f)
    member = member_of(item)
    first, step = lane_stride(item)
    now, known = a.slot[member], a.known[member]
    k = first
    while k < columns:
        total = 0.0
        for part in range(0, SUM_BLOCKS, 16):
            total += _sixteen(a.parts, member, part, k)
        a.products[member, now, k] = total
        a.products[member, k, now] = total
        a.mix[member, k] = 0.0
        k += step
    sync_warp(item)
    before = _back(now, 1, columns)
    if a.products[member, now, now] > RESTART_GROWTH * RESTART_GROWTH * a.products[member, before, before]:
        known = 0
    used = min(known, a.window[member])
    least = _assemble(a, member, now, used, first, step)
    _eliminate(a, item, member, used, least, first, step)
    k = first
    while k < used:
        c, older = a.system[member, k, used], 0.0
        if k + 1 < used:
            older = a.system[member, k + 1, used]
        a.mix[member, _back(now, k + 1, columns)] = c - older
        k += step
    sync_warp(item)
    if first == 0:
        a.known[member] = min(known + 1, columns - 1)
        a.slot[member] = now + 1 if now + 1 < columns else 0


@device_function
def _four(parts, member, part, k):
    return (parts[member, part, k] + parts[member, part + 1, k]) + (
        parts[member, part + 2, k] + parts[member, part + 3, k]
    )


@device_function
def _sixteen(parts, member, part, k):
    """Sum sixteen blocks; a device thread loads all of them at once."""
    return (_four(parts, member, part, k) + _four(parts, member, part + 4, k)) + (
        _four(parts, member, part + 8, k) + _four(parts, member, part + 12, k)
    )


@device_function
def _assemble(a, member, now, used, first, step):
    """Assemble this thread's columns of ΔFᵀΔF + ε I and ΔFᵀf from the products fᵢ · fⱼ; return ε."""
    columns, F = len(a.f), a.products
    trace, newer = 1e-200, now
    for i in range(used):
        older = _back(now, i + 1, columns)
        trace += F[member, newer, newer] - 2.0 * F[member, newer, older] + F[member, older, older]
        newer = older
    j = first
    while j <= used:
        p, newer = _back(now, j, columns), now
        q = _back(now, j + 1, columns)
        for i in range(used):
            older = _back(now, i + 1, columns)
            value = F[member, newer, now] - F[member, older, now]
            if j < used:
                value = (
                    F[member, newer, p] - F[member, older, p] - (F[member, newer, q] - F[member, older, q])
                )
            if i == j:
                value += REGULARIZATION * trace
            a.system[member, i, j] = value
            newer = older
        j += step
    return REGULARIZATION * trace


@device_function
def _eliminate(a, item, member, used, least, first, step):
    """Replace the last column of a positive definite system by its solution [Gauss and Jordan].

    Pivots are bounded below by `least`, their smallest value without rounding.
    """
    M = a.system
    for pivot in range(used):
        sync_warp(item)
        j = first
        while j <= used:
            if j > pivot:
                value = M[member, pivot, j] / max(M[member, pivot, pivot], least)
                for i in range(0, used, ROW_BLOCK):  # may also change rows beyond the last
                    p = _minus(_rows(M, member, i, j), value, _rows(M, member, i, pivot))
                    q = _minus(_rows(M, member, i + 4, j), value, _rows(M, member, i + 4, pivot))
                    r = _minus(_rows(M, member, i + 8, j), value, _rows(M, member, i + 8, pivot))
                    _store_rows(M, member, i, j, p)
                    _store_rows(M, member, i + 4, j, q)
                    _store_rows(M, member, i + 8, j, r)
                M[member, pivot, j] = value
            j += step
    sync_warp(item)


ROW_BLOCK = 12
"""Rows of a system that are read before one is written: a device thread loads all of them at once."""


@device_function
def _rows(M, member, i, j):
    return M[member, i, j], M[member, i + 1, j], M[member, i + 2, j], M[member, i + 3, j]


@device_function
def _minus(a, s, b):
    """Return a - s b."""
    return a[0] - s * b[0], a[1] - s * b[1], a[2] - s * b[2], a[3] - s * b[3]


@device_function
def _store_rows(M, member, i, j, values):
    M[member, i, j], M[member, i + 1, j] = values[0], values[1]
    M[member, i + 2, j], M[member, i + 3, j] = values[2], values[3]


class Mix(NamedTuple):
    """x = g - Σ cᵢ Δgᵢ = g + Σ mixᵢ (gᵢ - g) for `count` padded vectors in blocks of `size`."""

    memory: Any
    u: Any
    count: Any
    size: Any


@do.of(Mix)
def _mix(work, block):
    a, u, count, size = work.memory, work.u, work.count, work.size
    columns, stride = len(a.f), RECORD * len(a.x)
    member = member_of(block)
    first, step, width = pack_stride(block, u)
    start = RECORD * vector_offset(block)
    i = start + RECORD * item_number(block) * size + first
    end = start + RECORD * min(count, (item_number(block) + 1) * size)
    now = _back(a.slot[member], 1, columns)  # the slot has already advanced
    while i < end:
        i = min(i, end - width)  # the last pack recomputes some numbers
        g = numbers_at(a.g, block, stride * now + i)
        change = 0.0 * g  # summed separately, since it is small compared to g
        for k in range(0, columns, 4):
            first_two = _mix_term(a, block, k, now, g, i) + _mix_term(a, block, k + 1, now, g, i)
            last_two = _mix_term(a, block, k + 2, now, g, i) + _mix_term(a, block, k + 3, now, g, i)
            change = change + (first_two + last_two)
        x = g + change
        store_numbers(a.x, i, x)
        store_numbers(u, i, x)
        i += step


@device_function
def _mix_term(a, item, column, now, g, i):
    """Return mixᵢ (gᵢ - g); an unused gᵢ may contain NaN and is replaced by g."""
    share = a.mix[member_of(item), column]
    source = column if share != 0.0 else now
    return share * (numbers_at(a.g, item, RECORD * len(a.x) * source + i) - g)


@accelerate.of(AndersonMemory)
def _anderson(acceleration, team, phase, iteration, u):
    count, size = records(team, u), records_at_once(team)
    parallel_for(team, phase, 0, SUM_BLOCKS * len(acceleration.f), StoreSweep(acceleration, u, count))
    parallel_for(team, phase + 1, 0, 1, Weigh(acceleration))
    parallel_for(team, phase + 2, 0, -(-count // size), Mix(acceleration, u, count, size))
    return phase + 3
