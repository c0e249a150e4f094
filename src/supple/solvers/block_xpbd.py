"""XPBD with simultaneous solution of both constraints of an element [BNH: Ton-That et al. 2023, section 5]:

    x ← xₙ + Δt vₙ                                          Problem.begin_step (problem/problem.py)
        + W f_ext,  λ₁, λ₂ ← 0                              ElementRun._begin_step (element_run.py)
    for each iteration, for each element, color by color    sweep_projections (elementwise/element_run.py)
        C₁, C₂, k₁, k₂, ∇C₁, ∇C₂ at x                       constraint_pair of the material, corner_gradients
        Δλ₁, Δλ₂ ← solution of A (Δλ₁, Δλ₂)ᵀ = b  [17-19]   `_project_block`
        λ₁ ← λ₁ + Δλ₁,  λ₂ ← λ₂ + Δλ₂
        x ← x + W (∇C₁ᵀ Δλ₁ + ∇C₂ᵀ Δλ₂)                     shift_corners (elementwise/gather.py)
        contact with obstacles, our own                     `ContactProjection`
                                                            (elementwise/contact_projection.py)
    v ← (x - xₙ)/Δt                                         TimeLoop._set_velocities (solve/time_loop.py)

This is eq. 19 with each row multiplied by its stiffness k, and b for its right side:

    ⎡ k₁ ∇C₁ W ∇C₁ᵀ + 1   k₁ ∇C₁ W ∇C₂ᵀ     ⎤ ⎡ Δλ₁ ⎤     ⎡ k₁ C₁ + λ₁ ⎤
    ⎣ k₂ ∇C₂ W ∇C₁ᵀ       k₂ ∇C₂ W ∇C₂ᵀ + 1 ⎦ ⎣ Δλ₂ ⎦ = - ⎣ k₂ C₂ + λ₂ ⎦

    BNH                                 here, right column in the letters of this file
    C^H, C^D [eq. 8, 9, 17]             C₁, C₂ of NeoHookean
    λ^H, λ^D [eq. 19]                   Δt² λ₁, Δt² λ₂
    α^H, α^D                            1/k₁, 1/k₂

k, W and the other letters are those of xpbd.py, and so are single constraints, such as springs. The system is
solved by Cramer's rule; the paper says that LU with partial pivoting can be used. Its pair is neo-Hookean;
that of Corotated [PXPBD eq. 5] is our own addition. Gradients are frozen as in xpbd.py, and so the error of
pairs that do not vanish at rest remains; xpbd.py describes it. Clusters [Algorithms 3, 4]:
ordering/clustering.py, ordering="clusters" of `ElementOptions`. Weak constraints and body contact:
elementwise/weak_constraints.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from supple.kernels import load, store
from supple.materials import constraint_pair
from supple.solvers.elementwise.element_run import ElementOptions
from supple.solvers.elementwise.gather import (
    corner_gradients,
    load_element,
    scatter_corners,
    shift_corners,
    weighted_dot,
)
from supple.solvers.elementwise.projection import WeightedElements, new_memory, project, projects
from supple.solvers.xpbd import SingleProjection, XPBDPair, require_pair
from supple.support.keywords import suggest_keywords
from supple.terms import Term
from supple.terms.base.constraint import ConstraintRows
from supple.terms.base.elastic import ElasticRows, measure


class BlockProjection(XPBDPair):
    """Pair of constraints of each element, solved simultaneously.

    Attributes:
        memory: λ₁ and λ₂ of each element, (rows, 2, lanes).
    """

    __slots__ = ()


@project.of(BlockProjection)
def _project_block(projection, row, u):
    """Solve the 2×2 system A (Δλ₁, Δλ₂)ᵀ = b for one element [BNH eq. 17-19].

    a1, a2 are ∇C₁, ∇C₂, and a11, a12, a22 are ∇C₁ W ∇C₁ᵀ, ∇C₁ W ∇C₂ᵀ, ∇C₂ W ∇C₂ᵀ.
    """
    elements, (multipliers,) = projection.elements, projection.memory
    x, W, g, V, material = load_element(elements, row, u)
    C1, dC1, modulus1, C2, dC2, modulus2 = constraint_pair(material, measure(elements.rows, x, g))
    k1, k2 = modulus1 * V, modulus2 * V
    a1, a2 = corner_gradients(elements, row, dC1, g), corner_gradients(elements, row, dC2, g)
    lam1, lam2 = load(multipliers, row, 0), load(multipliers, row, 1)
    a11, a22, a12 = weighted_dot(W, a1, a1), weighted_dot(W, a2, a2), weighted_dot(W, a1, a2)
    # Rows are multiplied by their stiffness, so that padding (k = 0) gives 0 instead of 0/0.
    b1, b2 = -(k1 * C1 + lam1), -(k2 * C2 + lam2)
    A11, A12, A21, A22 = k1 * a11 + 1.0, k1 * a12, k2 * a12, k2 * a22 + 1.0
    inverse_det = 1.0 / (A11 * A22 - A12 * A21)
    d_lam1, d_lam2 = inverse_det * (A22 * b1 - A12 * b2), inverse_det * (A11 * b2 - A21 * b1)
    store(multipliers, row, 0, lam1 + d_lam1)
    store(multipliers, row, 1, lam2 + d_lam2)
    scatter_corners(elements, row, u, shift_corners(shift_corners(x, d_lam1, W, a1), d_lam2, W, a2))


@suggest_keywords
@dataclass(frozen=True)
class BlockXPBD(ElementOptions):
    """XPBD that solves both constraints of an element simultaneously [BNH section 5].

    Only for materials with a pair of constraints: NeoHookean and Corotated.

    Args:
        ordering: Parallel units: "colors" of single elements, "clusters" of up to cluster_size elements [BNH
            Algorithm 4], or "cells" of a block.
        vertex_order: "smallest_last" first sorts elements by that order of their vertices [BNH section 6.2];
            "mesh" keeps the order of the mesh.
        cluster_size: Largest number of elements in a cluster.
        attachments_first: Visit weak constraints before the elements instead of after them.
        pseudo_dt: Step size of pseudo-time [s].
        sweeps_per_step: Sweeps per step of pseudo-time.
        pseudo_time: "flow" starts every step without velocity; "dynamics" keeps velocities, as XPBD-QS [PBNG
            section 6.1], less the fraction pseudo_damping, our own.
        pseudo_damping: Fraction of every velocity that is removed per step of "dynamics".
        iterations: Sweeps per step unless the call sets a limit.
    """

    name: ClassVar[str] = "block_xpbd"
    history_size: ClassVar[int] = 2


@projects(BlockXPBD, ElasticRows)
def _elastic(method: BlockXPBD, term: Term, elements: WeightedElements) -> list:
    """Create the projection of elements of a material with a pair of constraints."""
    require_pair(method.name, term.material)
    return [BlockProjection(elements, new_memory(elements, 2))]


@projects(BlockXPBD, ConstraintRows)
def _single_constraints(method: BlockXPBD, term: Term, elements: WeightedElements) -> list:
    """Create the projection of elements with one constraint: that of XPBD."""
    return [SingleProjection(elements, new_memory(elements, 1), (1.0,))]
