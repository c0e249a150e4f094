"""Stencils that follow the vertices: who exchanges them within a step, and when."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from supple.terms import Term

if TYPE_CHECKING:
    from supple.problem.problem import Problem


class Follower(Protocol):
    """Says which stencils a term has where the vertices of a problem are, as contacts do."""

    every: int | None
    """Iterations after which it looks again within a step; None: at the beginning of each step only."""

    def follow(self, problem: Problem, time: float) -> Term | None:
        """The term with the stencils of where the problem is, in the step that ends at a time [s]; None where
        those stay that there are. Nothing but the state of the problem and the time may count, so that a
        motion that goes on from a state is the one that was not interrupted."""


class Following:
    """The followers of a problem's model, and when they have looked last."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._time, self._done = problem, math.inf, 0
        periods = [follower.every for _, follower in problem.model.followers if follower.every is not None]
        self._every = min(periods, default=None)

    def begin_step(self, time: float) -> None:
        """Look where the step that ends at a time [s] begins."""
        if self._problem.model.followers:
            self._time, self._done = time, 0
            self._look(True)

    def until_look(self, iterations: int) -> int:
        """At most so many iterations before the next look."""
        return iterations if self._every is None else max(1, min(iterations, self._every - self._done))

    def iterated(self, iterations: int, balanced: bool = False) -> bool:
        """Know that so many iterations were made, and look where it is time or where all forces seem to
        balance; True where stencils were exchanged."""
        if self._every is None:
            return False
        self._done += iterations
        if self._done == 0 or not (balanced or self._done >= self._every):
            return False
        self._done = 0
        return self._look(False)

    def _look(self, beginning: bool) -> bool:
        if self._problem.copies > 1:
            raise ValueError("stencils that follow the vertices need a problem with one copy of the state")
        exchanged = False
        for index, follower in self._problem.model.followers:
            if beginning and hasattr(follower, "begin"):
                follower.begin()
            term = follower.follow(self._problem, self._time) if beginning or follower.every else None
            if term is not None:
                self._problem.refresh(index, term)
                exchanged = True
        return exchanged
