"""Friction of barrier contacts: springs between sticking points, perpendicular to the normal.

The closest points of two surfaces at the distance d along n have the normal force λ = k m |b'(d)|. The slip
since the start of the step follows from the initial positions of the same points: o = o₀ + c - n (n · c),
with the change c of the vector between them. The friction force is t = -κ o if κ |o| ≤ μ λ, otherwise -μ λ
o/|o|. n, λ, o and the points belong to the same positions: nothing is lagged. The end of a spring moves only
during sliding, so a sticking contact does not creep (`supple.contact.state.friction_state`).

The closest points are at a distance d, so t alone would cause the torque gap × t. It is balanced by the
smallest forces with zero sum: ω × ρ on corners at ρ from their center, with ω from the torque as for a rigid
body of four points of equal mass. These forces are of the order of d/l times t.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.dirichlet_projection import symmetric_matvec
from supple.algebra.matrix3 import add, cross, dot, scale, select3, sub
from supple.collision.geometry.closest_point import between
from supple.collision.obstacles.contact_planes import is_empty
from supple.kernels import device_function, load, overload_by_type, where

BEGAN, SLIP, FRICTION, STIFFNESS, NUMBERS = 0, 9, 12, 13, 14
"""Offsets of the corners at the start of the step [m], o₀ [m], μ and κ [N/m] in the numbers of an incidence,
and their count."""

MIN_SLIP = 1e-30
"""Smallest slip length in a denominator [m]; zero slip has no direction."""

MIN_DETERMINANT = 1e-7
"""Smallest determinant of the inertia in units of its trace³. Nearly collinear corners, below it, keep part
of the torque along their line."""


class FrictionData(NamedTuple):
    """Friction data of m barrier contacts.

    Attributes:
        began: (m, 4, 3) corners at the start of the step [m].
        slip: (m, 3) o₀ [m].
        friction: (m,) friction coefficient μ.
        stiffness: (m,) κ [N/m].
    """

    began: np.ndarray
    slip: np.ndarray
    friction: np.ndarray
    stiffness: np.ndarray

    def rows(self, element: np.ndarray, own: np.ndarray, others: np.ndarray, behind: np.ndarray) -> Any:
        """Friction data of incidences.

        Args:
            element: (v,) contact of each incidence.
            own: (v,) visiting corner.
            others: (v, 3) other corners.
            behind: (v,) True if the visiting vertex belongs to the second edge, which reverses the slip.

        Returns:
            (v, NUMBERS) numbers.
        """
        began = self.began[element]
        own_position = np.take_along_axis(began, own[:, None, None], axis=1)
        offsets = np.take_along_axis(began, others[:, :, None], axis=1) - own_position
        slip = np.where(behind[:, None], -1.0, 1.0) * self.slip[element]
        columns = offsets.reshape(len(element), 9), slip, self.friction[element], self.stiffness[element]
        return np.column_stack(columns)

    def tables(self, dtype: np.dtype) -> FrictionTables:
        numbers = np.column_stack([self.slip, self.friction, self.stiffness]).astype(dtype)
        return FrictionTables(np.array(self.began, float, order="C"), numbers)

    def where(self, chosen: np.ndarray) -> FrictionData:
        """Select contacts."""
        return FrictionData(*(values[chosen] for values in self))

    def response(
        self, x: np.ndarray, w: np.ndarray, n: np.ndarray, normal_force: np.ndarray
    ) -> FrictionResponse:
        """Friction response.

        Args:
            x: (m, 4, 3) corners [m].
            w: (m, 4) signed weights of the corners at the closest points.
            n: (m, 3) normals.
            normal_force: (m,) normal forces λ [N].
        """
        c = np.einsum("ma,mai->mi", w, x - self.began) + self.slip
        o = c - (c * n).sum(axis=1)[:, None] * n
        length = np.sqrt((o * o).sum(axis=1))
        limit = self.friction * normal_force
        tangential_stiffness = np.minimum(self.stiffness, limit / np.maximum(length, MIN_SLIP))
        return FrictionResponse(
            o, tangential_stiffness, (normal_force > 0) & (self.stiffness * length > limit)
        )


class FrictionTables(NamedTuple):
    """Friction arrays of all barrier contacts: began (m, 4, 3) [m]; numbers (m, 5): o₀ [m], μ and κ [N/m]."""

    began: Any
    numbers: Any


def write_friction(
    friction_data: Any, arrays: Any, row: int, lane: int, element: int, slot: int, others: Any, edges: int
) -> None:
    """Pack the friction data of an incidence, like `FrictionData.rows`; does nothing for ()."""


@overload_by_type(write_friction)
def _write_friction(friction_data, arrays, row, lane, element, slot, others, edges):
    if is_empty(friction_data):
        return lambda friction_data, arrays, row, lane, element, slot, others, edges: None

    def write(friction_data, arrays, row, lane, element, slot, others, edges):
        for k in range(3):
            other = others[edges, slot, k]
            for axis in range(3):
                offset = friction_data.began[element, other, axis] - friction_data.began[element, slot, axis]
                arrays[0][row, BEGAN + 3 * k + axis, lane] = offset
        behind = edges == 1 and slot > 1
        for axis in range(3):
            slip = friction_data.numbers[element, axis]
            arrays[0][row, SLIP + axis, lane] = -slip if behind else slip
        arrays[0][row, FRICTION, lane] = friction_data.numbers[element, 3]
        arrays[0][row, STIFFNESS, lane] = friction_data.numbers[element, 4]

    return write


class FrictionResponse(NamedTuple):
    """Friction response of contacts.

    Attributes:
        slip: (m, 3) o [m].
        tangential_stiffness: (m,) tangential stiffness |t|/|o| [N/m].
        slides: (m,) True for sliding contacts.
    """

    slip: np.ndarray
    tangential_stiffness: np.ndarray
    slides: np.ndarray

    def forces(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        """(m, 4, 3) friction forces on corners at x (m, 4, 3), with zero sum and zero torque [N]."""
        t = -self.tangential_stiffness[:, None] * self.slip
        rho = x - x.mean(axis=1, keepdims=True)
        inertia = np.einsum("mai,mai->m", rho, rho)[:, None, None] * np.eye(3)
        inertia -= np.einsum("mai,maj->mij", rho, rho)
        torque = np.cross(np.einsum("ma,mai->mi", w, x), t)
        return w[:, :, None] * t[:, None] + np.cross(_balancing_rotation(inertia, torque)[:, None], rho)


def _balancing_rotation(inertia: np.ndarray, torque: np.ndarray) -> np.ndarray:
    """ω (m, 3) with I ω = -torque."""
    size = np.maximum(np.trace(inertia, axis1=1, axis2=2), MIN_SLIP)
    J = inertia / size[:, None, None]
    a, b, c = J[:, 0], J[:, 1], J[:, 2]
    cofactors = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=1)
    det = np.maximum((a * cofactors[:, 0]).sum(axis=1), MIN_DETERMINANT)
    return -np.einsum("mij,mj->mi", cofactors, torque) / (det * size)[:, None]


class Closest(NamedTuple):
    """Closest points: role of the visiting vertex, barycentric weights x, y, z, edge parameters s and t."""

    role: Any
    x: Any
    y: Any
    z: Any
    s: Any
    t: Any


@device_function
def gap_at(at, a, b, c):
    """Vector between fixed points of a stencil, from the other side to the visiting vertex's side [m].

    a, b and c are the vectors from the visiting vertex to the other corners [m].
    """
    zero = 0.0 * at.role
    origin, point = (zero, zero, zero), at.role < 0.5
    p, corner = select3(point, origin, a), select3(point, a, origin)
    from_face = sub(p, add(add(scale(at.x, corner), scale(at.y, b)), scale(at.z, c)))
    return select3(at.role < 1.5, from_face, sub(scale(at.s, a), between(at.t, b, c)))


@device_function
def _vector(friction_data, row, k):
    return load(friction_data, row, k), load(friction_data, row, k + 1), load(friction_data, row, k + 2)


@device_function
def _slip(friction_data, row, at, gap, n, normal_force):
    """(o, |o|, μ λ, |t|/|o|)."""
    began = gap_at(
        at,
        _vector(friction_data, row, BEGAN),
        _vector(friction_data, row, BEGAN + 3),
        _vector(friction_data, row, BEGAN + 6),
    )
    c = add(_vector(friction_data, row, SLIP), sub(gap, began))
    o = sub(c, scale(dot(n, c), n))
    length, limit = math.sqrt(dot(o, o)), load(friction_data, row, FRICTION) * normal_force
    return (
        o,
        length,
        limit,
        min(load(friction_data, row, STIFFNESS), limit / max(length, 0.0 * length + MIN_SLIP)),
    )


def add_friction(
    friction_data: Any, row: Any, geometry: Any, n: Any, normal_force: Any, f: Any, A: Any
) -> Any:
    """Add friction to (f, A) of a visiting vertex, see `ContactGeometry`; unchanged for ()."""


@overload_by_type(add_friction)
def _add_friction(friction_data, row, geometry, n, normal_force, f, A):
    if is_empty(friction_data):
        return lambda friction_data, row, geometry, n, normal_force, f, A: (f, A)
    return lambda friction_data, row, geometry, n, normal_force, f, A: _with_friction(
        friction_data, row, geometry, n, normal_force, f, A
    )


@device_function
def _with_friction(friction_data, row, geometry, n, normal_force, f, A):
    """f + w t + ω × ρ,  A + w² s (I - n nᵀ)."""
    o, _, _, s = _slip(friction_data, row, geometry.at, geometry.gap, n, normal_force)
    w = geometry.weight
    q = w * w * s
    t = scale(-s, o)
    f = add(f, add(scale(w, t), _balancing_force(geometry.corners, cross(geometry.gap, t))))
    return f, (
        A[0] + q * (1.0 - n[0] * n[0]),
        A[1] + q * (1.0 - n[1] * n[1]),
        A[2] + q * (1.0 - n[2] * n[2]),
        A[3] - q * n[0] * n[1],
        A[4] - q * n[0] * n[2],
        A[5] - q * n[1] * n[2],
    )


@device_function
def _plus_inertia(J, r):
    """J + |r|² I - r rᵀ, as xx yy zz xy xz yz."""
    x, y, z = r
    return (
        J[0] + y * y + z * z,
        J[1] + x * x + z * z,
        J[2] + x * x + y * y,
        J[3] - x * y,
        J[4] - x * z,
        J[5] - y * z,
    )


@device_function
def _balancing_force(corners, torque):
    """ω × ρ of the visiting vertex, with I ω = -torque; `corners` are the vectors to the other corners."""
    a, b, c = corners
    middle = scale(0.25, add(a, add(b, c)))
    zero = 0.0 * middle[0]
    J = _plus_inertia((zero, zero, zero, zero, zero, zero), middle)
    J = _plus_inertia(J, sub(a, middle))
    J = _plus_inertia(_plus_inertia(J, sub(b, middle)), sub(c, middle))
    trace = J[0] + J[1] + J[2]
    size = max(trace, 0.0 * trace + MIN_SLIP)
    xx, yy, zz, xy, xz, yz = J[0] / size, J[1] / size, J[2] / size, J[3] / size, J[4] / size, J[5] / size
    p, q, r = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
    det = xx * p + xy * q + xz * r
    K = p, xx * zz - xz * xz, xx * yy - xy * xy, q, r, xy * xz - xx * yz
    omega = scale(-1.0 / (max(det, 0.0 * det + MIN_DETERMINANT) * size), symmetric_matvec(K, torque))
    return cross(middle, omega)


def friction_energy(friction_data: Any, row: Any, at: Any, gap: Any, n: Any, normal_force: Any) -> Any:
    """Energy of sticking springs, or work of sliding at the present normal force [J]; 0 for ().

    The latter is not a potential, because the normal force changes.
    """


@overload_by_type(friction_energy)
def _friction_energy(friction_data, row, at, gap, n, normal_force):
    if is_empty(friction_data):
        return lambda friction_data, row, at, gap, n, normal_force: 0.0 * normal_force
    return lambda friction_data, row, at, gap, n, normal_force: _work(
        friction_data, row, at, gap, n, normal_force
    )


@device_function
def _work(friction_data, row, at, gap, n, normal_force):
    _, length, limit, s = _slip(friction_data, row, at, gap, n, normal_force)
    k = load(friction_data, row, STIFFNESS)
    slid = limit * (length - 0.5 * limit / max(k, 0.0 * k + MIN_SLIP))
    return where(k * length > limit, slid, 0.5 * s * length * length)
