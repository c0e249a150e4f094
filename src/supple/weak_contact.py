"""Contact between bodies by weak constraints that come and go [PBNG sections 4.1, 10.1 and 11.2].

Where two surfaces are nearer than a thickness h, or have passed each other, ½ k (n · C - h)² pushes them
apart, C being the vector from one closest point to the other and n the direction of contact; it does not
pull. With friction, springs hold what sticks (`terms/rubbing.py`). n and the closest points are found anew
every few iterations, and before a state counts as balanced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.contact.pairs import Meetings, Surfaces
from supple.grip import CONTACTS, Grip, from_history, no_contacts, owners
from supple.model import Model, with_term
from supple.terms import RubbingContacts
from supple.terms.rubbing import FRICTION, GAP, NORMAL, SLIP
from supple.words import counted

if TYPE_CHECKING:
    from supple.problem import Problem

THICKNESS, STIFFNESS, REACH = 0.01, 10.0, 0.5
"""Unless given, in parts of the mean edge e of the surfaces: the thickness [e], and how deep inside another
body a vertex is found [e]; the stiffness in parts of E e, E being the largest Young's modulus."""

SAME = 1e-3
"""Constraints whose weights and normals differ by less than this stay as they are."""

ALIKE = 1e-2
"""The same, within a step, where their forces differ by less than this part of the largest."""

EVERY = 10
"""Iterations after which contacts are found anew."""


@dataclass(frozen=True, eq=False)
class WeakContact:
    """Says which constraints there are where the vertices of a problem are: a `Follower`. thickness h [m];
    stiffness k [N/m]; reach [m]: how deep inside another body a vertex is found; rest (n, 3) [m]; friction
    (2, bodies, bodies): μ of what sticks and of what slides, of every pair."""

    surfaces: Surfaces
    thickness: float
    stiffness: float
    reach: float
    rest: np.ndarray
    friction: np.ndarray
    every: int | None = EVERY

    def follow(self, problem: Problem, time: float) -> RubbingContacts | None:
        index = next(k for k in range(len(problem.model.terms)) if self._is_mine(problem.model, k))
        found = self.meetings(problem.positions, problem.device.threads)
        new = self.term(found, problem.following.grips.get(index))
        old: Any = problem.model.terms[index]
        if _alike(old, new, SAME * self.thickness):
            return None
        within = not problem.following.beginning
        return None if within and _act_alike(old, new, problem.positions, self.rest) else new

    @property
    def rough(self) -> bool:
        return bool(self.friction.any())

    def _is_mine(self, model: Model, index: int) -> bool:
        return (index, self) in model.followers

    def meetings(self, x: np.ndarray, threads: int = 1) -> Meetings:
        return self.surfaces.meetings(x, self.thickness, self.reach, threads)

    def term(self, found: Meetings, grip: Grip | None = None, capacity: int = 0) -> RubbingContacts:
        """Contacts in a step of which the grip tells where it began, where they rub."""
        first, second = self.surfaces.body[found.vertices[:, 0]], self.surfaces.body[found.vertices[:, -1]]
        slip, slides = np.zeros((len(first), 3)), np.zeros(len(first), bool)
        if grip is not None:
            slip, slides = grip.held(found, self.surfaces.body)
        gap = (found.normal * np.einsum("mk,mki->mi", found.weights, self.rest[found.vertices])).sum(axis=1)
        mu = self.friction[slides.astype(int), first, second]
        columns = found.normal, slip, gap - self.thickness, self.stiffness * found.strength, mu
        vertices, numbers = found.vertices.astype(np.int32), np.column_stack(columns)
        return RubbingContacts(vertices, found.weights, numbers, capacity, self.rough)


def _act_alike(old: RubbingContacts, new: RubbingContacts, x: np.ndarray, rest: np.ndarray) -> bool:
    """Whether other constraints do the same to vertices at positions x (n, 3), but for a little: of triangles
    that are equally near, now the one and now the other is the nearest."""
    before, now = met_force(old, x, rest), met_force(new, x, rest)
    return bool(np.abs(now - before).max(initial=0.0) <= ALIKE * np.abs(now).max(initial=0.0))


