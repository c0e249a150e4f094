"""XPBD with continuum constraints: decoupled pairs, the square root of the energy, and coupled blocks.

ψ is written as Σ k/2 C², and each constraint keeps a multiplier λ, the force it exerts along its gradient;
at rest λ = -V k C. One visit solves C(x + Δx) V k + λ + Δλ = 0 with Δx = W ∇C Δλ and ∇C frozen, which leaves
out that the gradients of all other constraints turn as well: the reason why XPBD's residual stagnates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from supple.algebra.matrix3 import scaled
from supple.checks import one_of
from supple.kernels import load, physics, store
from supple.materials import constraint_pair, psi, stress
from supple.ordering import ElementBatches
from supple.solvers.elementwise import ElementOptions
from supple.solvers.projection import (
    deformation,
    project,
    put_corners,
    shifted,
    spread,
    tetrahedron,
    weighted_square,
)
from supple.terms import Term


class PairProjection(NamedTuple):
    """multipliers (rows, 2, lanes): λ of the two constraints of each element."""

    colour_start: Any
    start: Any
    own: Any
    term: Any
    weights: Any
    multipliers: Any


class RootProjection(NamedTuple):
    """multipliers (rows, 1, lanes): λ of C = √(2 ψ)."""

    colour_start: Any
    start: Any
    own: Any
    term: Any
    weights: Any
    multipliers: Any


class BlockProjection(NamedTuple):
    """multipliers (rows, 2, lanes): λ of the two constraints of each element, solved together."""

    colour_start: Any
    start: Any
    own: Any
    term: Any
    weights: Any
    multipliers: Any


@physics
def multiplier_step(C, k, lam, square):
    """Δλ = -(k C + λ)/(k Σ W|∇C|² + 1) [PBNG eq. 26, with λ in units of force and k the stiffness]."""
    return -(k * C + lam) / (k * square + 1.0)


@physics
def _solve_constraint(x, W, g, D, C, k, projection, row, slot):
    """The corners after one XPBD update of a constraint with ∂C/∂F = D."""
    gradient = spread(D, g)
    lam = load(projection.multipliers, row, slot)
    step = multiplier_step(C, k, lam, weighted_square(W, gradient, gradient))
    store(projection.multipliers, row, slot, lam + step)
    return shifted(x, step, W, gradient)


@physics
def root_constraint(material, F):
    """C = √(2 ψ) and ∂C/∂F = P/C, with a little added to ψ where it vanishes."""
    energy = psi(material, F)
    C = math.sqrt(2.0 * max(energy, 0.0 * energy) + 1e-12 * material.mu)
    return C, scaled(1.0 / C, stress(material, F))


@project.of(PairProjection)
def _project_pair(projection, row, u):
    """Both constraints of each element, one after the other [BNH Algorithm 2]."""
    x, W, g, V, material = tetrahedron(projection, row, u)
    C, D, k, _, _, _ = constraint_pair(material, deformation(x, g))
    x = _solve_constraint(x, W, g, D, C, k * V, projection, row, 0)
    _, _, _, C, D, k = constraint_pair(material, deformation(x, g))
    x = _solve_constraint(x, W, g, D, C, k * V, projection, row, 1)
    put_corners(projection, row, u, x)


@project.of(RootProjection)
def _project_root(projection, row, u):
    """The square root of the energy [PXPBD section 5.3]: possible for any material, but not stable."""
    x, W, g, V, material = tetrahedron(projection, row, u)
    C, D = root_constraint(material, deformation(x, g))
    put_corners(projection, row, u, _solve_constraint(x, W, g, D, C, V, projection, row, 0))


@project.of(BlockProjection)
def _project_block(projection, row, u):
    """Both constraints at once: a 2×2 system for (Δλ, Δλ') [BNH eq. 17-19]."""
    x, W, g, V, material = tetrahedron(projection, row, u)
    C, D, k, C2, D2, k2 = constraint_pair(material, deformation(x, g))
    k, k2 = k * V, k2 * V
    a, b = spread(D, g), spread(D2, g)
    lam, lam2 = load(projection.multipliers, row, 0), load(projection.multipliers, row, 1)
    aa, bb, ab = weighted_square(W, a, a), weighted_square(W, b, b), weighted_square(W, a, b)
    # Each row of the system is multiplied by its stiffness, so that padding (k = 0) gives 0 and not 0/0.
    r, r2 = -(k * C + lam), -(k2 * C2 + lam2)
    m11, m12, m21, m22 = k * aa + 1.0, k * ab, k2 * ab, k2 * bb + 1.0
    s = 1.0 / (m11 * m22 - m12 * m21)
    step, step2 = s * (m22 * r - m12 * r2), s * (m11 * r2 - m21 * r)
    store(projection.multipliers, row, 0, lam + step)
    store(projection.multipliers, row, 1, lam2 + step2)
    put_corners(projection, row, u, shifted(shifted(x, step, W, a), step2, W, b))


def has_pair(material: Any) -> bool:
    """Whether a material can be written as two constraints."""
    return constraint_pair.known(type(material))


def _memory(batches: ElementBatches, weights: np.ndarray, fields: int) -> np.ndarray:
    return np.zeros((len(batches.own), fields, batches.lanes), weights.dtype)


@dataclass(frozen=True)
class XPBD(ElementOptions):
    """XPBD. constraints: "pair", two per element [BNH eq. 8-9 for neo-Hookean, PXPBD eq. 5 for corotated];
    "root", the square root of the energy, for any material; "auto", the pair where the material has one."""

    name: ClassVar[str] = "xpbd"

    constraints: Literal["auto", "pair", "root"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_constraints(self.constraints)

    def elastic(self, term: Term, batches: ElementBatches, weights: np.ndarray) -> list:
        if use_root(self.name, self.constraints, term.material):  # type: ignore[attr-defined]
            return [RootProjection(*batches.places, weights, _memory(batches, weights, 1))]
        return [PairProjection(*batches.places, weights, _memory(batches, weights, 2))]


@dataclass(frozen=True)
class BlockXPBD(ElementOptions):
    """XPBD that solves both constraints of an element together [BNH section 5]."""

    name: ClassVar[str] = "block_xpbd"

    def elastic(self, term: Term, batches: ElementBatches, weights: np.ndarray) -> list:
        require_pair(self.name, term.material)  # type: ignore[attr-defined]
        return [BlockProjection(*batches.places, weights, _memory(batches, weights, 2))]


def require_pair(method: str, material: Any) -> None:
    if not has_pair(material):
        known = ", ".join(sorted(cls.__name__ for cls in constraint_pair.classes()))
        raise ValueError(
            f"{method} needs a material that is a pair of constraints ({known}), "
            f"and {type(material).__name__} is none; fpxpbd, gpbd and pbng take any material"
        )


def check_constraints(asked: str) -> None:
    one_of("constraints", asked, ("auto", "pair", "root"))


def use_root(method: str, choice: str, material: Any) -> bool:
    """Whether to take the square root of the energy rather than the material's pair of constraints."""
    if choice == "pair":
        require_pair(method, material)
    return choice == "root" or (choice == "auto" and not has_pair(material))
