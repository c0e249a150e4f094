"""Contact that lets no surfaces pass each other: a barrier, and balls that vertices must not leave.

Where surfaces are nearer than h, the energy of `Barriers` keeps them apart. Whenever contacts are found,
every vertex gets a ball in which nothing can pass anything (`contact.gaps`), whatever solver moves it, and
the term gets all pairs that can come nearer than h while vertices stay in their balls: between two looks the
energy is exact, and the same one before and after a look.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.contact.crossing import crossings
from supple.contact.gaps import ANYWHERE, Gaps, Neighbours, distances_at, gaps, rooms, within_reach
from supple.contact.pairs import Surfaces
from supple.contact.passing import first_touch
from supple.grip import owners
from supple.model import Model
from supple.terms import Barriers
from supple.words import counted

if TYPE_CHECKING:
    from supple.problem import Problem

THICKNESS, STIFFNESS, RADIUS = 0.05, 1.0, 0.5
"""Unless given, in parts of the mean edge e of the surfaces: h, and how far the neighbours of vertices are
looked for; the stiffness in parts of E e, E being Young's modulus of the softer of two bodies."""

FARTHEST = 5.0
"""A pair farther apart than so many h cannot get nearer than h in balls of 0.4 times its distance."""

AHEAD = 1.0
"""How much farther off than it need be, in parts of h, a pair may be to be among the barriers."""

OWN = 0.5
"""Part of their distance at rest from which on parts of a body push each other, where that is less than
h."""

EVERY = 10
"""Iterations after which contacts are found anew, unless vertices want to go on earlier."""

BLOCKED = 1e-3
"""Pins that can go on by less than this part of h are blocked."""


@dataclass(frozen=True, eq=False)
class BarrierContact:
    """Says which barriers there are where the vertices of a problem are, and how far these may move: a
    `Confining` follower. thickness h [m]; stiffness (bodies,): k [N/m] of each, of which two have the
    smaller; names of the bodies."""

    surfaces: Surfaces
    thickness: float
    stiffness: np.ndarray
    names: tuple[str, ...]
    every: int | None = EVERY
    confines: bool = True

    @property
    def radius(self) -> float:
        """How far neighbours are looked for [m]."""
        return max(FARTHEST * self.thickness, RADIUS * self.surfaces.edge)

    def confine(self, problem: Problem) -> None:
        """With the neighbours that are known, as long as these will do."""
        if not problem.room.checked:
            self._refuse_crossings(problem)
        known: Neighbours | None = problem.room.neighbours
        radii = None if known is None else known.rooms_at(problem.positions)
        if radii is None:
            _, radii = self._look(problem)
        problem.room.settle(radii)

    def _look(self, problem: Problem) -> tuple[Gaps, np.ndarray]:
        """Find all neighbours: their gaps, and the radii (n,) of the balls [m]."""
        x = problem.positions
        found = gaps(self.surfaces, x, self.radius, problem.device.threads)
        problem.room.neighbours = Neighbours(self.surfaces, found, self.radius, x)
        return found, rooms(self.surfaces, found, self.radius)

    def shorten(self, problem: Problem, start: np.ndarray) -> None:
        """Pairs of which the term does not know come no nearer than its reach, lest there be an energy
        that nobody has seen."""
        states = problem.states
        u, x = states.vectors(problem.u)[0], self.surfaces.rest + states.vectors(start)[0]
        step = u - states.vectors(start)[0]
        own = self.surfaces.vertices[:, 0]
        longest = float(np.sqrt((step[own] ** 2).sum(axis=1).max(initial=0)))
        farthest = self.surfaces.edge
        if longest == 0:
            return
        whole = min(1.0, farthest / longest)
        radius = 2 * whole * longest + self.thickness
        pairs = self._around(problem, start, x, radius)
        part = first_touch(x, step, *self._bounds(problem, pairs), whole)
        if part < 1:
            u[:] = states.vectors(start)[0] + part * step
            problem.device.push(problem.u)
        problem.room.stale = True

    def _around(self, problem: Problem, start: np.ndarray, x: np.ndarray, radius: float) -> Gaps:
        """Pairs within a radius [m], or more, of vertices at x (n, 3), which are those of records `start`:
        several ways are tried from there."""
        known = problem.room.around
        if known is None or known[0] is not start or known[1] < radius:
            known = start, radius, gaps(self.surfaces, x, radius, problem.device.threads)
            problem.room.around = known
        pairs: Gaps = known[2]
        return pairs

    def _bounds(self, problem: Problem, pairs: Gaps) -> tuple[Gaps, np.ndarray]:
        """Pairs with the least distance [m] that each may have."""
        pairs, reach = self._reach(pairs)
        known = np.isin(pairs.keys, self._term_of(problem).keys)
        return pairs, np.where(known | (pairs.distance <= reach), 0.0, reach)

    def follow(self, problem: Problem, time: float) -> Barriers | None:
        room = problem.room
        if not room.checked:
            self._refuse_crossings(problem)
        found, radii = self._look(problem)
        room.settle(radii)
        moved = room.pursue(BLOCKED * self.thickness)
        fresh, room.fresh = room.fresh, False
        new, old = self.term(found, radii), self._term_of(problem)
        same = np.array_equal(old.keys, new.keys)
        enough = same or (not fresh and bool(np.isin(new.keys, old.keys).all()))
        return None if enough and not moved else new

    def _term_of(self, problem: Problem) -> Any:
        return problem.model.terms[next(k for k, own in problem.model.followers if own is self)]

    def term(self, found: Gaps, radii: np.ndarray, capacity: int = 0) -> Barriers:
        """All pairs that can get nearer than their reach in balls of radii (n,)."""
        farthest = np.full(len(found.distance), (1 + AHEAD) * self.thickness)
        found = found.where(within_reach(found, radii, farthest))
        found, reach = self._reach(found)
        kept = within_reach(found, radii, (1 + AHEAD) * reach)
        found, reach = found.where(kept), reach[kept]
        body = self.surfaces.body[found.vertices[:, [0, -1]]]
        return Barriers(
            vertices=found.vertices.astype(np.int32),
            crossing=found.crossing,
            stiffness=self.stiffness[body].min(axis=1),
            reach=reach,
            keys=found.keys,
            positions=self.surfaces.rest,
            capacity=capacity,
        )

    def _reach(self, found: Gaps) -> tuple[Gaps, np.ndarray]:
        """Those that can push each other, and from which distance on: h, and less within a body where it is
        so narrow at rest."""
        reach = np.full(len(found.distance), self.thickness)
        body = self.surfaces.body[found.vertices[:, [0, -1]]]
        own = np.flatnonzero(body[:, 0] == body[:, 1])
        reach[own] = np.minimum(reach[own], OWN * distances_at(self.surfaces.rest, found.where(own)))
        kept = reach > 0
        return found.where(kept), reach[kept]

    def _refuse_crossings(self, problem: Problem) -> None:
        """Refuse to begin where surfaces have passed each other already."""
        found = crossings(self.surfaces, problem.positions, problem.device.threads)
        if found:
            raise ValueError(already_crossing([each.sentence(list(self.names)) for each in found]))
        problem.room.checked = True


