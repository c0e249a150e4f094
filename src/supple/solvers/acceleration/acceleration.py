"""Interface of accelerations, which modify u after each sweep."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from supple.kernels import generic
from supple.problem import Balance, Balances, Problem


class Acceleration(ABC):
    """Options of an acceleration, as a frozen dataclass."""

    kind: ClassVar[str]
    """Name in scene files and on the command line."""

    @property
    def relaxation(self) -> float:
        """Relaxation factor of vertex steps within a sweep."""
        return 1.0

    @abstractmethod
    def begin(self, problem: Problem) -> AccelerationRun:
        """Begin a run at the problem's present u.

        Args:
            problem: Problem whose sweeps are accelerated.

        Returns:
            Run with the private state of the acceleration.
        """

    def memory(self, vertices: int, number: int) -> int:
        """Return the memory of a run per batch member [bytes].

        Args:
            vertices: Number of vertices.
            number: Size of a floating-point number [bytes].

        Returns:
            Memory [bytes].
        """
        return 0


class AccelerationRun(ABC):
    """Accelerated run on one problem."""

    needs_monitoring: bool = True
    """True if the run must observe the residual to stay stable."""

    @property
    def copies_of_u(self) -> tuple[np.ndarray, ...]:
        """Padded vectors equal to u that must be updated whenever u changes outside of sweeps."""
        return ()

    @property
    def safeguard(self) -> Any:
        """State of the safeguard, passed to `resume` of the next run after an exchange of stencils."""
        return None

    def resume(self, safeguard: Any) -> None:  # noqa: B027
        """Continue with the safeguard state of an earlier run whose stencils were exchanged."""

    @abstractmethod
    def prepare_sweeps(self, iterations: int) -> Any:
        """Return the data of `accelerate` for the next sweeps, with `phases` per sweep."""

    def notes(self, member: int = 0) -> list[str]:
        """Return notes for the report."""
        return []

    def start_at(self, balances: Balances) -> None:  # noqa: B027
        """Record initial balances of all batch members."""

    def observe(self, balance: Balance, member: int = 0) -> bool:
        """Record the residual of a batch member; return True if u was reset."""
        return False

    def observe_all(self, balances: Balances, active: np.ndarray) -> np.ndarray:
        """Record the residuals of all active batch members.

        Args:
            balances: Balances of the batch.
            active: Active batch members.

        Returns:
            (batch,) True for members whose u was reset.
        """
        moved = np.zeros(balances.residual.shape, bool)
        for member in active.tolist():
            moved[member] = self.observe(balances[member], member)
        return moved


class NoMemory(NamedTuple):
    """Unaccelerated sweeps; `phases` is the number of phases after a sweep."""

    phases: Any


class Unaccelerated(AccelerationRun):
    """Run without acceleration."""

    needs_monitoring = False

    def prepare_sweeps(self, iterations: int) -> NoMemory:
        return NoMemory(0)


@generic
def accelerate(acceleration, team, phase, iteration, u):
    """Accelerate u after a sweep, from `phase` on; return the next phase."""


@accelerate.of(NoMemory)
def _nothing(acceleration, team, phase, iteration, u):
    return phase
