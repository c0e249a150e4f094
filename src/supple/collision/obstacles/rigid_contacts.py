"""Rigid-body contact with obstacles and other rigid bodies: contact points and forces.

Contact points are surface points of balls, corners of boxes, sample points of other shapes, and edge-edge
points of two boxes. Corrections s of all rigid bodies minimize ½ sᵀ H s - rᵀ s, with H and r of
`RigidMotion.system`, subject to gaps g + Jₙ s ≥ 0. The solver is projected Gauss-Seidel on the forces λ ≥ 0,
with Coulomb friction |λₜ| ≤ μ λ against the slip of the step and the larger coefficient of both bodies.

Two boxes have clipped face contacts or edge-edge contacts. The separating axis test selects the direction of
largest separation among face normals and cross products of edges [Gottschalk et al. 1996]. For a face normal,
the most antiparallel face of the other box is clipped by the side planes of the reference face. The corners
of the clipped face are the contact points. All share one normal, so flush boxes cause no lateral forces at
their corners.

Along n = a × b of one edge of each, two boxes touch with these edges if both are extreme in that direction.
Boxes are convex, so they are disjoint if any direction separates them. Directions of largest separation count
[Gottschalk et al. 1996].
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from supple.collision.obstacles import signed_distance as sdf
from supple.collision.obstacles.rigid_body import ContactForces, Response, RigidMotion
from supple.collision.obstacles.signed_distance import (
    FRICTION,
    KIND,
    POSE,
    SIDE,
    SIZE,
    STEP,
    Shapes,
    distances_to,
)
from supple.kernels import device_function, kernel

EDGE_TOLERANCE = 0.02
"""Tolerance relative to the shortest half edge: distance of an edge from the extreme, and of a direction from
the best separation. Boxes in nearly flat contact then have several contact points."""

MIN_CROSS_PRODUCT = 1e-3
"""|a × b| below which edges are parallel."""


class Block(NamedTuple):
    """Geometry of a box.

    Attributes:
        center: (3,) center [m].
        axes: (3, 3) unit axes as rows.
        halves: (3,) half edge lengths [m].
        middles: (12, 3) midpoints of the edges [m].
        along: (12,) axis of each edge.
    """

    center: np.ndarray
    axes: np.ndarray
    halves: np.ndarray
    middles: np.ndarray
    along: np.ndarray

    def reach(self, n: np.ndarray) -> np.ndarray:
        """Support width (...): extent from the center along unit vectors n (..., 3) [m]."""
        return np.abs(n @ self.axes.T) @ self.halves


def block_of(row: np.ndarray) -> Block:
    """Geometry of the box in a parameter row of `Shapes`."""
    axes, center = row[POSE : POSE + 9].reshape(3, 3), row[POSE + 9 : POSE + 12]
    halves, along = np.asarray(row[SIZE : SIZE + 3], float), np.repeat(np.arange(3), 4)
    signs = np.zeros((12, 3))
    for axis in range(3):
        others = [k for k in range(3) if k != axis]
        signs[4 * axis : 4 * axis + 4, others] = [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    return Block(center, axes, halves, center + (signs * halves) @ axes, along)


def separations(a: Block, b: Block) -> tuple[np.ndarray, np.ndarray]:
    """Separations of two boxes along all candidate axes [m], negative for overlap.

    Returns:
        (6,) along the face normals of a, then of b; (k,) along cross products of edges, without parallel
        edges.
    """
    cross = np.cross(a.axes[:, None], b.axes[None]).reshape(9, 3)
    length = np.sqrt((cross * cross).sum(axis=1))
    crossing = cross[length > MIN_CROSS_PRODUCT] / length[length > MIN_CROSS_PRODUCT, None]
    return np.concatenate([_separation(a, b, a.axes), _separation(a, b, b.axes)]), _separation(a, b, crossing)


def crossing_edges(one: np.ndarray, other: np.ndarray) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Edge-edge contacts of two boxes.

    Args:
        one: Row of the first box in `Shapes`.
        other: Row of the second box.

    Yields:
        Contact point [m], gap [m] and unit normal toward the first box.
    """
    a, b = block_of(one), block_of(other)
    slack = EDGE_TOLERANCE * min(a.halves.min(), b.halves.min())
    cross = np.cross(a.axes[:, None], b.axes[None])
    length = np.linalg.norm(cross, axis=2)
    crossing = cross[length > MIN_CROSS_PRODUCT] / length[length > MIN_CROSS_PRODUCT][:, None]
    best = max(_separation(a, b, n).max(initial=-np.inf) for n in (a.axes, b.axes, crossing))
    for i, j in zip(*np.nonzero(length > MIN_CROSS_PRODUCT), strict=True):
        n = cross[i, j] / length[i, j]
        n = n if n @ (a.center - b.center) >= 0 else -n
        if _separation(a, b, n) >= best - slack:
            yield from _crossings(a, b, i, j, n, slack)