def already_crossing(sentences: list[str]) -> str:
    return (
        f"contact = 'barrier' must begin where nothing intersects, but {'; '.join(sentences)}. Move the "
        "bodies apart, or take contact = 'weak', which pushes them apart."
    )


def with_barrier_contact(
    model: Model,
    triangles: np.ndarray,
    flat: np.ndarray,
    young: np.ndarray,
    thickness: float | None = None,
    stiffness: float | None = None,
) -> Model:
    """The model with contact between the triangles (t, 3) of its surfaces; flat (bodies,): those that have no
    inside; young (bodies,): E [Pa]."""
    surfaces = surfaces_of(model, triangles, flat)
    edge = surfaces.edge
    thick = THICKNESS * edge if thickness is None else thickness
    stiff = STIFFNESS * young * edge if stiffness is None else np.full(len(young), stiffness)
    names = tuple(name for name, _ in model.body_vertices)
    contact = BarrierContact(surfaces, thick, stiff, names)
    nothing = np.full(len(model.rest), ANYWHERE)
    capacity = max(64, len(surfaces.vertices))
    none = contact.term(Gaps(np.empty((0, 4), np.int64), *_empty()), nothing, capacity)
    followers = (*model.followers, (len(model.terms), contact))
    return replace(model, terms=(*model.terms, none), followers=followers)


def _empty() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.empty(0, bool), np.empty(0), np.empty(0, np.int64)


def surfaces_of(model: Model, triangles: np.ndarray, flat: np.ndarray) -> Surfaces:
    return Surfaces(triangles, owners(model), model.rest, 0.0, flat)


@dataclass(frozen=True)
class ApartReport:
    """Contact of bodies with each other and themselves, none of which has passed another: contacts, which are
    nearer than the thickness; the smallest gap [m], None where nothing is near; how far pinned vertices are
    behind their motion [m]; the force [N] on each body, which are 0 in sum."""

    contacts: int
    gap: float | None
    behind: float
    bodies: dict[str, tuple[float, float, float]]

    @property
    def depth(self) -> float:
        """Of what has passed, which is nothing [m]."""
        return 0.0

    def __str__(self) -> str:
        gap = "" if self.gap is None else f", smallest gap {self.gap:.2e} m"
        return f"{counted(self.contacts, 'contact')} between bodies{gap}"


def kept_apart(problem: Problem) -> ApartReport | None:
    """At the problem's present u; None where there is no barrier."""
    own = [(k, f) for k, f in problem.model.followers if isinstance(f, BarrierContact)]
    if not own:
        return None
    ((index, contact),) = own
    term: Any = problem.model.terms[index]
    force = term.forces(problem.positions)
    bodies = {}
    for name, vertices in problem.model.body_vertices:
        fx, fy, fz = map(float, force[vertices].sum(axis=0))
        bodies[name] = fx, fy, fz
    found, reach = contact._reach(contact._look(problem)[0])
    apart = found.distance[found.distance < reach]
    others = found.distance[surfaces_apart(contact.surfaces, found)]
    gap = float(others.min()) if len(others) else None
    return ApartReport(len(apart), gap, problem.room.behind, bodies)


def surfaces_apart(surfaces: Surfaces, found: Gaps) -> np.ndarray:
    """(m,) whether pairs are of different bodies, or farther from each other at rest than they are now."""
    body = surfaces.body[found.vertices[:, [0, -1]]]
    return (body[:, 0] != body[:, 1]) | (distances_at(surfaces.rest, found) > 2 * found.distance)
