"""What is to be said of the contact with obstacles where a solve has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from supple.contact import distances_to
from supple.words import counted

if TYPE_CHECKING:
    from supple.problem.problem import Problem

Force = tuple[float, float, float]


@dataclass(frozen=True)
class Touched:
    """One obstacle: vertices that it pushes; the force [N] of all bodies on it; the depth [m] of the deepest
    vertex inside it, 0 where none is; the smallest gap [m] of a vertex outside, or 0. Vertices count for the
    obstacle that is nearest to them; what is pinned does not count."""

    name: str
    contacts: int
    force: Force
    depth: float
    gap: float


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

    def __str__(self) -> str:
        return (
            f"{counted(self.contacts, 'contact')} with {counted(len(self.obstacles), 'obstacle')}, deepest "
            f"{self.depth:.2e} m, forces times gaps {self.complementarity:.1e} J"
        )


def contact_reports(problem: Problem) -> list[ContactReport | None]:
    """Of every copy of the state, at its present u."""
    if problem.contacts.obstacles is None:
        return [None] * problem.copies
    active, problem.device.active = problem.device.active, np.arange(problem.copies, dtype=np.int32)
    problem.measures.balances()  # whose forces are those of the planes
    problem.device.active = active
    return [_of_copy(problem, copy) for copy in range(problem.copies)]


def _of_copy(problem: Problem, copy: int) -> ContactReport:
    contacts, states, model = problem.contacts, problem.states, problem.model
    obstacles = contacts.obstacles
    assert obstacles is not None
    u = states.vectors(states.u)[copy].astype(float)
    normals, feet, forces, which = contacts.found(copy)
    pushes = np.einsum("pni,pni->pn", normals, forces)
    gaps = np.einsum("pni,pni->pn", normals, u - feet)
    distance, _, nearest = distances_to(contacts.shapes, model.rest + u)
    distance[~model.free] = np.inf
    owner = obstacles.obstacle
    touched = []
    for k, name in enumerate(obstacles.names):
        mine = (which >= 0) & (owner[which] == k)
        own = distance[owner[nearest] == k]
        least = float(own.min(initial=np.inf))
        force = -forces[mine].sum(axis=0)
        count = int((pushes[mine] > 0).sum())
        touched.append(Touched(name, count, _three(force), max(0.0, -least), max(0.0, least)))
    bodies = {name: _three(forces[:, own].sum(axis=(0, 1))) for name, own in model.body_vertices}
    return ContactReport(tuple(touched), bodies, float(np.abs(pushes * gaps).sum()))


def _three(force: np.ndarray) -> Force:
    x, y, z = map(float, force)
    return x, y, z
