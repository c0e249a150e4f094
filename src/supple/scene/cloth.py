"""Cloth: bodies that are surfaces, with a thickness, a resistance to bending and a rest shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from supple.meshes.measures import areas
from supple.meshes.mesh import lumped
from supple.scene.bodies import Body
from supple.terms import Term, TriangleElasticity


@dataclass(frozen=True, eq=False, repr=False)
class Cloth(Body):
    """Cloth in a scene: triangles of a membrane material with a density [kg/m²] and a thickness [m]. Made by
    `Scene.add_cloth`.

    bending: what resists folds, None for nothing. rest (m, 3, 3) [m]: the corners of every triangle where
    nothing is stretched, None where that is so in the mesh, which says where the cloth starts.
    """

    thickness: float = 1e-3
    bending: Any = None
    rest: np.ndarray | None = None

    kind: ClassVar[str] = "cloth"

    @property
    def rest_measures(self) -> np.ndarray:
        if self.rest is None:
            return self.mesh.measures
        return areas(self.rest.reshape(-1, 3), np.arange(3 * len(self.rest)).reshape(-1, 3))

    @property
    def masses(self) -> np.ndarray:
        n = self.mesh.n_vertices
        return lumped(self.mesh.cells, self.rest_measures, self.density, n, "triangles", 2)

    @property
    def volume(self) -> float:
        return self.thickness * float(self.rest_measures.sum())

    @staticmethod
    def elasticity(bodies: Sequence[Cloth], rest: np.ndarray, material: Any) -> Term:
        thickness = np.repeat([body.thickness for body in bodies], [body.mesh.n_cells for body in bodies])
        triangles = np.concatenate([body.cells for body in bodies])
        return TriangleElasticity.from_mesh(rest, triangles, material, thickness)
