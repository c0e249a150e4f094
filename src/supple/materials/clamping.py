"""Stress clamping of arbitrary materials under strong compression and inversion."""

from __future__ import annotations

from typing import Any

from supple.algebra.matrix3 import add_diagonal, combine, contract, det, matmul, select9, transpose
from supple.algebra.svd import rotation_svd
from supple.kernels import all_lanes, device_function, overload_by_type, where
from supple.materials.material import psi, stress


def clamp_of(material: Any) -> float:
    """Stretch below which the stress of a material is kept constant."""
    return type(material).clamp


@overload_by_type(clamp_of)
def _clamp_of(material):
    stretch = material.instance_class.clamp
    return lambda material: stretch


def clamped_energy(material: Any, F: Any) -> Any:
    """(ψ, P) with the response to strong compression and inversion clamped [PBCM Fig. 2].

    F = U diag(σ) Vᵀ with rotations U and V. Stretches below the material's clamp are raised to it, which
    gives F'. P is the stress at F', and ψ continues linearly as ψ(F') + P : (F - F'), so that P remains its
    derivative along the clamped stretches. If no stretch is below the clamp, ψ and P are the material's own;
    Sylvester's criterion for Fᵀ F - clamp² I detects this without a decomposition.
    """
    return (_in_principal_frame if material.isotropic else _at_clamped)(material, F)


@overload_by_type(clamped_energy)
def _clamped_energy(material, F):
    if material.instance_class.isotropic:
        return lambda material, F: _in_principal_frame(material, F)
    return lambda material, F: _at_clamped(material, F)


@device_function
def _is_unclamped(material, F):
    """True if no stretch is below the clamp."""
    clamp = clamp_of(material)
    A = add_diagonal(matmul(transpose(F), F), -clamp * clamp)
    return (A[0] > 0.0) & (A[0] * A[4] - A[1] * A[1] > 0.0) & (det(A) > 0.0) & (det(F) > 0.0)


@device_function
def _at_clamped(material, F):
    unclamped = _is_unclamped(material, F)
    if all_lanes(unclamped):
        return psi(material, F), stress(material, F)
    U, s, V = rotation_svd(F)
    zero = 0.0 * s[0]
    floor = zero + clamp_of(material)
    S = (max(s[0], floor), zero, zero, zero, max(s[1], floor), zero, zero, zero, max(s[2], floor))
    at = select9(unclamped, F, matmul(matmul(U, S), transpose(V)))
    P = stress(material, at)
    return psi(material, at) + contract(P, combine(1.0, F, -1.0, at)), P


@device_function
def _in_principal_frame(material, F):
    """`clamped_energy` of an isotropic material, whose P is diagonal in the principal frame of F."""
    unclamped = _is_unclamped(material, F)
    energy, P = psi(material, F), stress(material, F)
    if all_lanes(unclamped):
        return energy, P
    U, s, V = rotation_svd(F)
    zero = 0.0 * s[0]
    floor = zero + clamp_of(material)
    c = (max(s[0], floor), max(s[1], floor), max(s[2], floor))
    S = (c[0], zero, zero, zero, c[1], zero, zero, zero, c[2])
    H = stress(material, S)
    clamped = psi(material, S) + H[0] * (s[0] - c[0]) + H[4] * (s[1] - c[1]) + H[8] * (s[2] - c[2])
    return where(unclamped, energy, clamped), select9(unclamped, P, matmul(matmul(U, H), transpose(V)))
