"""equilibrium() and simulate(): one state of balance, and frames of a motion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from supple.model import Model, Step
from supple.report import Report
from supple.scene import Body, Scene
from supple.solvers import Solver, default_solver
from supple.solvers.problem import Problem
from supple.solving import Stop, Watcher, make_problem, make_stop, solve
from supple.state import State
from supple.stepping import Pace, Stepping, make_pace


@dataclass
class Result:
    """What a solve found: positions (n, 3) [m] of all bodies' vertices in the order they were added.

    state: what `start` takes to go on from here exactly. step: what led here, for pictures of the residual.
    """

    positions: np.ndarray
    report: Report
    model: Model
    velocities: np.ndarray | None = None
    state: State | None = field(default=None, repr=False, kw_only=True)
    step: Step | None = field(default=None, repr=False, kw_only=True)
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
    """The positions at which all forces balance, with every motion and every load at its end.

    start: positions (n, 3) or a state to begin from; the rest positions by default. history: record residual
    and energy after every iteration.
    """
    began = perf_counter()
    solver = solver or default_solver()
    stop = make_stop(solver, tolerance, max_iterations, time_budget)
    problem = make_problem(scene, True, precision, device, threads)
    if start is not None:
        place(problem, start)
    problem.prescribe(np.inf)
    report = solve(problem, solver, stop, history, watch, began)
    step = Step(np.inf, problem.positions, problem.force) if problem.model.varying else None
    there = problem.displacements_on_device()
    return Result(problem.positions, report, problem.model, state=problem.state, step=step, on_device=there)


def simulate(
    scene: Scene,
    solver: Solver | None = None,
    *,
    dt: float | None = None,
    frames: int | None = None,
    substeps: int | None = None,
    damping: float | None = None,
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

    A dynamic scene takes `substeps` backward Euler steps per frame, each with v = (1 - damping) Δx/Δt; a
    quasistatic one finds the equilibrium at each frame's time. dt, frames, substeps, damping, quasistatic and
    the velocities at the start default to the scene's. To go on from frame k, pass its state as start and
    first_frame = k + 1: the frames are bitwise those of a motion that never stopped. Positions (n, 3) as
    start, and velocities (n, 3), do as well. The limits hold for every step.
    """
    solver = solver or default_solver()
    stop = make_stop(solver, tolerance, max_iterations, time_budget)
    pace = make_pace(scene, solver, dt, substeps, damping, quasistatic)
    frames = scene.frames if frames is None else frames
    if frames < 1:
        raise ValueError(f"frames must be at least 1, got {frames}")
    if isinstance(start, State) and velocities is not None:
        raise ValueError("a state has its own velocities; give either a state as start, or velocities")
    return _frames(
        scene, solver, stop, pace, frames, precision, device, start, velocities, first_frame, history,
        threads, watch,
    )  # fmt: skip


def _frames(
    scene: Scene, solver: Solver, stop: Stop, pace: Pace, frames: int, precision: str, device: str,
    start: np.ndarray | State | None, velocities: np.ndarray | None, first_frame: int, history: bool,
    threads: int | None, watch: Watcher | None,
) -> Iterator[Frame]:  # fmt: skip
    began = perf_counter()
    problem = make_problem(scene, pace.quasistatic, precision, device, threads)
    if start is None:
        problem.prescribe((first_frame - 1) * pace.dt)
    else:
        place(problem, start)
    if velocities is not None:
        problem.set_velocities(start_positions(velocities, problem.model))
    elif problem.model.velocities is not None and first_frame == 1 and not isinstance(start, State):
        problem.set_velocities(problem.model.velocities)
    stepping = Stepping(problem, solver, stop, pace, history, watch, began)
    stepping.index = first_frame - 1
    for _ in range(first_frame, frames + 1):
        yield frame_of(stepping, stepping.advance()[0])


def frame_of(stepping: Stepping, report: Report) -> Frame:
    """The frame at which a motion has arrived; the caller may do anything with it."""
    problem, v = stepping.problem, stepping.settle()
    return Frame(
        problem.positions,
        report,
        problem.model,
        v,
        stepping.index,
        stepping.time,
        state=problem.state,
        step=stepping.last_step(),
        on_device=problem.displacements_on_device(),
    )


def place(problem: Problem, start: np.ndarray | State) -> None:
    """Begin from positions (n, 3) [m], at rest, or from a state."""
    if not isinstance(start, State):
        problem.positions = start_positions(start, problem.model)
        return
    if start.displacements.shape != problem.model.rest.shape:
        raise ValueError(
            f"the state is one of {len(start.displacements)} vertices; the scene has {problem.model.vertices}"
        )
    problem.state = start


def start_positions(values: np.ndarray, model: Model) -> np.ndarray:
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
