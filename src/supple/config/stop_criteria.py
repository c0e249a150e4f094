"""Termination criteria of a solve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from supple.support.arguments import check_integer, check_number, check_positive
from supple.support.keywords import suggest_keywords

if TYPE_CHECKING:
    from supple.solvers import Solver

DEFAULT_TOLERANCE = 1e-4
"""Default tolerance of the relative residual in Python, scene files and commands."""

DEFAULT_POSITION_TOLERANCE = 1e-4
"""Default distance of every body from the equilibrium, relative to its size, in solves for an equilibrium."""


@suggest_keywords
@dataclass(frozen=True)
class StopCriteria:
    """Termination criteria of a solve, which ends at whichever comes first.

    A `StopCriteria` replaces all defaults: `StopCriteria(max_iterations=20)` has no tolerance, while the
    keyword `max_iterations=20` of a call applies in addition to the default tolerance. None disables a limit.

    Attributes:
        tolerance: Tolerance of the relative residual, between 0 and 1.
        max_iterations: Iteration limit, at least 1. With barrier contact, iterations in which pins and
            obstacles still move to their targets are not counted.
        time_limit: Time limit [s].
        position_tolerance: Largest distance of every body from the equilibrium, relative to its size,
            required in addition to the tolerance. None disables its estimate.

    Raises:
        ValueError: A limit is out of range.
    """

    tolerance: float | None = None
    max_iterations: int | None = None
    time_limit: float | None = None
    position_tolerance: float | None = None

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            check_number("tolerance", self.tolerance, above=0, below=1)
        if self.max_iterations is not None:
            check_integer("max_iterations", self.max_iterations)
        if self.time_limit is not None:
            check_positive("time_limit", self.time_limit, "s")
        if self.position_tolerance is not None:
            check_number("position_tolerance", self.position_tolerance, above=0, below=1)

    @property
    def is_unlimited(self) -> bool:
        """True if no criterion is set."""
        return self == StopCriteria()

    def with_defaults(self, solver: Solver, otherwise: StopCriteria | None = None) -> StopCriteria:
        """Fill in a missing limit: the solver's own iterations, otherwise the given criteria.

        Args:
            solver: Solver, whose `iterations` replace a missing iteration limit.
            otherwise: Criteria if there is still no limit; the default tolerance unless given.

        Returns:
            The criteria with at least one limit.
        """
        own = self if self.max_iterations is not None else replace(self, max_iterations=solver.iterations)
        return (otherwise or StopCriteria(DEFAULT_TOLERANCE)) if own.is_unlimited else own
