"""Report of obstacle contact after a solve: contact forces per body and per obstacle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import dot, sub
from supple.collision import distance, nearest
from supple.collision.obstacles.signed_distance import OBSTACLE
from supple.contact.state.contact_report import (
    ContactReport,
    FacePenetration,
    FacePenetrationReport,
    Force,
    ObstacleContact,
    ObstacleContactReport,
    PinnedOverlap,
    VertexPassage,
)
from supple.contact.state.face_penetration import face_search_of, find_pinned_overlaps
from supple.contact.state.obstacle_kernels import vector_at
from supple.kernels import (
    do,
    item_number,
    kernel,
    lane_stride,
    member_of,
    parallel_for,
    vector_offset,
    warp_max,
    warp_sum,
)
from supple.problem.reductions import Cuts, cut
from supple.problem.vertex_kernels import apply_operation, for_each

if TYPE_CHECKING:
    from supple.contact.state.obstacle_contact import Contacts
    from supple.problem.problem import Problem


AMOUNT, DEPTH, FIELDS = 3, 4, 5
"""Columns of the sums after the three components of the force [N].

AMOUNT is Σ λ |g| [J] for a body, and the number of vertices pushed for an obstacle. DEPTH is the depth [m] of
the deepest vertex in an obstacle, negative outside.
"""

NO_OBSTACLE_DISTANCE = 1e300
"""Distance [m] without an obstacle: finite, since GPU kernels need not support infinity."""


class FindNearest(NamedTuple):
    """Operation that finds the nearest obstacle of every vertex.

    Attributes:
        u: Displacements [m].
        rest: (n + 1, 4) rest positions [m].
        counts: (n,) 0 for vertices that are ignored.
        shapes, planes, which: Obstacle contact, see `Detect`.
        gap: (batch (n + 1),) distance from the nearest shape [m], written.
        obstacle: (batch (n + 1),) obstacle of that shape, -1 for ignored vertices, written.
    """

    u: Any
    rest: Any
    counts: Any
    shapes: Any
    planes: Any
    which: Any
    gap: Any
    obstacle: Any


@apply_operation.of(FindNearest)
def _find_nearest(seen, item, i):
    k = i + vector_offset(item)
    X, u = vector_at(seen.rest, i), vector_at(seen.u, k)
    x = (X[0] + u[0], X[1] + u[1], X[2] + u[2])
    shape, _, _ = nearest(seen.shapes, x)
    seen.obstacle[k] = -1
    if shape >= 0 and seen.counts[i] != 0:
        d, _ = distance(seen.shapes, shape, x)
        seen.gap[k], seen.obstacle[k] = d, int(seen.shapes.rows[shape, OBSTACLE])


class ContactParts(NamedTuple):
    """Sums over every block of vertices.

    The result `parts` (batch, 1 + obstacles, FIELDS, blocks) has the sums of the body first, then those of
    each obstacle.
    """

    seen: Any
    cuts: Any
    parts: Any


@do.of(ContactParts)
def _contact_part(work, item):
    seen, vertex, parts = work.seen, work.cuts.vertex, work.parts
    part = item_number(item) // parts.shape[1]
    column = item_number(item) - part * parts.shape[1]
    member, start = member_of(item), vector_offset(item)
    begin, step = lane_stride(item)
    fx, fy, fz, amount, most = 0.0, 0.0, 0.0, 0.0, -NO_OBSTACLE_DISTANCE
    v = vertex[part] + begin
    while v < vertex[part + 1]:
        k = start + v
        for j in range(len(seen.planes.normal)):
            shape = seen.which[k, j]
            if column == 0 or (shape >= 0 and seen.shapes.rows[shape, OBSTACLE] == column - 1):
                n, f = vector_at(seen.planes.normal[j], k), vector_at(seen.planes.reaction[j], k)
                fx, fy, fz = fx + f[0], fy + f[1], fz + f[2]
                normal_force = dot(n, f)
                if column == 0:
                    amount += abs(
                        normal_force
                        * dot(n, sub(vector_at(seen.u, k), vector_at(seen.planes.closest_point[j], k)))
                    )
                elif normal_force > 0.0:
                    amount += 1.0
        if column > 0 and seen.obstacle[k] == column - 1:
            most = max(most, -seen.gap[k])
        v += step
    fx, fy, fz = warp_sum(item, fx), warp_sum(item, fy), warp_sum(item, fz)
    amount, most = warp_sum(item, amount), warp_max(item, most)
    if begin == 0:
        parts[member, column, 0, part], parts[member, column, 1, part] = fx, fy
        parts[member, column, 2, part], parts[member, column, AMOUNT, part] = fz, amount
        parts[member, column, DEPTH, part] = most


class JoinContacts(NamedTuple):
    """Reduce blocks to sums (batch, bodies + obstacles, FIELDS): per body, then per obstacle."""

    cuts: Any
    parts: Any
    sums: Any


@do.of(JoinContacts)
def _join_contacts(work, item):
    parts, member, row = work.parts, member_of(item), item_number(item)
    bodies = len(work.cuts.part) - 1
    column, first, last = row - bodies + 1, 0, len(work.cuts.vertex) - 1
    if row < bodies:
        column, first, last = 0, work.cuts.part[row], work.cuts.part[row + 1]
    begin, step = lane_stride(item)
    for field in range(FIELDS):
        total, most = 0.0, -NO_OBSTACLE_DISTANCE
        k = first + begin
        while k < last:
            total += parts[member, column, field, k]
            most = max(most, parts[member, column, field, k])
            k += step
        total, most = warp_sum(item, total), warp_max(item, most)
        if begin == 0:
            work.sums[member, row, field] = most if field == DEPTH else total


@kernel
def sum_contacts(team, seen, cuts, parts, sums):
    """Sum contact forces of obstacles per body, and of bodies per obstacle."""
    for_each(team, 0, (len(seen.counts),), (seen,))
    pieces = len(cuts.vertex) - 1
    parallel_for(team, 1, 0, pieces * parts.shape[1], ContactParts(seen, cuts, parts))
    parallel_for(team, 2, 0, sums.shape[1], JoinContacts(cuts, parts, sums))


class FaceForces(NamedTuple):
    """Contact forces of obstacles on faces, in addition to those on vertices.

    Attributes:
        of_obstacles: (o, 3) forces of obstacles [N].
        contacts: (o,) number of points that each pushes.
        on_bodies: (b, 3) forces on bodies [N].
        amount: (b,) Σ λ |g| [J].
    """

    of_obstacles: np.ndarray
    contacts: np.ndarray
    on_bodies: np.ndarray
    amount: np.ndarray


class ContactSums:
    """Contact sums of a problem, with their work memory."""

    def __init__(self, contacts: Contacts) -> None:
        model, device, obstacles = contacts.model, contacts.device, contacts.obstacles
        assert obstacles is not None
        self._device, self._bodies = device, len(model.body_vertices)
        records, others = len(contacts.states.u), len(obstacles.names)
        near = device.zeros((records,), np.dtype(float)), device.zeros((records,), np.dtype(np.int32))
        counts = model.free.astype(np.int32)
        arrays = contacts.shapes, contacts.planes, contacts.which
        self._seen = FindNearest(contacts.states.u, contacts.rest, counts, *arrays, *near)
        self._cuts: Cuts = cut([(own.start, own.stop) for _, own in model.body_vertices])
        pieces = len(self._cuts.vertex) - 1
        self._parts = device.zeros((device.batch_size, 1 + others, FIELDS, pieces), np.dtype(float))
        self._sums = np.zeros((device.batch_size, self._bodies + others, FIELDS))

    def evaluate(self) -> tuple[np.ndarray, np.ndarray]:
        """Sum the last evaluated reactions at the present u.

        Returns:
            Sums (batch, bodies, FIELDS) and (batch, obstacles, FIELDS).
        """
        self._device.run(sum_contacts, 3, self._seen, self._cuts, self._parts, self._sums)
        self._device.download(self._sums)
        return self._sums[:, : self._bodies], self._sums[:, self._bodies :]


def sums_of(contacts: Contacts) -> ContactSums:
    """`ContactSums` of the contacts, created on first use and kept while the batch size is unchanged."""
    if contacts.sums is None:
        contacts.sums = ContactSums(contacts)
    return contacts.sums


Sums = tuple[float, float, float, float, float]


def report_obstacle_contact(problem: Problem, evaluated: bool = False) -> list[ContactReport | None]:
    """Report the obstacle contact of every batch member at its present displacements.

    Args:
        problem: Problem to report on.
        evaluated: True if the last evaluated forces are those of the present state.

    Returns:
        Reports with `obstacles` and `faces`, one per batch member; None without obstacles.
    """
    if problem.contacts.obstacles is None:
        return [None] * problem.batch_size
    active, problem.device.active = problem.device.active, np.arange(problem.batch_size, dtype=np.int32)
    if not evaluated:
        problem.diagnostics.balances()  # also evaluates the reactions of the planes
    bodies, obstacles = sums_of(problem.contacts).evaluate()
    for _, dynamic_term in problem.model.dynamic_terms:
        if getattr(dynamic_term, "resolves_faces", False):
            bodies, obstacles = with_faces(dynamic_term.face_forces(problem), bodies, obstacles)
    faces = face_search_of(problem.contacts).search(problem.batch_size)
    overlaps = find_pinned_overlaps(problem.contacts)
    problem.device.active = active
    names = [name for name, _ in problem.model.body_vertices]
    passages = problem.contacts.paths.passages()
    each = zip(bodies.tolist(), obstacles.tolist(), _with_pinned(faces, overlaps), passages, strict=True)
    return [_member_report(names, problem.contacts.obstacles.names, *member) for member in each]


def _with_pinned(
    faces: list[list[FacePenetration]], overlaps: list[tuple[int, PinnedOverlap]]
) -> list[list[FacePenetration]]:
    """Add overlaps of rigid bodies with pinned parts to the penetrated faces."""
    entries = [list(each) for each in faces]
    for obstacle, overlap in overlaps:
        entry = entries[0][obstacle]
        depth = max(entry.max_penetration, overlap.penetration)
        entries[0][obstacle] = FacePenetration(entry.name, entry.count + 1, depth, overlap)
    return entries


def with_faces(
    face_forces: FaceForces, bodies: np.ndarray, obstacles: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Add the contact forces on faces to the sums, for batch size 1."""
    of_bodies = np.column_stack(
        [face_forces.on_bodies, face_forces.amount, np.zeros(len(face_forces.amount))]
    )
    others = np.column_stack(
        [face_forces.of_obstacles, face_forces.contacts, np.zeros(len(face_forces.contacts))]
    )
    return bodies + of_bodies, obstacles + others


def _member_report(
    bodies: Sequence[str],
    obstacles: Sequence[str],
    on_bodies: list[Sums],
    on_obstacles: list[Sums],
    faces: list[FacePenetration],
    passages: tuple[VertexPassage, ...],
) -> ContactReport:
    """Assemble the report of one batch member from sums, see `ContactSums`, faces and passages."""
    contacts = []
    for name, (fx, fy, fz, count, most) in zip(obstacles, on_obstacles, strict=True):
        gap = max(0.0, -most) if most > -NO_OBSTACLE_DISTANCE else None
        contacts.append(ObstacleContact(name, int(count), (-fx, -fy, -fz), max(0.0, most), gap))
    forces: dict[str, Force] = {
        name: (fx, fy, fz) for name, (fx, fy, fz, _, _) in zip(bodies, on_bodies, strict=True)
    }
    complementarity = sum(one[AMOUNT] for one in on_bodies)
    return ContactReport(
        obstacles=ObstacleContactReport(tuple(contacts), forces, complementarity, passages),
        faces=FacePenetrationReport(tuple(entry for entry in faces if entry.count)),
    )
