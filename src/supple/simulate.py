"""equilibrium() and simulate(): one state of balance, and frames of a motion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from supple.asking import UNSAID, Request, Tolerance, check_circumstances, request
from supple.checks import LARGEST, finite_rows, flag, listed, positive, shown, whole_number
from supple.kernels import compilation
from supple.magnitudes import refuse_beyond
from supple.model import Model
from supple.report import Outcome, Report
from supple.scene import Body, Scene, SceneFile
from supple.scene.scene import scene_of
from supple.solvers import Solver
from supple.solvers.problem import Problem
from supple.solving import Stop, Watcher, make_problem, solve
from supple.state import State


@dataclass(repr=False)
class Result:
    """What a solve found: positions (n, 3) [m] of all bodies' vertices in the order they were added.

    state: what `start` takes to go on from here exactly. It can be pickled and copied, without what is on a
    device.
    """

    positions: np.ndarray
    report: Report
    model: Model
    velocities: np.ndarray | None = None
    state: State | None = field(default=None, repr=False, kw_only=True)
    on_device: Any = field(default=None, repr=False, kw_only=True)

    def of(self, body: Body) -> np.ndarray:
        """The positions of one body's vertices."""
        if not isinstance(body, Body):
            raise TypeError(f"of() takes a body of the scene, got {shown(body)}")
        if not any(body.is_like(own) for own in self.model.bodies):
            names = listed(own.name for own in self.model.bodies)
            raise ValueError(f"body {body.name!r} belongs to another scene; the result has {names}")
        return self.positions[body.vertices]

    def positions_like(self, like: str) -> Any:
        """The positions (n, 3) as an array of "torch" or "cupy"; where the solve ran on a CUDA device, on
        that device in the solve's precision, without a copy through the host. On the CPU it shares memory
        with `positions`, where the library can."""
        from supple.interop import array_of

        return array_of(like, self.positions, self.model.rest, self.on_device)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"on_device": None}

    def __repr__(self) -> str:
        """One line; `print` also shows the report."""
        report = self.report
        return (
            f"<{self._title()}: {report.outcome.name.lower()}, {len(self.positions):,} vertices, imbalance "
            f"{report.imbalance:.2e} after {report.iterations:,} iterations of {report.solver}>"
        )

    def __str__(self) -> str:
        return f"{self._title()}: {self.report}"

    def _title(self) -> str:
        return "Result"


@dataclass(repr=False)
class Frame(Result):
    """One frame of a simulation; index counts from 1, time in seconds."""

    index: int = 0
    time: float = 0.0

    def _title(self) -> str:
        return f"Frame {self.index} at {self.time:.6g} s"


def equilibrium(
    scene: Scene | SceneFile | Model,
    solver: Solver | str | None = None,
    *,
    tolerance: Tolerance = UNSAID,
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

    solver: one with its options, or a name such as "newton". tolerance: the imbalance to reach, 1e-4 unless
    given; None for none. start: positions (n, 3) or a state to begin from; the rest positions by default. A
    scene file says all of these where the call does not. history: record residual and energy after every
    iteration. threads: all cores unless given; at most 64, or four for each core where that is more.
    """
    began = perf_counter()
    asked = request(scene, solver, tolerance, max_iterations, time_budget, always_tolerance=True, models=True)
    check_circumstances(precision, device, threads, history, watch)
    problem = make_problem(asked.scene, True, precision, device, threads)
    if (begin := asked.start(start, problem.model)) is not None:
        place(problem, begin)
    problem.prescribe(np.inf)
    report = solve(problem, asked.solver, asked.stop, history, watch, began)
    there = problem.displacements_on_device()
    return Result(problem.positions, report, problem.model, state=problem.state, on_device=there)


def simulate(
    scene: Scene | SceneFile,
    solver: Solver | str | None = None,
    *,
    dt: float | None = None,
    frames: int | None = None,
    substeps: int = 1,
    quasistatic: bool | None = None,
    tolerance: Tolerance = UNSAID,
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
    stopped. Positions (n, 3) as start, and velocities (n, 3), do as well.

    solver, start, threads: as for `equilibrium`. The limits hold for every step. Where none is given, neither
    by the call nor by a scene file, the solver's `iterations` are the limit, or else a tolerance of 1e-4.
    """
    asked = request(scene, solver, tolerance, max_iterations, time_budget)
    check_circumstances(precision, device, threads, history, watch)
    scene = scene_of(scene)
    quasistatic = scene.quasistatic if quasistatic is None else flag("quasistatic", quasistatic)
    dt = positive("dt", scene.dt if dt is None else dt, "s")
    frames = whole_number("frames", scene.frames if frames is None else frames)
    substeps = whole_number("substeps", substeps)
    if isinstance(start, State) and velocities is not None:
        raise ValueError("a state has its own velocities; give either a state as start, or velocities")
    return _frames(
        asked, dt, frames, 1 if quasistatic else substeps, quasistatic, precision, device,
        start, velocities, whole_number("first_frame", first_frame), history, threads, watch,
    )  # fmt: skip


def _frames(
    asked: Request, dt: float, frames: int, substeps: int, quasistatic: bool,
    precision: str, device: str, start: np.ndarray | State | None, velocities: np.ndarray | None,
    first_frame: int, history: bool, threads: int | None, watch: Watcher | None,
) -> Iterator[Frame]:  # fmt: skip
    began: float | None = perf_counter()
    solver, stop = asked.solver, asked.stop
    problem = make_problem(asked.scene, quasistatic, precision, device, threads)
    model, step = problem.model, dt / substeps
    if (begin := asked.start(start, model)) is None:
        problem.prescribe((first_frame - 1) * dt)
    else:
        place(problem, begin)
    damping = getattr(solver, "damping", 0.0)
    if velocities is not None:
        problem.set_velocities(finite_rows("velocities", velocities, model.vertices, limit=LARGEST))
    if not quasistatic:
        refuse_beyond(model, precision, step)
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


def place(problem: Problem, start: np.ndarray | State) -> None:
    """Begin from positions (n, 3) [m], at rest, or from a state."""
    n = problem.model.vertices
    if isinstance(start, State):
        finite_rows("displacements of the state", start.displacements, n)
        finite_rows("velocities of the state", start.velocities, n, limit=LARGEST)
        problem.state = start
    else:
        problem.positions = finite_rows("start", start, n)


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
