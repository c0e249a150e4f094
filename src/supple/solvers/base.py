"""Base classes of solvers: options with declared capabilities, and runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from supple.config.backend import PRECISIONS
from supple.kernels.devices import DEVICES
from supple.model.model import Model
from supple.problem import Balance, Balances, Problem

if TYPE_CHECKING:
    from supple.solvers.newton_methods.batched_newton import BatchedNewton


class Solver(ABC):
    """Options of a solution method, a frozen dataclass.

    Class attributes declare its capabilities. Callers query these, never the name of a solver.
    """

    name: ClassVar[str]
    devices: ClassVar[tuple[str, ...]] = DEVICES
    """Supported devices. The first one replaces an unsupported request if a choice is permitted."""
    precisions: ClassVar[tuple[str, ...]] = PRECISIONS
    """Supported precisions. The last one replaces an unsupported request if a choice is permitted."""
    batches: ClassVar[bool] = False
    """True if a device solves a batch of states at once; otherwise batch members are solved one by one."""
    solves_systems: ClassVar[bool] = False
    """True if an iteration solves a global linear system.

    Such iterations are slow, and after a few of them only rounding errors remain.
    """
    recovers_from_inversion: ClassVar[bool] = False
    """True if the method can start from inverted elements of barrier materials."""
    any_term: ClassVar[bool] = True
    """True if the method treats any term by its forces; otherwise terms need a projection, see `projects`."""
    parts: ClassVar[dict[str, dict[str, type]]] = {}
    """Options with options of their own: option → classes by name. The name of None is "none"."""
    only_with: ClassVar[dict[str, tuple[str, str]]] = {}
    """Options without effect unless another option has a certain value: option → (other option, value)."""

    accepts_guess: ClassVar[bool] = True
    """True if a step accepts any initial guess; otherwise the method starts from its own, based on û."""

    iterations: int | None = None
    """Iterations per step unless the call sets a limit."""
    damping: float = 0.0
    """Fraction of every velocity that is removed per time step."""

    @property
    def balances_forces(self) -> bool:
        """True if the method converges to force balance; False if it satisfies constraints instead."""
        return True

    def phases(self) -> tuple[Solver, ...]:
        """Return the solver, followed by variants for starts in a later phase.

        Methods that switch algorithms during a run have such variants.

        Returns:
            The solver first, then its variants; most methods have none.
        """
        return (self,)

    def for_close_guess(self) -> Solver:
        """Return the variant of the solver that suits initial guesses close to the solution.

        Returns:
            The variant; the solver itself for most methods.
        """
        return self

    @abstractmethod
    def begin(self, problem: Problem) -> Run:
        """Start a run from the current displacements u of a problem.

        Args:
            problem: Problem to solve.

        Returns:
            Run with the private state of the method.
        """

    def memory(self, model: Model, number: int) -> int:
        """Estimate the memory of a run per batch member [bytes], excluding the problem itself.

        Args:
            model: Model.
            number: Size of a floating-point number [bytes].

        Returns:
            Memory [bytes].
        """
        return 0

    def check_support(self, device: str, precision: str) -> None:
        """Reject an unsupported device or precision; the message names solvers that support it.

        Args:
            device: Device name.
            precision: "float32" or "float64".

        Raises:
            ValueError: The method does not support the device or the precision.
        """
        from supple.solvers import SOLVERS

        for name, request, own in (
            ("device", device, self.devices),
            ("precision", precision, self.precisions),
        ):
            if request not in own:
                able = [k.name for k in SOLVERS.values() if request in getattr(k, f"{name}s")]
                only = " or ".join(f"{name}={value!r}" for value in own)
                raise ValueError(f"{self.name} supports {only} only; use {', '.join(able)} for {request!r}")


def idle_options(kind: type[Solver], options: Mapping[str, Any]) -> dict[str, str]:
    """Find given options without effect; return an explanation for each.

    Args:
        kind: Solver class.
        options: Given options; defaults apply to all others.
    """
    defaults = {option.name: option.default for option in fields(kind)}  # type: ignore[arg-type]
    idle = {}
    for name, (other, value) in kind.only_with.items():
        chosen = options.get(other, defaults[other])
        if name in options and chosen != value:
            idle[name] = f'has no effect with {other} = "{chosen}"; it needs {other} = "{value}"'
    return idle


class Run(ABC):
    """A solver run on one problem. It owns the private state of the method; the problem owns u."""

    problem: Problem

    check_every: int = 1
    """Default number of iterations between residual checks."""

    patience: int = 500
    """Iterations without progress after which a run stagnates, unless its energy still decreases."""

    @property
    def colors(self) -> int:
        """Number of colors (groups of vertices or elements processed in turn); 0 without coloring."""
        return 0

    @property
    def recovers_from_inversion(self) -> bool:
        """True if the run can continue from inverted elements of barrier materials."""
        return False

    @property
    def needs_monitoring(self) -> bool:
        """True if the method must observe the residual to remain stable."""
        return False

    @property
    def float64_problem(self) -> Problem | None:
        """Float64 problem with the unrounded state, or None."""
        return None

    unbounded: bool = False
    """True if the energy appears to be unbounded below."""

    refines_sequentially: bool = False
    """True if batch members that have not converged are to be refined after the batched run."""

    def start_batched_newton(self, members: Sequence[int], distance: float | None) -> BatchedNewton | None:
        """Create batched Newton steps for selected batch members; None for methods without them.

        Args:
            members: Indices of the batch members.
            distance: Distance from the equilibrium to reach, relative to the size of the body, or None.

        Returns:
            The batched steps, or None.
        """
        return None

    def find_members_to_separate(self) -> np.ndarray:
        """Find batch members whose separate solves converge sooner.

        Returns:
            (batch,) bool, True for these members.
        """
        return np.zeros(self.problem.batch_size, bool)

    def collect_rejected(self) -> list[int]:
        """Return the number of discarded non-finite moves of each batch member, and reset the counters.

        The counters are shared by all runs on the problem.

        Returns:
            One number per batch member.
        """
        return [0] * self.problem.batch_size

    def notes(self, member: int = 0) -> list[str]:
        """Return sentences for the report of a batch member.

        Args:
            member: Index of the batch member.

        Returns:
            Sentences, empty without remarks.
        """
        return []

    def start_at(self, balances: Balances) -> None:  # noqa: B027
        """Record the initial residuals of all batch members.

        Args:
            balances: Force balances at the start, one per batch member.
        """

    def set_targets(  # noqa: B027
        self, tolerance: float | None, max_iterations: int | None, budget: float | None
    ) -> None:
        """Set the termination criteria before the first iteration; unset criteria are None.

        Args:
            tolerance: Relative residual to reach.
            max_iterations: Iteration limit.
            budget: Time limit [s].
        """

    def tighten_tolerance(self, relative_residual: float, member: int = 0) -> None:  # noqa: B027
        """Continue a batch member that reached the tolerance but not the required distance from equilibrium.

        Args:
            relative_residual: Smaller relative residual, estimated to suffice for the distance.
            member: Index of the batch member.
        """

    def is_moving(self, member: int) -> bool:
        """True while a pseudo-time motion or load stepping is unfinished.

        Such a batch member continues even without decrease of residual or energy.

        Args:
            member: Index of the batch member.

        Returns:
            True if it is still moving.
        """
        return False

    def residuals(self) -> tuple[float, float] | None:
        """Primary and secondary residual norms (|g| [N], |h|) [PXPBD eq. 11, 12].

        None for methods without multipliers.

        Returns:
            |g| [N] and |h|, or None.
        """
        return None

    def leave_saddle(self, member: int = 0) -> bool:
        """Continue from an unstable equilibrium, where the energy decreases in some direction.

        Args:
            member: Index of the batch member.

        Returns:
            True if the method follows such a direction.
        """
        return False

    @abstractmethod
    def advance(self, iterations: int) -> None:
        """Run a number of iterations.

        Args:
            iterations: Number of iterations.
        """

    def observe(self, balance: Balance, member: int = 0) -> bool:
        """Check the current residual of a batch member.

        Args:
            balance: Force balance of the batch member.
            member: Index of the batch member.

        Returns:
            True if the method changed u in response.
        """
        return False

    def observe_all(self, balances: Balances, active: np.ndarray) -> np.ndarray:
        """Check the current residuals of all active batch members.

        Args:
            balances: Force balances of the batch.
            active: Indices of the active batch members.

        Returns:
            (batch,) bool: True for batch members whose u the method changed in response.
        """
        moved = np.zeros(self.problem.batch_size, bool)
        for member in active.tolist():
            moved[member] = self.observe(balances[member], member)
        return moved
