"""Rigid bodies among obstacles: what keeps them out of these, and of each other.

Balls touch with their surface, boxes with their corners, what has corners of its own touches them with these,
and edges of boxes touch each other. A correction s of all rigid bodies minimises ½ sᵀ H s - rᵀ s, with H and
r of `RigidMotion.system`, where no gap g + Jₙ s becomes negative: Gauss-Seidel on the forces λ ≥ 0, with
friction |λₜ| ≤ μ λ against what points have slid in the step, of the rougher of the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from supple.contact import shapes as kinds
from supple.contact.box_edges import crossing_edges
from supple.contact.rigid import Push, RigidMotion
from supple.contact.shapes import FRICTION, KIND, POSE, SIDE, SIZE, STEP, Shapes, distances_to

SWEEPS, ENOUGH = 500, 1e-12
"""Of Gauss-Seidel at most, and the change of all forces, relative to them, at which it ends."""

CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)

AROUND = np.linspace(0, 2 * np.pi, 16, endpoint=False)


class Meeting(NamedTuple):
    """A point [m] where a rigid body touches something, or will: the gap [m], negative where they overlap;
    the direction in which the body is pushed; which body that is, and which other it pushes, -1 for none; the
    number of the shape beside it, and μ."""

    point: np.ndarray
    gap: float
    normal: np.ndarray
    body: int
    other: int
    shape: int
    friction: float


def feelers(row: np.ndarray) -> tuple[np.ndarray, float]:
    """Points (k, 3) of a shape in its own frame [m] that touch others, and the radius [m] of balls about
    them."""
    a, b, c = row[SIZE : SIZE + 3]
    if row[SIDE] < 0:
        return np.empty((0, 3)), 0.0
    if row[KIND] == kinds.CAPSULE:
        return np.outer(np.linspace(-a, a, 9 if a > 0 else 1), [0, 0, 1]), float(b)
    if row[KIND] == kinds.BOX:
        return CORNERS * [a, b, c], 0.0
    if row[KIND] == kinds.CYLINDER:
        rim = np.stack([b * np.cos(AROUND), b * np.sin(AROUND)], axis=1)
        return np.concatenate([np.insert(rim, 2, z, axis=1) for z in (-a, a)]), 0.0
    return np.empty((0, 3)), 0.0


def meetings(motions: list[RigidMotion], shapes: Shapes, near: float) -> list[Meeting]:
    """Where rigid bodies have gaps of less than so many metres."""
    rigid = {motion.body.row: k for k, motion in enumerate(motions)}
    found: list[Meeting] = []
    for k, motion in enumerate(motions):
        own = motion.body.row
        for shape in range(len(shapes.rows)):
            other = rigid.get(shape, -1)
            if shape == own or 0 <= other < k:
                continue
            mu = float(max(shapes.rows[own, FRICTION], shapes.rows[shape, FRICTION]))
            for point, gap, normal in _touches(shapes, own, shape):
                found.append(Meeting(point, gap, normal, k, other, shape, mu))
            for point, gap, normal in _touches(shapes, shape, own):
                found.append(Meeting(point, gap, -normal, k, other, shape, mu))
            if all(_solid_box(shapes.rows[row]) for row in (own, shape)):
                for point, gap, normal in crossing_edges(shapes.rows[own], shapes.rows[shape]):
                    found.append(Meeting(point, gap, normal, k, other, shape, mu))
    return [each for each in found if each.gap < near]


def _solid_box(row: np.ndarray) -> bool:
    return bool(row[KIND] == kinds.BOX and row[SIDE] > 0)


def _touches(shapes: Shapes, one: int, other: int) -> Iterator[tuple[np.ndarray, float, np.ndarray]]:
    """Points, gaps and directions that push the one away, of all that it feels the other with."""
    points, radius = feelers(shapes.rows[one])
    if not len(points):
        return
    axes, origin = shapes.rows[one, POSE : POSE + 9].reshape(3, 3), shapes.rows[one, POSE + 9 : POSE + 12]
    x = origin + points @ axes
    d, normals, _ = distances_to(Shapes(shapes.rows[other : other + 1], shapes.values), x)
    for p, gap, n in zip(x, d - radius, normals, strict=True):
        yield p - (radius + 0.5 * gap) * n, float(gap), n


def corrections(motions: list[RigidMotion], pushes: list[Push], shapes: Shapes) -> np.ndarray:
    """s (k, 6) of all bodies: shifts [m] and turns [rad] to where the law of motion holds under what pushes
    them and what they touch."""
    systems = [motion.system(push) for motion, push in zip(motions, pushes, strict=True)]
    inverse = np.stack([np.linalg.inv(H) for H, _ in systems])
    free = np.einsum("kij,kj->ki", inverse, np.stack([missing for _, missing in systems]))
    reach = [motion.reach for motion in motions]
    far = max(np.linalg.norm(s[:3]) + r * np.linalg.norm(s[3:]) for s, r in zip(free, reach, strict=True))
    met = meetings(motions, shapes, float(2 * far + 0.1 * min(reach)))
    if not met:
        return free
    J = np.stack([_directions(motions, each) for each in met])  # (c, 3, k, 6): along n, and two across it
    yields = np.einsum("kij,cdkj->cdki", inverse, J)
    A = np.einsum("adki,beki->adbe", J, yields)
    gaps = np.stack([_gap(motions, shapes, each) for each in met]) + np.einsum("cdki,ki->cd", J, free)
    forces = _balanced(A, gaps, np.array([each.friction for each in met]))
    return free + np.einsum("cdki,cd->ki", yields, forces)


def _directions(motions: list[RigidMotion], met: Meeting) -> np.ndarray:
    """(3, k, 6) how a gap, and what slides across it, follow from s."""
    J = np.zeros((3, len(motions), 6))
    for number, sign in ((met.body, 1.0), (met.other, -1.0)):
        if number >= 0:
            arm = met.point - motions[number].centre
            for d, way in enumerate(_frame(met.normal)):
                J[d, number] += sign * np.concatenate([way, np.cross(arm, way)])
    return J


def _frame(n: np.ndarray) -> np.ndarray:
    """n and two unit vectors across it, as rows."""
    first = np.cross(n, np.eye(3)[int(np.abs(n).argmin())])
    first /= np.linalg.norm(first)
    return np.stack([n, first, np.cross(n, first)])


def _gap(motions: list[RigidMotion], shapes: Shapes, met: Meeting) -> np.ndarray:
    """(3,) the gap, and what the body has slid across it in the step so far [m]."""
    if met.other >= 0:
        moved = motions[met.other].moved(met.point)
    else:
        R = shapes.rows[met.shape, STEP : STEP + 9].reshape(3, 3)
        moved = met.point - R.T @ (met.point - shapes.rows[met.shape, STEP + 9 : STEP + 12])
    slid = _frame(met.normal) @ (motions[met.body].moved(met.point) - moved)
    return np.array([met.gap, slid[1], slid[2]])


def _balanced(A: np.ndarray, gaps: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Forces (c, 3) [N] with gaps + A forces ≥ 0 along the normals, and no more than friction across them."""
    forces = np.zeros_like(gaps)
    own = np.einsum("cdcd->cd", A)
    for _ in range(SWEEPS):
        before = forces.copy()
        for c in range(len(gaps)):
            now = gaps[c] + np.einsum("dbe,be->d", A[c], forces)
            forces[c, 0] = max(0.0, forces[c, 0] - now[0] / own[c, 0])
            if mu[c] > 0:
                across = forces[c, 1:] - now[1:] / own[c, 1:].max()
                most, size = mu[c] * forces[c, 0], float(np.linalg.norm(across))
                forces[c, 1:] = across * (most / size if size > most else 1.0)
        if np.abs(forces - before).max() <= ENOUGH * np.abs(forces).max():
            break
    return forces
