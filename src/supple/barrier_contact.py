"""Contact that lets no surfaces pass each other: a barrier, and balls that vertices must not leave.

Where surfaces are nearer than h, the energy of `Barriers` keeps them apart. Whenever contacts are found,
every vertex gets a ball in which nothing can pass anything (`contact.gaps`), whatever solver moves it, and
the term gets all pairs that can come nearer than h while vertices stay in their balls: between two looks the
energy is exact, and the same one before and after a look.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.barrier_grip import BarrierGrip
from supple.barrier_start import rest_gaps, start_notes
from supple.contact.approaching import approach
from supple.contact.candidates import Candidates
from supple.contact.coasting import flown
from supple.contact.crossing import crossings
from supple.contact.gaps import ANYWHERE, PART, Gaps, Neighbours, distances_at, gaps, within_reach
from supple.contact.halting import halted
from supple.contact.pairs import Surfaces
from supple.contact.passing import first_touch
from supple.grip import owners, rows_from
from supple.kernels import HOST, Runner
from supple.model import Model, unpinned
from supple.pushing_apart import pushed_apart, touching
from supple.terms import Barriers
from supple.terms.barrier_hessian import closest

if TYPE_CHECKING:
    from supple.problem import Problem

THICKNESS, STIFFNESS, RADIUS = 0.05, 30.0, 0.5
"""Unless given, in parts of the mean edge e of the surfaces: h, and how far the neighbours of vertices are
looked for; the stiffness in parts of E e, E being Young's modulus of the softer of two bodies."""

MIN_THICKNESS = 0.1
"""Smallest thickness of two bodies that start nearer to each other than h, relative to h."""

FARTHEST, NARROW = 5.0, 0.4
"""A pair farther apart than so many h cannot get nearer than h in balls of 0.4 times its distance; part of
the radius below which neighbours are looked for again."""

AHEAD = 1.0
"""How much farther off than it need be, in parts of h, a pair may be to be among the barriers."""

OWN = 0.5
"""Part of their distance at rest from which on parts of a body push each other, where that is less than
h."""

EVERY = 10
"""Iterations after which contacts are found anew, unless vertices want to go on earlier."""


