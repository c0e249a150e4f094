"""Symmetric matrices as six unknowns, and their 6×6 systems, against NumPy."""

import numpy as np
import pytest
from problems import rotations
from small_matrix_kernels import solve_rows, symmetric_rows
from test_svd import packed, unpacked

INDICES = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
"""xx yy zz xy xz yz."""
LOWER = np.tril_indices(6)
ACCURACY = {"float32": 1e-6, "float64": 1e-15}
COUNT = 64


def six(A: np.ndarray) -> np.ndarray:
    return np.stack([A[:, i, j] for i, j in INDICES], axis=1)


def unit_matrices() -> np.ndarray:
    """Basis matrices of the six entries of a symmetric matrix."""
    M = np.zeros((6, 3, 3))
    for k, (i, j) in enumerate(INDICES):
        M[k, i, j] = M[k, j, i] = 1
    return M


def positive(low: float, high: float, seed: int) -> np.ndarray:
    """Symmetric positive definite matrices (COUNT, 3, 3) with eigenvalues between low and high."""
    R = rotations(COUNT, seed)
    values = np.random.default_rng(seed).uniform(low, high, (COUNT, 3))
    return R @ (values[:, :, None] * R.transpose(0, 2, 1))


@pytest.fixture(params=ACCURACY)
def dtype(request):
    return request.param


@pytest.fixture
def system(dtype):
    """Inputs C, K, t, s and b with the kernels' H (COUNT, 6, 6) and x."""
    random = np.random.default_rng(3)
    C, K = positive(0.5, 2.0, 1), positive(0.3, 3.0, 2)
    t, s, b = random.normal(size=(COUNT, 6)), random.uniform(0, 5, (COUNT, 1)), random.normal(size=(COUNT, 6))
    rows = [packed(a, dtype) for a in (six(C), six(K), t, s, b)]
    H, x = np.empty((len(rows[0]), 21, rows[0].shape[2]), dtype), np.empty_like(rows[0])
    solve_rows(*rows, H, x)
    full = np.zeros((COUNT, 6, 6))
    full[:, LOWER[0], LOWER[1]] = unpacked(H)
    full[:, LOWER[1], LOWER[0]] = unpacked(H)
    return C, K, t, s, b, full, unpacked(x)


def test_quadratic_form_equals_its_trace(system, dtype):
    """mᵀ H m = tr(M C M K) + s (t · m)²."""
    C, K, t, s, _, H, _ = system
    M = unit_matrices()
    forms = np.einsum("aij,njk,bkl,nli->nab", M, C, M, K)
    expected = 0.5 * (forms + forms.transpose(0, 2, 1)) + s[:, :, None] * t[:, :, None] * t[:, None, :]
    np.testing.assert_allclose(H, expected, atol=20 * ACCURACY[dtype] * np.abs(expected).max())


def test_solution_solves_the_system(system, dtype):
    *_, b, H, x = system
    residual = np.einsum("nij,nj->ni", H, x) - b
    size = np.abs(H).sum(axis=(1, 2)) * np.abs(x).max(axis=1)
    assert np.abs(residual).max(axis=1) == pytest.approx(0, abs=2 * ACCURACY[dtype] * size.max())
    assert np.abs(x - np.linalg.solve(H, b[:, :, None])[:, :, 0]).max() < 2e3 * ACCURACY[dtype]


def test_symmetric_part_of_a_matrix(dtype):
    A = np.random.default_rng(0).normal(size=(COUNT, 3, 3)).astype(dtype).astype(float)
    rows = packed(A.reshape(-1, 9), dtype)
    out = np.empty_like(rows)
    symmetric_rows(rows, out)
    expected = 0.5 * (A + A.transpose(0, 2, 1))
    np.testing.assert_allclose(unpacked(out).reshape(-1, 3, 3), expected, atol=4 * ACCURACY[dtype])
