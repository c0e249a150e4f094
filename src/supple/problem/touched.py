"""Report of obstacle contact after a solve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from supple.problem.pierced import Passed, piercing_of
from supple.problem.pinned_overlap import PinnedOverlap, find_pinned_overlaps
from supple.problem.touch_sums import AMOUNT, FAR, Pressed, sums_of
from supple.words import counted

if TYPE_CHECKING:
    from supple.problem.problem import Problem

Force = tuple[float, float, float]
Sums = tuple[float, float, float, float, float]


@dataclass(frozen=True)
class Touched:
    """Contact forces and gaps of all bodies at one obstacle.

    A vertex counts for its nearest obstacle. Pinned vertices are ignored.

    Attributes:
        name: Name of the obstacle.
        contacts: Number of vertices pushed, plus points of faces that are kept out.
        force: Force of all bodies on the obstacle [N].
        depth: Depth of the deepest vertex inside [m], 0 if none is inside.
        gap: Gap of the closest vertex [m], 0 if one is inside, inf if no vertex counts for the obstacle.
        pierced: Depth of the deepest face inside beyond its vertices [m], 0 if none. Depths below about a
            hundredth of an edge are ignored. It is the depth at the middle of faces with a vertex close to
            the obstacle, and at the deepest point of faces that the obstacle may have passed.
        passed: A face that the obstacle has passed, or a pinned part of a body that a rigid body overlaps;
            None if there is neither.
    """

    name: str
    contacts: int
    force: Force
    depth: float
    gap: float
    pierced: float = 0.0
    passed: Passed | PinnedOverlap | None = None


@dataclass(frozen=True)
class ContactReport:
    """Contact of all bodies with obstacles.

    Attributes:
        obstacles: Contact with each obstacle.
        bodies: Force of all obstacles on each body, by name [N].
        complementarity: Σ λ |g| [J], forces times gaps, which vanishes if no force acts at a distance.
    """

    obstacles: tuple[Touched, ...]
    bodies: dict[str, Force]
    complementarity: float

    @property
    def contacts(self) -> int:
        """Number of contacts with all obstacles."""
        return sum(each.contacts for each in self.obstacles)

    @property
    def depth(self) -> float:
        """Depth of the deepest vertex inside any obstacle [m]."""
        return max(each.depth for each in self.obstacles)

    @property
    def gap(self) -> float:
        """Smallest gap to any obstacle [m]."""
        return min(each.gap for each in self.obstacles)

    @property
    def pierced(self) -> float:
        """Depth of the deepest face inside any obstacle beyond its vertices [m]."""
        return max(each.pierced for each in self.obstacles)

    @property
    def passed(self) -> bool:
        """True if an obstacle has passed a face, or a rigid body overlaps a pinned part."""
        return any(each.passed is not None for each in self.obstacles)

    @property
    def sentences(self) -> list[str]:
        """One sentence per obstacle with a passed face or an overlapped pinned part."""
        return [each.passed.sentence(each.name) for each in self.obstacles if each.passed is not None]

    def __str__(self) -> str:
        faces = f", faces {self.pierced:.2e} m" if self.pierced > 0 else ""
        return (
            f"{counted(self.contacts, 'contact')} with {counted(len(self.obstacles), 'obstacle')}, deepest "
            f"{self.depth:.2e} m{faces}, forces times gaps {self.complementarity:.1e} J"
        )


def contact_reports(problem: Problem, evaluated: bool = False) -> list[ContactReport | None]:
    """Report the obstacle contact of every batch member at its present displacements.

    Args:
        problem: Problem to report on.
        evaluated: True if the last evaluated forces are those of the present state.

    Returns:
        One report per batch member; None without obstacles.
    """
    if problem.contacts.obstacles is None:
        return [None] * problem.copies
    active, problem.device.active = problem.device.active, np.arange(problem.copies, dtype=np.int32)
    if not evaluated:
        problem.measures.balances()  # also evaluates the reactions of the planes
    bodies, obstacles = sums_of(problem.contacts).taken()
    for _, follower in problem.model.followers:
        if getattr(follower, "presses", False):
            bodies, obstacles = with_faces(follower.pressed(problem), bodies, obstacles)
    faces = piercing_of(problem.contacts).found(problem.copies, obstacles.shape[1])
    held = find_pinned_overlaps(problem.contacts)
    problem.device.active = active
    names = [name for name, _ in problem.model.body_vertices]
    each = zip(bodies.tolist(), obstacles.tolist(), _with_pinned(faces, held), strict=True)
    return [_of_copy(names, problem.contacts.obstacles.names, *found) for found in each]


def _with_pinned(
    faces: list[list[tuple[float, Passed | None]]], held: list[tuple[int, PinnedOverlap]]
) -> list[list[tuple[float, Passed | PinnedOverlap | None]]]:
    """Add overlaps of rigid bodies with pinned parts to the passed faces."""
    found: list[list[tuple[float, Passed | PinnedOverlap | None]]] = [list(each) for each in faces]
    for number, inside in held:
        depth, _ = found[0][number]
        found[0][number] = max(depth, inside.depth), inside
    return found


def with_faces(pressed: Pressed, bodies: np.ndarray, obstacles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Add the contact forces on faces to the sums, for batch size 1."""
    of_bodies = np.column_stack([pressed.on_bodies, pressed.amount, np.zeros(len(pressed.amount))])
    others = np.column_stack([pressed.of_obstacles, pressed.contacts, np.zeros(len(pressed.contacts))])
    return bodies + of_bodies, obstacles + others


def _of_copy(
    bodies: Sequence[str],
    obstacles: Sequence[str],
    on_bodies: list[Sums],
    on_obstacles: list[Sums],
    faces: list[tuple[float, Passed | PinnedOverlap | None]],
) -> ContactReport:
    """Assemble the report of one batch member from sums, see `TouchSums`, and face depths."""
    touched = []
    for name, (fx, fy, fz, count, most), pierced in zip(obstacles, on_obstacles, faces, strict=True):
        gap = -most if most > -FAR else math.inf
        near = max(0.0, most), max(0.0, gap)
        touched.append(Touched(name, int(count), (-fx, -fy, -fz), *near, *pierced))
    forces: dict[str, Force] = {
        name: (fx, fy, fz) for name, (fx, fy, fz, _, _) in zip(bodies, on_bodies, strict=True)
    }
    return ContactReport(tuple(touched), forces, sum(one[AMOUNT] for one in on_bodies))
