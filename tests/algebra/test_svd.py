"""Singular value decompositions with proper rotations, and symmetric eigenvectors, against NumPy."""

import numpy as np
import pytest
from problems import rotations, stretches
from small_matrix_kernels import eigen_rows, svd_rows

from supple.kernels import lanes_of

PRECISIONS = {"float32": 2e-6, "float64": 2e-15}
"""Error allowed, relative to the largest singular value."""

SPREAD = [(1, 1, 1), (1.5, 1, 0.5), (1.5, 1, -0.5), (2, 2, 0.1), (2, 0.3, 0.3), (1, 1, -1), (3, 1, -0.9)]
FLAT = [(1, 0.7, 0), (1, 1, 0), (2, 0, 0), (0, 0, 0), (1, 1e-5, -1e-5)]
EXTREME = [(100, 1, 0.01), (1e3, 1e3, 1e3), (1e-3, 1e-3, -1e-3), (50, 1, 0.02)]
EACH_PRECISION = pytest.mark.parametrize("dtype", PRECISIONS)


def packed(values: np.ndarray, dtype: str) -> np.ndarray:
    """Reshape (count, fields) to (rows, fields, lanes); count is a multiple of the lanes."""
    lanes = lanes_of(dtype)
    return np.ascontiguousarray(values.reshape(-1, lanes, values.shape[1]).transpose(0, 2, 1), dtype)


def unpacked(values: np.ndarray) -> np.ndarray:
    return values.transpose(0, 2, 1).reshape(-1, values.shape[1]).astype(float)


def svd(F: np.ndarray, dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = packed(F.reshape(-1, 9), dtype)
    U, V, sigma = np.empty_like(rows), np.empty_like(rows), np.empty_like(rows[:, :3])
    svd_rows(rows, U, sigma, V)
    return unpacked(U).reshape(-1, 3, 3), unpacked(sigma), unpacked(V).reshape(-1, 3, 3)


@EACH_PRECISION
@pytest.mark.parametrize("values", SPREAD + FLAT + EXTREME, ids=str)
def test_svd_factors_are_rotations_with_the_matrix_as_product(values, dtype):
    F = stretches(values, 64).astype(dtype).astype(float)
    U, sigma, V = svd(F, dtype)
    scale = max(np.abs(values).max(), 1e-30)
    accuracy = PRECISIONS[dtype]
    np.testing.assert_allclose(U @ (sigma[:, :, None] * V.transpose(0, 2, 1)), F, atol=4 * accuracy * scale)
    for R in (U, V):
        np.testing.assert_allclose(
            R @ R.transpose(0, 2, 1), np.tile(np.eye(3), (64, 1, 1)), atol=10 * accuracy
        )
        np.testing.assert_allclose(np.linalg.det(R), 1, atol=10 * accuracy)


@EACH_PRECISION
@pytest.mark.parametrize("values", SPREAD + EXTREME, ids=str)
def test_singular_values_are_sorted_and_the_smallest_has_the_sign_of_the_determinant(values, dtype):
    """V comes from Fᵀ F, so the smallest value is accurate to the square root of the precision."""
    F = stretches(values, 64).astype(dtype).astype(float)
    _, sigma, _ = svd(F, dtype)
    expected = np.linalg.svd(F, compute_uv=False)
    expected[:, 2] *= np.sign(np.linalg.det(F))
    accuracy = PRECISIONS[dtype] * np.abs(values).max()
    np.testing.assert_allclose(sigma, expected, atol=10 * accuracy)
    assert np.all(sigma[:, 0] >= sigma[:, 1] - 10 * accuracy)
    assert np.all(sigma[:, 1] >= np.abs(sigma[:, 2]) - 10 * accuracy)


@EACH_PRECISION
def test_eigenvectors_of_random_symmetric_matrices(dtype):
    random = np.random.default_rng(0)
    R, values = rotations(320), random.normal(size=(320, 3)) * [1, 10, 0.1]
    values[::5] = values[::5, :1]  # three equal ones
    values[1::5, 1] = values[1::5, 0]  # two equal ones
    A = R @ (values[:, :, None] * R.transpose(0, 2, 1))
    six = np.column_stack([A[:, 0, 0], A[:, 1, 1], A[:, 2, 2], A[:, 0, 1], A[:, 0, 2], A[:, 1, 2]])
    rows = packed(six, dtype)
    eigenvalues, V = np.empty_like(rows[:, :3]), np.empty((len(rows), 9, rows.shape[2]), dtype)
    eigen_rows(rows, eigenvalues, V)
    axes, size = unpacked(V).reshape(-1, 3, 3), np.abs(values).max(axis=1)[:, None]
    accuracy = PRECISIONS[dtype]
    np.testing.assert_allclose(
        np.sort(unpacked(eigenvalues)) / size, np.sort(values) / size, atol=4 * accuracy
    )
    A_axes = np.einsum("nij,njk->nik", A, axes)
    expected = axes * unpacked(eigenvalues)[:, None]
    np.testing.assert_allclose(A_axes / size[:, :, None], expected / size[:, :, None], atol=4 * accuracy)
    np.testing.assert_allclose(np.linalg.det(axes), 1, atol=4 * accuracy)
