"""Local problem of GPBD: minimization of q(Λ) of an element [GPBD eq. 19] by Newton's method.

    q(Λ) = Λ : Fᵀ D + ½ tr(Λ FᵀF Λ Γ) + V ψ(F + F Λ Γ),  D = Σ dᵢ gᵢᵀ,  Γ = Σ Wᵢ gᵢ gᵢᵀ

is eq. 19 without the constant ½|d|²_{W⁻¹}, for Δdᵢ = Wᵢ F Λ gᵢ. One step of `local_minimum`:

    r ← -∂q/∂Λ                          `_negative_gradient`
    step ← H⁻¹ r,  H ≈ ∂²q/∂Λ², positive definite   `_hessian_bound`
    Λ ← Λ + t step, q not larger        `_backtrack`

Symmetric matrices are six numbers xx yy zz xy xz yz; derivatives with respect to them count off-diagonal
entries twice. In the code, lam is Λ, FtF is FᵀF, G is Γ, and F_new = F + F Λ Γ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.algebra.matrix3 import cofactor, combine, contract, matmul, select9, transpose
from supple.algebra.symmetric import (
    add_outer6,
    add_trace_multiple6,
    axpy6,
    dot6,
    sandwich_form,
    select6,
    solve_spd6,
    symmetric_matrix,
    symmetric_part,
)
from supple.kernels import all_lanes, device_function, inline_control, overload_by_type, rounding, where
from supple.materials import bound_coefficients, psi, stress
from supple.solvers.elementwise.gather import (
    compliance_matrix,
    free_corners,
    matvec_each,
    outer_sum,
    times_weights,
)

MAX_BACKTRACKS = 8
"""Most halvings of a local Newton step; then the element stays unchanged."""

DIAGONAL_SHIFT = 1e-6
"""Fraction of its trace that is added to the diagonal of the local Hessian.

