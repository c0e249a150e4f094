"""Membranes with initial strain: cut from flat patterns, or sewn and inflated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from supple.algebra.matrix3 import add, sub
from supple.algebra.triangle_frames import flatten_triangle, pattern_frames, pattern_gradients
from supple.kernels import device_function, stream
from supple.terms.base.elastic import ElasticRows, from_rest, from_start
from supple.terms.base.packed_parameters import of_elements
from supple.terms.base.term import Incidence, Term, others_first
from supple.terms.shells.triangle import (
    TriangleElasticity,
    TriangleRows,
    check_membrane_material,
    project_to_plane,
)


class PatternRows(TriangleRows):
    """Packed data of triangles with a separate rest shape.

    `rest` has seven additional numbers: offsets of the two other corners from their undeformed positions
    relative to the visiting corner [m], and the volume again, which is last in the data of all elements.
    """

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class PatternElasticity(TriangleElasticity):
    """Σₑ h Aₑ ψ(Fₑ) over triangles with a separate undeformed shape, the pattern.

    Patterns are placed in the planes of the triangles at zero displacement and rotated so that the initial
    deformation is a pure stretch: F = R S without the rotation R. An isotropic ψ does not depend on R, and
    material directions are rotated by it.

    Attributes:
        offsets: (m, 3, 3) corner positions at zero displacement minus undeformed positions, up to a
            translation [m].
    """

    offsets: np.ndarray

    kind = PatternRows

    @classmethod
    def from_pattern(
        cls, points: np.ndarray, triangles: np.ndarray, material: Any, thickness: Any, rest: np.ndarray
    ) -> Self:
        """Create the term from a mesh and the rest shapes of its triangles.

        Args:
            points: (n, 3) positions at zero displacement [m].
            triangles: (m, 3) vertices.
            material: Material suitable for sheets.
            thickness: Thickness [m], a number or (m,) per triangle.
            rest: (m, 3, 3) undeformed corners of each triangle [m].
        """
        check_membrane_material(material)
        corners, flat = points[triangles], flatten_triangle(rest)
        frames, gradients = pattern_frames(corners, flat), pattern_gradients(flat)
        undeformed = np.einsum("eij,eaj->eai", frames, flat - flat[:, :1])
        edges = flat[:, 1:] - flat[:, :1]
        area = 0.5 * np.abs(np.linalg.det(edges))
        return cls(
            np.asarray(triangles, np.int32),
            np.einsum("eij,eaj->eai", frames, gradients),
            area * np.asarray(thickness, float),
            project_to_plane(material, np.cross(frames[:, :, 0], frames[:, :, 1])),
            corners - corners[:, :1] - undeformed,
        )

    def rows(self, incidence: Incidence, start: np.ndarray) -> ElasticRows:
        rows = super().rows(incidence, start)
        element, slot = incidence.element, incidence.slot
        relative_offsets = (
            self.offsets[element[:, None], others_first(3)[slot]] - self.offsets[element, slot][:, None]
        )
        packed_offsets = incidence.pack(relative_offsets.reshape(len(element), 6))
        rest_data = np.concatenate([rows.rest, packed_offsets, rows.rest[:, -1:]], axis=1)
        return rows._replace(rest=rest_data)

    def remesh(self, triangles: np.ndarray, origin: np.ndarray, points: np.ndarray) -> Term:
        """Return this sheet on other triangles, with the initial strain of their parent triangles."""
        start = np.diff(points[self.vertices], axis=1)
        undeformed = start - np.diff(self.offsets, axis=1)
        back = np.einsum("eai,eaj->eij", undeformed, np.linalg.pinv(start).transpose(0, 2, 1))[origin]
        corners = points[triangles]
        rest = np.einsum("eij,eaj->eai", back, corners - corners[:, :1])
        material, thickness = of_elements(self.material, origin), self.volume / self._areas
        return PatternElasticity.from_pattern(points, triangles, material, thickness[origin], rest)

    def corner_displacements(self, u: np.ndarray) -> np.ndarray:
        return super().corner_displacements(u) + self.offsets


@device_function
def _offsets(rows, row):
    r = rows.rest
    return (
        (stream(r, row, 7), stream(r, row, 8), stream(r, row, 9)),
        (stream(r, row, 10), stream(r, row, 11), stream(r, row, 12)),
    )


@from_rest.of(PatternRows)
def _from_rest(rows, row, x):
    a, b = _offsets(rows, row)
    return x[0], add(x[1], a), add(x[2], b)


@from_start.of(PatternRows)
def _from_start(rows, row, x):
    a, b = _offsets(rows, row)
    return x[0], sub(x[1], a), sub(x[2], b)
