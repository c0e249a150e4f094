"""Comparing solvers: the same scene, the same start, the same residual."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from supple.model import Model
from supple.report import Report
from supple.scene import Scene, build_model
from supple.simulate import Stop, solve
from supple.solvers import SOLVERS, Solver
from supple.solvers.problem import Problem


@dataclass
class Trial:
    """What one solver made of the step: its positions (n, 3) [m] and its report with all curves, or why it
    could not be run."""

    solver: Solver
    label: str
    positions: np.ndarray | None = None
    report: Report | None = None
    error: str | None = None


@dataclass
class Comparison:
    """Trials of several solvers from the same start."""

    model: Model
    start: np.ndarray
    trials: list[Trial]

    def __getitem__(self, label: str) -> Trial:
        for trial in self.trials:
            if trial.label == label:
                return trial
        raise KeyError(f"no trial {label!r}; there are {', '.join(t.label for t in self.trials)}")


def compare(
    scene: Scene,
    solvers: Sequence[str | Solver],
    *,
    tolerance: float | None = None,
    max_iterations: int | None = None,
    time_budget: float | None = None,
    precision: str = "float64",
    start: np.ndarray | None = None,
    velocities: np.ndarray | None = None,
    threads: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Run each solver on the scene's first step: its equilibrium, or one backward Euler step of dt.

    Residual, energy and inversions are measured after every iteration, outside the timed region. start and
    velocities (n, 3) replace rest. Without any limit every solver does 40 iterations. A solver that cannot
    treat the scene is listed with the reason.
    """
    if tolerance is None and max_iterations is None and time_budget is None:
        max_iterations = 40
    stop = Stop(tolerance, max_iterations, time_budget)
    model = build_model(scene)
    begin = model.rest if start is None else np.asarray(start, float)
    v = np.zeros_like(model.rest) if velocities is None else np.asarray(velocities, float)
    trials = _trials(solvers)
    for trial in trials:
        if progress is not None:
            progress(trial.label)
        try:
            problem = Problem(model, "float64" if trial.solver.name == "newton" else precision, threads)
            place_step(problem, scene, begin, v)
            _warm_up(problem, trial.solver)
            trial.report = solve(problem, trial.solver, stop, record=True)
            trial.positions = problem.positions
        except ValueError as error:
            trial.error = str(error)
    return Comparison(model, begin, trials)


def place_step(problem: Problem, scene: Scene, x: np.ndarray, v: np.ndarray) -> None:
    """Set a problem up for the scene's first step from positions x with velocities v."""
    problem.positions = x
    if scene.quasistatic:
        problem.prescribe(np.inf)
        return
    problem.set_inertia(scene.dt, x + scene.dt * v)
    problem.positions = x + scene.dt * v
    problem.prescribe(scene.dt)


def _warm_up(problem: Problem, solver: Solver) -> None:
    """Compile and touch all memory before the clock starts."""
    start = problem.u.copy()
    problem.balance()
    problem.energy()
    solver.begin(problem).advance(1)
    problem.u[:] = start


def _trials(solvers: Sequence[str | Solver]) -> list[Trial]:
    """One trial per solver, labelled by name and, where a name occurs twice, by number."""
    if not solvers:
        raise ValueError("compare needs at least one solver")
    made = []
    for solver in solvers:
        if isinstance(solver, str):
            if solver not in SOLVERS:
                raise ValueError(f"there is no solver {solver!r}; there are {', '.join(SOLVERS)}")
            solver = SOLVERS[solver]()
        made.append(solver)
    names = [solver.name for solver in made]
    labels = [
        name if names.count(name) == 1 else f"{name} {names[: k + 1].count(name)}"
        for k, name in enumerate(names)
    ]
    return [Trial(solver, label) for solver, label in zip(made, labels, strict=True)]
