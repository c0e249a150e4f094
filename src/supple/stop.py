"""When a solve ends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from supple.checks import one_number, positive, whole_number

if TYPE_CHECKING:
    from supple.solvers import Solver

DEFAULT_TOLERANCE = 1e-4
"""The imbalance to reach where nothing says when to stop: at every door, in Python, scene files and
commands."""

DEFAULT_DISTANCE = 1e-4
"""How close to the equilibrium every body must be then, relative to its size, where there is one to reach."""


@dataclass(frozen=True)
class Stop:
    """When a solve ends: whichever comes first. All of it is said here: `Stop(max_iterations=20)` has no
    tolerance, while `max_iterations=20` as a keyword of a call comes on top of the default one.

    tolerance: the imbalance of forces to reach, between 0 and 1. max_iterations: at least 1, without those in
    which pins and obstacles go on to where they are to be, where contact lets nothing pass. time_budget [s].
    None sets no limit. distance: where the imbalance is reached, every body must also be this close to the
    equilibrium, relative to its size; None where that is not asked, and then not computed."""

    tolerance: float | None = None
    max_iterations: int | None = None
    time_budget: float | None = None
    distance: float | None = None

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            one_number("tolerance", self.tolerance, above=0, below=1)
        if self.max_iterations is not None:
            whole_number("max_iterations", self.max_iterations)
        if self.time_budget is not None:
            positive("time_budget", self.time_budget, "s")
        if self.distance is not None:
            one_number("distance", self.distance, above=0, below=1)

    @property
    def open(self) -> bool:
        """Whether it sets no limit."""
        return self == Stop()

    def completed(self, solver: Solver, otherwise: Stop | None = None) -> Stop:
        """With the solver's own iterations where the number is left open, and with another stop, that at the
        default tolerance unless given, where nothing then sets a limit."""
        mine = self if self.max_iterations is not None else replace(self, max_iterations=solver.iterations)
        return (otherwise or Stop(DEFAULT_TOLERANCE)) if mine.open else mine
