"""Bending of inextensible sheets that are flat at rest: quadratic in positions [PBCM section 4.3].

For corners (a, b, o, p) of two triangles of areas A and A' with the common edge a b, E = ½ B/(A + A') |Σ K
x|² with Bergou's weights K = (β + β', α + α', -α - β, -α' - β'), where α and α' are the cotangents of the
angles at a, and β and β' those at b. This is B/3 times the energy in PBCM, and equals plate theory on
equilateral meshes.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from supple.terms.base.term import Relations
from supple.terms.weak_constraint import WeakConstraints


class IsometricHinges(WeakConstraints):
    """One weak constraint Σ Kᵢ xᵢ = 0 per hinge."""

    name: ClassVar[str] = "isometric hinges"
    ties: ClassVar[bool] = False
    family: ClassVar[str] = "element"

    @classmethod
    def of(
        cls, vertices: np.ndarray, rigidity: np.ndarray, corners: np.ndarray, positions: np.ndarray
    ) -> Self:
        """Create the term.

        Args:
            vertices: (m, 4) corners of the hinges.
            rigidity: (m,) bending rigidity B [N m].
            corners: (m, 4, 3) rest corners of the hinges [m].
            positions: (n, 3) positions of all vertices at zero displacement [m].
        """
        weights, area = bergou(corners)
        stiffness = (rigidity / area)[:, None] * np.array([1.0, 1, 1, 0, 0, 0])
        return cls(
            np.asarray(vertices, np.int32), weights, np.zeros((len(vertices), 3)), stiffness, positions
        )

    @property
    def translatable(self) -> np.ndarray:
        return np.ones(len(self.vertices), bool)

    def relations(self) -> Relations | None:  # type: ignore[override]
        return None

    def ends(self, positions: np.ndarray) -> np.ndarray:
        return np.empty((0, 2, 3))


def bergou(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """K (m, 4), dimensionless, and A + A' (m,) [m²] of hinges with corners (m, 4, 3).

    Independent of the dihedral angle.
    """
    a, b, o, p = np.moveaxis(corners, 1, 0)
    at_a = [_cotangent(b - a, apex - a) for apex in (o, p)]
    at_b = [_cotangent(a - b, apex - b) for apex in (o, p)]
    weights = [at_b[0] + at_b[1], at_a[0] + at_a[1], -at_a[0] - at_b[0], -at_a[1] - at_b[1]]
    area = sum(0.5 * np.linalg.norm(np.cross(b - a, apex - a), axis=1) for apex in (o, p))
    return np.stack(weights, axis=1), np.asarray(area)


def _cotangent(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.einsum("ei,ei->e", u, v) / np.linalg.norm(np.cross(u, v), axis=1)
