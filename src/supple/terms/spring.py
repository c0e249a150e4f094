"""Springs between two vertices, ½ k (|x₁ - x₀| - L)², or between a vertex and a fixed point."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from supple.algebra.matrix3 import dot, scale
from supple.kernels import load
from supple.terms.base.constraint import Constraint, ConstraintRows, constraint

MIN_SQUARED_LENGTH = 1e-20
"""Added to squared lengths [m²], because a spring of zero length has no direction."""


class SpringRows(ConstraintRows):
    """Packed data of springs; rest (rows, 1, lanes): the rest length L [m]."""

    __slots__ = ()
    corners: ClassVar[int] = 2


class PointSpringRows(SpringRows):
    """Packed data of springs to fixed points; rest (rows, 1, lanes): the rest length L [m]."""

    __slots__ = ()
    corners: ClassVar[int] = 1
    fixed: ClassVar[int] = 1


class Springs(Constraint):
    """C = |x₁ - x₀| - L."""

    kind = SpringRows
    name: ClassVar[str] = "springs"
    ties: ClassVar[bool] = True
    family: ClassVar[str] = "spring"

    @classmethod
    def between(cls, positions: np.ndarray, vertices: np.ndarray, stiffness: Any) -> Self:
        """Create springs at their rest lengths.

        Args:
            positions: (n, 3) rest positions [m].
            vertices: (m, 2) end vertices.
            stiffness: k [N/m], a number or (m,).
        """
        vertices = np.asarray(vertices, np.int32)
        length = np.linalg.norm(positions[vertices[:, 1]] - positions[vertices[:, 0]], axis=1)
        return cls(
            vertices, np.broadcast_to(stiffness, len(vertices)).astype(float), length[:, None], positions
        )

    def ends(self, positions: np.ndarray) -> np.ndarray:
        return positions[self.vertices]

    def derivatives(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return _of_corners(x[:, 1] - x[:, 0], self.rest[:, 0], np.array([-1.0, 1.0]))


@dataclass(frozen=True, eq=False)
class PointSprings(Constraint):
    """C = |p - x| - L, for vertices (m, 1) and fixed points p (m, 3) [m]."""

    points: np.ndarray = field(kw_only=True)

    kind = PointSpringRows
    name: ClassVar[str] = "springs to fixed points"
    ties: ClassVar[bool] = True
    family: ClassVar[str] = "spring"

    def fixed_points(self) -> np.ndarray:
        return self.points[:, None]

    def ends(self, positions: np.ndarray) -> np.ndarray:
        return np.stack([positions[self.vertices[:, 0]], self.points], axis=1)

    def derivatives(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return _of_corners(self.points - x[:, 0], self.rest[:, 0], np.array([-1.0]))


def _of_corners(
    edge: np.ndarray, rest: np.ndarray, sign: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """C, ∇C = ±n with n = edge/l, and ∇²C = ±(I - n nᵀ)/l.

    Args:
        edge: (m, 3) edge vectors [m].
        rest: (m,) rest lengths [m].
        sign: (k,) sign of each corner in the edge vector.
    """
    length = np.sqrt((edge**2).sum(axis=1) + MIN_SQUARED_LENGTH)
    n = edge / length[:, None]
    across = (np.eye(3) - np.einsum("ei,ej->eij", n, n)) / length[:, None, None]
    return (
        length - rest,
        sign[None, :, None] * n[:, None],
        np.einsum("a,b,eij->eabij", sign, sign, across),
    )


@constraint.of(SpringRows)
def _constraint(rows, row, r):
    length = math.sqrt(dot(r[0], r[0]) + MIN_SQUARED_LENGTH)
    return length - load(rows.rest, row, 0), (scale(1.0 / length, r[0]),), 1.0 / length
