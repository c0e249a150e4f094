"""The positive part of symmetric 9×9 matrices in packs, against NumPy."""

import numpy as np

from supple.kernels import counters_for, lanes_of, run
from supple.terms.base.tensors import project_tensors


def positive_part(C):
    values, vectors = np.linalg.eigh(C)
    return (vectors * np.maximum(values, 0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def projected(C, threads=1):
    """Matrices (m, 9, 9) through the kernel; m is a multiple of the lanes."""
    lanes = lanes_of(np.float64)
    rows = np.ascontiguousarray(C.reshape(-1, lanes, 81).transpose(0, 2, 1))
    run(project_tensors, threads, rows, counters_for(1))
    return rows.transpose(0, 2, 1).reshape(-1, 9, 9)


def symmetric(count, seed):
    A = np.random.default_rng(seed).normal(size=(count, 9, 9))
    return A + A.transpose(0, 2, 1)


def test_random_matrices():
    C = symmetric(64, seed=0) * np.logspace(-6, 6, 64)[:, None, None]
    actual, expected = projected(C), positive_part(C)
    size = np.abs(C).max(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(actual / size, expected / size, atol=1e-11)


def test_special_matrices():
    """Zero, diagonal, rank one, equal eigenvalues, and already semi-definite."""
    v = np.arange(9.0)
    rest = symmetric(1, seed=1)[0]
    one, square = np.outer(v, v), rest @ rest
    C = np.stack([np.zeros((9, 9)), np.diag(v - 4), one, -one, np.eye(9), -np.eye(9), square, -square])
    np.testing.assert_allclose(projected(C), positive_part(C), atol=1e-9)


def test_projection_is_independent_of_threads():
    C = symmetric(80, seed=2)
    np.testing.assert_array_equal(projected(C, threads=1), projected(C, threads=2))
