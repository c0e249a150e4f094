"""Base class of objects that can be translated, rotated and scaled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from supple.checks import one_number
from supple.meshes.arguments import scaling, three
from supple.meshes.checks import MeshError
from supple.meshes.constant import Constant


class Movable(Constant, ABC):
    """Immutable object; every transformation returns a new one."""

    @abstractmethod
    def transformed(self, matrix: ArrayLike, offset: ArrayLike = (0, 0, 0)) -> Self:
        """Apply x → A x + b.

        Args:
            matrix: A, (3, 3).
            offset: b, (3,) [m].
        """

    def translated(self, offset: ArrayLike) -> Self:
        """Translate by an offset (3,) [m]."""
        return self.transformed(np.eye(3), offset)

    def scaled(self, factor: ArrayLike) -> Self:
        """Scale about the origin by one factor, or one factor per axis."""
        return self.transformed(scaling(factor))

    def rotated(self, axis: ArrayLike, angle: float, centre: ArrayLike = (0, 0, 0)) -> Self:
        """Rotate about an axis, counter-clockwise seen from its tip.

        Args:
            axis: Direction of the axis, (3,).
            angle: Angle [rad].
            centre: Point on the axis, (3,) [m].
        """
        direction, c = three("axis", axis), three("centre", centre)
        angle = one_number("angle", angle)
        if not direction.any():
            raise MeshError("axis must not be zero.")
        R = Rotation.from_rotvec(angle * direction / np.linalg.norm(direction)).as_matrix()
        return self.transformed(R, c - R @ c)
