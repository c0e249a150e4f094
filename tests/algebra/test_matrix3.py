"""Small linear algebra on tuples against NumPy."""

import numpy as np
import pytest
from problems import flat, matrix, stretches

from supple.algebra import matrix3

RANDOM = np.random.default_rng(0)
MATRICES = RANDOM.normal(size=(10, 3, 3))
PAIRS = list(zip(MATRICES, RANDOM.normal(size=(10, 3, 3)), strict=True))
SINGULAR = [*stretches((2, 1, 0), 3), *stretches((2, 0, 0), 3), np.zeros((3, 3))]


def vector(seed):
    return np.random.default_rng(seed).normal(size=3)


@pytest.mark.parametrize("A", MATRICES)
def test_determinant_and_cofactor(A):
    assert matrix3.det(flat(A)) == pytest.approx(np.linalg.det(A), rel=1e-12)
    expected = np.linalg.det(A) * np.linalg.inv(A).T
    np.testing.assert_allclose(matrix(matrix3.cofactor(flat(A))), expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("A", SINGULAR)
def test_cofactor_of_singular_matrices(A):
    """cof A = U cof(Σ) Vᵀ det(U) det(V) holds for every A."""
    U, s, V = np.linalg.svd(A)
    sign = np.linalg.det(U) * np.linalg.det(V)
    expected = sign * U @ np.diag([s[1] * s[2], s[2] * s[0], s[0] * s[1]]) @ V
    np.testing.assert_allclose(matrix(matrix3.cofactor(flat(A))), expected, atol=1e-14)


@pytest.mark.parametrize(("A", "B"), PAIRS)
def test_products_and_sums(A, B):
    a, b = flat(A), flat(B)
    np.testing.assert_allclose(matrix(matrix3.matmul(a, b)), A @ B, atol=1e-14)
    np.testing.assert_array_equal(matrix(matrix3.transpose(a)), A.T)
    np.testing.assert_allclose(matrix3.matvec(a, B[0]), A @ B[0], atol=1e-14)
    np.testing.assert_allclose(matrix(matrix3.outer(A[0], B[0])), np.outer(A[0], B[0]), atol=1e-14)
    assert matrix3.contract(a, b) == pytest.approx(np.sum(A * B))
    assert matrix3.dot(A[0], B[0]) == pytest.approx(A[0] @ B[0])
    np.testing.assert_allclose(matrix(matrix3.combine(2.0, a, -3.0, b)), 2 * A - 3 * B, atol=1e-14)
    np.testing.assert_allclose(matrix(matrix3.scale_matrix(2.0, a)), 2 * A)
    np.testing.assert_allclose(matrix(matrix3.add_diagonal(a, 2.0)), A + 2 * np.eye(3))
    np.testing.assert_allclose(matrix3.add(A[0], B[0]), A[0] + B[0])
    np.testing.assert_allclose(matrix3.sub(A[0], B[0]), A[0] - B[0])
    np.testing.assert_allclose(matrix3.scale(2.0, A[0]), 2 * A[0])


@pytest.mark.parametrize(("A", "B"), PAIRS)
def test_cofactor_differential(A, B):
    """The cofactor is quadratic, so central differences are exact."""
    ahead, behind = (matrix(matrix3.cofactor(flat(A + step * B))) for step in (0.5, -0.5))
    np.testing.assert_allclose(
        matrix(matrix3.cofactor_differential(flat(A), flat(B))), ahead - behind, atol=1e-13
    )


@pytest.mark.parametrize("condition", [1, 1e3, 1e6])
def test_solve_spd(condition):
    for seed in range(5):
        Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
        H = Q @ np.diag([1, condition**0.5, condition]) @ Q.T
        b = vector(seed)
        packed = (H[0, 0], H[1, 1], H[2, 2], H[0, 1], H[0, 2], H[1, 2])
        np.testing.assert_allclose(
            matrix3.solve_spd(packed, b), np.linalg.solve(H, b), rtol=1e-13 * condition, atol=1e-13
        )


def test_solve_spd_is_accurate_for_very_different_scales():
    """A system with one stiff direction, 1e8, among soft ones is solved accurately."""
    n = np.array([1.0, 2.0, 3.0]) / np.sqrt(14)
    H = 1e8 * np.outer(n, n) + np.eye(3)
    b = H @ np.array([1.0, -1.0, 0.5])
    packed = (H[0, 0], H[1, 1], H[2, 2], H[0, 1], H[0, 2], H[1, 2])
    np.testing.assert_allclose(matrix3.solve_spd(packed, b), [1.0, -1.0, 0.5], rtol=1e-6)
