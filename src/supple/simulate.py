"""equilibrium() and simulate(): one state of balance, and frames of a motion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from supple.kernels import compilation
from supple.model import Model
from supple.report import Outcome, Report
from supple.scene import Body, Scene
from supple.solvers import Solver, default_solver
from supple.solvers.problem import Problem
from supple.solving import Stop, Watcher, make_problem, make_stop, solve
from supple.state import State


@dataclass
class Result:
    """What a solve found: positions (n, 3) [m] of all bodies' vertices in the order they were added.

    state: what `start` takes to go on from here exactly."""

    positions: np.ndarray
    report: Report
    model: Model
    velocities: np.ndarray | None = None
    state: State | None = field(default=None, repr=False, kw_only=True)
    on_device: Any = field(default=None, repr=False, kw_only=True)

    def of(self, body: Body) -> np.ndarray:
        """The positions of one body's vertices."""
        return self.positions[body.vertices]

    def positions_like(self, like: str) -> Any:
        """The positions (n, 3) as an array of "torch" or "cupy"; where the solve ran on a CUDA device, on
        that device in the solve's precision, without a copy through the host. On the CPU it shares memory
        with `positions`, where the library can."""
        from supple.interop import array_of

        return array_of(like, self.positions, self.model.rest, self.on_device)


@dataclass
class Frame(Result):
    """One frame of a simulation; index counts from 1, time in seconds."""

    index: int = 0
    time: float = 0.0


def equilibrium(
    scene: Scene | Model,
    solver: Solver | None = None,
    *,
    tolerance: float | None = 1e-4,
    max_iterations: int | None = None,
    time_budget: float | None = None,
    precision: str = "float64",
    device: str = "cpu",
    start: np.ndarray | State | None = None,
    history: bool = False,
    threads: int | None = None,
    watch: Watcher | None = None,
) -> Result:
    """The positions at which all forces balance, with every motion at its end.

    start: positions (n, 3) or a state to begin from; the rest positions by default. history: record residual
    and energy after every iteration.
    """
    began = perf_counter()
    solver = solver or default_solver()
    stop = make_stop(solver, tolerance, max_iterations, time_budget)
    problem = make_problem(scene, True, precision, device, threads)
    if start is not None:
        _place(problem, start)
    problem.prescribe(np.inf)
    report = solve(problem, solver, stop, history, watch, began)
    there = problem.displacements_on_device()
    return Result(problem.positions, report, problem.model, state=problem.state, on_device=there)


def simulate(
    scene: Scene,
    solver: Solver | None = None,
    *,
    dt: float | None = None,
    frames: int | None = None,
    substeps: int = 1,
    quasistatic: bool | None = None,
    tolerance: float | None = None,
    max_iterations: int | None = None,
    time_budget: float | None = None,
    precision: str = "float64",
    device: str = "cpu",
    start: np.ndarray | State | None = None,
    velocities: np.ndarray | None = None,
    first_frame: int = 1,
    history: bool = False,
    threads: int | None = None,
    watch: Watcher | None = None,
) -> Iterator[Frame]:
    """Frames of a motion, each a time dt after the last and warm-started from it.

    A dynamic scene takes `substeps` backward Euler steps per frame, v = Δx/Δt; a quasistatic one finds the
    equilibrium at each frame's time. dt, frames and quasistatic default to the scene's. To go on from frame
    k, pass its state as start and first_frame = k + 1: the frames are bitwise those of a motion that never
    stopped. Positions (n, 3) as start, and velocities (n, 3), do as well. The limits hold for every step.
    """
    solver = solver or default_solver()
    stop = make_stop(solver, tolerance, max_iterations, time_budget)
    quasistatic = scene.quasistatic if quasistatic is None else quasistatic
    dt = scene.dt if dt is None else dt
    frames = scene.frames if frames is None else frames
    if not dt > 0:
        raise ValueError(f"dt must be positive [s], got {dt}")
    if frames < 1 or substeps < 1:
        raise ValueError(f"frames and substeps must be at least 1, got {frames} and {substeps}")
    if isinstance(start, State) and velocities is not None:
        raise ValueError("a state has its own velocities; give either a state as start, or velocities")
    return _frames(
        scene, solver, stop, dt, frames, 1 if quasistatic else substeps, quasistatic, precision, device,
        start, velocities, first_frame, history, threads, watch,
    )  # fmt: skip


