"""Barrier contacts between a vertex and a triangle, or between two edges; intersection-free.

E = k m b(d), where b = -(d - h)² ln(d/h) for distances d < h and 0 otherwise, is twice continuously
differentiable and infinite at d = 0 [IPC, Li et al. 2020, eq. 6, with d instead of d²]. The closest points of
nearly parallel edges jump from end to end. The mollifier m = (2 - c/ε) c/ε for c < ε, with c = |p × q|² of
two edges p and q, fades out these contacts; m is 1 for all others [IPC eq. 24].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, cross, dot, scale, select3, sub
from supple.algebra.symmetric import axial_and_isotropic
from supple.collision.geometry.closest_point import on_edges, on_triangle
from supple.kernels import device_function, load, where
from supple.terms.base.constraint import corner_vector, positive_part
from supple.terms.base.term import Elemental, Elements, Incidence, energy, vertex_force, write_incidence
from supple.terms.contact.barrier_friction import (
    Closest,
    FrictionData,
    FrictionResponse,
    add_friction,
    friction_energy,
    gap_at,
    write_friction,
)
from supple.terms.contact.barrier_hessian import ActiveContacts, barrier_forces, barrier_hessians

PARALLEL_TOLERANCE = 1e-3
"""ε relative to |p|² |q|² at rest."""

POINT, CORNER, END = 0, 1, 2
"""Roles of a visiting vertex: vertex near a triangle, corner of the triangle, or end of an edge."""

OTHER_CORNERS = np.array(
    [[[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]], [[1, 2, 3], [0, 2, 3], [3, 0, 1], [2, 0, 1]]]
)
"""Other corners as seen from each, for vertex-triangle and edge-edge contacts. First comes the vertex, seen
from a triangle corner, or the other end of the edge, seen from an end."""


class BarrierRows(NamedTuple):
    """Packed data of barrier contacts; zero in empty lanes.

    Attributes:
        start: (batches + 1,) first row of each batch.
        others: (rows, 3, lanes) ids of the other corners.
        offsets: (rows, 9, lanes) vectors to them from the visiting corner at zero displacement [m].
        data: (rows, 5, lanes) k [N/m], h [m], ε [m⁴], 1/l [1/m], and the role of the visiting vertex.
        friction_data: (rows, NUMBERS, lanes) friction data, see `FrictionData`, or ().
    """

    start: Any
    others: Any
    offsets: Any
    data: Any
    friction_data: Any = ()


class BarrierTables(NamedTuple):
    """Arrays of all barrier contacts.

    Attributes:
        vertices: (m, 4) corners.
        crossing: (m,) 1 for edge-edge contacts, otherwise 0.
        data: (m, 4) k [N/m], h [m], ε [m⁴] and 1/l [1/m].
        positions: (n, 3) positions of all vertices at zero displacement [m].
        others: `OTHER_CORNERS`.
        friction_data: `FrictionTables` or ().
    """

    vertices: Any
    crossing: Any
    data: Any
    positions: Any
    others: Any
    friction_data: Any


@dataclass(frozen=True, eq=False)
class Barriers(Elemental):
    """Barrier contacts.

    Attributes:
        vertices: (m, 4) a vertex and the corners of a triangle, or the ends of two edges.
        crossing: (m,) True for edge-edge contacts.
        stiffness: (m,) k [N/m].
        reach: (m,) barrier distance h [m].
        keys: (m,) integer identifiers.
        positions: (n, 3) positions at zero displacement [m].
        capacity: Largest number of contacts, or None.
        friction_data: Friction data, or None.
    """

    vertices: np.ndarray
    crossing: np.ndarray
    stiffness: np.ndarray
    reach: np.ndarray
    keys: np.ndarray
    positions: np.ndarray
    capacity: int | None = None
    friction_data: FrictionData | None = None

    name: ClassVar[str] = "barrier contacts"
    loads: ClassVar[bool] = True
    intersection_free: ClassVar[bool] = True
    family: ClassVar[str] = "contact"
    material: ClassVar[None] = None

    @property
    def stiffnesses(self) -> np.ndarray:
        return self.stiffness

    def rows(self, incidence: Incidence, start: np.ndarray) -> BarrierRows:
        element, slot = incidence.element, incidence.slot
        edges = self.crossing[element].astype(int)
        own, ids = incidence.corners(self.vertices, OTHER_CORNERS[edges, slot])
        offsets = (self.positions[ids] - self.positions[own][:, None]).reshape(len(slot), 9)
        role = np.where(edges == 1, END, np.where(slot == 0, POINT, CORNER))
        data = [self.stiffness[element], self.reach[element], self.fading[element], 1 / self.lengths[element]]
        friction: Any = ()
        if self.friction_data is not None:
            behind = (edges == 1) & (slot > 1)
            friction = incidence.pack(
                self.friction_data.rows(element, slot, OTHER_CORNERS[edges, slot], behind)
            )
        return BarrierRows(
            start,
            incidence.pack_ids(ids),
            incidence.pack(offsets),
            incidence.pack(np.stack([*data, role], axis=1).astype(float)),
            friction,
        )

    def tables(self, dtype: np.dtype) -> BarrierTables:
        data = np.stack([self.stiffness, self.reach, self.fading, 1 / self.lengths], axis=1)
        return BarrierTables(
            np.array(self.vertices, np.int32, order="C"),
            self.crossing.astype(np.int32),
            data.astype(dtype),
            self.positions,
            OTHER_CORNERS,
            () if self.friction_data is None else self.friction_data.tables(dtype),
        )

    @property
    def has_friction(self) -> bool:
        """True if any contact has friction."""
        return self.friction_data is not None

    @property
    def fading(self) -> np.ndarray:
        """(m,) ε [m⁴], 0 for vertex-triangle contacts."""
        p, q = (np.diff(self.positions[self.vertices[:, k]], axis=1)[:, 0] for k in ((0, 1), (2, 3)))
        return np.where(self.crossing, PARALLEL_TOLERANCE * (p**2).sum(axis=1) * (q**2).sum(axis=1), 0.0)

    @property
    def lengths(self) -> np.ndarray:
        """(m,) rest length of an edge of each contact [m]."""
        edge = np.diff(self.positions[self.vertices[:, 2:]], axis=1)[:, 0]
        return np.maximum(np.sqrt((edge**2).sum(axis=1)), 1e-30)

    def forces(self, positions: np.ndarray) -> np.ndarray:
        """(n, 3) forces on vertices at positions (n, 3) [m], including friction [N]."""
        active = self.active_contacts(positions)
        force = active.force
        if self.friction_data is not None:
            response = self.friction_response(positions, active)
            force = force + response.forces(positions[self.vertices[active.indices]], active.weights)
        total = np.zeros(positions.shape)
        np.add.at(total, self.vertices[active.indices], force)
        return total

    def contact_forces(self, positions: np.ndarray, rest: np.ndarray) -> np.ndarray:
        return self.forces(positions)

    def complementarity(self, positions: np.ndarray) -> float:
        """Σ λ d, the sum of normal forces times distances [J]."""
        normal_force, distance, _ = self.normal_forces(positions)
        return float((normal_force * distance).sum())

    def normal_forces(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """λ [N], d [m] and h [m] of the active contacts, (s,) each."""
        active = self.active_contacts(positions)
        gap = np.einsum("ma,mai->mi", active.weights, positions[self.vertices[active.indices]])
        return active.normal_force, np.sqrt((gap**2).sum(axis=1)), self.reach[active.indices]

    def active_contacts(self, positions: np.ndarray) -> ActiveContacts:
        """Active contacts at positions (n, 3) [m]."""
        return barrier_forces(
            positions[self.vertices], self.crossing, self.stiffness, self.reach, self.fading
        )

    def friction_response(self, positions: np.ndarray, active: ActiveContacts) -> FrictionResponse:
        """Friction of the active contacts."""
        assert self.friction_data is not None
        x = positions[self.vertices[active.indices]]
        return self.friction_data.where(active.indices).response(
            x, active.weights, active.normal, active.normal_force
        )

    def hessian_blocks(self, elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
        """Second derivatives of the active contacts.

        Exact, the positive semi-definite projection, or that with an added diagonal (bound).
        """
        x = self.positions[self.vertices] + u[self.vertices, :3]
        blocks = np.zeros((len(x), 4, 4, 3, 3))
        indices, exact, slope = barrier_hessians(x, self.crossing, self.stiffness, self.reach, self.fading)
        if kind != "exact":
            exact = positive_part(exact)
        if kind == "bound":
            for k in range(4):
                exact[:, k, k] += (slope / self.lengths[indices])[:, None, None] * np.eye(3)
        blocks[indices] = exact
        if self.friction_data is not None:
            displacements = np.asarray(u)[: len(self.positions), :3]  # the last padded vector is unused
            self._add_friction(blocks, self.positions + displacements.astype(float))
        return blocks

    def _add_friction(self, blocks: np.ndarray, positions: np.ndarray) -> None:
        """Add wᵃ wᵇ s (I - n nᵀ), for every kind of Hessian.

        Coulomb's law has no potential, so these blocks are the bound used by vertex updates.
        """
        active = self.active_contacts(positions)
        n, s = active.normal, self.friction_response(positions, active).tangential_stiffness
        across = s[:, None, None] * (np.eye(3) - np.einsum("mi,mj->mij", n, n))
        blocks[active.indices] += np.einsum("ma,mb,mij->mabij", active.weights, active.weights, across)


@write_incidence.of(BarrierTables)
def _write_incidence(tables, arrays, row, lane, element, slot):
    others, offsets, data = arrays[0], arrays[1], arrays[2]
    edges, own = tables.crossing[element], tables.vertices[element, slot]
    for k in range(3):
        other = tables.vertices[element, tables.others[edges, slot, k]]
        others[row, k, lane] = other
        for axis in range(3):
            offset = tables.positions[other, axis] - tables.positions[own, axis]
            offsets[row, 3 * k + axis, lane] = offset
    for k in range(4):
        data[row, k, lane] = tables.data[element, k]
    data[row, 4, lane] = END if edges == 1 else POINT if slot == 0 else CORNER
    write_friction(tables.friction_data, arrays[3:], row, lane, element, slot, tables.others, edges)


class ContactGeometry(NamedTuple):
    """A contact as seen from the visiting vertex.

    Attributes:
        weight: Weight of the visiting vertex at the closest points.
        gap: Vector between the closest points, from the other side to the visiting vertex's side [m].
        fade: Mollifier m.
        slope: ∂m/∂c.
        turn: ∂c/∂x of the visiting vertex.
        square: |q|² [m²].
        at: Closest points.
        corners: Vectors from the visiting vertex to the other corners [m].
    """

    weight: Any
    gap: Any
    fade: Any
    slope: Any
    turn: Any
    square: Any
    at: Any
    corners: Any


@device_function
def _contact_geometry(rows, row, u, ui):
    a, b = corner_vector(rows, row, u, ui, 0), corner_vector(rows, row, u, ui, 1)
    c = corner_vector(rows, row, u, ui, 2)
    role, limit = load(rows.data, row, 4), load(rows.data, row, 2)
    zero = 0.0 * role
    origin, point, face = (zero, zero, zero), role < 0.5, role < 1.5
    x, y, z = on_triangle(select3(point, origin, a), select3(point, a, origin), b, c)
    s, t = on_edges(origin, a, b, c)
    at = Closest(role, x, y, z, s, t)
    q = sub(c, b)
    normal = cross(a, q)
    limit_or_one = where(limit > 0.0, limit, zero + 1.0)
    ratio = where(face, zero + 1.0, min(dot(normal, normal) / limit_or_one, zero + 1.0))
    return ContactGeometry(
        where(face, where(point, zero + 1.0, -x), 1.0 - s),
        gap_at(at, a, b, c),
        (2.0 - ratio) * ratio,
        2.0 * (1.0 - ratio) / limit_or_one,
        scale(-2.0, cross(q, normal)),
        dot(q, q),
        at,
        (a, b, c),
    )


@device_function
def _barrier(rows, row, gap):
    """(k, d, b, b', b'') at the distance |gap|; k = 0 and finite values beyond the barrier distance."""
    d, h = math.sqrt(dot(gap, gap)), load(rows.data, row, 1)
    near = d < h
    one = 0.0 * d + 1.0
    d, h = where(near, d, one), where(near, h, one)
    y, log, k = d - h, math.log(d / h), load(rows.data, row, 0)
    r = y / d
    return where(near, k, 0.0 * k), d, -y * y * log, -y * (2.0 * log + r), r * r - 4.0 * r - 2.0 * log


@vertex_force.of(BarrierRows)
def _vertex_force(rows, row, u, ui):
    """f = -k (m b' w n + b m' ∂c), with an approximate bound.

    A = k (m b'' w² n nᵀ + (m |b'|/l + 2 m' (b |q|² + |b' w ∂c|)) I) contains the rotation of n and the
    curvature of c by magnitude only.
    """
    geometry = _contact_geometry(rows, row, u, ui)
    k, d, b, first, second = _barrier(rows, row, geometry.gap)
    n, w = scale(1.0 / d, geometry.gap), geometry.weight
    f = add(scale(geometry.fade * first * w, n), scale(b * geometry.slope, geometry.turn))
    rotation = b * geometry.square - first * abs(w) * math.sqrt(dot(geometry.turn, geometry.turn))
    across = k * (2.0 * geometry.slope * rotation - geometry.fade * first * load(rows.data, row, 3))
    A = axial_and_isotropic(k * geometry.fade * second * w * w, n, across)
    return add_friction(rows.friction_data, row, geometry, n, -k * geometry.fade * first, scale(-k, f), A)


@energy.of(BarrierRows)
def _energy(rows, row, u, ui):
    geometry = _contact_geometry(rows, row, u, ui)
    k, d, b, first, _ = _barrier(rows, row, geometry.gap)
    n, normal_force = scale(1.0 / d, geometry.gap), -k * geometry.fade * first
    return k * geometry.fade * b + friction_energy(
        rows.friction_data, row, geometry.at, geometry.gap, n, normal_force
    )
