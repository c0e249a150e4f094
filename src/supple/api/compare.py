"""Solver comparison: one scene step, common initial positions, common residual."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Unpack

import numpy as np

from supple.config.backend import Backend
from supple.config.stop_criteria import StopCriteria
from supple.kernels import compilation
from supple.model.model import Model
from supple.problem import Problem
from supple.scene import Scene, SceneFile, build_model
from supple.scene.scene import scene_of
from supple.solve.batch_solve import Callback, make_problem, solve
from supple.solve.call_options import (
    Options,
    check_callbacks,
    get_limits,
    resolve_backend,
    resolve_solver,
    takes_options,
)
from supple.solve.float_range import check_float_range
from supple.solve.integrators import RULES, SecondOrderIntegrator, check_integrator
from supple.solve.report import Outcome, Report
from supple.solvers import SOLVERS, Solver
from supple.solvers.options import solver_label
from supple.support.arguments import MAX_MAGNITUDE, check_integer, check_vectors, iterate_argument
from supple.support.progress import Progress
from supple.support.text import pluralize

DEFAULT_ITERATIONS = 40
"""Iterations of every solver if neither call nor scene file sets a limit."""

ROUNDING_TOLERANCE = 1e-13
"""Relative residual at which solvers of linear systems, such as Newton, stop without a tolerance: only
rounding
remains."""


@dataclass
class Trial:
    """Solver run in a comparison: final positions, report, or reason for failure.

    Attributes:
        solver: Solver.
        label: Name of the solver with its non-default options.
        positions: (n, 3) final positions [m]; None if the solver did not run.
        report: Report with all residual curves; None if the solver did not run.
        error: Reason why the solver could not run; None if it did.
    """

    solver: Solver
    label: str
    positions: np.ndarray | None = field(default=None, repr=False)
    report: Report | None = None
    error: str | None = None

    def __repr__(self) -> str:
        return f"<Trial {self.label!r}: {self._ending()}>"

    def _ending(self) -> str:
        if self.report is None:
            return "not run yet" if self.error is None else f"not run, {self.error}"
        done = pluralize(self.report.iterations, "iteration")
        return (
            f"{self.report.short_outcome}, relative residual {self.report.relative_residual:.2e} after {done}"
        )


@dataclass
class Comparison:
    """Comparison of several solvers from common initial positions.

    Attributes:
        model: Model of the scene.
        initial: (n, 3) initial positions [m].
        trials: One trial per solver.
    """

    model: Model
    initial: np.ndarray = field(repr=False)
    trials: list[Trial]

    def __repr__(self) -> str:
        """One-line summary; every trial has its own `repr`."""
        return f"<Comparison: {', '.join(trial.label for trial in self.trials)} on {self.model!r}>"

    def __getitem__(self, name: str) -> Trial:
        """Return the trial with this label, or a solver's only trial by solver name."""
        for names in ([t.label for t in self.trials], [t.solver.name for t in self.trials]):
            if names.count(name) == 1:
                return self.trials[names.index(name)]
        raise KeyError(f"no trial {name!r}; there are {', '.join(t.label for t in self.trials)}")


