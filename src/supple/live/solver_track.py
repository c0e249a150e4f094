"""Solver tracks: state and progress of a solver in a live scene."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from supple.config.backend import Backend
from supple.config.stop import StopCriteria
from supple.model.model import Model, Step, with_bodies_at
from supple.problem import Balance
from supple.problem.history import checked_history
from supple.solve.loop import make_problem
from supple.solve.report import Outcome, Report
from supple.solve.step_schedule import StepSchedule
from supple.solve.time_loop import TimeLoop
from supple.solvers import Run, Solver

LARGE = 500_000
"""Number of elements above which a sweep takes longer than a page update, about 20 ms on two cores."""

REMEMBERED = 600
"""Number of updates in the residual plot."""


class DivergedError(ArithmeticError):
    """Solver divergence; the message is a sentence for users."""


class AbandonedError(Exception):
    """Step abandoned for an urgent command."""


@dataclass(frozen=True, eq=False)
class Kept:
    """State of a track before an update.

    Attributes:
        here: Positions, velocities, rigid bodies and history variables.
        figures: Iterations, balance, report and the step that led here.
    """

    here: tuple[np.ndarray, np.ndarray, np.ndarray | None, Mapping[str, np.ndarray]]
    figures: tuple[int, Balance | None, Report | None, Step | None]


def suited(model: Model, history: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """History variables compatible with a model, which depend on its materials."""
    kept: dict[str, np.ndarray] = {}
    for name, values in history.items():
        with suppress(ValueError):
            kept |= checked_history(model, {name: values})
    return kept


class Track:
    """Solver with its problem and state.

    Attributes:
        solver: The solver.
        positions: (n, 3) positions [m].
        velocities: (n, 3) velocities [m/s].
        bodies: (k, 18) states of rigid bodies; None for their initial states.
        iterations: Total number of iterations.
        balance: Last force balance.
        report: Report of the last step of a motion.
        step: `Step` that led to this state.
        history: Update numbers with their relative residuals.
    """

    def __init__(
        self, solver: Solver, start: np.ndarray, velocities: np.ndarray, bodies: np.ndarray | None = None
    ) -> None:
        self.solver = solver
        self.begin_at(start, velocities, bodies)

    def begin_at(self, start: np.ndarray, velocities: np.ndarray, bodies: np.ndarray | None = None) -> None:
        """Reset the track.

        Args:
            start: (n, 3) positions [m].
            velocities: (n, 3) velocities [m/s].
            bodies: (k, 18) states of rigid bodies; None for their initial states.
        """
        self.positions, self.velocities = start.copy(), velocities.copy()
        self.iterations = 0
        self.balance: Balance | None = None
        self.report: Report | None = None
        self.history: deque[tuple[int, float]] = deque(maxlen=REMEMBERED)
        self.step: Step | None = None
        self.bodies = bodies
        self._run: Run | None = None
        self._stepping: TimeLoop | None = None
        self._state: Mapping[str, np.ndarray] = {}

    def go_back_to(self, positions: np.ndarray, bodies: np.ndarray | None, updates: int) -> None:
        """Return to an earlier state at zero velocity.

        Args:
            positions: (n, 3) positions [m].
            bodies: (k, 18) states of rigid bodies; None for their initial states.
            updates: Number of updates at that state; later residuals are discarded.
        """
        self.positions, self.velocities, self.bodies = positions, np.zeros_like(positions), bodies
        self._state = {}
        self.history = deque([entry for entry in self.history if entry[0] <= updates], maxlen=REMEMBERED)

    def work_on(self, model: Model, backend: Backend, time: float) -> None:
        """Continue with another model of the same vertices; compatible history variables are kept.

        Args:
            model: The new model.
            backend: Device, precision and threads.
            time: Current time [s].

        Raises:
            ValueError: The solver does not support the model.
        """
        model = replace(model, winds=())  # wind forces are passed to `advance`
        self._problem = make_problem(model, True, backend.suited_to(self.solver))
        self._problem.contacts.stand_at(time)
        self._problem.room.stand_at(time)
        self._put_back()
        self.solver.begin(self._problem)
        self._run = self._stepping = self.step = self.balance = self.report = None

    def _put_back(self) -> None:
        """Copy positions, velocities, rigid bodies and history variables to the problem."""
        p = self._problem
        p.positions = self.positions
        p.states.set_velocities(self.velocities)
        p.history.put([suited(p.model, self._state)])
        if self.bodies is not None:
            p.contacts.moved_by_bodies = self.bodies

    def model_of(self, model: Model) -> Model:
        """Model with the rigid bodies of this solver."""
        return model if self.bodies is None else with_bodies_at(model, self.bodies)

    def follow_pins(self, time: float) -> None:
        """Move constrained vertices to their targets at a time [s], without solving."""
        self._problem.positions = self.positions
        self._problem.begin_step(time)
        self._problem.states.set_velocities(self.velocities)
        self.positions, self._run, self._stepping = self._problem.positions, None, None

    def relax(self, time: float, moved: bool, sweeps: int, interrupted: Callable[[], bool]) -> None:
        """Perform sweeps toward equilibrium; the solver run continues unless pins or loads have moved.

        Args:
            time: Time [s].
            moved: True if pins, loads or obstacles have moved.
            sweeps: Number of sweeps.
            interrupted: Returns True to end early.
        """
        if moved or self._run is None:
            self._problem.positions = self.positions
            self._problem.begin_step(time)
            self._run = self.solver.begin(self._problem)
        self._sweep(sweeps, interrupted)
        self.positions = self._problem.positions

    def move_by(self, schedule: StepSchedule, stop: StopCriteria) -> TimeLoop:
        """Prepare the steps of a motion.

        Raises:
            ValueError: The solver does not support the model or the step settings.
        """
        now = self._stepping
        if now is None or (now.schedule, now.stop) != (schedule, stop):
            now = self._stepping = TimeLoop(self._problem, self.solver, stop, schedule, watch=self._look)
        return now

    def advance(
        self,
        time: float,
        schedule: StepSchedule,
        stop: StopCriteria,
        forces: np.ndarray | None,
        abandoned: Callable[[], bool],
    ) -> None:
        """Advance a motion by one step, as `simulate` does.

        Args:
            time: Start of the step [s].
            pace: Length, integrator, damping and initial guess of the step.
            stop: Termination criteria.
            forces: (n, 3) external forces in addition to those of the model [N], such as wind.
            abandoned: Called at every check of the solve; True raises `AbandonedError`, after which `undo`
                restores the state.

        Raises:
            DivergedError: The solve failed.
            AbandonedError: The step was abandoned.
        """
        stepping, self._abandoned = self.move_by(schedule, stop), abandoned
        stepping.origin, stepping.index = time, 0
        (report,) = stepping.advance(forces)
        if report.outcome is Outcome.FAILED:
            raise DivergedError(f"{self.solver.name} failed: forces became infinite, {self._cause}.")
        (self.velocities,), (self.step,) = stepping.finish_frame(), stepping.last_steps()
        p = self._problem
        self.positions, self.bodies = p.positions, p.contacts.moved_by_bodies
        (self._state,) = p.history.take()
        self.balance, self.report = p.balance(), report
        self.iterations += report.iterations

    def _look(self, iteration: int, relative_residual: float, seconds: float) -> None:
        if iteration and self._abandoned():
            raise AbandonedError

    def undo(self, kept: Kept, time: float) -> None:
        """Restore a state saved by `keep` at a time [s]."""
        self.positions, self.velocities, self.bodies, self._state = kept.here
        self.iterations, self.balance, self.report, self.step = kept.figures
        self._problem.contacts.stand_at(time)
        self._problem.room.stand_at(time)
        self._put_back()
        self._run = self._stepping = None

    def keep(self) -> Kept:
        """Save the state that an update changes."""
        here = self.positions, self.velocities, self.bodies, self._state
        return Kept(here, (self.iterations, self.balance, self.report, self.step))

    def _sweep(self, sweeps: int, interrupted: Callable[[], bool]) -> None:
        """Perform sweeps and evaluate the force balance. Fast solvers run all sweeps in one call."""
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
        """True for iterations slow enough to require interruption."""
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
