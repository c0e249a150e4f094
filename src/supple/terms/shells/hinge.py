"""Hinges: two triangles with a common edge and a bending energy ½ k (θ - θ₀)²."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from supple.algebra.angle import angle_of
from supple.algebra.matrix3 import select3, sub
from supple.kernels import device_function, load, where
from supple.terms.base.constraint import Constraint, ConstraintRows, constraint
from supple.terms.base.elastic import minus_sum
from supple.terms.shells.dihedral import angle_derivatives, angles, opening

OTHER_CORNERS = np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [1, 0, 2]])
"""Other corners as seen from each: b o p from a, a p o from b, a b p from o and b a o from p. By symmetry,
both ends of the edge share one formula, and so do both apexes."""


class HingeRows(ConstraintRows):
    """Packed data of hinges.

    Attributes:
        rest: (rows, 3, lanes) cos θ₀, sin θ₀, and 1 if the visiting corner is an end of the edge, 0 if it is
            an apex.
        stiffness: (rows, 1, lanes) k [N m].
    """

    __slots__ = ()
    corners: ClassVar[int] = 4


class Hinges(Constraint):
    """C = θ - θ₀ in (-π, π], for corners (a, b, o, p) as in `dihedral`; rest (m, 1): θ₀ [rad]."""

    kind = HingeRows
    name: ClassVar[str] = "hinges"
    others: ClassVar[np.ndarray] = OTHER_CORNERS

    @classmethod
    def of(
        cls, vertices: np.ndarray, stiffness: np.ndarray, angle: np.ndarray, positions: np.ndarray
    ) -> Self:
        """Create the term.

        Args:
            vertices: (m, 4) corners.
            stiffness: (m,) k [N m].
            angle: (m,) rest angles θ₀ [rad].
            positions: (n, 3) positions of all vertices at zero displacement [m].
        """
        return cls(np.asarray(vertices, np.int32), stiffness, np.asarray(angle, float)[:, None], positions)

    def rest_of(self, element: np.ndarray, slot: np.ndarray) -> np.ndarray:
        angle = self.rest[element, 0]
        return np.stack([np.cos(angle), np.sin(angle), slot < 2], axis=1)

    def derivatives(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        elastic_angle = angles(x) - self.rest[:, 0]
        return np.arctan2(np.sin(elastic_angle), np.cos(elastic_angle)), *angle_derivatives(x)


@constraint.of(HingeRows)
def _constraint(rows, row, r):
    """θ - θ₀ as the angle between both directions, which is continuous at θ = ±π."""
    cosine, sine, end = load(rows.rest, row, 0), load(rows.rest, row, 1), load(rows.rest, row, 2) > 0.5
    hinge = hinge_opening(end, r)
    y = hinge.sine * cosine - hinge.cosine * sine
    angle = angle_of(y, hinge.cosine * cosine + hinge.sine * sine)
    return as_constraint(angle, hinge, end)


@device_function
def hinge_opening(end, r):
    """Dihedral angle of hinges, for vectors r from the visiting corner, an end of the edge or an apex."""
    zero = 0.0 * r[0][0]
    a = select3(end, (zero, zero, zero), r[0])
    b = select3(end, r[0], r[1])
    o = select3(end, r[1], (zero, zero, zero))
    return opening(sub(b, a), sub(o, a), sub(r[2], a))


@device_function
def as_constraint(angle, hinge, end):
    """(C, ∇, κ) with C = angle.

    The curvature is 1/h² at an apex, as for a polar angle, and at most Σ ((1 - t)/h)² + 3/l² at an end of the
    edge.
    """
    at_a = minus_sum((hinge.b, hinge.o, hinge.p))
    gradients = select3(end, hinge.b, at_a), select3(end, hinge.o, hinge.b), hinge.p
    (s, t), (g, h) = hinge.along, hinge.inverse
    q, m = (1.0 - s) * g, (1.0 - t) * h
    curvature = where(end, q * q + m * m + 3.0 / (hinge.length * hinge.length), g * g)
    return angle, gradients, where(angle < 0.0, -curvature, curvature)
