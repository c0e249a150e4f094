"""Contact between bodies by weak constraints that come and go [PBNG sections 4.1, 10.1 and 11.2].

Where two surfaces are nearer than a thickness h, or have passed each other, ½ k (n · C - h)² pushes them
apart, C being the vector from one point to the other and n the direction of contact; it does not pull.
Triangles that lie on each other have k in proportion to the area that they share, so that a uniform pressure
goes through as one. With friction, springs hold what sticks (`terms/rubbing.py`). n and the points are found
anew every few iterations, and before a state counts as balanced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.contact.crossing import crossings
from supple.contact.looking import Looking
from supple.contact.pairs import Meetings, Surfaces
from supple.contact.points import Points
from supple.grip import CONTACTS, Grip, contacts_from_state, no_contacts, owners
from supple.kernels import HOST, Runner
from supple.model import Model
from supple.terms import RubbingContacts
from supple.terms.rubbing_sums import change_of_forces, forces_on_bodies, forces_on_vertices
from supple.words import counted

if TYPE_CHECKING:
    from supple.problem import Problem

THICKNESS, STIFFNESS, REACH = 0.01, 10.0, 0.5
"""Unless given, in parts of the mean edge e of the surfaces: the thickness [e], and how deep inside another
body a vertex is found [e]; the stiffness in parts of E e, E being the largest Young's modulus."""

ALIKE, OF_MISSING, LEAST = 1e-2, 0.5, 1e-4
"""Within a step constraints stay as they are where others would do the same but for the first part of the
largest force and the second part of the residual; where all forces seem to balance, but for the last part of
the largest force."""

EVERY = 10
"""Iterations after which contacts are found anew."""


@dataclass(frozen=True, eq=False)
class WeakContact:
    """Says which constraints there are where the vertices of a problem are: a `Follower`. thickness h [m];
    stiffness k [N/m]; reach [m]: how deep inside another body a vertex is found; rest (n, 3) [m]; friction
    (2, bodies, bodies): μ of what sticks and of what slides, of every pair; every: iterations after which it
    looks again."""

    surfaces: Surfaces
    thickness: float
    stiffness: float
    reach: float
    rest: np.ndarray
    friction: np.ndarray
    every: int | None = EVERY

    def follow(self, problem: Problem, time: float) -> RubbingContacts | None:
        index = next(k for k in range(len(problem.model.terms)) if self._is_mine(problem.model, k))
        found = self.found(problem)
        new = self.term(found, problem.following.grips.get(index))
        old: Any = problem.model.terms[index]
        return unless_alike(old, new, problem)

    def at(self, model: Model, x: np.ndarray, remembered: Mapping[str, Any]) -> RubbingContacts:
        """The constraints with vertices at positions x (n, 3), and those of a state where they
        rub."""
        if self.rough and CONTACTS in remembered:
            return contacts_from_state(remembered)
        grip = Grip.of(no_contacts(), x - model.rest, self.surfaces.body) if self.rough else None
        found = self.meetings(x)
        return self.term(found, grip, max(1, len(found.distance)))

    @property
    def rough(self) -> bool:
        return bool(self.friction.any())

    def _is_mine(self, model: Model, index: int) -> bool:
        return (index, self) in model.followers

    @cached_property
    def _looking(self) -> Looking:
        return Looking(self.surfaces)

    def found(self, problem: Problem) -> Meetings:
        """What meets where the vertices of a problem are."""
        device = problem.device
        if not device.far:
            return self.meetings(problem.positions, device)
        device.pull(problem.u)
        points = Points.displaced(self.rest, problem.u, device)
        return self.surfaces.meetings_at(points, self.thickness, self.reach, device, self._looking)

    def meetings(self, x: np.ndarray, runner: Runner = HOST) -> Meetings:
        return self.surfaces.meetings(x, self.thickness, self.reach, runner, self._looking)

    def crossed(self, problem: Problem) -> int:
        """How many edges are through triangles where the vertices of a problem are, and one of both has no
        inside; what has passed others has a depth."""
        flat = self.surfaces.flat
        if not flat.any():
            return 0
        found = crossings(self.surfaces, problem.positions, problem.device)
        return sum(each.count for each in found if flat[list(each.bodies)].any())

    def meeting_points(self, x: np.ndarray) -> np.ndarray:
        """(m, 3) [m] where surfaces meet, with vertices at x (n, 3)."""
        met = self.meetings(x)
        return np.einsum("mk,mki->mi", np.maximum(met.weights, 0.0), x[met.vertices])

    def term(self, found: Meetings, grip: Grip | None = None, capacity: int = 0) -> RubbingContacts:
        """Contacts in a step of which the grip tells where it began, where they rub."""
        first, second = self.surfaces.body[found.vertices[:, 0]], self.surfaces.body[found.vertices[:, -1]]
        slip, slides = np.zeros((len(first), 3)), np.zeros(len(first), bool)
        if grip is not None:
            slip, slides = grip.held(found, self.surfaces.body)
        gap = (found.normal * np.einsum("mk,mki->mi", found.weights, self.rest[found.vertices])).sum(axis=1)
        mu = self.friction[slides.astype(int), first, second]
        columns = found.normal, slip, gap - found.thickness, self.stiffness * found.strength, mu
        vertices, numbers = found.vertices.astype(np.int32), np.column_stack(columns)
        return RubbingContacts(vertices, found.weights, numbers, capacity, self.rough, found.keys)