def _separation(a: Block, b: Block, n: np.ndarray) -> np.ndarray:
    """Separation [m] of two boxes along unit vectors n (..., 3), negative for overlap."""
    return np.abs(n @ (a.center - b.center)) - a.reach(n) - b.reach(n)


def _crossings(
    a: Block, b: Block, i: int, j: int, n: np.ndarray, slack: float
) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Edge pairs along axis i of a and axis j of b, both extreme along n, which points from b to a."""
    first, last = n @ a.center - a.reach(n), n @ b.center + b.reach(n)
    d, e = a.axes[i], b.axes[j]
    c = float(d @ e)
    for p in a.middles[(a.along == i) & (a.middles @ n <= first + slack)]:
        for q in b.middles[(b.along == j) & (b.middles @ n >= last - slack)]:
            w = p - q
            s, t = (c * (e @ w) - d @ w) / (1 - c * c), (e @ w - c * (d @ w)) / (1 - c * c)
            if abs(s) <= a.halves[i] and abs(t) <= b.halves[j]:
                yield 0.5 * (p + s * d + q + t * e), float(n @ w), n


FACE_TOLERANCE = 1e-3
"""Advantage in separation, relative to the shortest half edge, that edges need over faces."""


def box_contact_points(one: np.ndarray, other: np.ndarray) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Contact points of two boxes.

    Args:
        one: Row of the first box in `Shapes`.
        other: Row of the second box.

    Yields:
        Contact point [m], gap [m], negative for overlap, and unit normal toward the first box.
    """
    a, b = block_of(one), block_of(other)
    of_faces, of_edges = separations(a, b)
    slack = FACE_TOLERANCE * min(a.halves.min(), b.halves.min())
    if of_edges.max(initial=-np.inf) > of_faces.max() + slack:
        yield from crossing_edges(one, other)
        return
    axis = int((of_faces - slack * (np.arange(6) >= 3)).argmax())  # ties go to the first box
    reference, incident, sign = (a, b, -1.0) if axis < 3 else (b, a, 1.0)
    for point, gap, normal in _above_face(reference, axis % 3, incident):
        yield point, gap, sign * normal


