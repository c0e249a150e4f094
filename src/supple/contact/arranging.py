"""Sort of pairs into CSR rows; deterministic for any order of discovery."""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.contact.adding import PHASES, add_up
from supple.contact.cells import BLOCK, own_part
from supple.kernels import count_up, do, each_item, kernel, physics

LONG = 64
"""Row length above which a row is sorted by heapsort, for example the row of a floor below fine cloth. In
shorter rows the rank of each entry is counted directly."""


class Arranging(NamedTuple):
    """Work: scatter pairs into CSR rows.

    Attributes:
        one, two: (p,) pairs in any order.
        start: (m + 1,) row offsets.
        left: (m,) entries of each row still to be written.
        first, second: (p,) output, grouped by row.
    """

    one: Any
    two: Any
    start: Any
    left: Any
    first: Any
    second: Any


class Ranking(NamedTuple):
    """Work: write each entry of a short row to its sorted position.

    Attributes:
        start: (m + 1,) row offsets.
        first: (p,) row of each entry.
        second: (p,) entries, unsorted within a row.
        ordered: (p,) output. Entries of rows longer than `LONG` keep their position.
    """

    start: Any
    first: Any
    second: Any
    ordered: Any


class Sort(NamedTuple):
    """Work: sort the entries of rows longer than `LONG`; start (m + 1,) are row offsets."""

    start: Any
    numbers: Any


@do.of(Arranging)
def _into_rows(work, place):
    first, last, step = own_part(len(work.first), place)
    for p in range(first, last, step):
        m = work.one[p]
        at = work.start[m + 1] - count_up(work.left, m, -1)
        work.first[at], work.second[at] = m, work.two[p]


@do.of(Ranking)
def _rank(work, place):
    second = work.second
    first, last, step = own_part(len(second), place)
    for p in range(first, last, step):
        begin, end, at = work.start[work.first[p]], work.start[work.first[p] + 1], p
        if end - begin <= LONG:
            at = begin
            for k in range(begin, end):
                at += 1 if second[k] < second[p] else 0
        work.ordered[at] = second[p]


@do.of(Sort)
def _sort(work, place):
    first, last, step = own_part(len(work.start) - 1, place)
    for m in range(first, last, step):
        begin, count = work.start[m], work.start[m + 1] - work.start[m]
        if count > LONG:
            _sort_heap(work.numbers, begin, count)


@physics
def _sort_heap(numbers, begin, count):
    """Heapsort `count` numbers in place from index `begin`, in O(n log n) time."""
    for top in range(count // 2 - 1, -1, -1):
        _sink(numbers, begin, count, top)
    for last in range(count - 1, 0, -1):
        numbers[begin], numbers[begin + last] = numbers[begin + last], numbers[begin]
        _sink(numbers, begin, last, 0)


@physics
def _sink(numbers, begin, count, top):
    """Sift the number at index `top` down the heap."""
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
def arrange(team, starts, rows, ordered):
    """Sort pairs into CSR rows: prefix sum, scatter and sort in `PHASES` + 3 phases."""
    add_up(team, 0, starts)
    pairs = -(-len(ordered) // BLOCK)
    each_item(team, PHASES, 0, pairs, rows)
    each_item(team, PHASES + 1, 0, pairs, Ranking(rows.start, rows.first, rows.second, ordered))
    each_item(team, PHASES + 2, 0, -(-(len(rows.start) - 1) // BLOCK), Sort(rows.start, ordered))
