"""Primal XPBD: variants that reduce the residual of the positions as well [PXPBD].

Blended (B-PXPBD) mixes XPBD's update with a fixed-point one that restores x = x̃ + W Σ λ ∇C for the visited
constraint. First-Piola (FP-PXPBD) keeps each element's stress P instead of multipliers: the forces -V P g
are linear in P, so x = x̃ - W Σ V P g holds exactly at all times, for any energy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from supple.algebra.matrix3 import (
    add_diagonal,
    cofactor,
    combine,
    contract,
    matmul,
    outer,
    scale,
    scaled,
    sub,
)
from supple.checks import one_number, whole_number
from supple.kernels import load, physics, store
from supple.materials import bound_coefficients, constraint_pair, stress
from supple.ordering import ElementBatches
from supple.solvers.elementwise import ElementOptions
from supple.solvers.projection import (
    deformation,
    exert,
    load_corners,
    plus,
    project,
    put_corners,
    shifted,
    spread,
    store_corners,
    tetrahedron,
    weighted_square,
)
from supple.solvers.xpbd import check_constraints, multiplier_step, root_constraint, use_root
from supple.terms import Term


class BlendedProjection(NamedTuple):
    """multipliers (rows, 2, lanes): λ; totals (rows, 24, lanes): the displacement that each of the two
    constraints has given the four corners so far [m]; zeta: how much of XPBD's update is kept."""

    colour_start: Any
    start: Any
    own: Any
    term: Any
    weights: Any
    multipliers: Any
    totals: Any
    zeta: Any


@physics
def _blend(x, W, g, D, C, k, projection, row, slot):
    """One visit of a constraint [PXPBD Algorithm 1]: Δx = ζ W ∇C Δλ + (1 - ζ) Δx_fp with
    Δx_fp = (λ + Δλ) W ∇C - Δx_total [PXPBD eq. 19, 22]."""
    gradient = spread(D, g)
    lam = load(projection.multipliers, row, slot)
    step = multiplier_step(C, k, lam, weighted_square(W, gradient, gradient))
    zeta = projection.zeta
    total = load_corners(projection.totals, row, 12 * slot)
    along = zeta * step + (1.0 - zeta) * (lam + step)
    moves = (
        sub(scale(along * W[0], gradient[0]), scale(1.0 - zeta, total[0])),
        sub(scale(along * W[1], gradient[1]), scale(1.0 - zeta, total[1])),
        sub(scale(along * W[2], gradient[2]), scale(1.0 - zeta, total[2])),
        sub(scale(along * W[3], gradient[3]), scale(1.0 - zeta, total[3])),
    )
    store(projection.multipliers, row, slot, lam + step)
    store_corners(projection.totals, row, 12 * slot, plus(total, moves))
    return plus(x, moves)


@project.of(BlendedProjection)
def _project_blended(projection, row, u):
    x, W, g, V, material = tetrahedron(projection, row, u)
    C, D, k, _, _, _ = constraint_pair(material, deformation(x, g))
    x = _blend(x, W, g, D, C, k * V, projection, row, 0)
    _, _, _, C, D, k = constraint_pair(material, deformation(x, g))
    x = _blend(x, W, g, D, C, k * V, projection, row, 1)
    put_corners(projection, row, u, x)


class BlendedRootProjection(NamedTuple):
    """The same for the one constraint C = √(2 ψ): multipliers (rows, 1, lanes), totals (rows, 12, lanes)."""

    colour_start: Any
    start: Any
    own: Any
    term: Any
    weights: Any
    multipliers: Any
    totals: Any
    zeta: Any


@project.of(BlendedRootProjection)
def _project_blended_root(projection, row, u):
    x, W, g, V, material = tetrahedron(projection, row, u)
    C, D = root_constraint(material, deformation(x, g))
    put_corners(projection, row, u, _blend(x, W, g, D, C, V, projection, row, 0))


class PiolaProjection(NamedTuple):
    """stresses (rows, 9, lanes): P of each element [Pa]; newton_steps: local steps per visit."""

    colour_start: Any
    start: Any
    own: Any
    term: Any
    weights: Any
    stresses: Any
    newton_steps: Any


@physics
def mobility(W, g):
    """Γ = Σ Wᵢ gᵢ gᵢᵀ: forces -V P gᵢ at the corners change F by -V P Γ."""
    near = combine(W[0], outer(g[0], g[0]), W[1], outer(g[1], g[1]))
    far = combine(W[2], outer(g[2], g[2]), W[3], outer(g[3], g[3]))
    return combine(1.0, near, 1.0, far)


@physics
def _inverse_symmetric(A):
    """A⁻¹ of a symmetric positive definite 3×3 matrix."""
    C = cofactor(A)
    return scaled(1.0 / (A[0] * C[0] + A[1] * C[1] + A[2] * C[2]), C)


@physics
def _load_matrix(data, row):
    return (
        load(data, row, 0),
        load(data, row, 1),
        load(data, row, 2),
        load(data, row, 3),
        load(data, row, 4),
        load(data, row, 5),
        load(data, row, 6),
        load(data, row, 7),
        load(data, row, 8),
    )


