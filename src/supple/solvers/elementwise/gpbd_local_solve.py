"""Local problem of GPBD: minimization of q(Λ) of an element [GPBD eq. 19] by Newton's method.

    q(Λ) = Λ : Fᵀ D + ½ tr(Λ C Λ Γ) + V ψ(F + F Λ Γ),  C = Fᵀ F,  D = Σ dᵢ gᵢᵀ,  Γ = Σ Wᵢ gᵢ gᵢᵀ.

Symmetric matrices are six numbers xx yy zz xy xz yz; derivatives with respect to them count off-diagonal
entries twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.algebra.matrix3 import cofactor, combine, contract, matmul, select9, transpose
from supple.algebra.symmetric import (
    add_outer6,
    along6,
    dot6,
    full,
    lifted6,
    sandwich_form,
    select6,
    solve_spd6,
    symmetric_part,
)
from supple.kernels import all_lanes, device_function, inline_control, overload_by_type, rounding, where
from supple.materials import bound_coefficients, psi, stress
from supple.solvers.elementwise.gather import free_corners, mobility, outer_sum, spread, weighted

MAX_BACKTRACKS = 8
"""Most halvings of a local Newton step; then the element stays unchanged."""

DIAGONAL_SHIFT = 1e-6
"""Fraction of its trace that is added to the diagonal of the local Hessian.

The Hessian is singular if corners are pinned; the term bounds the step there and is negligible elsewhere.
"""

CONVERGED_DECREASE = 1e-12
"""Predicted decrease, relative to the energy of the element, below which the local Newton ends."""


class Mobility(NamedTuple):
    """Compliance of an element under corner forces.

    If corners are constrained along some directions, Γ is only an upper bound: a matrix X of forces X gᵢ
    changes F by Σ Wᵢ (I - Nᵢ) X gᵢ gᵢᵀ instead of X Γ.

    Attributes:
        F: Deformation gradient.
        C: Fᵀ F.
        G: Γ.
        W: Weights W of the corners.
        g: Shape gradients of the corners.
        N: Projections onto the constrained directions of the corners, or ().
    """

    F: Any
    C: Any
    G: Any
    W: Any
    g: Any
    N: Any


def change_by(mobility: Any, X: Any) -> Any:
    """Change of F by forces X gᵢ at the corners."""


@overload_by_type(change_by)
def _change_by(mobility, X):
    if len(mobility[Mobility._fields.index("N")]) == 0:
        return lambda mobility, X: matmul(X, mobility.G)
    return lambda mobility, X: outer_sum(
        weighted(mobility.W, free_corners(mobility.N, spread(X, mobility.g))), mobility.g
    )


def change_of(mobility: Any, m: Any) -> Any:
    """½ Σ |Δdᵢ|²/Wᵢ of Δdᵢ = Wᵢ (I - Nᵢ) F Λ gᵢ for Λ = m, its Λ derivative, and the change of F."""


@overload_by_type(change_of)
def _change_of(mobility, m):
    if len(mobility[Mobility._fields.index("N")]) == 0:
        return lambda mobility, m: _change_of_free(mobility, m)
    return lambda mobility, m: _change_of_constrained(mobility, m)


@device_function
def _change_of_free(y, m):
    L = full(m)
    LG = matmul(L, y.G)
    square = 0.5 * contract(transpose(matmul(L, y.C)), LG)
    return square, symmetric_part(matmul(y.C, LG)), matmul(y.F, LG)


@device_function
def _change_of_constrained(y, m):
    X = matmul(y.F, full(m))
    change = change_by(y, X)
    return 0.5 * contract(X, change), symmetric_part(matmul(transpose(y.F), change)), change


@device_function
def _objective(material, y, B, V, m):
    """(q, F with its change) for Λ = m; B = sym(Fᵀ D)."""
    quadratic, _, change = change_of(y, m)
    new = combine(1.0, y.F, 1.0, change)
    linear = m[0] * B[0] + m[1] * B[1] + m[2] * B[2] + 2.0 * (m[3] * B[3] + m[4] * B[4] + m[5] * B[5])
    return linear + quadratic + V * psi(material, new), new


@inline_control
def _descent(material, y, B, V, m, new):
    """-∂q/∂Λ = -(B + sym(C Λ Γ) + V sym(Fᵀ P Γ))."""
    _, CLG, _ = change_of(y, m)
    FPG = symmetric_part(matmul(transpose(y.F), change_by(y, stress(material, new))))
    return (
        -(B[0] + CLG[0] + V * FPG[0]),
        -(B[1] + CLG[1] + V * FPG[1]),
        -(B[2] + CLG[2] + V * FPG[2]),
        -2.0 * (B[3] + CLG[3] + V * FPG[3]),
        -2.0 * (B[4] + CLG[4] + V * FPG[4]),
        -2.0 * (B[5] + CLG[5] + V * FPG[5]),
    )


@inline_control
def _curvature(y, V, a, b, new):
    """Positive definite bound M ↦ sym(C M (Γ + V a Γ²)) + V b T (T : M) of ∂²q/∂Λ², T = sym(Fᵀ cof Γ).

    With pinned corners, Γ and hence this bound are singular; a small term on the diagonal keeps steps
    bounded.
    """
    T = symmetric_part(matmul(transpose(y.F), change_by(y, cofactor(new))))
    t = (T[0], T[1], T[2], 2.0 * T[3], 2.0 * T[4], 2.0 * T[5])
    H = sandwich_form(symmetric_part(y.C), symmetric_part(combine(1.0, y.G, V * a, matmul(y.G, y.G))))
    return lifted6(add_outer6(H, V * b, t), DIAGONAL_SHIFT)


@inline_control
def _backtrack(material, y, B, V, m, new, q, step, scale):
    """Halve the step until q does not rise, except by rounding relative to `scale`; return (Λ, F, q).

    Rounding hides differences of ψ at strains below √(8 ε): 4e-8 in float64 and 1e-3 in float32. Energies are
    quadratic there, and full steps are right.
    """
    length = 0.0 * V + 1.0
    best, best_new, best_q = m, new, q
    for _ in range(MAX_BACKTRACKS):
        trial = along6(m, length, step)
        value, moved = _objective(material, y, B, V, trial)
        good = value <= q + 8.0 * rounding(V) * scale
        best, best_new, best_q = (
            select6(good, trial, best),
            select9(good, moved, best_new),
            where(good, value, best_q),
        )
        if all_lanes(good):
            break
        # Finished lanes repeat their step; the others halve it.
        length = where(good, length, 0.5 * length)
    return best, best_new, best_q


@device_function
def local_minimum(material, F, W, g, V, d, N, newton_steps):
    """Minimize q over Λ by Newton's method from 0, with a positive definite Hessian and line search.

    The iteration ends after `newton_steps` steps, or after a step without gain. N belongs to the corners, or
    is ().
    """
    y = Mobility(F, matmul(transpose(F), F), mobility(W, g), W, g, N)
    B = symmetric_part(matmul(transpose(F), outer_sum(d, g)))
    zero = 0.0 * V
    m = (zero, zero, zero, zero, zero, zero)
    q, new = _objective(material, y, B, V, m)
    for _ in range(newton_steps):
        a, b = bound_coefficients(material, new)
        r = _descent(material, y, B, V, m, new)
        step = solve_spd6(_curvature(y, V, a, b, new), r)
        scale, gain = abs(q) + V * a, dot6(r, step)
        m, new, q = _backtrack(material, y, B, V, m, new, q, step, scale)
        if all_lanes(gain <= CONVERGED_DECREASE * scale):
            break
    return m