def _above_face(
    reference: Block, axis: int, incident: Block
) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Contact points of a box over a face of another: point, gap and outward face normal."""
    offset = incident.center - reference.center
    normal = reference.axes[axis] * (1.0 if reference.axes[axis] @ offset >= 0 else -1.0)
    polygon = _opposite_face(incident, normal) - reference.center
    for side in (k for k in range(3) if k != axis):
        for direction in (reference.axes[side], -reference.axes[side]):
            polygon = _clip_polygon(polygon, direction, float(reference.halves[side]))
    for corner in polygon:
        gap = float(corner @ normal - reference.halves[axis])
        yield reference.center + corner - 0.5 * gap * normal, gap, normal


def _opposite_face(box: Block, normal: np.ndarray) -> np.ndarray:
    """(4, 3) corners [m], in order, of the face most antiparallel to a normal."""
    along = box.axes @ normal
    axis = int(np.abs(along).argmax())
    one, two = (box.halves[k] * box.axes[k] for k in range(3) if k != axis)
    middle = box.center - np.sign(along[axis]) * box.halves[axis] * box.axes[axis]
    return middle + np.array([one + two, one - two, -one - two, two - one])


def _clip_polygon(polygon: np.ndarray, direction: np.ndarray, limit: float) -> np.ndarray:
    """Clip a polygon (k, 3) to the half space direction · x ≤ limit."""
    heights = (polygon @ direction - limit).tolist() if len(polygon) else []
    if all(height <= 0 for height in heights):
        return polygon
    corners = []
    for k, height in enumerate(heights):
        before = heights[k - 1]
        if (height <= 0) != (before <= 0):
            corners.append(polygon[k - 1] + before / (before - height) * (polygon[k] - polygon[k - 1]))
        if height <= 0:
            corners.append(polygon[k])
    return np.array(corners).reshape(-1, 3)


MAX_SWEEPS, CORRECTION_TOLERANCE = 20_000, 1e-13
"""Maximum number of Gauss-Seidel sweeps, and relative change of corrections per sweep for convergence. If
many points share a load, corrections converge long before forces. Close to the friction limit that takes
thousands of sweeps; the remaining slip would be creep."""

CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
"""Corners of the box [-1, 1]³."""

RIM_ANGLES = np.linspace(0, 2 * np.pi, 16, endpoint=False)
"""Angles of the sample points on the rim of a cylinder [rad]."""


class RigidContact(NamedTuple):
    """Contact of a rigid body, active or possible.

    Attributes:
        point: Contact point [m].
        gap: Gap [m], negative for overlap.
        normal: Unit normal toward the body.
        body: Rigid body.
        other: Second rigid body, or -1.
        shape: Shape of the other side.
        friction: Friction coefficient μ.
    """

    point: np.ndarray
    gap: float
    normal: np.ndarray
    body: int
    other: int
    shape: int
    friction: float


def sample_points(row: np.ndarray) -> tuple[np.ndarray, float]:
    """Contact sample points of a shape.

    Args:
        row: Parameter row of the shape.

    Returns:
        Points (k, 3) in the frame of the shape [m], and radius of the ball around each [m]. Planes, meshes
        and inverted shapes have none.
    """
    a, b, c = row[SIZE : SIZE + 3]
    if row[SIDE] < 0:
        return np.empty((0, 3)), 0.0
    if row[KIND] == sdf.CAPSULE:
        return np.outer(np.linspace(-a, a, 9 if a > 0 else 1), [0, 0, 1]), float(b)
    if row[KIND] == sdf.BOX:
        return CORNERS * [a, b, c], 0.0
    if row[KIND] == sdf.CYLINDER:
        rim = np.stack([b * np.cos(RIM_ANGLES), b * np.sin(RIM_ANGLES)], axis=1)
        return np.concatenate([np.insert(rim, 2, z, axis=1) for z in (-a, a)]), 0.0
    return np.empty((0, 3)), 0.0


def find_contacts(motions: list[RigidMotion], shapes: Shapes, near: float) -> list[RigidContact]:
    """Find contacts of rigid bodies with gaps below `near` [m].

    Contact points and normals of two rigid bodies belong to the start of the step. This conserves angular
    momentum, since action and reaction share one point.

    Args:
        motions: Motions of all rigid bodies.
        shapes: Obstacle shapes.
        near: Largest gap [m].
    """
    rigid = {motion.body.row: k for k, motion in enumerate(motions)}
    began = Shapes(shapes.rows.copy(), shapes.values)
    for motion in motions:
        began.rows[motion.body.row, POSE : POSE + 12] = motion.start_frame
    contacts: list[RigidContact] = []
    for k, motion in enumerate(motions):
        own = motion.body.row
        for shape in range(len(shapes.rows)):
            other = rigid.get(shape, -1)
            if shape == own or 0 <= other < k:
                continue
            mu = float(max(shapes.rows[own, FRICTION], shapes.rows[shape, FRICTION]))
            pairs = list(_shape_contacts(began, own, shape)) if other >= 0 else []
            if not pairs:
                pairs = list(_shape_contacts(shapes, own, shape))
                if other >= 0:
                    pairs = [_at_step_start(motion, motions[other], *each) for each in pairs]
            contacts += [
                RigidContact(point, gap, normal, k, other, shape, mu) for point, gap, normal in pairs
            ]
    return [each for each in contacts if _gap(motions, shapes, each)[0] < near]


def _at_step_start(
    one: RigidMotion, other: RigidMotion, point: np.ndarray, gap: float, normal: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray]:
    """Transform a contact of two rigid bodies to the start of the step."""
    start_point = point - 0.5 * (one.displacement_to(point) + other.displacement_to(point))
    return (
        start_point,
        gap - float(normal @ (one.displacement_from(start_point) - other.displacement_from(start_point))),
        normal,
    )


def _shape_contacts(shapes: Shapes, one: int, other: int) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Contact points, gaps and normals toward the first shape, from the sample points of both shapes."""
    if all(_solid_box(shapes.rows[row]) for row in (one, other)):
        yield from box_contact_points(shapes.rows[one], shapes.rows[other])
        return
    yield from _sampled_contacts(shapes, one, other)
    for point, gap, normal in _sampled_contacts(shapes, other, one):
        yield point, gap, -normal