The Hessian is singular if corners are pinned; the term bounds the step there and is negligible elsewhere.
"""

CONVERGED_DECREASE = 1e-12
"""Predicted decrease, relative to the energy of the element, below which the local Newton ends."""


class LocalElement(NamedTuple):
    """Compliance of an element under corner forces.

    If corners are constrained along some directions, Γ is only an upper bound: a matrix X of forces X gᵢ
    changes F by Σ Wᵢ (I - Nᵢ) X gᵢ gᵢᵀ instead of X Γ.

    Attributes:
        F: Deformation gradient.
        FtF: FᵀF.
        G: Γ.
        W: Weights W of the corners.
        g: Shape gradients of the corners.
        N: Projections onto the constrained directions of the corners, or ().
    """

    F: Any
    FtF: Any
    G: Any
    W: Any
    g: Any
    N: Any


def deformation_from_forces(element: Any, X: Any) -> Any:
    """Change of F by forces X gᵢ at the corners."""


@overload_by_type(deformation_from_forces)
def _deformation_from_forces(element, X):
    if len(element[LocalElement._fields.index("N")]) == 0:
        return lambda element, X: matmul(X, element.G)
    return lambda element, X: outer_sum(
        times_weights(element.W, free_corners(element.N, matvec_each(X, element.g))), element.g
    )


def displacement_energy(element: Any, lam: Any) -> Any:
    """½ Σ |Δdᵢ|²/Wᵢ of Δdᵢ = Wᵢ (I - Nᵢ) F Λ gᵢ for Λ = lam, its Λ derivative, and the change of F."""


@overload_by_type(displacement_energy)
def _displacement_energy(element, lam):
    if len(element[LocalElement._fields.index("N")]) == 0:
        return lambda element, lam: _free_displacement_energy(element, lam)
    return lambda element, lam: _constrained_displacement_energy(element, lam)


@device_function
def _free_displacement_energy(element, lam):
    L = symmetric_matrix(lam)
    LG = matmul(L, element.G)
    square = 0.5 * contract(transpose(matmul(L, element.FtF)), LG)
    return square, symmetric_part(matmul(element.FtF, LG)), matmul(element.F, LG)


@device_function
def _constrained_displacement_energy(element, lam):
    X = matmul(element.F, symmetric_matrix(lam))
    change = deformation_from_forces(element, X)
    return 0.5 * contract(X, change), symmetric_part(matmul(transpose(element.F), change)), change


@device_function
def _objective(material, element, B, V, lam):
    """(q, F_new) for Λ = lam; B = sym(Fᵀ D)."""
    quadratic, _, change = displacement_energy(element, lam)
    F_new = combine(1.0, element.F, 1.0, change)
    linear = (
        lam[0] * B[0] + lam[1] * B[1] + lam[2] * B[2] + 2.0 * (lam[3] * B[3] + lam[4] * B[4] + lam[5] * B[5])
    )
    return linear + quadratic + V * psi(material, F_new), F_new


@inline_control
def _negative_gradient(material, element, B, V, lam, F_new):
    """-∂q/∂Λ = -(B + sym(FᵀF Λ Γ) + V sym(Fᵀ P Γ))."""
    _, inertial, _ = displacement_energy(element, lam)
    FPG = symmetric_part(
        matmul(transpose(element.F), deformation_from_forces(element, stress(material, F_new)))
    )
    return (
        -(B[0] + inertial[0] + V * FPG[0]),
        -(B[1] + inertial[1] + V * FPG[1]),
        -(B[2] + inertial[2] + V * FPG[2]),
        -2.0 * (B[3] + inertial[3] + V * FPG[3]),
        -2.0 * (B[4] + inertial[4] + V * FPG[4]),
        -2.0 * (B[5] + inertial[5] + V * FPG[5]),
    )


@inline_control
def _hessian_bound(element, V, a, b, F_new):
    """Positive definite approximation M ↦ sym(FᵀF M (Γ + V a Γ²)) + V b T (T : M) of ∂²q/∂Λ².

    T = sym(Fᵀ cof Γ); a, b are those of `bound_coefficients`.

    With pinned corners, Γ and hence this matrix are singular; a small term on the diagonal keeps steps
    bounded.
    """
    T = symmetric_part(matmul(transpose(element.F), deformation_from_forces(element, cofactor(F_new))))
    t = (T[0], T[1], T[2], 2.0 * T[3], 2.0 * T[4], 2.0 * T[5])
    H = sandwich_form(
        symmetric_part(element.FtF),
        symmetric_part(combine(1.0, element.G, V * a, matmul(element.G, element.G))),
    )
    return add_trace_multiple6(add_outer6(H, V * b, t), DIAGONAL_SHIFT)


@inline_control
def _backtrack(material, element, B, V, lam, F_new, q, step, scale):
    """Halve the step until q does not rise, except by rounding relative to `scale`; return (Λ, F, q).

    Rounding hides differences of ψ at strains below √(8 ε): 4e-8 in float64 and 1e-3 in float32. Energies are
    quadratic there, and full steps are right.
    """
    length = 0.0 * V + 1.0
    best, best_F, best_q = lam, F_new, q
    for _ in range(MAX_BACKTRACKS):
        trial = axpy6(lam, length, step)
        value, F_trial = _objective(material, element, B, V, trial)
        good = value <= q + 8.0 * rounding(V) * scale
        best, best_F, best_q = (
            select6(good, trial, best),
            select9(good, F_trial, best_F),
            where(good, value, best_q),
        )
        if all_lanes(good):
            break
        # Finished lanes repeat their step; the others halve it.
        length = where(good, length, 0.5 * length)
    return best, best_F, best_q


@device_function
def local_minimum(material, F, W, g, V, d, N, newton_steps):
    """Minimize q over Λ by Newton's method from 0, with a positive definite Hessian and line search.

    The iteration ends after `newton_steps` steps, or after a step without gain.

    Args:
        material: Material of the elements.
        F: Deformation gradient.
        W: W of the corners.
        g: Shape gradients of the corners.
        V: Volume [m³].
        d: Displacements of the corners by the element's force so far [m].
        N: Projections onto the constrained directions of the corners, or ().
        newton_steps: Step limit.

    Returns:
        Λ as six numbers.
    """
    element = LocalElement(F, matmul(transpose(F), F), compliance_matrix(W, g), W, g, N)
    B = symmetric_part(matmul(transpose(F), outer_sum(d, g)))
    zero = 0.0 * V
    lam = (zero, zero, zero, zero, zero, zero)
    q, F_new = _objective(material, element, B, V, lam)
    for _ in range(newton_steps):
        a, b = bound_coefficients(material, F_new)
        r = _negative_gradient(material, element, B, V, lam, F_new)
        step = solve_spd6(_hessian_bound(element, V, a, b, F_new), r)
        scale, gain = abs(q) + V * a, dot6(r, step)
        lam, F_new, q = _backtrack(material, element, B, V, lam, F_new, q, step, scale)
        if all_lanes(gain <= CONVERGED_DECREASE * scale):
            break
    return lam
