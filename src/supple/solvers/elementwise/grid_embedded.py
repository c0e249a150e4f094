"""XPBD and both PXPBD for grid-embedded elements [PXPBD section 5.5].

An element may have any number of nodes, and a visit treats all of them by one matrix: a constraint moves the
nodes by Δuᵢ = Wᵢ S Gᵢ with the same S for all, which changes F by S Γ, Γ = Σ Wᵢ Gᵢ Gᵢᵀ. Along ∂C/∂uᵢ = ∂C/∂F
Gᵢ, it follows that S = Δλ ∂C/∂F and Σ Wᵢ |∂C/∂uᵢ|² = ∂C/∂F : ∂C/∂F Γ. The displacement that B-PXPBD stores
for each node of an element is therefore one matrix, too, and FP-PXPBD needs no other data, since its forces
-V P Gᵢ have this form.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.algebra.matrix3 import (
    add,
    combine,
    contract,
    matmul,
    matvec,
    minus9,
    plus9,
    scale,
    scale_matrix,
    sub,
)
from supple.kernels import device_function, gather, load, scatter, store
from supple.materials import bound_coefficients, constraint_pair, shear_modulus
from supple.solvers.bpxpbd import BPXPBD
from supple.solvers.elementwise.blend_factor import (
    stiffness_across,
    stiffness_of_pair,
    stiffness_of_root,
    zeta_of,
    zeta_option,
)
from supple.solvers.elementwise.projection import (
    Projection,
    WeightedElements,
    new_memory,
    project,
    projects,
    require,
)
from supple.solvers.fpxpbd import FPXPBD, stress_step
from supple.solvers.xpbd import XPBD, XPBDPair, multiplier_step, root_constraint, use_root
from supple.terms import Term
from supple.terms.base.elastic import deformation_at, material_at, rest_volume
from supple.terms.base.tensors import load_matrix
from supple.terms.grid_embedded import EmbeddedRows, gradient_of


class EmbeddedPair(XPBDPair):
    """Pair of constraints of each embedded element.

    Attributes:
        memory: λ (rows, 2, lanes), and the accumulated S (rows, 9, lanes) of each of the two constraints.
        options: ζ, as (1,), where 1.0 is XPBD, or () for the stable value (blend_factor.py), and Γ
            (rows, 9, lanes).
    """

    __slots__ = ()


class EmbeddedRoot(Projection):
    """Embedded elements with the single constraint C = √(2 ψ).

    Attributes:
        memory: λ (rows, 1, lanes) and S.
        options: ζ and Γ, as for `EmbeddedPair`.
    """

    __slots__ = ()


class EmbeddedPiola(Projection):
    """Embedded elements with their first Piola-Kirchhoff stress as variable.

    Attributes:
        memory: P (rows, 9, lanes) of each element [Pa].
        options: Local Newton steps per visit, and Γ.
    """

    __slots__ = ()


stiffness_across.of(EmbeddedPair)(stiffness_of_pair)
stiffness_across.of(EmbeddedRoot)(stiffness_of_root)


@device_function
def _element(elements, row, u):
    """(F, V, material) of the elements in a row."""
    rows = elements.rows
    F = deformation_at(rows, row, u, gather(u, elements.own, row, 0))
    return F, rest_volume(rows, row), material_at(rows, row)


@device_function
def _displace(elements, row, u, S):
    """uᵢ += Wᵢ S Gᵢ. Unused node slots repeat the first node, which is therefore written last."""
    rows, W = elements.rows, elements.weights
    others = rows.others
    g = gradient_of(rows, row, 0)
    g = (0.0 * g[0], 0.0 * g[1], 0.0 * g[2])
    for slot in range(others.shape[1]):
        h = gradient_of(rows, row, slot)
        g = sub(g, h)
        displacement = gather(u, others, row, slot)
        scatter(u, others, row, slot, add(displacement, scale(load(W, row, slot + 1), matvec(S, h))))
    own = gather(u, elements.own, row, 0)
    scatter(u, elements.own, row, 0, add(own, scale(load(W, row, 0), matvec(S, g))))


@device_function
def _store_matrix(data, row, A):
    for p in range(9):
        store(data, row, p, A[p])


@device_function
def _zeta(projection, row, F, V, material):
    Gamma = load_matrix(projection.options[1], row)
    return zeta_of(projection, material, F, V * (Gamma[0] + Gamma[4] + Gamma[8]))


@device_function
def _blended_visit(dC_dF, C, k, zeta, projection, row, slot, totals):
    """ΔS of one visit of a constraint [PXPBD Algorithm 1], see `_blended_visit` in bpxpbd.py."""
    multipliers, mobilities = projection.memory[0], projection.options[1]
    lam = load(multipliers, row, slot)
    mobility = contract(dC_dF, matmul(dC_dF, load_matrix(mobilities, row)))
    d_lam = multiplier_step(C, k, lam, mobility, 1.0)
    total = load_matrix(totals, row)
    change = combine(zeta - 1.0, total, zeta * d_lam + (1.0 - zeta) * (lam + d_lam), dC_dF)
    store(multipliers, row, slot, lam + d_lam)
    _store_matrix(totals, row, plus9(total, change))
    return change


@project.of(EmbeddedPair)
def _project_pair(projection, row, u):
    """Update both constraints of an element in turn."""
    elements, (_, first, second) = projection.elements, projection.memory
    F, V, material = _element(elements, row, u)
    C, dC_dF, modulus = constraint_pair(material, F)[:3]
    S = _blended_visit(
        dC_dF, C, modulus * V, _zeta(projection, row, F, V, material), projection, row, 0, first
    )
    F = plus9(F, matmul(S, load_matrix(projection.options[1], row)))
    C, dC_dF, modulus = constraint_pair(material, F)[3:]
    zeta = _zeta(projection, row, F, V, material)
    _displace(
        elements, row, u, plus9(S, _blended_visit(dC_dF, C, modulus * V, zeta, projection, row, 1, second))
    )


@project.of(EmbeddedRoot)
def _project_root(projection, row, u):
    """Update the square-root energy constraint."""
    elements = projection.elements
    F, V, material = _element(elements, row, u)
    C, dC_dF = root_constraint(material, F)
    zeta = _zeta(projection, row, F, V, material)
    _displace(elements, row, u, _blended_visit(dC_dF, C, V, zeta, projection, row, 0, projection.memory[1]))


@project.of(EmbeddedPiola)
def _project_piola(projection, row, u):
    """Update as for tetrahedra, see `_project_piola` in fpxpbd.py."""
    elements, (stresses,), (newton_steps, mobilities) = (
        projection.elements,
        projection.memory,
        projection.options,
    )
    F, V, material = _element(elements, row, u)
    V_Gamma = scale_matrix(V, load_matrix(mobilities, row))
    P_old = load_matrix(stresses, row)
    F_free = plus9(F, matmul(P_old, V_Gamma))
    P = P_old
    for _ in range(newton_steps):
        P, F = stress_step(material, F, F_free, V_Gamma)
    _store_matrix(stresses, row, P)
    _displace(elements, row, u, scale_matrix(-V, minus9(P, P_old)))


def _mobilities(elements: WeightedElements) -> np.ndarray:
    """Γ (rows, 9, lanes)."""
    rows, k, lanes = elements.weights.shape
    others = elements.rows.rest[:, : 3 * (k - 1)].reshape(rows, k - 1, 3, lanes)
    G = np.concatenate([-others.sum(axis=1, keepdims=True), others], axis=1)
    products = np.einsum("rkl,rkil,rkjl->rijl", elements.weights, G, G, optimize=True)
    return np.ascontiguousarray(products.reshape(rows, 9, lanes), elements.weights.dtype)


def _make_blended(root: bool, elements: WeightedElements, zeta: Any) -> list:
    zeta_data = zeta if isinstance(zeta, tuple) else zeta.astype(elements.weights.dtype)
    options = zeta_data, _mobilities(elements)
    if root:
        return [EmbeddedRoot(elements, new_memory(elements, 1, 9), options)]
    return [EmbeddedPair(elements, new_memory(elements, 2, 9, 9), options)]


@projects(XPBD, EmbeddedRows)
def _xpbd(method: XPBD, term: Term, elements: WeightedElements) -> list:
    """Create the projection of XPBD, as B-PXPBD with ζ = 1."""
    if not method.compliant:
        raise ValueError("xpbd with compliant=False does not support contact='grid'")
    root = use_root(method.name, method.constraints, term.material)
    if root:
        require(method.name, term.material, shear_modulus)
    return _make_blended(root, elements, np.ones(1))


@projects(BPXPBD, EmbeddedRows)
def _bpxpbd(method: BPXPBD, term: Term, elements: WeightedElements) -> list:
    """Create the projection of B-PXPBD."""
    root = use_root(method.name, method.constraints, term.material)
    return _make_blended(root, elements, zeta_option(method, term.material, root))


@projects(FPXPBD, EmbeddedRows)
def _fpxpbd(method: FPXPBD, term: Term, elements: WeightedElements) -> list:
    """Create the projection of FP-PXPBD."""
    require(method.name, term.material, bound_coefficients)
    options = method.newton_steps, _mobilities(elements)
    return [EmbeddedPiola(elements, new_memory(elements, 9), options)]
