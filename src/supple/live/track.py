"""One solver at work on a live scene."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from supple.compute import Compute
from supple.model import Model, Step, with_bodies_at
from supple.pace import Pace
from supple.problem import Balance
from supple.problem.remembered import checked_remembered
from supple.report import Outcome, Report
from supple.solvers import Run, Solver
from supple.solving import make_problem
from supple.stepping import Stepping
from supple.stop import Stop

LARGE = 500_000
"""Elements of which a sweep takes longer than a picture, some 20 ms on two cores."""

REMEMBERED = 600
"""Updates that the residual plot shows."""


class DivergedError(ArithmeticError):
    """A solver did not keep a body together. The text is a sentence for the user."""


class AbandonedError(Exception):
    """A step was given up before it was solved, since a command cannot wait."""


@dataclass(frozen=True, eq=False)
class Kept:
    """State of a track before an update. here: positions, velocities, rigid bodies and history; figures:
    iterations, balance, report and the step that led here."""

    here: tuple[np.ndarray, np.ndarray, np.ndarray | None, Mapping[str, np.ndarray]]
    figures: tuple[int, Balance | None, Report | None, Step | None]


def suited(model: Model, history: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Entries of a state's history that suit a model: another material may have other parameters."""
    kept: dict[str, np.ndarray] = {}
    for name, values in history.items():
        with suppress(ValueError):
            kept |= checked_remembered(model, {name: values})
    return kept


