"""equilibrium() and simulate(): the one loop around every solver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from supple.kernels import compilation
from supple.kernels.device import check_device
from supple.model import Model
from supple.report import History, Outcome, Report
from supple.scene import Body, Scene, build_model
from supple.solvers import Run, Solver, default_solver
from supple.solvers.problem import Balance, Problem

DEFAULT_ITERATIONS = 20_000
"""Iterations allowed to a solve that has a tolerance and no other limit."""

PROGRESS = 0.99
"""A figure counts as reduced when it falls below this part of the lowest seen."""

ROUNDED = 3.0
"""A float32 solve that gets stuck below this many times the estimated rounding error has reached its limit;
measured on all materials, that is at 0.3 times at most."""

Watcher = Callable[[int, float, float], None]
"""Called as watch(iteration, imbalance, seconds) whenever the imbalance has been measured."""


@dataclass(frozen=True)
class Stop:
    """When to stop: whichever comes first. tolerance is on the imbalance; time_budget in seconds."""

    tolerance: float | None = None
    max_iterations: int | None = None
    time_budget: float | None = None

    def __post_init__(self) -> None:
        if self.tolerance is not None and not 0 < self.tolerance < 1:
            raise ValueError(
                f"tolerance must lie between 0 and 1 (it is a part of all forces), got {self.tolerance}"
            )
        if self.max_iterations is not None and self.max_iterations < 1:
            raise ValueError(f"max_iterations must be at least 1, got {self.max_iterations}")
        if self.time_budget is not None and not 0 < self.time_budget < np.inf:
            raise ValueError(f"time_budget must be positive and finite [s], got {self.time_budget}")


@dataclass
class Result:
    """What a solve found: positions (n, 3) [m] of all bodies' vertices in the order they were added."""

    positions: np.ndarray
    report: Report
    model: Model
    velocities: np.ndarray | None = None
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
    start: np.ndarray | None = None,
    history: bool = False,
    threads: int | None = None,
    watch: Watcher | None = None,
) -> Result:
    """The positions at which all forces balance, with every motion at its end.

    start: positions (n, 3) to begin from; the rest positions by default. history: record residual and
    energy after every iteration.
    """
    began = perf_counter()
    solver = solver or default_solver()
    stop = make_stop(solver, tolerance, max_iterations, time_budget)
    problem = make_problem(scene, True, precision, device, threads)
    if start is not None:
        problem.positions = _start_positions(start, problem.model)
    problem.prescribe(np.inf)
    report = solve(problem, solver, stop, history, watch, began)
    return Result(problem.positions, report, problem.model, on_device=problem.displacements_on_device())


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
    start: np.ndarray | None = None,
    velocities: np.ndarray | None = None,
    first_frame: int = 1,
    history: bool = False,
    threads: int | None = None,
    watch: Watcher | None = None,
) -> Iterator[Frame]:
    """Frames of a motion, each a time dt after the last and warm-started from it.

    A dynamic scene takes `substeps` backward Euler steps per frame, v = Δx/Δt; a quasistatic one finds the
    equilibrium at each frame's time. dt, frames and quasistatic default to the scene's. To go on from frame
    k, pass its positions as start, its velocities, and first_frame = k + 1. The limits hold for every step.
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
    return _frames(
        scene, solver, stop, dt, frames, 1 if quasistatic else substeps, quasistatic, precision, device,
        start, velocities, first_frame, history, threads, watch,
    )  # fmt: skip


def _frames(
    scene: Scene, solver: Solver, stop: Stop, dt: float, frames: int, substeps: int, quasistatic: bool,
    precision: str, device: str, start: np.ndarray | None, velocities: np.ndarray | None, first_frame: int,
    history: bool, threads: int | None, watch: Watcher | None,
) -> Iterator[Frame]:  # fmt: skip
    began: float | None = perf_counter()
    problem = make_problem(scene, quasistatic, precision, device, threads)
    model, step = problem.model, dt / substeps
    if start is None:
        problem.prescribe((first_frame - 1) * dt)
    else:
        problem.positions = _start_positions(start, model)
    damping = getattr(solver, "damping", 0.0)
    v = np.zeros((model.vertices, 3)) if velocities is None else _start_positions(velocities, model)
    problem.set_velocities(v)
    if not quasistatic:
        problem.set_time_step(step)
    unseen = stop.tolerance is None and stop.time_budget is None and not history and watch is None
    for index in range(first_frame, frames + 1):
        reports = []
        x = problem.positions
        for substep in range(1, substeps + 1):
            time = (index - 1) * dt + substep * step
            if quasistatic:
                problem.prescribe(time)
            else:
                problem.coast(step, damping, time)
            if unseen and substep < substeps:
                reports.append(_iterate(problem, solver, stop, began))
            else:
                reports.append(solve(problem, solver, stop, history, watch, began))
            began = None
        v = (problem.positions - x) / dt if quasistatic else problem.velocities(step, damping)
        if not np.isfinite(problem.positions).all():  # after substeps that nobody has looked at
            problem.positions, v = x, np.zeros_like(x)
            problem.set_velocities(v)
        there = problem.displacements_on_device()
        yield Frame(problem.positions, _merge(reports), model, v, index, index * dt, on_device=there)


def _iterate(problem: Problem, solver: Solver, stop: Stop, began: float | None) -> Report:
    """The iterations of a substep that nobody looks at: the residual is evaluated only for methods that need
    it to stay stable. A device may still be at work on them afterwards."""
    assert stop.max_iterations is not None
    with compilation() as compiled:
        tick = perf_counter()
        setup = 0.0 if began is None else tick - began
        run = solver.begin(problem)
        every = run.check_every if run.guarded else stop.max_iterations
        for done in range(0, stop.max_iterations, every):
            run.advance(min(every, stop.max_iterations - done))
            if run.guarded:
                run.observe(problem.balance())
    return Report(
        outcome=Outcome.COMPLETED,
        solver=solver.name,
        iterations=stop.max_iterations,
        imbalance=np.nan,
        reduction=np.nan,
        residual=np.nan,
        energy=np.nan,
        seconds=perf_counter() - tick - compiled.seconds,
        compile_seconds=compiled.seconds,
        setup_seconds=setup,
        rejected=run.rejected,
        notes=run.notes,
    )


def solve(
    problem: Problem,
    solver: Solver,
    stop: Stop,
    record: bool = False,
    watch: Watcher | None = None,
    began: float | None = None,
) -> Report:
    """Run a solver on a problem until it should stop. The clock leaves out compilation and recording."""
    limit = stop.max_iterations or DEFAULT_ITERATIONS
    history = History() if record else None
    with compilation() as compiled:
        first = balance = problem.balance()
        clock, iteration = 0.0, 0
        good, lowest, progress_at = problem.zeros(problem.u.shape), balance, 0
        problem.assign(good, problem.u)

        def look() -> None:
            if history is not None:
                history.iterations.append(iteration)
                history.seconds.append(clock)
                history.residual.append(balance.residual)
                history.imbalance.append(balance.imbalance)
                history.energy.append(problem.energy())
            if watch is not None:
                watch(iteration, balance.imbalance, clock)

        look()
        run = solver.begin(problem)  # which may move u already
        setup = perf_counter() - began - compiled.seconds if began is not None else 0.0
        while True:
            stuck = iteration - progress_at > run.patience
            outcome = outcome_of(balance, stop, iteration, limit, clock, stuck, problem, run)
            if outcome is not None:
                break
            target = iteration + next_look(run, stop, iteration, limit, clock)
            while iteration < target:  # one by one when recording, which must change nothing else
                count = 1 if record else target - iteration
                compiling, tick = compiled.seconds, perf_counter()
                run.advance(count)
                if record:
                    problem.wait()
                iteration += count
                if record:
                    clock += perf_counter() - tick - (compiled.seconds - compiling)
                checking = stop.tolerance is not None or record or watch is not None or run.guarded
                if checking or iteration >= limit or stop.time_budget is not None:
                    balance = problem.balance()
                    if iteration == target and run.observe(balance):
                        balance = problem.balance()
                    if not run.guarded and (balance.finite or _recovering(problem, run)):
                        problem.assign(good, problem.u)
                if not record:
                    clock += perf_counter() - tick - (compiled.seconds - compiling)
                look()
            if is_progress(balance, lowest):
                lowest, progress_at = balance, iteration
            elif run.descends():
                progress_at = iteration
        if iteration == 0 or outcome is Outcome.FAILED:
            problem.assign(problem.u, good)
            balance = problem.balance()
        energy = problem.energy()
    return Report(
        outcome=outcome,
        solver=solver.name,
        iterations=iteration,
        imbalance=balance.imbalance,
        reduction=balance.residual / first.residual if first.residual != 0 else 0.0,
        residual=balance.residual,
        energy=energy,
        seconds=clock,
        tolerance=stop.tolerance,
        compile_seconds=compiled.seconds,
        setup_seconds=setup,
        precision=str(problem.dtype),
        threads=problem.threads,
        vertices=problem.model.vertices,
        elements=problem.model.elements,
        colours=run.colours,
        inverted=problem.inverted(),
        rejected=run.rejected,
        notes=run.notes,
        history=history,
    )


def is_progress(balance: Balance, lowest: Balance) -> bool:
    """Either figure may fall alone: the residual, while a body without loads relaxes and all its forces
    vanish together; the imbalance, while forces build up from rest under a load and the residual rises."""
    if not lowest.finite:
        return True
    return balance.residual < PROGRESS * lowest.residual or balance.imbalance < PROGRESS * lowest.imbalance


def next_look(run: Run, stop: Stop, iteration: int, limit: int, clock: float) -> int:
    """Iterations to do before deciding again whether to stop."""
    count = min(run.check_every - iteration % run.check_every, limit - iteration)
    if stop.time_budget is not None:
        per_iteration = clock / iteration if iteration else np.inf
        count = min(count, max(1, int((stop.time_budget - clock) / per_iteration)))
    return count


def outcome_of(
    balance: Balance,
    stop: Stop,
    iteration: int,
    limit: int,
    clock: float,
    stuck: bool,
    problem: Problem,
    run: Run,
) -> Outcome | None:
    """How the solve ends here, or None to go on."""
    if not balance.finite and not _recovering(problem, run):
        return Outcome.FAILED
    if stop.tolerance is not None and balance.imbalance <= stop.tolerance:
        return Outcome.CONVERGED
    if stop.tolerance is not None and stuck:
        at_rounding = problem.dtype == np.float32 and balance.residual <= ROUNDED * balance.rounding
        return Outcome.PRECISION if at_rounding else Outcome.STAGNATED
    if stop.time_budget is not None and clock >= stop.time_budget:
        return Outcome.BUDGET_TIME if stop.tolerance is not None else Outcome.COMPLETED
    if iteration >= limit:
        return Outcome.BUDGET_ITERATIONS if stop.tolerance is not None else Outcome.COMPLETED
    return None


def _recovering(problem: Problem, run: Run) -> bool:
    """Whether only forces are infinite, as they are in inverted elements with a barrier, and the method can
    unfold these."""
    if run.recovers:
        problem.pull(problem.u)
    return run.recovers and bool(np.isfinite(problem.u[:-1]).all())


def make_stop(
    solver: Solver, tolerance: float | None, max_iterations: int | None, time_budget: float | None
) -> Stop:
    limit = max_iterations if max_iterations is not None else solver.iterations
    if tolerance is None and limit is None and time_budget is None:
        raise ValueError(
            "nothing says when to stop: give a tolerance, max_iterations, a time_budget, "
            "or iterations to the solver"
        )
    return Stop(tolerance, limit, time_budget)


def make_problem(
    scene: Scene | Model, quasistatic: bool, precision: str, device: str, threads: int | None
) -> Problem:
    check_device(device)
    model = scene if isinstance(scene, Model) else build_model(scene, quasistatic)
    if device == "cpu":
        return Problem(model, precision, threads)
    from supple.solvers.cuda_problem import CudaProblem

    return CudaProblem(model, precision)


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