def unless_alike(old: RubbingContacts, new: RubbingContacts, problem: Problem) -> RubbingContacts | None:
    """The new contacts, or None where the old ones do as well."""
    if problem.following.beginning:
        return None if _same(old, new) else new
    return new if _matters(old, new, problem) else None


def _matters(old: RubbingContacts, new: RubbingContacts, problem: Problem) -> bool:
    """Whether other constraints do something else to vertices where they are: but for a little of the largest
    force, or of what is missing to balance."""
    u, following = problem.states.vectors(problem.u)[0], problem.following
    change, most, length = change_of_forces(old, new, u)
    if change <= LEAST * most:
        return False
    missing = OF_MISSING * following.residual
    return bool(following.balanced or change > ALIKE * most or length > missing)


def _same(old: RubbingContacts, new: RubbingContacts) -> bool:
    pairs = ((old.vertices, new.vertices), (old.weights, new.weights), (old.numbers, new.numbers))
    return all(np.array_equal(a, b) for a, b in pairs)


def with_weak_contact(
    model: Model,
    triangles: np.ndarray,
    flat: np.ndarray,
    young: float,
    thickness: float | None = None,
    stiffness: float | None = None,
    friction: np.ndarray | None = None,
    every: int = EVERY,
) -> Model:
    """The model with contact between the triangles (t, 3) of its surfaces; flat (bodies,): those that have no
    inside; young: the largest modulus E [Pa] of its bodies; friction, every: as in `WeakContact`."""
    surfaces = Surfaces(triangles, owners(model), model.rest, 0.0, flat)
    edge = surfaces.edge
    thick = THICKNESS * edge if thickness is None else thickness
    reach = max(REACH * edge, thick)
    surfaces.clear = max(reach, 2 * thick)
    stiff = STIFFNESS * young * edge if stiffness is None else stiffness
    bodies = len(model.body_vertices)
    rubs = np.zeros((2, bodies, bodies)) if friction is None else friction
    contact = WeakContact(surfaces, thick, stiff, reach, model.rest, rubs, every)
    room = max(64, len(surfaces.vertices))
    none = no_contacts(room, contact.rough)
    followers = (*model.followers, (len(model.terms), contact))
    return replace(model, terms=(*model.terms, none), followers=followers)


@dataclass(frozen=True)
class MetReport:
    """Contact of bodies with each other and themselves: contacts; the depth [m] of the deepest, 0 where none
    has passed another; the force [N] on each body, which are 0 in sum; complementarity [J]: Σ λ |g|, forces
    times gaps; crossed: edges through triangles where one of both is of cloth, in which nothing is deep."""

    contacts: int
    depth: float
    bodies: dict[str, tuple[float, float, float]]
    complementarity: float
    crossed: int = 0

    @property
    def passed(self) -> bool:
        """Whether anything has passed through anything."""
        return self.depth > 0 or self.crossed > 0

    def __str__(self) -> str:
        through = f", {counted(self.crossed, 'edge')} through cloth" if self.crossed else ""
        return (
            f"{counted(self.contacts, 'contact')} between bodies, deepest {self.depth:.2e} m{through}, "
            f"forces times gaps {self.complementarity:.1e} J"
        )


def met_force(term: RubbingContacts, x: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """(n, 3) [N] what contacts of bodies do to the vertices at positions x (n, 3)."""
    return forces_on_vertices(term, x - rest)


def met(problem: Problem) -> MetReport | None:
    """At the problem's present u; None where bodies do not see each other."""
    model = problem.model
    found = [(k, follower) for k, follower in model.followers if isinstance(follower, WeakContact)]
    if not found:
        return None
    ((index, contact),) = found
    term: Any = model.terms[index]
    u, body, names = problem.states.vectors(problem.u)[0], contact.surfaces.body, model.body_vertices
    forces, carried = forces_on_bodies(term, u, model.rest, body, len(names))
    bodies = {name: (fx, fy, fz) for (name, _), (fx, fy, fz) in zip(names, forces.tolist(), strict=True)}
    depth = -float(contact.found(problem).distance.min(initial=0.0))
    depth = depth if depth > LEAST * contact.thickness else 0.0
    return MetReport(len(term.vertices), depth, bodies, carried, contact.crossed(problem))