@dataclass(frozen=True, eq=False)
class BarrierContact:
    """Says which barriers there are where the vertices of a problem are, and how far these may move: a
    `Confining` follower. thickness h [m]; stiffness (bodies,): k [N/m] of each, of which two have the
    smaller; names of the bodies; friction (2, bodies, bodies): μ of what sticks and of what slides, of every
    pair, or None; push_apart: Young's modulus [Pa] by which what intersects where a motion begins is pushed
    apart, None where that is refused."""

    surfaces: Surfaces
    thickness: float
    stiffness: np.ndarray
    names: tuple[str, ...]
    friction: np.ndarray | None = None
    push_apart: float | None = None
    every: int | None = EVERY
    confines: bool = True

    @cached_property
    def _candidates(self) -> Candidates:
        return Candidates(self.surfaces)

    @cached_property
    def pair_thickness(self) -> np.ndarray:
        """(bodies, bodies) [m] thickness of each pair of bodies: its gap at rest where that is less than h,
        so that the barrier stores no energy at the start, but at least `MIN_THICKNESS` h."""
        return np.maximum(rest_gaps(self.surfaces, self.thickness), MIN_THICKNESS * self.thickness)

    @property
    def radius(self) -> float:
        """How far neighbours are looked for [m]."""
        return max(FARTHEST * self.thickness, RADIUS * self.surfaces.edge)

    def confine(self, problem: Problem) -> None:
        problem.room.settle(self.near(problem).rooms())

    def near(self, problem: Problem, anew: bool = False) -> Neighbours:
        """All pairs that are near where the vertices are; without looking for them where those will do that
        are known, unless they are to be found anew, or somebody has set where vertices are."""
        room, finder = problem.room, problem.device
        anew = anew or not room.checked
        if not room.checked:
            self._check(problem)
        known: Neighbours | None = None if anew else room.neighbours
        x, least = problem.positions, max(FARTHEST * self.thickness, NARROW * self.radius)
        here = None if known is None else known.at(x, least, finder)
        if here is None:
            pairs = gaps(self.surfaces, x, self.radius, finder, self._candidates)
            here = room.neighbours = Neighbours(self.surfaces, pairs, self._reach(pairs), self.radius, x)
        return here

    def fly(self, problem: Problem) -> None:
        """Whole bodies, with what is inside of them: vertices that left their neighbours behind would invert
        elements."""
        states, room = problem.states, problem.room
        assert room.balls
        u, start = states.vectors(problem.u)[0], states.vectors(room.balls.centre)[0].astype(float)
        far = ((u - start) ** 2).sum(axis=1) > room.radii**2
        if not far.any():
            return
        x, finder = self.surfaces.rest + start, problem.device
        self._halt(problem, x)
        known: Neighbours | None = None if room.neighbours is None else room.neighbours.at(x, 0.0, finder)
        for flight in room.pins.flights(u - start, self.surfaces.body, room.radii):
            part = flown(self.surfaces, x, flight.step, self.thickness, finder, known, self._candidates)
            if (part[flight.led] >= 1).all():
                break
        u[:] = start + part[self.surfaces.body, None] * flight.step
        problem.device.push(problem.u)
        if flight.share > 0:
            room.pins.go(flight.share)
        room.stale = True

    def _halt(self, problem: Problem, x: np.ndarray) -> None:
        """Have bodies that fly from x (n, 3) [m] to the problem's u stop where they meet obstacles, which
        touch them there."""
        contacts, surfaces, u = problem.contacts, self.surfaces, problem.states.vectors(problem.u)[0]
        if contacts.obstacles is None:
            return
        goal, free = surfaces.rest + u, unpinned(problem.model)
        some = surfaces.vertices[free[surfaces.vertices]]
        there = halted(contacts.obstacles, contacts.shapes, x, goal, surfaces.body, some, self.thickness)
        stop = free & (there != goal).any(axis=1)
        if stop.any():
            u[stop] = (there - surfaces.rest)[stop]
            problem.device.push(problem.u)
            contacts.detect()
            problem.device.pull(problem.u)

    def shorten(self, problem: Problem, start: np.ndarray) -> None:
        """Pairs of which the term does not know come no nearer than its reach, lest there be an energy
        that nobody has seen."""
        states = problem.states
        u, x = states.vectors(problem.u)[0], self.surfaces.rest + states.vectors(start)[0]
        step = u - states.vectors(start)[0]
        nearer = approach(self.surfaces, x, step, self.thickness)
        whole = min(1.0, self.surfaces.edge / max(nearer, 1e-300))
        pairs = self._around(problem, start, x, whole * nearer + self.thickness)
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
            found = gaps(self.surfaces, x, radius, problem.device, self._candidates)
            known = problem.room.around = start, radius, found
        pairs: Gaps = known[2]
        return pairs

    def _bounds(self, problem: Problem, pairs: Gaps) -> tuple[Gaps, np.ndarray]:
        """Pairs with the least distance [m] that each may have."""
        reach = self._reach(pairs)
        known = np.isin(pairs.keys, self._term_of(problem).keys)
        return pairs, np.where(known | (pairs.distance <= reach), 0.0, reach)

    def follow(self, problem: Problem, time: float) -> Barriers | None:
        room, near = problem.room, self.near(problem)
        radii = near.rooms()
        room.settle(radii)
        moved = room.pins.pursue(room.radii, self.thickness, PART * self.radius)
        fresh, room.fresh = room.fresh, False
        grip = None if self.friction is None else problem.following.grips.get(self._index(problem))
        new, old = self.term(near.pairs, near.reach, radii, grip), self._term_of(problem)
        same = np.array_equal(old.keys, new.keys)
        enough = same or (not fresh and bool(np.isin(new.keys, old.keys).all()))
        begins = new.rough and problem.following.beginning  # springs are those of the step
        return None if enough and not moved and not begins else new

    def _index(self, problem: Problem) -> int:
        return next(k for k, own in problem.model.followers if own is self)

    def _term_of(self, problem: Problem) -> Any:
        return problem.model.terms[self._index(problem)]

    def at(self, model: Model, x: np.ndarray, remembered: Mapping[str, Any]) -> Barriers:
        """The barriers with vertices at positions x (n, 3), where nothing must have passed anything, and
        their friction as a state remembers it."""
        self._refuse_crossings(x)
        found = gaps(self.surfaces, x, self.thickness)
        grip = None if self.friction is None else BarrierGrip(x, rows_from(remembered))
        return self.term(found, self._reach(found), np.zeros(len(x)), grip, max(1, len(found.keys)))

    def meeting_points(self, x: np.ndarray) -> np.ndarray:
        """(m, 3) [m] where surfaces push each other, with vertices at x (n, 3)."""
        found = gaps(self.surfaces, x, self.thickness)
        found = found.where(found.distance < self._reach(found))
        weights, _ = closest(x[found.vertices], found.crossing)
        return np.einsum("mk,mki->mi", np.maximum(weights, 0.0), x[found.vertices])

    def term(
        self,
        found: Gaps,
        reach: np.ndarray,
        radii: np.ndarray,
        grip: BarrierGrip | None = None,
        capacity: int = 0,
    ) -> Barriers:
        """All pairs that can get nearer than their reach (m,) [m] in balls of radii (n,); in a step of which
        the grip tells where it began, where they rub."""
        kept = (reach > 0) & within_reach(found, radii, (1 + AHEAD) * reach)
        found, reach = found.where(kept), reach[kept]
        stiffness = self.stiffness[self.surfaces.body[found.vertices[:, [0, -1]]]].min(axis=1)
        rubs = None
        if self.friction is not None:
            grip = grip or BarrierGrip(self.surfaces.rest, rows_from({}))
            rubs = grip.rubs(found, stiffness, self.surfaces.body, self.friction)
        return Barriers(
            vertices=found.vertices.astype(np.int32),
            crossing=found.crossing,
            stiffness=stiffness,
            reach=reach,
            keys=found.keys,
            positions=self.surfaces.rest,
            capacity=capacity,
            rubs=rubs,
        )

    def _reach(self, found: Gaps) -> np.ndarray:
        """(m,) [m] from which distance on pairs push each other: the thickness of their bodies, and less
        within a body where it is so narrow at rest."""
        body = self.surfaces.body[found.vertices[:, [0, -1]]]
        reach = self.pair_thickness[body[:, 0], body[:, 1]]
        own = np.flatnonzero(body[:, 0] == body[:, 1])
        reach[own] = np.minimum(reach[own], OWN * distances_at(self.surfaces.rest, found.where(own)))
        return reach

    def _check(self, problem: Problem) -> None:
        """Refuse to begin where surfaces have passed each other already, or push them apart."""
        finder, x = problem.device, problem.positions
        close = touching(self.surfaces, x, self.thickness, finder)
        if self.push_apart is not None and (close or crossings(self.surfaces, x, finder)):
            how = self.thickness, self.push_apart, problem.device.threads
            problem.positions = pushed_apart(problem.model, self.surfaces, x, *how)
            problem.following.remember()
            close = touching(self.surfaces, problem.positions, self.thickness, finder)
        self._refuse_crossings(problem.positions, finder)
        if close:
            pairs = [f"{self.names[a]!r} touches {self.names[b]!r}" for a, b in close]
            raise ValueError(already_crossing(pairs))
        problem.room.start_notes = self._start_notes(problem.positions)
        problem.room.checked = True

    def _start_notes(self, x: np.ndarray) -> list[str]:
        found = gaps(self.surfaces, self.surfaces.rest, self.thickness)
        how = self._reach(found), self.stiffness, self.pair_thickness, self.names
        return start_notes(self.surfaces, found, *how) if np.array_equal(x, self.surfaces.rest) else []

    def _refuse_crossings(self, x: np.ndarray, runner: Runner = HOST) -> None:
        found = crossings(self.surfaces, x, runner)
        if found:
            raise ValueError(already_crossing([each.sentence(list(self.names)) for each in found]))


