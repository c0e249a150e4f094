"""What every acceleration provides: what follows a sweep to make the next one start from a better place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from supple.kernels import generic
from supple.problem import Balance, Balances, Problem


class Acceleration(ABC):
    """An acceleration and its options, a frozen dataclass."""

    kind: ClassVar[str]
    """Its name in scene files and on the command line."""

    @property
    def relaxation(self) -> float:
        """The part of each vertex's step that a sweep takes."""
        return 1.0

    @abstractmethod
    def begin(self, problem: Problem) -> AccelerationRun:
        """Put it to work on a problem, from the problem's present u."""

    def memory(self, vertices: int, number: int) -> int:
        """Bytes that a run keeps for each instance of the state, in numbers of so many bytes."""
        return 0


class AccelerationRun(ABC):
    """An acceleration at work."""

    guarded: bool = True
    """Whether it must observe the residual to stay stable."""

    @property
    def follows(self) -> tuple[np.ndarray, ...]:
        """Records that are u, and must be where something else than sweeps has changed that."""
        return ()

    @property
    def caution(self) -> Any:
        """How far a run with other stencils is to accelerate, for its `resume`."""
        return None

    def resume(self, caution: Any) -> None:  # noqa: B027
        """Accelerate no further than a run before this one, whose stencils were exchanged, did last."""

    @abstractmethod
    def ahead(self, iterations: int) -> Any:
        """What `accelerate` needs for the next sweeps, with `phases`: how many follow a sweep."""

    def notes(self, copy: int = 0) -> list[str]:
        """Sentences for the report."""
        return []

    def start_at(self, balances: Balances) -> None:  # noqa: B027
        """Take note of the balances of all copies where a solve starts."""

    def observe(self, balance: Balance, copy: int = 0) -> bool:
        """See how far the residual has come; True when that led to another u."""
        return False

    def observe_all(self, balances: Balances, active: np.ndarray) -> np.ndarray:
        """See how far the residuals of all active copies have come; (copies,) which have another u."""
        moved = np.zeros(balances.residual.shape, bool)
        for copy in active.tolist():
            moved[copy] = self.observe(balances[copy], copy)
        return moved


class NoMemory(NamedTuple):
    """Sweeps as they are. phases: how many phases follow a sweep."""

    phases: Any


class Unaccelerated(AccelerationRun):
    """Nothing follows a sweep."""

    guarded = False

    def ahead(self, iterations: int) -> NoMemory:
        return NoMemory(0)


@generic
def accelerate(acceleration, team, phase, iteration, u):
    """Improve u after a sweep, in the phases from `phase` on; returns the one that follows."""


@accelerate.of(NoMemory)
def _nothing(acceleration, team, phase, iteration, u):
    return phase
