"""What follows a sweep with Anderson acceleration: three phases.

A sweep takes x to g(x), and f = g(x) - x vanishes in equilibrium. With the differences Δfᵢ = fᵢ - fᵢ₋₁ and
Δgᵢ of the last sweeps, the next x is g - Σ cᵢ Δgᵢ, where c minimises |f - Σ cᵢ Δfᵢ|. It needs no estimate of
the convergence rate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.kernels import (
    RECORD,
    copy_of,
    do,
    each_item,
    lane_total,
    number,
    number_at,
    numbers_at,
    offset_of,
    physics,
    put_number,
    put_numbers,
    records,
    records_at_once,
    spans,
    strides,
    together,
)
from supple.solvers.acceleration.acceleration import accelerate

PARTS = 128
"""Parts in which sums over all vertices are formed, so that their order never changes."""

GROWTH = 2.0
"""How much |f| may grow from one sweep to the next before earlier ones are forgotten. A choice, not a
measurement."""

REGULARISATION = 1e-10
"""Added to the diagonal of ΔFᵀΔF, relative to its trace: well above the rounding of its sums, 1e-16."""


class AndersonMemory(NamedTuple):
    """phases: how many follow a sweep; slot (copies,): where f and g of this sweep go; known (copies,): how
    many earlier ones are remembered; window (copies,): how many of them may be used; x: records before
    the sweep; f and g (m, records, 4): of this sweep and earlier ones, which lie before it, cyclically; parts
    (copies, PARTS, m): partial sums of products; products (copies, m, m): fᵢ · fⱼ; system (copies, m', m):
    ΔFᵀΔF and ΔFᵀf; mix (copies, m): what of gᵢ goes into the next x. m is a multiple of 4 and m' of ROWS,
    both greater than the largest window."""

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


@physics
def _back(slot, steps, columns):
    """The place of f and g that many sweeps before those at a slot; a division would take longer."""
    return slot - steps if slot >= steps else slot - steps + columns


class Remember(NamedTuple):
    """f and g of this sweep, and the parts of the products of f with itself and earlier ones; count: records
    of a copy of the state."""

    memory: Any
    u: Any
    count: Any


@do.of(Remember)
def _remember(work, item):
    a, u, count = work.memory, work.u, work.count
    columns = len(a.f)
    size, stride = -(-count // PARTS), RECORD * len(a.x)
    part = number(item) // columns  # those who read the same u and x are close together
    column = number(item) - part * columns
    copy = copy_of(item)
    age = _back(a.slot[copy], column, columns)
    first, step = strides(item)
    there, start = stride * column, RECORD * offset_of(item)
    i, end = start + RECORD * part * size + first, start + RECORD * min(count, (part + 1) * size)
    total = 0.0
    if age == 0:
        while i < end:
            g = number_at(u, i)
            f = g - number_at(a.x, i)
            put_number(a.f, there + i, f)
            put_number(a.g, there + i, g)
            total += 1.0 * f * f  # 1.0 makes it float64
            i += step
    elif age <= min(a.known[copy], a.window[copy]):
        while i < end:
            f = number_at(u, i) - number_at(a.x, i)
            total += 1.0 * f * number_at(a.f, there + i)
            i += step
    total = lane_total(item, total)
    if first == 0:
        a.parts[copy, part, column] = total


class Weigh(NamedTuple):
    """c = (ΔFᵀΔF + ε I)⁻¹ ΔFᵀf over the latest differences, by elimination; none after f has grown much,
    after which earlier sweeps are forgotten."""

    memory: Any


@do.of(Weigh)
def _weigh(work, item):
    a = work.memory
    columns = len(a.f)
    copy = copy_of(item)
    first, step = strides(item)
    now, known = a.slot[copy], a.known[copy]
    k = first
    while k < columns:
        total = 0.0
        for part in range(0, PARTS, 16):
            total += _sixteen(a.parts, copy, part, k)
        a.products[copy, now, k] = total
        a.products[copy, k, now] = total
        a.mix[copy, k] = 0.0
        k += step
    together(item)
    before = _back(now, 1, columns)
    if a.products[copy, now, now] > GROWTH * GROWTH * a.products[copy, before, before]:
        known = 0
    used = min(known, a.window[copy])
    least = _assemble(a, copy, now, used, first, step)
    _eliminate(a, item, copy, used, least, first, step)
    k = first
    while k < used:
        c, older = a.system[copy, k, used], 0.0
        if k + 1 < used:
            older = a.system[copy, k + 1, used]
        a.mix[copy, _back(now, k + 1, columns)] = c - older
        k += step
    together(item)
    if first == 0:
        a.known[copy] = min(known + 1, columns - 1)
        a.slot[copy] = now + 1 if now + 1 < columns else 0


@physics
def _four(parts, copy, part, k):
    return (parts[copy, part, k] + parts[copy, part + 1, k]) + (
        parts[copy, part + 2, k] + parts[copy, part + 3, k]
    )


@physics
def _sixteen(parts, copy, part, k):
    """The sum of sixteen parts; a thread of a device waits for all of them at once."""
    return (_four(parts, copy, part, k) + _four(parts, copy, part + 4, k)) + (
        _four(parts, copy, part + 8, k) + _four(parts, copy, part + 12, k)
    )


@physics
def _assemble(a, copy, now, used, first, step):
    """ΔFᵀΔF + ε I and ΔFᵀf from the products fᵢ · fⱼ; this thread's columns. Returns ε."""
    columns, F = len(a.f), a.products
    trace, newer = 1e-200, now
    for i in range(used):
        older = _back(now, i + 1, columns)
        trace += F[copy, newer, newer] - 2.0 * F[copy, newer, older] + F[copy, older, older]
        newer = older
    j = first
    while j <= used:
        p, newer = _back(now, j, columns), now
        q = _back(now, j + 1, columns)
        for i in range(used):
            older = _back(now, i + 1, columns)
            value = F[copy, newer, now] - F[copy, older, now]
            if j < used:
                value = F[copy, newer, p] - F[copy, older, p] - (F[copy, newer, q] - F[copy, older, q])
            if i == j:
                value += REGULARISATION * trace
            a.system[copy, i, j] = value
            newer = older
        j += step
    return REGULARISATION * trace


@physics
def _eliminate(a, item, copy, used, least, first, step):
    """Turn the last column of a positive definite system into its solution [Gauss and Jordan]. No pivot is
    below the least there is without rounding."""
    M = a.system
    for pivot in range(used):
        together(item)
        j = first
        while j <= used:
            if j > pivot:
                value = M[copy, pivot, j] / max(M[copy, pivot, pivot], least)
                for i in range(0, used, ROWS):  # rows beyond the last may change, too
                    p = _minus(_rows(M, copy, i, j), value, _rows(M, copy, i, pivot))
                    q = _minus(_rows(M, copy, i + 4, j), value, _rows(M, copy, i + 4, pivot))
                    r = _minus(_rows(M, copy, i + 8, j), value, _rows(M, copy, i + 8, pivot))
                    _put_rows(M, copy, i, j, p)
                    _put_rows(M, copy, i + 4, j, q)
                    _put_rows(M, copy, i + 8, j, r)
                M[copy, pivot, j] = value
            j += step
    together(item)


ROWS = 12
"""Rows of a system that are read before one is written: a thread of a device waits for all at once."""


@physics
def _rows(M, copy, i, j):
    return M[copy, i, j], M[copy, i + 1, j], M[copy, i + 2, j], M[copy, i + 3, j]


@physics
def _minus(a, s, b):
    """a - s b."""
    return a[0] - s * b[0], a[1] - s * b[1], a[2] - s * b[2], a[3] - s * b[3]


@physics
def _put_rows(M, copy, i, j, values):
    M[copy, i, j], M[copy, i + 1, j] = values[0], values[1]
    M[copy, i + 2, j], M[copy, i + 3, j] = values[2], values[3]


class Mix(NamedTuple):
    """x = g - Σ cᵢ Δgᵢ = g + Σ mixᵢ (gᵢ - g) for `count` records in blocks of `size`."""

    memory: Any
    u: Any
    count: Any
    size: Any


@do.of(Mix)
def _mix(work, block):
    a, u, count, size = work.memory, work.u, work.count, work.size
    columns, stride = len(a.f), RECORD * len(a.x)
    copy = copy_of(block)
    first, step, width = spans(block, u)
    start = RECORD * offset_of(block)
    i = start + RECORD * number(block) * size + first
    end = start + RECORD * min(count, (number(block) + 1) * size)
    now = _back(a.slot[copy], 1, columns)  # which has moved on
    while i < end:
        i = min(i, end - width)  # the last pack of all takes some numbers a second time
        g = numbers_at(a.g, block, stride * now + i)
        change = 0.0 * g  # summed up by itself, since it is small against g
        for k in range(0, columns, 4):
            first_two = _pull(a, block, k, now, g, i) + _pull(a, block, k + 1, now, g, i)
            last_two = _pull(a, block, k + 2, now, g, i) + _pull(a, block, k + 3, now, g, i)
            change = change + (first_two + last_two)
        x = g + change
        put_numbers(a.x, i, x)
        put_numbers(u, i, x)
        i += step


@physics
def _pull(a, place, column, now, g, i):
    """mixᵢ (gᵢ - g); where nothing of gᵢ is used it may hold NaN, and g stands for it."""
    share = a.mix[copy_of(place), column]
    source = column if share != 0.0 else now
    return share * (numbers_at(a.g, place, RECORD * len(a.x) * source + i) - g)


@accelerate.of(AndersonMemory)
def _anderson(acceleration, team, phase, iteration, u):
    count, size = records(team, u), records_at_once(team)
    each_item(team, phase, 0, PARTS * len(acceleration.f), Remember(acceleration, u, count))
    each_item(team, phase + 1, 0, 1, Weigh(acceleration))
    each_item(team, phase + 2, 0, -(-count // size), Mix(acceleration, u, count, size))
    return phase + 3
