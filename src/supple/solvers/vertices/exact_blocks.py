"""Exact diagonal blocks ∂²E/∂xᵢ² for sweeps over vertices, in place of their positive definite bounds: vertex
block descent [Chen et al. 2024], which GPBD Fig. 8 compares with.

They are not positive definite everywhere: in compressed elements of nearly incompressible materials steps
then lead uphill, which is what the bounds are for.
"""

from __future__ import annotations

from typing import Any

from supple.algebra.matrix3 import matvec
from supple.materials import stress_differential, traction
from supple.terms.elastic import corners, force_volume, material_at, measure, shape_gradients
from supple.terms.term import confined_force, vertex_force
from supple.terms.tet import TetRows


class ExactTets(TetRows):
    """Tetrahedra that give vertices their exact blocks."""

    __slots__ = ()


EXACT: dict[Any, Any] = {TetRows: ExactTets}
"""What has exact blocks, by what has bounds."""


def exact_blocks(terms: tuple) -> tuple[Any, ...]:
    """Terms with exact blocks in place of bounds where they are tetrahedra; others keep their bounds."""
    return tuple(EXACT.get(type(rows), type(rows))(*rows) for rows in terms)


@confined_force.of(ExactTets)
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