def _frames(
    scene: Scene, solver: Solver, stop: Stop, dt: float, frames: int, substeps: int, quasistatic: bool,
    precision: str, device: str, start: np.ndarray | State | None, velocities: np.ndarray | None,
    first_frame: int, history: bool, threads: int | None, watch: Watcher | None,
) -> Iterator[Frame]:  # fmt: skip
    began: float | None = perf_counter()
    problem = make_problem(scene, quasistatic, precision, device, threads)
    model, step = problem.model, dt / substeps
    if start is None:
        problem.prescribe((first_frame - 1) * dt)
    else:
        _place(problem, start)
    damping = getattr(solver, "damping", 0.0)
    if velocities is not None:
        problem.set_velocities(_start_positions(velocities, model))
    if not quasistatic:
        problem.set_time_step(step)

    def begin_step(time: float) -> None:
        if quasistatic:
            problem.prescribe(time)
        else:
            problem.coast(step, damping, time)

    limited = stop.tolerance is not None or stop.time_budget is not None
    unseen = 0 if limited or history or watch is not None else substeps - 1
    x = problem.positions
    for index in range(first_frame, frames + 1):
        times = [(index - 1) * dt + k * step for k in range(1, substeps + 1)]
        reports = []
        if unseen:
            reports.append(_iterate(problem, solver, stop, begin_step, times[:unseen], began))
            began = None
        for time in times[unseen:]:
            begin_step(time)
            reports.append(solve(problem, solver, stop, history, watch, began))
            began = None
        found = problem.positions
        v = (found - x) / dt if quasistatic else problem.velocities(step, damping)
        if not np.isfinite(found).all():  # after substeps that nobody has looked at
            found, v = x, np.zeros_like(x)
            problem.positions = found
        problem.set_velocities(v)  # in the working precision, so that this and a resumed run go on alike
        x, state = found.copy(), problem.state  # the caller may do anything with the frame
        v = state.velocities.astype(float)
        there = problem.displacements_on_device()
        yield Frame(found, _merge(reports), model, v, index, index * dt, state=state, on_device=there)


def _iterate(
    problem: Problem,
    solver: Solver,
    stop: Stop,
    begin_step: Callable[[float], None],
    times: list[float],
    began: float | None,
) -> Report:
    """The steps up to some times that nobody looks at: the residual is evaluated only for methods that need
    it to stay stable. What was rejected is counted when somebody looks."""
    assert stop.max_iterations is not None
    with compilation() as compiled:
        start, setup = perf_counter() if began is None else began, 0.0
        for time in times:
            begin_step(time)
            run = solver.begin(problem)
            if began is not None:
                setup, began = perf_counter() - began - compiled.seconds, None
            every = run.check_every if run.guarded else stop.max_iterations
            for done in range(0, stop.max_iterations, every):
                run.advance(min(every, stop.max_iterations - done))
                if run.guarded:
                    run.observe(problem.balance())
        problem.wait()
    return Report(
        outcome=Outcome.COMPLETED,
        solver=solver.name,
        iterations=len(times) * stop.max_iterations,
        imbalance=np.nan,
        reduction=np.nan,
        residual=np.nan,
        energy=np.nan,
        seconds=perf_counter() - start - setup - compiled.seconds,
        compile_seconds=compiled.seconds,
        setup_seconds=setup,
        rejected=0,
        notes=run.notes(),
    )


def _place(problem: Problem, start: np.ndarray | State) -> None:
    """Begin from positions (n, 3) [m], at rest, or from a state."""
    if isinstance(start, State):
        for values in (start.displacements, start.velocities):
            _start_positions(values, problem.model)
        problem.state = start
    else:
        problem.positions = _start_positions(start, problem.model)


def _start_positions(values: np.ndarray, model: Model) -> np.ndarray:
    values = np.asarray(values, float)
    if values.shape != model.rest.shape:
        raise ValueError(
            f"one row of three numbers per vertex is needed: {model.rest.shape}, got {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError(
            f"{np.count_nonzero(~np.isfinite(values).all(axis=1))} vertices have NaN or infinite values"
        )
    return values


def _merge(reports: list[Report]) -> Report:
    """One report for a frame of several substeps: the last, with what adds up added up."""
    last = reports[-1]
    if len(reports) > 1:
        last.iterations = sum(r.iterations for r in reports)
        last.seconds = sum(r.seconds for r in reports)
        last.compile_seconds = sum(r.compile_seconds for r in reports)
        last.setup_seconds = sum(r.setup_seconds for r in reports)
        last.rejected = sum(r.rejected for r in reports)
        failed = [r for r in reports if not r.ok]
        if failed:
            last.outcome = failed[0].outcome
    return last
