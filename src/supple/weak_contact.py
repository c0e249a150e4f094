"""Contact between bodies by weak constraints that come and go [PBNG sections 4.1, 10.1 and 11.2].

Where two surfaces are nearer than a thickness h, or have passed each other, ½ k (n · C - h)² pushes them
apart, C being the vector from one closest point to the other and n the direction of contact: K = k n nᵀ,
without friction. n and the closest points are found anew every few iterations, and before a state counts as
balanced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.contact.pairs import Meetings, Surfaces
from supple.model import Model
from supple.terms import WeakConstraints
from supple.words import counted

if TYPE_CHECKING:
    from supple.problem import Problem

THICKNESS, STIFFNESS, REACH = 0.01, 10.0, 0.5
"""Unless given, in parts of the mean edge e of the surfaces: the thickness [e], and how deep inside another
body a vertex is found [e]; the stiffness in parts of E e, E being the largest Young's modulus."""

SAME = 1e-3
"""Constraints whose weights and normals differ by less than this stay as they are."""

EVERY = 10
"""Iterations after which contacts are found anew."""


@dataclass(frozen=True, eq=False)
class WeakContact:
    """Says which constraints there are where the vertices of a problem are: a `Follower`. thickness h [m];
    stiffness k [N/m]; reach [m]: how deep inside another body a vertex is found; rest (n, 3) [m]."""

    surfaces: Surfaces
    thickness: float
    stiffness: float
    reach: float
    rest: np.ndarray
    every: int | None = EVERY

    def follow(self, problem: Problem, time: float) -> WeakConstraints | None:
        new = self.term(self.meetings(problem.positions, problem.device.threads))
        old: Any = next(term for k, term in enumerate(problem.model.terms) if self._is_mine(problem.model, k))
        return None if _alike(old, new) else new

    def _is_mine(self, model: Model, index: int) -> bool:
        return (index, self) in model.followers

    def meetings(self, x: np.ndarray, threads: int = 1) -> Meetings:
        return self.surfaces.meetings(x, self.thickness, self.reach, threads)

    def term(self, found: Meetings, capacity: int = 0) -> WeakConstraints:
        x, y, z = found.normal.T
        K = np.column_stack([x * x, y * y, z * z, x * y, x * z, y * z])
        return WeakConstraints(
            vertices=found.vertices.astype(np.int32),
            weights=found.weights,
            target=self.thickness * found.normal,
            stiffness=self.stiffness * found.strength[:, None] * K,
            rest=self.rest,
            capacity=capacity,
        )


def _alike(old: WeakConstraints, new: WeakConstraints) -> bool:
    """Whether constraints are the same but for a little."""
    if not np.array_equal(old.vertices, new.vertices):
        return False
    weights = np.abs(old.weights - new.weights).max(initial=0.0)
    normals = np.abs(old.target - new.target).max(initial=0.0)
    largest = np.abs(new.target).max(initial=0.0)
    return bool(weights <= SAME and normals <= SAME * largest)


def with_weak_contact(
    model: Model,
    triangles: np.ndarray,
    flat: np.ndarray,
    young: float,
    thickness: float | None = None,
    stiffness: float | None = None,
) -> Model:
    """The model with contact between the triangles (t, 3) of its surfaces; flat (bodies,): those that have no
    inside; young: the largest modulus E [Pa] of its bodies."""
    body = np.zeros(model.vertices, np.int64)
    for k, (_, own) in enumerate(model.body_vertices):
        body[own] = k
    surfaces = Surfaces(triangles, body, model.rest, 0.0, flat)
    edge = surfaces.edge
    thick = THICKNESS * edge if thickness is None else thickness
    reach = max(REACH * edge, thick)
    surfaces.clear = max(reach, 2 * thick)
    stiff = STIFFNESS * young * edge if stiffness is None else stiffness
    contact = WeakContact(surfaces, thick, stiff, reach, model.rest)
    none = contact.term(Meetings.none(), capacity=max(64, len(surfaces.vertices)))
    followers = (*model.followers, (len(model.terms), contact))
    return replace(model, terms=(*model.terms, none), followers=followers)


@dataclass(frozen=True)
class MetReport:
    """Contact of bodies with each other and themselves: contacts; the depth [m] of the deepest, 0 where none
    has passed another; the force [N] on each body, which are 0 in sum."""

    contacts: int
    depth: float
    bodies: dict[str, tuple[float, float, float]]

    def __str__(self) -> str:
        return f"{counted(self.contacts, 'contact')} between bodies, deepest {self.depth:.2e} m"


def met(problem: Problem) -> MetReport | None:
    """At the problem's present u; None where bodies do not see each other."""
    found = [follower for _, follower in problem.model.followers if isinstance(follower, WeakContact)]
    if not found:
        return None
    (contact,) = found
    x = problem.positions
    meetings = contact.meetings(x, problem.device.threads)
    push = contact.stiffness * meetings.strength * (contact.thickness - meetings.distance)
    force = np.zeros_like(x)
    each = meetings.weights[:, :, None] * (push[:, None] * meetings.normal)[:, None, :]
    np.add.at(force, meetings.vertices.ravel(), each.reshape(-1, 3))
    bodies = {}
    for name, own in problem.model.body_vertices:
        fx, fy, fz = map(float, force[own].sum(axis=0))
        bodies[name] = fx, fy, fz
    return MetReport(len(push), float(max(0.0, -meetings.distance.min(initial=0.0))), bodies)
