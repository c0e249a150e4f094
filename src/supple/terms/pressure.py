"""Pressure inside a surface: the energy -p V of the enclosed volume.

V = 1/6 Σ xₐ · (x_b × x_c) over the triangles, relative to any point. For a surface that is closed or pinned
along its edges, the choice of the point changes V by a constant only. Then ∂V/∂xₐ = Σ n A/3, a third of the
area vectors around a vertex, so p ∂V/∂xₐ has a potential although it follows the rotating surface. The
Hessian is symmetric, has no diagonal blocks and is indefinite: the stiffness comes from the membrane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, cross, dot, sub
from supple.kernels import device_function, gather, load
from supple.terms.base.term import Elemental, Elements, Incidence, energy, others_first, vertex_force


class PressureRows(NamedTuple):
    """Packed data of a pressure.

    Attributes:
        start: (batches + 1,) first row of each batch.
        others: (rows, 2, lanes) ids of the other corners.
        corner_positions: (rows, 9, lanes) positions of the three corners at zero displacement, relative to
            the surface center [m].
        pressure: (rows, 1, lanes) p [Pa].
    """

    start: Any
    others: Any
    corner_positions: Any
    pressure: Any


@dataclass(frozen=True, eq=False)
class Pressure(Elemental):
    """-p V over triangles.

    Attributes:
        vertices: (m, 3) corners, counter-clockwise seen from outside.
        pressure: (m,) p [Pa].
        positions: (n, 3) positions of all vertices at zero displacement [m].
        middle: (3,) reference point of the volume [m].
        capacity: m if the pressure varies over time, otherwise None.
    """

    vertices: np.ndarray
    pressure: np.ndarray
    positions: np.ndarray
    middle: np.ndarray
    capacity: int | None = None

    name: ClassVar[str] = "pressure"
    material: ClassVar[None] = None
    loads: ClassVar[bool] = True
    presses: ClassVar[bool] = True
    family: ClassVar[str] = "load"

    @property
    def translatable(self) -> np.ndarray:
        return np.zeros(len(self.vertices), bool)

    def rows(self, incidence: Incidence, start: np.ndarray) -> PressureRows:
        element, slot = incidence.element, incidence.slot
        order = np.column_stack([np.arange(3), others_first(3)])[slot]
        ids = np.take_along_axis(self.vertices[element], order, axis=1)
        corner_positions = (self.positions[ids] - self.middle).reshape(len(element), 9)
        return PressureRows(
            start,
            incidence.pack_ids(ids[:, 1:]),
            incidence.pack(corner_positions),
            incidence.pack(self.pressure[element, None]),
        )

    def hessian_blocks(self, elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
        """Kᵃᵇ = p/6 [x_c]ₓ for (a, b, c) in turn and its transpose; zero for kinds other than "exact"."""
        blocks = np.zeros((len(self.vertices), 3, 3, 3, 3))
        if kind != "exact":
            return blocks
        x = self.positions[self.vertices] - self.middle + u[self.vertices, :3].astype(float)
        for a, b, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            turn = self.pressure[:, None, None] / 6 * _skew(x[:, c])
            blocks[:, a, b] += turn
            blocks[:, b, a] += turn.transpose(0, 2, 1)
        return blocks


def _skew(v: np.ndarray) -> np.ndarray:
    """Cross product matrices [v]ₓ (m, 3, 3): [v]ₓ w = v × w."""
    x, y, z = v.T
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)


@device_function
def _corner_position(term, row, corner, u):
    p, first = term.corner_positions, 3 * corner
    return add((load(p, row, first), load(p, row, first + 1), load(p, row, first + 2)), u)


@device_function
def _corners(term, row, u, ui):
    b, c = gather(u, term.others, row, 0), gather(u, term.others, row, 1)
    return (
        _corner_position(term, row, 0, ui),
        _corner_position(term, row, 1, b),
        _corner_position(term, row, 2, c),
    )


@vertex_force.of(PressureRows)
def _vertex_force(term, row, u, ui):
    """f = p A n / 3, A = 0.

    The omitted part of -∂E/∂x of each triangle cancels around interior vertices of the surface.
    """
    a, b, c = _corners(term, row, u, ui)
    n = cross(sub(b, a), sub(c, a))
    p = load(term.pressure, row, 0) / 6.0
    zero = 0.0 * p
    return (p * n[0], p * n[1], p * n[2]), (zero, zero, zero, zero, zero, zero)


@energy.of(PressureRows)
def _energy(term, row, u, ui):
    a, b, c = _corners(term, row, u, ui)
    return -load(term.pressure, row, 0) / 6.0 * dot(a, cross(b, c))
