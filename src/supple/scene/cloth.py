"""Cloth: surface bodies with a thickness, a bending model and a rest shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from supple.meshes.measures import areas
from supple.meshes.mesh import lump_masses
from supple.scene.bodies import Body
from supple.scene.errors import SceneError
from supple.scene.regions import Portion, densities
from supple.terms import (
    Fabric,
    FabricElasticity,
    FabricMembrane,
    PatternElasticity,
    Term,
    TriangleElasticity,
    hinges_of,
)
from supple.terms.shells.bending import HingesOfMesh


@dataclass(frozen=True, eq=False, repr=False)
class Cloth(Body):
    """Cloth of a scene: triangle mesh with membrane material. Created by `Scene.add_cloth`.

    The mesh is the initial surface. The density has the unit [kg/m²].

    Attributes:
        thickness: Thickness [m].
        bending: Bending model, None for no resistance to bending.
        rest: (m, 3, 3) corners of the triangles in the rest shape [m], None if the mesh is at rest.
        fabric: Fabric whose energy replaces that of a membrane.
        mesh: Triangle mesh, the initial surface.
        material: Membrane material of the triangles outside all regions.
        density: Mass per area [kg/m²].
        name: Name in messages and output.
        first: Number of its first vertex in the scene.
        skin: Detailed surface that is shown and exported in its place.
        velocity: Initial velocity of the center of mass [m/s].
        angular_velocity: Initial angular velocity about the center of mass [rad/s].
        regions: Triangles with other materials.
        viscosity: Viscosities and damping.
    """

    thickness: float = 1e-3
    bending: Any = None
    rest: np.ndarray | None = None
    fabric: Fabric | None = None

    kind: ClassVar[str] = "cloth"

    @property
    def precisions(self) -> tuple[str, ...]:  # type: ignore[override]
        """Supported working precisions; float64 only for fabrics."""
        return Body.precisions if self.fabric is None else ("float64",)

    @property
    def rest_measures(self) -> np.ndarray:
        if self.rest is None:
            return self.mesh.measures
        return areas(self.rest.reshape(-1, 3), np.arange(3 * len(self.rest)).reshape(-1, 3))

    @property
    def masses(self) -> np.ndarray:
        n, density = self.mesh.n_vertices, densities(self.regions, self.density, self.n_cells)
        return lump_masses(self.mesh.cells, self.rest_measures, density, n, "triangles", 2)

    @property
    def volume(self) -> float:
        return self.thickness * float(self.rest_measures.sum())

    @staticmethod
    def elasticity(parts: Sequence[Cloth | Portion], rest: np.ndarray, material: Any) -> Term:
        """Build the elasticity term of cloths with equal `group`.

        Args:
            parts: Cloths or portions of cloths.
            rest: (n, 3) initial positions of all vertices of the scene [m].
            material: Merged material of the parts.

        Returns:
            The energy term.

        Raises:
            SceneError: The material of a fabric was replaced by another kind.
        """
        bodies: list[Any] = [part.body if isinstance(part, Portion) else part for part in parts]
        thickness = np.repeat([body.thickness for body in bodies], [part.n_cells for part in parts])
        triangles = np.concatenate([part.cells for part in parts])
        if bodies[0].fabric is not None:
            if not isinstance(material, FabricMembrane):
                raise SceneError(
                    f"{bodies[0].name} has the fabric {bodies[0].fabric.name}, which cannot be "
                    f"replaced by {type(material).__name__}; create cloth of that material instead."
                )
            uv = np.concatenate([body.rest_corners[:, :, :2] for body in bodies])
            return FabricElasticity.from_mesh(uv, triangles, bodies[0].fabric, rest, material)
        if all(body.rest is None for body in bodies):
            return TriangleElasticity.from_mesh(rest, triangles, material, thickness)
        chosen = [part.numbers if isinstance(part, Portion) else slice(None) for part in parts]
        corners = np.concatenate([body.rest_corners[own] for body, own in zip(bodies, chosen, strict=True)])
        return PatternElasticity.from_pattern(rest, triangles, material, thickness, corners)

    @property
    def group(self) -> Any:
        return *super().group, self.fabric

    @property
    def rest_corners(self) -> np.ndarray:
        """(m, 3, 3) corners of the triangles in the rest shape [m]."""
        return self.points[self.mesh.cells] if self.rest is None else self.rest

    def extra_terms(self, rest: np.ndarray) -> tuple[Term, ...]:
        """Return the bending term, empty without bending.

        Args:
            rest: (n, 3) initial positions of all vertices of the scene [m].

        Returns:
            Energy terms.
        """
        if self.bending is None:
            return ()
        vertices, owners = hinges_of(self.mesh.cells)
        if not len(vertices):
            return ()
        corners = self.points[vertices] if self.rest is None else self._hinges_at_rest(vertices, owners)
        return (self.bending.term(HingesOfMesh(vertices + self.first, owners, corners), rest),)

    def _hinges_at_rest(self, vertices: np.ndarray, owners: np.ndarray) -> np.ndarray:
        """Corner positions (h, 4, 3) [m] of the hinges at rest.

        Two triangles that are adjacent in the rest shape keep their rest angle. Others, such as those across
        the edges of pattern pieces, are opened flat.
        """
        assert self.rest is not None
        one, other = (
            np.stack([self.rest[owner, _slot(self.mesh.cells[owner], v)] for v in vertices.T[list(order)]], 1)
            for owner, order in zip(owners.T, ((0, 1, 2), (0, 1, 3)), strict=True)
        )
        a, b, o = np.moveaxis(one, 1, 0)
        start, end, p = np.moveaxis(other, 1, 0)
        along, across = _in_edge(start, end, p)
        e = (b - a) / np.linalg.norm(b - a, axis=1, keepdims=True)
        away = o - a - np.einsum("hi,hi->h", o - a, e)[:, None] * e
        away /= np.linalg.norm(away, axis=1, keepdims=True)
        flat = a + along[:, None] * e - across[:, None] * away
        size = np.linalg.norm(b - a, axis=1)
        same_corner = np.abs(one[:, :2] - other[:, :2]).max(axis=(1, 2)) < 1e-9 * size
        return np.stack([a, b, o, np.where(same_corner[:, None], p, flat)], axis=1)


def _slot(triangles: np.ndarray, vertex: np.ndarray) -> np.ndarray:
    """Return corner indices (h,) of vertices (h,) in triangles (h, 3)."""
    return (triangles == vertex[:, None]).argmax(axis=1)


def _in_edge(a: np.ndarray, b: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates along edges a to b, and distances from these edges, of points p (h, 3) [m]."""
    e = (b - a) / np.linalg.norm(b - a, axis=1, keepdims=True)
    along = np.einsum("hi,hi->h", p - a, e)
    return along, np.linalg.norm(p - a - along[:, None] * e, axis=1)
