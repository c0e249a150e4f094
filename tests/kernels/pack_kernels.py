"""Small compiled functions on packs for the tests of kernels."""

import math

from numba import njit
from numba.extending import overload

from supple.kernels import all_lanes, gather, lane_sum, load, scatter, store, where


@njit
def arithmetic(x, out):
    for row in range(len(x)):
        a, b = load(x, row, 0), load(x, row, 1)
        store(out, row, 0, a + b)
        store(out, row, 1, a - b)
        store(out, row, 2, a * b)
        store(out, row, 3, a / b)
        store(out, row, 4, -a)


@njit
def add_literals(x, number, out):
    for row in range(len(x)):
        a = load(x, row, 0)
        store(out, row, 0, 2 + a)
        store(out, row, 1, a - 0.1)
        store(out, row, 2, 0.1 * a)
        store(out, row, 3, a / 3)
        store(out, row, 4, 1.0 / a)
        store(out, row, 5, a + number)


def type_name(value):
    """The name of a value's type in compiled code."""


@overload(type_name)
def _type_name(value):
    name = str(value)
    return lambda value: name


@njit
def typed_add(x):
    return type_name(0.1 * load(x, 0, 0) + 1)


@njit
def functions(x, out):
    for row in range(len(x)):
        a, b = load(x, row, 0), load(x, row, 1)
        store(out, row, 0, math.sqrt(a))
        store(out, row, 1, math.log(a))
        store(out, row, 2, math.exp(a))
        store(out, row, 3, abs(b))
        store(out, row, 4, min(a, b))
        store(out, row, 5, max(a, b))


@njit
def compare(x, out):
    for row in range(len(x)):
        a, b = load(x, row, 0), load(x, row, 1)
        store(out, row, 0, where(a < b, a, 7.0))
        store(out, row, 1, where(a <= b, a, 7.0))
        store(out, row, 2, where(a > b, a, 7.0))
        store(out, row, 3, where(a >= b, a, 7.0))
        store(out, row, 4, where((a <= b) & (a >= b), a, 7.0))


@njit
def reductions(x, row, limit):
    a = load(x, row, 0)
    return lane_sum(a), all_lanes(a < limit)


@njit
def lane_by_lane(x, out):
    for row in range(len(x)):
        a, b = load(x, row, 0), load(x, row, 1)
        store(out, row, 0, where(a > b, math.sqrt(a * b + 1.0) / b, math.log(a + b)))


@njit
def copy_records(records, ids, out):
    for row in range(len(ids)):
        for slot in range(ids.shape[1]):
            scatter(out, ids, row, slot, gather(records, ids, row, slot))


@njit
def gather_into(records, ids, out):
    for row in range(len(ids)):
        x = gather(records, ids, row, 1)
        store(out, row, 0, x[0])
        store(out, row, 1, x[1])
        store(out, row, 2, x[2])


@njit
def copy_rows(x, out):
    for row in range(len(x)):
        for field in range(x.shape[1]):
            store(out, row, field, load(x, row, field))