def already_crossing(sentences: list[str]) -> str:
    return (
        "contact = 'barrier' must begin where nothing intersects or touches, but "
        f"{'; '.join(sentences)}. Move the bodies apart, have them pushed apart with push_apart = true, or "
        "take contact = 'weak'."
    )


def with_barrier_contact(
    model: Model,
    triangles: np.ndarray,
    flat: np.ndarray,
    young: np.ndarray,
    thickness: float | None = None,
    stiffness: float | None = None,
    friction: np.ndarray | None = None,
    push_apart: bool = False,
) -> Model:
    """The model with contact between the triangles (t, 3) of its surfaces; flat (bodies,): those that have no
    inside; young (bodies,): E [Pa]; friction: as in `BarrierContact`; push_apart: whether what intersects is
    pushed apart."""
    surfaces = surfaces_of(model, triangles, flat)
    edge = surfaces.edge
    thick = THICKNESS * edge if thickness is None else thickness
    stiff = STIFFNESS * young * edge if stiffness is None else np.full(len(young), stiffness)
    names = tuple(name for name, _ in model.body_vertices)
    apart = float(young.max()) if push_apart else None
    contact = BarrierContact(surfaces, thick, stiff, names, friction, apart)
    nothing = np.full(len(model.rest), ANYWHERE)
    capacity = max(64, len(surfaces.vertices))
    pairs = Gaps(np.empty((0, 4), np.int64), np.empty(0, bool), np.empty(0), np.empty(0, np.int64))
    none = contact.term(pairs, np.empty(0), nothing, None, capacity)
    followers = (*model.followers, (len(model.terms), contact))
    return replace(model, terms=(*model.terms, none), followers=followers)


def surfaces_of(model: Model, triangles: np.ndarray, flat: np.ndarray) -> Surfaces:
    return Surfaces(triangles, owners(model), model.rest, 0.0, flat)
