"""Vertex block descent [VBD: A. H. Chen et al. 2024], the comparison of GPBD Fig. 8: exact blocks for PBNG.

The blocks ∂²E/∂xᵢ² replace positive definite upper bounds. They are not positive definite everywhere: in
compressed elements of nearly incompressible materials, steps then increase the energy. The bounds prevent
that.
"""

from __future__ import annotations

from typing import Any

from supple.algebra.matrix3 import matvec
from supple.materials import stress_differential, traction
from supple.terms.base.elastic import corners, force_volume, material_at, measure, shape_gradients
from supple.terms.base.term import force_with_safe_step, vertex_force
from supple.terms.tet import TetRows


class ExactTets(TetRows):
    """Tetrahedra with exact diagonal blocks."""

    __slots__ = ()


EXACT_COUNTERPARTS: dict[Any, Any] = {TetRows: ExactTets}
"""Exact counterpart of each packed element type."""


def exact_blocks(terms: tuple) -> tuple[Any, ...]:
    """Replace the bounds of tetrahedra by exact blocks; other terms keep their bounds."""
    return tuple(EXACT_COUNTERPARTS.get(type(rows), type(rows))(*rows) for rows in terms)


@force_with_safe_step.of(ExactTets)
def _confined_force(rows, row, u, ui):
    f, A = vertex_force(rows, row, u, ui)
    return f, A, 0.0 * f[0] + 1e30


@vertex_force.of(ExactTets)
def _vertex_force(rows, row, u, ui):
    """f = -V P g,  A = V ∂(P g)/∂xᵢ."""
    g = shape_gradients(rows, row)
    F = measure(rows, corners(rows, row, u, ui), g)
    V, material, own = force_volume(rows, row, g), material_at(rows, row), g[0]
    f = traction(material, F, own)
    zero = 0.0 * V
    p = matvec(
        stress_differential(material, F, (own[0], own[1], own[2], zero, zero, zero, zero, zero, zero)), own
    )
    q = matvec(
        stress_differential(material, F, (zero, zero, zero, own[0], own[1], own[2], zero, zero, zero)), own
    )
    r = matvec(
        stress_differential(material, F, (zero, zero, zero, zero, zero, zero, own[0], own[1], own[2])), own
    )
    return (
        (-V * f[0], -V * f[1], -V * f[2]),
        (V * p[0], V * q[1], V * r[2], V * p[1], V * p[2], V * q[2]),
    )
