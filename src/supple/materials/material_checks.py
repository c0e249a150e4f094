"""Plausibility checks of user-defined energy densities, reported as sentences."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from supple.materials.autodiff.generate import (
    is_of_stretches,
    write_psi,
    write_second,
    write_stress,
    write_stress_differential,
)
from supple.materials.material import examples_of
from supple.materials.parameters import is_per_element

TOLERANCE = 1e-6
"""Largest difference regarded as rounding, relative to the stiffness at rest."""

STATES, TURNS = 3, 2
"""Number of random deformations, and of rotations per deformation, in invariance tests."""


def findings(material: Any) -> list[str]:
    """Check a material defined by `psi` alone.

    Tests that ψ is finite, stress-free and stable at rest, invariant under rotations, and consistent with its
    E and ν.

    Args:
        material: Material; with parameters per element, the first element is checked.

    Returns:
        A sentence for each problem; empty for materials without a method `psi`.
    """
    cls = type(material)
    if not hasattr(cls, "psi"):
        return []
    one = cls._make(value[0] if is_per_element(value) else value for value in material)
    with np.errstate(all="ignore"):
        return _of_stretches(cls, one) if is_of_stretches(cls) else _of_gradient(cls, one)


def _of_gradient(cls: Any, one: Any) -> list[str]:
    psi, stress, change = _functions(cls)
    rest = _flat(np.eye(3))
    if not np.isfinite(_values(psi, one, rest)).all():
        return ["its energy density is not a finite number at rest, F = I"]
    P = _values(stress, one, rest)
    C = np.array([_values(change, one, rest, _flat(unit)) for unit in np.eye(9)])
    if not (np.isfinite(P).all() and np.isfinite(C).all()):
        return ["its energy density has no derivatives at rest, F = I, as for example |F - I| or √(I1 - 3)"]
    strain = _symmetric_part(C)
    problems = _at_rest(cls, one, np.abs(P).max(), strain)
    scale = np.abs(C).max()
    if _changes(lambda F, Q: Q @ F, psi, one, scale):
        problems.append("its energy density is not invariant under rotations: psi(Q F) differs from psi(F)")
    if cls.isotropic and _changes(lambda F, Q: F @ Q, psi, one, scale):
        problems.append("it is declared isotropic, but psi(F Q) differs from psi(F); set isotropic = False")
    return problems


def _of_stretches(cls: Any, one: Any) -> list[str]:
    psi, stress = (write(cls) for write in (write_psi, write_stress))
    rest, uneven = (1.0, 1.0, 1.0), (1.2, 1.05, 0.9)
    p, A = _values(stress, one, rest), _values(write_second(cls), one, rest).reshape(3, 3)
    if not np.isfinite(_values(psi, one, rest)).all():
        return ["its energy density is not a finite number at rest, stretches = (1, 1, 1)"]
    if not (np.isfinite(p).all() and np.isfinite(A).all()):
        return ["its energy density has no derivatives at rest, stretches = (1, 1, 1)"]
    strain = np.zeros((6, 6))
    strain[:3, :3] = A
    strain[3:, 3:] = np.eye(3) * (A[0, 0] - A[0, 1])
    problems = _at_rest(cls, one, np.abs(p).max(), strain)
    orders = [uneven, uneven[::-1], (uneven[1], uneven[2], uneven[0])]
    energies = np.array([_values(psi, one, order)[0] for order in orders])
    if not np.ptp(energies) <= TOLERANCE * np.abs(A).max():
        problems.append(
            "its energy density is not a symmetric function of the stretches: it changes when two of "
            "them are exchanged"
        )
    return problems


def _at_rest(cls: Any, one: Any, stress: float, strain: np.ndarray) -> list[str]:
    """Check stress, stability and moduli at rest.

    Args:
        cls: Material class.
        one: Material with uniform parameters.
        stress: Largest stress at rest [Pa].
        strain: 6×6 second derivatives with respect to the strains xx yy zz √2 xy √2 xz √2 yz [Pa].
    """
    problems = []
    scale = np.abs(strain).max()
    if cls.relaxed and stress > TOLERANCE * scale:
        problems.append(
            f"it is not free of stress at rest: the stress is {stress:.3g} Pa, so bodies would not keep "
            "their shape"
        )
    if cls.relaxed and np.linalg.eigvalsh(strain)[0] < TOLERANCE * scale:
        problems.append("it is not stable at rest: the energy of some small strain is zero or negative")
    if cls.isotropic and {"young", "poisson"} <= {p.name for p in cls.parameters}:
        expected = _hooke(one.young, one.poisson)
        if np.abs(strain - expected).max() > 1e-4 * np.abs(expected).max():
            E, nu = _moduli(strain)
            problems.append(
                f"its moduli at rest are E = {E:.4g} Pa and ν = {nu:.4g}, which differ from its "
                f"parameters E = {one.young:.4g} Pa and ν = {one.poisson:.4g}"
            )
    return problems


def _hooke(E: float, nu: float) -> np.ndarray:
    """Isotropic 6×6 stiffness matrix in the strains xx yy zz √2 xy √2 xz √2 yz [Pa]."""
    mu, lam = E / (2 * (1 + nu)), E * nu / ((1 + nu) * (1 - 2 * nu))
    stiffness = 2 * mu * np.eye(6)
    stiffness[:3, :3] += lam
    return stiffness


def _moduli(strain: np.ndarray) -> tuple[float, float]:
    """Return E and ν of uniaxial tension along x with free lateral strains."""
    compliance = np.linalg.pinv(strain)
    return 1 / compliance[0, 0], -compliance[0, 1] / compliance[0, 0]


def _symmetric_part(C: np.ndarray) -> np.ndarray:
    """Reduce ∂²ψ/∂F∂F (9×9) to the six symmetric strains."""
    basis = np.zeros((9, 6))
    basis[[0, 4, 8], [0, 1, 2]] = 1
    for k, (i, j) in enumerate(((1, 3), (2, 6), (5, 7))):
        basis[[i, j], 3 + k] = np.sqrt(0.5)
    return basis.T @ C @ basis


def _changes(rotate: Callable, psi: Callable, one: Any, scale: float) -> bool:
    """True if random rotations change ψ at random deformations by more than rounding."""
    random = np.random.default_rng(0)
    for _ in range(STATES):
        F = np.eye(3) + 0.1 * random.uniform(-1, 1, size=(3, 3))
        before = _values(psi, one, _flat(F))[0]
        for _ in range(TURNS):
            Q, _ = np.linalg.qr(random.normal(size=(3, 3)))
            after = _values(psi, one, _flat(rotate(F, Q * np.linalg.det(Q))))[0]
            if not abs(after - before) <= TOLERANCE * scale:
                return True
    return False


@cache
def is_objective(cls: Any) -> bool:
    """True if ψ(Q F) = ψ(F), tested with the example parameters."""
    return _is_unchanged(cls, lambda F, Q: Q @ F)


@cache
def is_isotropic(cls: Any) -> bool:
    """True if ψ(F Q) = ψ(F), tested with the example parameters."""
    return all(p.kind == "scalar" for p in cls.stored) and _is_unchanged(cls, lambda F, Q: F @ Q)


def _is_unchanged(cls: Any, rotate: Callable) -> bool:
    psi, _, change = _functions(cls)
    one = cls._from_values(cls.store(**cls._check_parameters(cls.parameters, examples_of(cls))))
    rest = _flat(np.eye(3))
    C = np.array([_values(change, one, rest, _flat(unit)) for unit in np.eye(9)])
    return not _changes(rotate, psi, one, np.abs(C).max())


@cache
def _functions(cls: Any) -> tuple[Callable, Callable, Callable]:
    return write_psi(cls), write_stress(cls), write_stress_differential(cls)


def _flat(A: np.ndarray) -> tuple[float, ...]:
    return tuple(A.ravel().tolist())


def _values(function: Callable, *given: Any) -> np.ndarray:
    """Evaluate a generated function in Python; NaN instead of exceptions, like compiled code."""
    try:
        return np.atleast_1d(np.array(function(*given), float))
    except (ValueError, ZeroDivisionError, OverflowError):
        return np.array([np.nan])