class Track:
    """A solver, the problem it works on, and how far it has come: positions (n, 3) [m], velocities (n, 3)
    [m/s], the last balance of forces, in motions the report of the last step and the `Step` that led here,
    and a history of update numbers with the imbalance after them."""

    def __init__(
        self, solver: Solver, start: np.ndarray, velocities: np.ndarray, bodies: np.ndarray | None = None
    ) -> None:
        self.solver = solver
        self.begin_at(start, velocities, bodies)

    def begin_at(self, start: np.ndarray, velocities: np.ndarray, bodies: np.ndarray | None = None) -> None:
        """Forget everything and start from these positions (n, 3) [m] with velocities (n, 3) [m/s]. bodies
        (k, 18): where rigid ones are and how they move; None: as the scene has them first."""
        self.positions, self.velocities = start.copy(), velocities.copy()
        self.iterations = 0
        self.balance: Balance | None = None
        self.report: Report | None = None
        self.history: deque[tuple[int, float]] = deque(maxlen=REMEMBERED)
        self.step: Step | None = None
        self.bodies = bodies
        self._run: Run | None = None
        self._stepping: Stepping | None = None
        self._state: Mapping[str, np.ndarray] = {}

    def go_back_to(self, positions: np.ndarray, bodies: np.ndarray | None, updates: int) -> None:
        """Forget what came after so many updates, and go on from positions (n, 3) [m], at rest, and with
        rigid bodies where they were."""
        self.positions, self.velocities, self.bodies = positions, np.zeros_like(positions), bodies
        self._state = {}
        self.history = deque([entry for entry in self.history if entry[0] <= updates], maxlen=REMEMBERED)

    def work_on(self, model: Model, compute: Compute, time: float) -> None:
        """Go on at a time [s] with another model of the same vertices, which a solver may refuse with a
        ValueError. The history of elements and contacts is kept where it suits the model."""
        model = replace(model, winds=())  # `advance` is told what they do
        self._problem = make_problem(model, True, compute.suited_to(self.solver))
        self._problem.contacts.stand_at(time)
        self._problem.room.stand_at(time)
        self._put_back()
        self.solver.begin(self._problem)
        self._run = self._stepping = self.step = self.balance = self.report = None

    def _put_back(self) -> None:
        """Set the problem to the positions, velocities, rigid bodies and history of this track."""
        p = self._problem
        p.positions = self.positions
        p.states.set_velocities(self.velocities)
        p.remembered.put([suited(p.model, self._state)])
        if self.bodies is not None:
            p.contacts.moved_by_bodies = self.bodies

    def model_of(self, model: Model) -> Model:
        """The model with rigid bodies where this solver has them."""
        return model if self.bodies is None else with_bodies_at(model, self.bodies)

    def follow_pins(self, time: float) -> None:
        """Show the pinned vertices where they are at a time [s], without solving."""
        self._problem.positions = self.positions
        self._problem.begin_step(time)
        self._problem.states.set_velocities(self.velocities)
        self.positions, self._run, self._stepping = self._problem.positions, None, None

    def relax(self, time: float, moved: bool, sweeps: int, interrupted: Callable[[], bool]) -> None:
        """Some sweeps towards the equilibrium; the run goes on where nothing moved the pins."""
        if moved or self._run is None:
            self._problem.positions = self.positions
            self._problem.begin_step(time)
            self._run = self.solver.begin(self._problem)
        self._sweep(sweeps, interrupted)
        self.positions = self._problem.positions

    def move_by(self, pace: Pace, stop: Stop) -> Stepping:
        """Prepare for steps of a motion; ValueError where the solver or the model does not suit them."""
        now = self._stepping
        if now is None or (now.pace, now.stop) != (pace, stop):
            now = self._stepping = Stepping(self._problem, self.solver, stop, pace, watch=self._look)
        return now

    def advance(
        self,
        time: float,
        pace: Pace,
        stop: Stop,
        forces: np.ndarray | None,
        abandoned: Callable[[], bool],
    ) -> None:
        """Make one step of a motion from a time [s], as `simulate` makes it.

        Args:
            time: Start of the step [s].
            pace: Length, integrator, damping and initial guess of the step.
            stop: Limits of its solve.
            forces: External forces (n, 3) [N] beside those of the model, as winds.
            abandoned: Asked at every look of the solve; True ends it with `AbandonedError`, and `undo` then
                returns to the start of the step.

        Raises:
            DivergedError: The solve failed.
        """
        stepping, self._abandoned = self.move_by(pace, stop), abandoned
        stepping.origin, stepping.index = time, 0
        (report,) = stepping.advance(forces)
        if report.outcome is Outcome.FAILED:
            raise DivergedError(f"{self.solver.name} failed: forces became infinite, {self._cause}.")
        (self.velocities,), (self.step,) = stepping.settle(), stepping.last_steps()
        p = self._problem
        self.positions, self.bodies = p.positions, p.contacts.moved_by_bodies
        (self._state,) = p.remembered.take()
        self.balance, self.report = p.balance(), report
        self.iterations += report.iterations

    def _look(self, iteration: int, imbalance: float, seconds: float) -> None:
        if iteration and self._abandoned():
            raise AbandonedError

    def undo(self, kept: Kept, time: float) -> None:
        """Return to what `keep` gave, at a time [s]."""
        self.positions, self.velocities, self.bodies, self._state = kept.here
        self.iterations, self.balance, self.report, self.step = kept.figures
        self._problem.contacts.stand_at(time)
        self._problem.room.stand_at(time)
        self._put_back()
        self._run = self._stepping = None

    def keep(self) -> Kept:
        """Everything that an update changes."""
        here = self.positions, self.velocities, self.bodies, self._state
        return Kept(here, (self.iterations, self.balance, self.report, self.step))

    def _sweep(self, sweeps: int, interrupted: Callable[[], bool]) -> None:
        """Advance the run and look at the balance. Where nobody can interrupt it, it is one call."""
        assert self._run is not None
        done, following = 0, self._problem.following
        while done < sweeps and not (done and interrupted()):
            count = following.until_look(1 if self._slow else sweeps - done)
            for some in self._problem.gases.each(count):
                self._run.advance(some)
            done += count
            following.iterated(count)
        following.settle()
        balance = self._problem.balance()
        if self._run.observe(balance):
            balance = self._problem.balance()
        self._refuse_lost(balance)
        self.balance = balance
        self.iterations += done

    @property
    def _slow(self) -> bool:
        """Whether single iterations take so long that one wants to interrupt them."""
        return self.solver.solves_systems or self._problem.model.elements > LARGE

    def _refuse_lost(self, balance: Balance) -> None:
        assert self._run is not None
        if not np.isfinite(self._problem.positions).all():
            raise DivergedError(f"{self.solver.name} diverged: positions became infinite.")
        if not balance.finite and not self._run.recovers:
            raise DivergedError(f"{self.solver.name} failed: forces became infinite, {self._cause}.")

    @property
    def _cause(self) -> str:
        materials = [term.material for term in self._problem.model.terms]
        if any(getattr(material, "barrier", False) for material in materials):
            return "as they do in inverted elements of a material with a barrier"
        return f"too large for {self._problem.dtype}"