@project.of(PiolaProjection)
def _project_piola(projection, row, u):
    """Newton on one element with the stresses of its neighbours fixed [PXPBD Algorithm 2].

    Without its own stress the element would have the deformation gradient F̃ = F + P G, G = V Γ. Wanted is F
    with F + P(F) G = F̃. The affine split of PXPBD eq. 31-36 in terms of forces: with the Hessian
    a I + b cof ⊗ cof, δF = -(h + b s cof G) Z, Z = (I + a G)⁻¹, h the residual, and s = cof : δF found by
    Sherman-Morrison [eq. 49]. In this form pinned corners need no special case. The new stress is the
    linearised one, P + a δF + b s cof, with which x = x̃ - W Σ V P g holds to rounding.
    """
    x, W, g, V, material = tetrahedron(projection, row, u)
    G = scaled(V, mobility(W, g))
    old = _load_matrix(projection.stresses, row)
    F = deformation(x, g)
    alone = combine(1.0, F, 1.0, matmul(old, G))
    new = old
    for _ in range(projection.newton_steps):
        P = stress(material, F)
        a, b = bound_coefficients(material, F)
        h = combine(1.0, combine(1.0, F, -1.0, alone), 1.0, matmul(P, G))
        Z = _inverse_symmetric(add_diagonal(scaled(a, G), 1.0))
        C = cofactor(F)
        CGZ = matmul(matmul(C, G), Z)
        hZ = matmul(h, Z)
        s = -contract(C, hZ) / (1.0 + b * contract(C, CGZ))
        dF = combine(-1.0, hZ, -b * s, CGZ)
        new = combine(1.0, P, 1.0, combine(a, dF, b * s, C))
        F = combine(1.0, F, 1.0, dF)
    for p in range(9):
        store(projection.stresses, row, p, new[p])
    put_corners(projection, row, u, shifted(x, -V, W, spread(combine(1.0, new, -1.0, old), g)))


@exert.of(PiolaProjection)
def _exert_stresses(projection, row, u):
    x, W, g, V, _ = tetrahedron(projection, row, u)
    put_corners(projection, row, u, shifted(x, -V, W, spread(_load_matrix(projection.stresses, row), g)))


@dataclass(frozen=True)
class BPXPBD(ElementOptions):
    """Blended primal XPBD [PXPBD section 3.3.1]. zeta: how much of XPBD's update is kept, 1 is XPBD; larger
    is more stable, smaller reduces the residual further; by default the smallest that is safe, see
    `safe_zeta`. constraints: as for XPBD."""

    name: ClassVar[str] = "bpxpbd"

    zeta: float | None = None
    constraints: Literal["auto", "pair", "root"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.zeta is not None:
            one_number("zeta", self.zeta, at_least=0, at_most=1)
        check_constraints(self.constraints)

    def elastic(self, term: Term, batches: ElementBatches, weights: np.ndarray) -> list:
        zeta = safe_zeta(batches.rows, weights) if self.zeta is None else self.zeta
        rows, lanes, dtype = len(batches.own), batches.lanes, weights.dtype
        count, projection = (
            (1, BlendedRootProjection)
            if use_root(self.name, self.constraints, term.material)  # type: ignore[attr-defined]
            else (2, BlendedProjection)
        )
        memory = np.zeros((rows, count, lanes), dtype), np.zeros((rows, 12 * count, lanes), dtype)
        return [projection(*batches.places, weights, *memory, zeta)]


def safe_zeta(rows: Any, weights: np.ndarray) -> float:
    """ζ = 1 - min(½, 2/q), q = max V 2μ tr Γ.

    The fixed-point part treats the stiffness across a constraint's gradient, about 2μ, explicitly, so it is
    stable only while (1 - ζ) q stays below a bound, which lies between 2 and 4 on a clamped falling block.
    """
    others = rows.rest[:, :9].reshape(len(weights), 3, 3, -1)
    gradients = np.concatenate([-others.sum(axis=1, keepdims=True), others], axis=1)
    mobility = np.einsum("rvl,rvil,rvil->rl", weights, gradients, gradients)
    stiffness = 2 * np.asarray(rows.material.mu) * rows.rest[:, 9:10]
    return 1 - min(0.5, 2.0 / max(float((stiffness[:, 0] * mobility).max()), 1e-30))


@dataclass(frozen=True)
class FPXPBD(ElementOptions):
    """First-Piola primal XPBD for any material [PXPBD section 3.3.3]. newton_steps: local steps per visit.
    In pseudo-time a step takes over the stresses of the last, so that one sweep per step is enough."""

    name: ClassVar[str] = "fpxpbd"
    resumes: ClassVar[bool] = True

    sweeps_per_step: int = 1
    newton_steps: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("newton_steps", self.newton_steps)

    def elastic(self, term: Term, batches: ElementBatches, weights: np.ndarray) -> list:
        stresses = np.zeros((len(batches.own), 9, batches.lanes), weights.dtype)
        return [PiolaProjection(*batches.places, weights, stresses, self.newton_steps)]
