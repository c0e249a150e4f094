"""exp, log and inverse cube root of packs against NumPy over all magnitudes."""

import math

import numpy as np
import pytest
from numba import njit

from supple.kernels import device_function, inverse_cube_root, lanes_of, load, store


@device_function
def functions(x):
    """Compiled with reassociation of sums, as in kernels."""
    return math.exp(x), math.log(x), inverse_cube_root(x)


@njit(error_model="numpy")
def evaluate(x, out):
    for row in range(len(x)):
        exp, log, root = functions(load(x, row, 0))
        store(out, row, 0, exp)
        store(out, row, 1, log)
        store(out, row, 2, root)


def all_three(values, dtype):
    lanes = lanes_of(dtype)
    x = np.resize(np.asarray(values, dtype), -(-len(values) // lanes) * lanes)
    out = np.empty((len(x) // lanes, 3, lanes), dtype)
    evaluate(x.reshape(-1, 1, lanes), out)
    return x, *(out[:, k].ravel() for k in range(3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_are_exact_to_a_few_units_in_the_last_place(dtype):
    random, eps = np.random.default_rng(0), np.finfo(dtype).eps
    most = 0.97 * np.log(np.finfo(dtype).max)
    values = np.concatenate([random.uniform(-most, most, 4000), random.normal(size=4000)])
    x, exp, _, _ = all_three(values, dtype)
    expected = np.exp(x.astype(np.longdouble))
    assert np.all(np.abs(exp / expected - 1) < (3 + np.abs(x)) * eps)
    x, _, log, root = all_three(
        np.concatenate([np.exp(random.uniform(-80, 80, 4000)), random.uniform(0.9, 1.1, 4000)]), dtype
    )
    expected = np.log(x.astype(np.longdouble))
    np.testing.assert_allclose(log, expected, rtol=4 * eps)
    np.testing.assert_allclose(root, x.astype(np.longdouble) ** (-1 / np.longdouble(3)), rtol=4 * eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_non_finite_results_equal_those_of_numpy(dtype):
    with np.errstate(all="ignore"):
        x, exp, log, root = all_three(
            [0.0, -0.0, 1.0, -1.0, -1e-30, np.inf, -np.inf, np.nan, 1e4, -1e4], dtype
        )
        np.testing.assert_allclose(exp, np.exp(x), rtol=1e-6)
        np.testing.assert_allclose(log, np.log(x), rtol=1e-6)
        assert np.isnan(root[~(x > 0)]).all()
