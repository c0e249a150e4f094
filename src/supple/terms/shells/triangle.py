"""Membranes: triangles of a material, with in-plane elasticity and no bending stiffness [PBNG section 8].

With shape gradients gₐ in the plane of the rest triangle, its rest normal n₀ and current normal n, F = Σ xₐ
gₐᵀ + n n₀ᵀ is a 3×3 deformation gradient of constant thickness. Material directions lie in the plane, and ψ
is the same on both sides of it, so P n₀ is parallel to n. Since n changes only perpendicular to itself,
∂ψ/∂xₐ = P gₐ exactly, and every material can be used unchanged. The materials of `materials/plane_stress.py`
eliminate the thickness.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from supple.algebra.matrix3 import cofactor, combine, cross, dot, matvec, outer, scale, sub
from supple.kernels import device_function
from supple.materials import is_membrane_material, table_of
from supple.terms.base.constraint import positive_part
from supple.terms.base.elastic import Elastic, ElasticRows, measure, rest_gradient
from supple.terms.base.packed_parameters import of_elements
from supple.terms.base.tensors import tensors_of
from supple.terms.base.term import Elements, Term


class TriangleRows(ElasticRows):
    """Packed data of triangles; the volume is area times thickness."""

    __slots__ = ()
    corners: ClassVar[int] = 3


class TriangleElasticity(Elastic):
    """Σₑ h Aₑ ψ(Fₑ) over triangles of thickness h."""

    kind = TriangleRows
    name: ClassVar[str] = "triangles"
    sheet: ClassVar[bool] = True

    @classmethod
    def from_mesh(cls, points: np.ndarray, triangles: np.ndarray, material: Any, thickness: Any) -> Self:
        """Create the term of a sheet at rest.

        Args:
            points: (n, 3) rest positions [m].
            triangles: (m, 3) vertices.
            material: Material suitable for sheets.
            thickness: Thickness [m], a number or (m,) per triangle.
        """
        check_membrane_material(material)
        edges = points[triangles[:, 1:]] - points[triangles[:, :1]]
        material = project_to_plane(material, np.cross(edges[:, 0], edges[:, 1]))
        gradients = np.linalg.pinv(edges).transpose(0, 2, 1)
        gradients = np.concatenate([-gradients.sum(1, keepdims=True), gradients], axis=1)
        area = 0.5 * np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1)
        return cls(np.asarray(triangles, np.int32), gradients, area * np.asarray(thickness, float), material)

    def remesh(self, triangles: np.ndarray, origin: np.ndarray, points: np.ndarray) -> Term:
        """Return this sheet on other triangles.

        Args:
            triangles: (t, 3) vertices of the other mesh.
            origin: (t,) triangle of this mesh that contains each.
            points: (n, 3) positions at zero displacement [m].
        """
        thickness = self.volume / self._areas
        material = of_elements(self.material, origin)
        return TriangleElasticity.from_mesh(points, triangles, material, thickness[origin])

    def scale_thickness(self, share: float) -> Self:
        """Return this sheet with a fraction of its thickness."""
        return replace(self, volume=share * self.volume)

    @property
    def _areas(self) -> np.ndarray:
        """(m,) undeformed areas [m²]."""
        return 0.5 / np.linalg.norm(np.cross(self.gradients[:, 1], self.gradients[:, 2]), axis=1)

    def hessian_blocks(self, elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
        """Kᵃᵇ = V gᵃ C ∂F/∂xᵇ, the derivative of V P gᵃ including ∂n.

        Exact, its positive semi-definite projection, or the bound: with the bound of C and without ∂n.
        """
        tensors = tensors_of(elements, u, "bound" if kind == "bound" else "exact", threads)
        m = len(self.volume)
        C = tensors.transpose(0, 2, 1).reshape(-1, 3, 3, 3, 3)[:m]
        change = np.einsum("ebl,km->eklbm", self.gradients, np.eye(3))  # ∂F_kl/∂xᵇ_m
        if kind != "bound":
            change = change - self._normal_derivative(u)
        blocks = np.einsum("e,eaj,eijkl,eklbm->eabim", self.volume, self.gradients, C, change, optimize=True)
        return positive_part(blocks) if kind == "projected" else blocks

    def corner_displacements(self, u: np.ndarray) -> np.ndarray:
        """(m, 3, 3) corner displacements from the undeformed triangles, up to a translation [m]."""
        return u[self.vertices, :3].astype(float)

    def _normal_derivative(self, u: np.ndarray) -> np.ndarray:
        """-∂(n n₀ᵀ)/∂x (m, 3, 3, 3, 3): under corner displacements, δn = -Σ (F⁻ᵀ gᵇ)(n · δxᵇ)."""
        g = self.gradients
        normal = np.cross(g[:, 1], g[:, 2])
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        flat = np.eye(3) - np.einsum("ei,ej->eij", normal, normal)
        T = flat + np.einsum("eai,eaj->eij", self.corner_displacements(u), g)
        F = T.copy()
        tangents = np.linalg.svd(flat)[0][:, :, :2]
        now = np.cross((T @ tangents)[:, :, 0], (T @ tangents)[:, :, 1])
        now *= np.sign(np.einsum("ei,ei->e", np.cross(tangents[:, :, 0], tangents[:, :, 1]), normal))[:, None]
        now /= np.maximum(np.linalg.norm(now, axis=1, keepdims=True), 1e-300)
        F += np.einsum("ei,ej->eij", now, normal)
        dual = np.einsum("eij,ebj->ebi", np.linalg.pinv(F).transpose(0, 2, 1), g)
        return np.einsum("ebk,em,el->eklbm", dual, now, normal)


def check_membrane_material(material: Any) -> None:
    """Raise a ValueError for materials that membranes cannot use."""
    if not material.objective:
        raise ValueError(
            f"{type(material).__name__} is not rotation-invariant and cannot be the material of a "
            "membrane; use another material, such as PlaneStressStVK"
        )
    if not is_membrane_material(type(material)):
        raise ValueError(
            f"{type(material).__name__} has tensor parameters, which need not be symmetric about the "
            "plane of a membrane; use another material"
        )


def project_to_plane(material: Any, normals: np.ndarray) -> Any:
    """Project the directions of a material into the planes of triangles with normals (m, 3)."""
    unit = normals / np.linalg.norm(normals, axis=1, keepdims=True)

    def project(parameter: Any, value: Any) -> Any:
        if parameter.kind != "direction":
            return value
        table = table_of(value, len(unit))
        table = table - np.einsum("ei,ei->e", table, unit)[:, None] * unit
        length = np.linalg.norm(table, axis=1, keepdims=True)
        if length.min() < MIN_IN_PLANE:
            raise ValueError(
                f"{parameter.name} of {type(material).__name__} must lie in the sheet, but it is "
                f"perpendicular to triangle {int(length.argmin())}; give one direction for each triangle"
            )
        table = table / length
        return tuple(table[0].tolist()) if np.ptp(table, axis=0).max() < 1e-12 else table

    return type(material)._make(map(project, material.stored, material))


MIN_IN_PLANE = 1e-3
"""Smallest in-plane component of a unit direction."""


@measure.of(TriangleRows)
def _measure(rows, x, g):
    """F = T + n n₀ᵀ, T = Σ xₐ gₐᵀ = I - n₀ n₀ᵀ + Σ (uₐ - uᵢ) gₐᵀ and n = cof(T) n₀/|cof(T) n₀|.

    I in lanes without an element.
    """
    normal = _unit(cross(g[1], g[2]))
    stretch = combine(1.0, outer(sub(x[1], x[0]), g[1]), 1.0, outer(sub(x[2], x[0]), g[2]))
    T = combine(1.0, rest_gradient(rows, g), 1.0, stretch)
    return combine(1.0, T, 1.0, outer(_unit(matvec(cofactor(T), normal)), normal))


@rest_gradient.of(TriangleRows)
def _rest_gradient(rows, g):
    """I - n₀ n₀ᵀ."""
    normal = _unit(cross(g[1], g[2]))
    zero = 0.0 * normal[0]
    identity = (zero + 1.0, zero, zero, zero, zero + 1.0, zero, zero, zero, zero + 1.0)
    return combine(1.0, identity, -1.0, outer(normal, normal))


@device_function
def _unit(a):
    return scale(1.0 / (math.sqrt(dot(a, a)) + 1e-30), a)