@takes_options
def compare(
    scene: Scene | SceneFile,
    solvers: str | Solver | Sequence[str | Solver] = tuple(SOLVERS),
    *,
    initial: np.ndarray | None = None,
    velocities: np.ndarray | None = None,
    frame: int = 1,
    progress: Progress | None = None,
    callback: Callback | None = None,
    **options: Unpack[Options],
) -> Comparison:
    """Run each solver on one scene step and record residual, energy and inversions.

    A quasistatic step is the equilibrium with every motion at its end. A dynamic step is the integrator's
    step that leads to a frame, or the first of its substeps. Residual, energy and inversions are measured
    after every iteration, outside the timed region.

    A solver that does not support the scene is listed with the reason. A solver that does not support the
    device or precision runs on one that it supports. Without a tolerance, solvers of linear systems stop when
    only rounding remains: Newton, in float64 on the CPU.

    Args:
        scene: Scene or scene file. A scene file also provides initial positions and velocities.
        solvers: Solvers or their names, all solvers by default.
        initial: (n, 3) initial positions [m] instead of the rest positions. To compare on a later frame, pass
            positions and velocities of the frame before it.
        velocities: (n, 3) initial velocities [m/s].
        frame: Number of the frame at which the dynamic step ends, from 1.
        progress: Called as progress(done, total) before the first trial and after each.
        callback: Called with an `IterationInfo` after each measurement of the relative residual. Its `solver`
            is the label of the trial.
        **options: `stop` and `backend`, or their fields one by one, as in `equilibrium`. If neither call nor
            scene file sets a limit, every solver does 40 iterations.

    Returns:
        The comparison, with one trial per solver.

    Raises:
        ValueError: No solver, invalid options, or a scene whose contact works on a grid.
        TypeError: An argument has the wrong type.
    """
    backend = resolve_backend(options)
    check_callbacks(callback=callback, progress=progress)
    file, scene = scene if isinstance(scene, SceneFile) else None, scene_of(scene)
    trials = _make_trials(solvers)
    until, unlimited = get_limits(options, file), StopCriteria(max_iterations=DEFAULT_ITERATIONS)
    stops = [until.with_defaults(trial.solver, otherwise=unlimited) for trial in trials]
    check_integer("frame", frame)
    model = build_model(scene)
    if model.grid is not None:
        raise ValueError(
            'compare does not support contact="grid"; run simulate with each solver, or use another contact'
        )
    if initial is None and file is not None:
        initial = file.initial_positions(model)
        velocities = file.initial_velocities(model) if velocities is None else velocities
    x = model.rest.copy() if initial is None else check_vectors("initial", initial, model.vertices).copy()
    v = np.zeros_like(model.rest) if model.velocities is None else model.velocities
    if velocities is not None:
        v = check_vectors("velocities", velocities, model.vertices, limit=MAX_MAGNITUDE)
    problems: dict[Backend, Problem] = {}
    if progress is not None:
        progress(0, len(trials))
    for done, (trial, stop) in enumerate(zip(trials, stops, strict=True), 1):
        where = backend.fallback_for(trial.solver)
        if where not in problems:
            problems[where] = make_problem(model, scene.quasistatic, where)
            check_float_range(model, where.precision, None if scene.quasistatic else scene.dt)
        reset = partial(begin_step, problems[where], scene, x, v, frame)
        reset()
        try:
            if not scene.quasistatic:
                check_integrator(scene.integrator, model, trial.solver)
            _run(trial, problems[where], reset, stop, callback)
        except ValueError as error:
            trial.error = str(error)
        if progress is not None:
            progress(done, len(trials))
    return Comparison(model, x, trials)


def _run(
    trial: Trial, problem: Problem, reset: Callable[[], None], stop: StopCriteria, callback: Callback | None
) -> None:
    """Run one solver from the placed state.

    The first iteration is done twice, so that the timed run includes neither compilation nor first access to
    memory.
    """
    with compilation() as compiled:
        trial.solver.begin(problem).advance(1)
    reset()
    open_ended = stop.tolerance is None and trial.solver.solves_systems
    report = solve(
        problem,
        trial.solver,
        replace(stop, tolerance=ROUNDING_TOLERANCE) if open_ended else stop,
        True,
        None if callback is None else lambda info: callback(replace(info, solver=trial.label)),
    )
    if open_ended:
        report.tolerance = None
        if report.outcome not in (Outcome.STAGNATED, Outcome.UNBOUNDED, Outcome.FAILED):
            report.outcome = Outcome.FIXED_ITERATIONS
    report.compile_seconds += compiled.seconds
    trial.positions, trial.report = problem.positions, report


def begin_step(problem: Problem, scene: Scene, x: np.ndarray, v: np.ndarray, frame: int = 1) -> None:
    """Set up a problem for the first step to a frame, from positions x (n, 3) [m] and velocities v [m/s]."""
    problem.positions = x
    if scene.quasistatic:
        problem.begin_step(np.inf)
        return
    dt = scene.dt / scene.substeps
    problem.states.set_velocities(v)
    time = (frame - 1) * scene.dt + dt
    if scene.integrator in RULES:
        problem.history.set_motions([])
        rule = SecondOrderIntegrator(problem, RULES[scene.integrator], dt)
        rule.prepare_history(time, None)
        problem.begin_step(time, dt)
        rule.set_inertial_target("coast", time)
        return
    problem.loads.set_time_step(dt)
    problem.begin_step(time, dt)


def _make_trials(solvers: str | Solver | Sequence[str | Solver]) -> list[Trial]:
    """Create one trial per solver."""
    one = isinstance(solvers, str | Solver | None)
    solver_list = (
        [solvers] if one else iterate_argument(solvers, "solvers are a list of solvers or of their names")
    )
    chosen = [resolve_solver(solver) for solver in solver_list]
    if not chosen:
        raise ValueError("compare needs at least one solver")
    return [Trial(solver, label) for solver, label in zip(chosen, trial_labels(chosen), strict=True)]


def trial_labels(solvers: Sequence[Solver]) -> list[str]:
    """Labels of the trials of these solvers; repeated labels get a number."""
    labels = [solver_label(solver) for solver in solvers]
    for k in range(len(labels) - 1, 0, -1):
        if labels[k] in labels[:k]:
            labels[k] += f" ({labels[: k + 1].count(labels[k])})"
    return labels
