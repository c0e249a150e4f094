"""Solver tracks: state and progress of a solver in a live scene."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from supple.config.backend import Backend
from supple.config.stop_criteria import StopCriteria
from supple.model.model import Model, Step, with_bodies_at
from supple.problem import Balance
from supple.problem.history_variables import check_history
from supple.solve.batch_solve import make_problem
from supple.solve.report import IterationInfo, Outcome, Report
from supple.solve.time_loop import TimeLoop
from supple.solve.time_step_options import StepSchedule
from supple.solvers import Run, Solver

MAX_FAST_ELEMENTS = 500_000
"""Number of elements above which a sweep takes longer than a page update, about 20 ms on two cores."""

HISTORY_LENGTH = 600
"""Number of updates in the residual plot."""


class DivergedError(ArithmeticError):
    """Solver divergence; the message is a sentence for users."""


class AbandonedError(Exception):
    """Step abandoned for an urgent command."""


@dataclass(frozen=True, eq=False)
class TrackState:
    """State of a track before an update.

    Attributes:
        state: Positions, velocities, rigid bodies and history variables.
        progress: Iterations, balance, report and the step that led here.
    """

    state: tuple[np.ndarray, np.ndarray, np.ndarray | None, Mapping[str, np.ndarray]]
    progress: tuple[int, Balance | None, Report | None, Step | None]


def compatible_history(model: Model, history: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """History variables compatible with a model, which depend on its materials."""
    compatible: dict[str, np.ndarray] = {}
    for name, values in history.items():
        with suppress(ValueError):
            compatible |= check_history(model, {name: values})
    return compatible


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
        self.reset(start, velocities, bodies)

    def reset(self, start: np.ndarray, velocities: np.ndarray, bodies: np.ndarray | None = None) -> None:
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
        self.history: deque[tuple[int, float]] = deque(maxlen=HISTORY_LENGTH)
        self.step: Step | None = None
        self.bodies = bodies
        self._run: Run | None = None
        self._stepping: TimeLoop | None = None
        self._state: Mapping[str, np.ndarray] = {}

    def roll_back_to(self, positions: np.ndarray, bodies: np.ndarray | None, updates: int) -> None:
        """Return to an earlier state at zero velocity.

        Args:
            positions: (n, 3) positions [m].
            bodies: (k, 18) states of rigid bodies; None for their initial states.
            updates: Number of updates at that state; later residuals are discarded.
        """
        self.positions, self.velocities, self.bodies = positions, np.zeros_like(positions), bodies
        self._state = {}
        self.history = deque([entry for entry in self.history if entry[0] <= updates], maxlen=HISTORY_LENGTH)

    def set_model(self, model: Model, backend: Backend, time: float) -> None:
        """Continue with another model of the same vertices; compatible history variables are kept.

        Args:
            model: The new model.
            backend: Device, precision and threads.
            time: Current time [s].

        Raises:
            ValueError: The solver does not support the model.
        """
        model = replace(model, winds=())  # wind forces are passed to `advance`
        self._problem = make_problem(model, True, backend.fallback_for(self.solver))
        self._problem.contacts.set_time(time)
        self._problem.trust_region.set_time(time)
        self._write_problem_state()
        self.solver.begin(self._problem)
        self._run = self._stepping = self.step = self.balance = self.report = None

    def _write_problem_state(self) -> None:
        """Copy positions, velocities, rigid bodies and history variables to the problem."""
        p = self._problem
        p.positions = self.positions
        p.states.set_velocities(self.velocities)
        p.history.set_variables([compatible_history(p.model, self._state)])
        if self.bodies is not None:
            p.contacts.rigid_states = self.bodies

    def model_of(self, model: Model) -> Model:
        """Model with the rigid bodies of this solver."""
        return model if self.bodies is None else with_bodies_at(model, self.bodies)

    def follow_pins(self, time: float) -> None:
        """Move constrained vertices to their targets at a time [s], without solving."""
        self._problem.positions = self.positions
        self._problem.begin_step(time)
        self._problem.states.set_velocities(self.velocities)
        self.positions, self._run, self._stepping = self._problem.positions, None, None

    def sweep_to_equilibrium(
        self, time: float, moved: bool, sweeps: int, interrupted: Callable[[], bool]
    ) -> None:
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

    def prepare_steps(self, schedule: StepSchedule, stop: StopCriteria) -> TimeLoop:
        """Prepare the steps of a motion.

        Raises:
            ValueError: The solver does not support the model or the step settings.
        """
        now = self._stepping
        if now is None or (now.schedule, now.stop) != (schedule, stop):
            now = self._stepping = TimeLoop(
                self._problem, self.solver, stop, schedule, callback=self._check_abandoned
            )
        return now

    def advance(
        self,
        time: float,
        schedule: StepSchedule,
        stop: StopCriteria,
        forces: np.ndarray | None,
        is_abandoned: Callable[[], bool],
    ) -> None:
        """Advance a motion by one step, as `simulate` does.

        Args:
            time: Start of the step [s].
            schedule: Length, integrator, damping and initial guess of the step.
            stop: Termination criteria.
            forces: (n, 3) external forces in addition to those of the model [N], such as wind.
            is_abandoned: Called at every check of the solve; True raises `AbandonedError`, after which
                `restore_state` restores the state.

        Raises:
            DivergedError: The solve failed.
            AbandonedError: The step was abandoned.
        """
        stepping, self._abandoned = self.prepare_steps(schedule, stop), is_abandoned
        stepping.origin, stepping.index = time, 0
        (report,) = stepping.advance(forces)
        if report.outcome is Outcome.FAILED:
            raise DivergedError(f"{self.solver.name} failed: forces became infinite, {self._cause}.")
        (self.velocities,), (self.step,) = stepping.finish_frame(), stepping.last_steps()
        p = self._problem
        self.positions, self.bodies = p.positions, p.contacts.rigid_states
        (self._state,) = p.history.get_variables()
        self.balance, self.report = p.balance(), report
        self.iterations += report.iterations

    def _check_abandoned(self, info: IterationInfo) -> None:
        if info.iteration and self._abandoned():
            raise AbandonedError

    def restore_state(self, saved: TrackState, time: float) -> None:
        """Restore a state saved by `save_state` at a time [s]."""
        self.positions, self.velocities, self.bodies, self._state = saved.state
        self.iterations, self.balance, self.report, self.step = saved.progress
        self._problem.contacts.set_time(time)
        self._problem.trust_region.set_time(time)
        self._write_problem_state()
        self._run = self._stepping = None

    def save_state(self) -> TrackState:
        """Save the state that an update changes."""
        state = self.positions, self.velocities, self.bodies, self._state
        return TrackState(state, (self.iterations, self.balance, self.report, self.step))

    def _sweep(self, sweeps: int, interrupted: Callable[[], bool]) -> None:
        """Perform sweeps and evaluate the force balance. Fast solvers run all sweeps in one call."""
        assert self._run is not None
        done, dynamic_terms = 0, self._problem.dynamic_terms
        while done < sweeps and not (done and interrupted()):
            count = dynamic_terms.clamp_to_update(1 if self._is_slow else sweeps - done)
            for iterations in self._problem.gases.each(count):
                self._run.advance(iterations)
            done += count
            dynamic_terms.count_and_update(count)
        dynamic_terms.finish_step()
        balance = self._problem.balance()
        if self._run.observe(balance):
            balance = self._problem.balance()
        self._check_divergence(balance)
        self.balance = balance
        self.iterations += done

    @property
    def _is_slow(self) -> bool:
        """True for iterations slow enough to require interruption."""
        return self.solver.solves_systems or self._problem.model.elements > MAX_FAST_ELEMENTS

    def _check_divergence(self, balance: Balance) -> None:
        assert self._run is not None
        if not np.isfinite(self._problem.positions).all():
            raise DivergedError(f"{self.solver.name} diverged: positions became infinite.")
        if not balance.finite and not self._run.recovers_from_inversion:
            raise DivergedError(f"{self.solver.name} failed: forces became infinite, {self._cause}.")

    @property
    def _cause(self) -> str:
        materials = [term.material for term in self._problem.model.terms]
        if any(getattr(material, "barrier", False) for material in materials):
            return "as they do in inverted elements of a material with a barrier"
        return f"too large for {self._problem.dtype}"
