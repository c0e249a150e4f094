"""XPBD that solves both constraints of an element together [BNH section 5]:

    x ← xₙ + Δt vₙ + W f_ext,  λ ← 0                        elementwise.py, ElementRun._begin_step
    for each iteration, for each element, colour by colour  elementwise.py, element_sweeps.py
        (Δλ, Δλ') ← solution of the 2×2 system  [eq. 19]    `_project_block`
        λ ← λ + Δλ,  λ' ← λ' + Δλ'
        x ← x + W (∇Cᵀ Δλ + ∇C'ᵀ Δλ')
    v ← (x - xₙ)/Δt                                         stepping.py

The system is the paper's, each row times its stiffness, k for V k:

    ⎡ k ∇C W ∇Cᵀ + 1   k ∇C W ∇C'ᵀ       ⎤ ⎡ Δλ  ⎤     ⎡ k C + λ    ⎤
    ⎣ k' ∇C' W ∇Cᵀ     k' ∇C' W ∇C'ᵀ + 1 ⎦ ⎣ Δλ' ⎦ = - ⎣ k' C' + λ' ⎦

C, C' are H, D of eq. 8, 9 where the material is NeoHookean; λ, W and the other letters are those of xpbd.py.
It is solved by Cramer's rule, where the paper takes LU with pivoting. Its clusters [BNH Algorithms 3, 4] are
ordering="clusters" of `ElementOptions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from supple.kernels import load, store
from supple.materials import constraint_pair
from supple.solvers.elements.corners import element, gradients, put_corners, shifted, weighted_square
from supple.solvers.elements.elementwise import ElementOptions
from supple.solvers.elements.projection import Places, new_memory, project, projects
from supple.solvers.xpbd import CompliantProjection, Pair, require_pair
from supple.terms import Term
from supple.terms.constraint import ConstraintRows
from supple.terms.elastic import ElasticRows, measure


class BlockProjection(Pair):
    """memory: λ and λ' of each element, (rows, 2, lanes), which are solved for together."""

    __slots__ = ()


@project.of(BlockProjection)
def _project_block(projection, row, u):
    """Both constraints at once: a 2×2 system for (Δλ, Δλ') [BNH eq. 17-19]; a, b: ∇C and ∇C'."""
    places, (multipliers,) = projection.places, projection.memory
    x, W, g, V, material = element(places, row, u)
    C, D, k, C2, D2, k2 = constraint_pair(material, measure(places.rows, x, g))
    k, k2 = k * V, k2 * V
    a, b = gradients(places, row, D, g), gradients(places, row, D2, g)
    lam, lam2 = load(multipliers, row, 0), load(multipliers, row, 1)
    aa, bb, ab = weighted_square(W, a, a), weighted_square(W, b, b), weighted_square(W, a, b)
    # Each row of the system is multiplied by its stiffness, so that padding (k = 0) gives 0 and not 0/0.
    r, r2 = -(k * C + lam), -(k2 * C2 + lam2)
    A11, A12, A21, A22 = k * aa + 1.0, k * ab, k2 * ab, k2 * bb + 1.0
    s = 1.0 / (A11 * A22 - A12 * A21)
    d_lam, d_lam2 = s * (A22 * r - A12 * r2), s * (A11 * r2 - A21 * r)
    store(multipliers, row, 0, lam + d_lam)
    store(multipliers, row, 1, lam2 + d_lam2)
    put_corners(places, row, u, shifted(shifted(x, d_lam, W, a), d_lam2, W, b))


@dataclass(frozen=True)
class BlockXPBD(ElementOptions):
    """XPBD that solves both constraints of an element together [BNH section 5]."""

    name: ClassVar[str] = "block_xpbd"
    remembers: ClassVar[int] = 2


@projects(BlockXPBD, ElasticRows)
def _elastic(method: BlockXPBD, term: Term, places: Places) -> list:
    require_pair(method.name, term.material)
    return [BlockProjection(places, new_memory(places, 2))]


@projects(BlockXPBD, ConstraintRows)
def _single(method: BlockXPBD, term: Term, places: Places) -> list:
    return [CompliantProjection(places, new_memory(places, 1), (1.0,))]
