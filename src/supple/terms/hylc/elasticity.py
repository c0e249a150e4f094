"""Energy term of fabrics: Σ A ψ(e(x)) over triangles with their neighbors, stencils of six vertices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from supple.algebra.matrix3 import add, scale, select3
from supple.kernels import device_function, load, where
from supple.terms.base.constraint import corner_vector, positive_part
from supple.terms.base.packed_parameters import load_material, of_elements, pack_material
from supple.terms.base.term import Elemental, Elements, Incidence, energy, vertex_force
from supple.terms.hylc.energy import data_of, densities, density
from supple.terms.hylc.fabric import Fabric, FabricMembrane
from supple.terms.hylc.strains import strain_derivatives, strains, vertex_strains
from supple.terms.shells.bending import hinges_of

OTHER_CORNERS = np.array(
    [[1, 2, 3, 4, 5], [2, 0, 4, 5, 3], [0, 1, 5, 3, 4], [0, 1, 2, 4, 5], [1, 2, 0, 5, 3], [2, 0, 1, 3, 4]]
)
"""Other corners as seen from each, rotated so that a visiting triangle corner is corner 0, a visiting apex
corner 3."""

ROTATED_CORNERS = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]] * 2)
"""Triangle corners, and edges, in the rotated order."""

MIN_RELATIVE_STIFFNESS = 1e-3
"""Smallest isotropic vertex stiffness, relative to the trace of the vertex block."""


class _Rows(NamedTuple):
    start: Any
    others: Any
    offsets: Any
    rest: Any
    resting: Any
    fabric: Any
    material: Any


class FabricRows(_Rows):
    """Packed data of fabric triangles.

    Attributes:
        start: (batches + 1,) first row of each batch.
        others: (rows, 5, lanes) ids of the other corners.
        offsets: (rows, 15, lanes) vectors to them from the visiting corner at zero displacement [m].
        rest: (rows, 9, lanes) shape gradients of two corners [1/m], 1 for each edge with a neighbor, rest
            area [m²], and 1 if the visiting corner belongs to the triangle, 0 if it is an apex.
        resting: (1,) ψ at rest [J/m²].
        fabric: Fabric data.
        material: Stiffness factor.
    """

    __slots__ = ()
    corners: ClassVar[int] = 6


@dataclass(frozen=True, eq=False)
class FabricElasticity(Elemental):
    """Energy of fabric triangles.

    Attributes:
        vertices: (m, 6) corners and neighbor apexes; for a missing neighbor, the opposite corner.
        gradients: (m, 3, 2) shape gradients in thread coordinates [1/m].
        exists: (m, 3) flags of neighbors across the edges 01, 12 and 20.
        area: (m,) rest areas [m²].
        positions: (n, 3) positions at zero displacement [m].
        fabric: Fabric.
        material: Stiffness factor.
    """

    vertices: np.ndarray
    gradients: np.ndarray
    exists: np.ndarray
    area: np.ndarray
    positions: np.ndarray
    fabric: Fabric
    material: FabricMembrane = field(default_factory=FabricMembrane)

    name: ClassVar[str] = "fabric triangles"
    sheet: ClassVar[bool] = True

    @classmethod
    def from_mesh(
        cls,
        uv: np.ndarray,
        triangles: np.ndarray,
        fabric: Fabric,
        positions: np.ndarray,
        material: Any = None,
    ) -> Self:
        """Create the term.

        Args:
            uv: (m, 3, 2) corners of the triangles in thread coordinates, u along the first threads [m].
            triangles: (m, 3) vertices.
            fabric: Fabric.
            positions: (n, 3) positions at zero displacement [m].
            material: Stiffness factor; by default 1.
        """
        gradients, area = rest_shapes(uv)
        apexes, exists = find_neighbors(triangles)
        vertices = np.concatenate([triangles, apexes], axis=1).astype(np.int32)
        return cls(vertices, gradients, exists, area, positions, fabric, material or FabricMembrane())

    def remesh(self, triangles: np.ndarray, origin: np.ndarray, points: np.ndarray) -> Self:
        """Return this fabric on other triangles, without bending energy, which the finer mesh keeps."""
        threads = np.einsum("eai,eaj->eij", points[self.vertices[:, :3]], self.gradients)[origin]
        corners = points[triangles]
        uv = np.einsum("eji,eai->eaj", np.linalg.pinv(threads), corners - corners[:, :1])
        gradients, area = rest_shapes(uv)
        vertices = np.concatenate([triangles, triangles[:, [2, 0, 1]]], axis=1).astype(np.int32)
        no_neighbors = np.zeros(triangles.shape, bool)
        material: Any = of_elements(self.material, origin)
        return replace(
            self,
            vertices=vertices,
            gradients=gradients,
            exists=no_neighbors,
            area=area,
            positions=points,
            material=material,
        )

    def scale_thickness(self, share: float) -> Self:
        """Return this fabric with a fraction of its energy."""
        return replace(self, area=share * self.area)

    def rows(self, incidence: Incidence, start: np.ndarray) -> FabricRows:
        if incidence.dtype != np.float64:
            raise ValueError(
                "fabrics need precision='float64', because curvatures are differences of nearly equal "
                f"numbers; got {incidence.dtype.name!r}"
            )
        element, slot = incidence.element, incidence.slot
        order = ROTATED_CORNERS[slot]
        own, ids = incidence.corners(self.vertices, OTHER_CORNERS[slot])
        offsets = self.positions[ids] - self.positions[own][:, None]
        gradients = np.take_along_axis(self.gradients[element], order[:, 1:, None], axis=1)
        rest = [
            gradients.reshape(len(slot), 4),
            np.take_along_axis(self.exists[element], order, axis=1),
            self.area[element, None],
            (slot < 3)[:, None],
        ]
        return FabricRows(
            start,
            incidence.pack_ids(ids),
            incidence.pack(offsets.reshape(len(slot), 15)),
            incidence.pack(np.concatenate(rest, axis=1)),
            np.array([self.resting], incidence.dtype),
            data_of(self.fabric, incidence.dtype),
            pack_material(self.material, incidence.elements, incidence.dtype),
        )

    @property
    def resting(self) -> float:
        """ψ of the flat, unstretched fabric, without its constant [J/m²]."""
        return float(densities(self.fabric, np.zeros((1, 6)))[0][0]) - self.fabric.constant

    def strains(self, positions: np.ndarray) -> np.ndarray:
        """(m, 6) strains e₀ e₁ e₂ L_xx L_xy L_yy, for vertices at positions (n, 3) [m]."""
        return strains(positions[self.vertices], self.gradients, self.exists)

    def hessian_blocks(self, elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
        """A (Jᵀ ψ'' J + Σ ψ'ᵢ ∇²eᵢ), exact or its positive semi-definite projection.

        The bound is the projection with an added diagonal.
        """
        x = self.positions[self.vertices] + u[self.vertices, :3]
        _, slope, curve = densities(self.fabric, strains(x, self.gradients, self.exists), threads)
        first, second = strain_derivatives(x, self.gradients, self.exists)
        blocks = np.einsum("esai,est,etbj->eabij", first, curve, first, optimize=True)
        blocks += np.einsum("es,esabij->eabij", slope, second)
        blocks *= (self.area * self.material.stiffness)[:, None, None, None, None]
        if kind == "exact":
            return blocks
        blocks = positive_part(blocks)
        if kind == "bound":
            for k in range(6):
                size = np.trace(blocks[:, k, k], axis1=1, axis2=2)
                blocks[:, k, k] += (MIN_RELATIVE_STIFFNESS * size)[:, None, None] * np.eye(3)
        return blocks


def rest_shapes(uv: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shape gradients (m, 3, 2) [1/m] and areas (m,) [m²] of triangles (m, 3, 2) in thread coordinates."""
    edges = uv[:, 1:] - uv[:, :1]
    twice = np.linalg.det(edges)
    if not (twice > 0).all():
        raise ValueError(
            f"{int((~(twice > 0)).sum())} triangles have zero or negative area in the fabric, the first "
            f"is triangle {int(np.flatnonzero(~(twice > 0))[0])}; their uv coordinates [m] must be "
            "counter-clockwise"
        )
    others = np.linalg.inv(edges).transpose(0, 2, 1)
    return np.concatenate([-others.sum(axis=1, keepdims=True), others], axis=1), 0.5 * twice


def find_neighbors(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the neighbors of triangles.

    Returns:
        (m, 3) apexes of the neighbors across the edges 01, 12 and 20, or the triangle's own opposite corner
        at a border, and (m, 3) flags of existing neighbors.
    """
    vertices, owners = hinges_of(triangles)
    apexes, exists = triangles[:, [2, 0, 1]].copy(), np.zeros(triangles.shape, bool)
    for side, apex in ((0, 3), (1, 2)):
        start = vertices[:, side]
        owner = owners[:, side]
        edge = np.argmax(triangles[owner] == start[:, None], axis=1)
        apexes[owner, edge], exists[owner, edge] = vertices[:, apex], True
    return apexes, exists


@device_function
def _vertex_strains(rows, row, u, ui):
    """Strains as seen from the visiting corner, and True for corners of the triangle."""
    a, b = corner_vector(rows, row, u, ui, 0), corner_vector(rows, row, u, ui, 1)
    c, d = corner_vector(rows, row, u, ui, 2), corner_vector(rows, row, u, ui, 3)
    e = corner_vector(rows, row, u, ui, 4)
    own = load(rows.rest, row, 8) > 0.5
    zero = 0.0 * a[0]
    origin = (zero, zero, zero)
    x = (select3(own, origin, a), select3(own, a, b), select3(own, b, c), select3(own, c, origin), d, e)
    G, exists = shape_of(rows, row)
    return vertex_strains(x, G, exists), own


@device_function
def shape_of(rows, row):
    """Shape gradients of the three corners [1/m], and 1 for each edge with a neighbor."""
    r = rows.rest
    g, h = (load(r, row, 0), load(r, row, 1)), (load(r, row, 2), load(r, row, 3))
    return ((-(g[0] + h[0]), -(g[1] + h[1])), g, h), (load(r, row, 4), load(r, row, 5), load(r, row, 6))


@device_function
def stiff_area(rows, row):
    """Rest area times the stiffness factor [m²]."""
    area = load(rows.rest, row, 7)
    return area * load_material(rows.material, row, area).stiffness


@device_function
def _row_bound(fabric, H, i, a, b, c, d, e, f):
    """Σ |Hᵢⱼ| zⱼ/zᵢ, Gershgorin's bound of ψ'' along strain i."""
    z = scales_of(fabric)
    return (
        abs(H[a]) * z[0] + abs(H[b]) * z[1] + abs(H[c]) * z[2]
        + abs(H[d]) * z[3] + abs(H[e]) * z[4] + abs(H[f]) * z[5]
    ) / z[i]  # fmt: skip


@device_function
def scales_of(fabric):
    """Scales of the six strains, which make their second derivatives comparable."""
    z = fabric.scale
    return z[0], z[1], z[2], z[3], max(z[3], z[4]), z[4]


@device_function
def _add_outer(A, w, g):
    """A + w g gᵀ, symmetric as xx yy zz xy xz yz."""
    return (
        A[0] + w * g[0] * g[0],
        A[1] + w * g[1] * g[1],
        A[2] + w * g[2] * g[2],
        A[3] + w * g[0] * g[1],
        A[4] + w * g[0] * g[2],
        A[5] + w * g[1] * g[2],
    )


@vertex_force.of(FabricRows)
def _vertex_force(rows, row, u, ui):
    """f = -A Σ ψ'ᵢ ∇eᵢ, and A (Σ Dᵢ ∇eᵢ ∇eᵢᵀ + κ I).

    The diagonal matrix D bounds ψ''; κ bounds the contribution of the strains' second derivatives.
    """
    view, own = _vertex_strains(rows, row, u, ui)
    psi = density(rows.fabric, view.strain)
    area = stiff_area(rows, row)
    p, H = psi.first, psi.second
    zero = 0.0 * area
    is_apex = where(own, zero, zero + 1.0)
    apex, bends = scale(is_apex, view.at_apex), view.bends[0]
    is_corner = where(own, zero + 1.0, zero)
    J = (
        scale(is_corner, view.at_corner[0]),
        scale(is_corner, view.at_corner[1]),
        scale(is_corner, view.at_corner[2]),
        add(scale(is_corner, view.at_corner[3]), scale(bends[0], apex)),
        add(scale(is_corner, view.at_corner[4]), scale(bends[1], apex)),
        add(scale(is_corner, view.at_corner[5]), scale(bends[2], apex)),
    )
    f = add(add(scale(p[0], J[0]), scale(p[1], J[1])), scale(p[2], J[2]))
    f = add(f, add(add(scale(p[3], J[3]), scale(p[4], J[4])), scale(p[5], J[5])))
    A = (zero, zero, zero, zero, zero, zero)
    A = _add_outer(A, _row_bound(rows.fabric, H, 0, 0, 1, 2, 3, 4, 5), J[0])
    A = _add_outer(A, _row_bound(rows.fabric, H, 1, 1, 6, 7, 8, 9, 10), J[1])
    A = _add_outer(A, _row_bound(rows.fabric, H, 2, 2, 7, 11, 12, 13, 14), J[2])
    A = _add_outer(A, _row_bound(rows.fabric, H, 3, 3, 8, 12, 15, 16, 17), J[3])
    A = _add_outer(A, _row_bound(rows.fabric, H, 4, 4, 9, 13, 16, 18, 19), J[4])
    A = _add_outer(A, _row_bound(rows.fabric, H, 5, 5, 10, 14, 17, 19, 20), J[5])
    curvature = is_corner * _curvature_bound(view, p) + is_apex * _moment(p, view.bends[0]) * view.folds[3]
    across = curvature + MIN_RELATIVE_STIFFNESS * (A[0] + A[1] + A[2])
    return scale(-area, f), (
        area * (A[0] + across),
        area * (A[1] + across),
        area * (A[2] + across),
        area * A[3],
        area * A[4],
        area * A[5],
    )


@device_function
def _moment(p, bends):
    """|ψ_L : G Gᵀ|."""
    return abs(p[3] * bends[0] + p[4] * bends[1] + p[5] * bends[2])


@device_function
def _curvature_bound(view, p):
    in_plane = abs(p[0]) * view.curvature[0] + abs(p[1]) * view.curvature[1] + abs(p[2]) * view.curvature[2]
    first = _moment(p, view.bends[0]) * view.folds[0]
    second = _moment(p, view.bends[1]) * view.folds[1]
    return in_plane + 2.0 * (first + second + _moment(p, view.bends[2]) * view.folds[2])


@energy.of(FabricRows)
def _energy(rows, row, u, ui):
    view, _ = _vertex_strains(rows, row, u, ui)
    return stiff_area(rows, row) * (density(rows.fabric, view.strain).value - rows.resting[0])
