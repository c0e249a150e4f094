"""What every method provides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from supple.compute import PRECISIONS
from supple.kernels.device import DEVICES
from supple.model import Model
from supple.problem import Balance, Balances, Problem

if TYPE_CHECKING:
    from supple.solvers.newton_steps.newton_together import NewtonTogether


class Solver(ABC):
    """A method and its options, a frozen dataclass. What it can do it says here; nobody asks for its name."""

    name: ClassVar[str]
    devices: ClassVar[tuple[str, ...]] = DEVICES
    """Where it can run; the first where it is asked for another and may choose."""
    precisions: ClassVar[tuple[str, ...]] = PRECISIONS
    """In what it can compute; the last where it is asked for another and may choose."""
    batches: ClassVar[bool] = False
    """Whether it moves many instances of the state together, on a device; otherwise they are solved one by
    one."""
    solves_systems: ClassVar[bool] = False
    """Whether an iteration solves a linear system of all vertices: it takes long, and after few of them
    nothing but rounding is left."""
    recovers: ClassVar[bool] = False
    """Whether it always unfolds inverted elements of materials with a barrier, where forces are infinite."""
    any_term: ClassVar[bool] = True
    """Whether it treats every term, by its forces; otherwise those for which it says how (see `projects`)."""
    parts: ClassVar[dict[str, dict[str, type]]] = {}
    """Options that are objects with options of their own: option → its kinds by name. None is "none"."""
    only_with: ClassVar[dict[str, tuple[str, str]]] = {}
    """Options that do nothing unless another has some value: option → (the other, its value)."""

    takes_guess: ClassVar[bool] = True
    """Whether a step may start anywhere; otherwise the method has a start of its own, from û."""

    iterations: int | None = None
    """Iterations per step when a call sets no other limit."""
    damping: float = 0.0
    """The part of every velocity that it takes away in a step of a motion."""

    @property
    def balances_forces(self) -> bool:
        """Whether it goes where forces balance; otherwise it makes constraints vanish, whatever forces there
        are."""
        return True

    def phases(self) -> tuple[Solver, ...]:
        """Itself, and where it chooses between methods as it runs, itself beginning with another."""
        return (self,)

    def near_the_end(self) -> Solver:
        """Itself as it does best where it begins close to what it looks for."""
        return self

    @abstractmethod
    def begin(self, problem: Problem) -> Run:
        """Put the method to work on a problem, from the problem's present u."""

    def memory(self, model: Model, number: int) -> int:
        """Bytes that a run keeps beside the problem for one instance of the state, about, in numbers of so
        many bytes."""
        return 0

    def refuse_unable(self, device: str, precision: str) -> None:
        """Refuse a device or a precision that the method does not know, with who does."""
        from supple.solvers import SOLVERS

        for name, asked, own in (("device", device, self.devices), ("precision", precision, self.precisions)):
            if asked not in own:
                able = [k.name for k in SOLVERS.values() if asked in getattr(k, f"{name}s")]
                only = " or ".join(f"{name}={value!r}" for value in own)
                raise ValueError(f"{self.name} knows {only} only; {asked!r} is for {', '.join(able)}")


def idle_options(kind: type[Solver], options: Mapping[str, Any]) -> dict[str, str]:
    """Those of the options given to a kind of solver that do nothing, with what is to be said of each."""
    defaults = {option.name: option.default for option in fields(kind)}  # type: ignore[arg-type]
    found = {}
    for name, (other, value) in kind.only_with.items():
        chosen = options.get(other, defaults[other])
        if name in options and chosen != value:
            found[name] = f'does nothing with {other} = "{chosen}"; it is for {other} = "{value}"'
    return found


class Run(ABC):
    """A method at work. It owns whatever private state it needs; u lives in the problem."""

    problem: Problem

    check_every: int = 1
    """Iterations between looks at the residual when nobody asks for more."""

    patience: int = 500
    """Iterations without progress after which a run is asked whether at least its energy falls."""

    @property
    def colours(self) -> int:
        """Groups of vertices or elements that a sweep goes through one after the other; 0 if none."""
        return 0

    @property
    def recovers(self) -> bool:
        """Whether the method unfolds inverted elements of materials with a barrier, where forces are
        infinite."""
        return False

    @property
    def guarded(self) -> bool:
        """Whether the method must observe the residual to stay stable."""
        return False

    @property
    def exact(self) -> Problem | None:
        """A problem in float64 with the state of which the problem's is the rounded one; None where the run
        knows no better."""
        return None

    unbounded: bool = False
    """Whether the energy falls without end, as far as can be seen."""

    finished_alone: bool = False
    """Whether copies of the state that do not arrive together are to be solved one by one."""

    def newton_together(self, copies: Sequence[int], distance: float | None) -> NewtonTogether | None:
        """Newton steps of some copies of the state at once, to this distance [of the size] of the
        equilibrium; None where the method makes none."""
        return None

    def leaving(self) -> np.ndarray:
        """(copies,) which copies of the state will sooner arrive alone."""
        return np.zeros(self.problem.copies, bool)

    def rejected(self) -> list[int]:
        """Moves that were not finite and therefore not made, of every copy of the state, since this was last
        asked of a run on the same problem."""
        return [0] * self.problem.copies

    def notes(self, copy: int = 0) -> list[str]:
        """Sentences for the report."""
        return []

    def start_at(self, balances: Balances) -> None:  # noqa: B027
        """Take note of the balances of all copies where a solve starts."""

    def aim(  # noqa: B027
        self, tolerance: float | None, max_iterations: int | None, budget: float | None
    ) -> None:
        """Know, before the first iteration, the imbalance to reach, the iterations that are allowed and the
        time budget [s], None where there is none."""

    def go_on(self, imbalance: float, copy: int = 0) -> None:  # noqa: B027
        """Know that a copy has reached the imbalance, but not yet the distance to the equilibrium, for which
        this imbalance may do."""

    def on_its_way(self, copy: int) -> bool:
        """Whether a copy still goes somewhere though neither its forces nor its energy fall: a motion that
        has not come to rest."""
        return False

    def residuals(self) -> tuple[float, float] | None:
        """(|g| [N], |h|), the primary and the secondary residual of methods that have multipliers beside the
        positions [PXPBD eq. 11, 12]; None of others."""
        return None

    def leave_saddle(self, copy: int = 0) -> bool:
        """Know that the forces on a copy balance here, but that in some direction the energy falls; True
        where the method will go there."""
        return False

    @abstractmethod
    def advance(self, iterations: int) -> None:
        """Do that many iterations."""

    def observe(self, balance: Balance, copy: int = 0) -> bool:
        """See how far the residual has come; True when that led the method to change u."""
        return False

    def observe_all(self, balances: Balances, active: np.ndarray) -> np.ndarray:
        """See how far the residuals of all active copies have come; (copies,) which of them were changed."""
        moved = np.zeros(self.problem.copies, bool)
        for copy in active.tolist():
            moved[copy] = self.observe(balances[copy], copy)
        return moved
