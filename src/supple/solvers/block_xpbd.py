"""XPBD with simultaneous solution of both constraints of an element [BNH section 5]:

    x ← xₙ + Δt vₙ + W f_ext,  λ ← 0                        elementwise/run.py, ElementRun._begin_step
    for each iteration, for each element, color by color    elementwise/run.py, sweep_projections
        (Δλ, Δλ') ← solution of the 2×2 system  [eq. 19]    `_project_block`
        λ ← λ + Δλ,  λ' ← λ' + Δλ'
        x ← x + W (∇Cᵀ Δλ + ∇C'ᵀ Δλ')
    v ← (x - xₙ)/Δt                                         solve/time_loop.py

The system is the paper's, with each row multiplied by its stiffness; k stands for V k:

    ⎡ k ∇C W ∇Cᵀ + 1   k ∇C W ∇C'ᵀ       ⎤ ⎡ Δλ  ⎤     ⎡ k C + λ    ⎤
    ⎣ k' ∇C' W ∇Cᵀ     k' ∇C' W ∇C'ᵀ + 1 ⎦ ⎣ Δλ' ⎦ = - ⎣ k' C' + λ' ⎦

C and C' are H and D of eq. 8, 9 for NeoHookean; λ, W and the other letters are those of xpbd.py. The system
is solved by Cramer's rule; the paper uses LU with pivoting. The paper's clusters [BNH Algorithms 3, 4] are
ordering="clusters" of `ElementOptions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from supple.kernels import load, store
from supple.materials import constraint_pair
from supple.solvers.elementwise.gather import (
    element,
    gradients,
    scatter_corners,
    shifted,
    weighted_square,
)
from supple.solvers.elementwise.projection import WeightedElements, new_memory, project, projects
from supple.solvers.elementwise.run import ElementOptions
from supple.solvers.xpbd import CompliantProjection, Pair, require_pair
from supple.support.keywords import suggest_keywords
from supple.terms import Term
from supple.terms.base.constraint import ConstraintRows
from supple.terms.base.elastic import ElasticRows, measure


class BlockProjection(Pair):
    """Pair of constraints of each element, solved simultaneously.

    Attributes:
        memory: λ and λ' of each element, (rows, 2, lanes).
    """

    __slots__ = ()


@project.of(BlockProjection)
def _project_block(projection, row, u):
    """Solve the 2×2 system for (Δλ, Δλ') [BNH eq. 17-19]; a and b are ∇C and ∇C'."""
    elements, (multipliers,) = projection.elements, projection.memory
    x, W, g, V, material = element(elements, row, u)
    C, D, k, C2, D2, k2 = constraint_pair(material, measure(elements.rows, x, g))
    k, k2 = k * V, k2 * V
    a, b = gradients(elements, row, D, g), gradients(elements, row, D2, g)
    lam, lam2 = load(multipliers, row, 0), load(multipliers, row, 1)
    aa, bb, ab = weighted_square(W, a, a), weighted_square(W, b, b), weighted_square(W, a, b)
    # Rows are multiplied by their stiffness, so that padding (k = 0) gives 0 instead of 0/0.
    r, r2 = -(k * C + lam), -(k2 * C2 + lam2)
    A11, A12, A21, A22 = k * aa + 1.0, k * ab, k2 * ab, k2 * bb + 1.0
    s = 1.0 / (A11 * A22 - A12 * A21)
    d_lam, d_lam2 = s * (A22 * r - A12 * r2), s * (A11 * r2 - A21 * r)
    store(multipliers, row, 0, lam + d_lam)
    store(multipliers, row, 1, lam2 + d_lam2)
    scatter_corners(elements, row, u, shifted(shifted(x, d_lam, W, a), d_lam2, W, b))


@suggest_keywords
@dataclass(frozen=True)
class BlockXPBD(ElementOptions):
    """XPBD that solves both constraints of an element simultaneously [BNH section 5].

    Args:
        ordering: Parallel units: "colors" of single elements, "clusters" of up to cluster_size elements [BNH
            Algorithm 4], or "cells" of a block.
        vertex_order: "smallest_last" first sorts elements by that order of their vertices [BNH section 6.2];
            "mesh" keeps the order of the mesh.
        cluster_size: Largest number of elements in a cluster.
        attachments_first: Visit weak constraints before the elements instead of after them.
        pseudo_dt: Step size of pseudo-time [s].
        sweeps_per_step: Sweeps per step of pseudo-time.
        pseudo_time: "flow" starts every step without velocity; "dynamics" keeps velocities except for the
            fraction pseudo_damping, as in the paper.
        pseudo_damping: Fraction of every velocity that is removed per step of "dynamics".
        iterations: Sweeps per step unless the call sets a limit.
    """

    name: ClassVar[str] = "block_xpbd"
    history_size: ClassVar[int] = 2


@projects(BlockXPBD, ElasticRows)
def _elastic(method: BlockXPBD, term: Term, elements: WeightedElements) -> list:
    require_pair(method.name, term.material)
    return [BlockProjection(elements, new_memory(elements, 2))]


@projects(BlockXPBD, ConstraintRows)
def _single(method: BlockXPBD, term: Term, elements: WeightedElements) -> list:
    return [CompliantProjection(elements, new_memory(elements, 1), (1.0,))]
