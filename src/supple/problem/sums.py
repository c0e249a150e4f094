"""Sums and maxima over the state in float64: of parts that are always the same, whoever does which, and then
of all parts."""

from __future__ import annotations

from supple.kernels import (
    RECORD,
    copy_of,
    enter,
    inside,
    lane_most,
    lane_total,
    leave,
    number,
    number_at,
    offset_of,
    physics,
    proceed,
    records,
    strides,
)

PARTS = 512
"""Parts that everything is divided into."""


@physics
def part_of(count, part):
    """(first, last): which of `count` things, last not among them, are in a part."""
    size = -(-count // PARTS)
    return min(count, part * size), min(count, (part + 1) * size)


@physics
def join(team, phase, parts, sums, whole):
    """The first `sums` of what is in parts (copies, fields, PARTS) are summed up, of the others the largest
    taken, into whole (copies, fields)."""
    item = enter(team, phase, 0, 1)
    while inside(item, 1):
        copy = copy_of(item)
        begin, step = strides(item)
        for field in range(whole.shape[1]):
            total, most = 0.0, 0.0
            k = begin
            while k < PARTS:
                total += parts[copy, field, k]
                most = max(most, parts[copy, field, k])
                k += step
            total, most = lane_total(item, total), lane_most(item, most)
            if begin == 0:
                whole[copy, field] = total if field < sums else most
        item = proceed(team, phase, item, 0, 1)
    leave(team, phase, 0, 1)


@physics
def add_up(team, phase, values, parts, whole):
    """Sums of values (copies, rows, fields, lanes) over rows and lanes, into whole (copies, fields), in two
    phases; parts (copies, fields, PARTS) is memory."""
    _, rows, fields, lanes = values.shape
    item = enter(team, phase, 0, PARTS * fields)
    while inside(item, PARTS * fields):
        part = number(item) // fields
        field = number(item) - part * fields
        copy, total = copy_of(item), 0.0
        begin, step = strides(item)
        first, last = part_of(rows, part)
        for row in range(first, last):
            start = ((copy * rows + row) * fields + field) * lanes
            k = begin
            while k < lanes:
                total += number_at(values, start + k)
                k += step
        total = lane_total(item, total)
        if begin == 0:
            parts[copy, field, part] = total
        item = proceed(team, phase, item, 0, PARTS * fields)
    leave(team, phase, 0, PARTS * fields)
    join(team, phase + 1, parts, fields, whole)


@physics
def measure(team, phase, net, u, sizes, softness, parts, figures):
    """Σ|r|², Σs², Σ(tr A)², max|u| and max s · softness into figures (copies, 5), in two phases. Net forces r
    and displacements u are records, s and tr A are in sizes (copies, batches, 2, lanes); softness (copies or
    1, batches, lanes) may be the same for all copies; parts (copies, 5, PARTS) is memory."""
    _, rows, fields, lanes = sizes.shape
    count = records(team, u) - 1  # the last is padding
    item = enter(team, phase, 0, PARTS)
    while inside(item, PARTS):
        part, copy, start = number(item), copy_of(item), RECORD * offset_of(item)
        kind = copy if softness.shape[0] > 1 else 0
        begin, step = strides(item)
        r2, s2, a2, length, ratio = 0.0, 0.0, 0.0, 0.0, 0.0
        first, last = part_of(count, part)
        i = start + RECORD * first + begin
        while i < start + RECORD * last:
            r, x = 1.0 * number_at(net, i), 1.0 * number_at(u, i)  # 1.0 makes them float64
            r2 += r * r
            length = max(length, abs(x))
            i += step
        first, last = part_of(rows, part)
        for row in range(first, last):
            there, soft = copy * rows + row, (kind * rows + row) * lanes
            k = begin
            while k < lanes:
                s = 1.0 * number_at(sizes, there * fields * lanes + k)
                a = 1.0 * number_at(sizes, (there * fields + 1) * lanes + k)
                s2 += s * s
                a2 += a * a
                ratio = max(ratio, s * number_at(softness, soft + k))
                k += step
        r2, s2, a2 = lane_total(item, r2), lane_total(item, s2), lane_total(item, a2)
        length, ratio = lane_most(item, length), lane_most(item, ratio)
        if begin == 0:
            parts[copy, 0, part], parts[copy, 1, part], parts[copy, 2, part] = r2, s2, a2
            parts[copy, 3, part], parts[copy, 4, part] = length, ratio
        item = proceed(team, phase, item, 0, PARTS)
    leave(team, phase, 0, PARTS)
    join(team, phase + 1, parts, 3, figures)