def _solid_box(row: np.ndarray) -> bool:
    """True for an ordinary box, False for an inverted one."""
    return bool(row[KIND] == sdf.BOX and row[SIDE] > 0)


def _sampled_contacts(shapes: Shapes, one: int, other: int) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Contact points, gaps and normals toward the first shape, from its own sample points."""
    points, radius = sample_points(shapes.rows[one])
    if not len(points):
        return
    axes, origin = shapes.rows[one, POSE : POSE + 9].reshape(3, 3), shapes.rows[one, POSE + 9 : POSE + 12]
    x = origin + points @ axes
    d, normals, _ = distances_to(Shapes(shapes.rows[other : other + 1], shapes.values), x)
    for p, gap, n in zip(x, d - radius, normals, strict=True):
        yield p - (radius + 0.5 * gap) * n, float(gap), n


def corrections(
    motions: list[RigidMotion],
    contact_forces: list[ContactForces],
    shapes: Shapes,
    responses: Sequence[Response | None],
) -> np.ndarray:
    """Corrections of all rigid bodies under contact forces and mutual contacts.

    Args:
        motions: Motions of all rigid bodies.
        contact_forces: Contact forces of soft bodies on each.
        shapes: Obstacle shapes.
        responses: Condensed response of soft bodies to each, or None.

    Returns:
        s (k, 6): translations [m] and rotations [rad] that satisfy the equations of motion.
    """
    each = zip(motions, contact_forces, responses, strict=True)
    systems = [motion.system(force, response) for motion, force, response in each]
    inverse = np.linalg.inv(np.stack([H for H, _ in systems]))
    free = np.einsum("kij,kj->ki", inverse, np.stack([residual for _, residual in systems]))
    reach = [motion.reach for motion in motions]
    max_motion = max(
        np.linalg.norm(s[:3]) + r * np.linalg.norm(s[3:]) for s, r in zip(free, reach, strict=True)
    )
    contacts = find_contacts(motions, shapes, float(2 * max_motion + 0.1 * min(reach)))
    if not contacts:
        return free
    bodies = np.array([(each.body, each.other) for each in contacts])
    J = _directions(motions, contacts, bodies)
    gaps = np.stack([_gap(motions, shapes, each) for each in contacts])
    steps = free.copy()
    solve_contact_forces(steps, inverse, bodies, J, gaps, np.array([each.friction for each in contacts]))
    return steps


def _directions(motions: list[RigidMotion], contacts: list[RigidContact], bodies: np.ndarray) -> np.ndarray:
    """(c, 2, 3, 6) Jacobian of gaps and slips with respect to the corrections s of both bodies."""
    pairs = bodies[:, 1] >= 0
    now, began = (np.stack(each) for each in zip(*((m.center, m.start) for m in motions), strict=True))
    centers = np.where(pairs[:, None, None], began[bodies], now[bodies])
    arms = np.stack([each.point for each in contacts])[:, None] - centers
    axes = np.broadcast_to(
        np.stack([_frame(each.normal) for each in contacts])[:, None], (len(contacts), 2, 3, 3)
    )
    J = np.concatenate([axes, np.cross(arms[:, :, None], axes)], axis=3)
    J[:, 1] *= -1
    J[~pairs, 1] = 0
    return J


def _frame(n: np.ndarray) -> np.ndarray:
    """n and two perpendicular unit vectors, as rows."""
    axis = np.zeros(3)
    axis[np.abs(n).argmin()] = 1.0
    first = axis - n * (axis @ n)
    first /= np.sqrt(first @ first)
    (a, b, c), (x, y, z) = n.tolist(), first.tolist()
    return np.array([n, first, (b * z - c * y, c * x - a * z, a * y - b * x)])


def _gap(motions: list[RigidMotion], shapes: Shapes, contact: RigidContact) -> np.ndarray:
    """(3,) gap and slips of the body in the step so far [m]."""
    if contact.other >= 0:
        displacement = [
            motions[number].displacement_from(contact.point) for number in (contact.body, contact.other)
        ]
        return np.array([contact.gap, 0, 0]) + _frame(contact.normal) @ (displacement[0] - displacement[1])
    R = shapes.rows[contact.shape, STEP : STEP + 9].reshape(3, 3)
    displacement = contact.point - R.T @ (contact.point - shapes.rows[contact.shape, STEP + 9 : STEP + 12])
    slips = _frame(contact.normal) @ (motions[contact.body].displacement_to(contact.point) - displacement)
    return np.array([contact.gap, slips[1], slips[2]])


def solve_contact_forces(
    steps: np.ndarray,
    inverse: np.ndarray,
    bodies: np.ndarray,
    J: np.ndarray,
    gaps: np.ndarray,
    friction: np.ndarray,
) -> None:
    """Solve for contact forces by projected Gauss-Seidel: gaps + J s ≥ 0, friction within its cone.

    Args:
        steps: (k, 6) corrections s without forces; overwritten by corrections with forces.
        inverse: (k, 6, 6) H⁻¹ of each body.
        bodies: (c, 2) both bodies of each contact, -1 for none.
        J: (c, 2, 3, 6) Jacobian of the gap and the two slips of each contact.
        gaps: (c, 3) gaps and slips at s = 0 [m].
        friction: (c,) friction coefficients μ.
    """
    yields = np.einsum("cbij,cbdj->cbdi", inverse[bodies], J)  # J is 0 without a second body
    own = np.einsum("cbdi,cbdi->cd", J, yields)
    own[:, 1] = own[:, 2] = own[:, 1:].max(axis=1)
    forces, free, previous_steps = np.zeros_like(gaps), steps.copy(), steps.copy()
    _solve_contact_forces(steps, bodies, J, yields, own, gaps, friction, forces, free, previous_steps)


@kernel
def _solve_contact_forces(steps, bodies, J, yields, own, gaps, friction, forces, free, previous_steps):
    for _ in range(MAX_SWEEPS):
        for k in range(len(steps)):
            for i in range(6):
                previous_steps[k, i] = steps[k, i]
        for c in range(len(gaps)):
            normal = max(0.0, forces[c, 0] - _slip(steps, bodies, J, gaps, c, 0) / own[c, 0])
            _apply_force(steps, bodies, yields, c, 0, normal - forces[c, 0])
            forces[c, 0] = normal
            if friction[c] > 0.0:
                one = forces[c, 1] - _slip(steps, bodies, J, gaps, c, 1) / own[c, 1]
                two = forces[c, 2] - _slip(steps, bodies, J, gaps, c, 2) / own[c, 2]
                most, size = friction[c] * normal, math.sqrt(one * one + two * two)
                part = most / size if size > most else 1.0
                _apply_force(steps, bodies, yields, c, 1, part * one - forces[c, 1])
                _apply_force(steps, bodies, yields, c, 2, part * two - forces[c, 2])
                forces[c, 1], forces[c, 2] = part * one, part * two
        if _have_converged(steps, previous_steps, free, 0) and _have_converged(
            steps, previous_steps, free, 3
        ):
            break


@device_function
def _have_converged(steps, previous_steps, free, first):
    """True if translations, or rotations, of all bodies have converged."""
    displacement, largest = 0.0, 0.0
    for k in range(len(steps)):
        for i in range(first, first + 3):
            displacement = max(displacement, abs(steps[k, i] - previous_steps[k, i]))
            largest = max(largest, max(abs(steps[k, i] - free[k, i]), abs(free[k, i])))
    return displacement <= CORRECTION_TOLERANCE * largest


@device_function
def _slip(steps, bodies, J, gaps, c, d):
    """Gap (d = 0) or slip (d = 1, 2) of a contact after corrections s."""
    total = gaps[c, d]
    for side in range(2):
        k = bodies[c, side]
        if k >= 0:
            for i in range(6):
                total += J[c, side, d, i] * steps[k, i]
    return total


@device_function
def _apply_force(steps, bodies, yields, c, d, force):
    """Apply a force component of a contact to the corrections of both bodies."""
    for side in range(2):
        k = bodies[c, side]
        if k >= 0:
            for i in range(6):
                steps[k, i] += yields[c, side, d, i] * force
