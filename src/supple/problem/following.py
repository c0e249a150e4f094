"""Stencils that follow the vertices: who exchanges them within a step, and when."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from supple.contact.rigid import Hold, Response
from supple.grip import grip_of, owners, rubbing_terms
from supple.problem.contacts import measure_rigid
from supple.problem.measures import stiffness_of
from supple.terms import Term

if TYPE_CHECKING:
    from supple.problem.problem import Problem


GIVING_WAY = 10
"""Iterations after which rigid bodies are moved by what touches them."""


class Follower(Protocol):
    """Says which stencils a term has where the vertices of a problem are, as contacts do."""

    every: int | None
    """Iterations after which it looks again within a step; None: at the beginning of each step only."""

    def follow(self, problem: Problem, time: float) -> Term | None:
        """The term with the stencils of where the problem is, in the step that ends at a time [s]; None where
        those stay that there are. Nothing but the state of the problem, the time, and what it has `noted`
        since the step began may count, so that a motion that goes on from a state is the one that was not
        interrupted."""


class Confining(Follower, Protocol):
    """A follower that lets no surfaces pass each other, by balls that vertices must not leave (`Room`)."""

    confines: bool

    def confine(self, problem: Problem) -> None:
        """Give the problem's vertices balls where they are."""

    def fly(self, problem: Problem) -> None:
        """Let every body go from where its vertices have their balls to the problem's u, as far as it gets
        without passing anything."""

    def shorten(self, problem: Problem, start: np.ndarray) -> None:
        """Go back on the straight way that has led from records `start` to the problem's u, as far as needed
        for nothing to have passed anything on it."""


class Following:
    """The followers of a problem's model, and when they have looked last."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._time, self._done = problem, math.inf, 0
        periods = [follower.every for _, follower in problem.model.followers if follower.every is not None]
        self.noted: dict[int, Any] = {}
        """What followers have seen since a step began, by the numbers of their terms."""
        if problem.contacts.rigid:
            periods.append(GIVING_WAY)
        self._every = min(periods, default=None)
        self.condense: Callable[[Problem, Sequence[Hold]], list[Response] | None] | None = None
        """Finds the stiffness that rigid bodies feel of soft ones; None where displacements are not all that
        a solver goes on from, or on a device."""
        self.beginning = True
        """Whether the present look is the one at the beginning of a step."""
        self.balanced = False
        """Whether all forces seem to balance in the present look."""
        self.residual = math.inf
        """What is missing to that [N], where it is known."""
        self.settled = True
        """Whether rigid bodies that faces are kept out of are where these let them be: what slides on them
        need not feel that they move."""
        self.grips: dict[int, Any] = {}
        """Of terms whose contacts rub, by their numbers: what is known of them where the step began."""
        self.given: dict[int, np.ndarray] = {}
        """Of barriers that rub: what a state had of them that somebody has set, until a step begins."""

    @property
    def rough(self) -> bool:
        """Whether anything rubs, on obstacles or on other bodies: then forces are those of no energy."""
        return self._problem.contacts.rough or self.rubs

    @property
    def rubs(self) -> bool:
        """Whether bodies rub on each other."""
        return bool(rubbing_terms(self._problem.model))

    def settle(self) -> bool:
        """Where a step ends: have obstacles where they are then, and let rigid bodies feel what touches them
        now; True where any moved."""
        undone, self._done = self._done, 0
        moved = self._problem.room.finish()
        if undone > 0 and self._give_way():
            measure_rigid(self._problem.contacts, *self._rigid_pushes())
            return True
        return moved

    def remember(self) -> None:
        """Know where a step begins, before anything moves."""
        problem = self._problem
        for index in rubbing_terms(problem.model):
            term: Any = problem.model.terms[index]
            u = problem.states.vectors(problem.u)[0].astype(float)
            rows = self.given.pop(index, None)
            self.grips[index] = grip_of(term, problem.positions, u, owners(problem.model), rows)

    def begin_step(self, time: float) -> None:
        """Look where the step that ends at a time [s] begins."""
        if self._problem.model.followers or self._problem.contacts.rigid:
            self._time, self._done = time, 0
            self._problem.follower_loads.time = time
            self._look(True)

    @property
    def _confining(self) -> Iterator[Confining]:
        return (f for _, f in self._problem.model.followers if getattr(f, "confines", False))

    @property
    def _pressing(self) -> list[Any]:
        """Those who keep faces out of obstacles."""
        return [f for _, f in self._problem.model.followers if getattr(f, "presses", False)]

    def make_room(self) -> None:
        """Let those who confine vertices give them balls where they are."""
        for follower in self._confining:
            follower.confine(self._problem)

    def fly(self) -> None:
        """Let bodies go from where their balls are to where inertia takes them, as far as they may."""
        for follower in self._confining:
            follower.fly(self._problem)

    def keep_apart(self, start: np.ndarray) -> None:
        """Go back as far as needed on the straight way that has led from records `start` to u."""
        for follower in self._confining:
            follower.shorten(self._problem, start)

    @property
    def looks(self) -> bool:
        """Whether stencils may be exchanged within a step."""
        return self._every is not None

    def until_look(self, iterations: int) -> int:
        """At most so many iterations before the next look."""
        return iterations if self._every is None else max(1, min(iterations, self._every - self._done))

    def iterated(self, iterations: int, balanced: bool = False, residual: float = math.inf) -> bool:
        """Know that so many iterations were made, and look where it is time or where all forces seem to
        balance, but for a residual [N]; True where stencils were exchanged."""
        if self._every is None:
            return False
        self._done += iterations
        if self._done == 0 or not (balanced or self._done >= self._every or self._problem.room.crowded):
            return False
        self._done = 0
        self.balanced, self.residual = balanced, residual
        return self._look(False)

    def count(self, iterations: int) -> None:
        """Know that the last iterations of a step were made, after which only `settle` looks."""
        self._done += iterations

    def _look(self, beginning: bool) -> bool:
        if self._problem.copies > 1:
            raise ValueError(
                "stencils that follow the vertices, and rigid bodies, need one copy of the state"
            )
        self.beginning = beginning
        exchanged = not beginning and self._give_way()
        self.settled = not (exchanged and self._pressing)
        if beginning:
            self.noted.clear()
        for index, follower in self._problem.model.followers:
            term = follower.follow(self._problem, self._time) if beginning or follower.every else None
            if term is not None:
                self._problem.refresh(index, term)
                exchanged = True
        return self._problem.room.press() or exchanged

    def _give_way(self) -> bool:
        """Let rigid bodies move; True where they did."""
        problem = self._problem
        contacts = problem.contacts
        if not contacts.rigid:
            return False
        stiffness, others = self._rigid_pushes()
        if self.condense is None or problem.room:
            return contacts.give_way(stiffness, others)
        start = problem.u.copy()
        moved = contacts.give_way(stiffness, others, partial(self.condense, problem))
        if moved and not problem.balance().finite:  # soft bodies were not to follow so far
            problem.device.assign(problem.u, start)
            contacts.condensed.disable()
            contacts.detect()
        return moved

    def _rigid_pushes(self) -> tuple[np.ndarray, list[list[Any]]]:
        """The stiffness (n,) [N/m] of vertices by the forces here, and what else pushes each rigid body."""
        problem = self._problem
        problem.balance()
        stiffness, rigid = stiffness_of(problem.measures), problem.contacts.rigid
        return stiffness, [
            [f.push(problem, motion.body.row, stiffness) for f in self._pressing] for motion in rigid
        ]
