"""What is to be said of the contact with obstacles where a solve has ended."""

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
    """One obstacle: vertices that it pushes, and points of faces that are kept out of it; the force [N] of
    all bodies on it; the depth [m] of the deepest vertex inside it, 0 where none is; the smallest gap [m] of
    a vertex outside, or 0. Vertices count for the obstacle that is nearest to them; what is pinned does not
    count. pierced: the depth [m] of the face that is deepest inside it between its vertices, from a hundredth
    of its edges on, 0 where none is: at the middle of faces whose vertices feel it, at the deepest point of
    what it may have passed; passed: such a face, where there is one, or
    a pinned part of a body that a rigid body overlaps."""

    name: str
    contacts: int
    force: Force
    depth: float
    gap: float
    pierced: float = 0.0
    passed: Passed | PinnedOverlap | None = None


@dataclass(frozen=True)
class ContactReport:
    """The contact of all bodies with obstacles. bodies: the force [N] of all obstacles on each, by name;
    complementarity [J]: Σ λ |g|, forces times gaps, which vanishes where nothing pushes from afar."""

    obstacles: tuple[Touched, ...]
    bodies: dict[str, Force]
    complementarity: float

    @property
    def contacts(self) -> int:
        return sum(each.contacts for each in self.obstacles)

    @property
    def depth(self) -> float:
        """Of the deepest vertex inside any obstacle [m]."""
        return max(each.depth for each in self.obstacles)

    @property
    def gap(self) -> float:
        """The smallest [m]."""
        return min(each.gap for each in self.obstacles)

    @property
    def pierced(self) -> float:
        """Of the face that is deepest inside any obstacle between its vertices [m]."""
        return max(each.pierced for each in self.obstacles)

    @property
    def passed(self) -> bool:
        """Whether an obstacle has passed a face."""
        return any(each.passed is not None for each in self.obstacles)

    @property
    def sentences(self) -> list[str]:
        """One for each obstacle that has passed a face."""
        return [each.passed.sentence(each.name) for each in self.obstacles if each.passed is not None]

    def __str__(self) -> str:
        faces = f", faces {self.pierced:.2e} m" if self.pierced > 0 else ""
        return (
            f"{counted(self.contacts, 'contact')} with {counted(len(self.obstacles), 'obstacle')}, deepest "
            f"{self.depth:.2e} m{faces}, forces times gaps {self.complementarity:.1e} J"
        )


def contact_reports(problem: Problem, evaluated: bool = False) -> list[ContactReport | None]:
    """Of every copy of the state, at its present u; evaluated: the forces that were evaluated last are those
    there."""
    if problem.contacts.obstacles is None:
        return [None] * problem.copies
    active, problem.device.active = problem.device.active, np.arange(problem.copies, dtype=np.int32)
    if not evaluated:
        problem.measures.balances()  # whose forces are those of the planes
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
    """Passed faces by copy and obstacle, with pinned parts that rigid bodies overlap."""
    found: list[list[tuple[float, Passed | PinnedOverlap | None]]] = [list(each) for each in faces]
    for number, inside in held:
        depth, _ = found[0][number]
        found[0][number] = max(depth, inside.depth), inside
    return found


def with_faces(pressed: Pressed, bodies: np.ndarray, obstacles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the one copy of the state with what obstacles do to faces."""
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
    """With names and sums of both, see `TouchSums`, and what obstacles are deep in."""
    touched = []
    for name, (fx, fy, fz, count, most), pierced in zip(obstacles, on_obstacles, faces, strict=True):
        gap = -most if most > -FAR else math.inf
        near = max(0.0, most), max(0.0, gap)
        touched.append(Touched(name, int(count), (-fx, -fy, -fz), *near, *pierced))
    forces: dict[str, Force] = {
        name: (fx, fy, fz) for name, (fx, fy, fz, _, _) in zip(bodies, on_bodies, strict=True)
    }
    return ContactReport(tuple(touched), forces, sum(one[AMOUNT] for one in on_bodies))
