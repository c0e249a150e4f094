"""The closed-form rotation against the polar decomposition by SVD."""

import numpy as np
import pytest
from problems import deformations, flat, matrix, rotations, stretches
from rotation_kernels import rotations_lane_by_lane, rotations_of

from supple.algebra.rotation import rotation, rotation_differential
from supple.kernels import lanes_of

NOT_INVERTED = [
    (1, 1, 1), (1.1, 1, 0.9), (2, 1, 0.5), (5, 1, 0.2), (10, 1, 0.1), (30, 1, 1), (1, 0.05, 0.05),
    (1, 0.5, 1e-3), (1e4, 1e4, 1e4), (1e-4, 1e-4, 1e-4),
]  # fmt: skip
FLAT = [(1, 1, 0), (1, 0.5, 0), (3, 0.3, 0)]
INVERTED = [
    (1, 1, -0.1),
    (1, 0.5, -0.2),
    (2, 1.5, -0.3),
    (1, 0.5, -0.4),
    (1e-4, 5e-5, -1e-5),
    (1e4, 5e3, -4e3),
]
NOT_UNIQUE = [
    (1, 1, -1),
    (1, 0.5, -0.5),
    (2, 0.5, -0.4999999),
    (1, 0, 0),
    (3, 0, 0),
    (1, 1e-8, 1e-8),
    (0, 0, 0),
]


def polar(F):
    """Proper rotation of F = R S; if F is inverted, the smallest singular value is negative."""
    U, _, V = np.linalg.svd(F)
    return U @ np.diag([1, 1, np.linalg.det(U @ V)]) @ V


@pytest.mark.parametrize("values", NOT_INVERTED + FLAT, ids=str)
def test_rotation_equals_polar_decomposition(values):
    for F in stretches(values):
        np.testing.assert_allclose(matrix(rotation(flat(F))), polar(F), atol=1e-12)


@pytest.mark.parametrize("values", INVERTED, ids=str)
def test_rotation_of_inverted_matrices_is_proper(values):
    for F in stretches(values):
        R = matrix(rotation(flat(F)))
        np.testing.assert_allclose(R, polar(F), atol=1e-12)
        assert np.linalg.det(R) == pytest.approx(1)


@pytest.mark.parametrize("gap", [0.5, 0.2, 0.1, 1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("second", [0.6, 0.9, 1.0])
def test_rotation_with_nearly_cancelling_stretches(second, gap):
    """The rotation error is at most ε over the squared gap, relative to the other sums of stretches."""
    bound = 100 * np.finfo(float).eps / (gap**2 * (1 - second + gap) ** 2)
    for F in stretches((1, second, gap - second)):
        np.testing.assert_allclose(matrix(rotation(flat(F))), polar(F), atol=bound)


@pytest.mark.parametrize("values", NOT_UNIQUE, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_non_unique_rotation_is_bounded(values, dtype):
    lanes = lanes_of(dtype)
    F = stretches(values, 4 * lanes).reshape(4, lanes, 9).transpose(0, 2, 1)
    R = np.empty(F.shape, dtype)
    rotations_of(np.ascontiguousarray(F, dtype), R)
    assert np.isfinite(R).all()
    assert np.abs(R).max() < 1.5


def test_rotation_of_rank_one_matrix_turns_its_direction():
    """For F = σ a bᵀ the rotation satisfies R b = a, which stretch along the line needs."""
    for F in stretches((3, 0, 0)):
        U, _, V = np.linalg.svd(F)
        np.testing.assert_allclose(matrix(rotation(flat(F))) @ V[0], U[:, 0], atol=1e-6)


def test_rotation_of_zero_matrix_is_zero():
    np.testing.assert_array_equal(rotation(flat(np.zeros((3, 3)))), np.zeros(9))


@pytest.mark.parametrize("values", [*NOT_INVERTED[:6], *FLAT, *INVERTED], ids=str)
def test_rotation_of_packs_in_single_precision(values):
    F = stretches(values, 16).reshape(1, 16, 9)
    R = np.empty((1, 9, 16), np.float32)
    rotations_of(np.ascontiguousarray(F.transpose(0, 2, 1), np.float32), R)
    for F_lane, R_lane in zip(F[0], R[0].T, strict=True):
        np.testing.assert_allclose(matrix(R_lane), polar(matrix(F_lane)), atol=2e-3)


@pytest.mark.parametrize(("dtype", "near"), [(np.float64, 1e-11), (np.float32, 2e-3)])
@pytest.mark.parametrize(
    "values", [*NOT_INVERTED[:9], *FLAT, *INVERTED[:4], (100, 100, 100), (1e3, 1e3, 1e3)], ids=str
)
def test_rotation_lane_by_lane_matches_polar_decomposition(values, dtype, near):
    F = stretches(values, 32).reshape(1, 32, 9)
    R = np.empty((1, 9, 32), dtype)
    rotations_lane_by_lane(np.ascontiguousarray(F.transpose(0, 2, 1), dtype), R)
    for F_lane, R_lane in zip(F[0], R[0].T, strict=True):
        np.testing.assert_allclose(matrix(R_lane), polar(matrix(F_lane)), atol=near)


def test_rotation_is_equivariant():
    for F, Q in zip(deformations(10), rotations(10, seed=5), strict=True):
        np.testing.assert_allclose(matrix(rotation(flat(Q @ F))), Q @ matrix(rotation(flat(F))), atol=1e-13)


@pytest.mark.parametrize("inverted", [False, True])
def test_rotation_differential(inverted):
    h = 1e-5
    for F, dF in zip(deformations(10, inverted=inverted), deformations(10, seed=3), strict=True):
        R = rotation(flat(F))
        ahead, behind = (matrix(rotation(flat(F + step * dF))) for step in (h, -h))
        np.testing.assert_allclose(
            matrix(rotation_differential(flat(F), R, flat(dF))), (ahead - behind) / (2 * h), atol=1e-7
        )


@pytest.mark.parametrize("values", NOT_UNIQUE, ids=str)
def test_differential_of_non_unique_rotation_is_finite(values):
    for F, dF in zip(stretches(values, 5), deformations(5), strict=True):
        assert np.isfinite(rotation_differential(flat(F), rotation(flat(F)), flat(dF))).all()
