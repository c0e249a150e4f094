"""Comparing solvers: the same scene, the same start, the same residual."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np

from supple.kernels import compilation
from supple.kernels.device import check_device
from supple.model import Model
from supple.report import Outcome, Report
from supple.scene import Scene, build_model
from supple.scene.checks import closest
from supple.solvers import SOLVERS, Solver
from supple.solvers.problem import Problem, check_precision
from supple.solving import Stop, Watcher, make_problem, solve

DEFAULT_ITERATIONS = 40
"""Iterations of every solver where nothing says when to stop."""

ROUNDING = 1e-13
"""Imbalance at which Newton stops where there is no tolerance: nothing but rounding is left."""


@dataclass
class Trial:
    """What one solver made of the step: its positions (n, 3) [m] and its report with all curves, or why it
    could not be run. label: the solver's name with the options that are not the default."""

    solver: Solver
    label: str
    positions: np.ndarray | None = None
    report: Report | None = None
    error: str | None = None


@dataclass
class Comparison:
    """Trials of several solvers from the same start (n, 3) [m]."""

    model: Model
    start: np.ndarray
    trials: list[Trial]

    def __getitem__(self, name: str) -> Trial:
        """The trial with this label, or the only one of the solver with this name."""
        for names in ([t.label for t in self.trials], [t.solver.name for t in self.trials]):
            if names.count(name) == 1:
                return self.trials[names.index(name)]
        raise KeyError(f"no trial {name!r}; there are {', '.join(t.label for t in self.trials)}")


def compare(
    scene: Scene,
    solvers: Sequence[str | Solver] = tuple(SOLVERS),
    *,
    tolerance: float | None = None,
    max_iterations: int | None = None,
    time_budget: float | None = None,
    precision: str = "float64",
    device: str = "cpu",
    start: np.ndarray | None = None,
    velocities: np.ndarray | None = None,
    frame: int = 1,
    threads: int | None = None,
    progress: Callable[[Trial], None] | None = None,
    watch: Watcher | None = None,
) -> Comparison:
    """Run each solver on one step of the scene: its equilibrium with every motion at its end, or, where it is
    dynamic, the backward Euler step that leads to a frame, or the first of its substeps.

    Residual, energy and inversions are measured after every iteration, outside the timed region. start and
    velocities (n, 3) replace rest; to compare on a later frame, pass those of the frame before it. Without
    any limit every solver does 40 iterations. A solver that cannot treat the scene is listed with the reason.
    Newton works in float64 on the CPU whatever precision and device are, and stops when nothing but rounding
    is left. progress is called with each trial before and after it.
    """
    check_device(device)
    check_precision(precision)
    trials = _trials(solvers)
    stops = [_stop(trial.solver, tolerance, max_iterations, time_budget) for trial in trials]
    if frame < 1:
        raise ValueError(f"frame must be at least 1, got {frame}")
    model = build_model(scene)
    x = model.rest.copy() if start is None else _rows(start, "start", model)
    v = np.zeros_like(model.rest) if model.velocities is None else model.velocities
    v = v if velocities is None else _rows(velocities, "velocities", model)
    problems: dict[tuple[str, str], Problem] = {}
    for trial, stop in zip(trials, stops, strict=True):
        kind = ("float64", "cpu") if trial.solver.name == "newton" else (precision, device)
        if kind not in problems:
            problems[kind] = make_problem(model, scene.quasistatic, *kind, threads)
        if progress is not None:
            progress(trial)
        place = partial(place_step, problems[kind], scene, x, v, frame)
        place()
        try:
            _run(trial, problems[kind], place, stop, watch)
        except ValueError as error:
            trial.error = str(error)
        if progress is not None:
            progress(trial)
    return Comparison(model, x, trials)


def _run(
    trial: Trial, problem: Problem, place: Callable[[], None], stop: Stop, watch: Watcher | None
) -> None:
    """One solver on the problem as it is placed. Its first iteration is done twice, so that the clock sees
    neither compilation nor memory that is touched for the first time."""
    with compilation() as compiled:
        trial.solver.begin(problem).advance(1)
    place()
    open_ended = stop.tolerance is None and trial.solver.name == "newton"
    report = solve(
        problem, trial.solver, replace(stop, tolerance=ROUNDING) if open_ended else stop, True, watch
    )
    if open_ended and report.outcome in (Outcome.BUDGET_ITERATIONS, Outcome.BUDGET_TIME):
        report.outcome, report.tolerance = Outcome.COMPLETED, None
    report.compile_seconds += compiled.seconds
    trial.positions, trial.report = problem.positions, report


def place_step(problem: Problem, scene: Scene, x: np.ndarray, v: np.ndarray, frame: int = 1) -> None:
    """Set a problem up for the scene's first step to a frame from positions x with velocities v."""
    problem.positions = x
    if scene.quasistatic:
        problem.prescribe(np.inf)
        return
    dt = scene.dt / scene.substeps
    problem.set_inertia(dt, x + dt * v)
    problem.positions = x + dt * v
    problem.prescribe((frame - 1) * scene.dt + dt)


def solver_label(solver: Solver) -> str:
    """pbng, pbng chebyshev, bpxpbd zeta=0.9: the name, and the options that are not the default."""
    words = [solver.name]
    for field in fields(solver):  # type: ignore[arg-type]
        value = getattr(solver, field.name)
        if value != field.default:
            words.append(value if isinstance(value, str) else f"{field.name}={value}")
    return " ".join(words)


def _trials(solvers: Sequence[str | Solver]) -> list[Trial]:
    """One trial per solver; where a label occurs again, it gets a number."""
    if not solvers:
        raise ValueError("compare needs at least one solver")
    made = [_named(solver) if isinstance(solver, str) else solver for solver in solvers]
    labels = [solver_label(solver) for solver in made]
    for k in range(len(labels) - 1, 0, -1):
        if labels[k] in labels[:k]:
            labels[k] += f" ({labels[: k + 1].count(labels[k])})"
    return [Trial(solver, label) for solver, label in zip(made, labels, strict=True)]


def _named(name: str) -> Solver:
    if name not in SOLVERS:
        raise ValueError(f"there is no solver {name!r}; {closest(name, SOLVERS)}")
    return SOLVERS[name]()


def _stop(
    solver: Solver, tolerance: float | None, max_iterations: int | None, time_budget: float | None
) -> Stop:
    limit = solver.iterations if max_iterations is None else max_iterations
    if tolerance is None and limit is None and time_budget is None:
        limit = DEFAULT_ITERATIONS
    return Stop(tolerance, limit, time_budget)


def _rows(values: np.ndarray, name: str, model: Model) -> np.ndarray:
    rows = np.array(values, float)
    if rows.shape != model.rest.shape:
        raise ValueError(
            f"{name} must have one row of three numbers per vertex, {model.rest.shape}, got {rows.shape}"
        )
    if not np.isfinite(rows).all():
        bad = np.count_nonzero(~np.isfinite(rows).all(axis=1))
        raise ValueError(f"{name} has NaN or infinite values for {bad} vertices")
    return rows