def _alike(old: RubbingContacts, new: RubbingContacts, little: float) -> bool:
    """Whether constraints are the same but for a little [m]."""
    if not np.array_equal(old.vertices, new.vertices):
        return False
    if np.abs(old.weights - new.weights).max(initial=0.0) > SAME:
        return False
    a, b = old.numbers, new.numbers
    turned = np.abs(a[:, NORMAL:SLIP] - b[:, NORMAL:SLIP]).max(initial=0.0)
    slid = np.abs(a[:, SLIP:GAP] - b[:, SLIP:GAP]).max(initial=0.0)
    return bool(turned <= SAME and slid <= little and np.array_equal(a[:, FRICTION], b[:, FRICTION]))


def with_weak_contact(
    model: Model,
    triangles: np.ndarray,
    flat: np.ndarray,
    young: float,
    thickness: float | None = None,
    stiffness: float | None = None,
    friction: np.ndarray | None = None,
) -> Model:
    """The model with contact between the triangles (t, 3) of its surfaces; flat (bodies,): those that have no
    inside; young: the largest modulus E [Pa] of its bodies; friction: as in `WeakContact`."""
    surfaces = Surfaces(triangles, owners(model), model.rest, 0.0, flat)
    edge = surfaces.edge
    thick = THICKNESS * edge if thickness is None else thickness
    reach = max(REACH * edge, thick)
    surfaces.clear = max(reach, 2 * thick)
    stiff = STIFFNESS * young * edge if stiffness is None else stiffness
    bodies = len(model.body_vertices)
    rubs = np.zeros((2, bodies, bodies)) if friction is None else friction
    contact = WeakContact(surfaces, thick, stiff, reach, model.rest, rubs)
    room = max(64, len(surfaces.vertices))
    none = no_contacts(room, contact.rough)
    followers = (*model.followers, (len(model.terms), contact))
    return replace(model, terms=(*model.terms, none), followers=followers)


def met_at(model: Model, x: np.ndarray, history: Mapping[str, np.ndarray] | None = None) -> Model:
    """The model with the contacts of bodies that there are at positions x (n, 3); where they rub, those of a
    state's history, or else as if nothing had moved yet."""
    for index, contact in model.followers:
        if not isinstance(contact, WeakContact):
            continue
        if contact.rough and history and CONTACTS in history:
            return with_term(model, index, from_history(history))
        grip = Grip.of(no_contacts(), x - model.rest, contact.surfaces.body) if contact.rough else None
        return with_term(model, index, contact.term(contact.meetings(x), grip, 1))
    return model


@dataclass(frozen=True)
class MetReport:
    """Contact of bodies with each other and themselves: contacts; the depth [m] of the deepest, 0 where none
    has passed another; the force [N] on each body, which are 0 in sum."""

    contacts: int
    depth: float
    bodies: dict[str, tuple[float, float, float]]

    def __str__(self) -> str:
        return f"{counted(self.contacts, 'contact')} between bodies, deepest {self.depth:.2e} m"


def met_force(term: RubbingContacts, x: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """(n, 3) [N] what contacts of bodies do to the vertices at positions x (n, 3)."""
    on_point, force = term.forces(x - rest), np.zeros_like(x)
    np.add.at(force, term.vertices.ravel(), (term.weights[:, :, None] * on_point[:, None]).reshape(-1, 3))
    return force


def met(problem: Problem) -> MetReport | None:
    """At the problem's present u; None where bodies do not see each other."""
    model = problem.model
    found = [(k, follower) for k, follower in model.followers if isinstance(follower, WeakContact)]
    if not found:
        return None
    ((index, contact),) = found
    term: Any = model.terms[index]
    x = problem.positions
    force = met_force(term, x, model.rest)
    bodies = {}
    for name, own in problem.model.body_vertices:
        fx, fy, fz = map(float, force[own].sum(axis=0))
        bodies[name] = fx, fy, fz
    meetings = contact.meetings(x, problem.device.threads)
    return MetReport(len(term.vertices), float(max(0.0, -meetings.distance.min(initial=0.0))), bodies)
