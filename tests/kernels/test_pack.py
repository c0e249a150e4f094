"""Packs against NumPy, lane by lane, in both precisions."""

import math

import numpy as np
import pytest
from pack_kernels import (
    add_literals,
    arithmetic,
    compare,
    functions,
    lane_by_lane,
    reductions,
    typed_add,
)
from problems import PRECISIONS

from supple.kernels import lanes_of

ROWS = 3


@pytest.fixture(params=PRECISIONS)
def dtype(request):
    return np.dtype(request.param)


def data(dtype, fields, low=-2.0, high=2.0, seed=0):
    values = np.random.default_rng(seed).uniform(low, high, (ROWS, fields, lanes_of(dtype)))
    return values.astype(dtype)


def close(actual, expected, ulps=4):
    eps = np.finfo(actual.dtype).eps
    np.testing.assert_allclose(actual, expected.astype(float), rtol=ulps * eps, atol=ulps * eps)


def test_pack_fills_a_register():
    assert (lanes_of(np.float32), lanes_of(np.float64)) == (16, 8)


def test_arithmetic(dtype):
    x, y = data(dtype, 2).transpose(1, 0, 2)
    out = np.empty((ROWS, 5, lanes_of(dtype)), dtype)
    arithmetic(np.stack([x, y], axis=1), out)
    for field, expected in enumerate((x + y, x - y, x * y, x / y, -x)):
        close(out[:, field], expected)


def test_numbers_are_converted_to_the_precision_of_the_pack(dtype):
    """2 + x, x - 0.1, 0.1 * x, x / 3, 1 / x, and a float64 argument."""
    x = data(dtype, 1, 0.5, 2.0)
    out = np.empty((ROWS, 6, lanes_of(dtype)), dtype)
    add_literals(x, 0.3, out)
    x, tenth = x[:, 0], dtype.type(0.1)
    expected = (2 + x, x - tenth, tenth * x, x / 3, 1 / x, x + dtype.type(0.3))
    for field, value in enumerate(expected):
        close(out[:, field], value, ulps=2)


def test_literals_do_not_widen():
    """Adding the literal 0.1 to a float32 pack and subtracting float32(0.1) leaves exactly 0."""
    x = np.zeros((1, 1, 16), np.float32)
    assert typed_add(x) == "Pack(float32, 16)"
    out = np.empty((1, 6, 16), np.float32)
    add_literals(x, 0.1, out)
    np.testing.assert_array_equal(out[0, 5], np.float32(0.1))
    np.testing.assert_array_equal(out[0, 1], -np.float32(0.1))


def test_functions(dtype):
    x, y = data(dtype, 2, 0.1, 4.0).transpose(1, 0, 2)
    out = np.empty((ROWS, 6, lanes_of(dtype)), dtype)
    functions(np.stack([x, y - 2], axis=1), out)
    expected = (np.sqrt(x), np.log(x), np.exp(x), np.abs(y - 2), np.minimum(x, y - 2), np.maximum(x, y - 2))
    for field, value in enumerate(expected):
        close(out[:, field], value, ulps=8)


def test_comparisons_select_lane_by_lane(dtype):
    """Values equal in some lanes distinguish < from <=."""
    x = data(dtype, 2)
    x[:, 1, ::2] = x[:, 0, ::2]
    out = np.empty((ROWS, 5, lanes_of(dtype)), dtype)
    compare(x, out)
    a, b = x[:, 0], x[:, 1]
    for field, mask in enumerate((a < b, a <= b, a > b, a >= b, (a <= b) & (a >= b))):
        np.testing.assert_array_equal(out[:, field], np.where(mask, a, 7))


def test_nan_compares_false_and_propagates(dtype):
    x = data(dtype, 2)
    x[0, 0, 3] = np.nan
    out = np.empty((ROWS, 5, lanes_of(dtype)), dtype)
    compare(x, out)
    np.testing.assert_array_equal(out[0, :, 3], 7)
    arithmetic(x, out)
    assert np.isnan(out[0, :, 3]).all()
    assert np.isfinite(np.delete(out[0], 3, axis=1)).all()


def test_infinities_propagate(dtype):
    """The sweep rejects steps by the infinities of 1/0 and log 0."""
    x = np.zeros((1, 1, lanes_of(dtype)), dtype)
    out = np.empty((1, 6, lanes_of(dtype)), dtype)
    add_literals(x, 0.0, out)
    assert np.isposinf(out[0, 4]).all()
    out = np.empty((1, 6, lanes_of(dtype)), dtype)
    functions(np.concatenate([x, x], axis=1), out)
    assert np.isneginf(out[0, 1]).all()


def test_minimum_and_maximum_ignore_nan(dtype):
    x = np.ones((1, 2, lanes_of(dtype)), dtype)
    x[0, 0] = np.nan
    out = np.empty((1, 6, lanes_of(dtype)), dtype)
    functions(x, out)
    np.testing.assert_array_equal(out[0, 4:], 1)


def test_reductions(dtype):
    x = data(dtype, 1)
    total, below = reductions(x, 1, 100.0)
    assert isinstance(total, float)
    exact = math.fsum(x[1, 0].astype(float))
    assert total == pytest.approx(exact, rel=1e-14, abs=1e-14)
    assert below is True
    x[1, 0, -1] = 101
    assert reductions(x, 1, 100.0)[1] is False


def test_lane_sum_is_accumulated_in_float64():
    x = np.ones((1, 1, 16), np.float32)
    x[0, 0, 0] = 2**24
    assert reductions(x, 0, 0.0)[0] == 2**24 + 15


def test_lane_sum_adds_in_the_order_of_the_lanes():
    x = np.array([1e16, 1, -1e16, 1, 0, 0, 0, 0]).reshape(1, 1, 8)
    assert reductions(x, 0, 0.0)[0] == ((1e16 + 1) - 1e16) + 1


def test_lanes_are_independent(dtype):
    """Each lane of a chain of operations equals the chain on the lane's number alone."""
    x = data(dtype, 2, 0.5, 2.0)
    out = np.empty((ROWS, 1, lanes_of(dtype)), dtype)
    lane_by_lane(x, out)
    a, b = x[:, 0], x[:, 1]
    close(out[:, 0], np.where(a > b, np.sqrt(a * b + 1) / b, np.log(a + b)), ulps=16)
