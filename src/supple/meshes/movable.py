"""What can be moved, turned and scaled as a whole."""

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
    """Every motion is a new object."""

    @abstractmethod
    def transformed(self, matrix: ArrayLike, offset: ArrayLike = (0, 0, 0)) -> Self:
        """x → A x + b with matrix A (3, 3) and offset b (3,) [m]."""

    def translated(self, offset: ArrayLike) -> Self:
        """Moved by offset (3,) [m]."""
        return self.transformed(np.eye(3), offset)

    def scaled(self, factor: ArrayLike) -> Self:
        """Scaled about the origin by one factor, or by one for each axis."""
        return self.transformed(scaling(factor))

    def rotated(self, axis: ArrayLike, angle: float, centre: ArrayLike = (0, 0, 0)) -> Self:
        """Turned by angle [rad] about the axis through centre, counter-clockwise seen from its tip."""
        direction, c = three("axis", axis), three("centre", centre)
        angle = one_number("angle", angle)
        if not direction.any():
            raise MeshError("axis must not be zero.")
        R = Rotation.from_rotvec(angle * direction / np.linalg.norm(direction)).as_matrix()
        return self.transformed(R, c - R @ c)
