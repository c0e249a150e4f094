"""equilibrium() and simulate(): one state of balance, and frames of a motion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from supple.asking import (
    Circumstances,
    Options,
    Request,
    arriving,
    check_watching,
    compute_of,
    request,
    takes_options,
)
from supple.checks import LARGEST, finite_rows, listed, shown, whole_number
from supple.continuation import Continuation
from supple.grid_stepping import stepping_of
from supple.model import Model, Step, latest
from supple.pace import Pace, make_pace
from supple.problem import Problem
from supple.problem.materials import changing_materials
from supple.problem.remembered import checked_remembered
from supple.report import Report
from supple.scene import Body, Scene, SceneFile
from supple.scene.scene import scene_of
from supple.solvers import Solver
from supple.solving import Watcher, make_problem
from supple.state import State
from supple.stepping import Stepping

if TYPE_CHECKING:
    from supple.evaluation import Evaluation
    from supple.modes import Mode


@dataclass(repr=False)
class Result:
    """What a solve found: positions (n, 3) [m] of all bodies' vertices in the order they were added.

    It can be pickled and copied, without what is on a device. state: what `start` takes to go on from here
    exactly. step: what led here, for pictures of the residual. stages: the equilibria on the way here, where
    loads and motions grew in steps.
    """

    positions: np.ndarray
    report: Report
    model: Model
    velocities: np.ndarray | None = None
    state: State | None = field(default=None, repr=False, kw_only=True)
    step: Step | None = field(default=None, repr=False, kw_only=True)
    stages: tuple[Result, ...] = field(default=(), repr=False, kw_only=True)
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

    @takes_options
    def evaluate(self, **options: Unpack[Circumstances]) -> Evaluation:
        """Forces, reactions at pins, energies, deformations and stresses here, under the loads and with the
        inertia that led here; compute as for `supple.evaluate`."""
        from supple.evaluating import evaluation_of

        compute = compute_of(options)
        x = finite_rows("positions", self.positions, self.model.vertices)
        return evaluation_of(self.model, x, self.step, compute)

    def softest(self, count: int = 1) -> tuple[Mode, ...]:
        """The directions in which the energy, without inertia, is least curved here, ascending: of many
        equilibria, as wrinkled cloth has them, they tell how near this one is to giving way, and below 0 that
        it is none to stay in."""
        from supple.modes import softest

        x = finite_rows("positions", self.positions, self.model.vertices)
        return softest(self.model, x, self.step, whole_number("count", count))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"on_device": None}

    def __repr__(self) -> str:
        """One line; `print` also shows the report."""
        report = self.report
        return (
            f"<{self._title()}: {report.ending}, {len(self.positions):,} vertices, imbalance "
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


@takes_options
def equilibrium(
    scene: Scene | SceneFile | Model,
    solver: Solver | str | None = None,
    *,
    start: np.ndarray | State | None = None,
    steps: int = 1,
    history: bool = False,
    watch: Watcher | None = None,
    **options: Unpack[Options],
) -> Result:
    """The positions at which all forces balance, with every motion and every load at its end.

    solver: one with its options, or a name such as "newton". start: positions (n, 3) or a state to begin
    from; the rest positions by default. steps: in how many loads and motions grow, each from where the last
    has led; `stages` of the result keeps these. More are made where the forces would be infinite otherwise,
    and where a solve stagnates or fails.
    stop: a `Stop`, or its tolerance (on the imbalance), max_iterations,
    time_budget [s] and distance (of every body to the equilibrium, relative to its size) one by one; then
    tolerance and distance are 1e-4 unless given, also beside the others, and None for none. A scene file says
    all of these where the call does not. compute: a `Compute`, or its device, precision and threads one by
    one. history: keep residual and energy after every iteration. watch: called with iteration, imbalance
    and seconds whenever the solve looks."""
    began = perf_counter()
    asked = request(scene, solver, options, always_tolerance=True, models=True)
    check_watching(history, watch)
    problem = make_problem(asked.scene, True, asked.compute)
    place(problem, asked, start)
    if isinstance(start, State):
        problem.remembered.flow()
    stages, model = [], problem.model
    count = whole_number("steps", steps)
    for part, report in Continuation(problem, asked.solver, asked.stop, count, watch, history, began).run():
        if part < 1:
            acting = _acting(problem, part * model.duration)
            model = latest(model, problem.model)
            stages.append(Result(problem.positions, report, model, state=problem.state, step=acting))
    there, state = problem.states.on_device(), problem.state
    acts = model.varying or model.obstacles is not None or state.remembered
    step = _acting(problem, np.inf) if acts else None
    model = latest(model, problem.model)
    return Result(
        problem.positions, report, model, state=state, step=step, stages=tuple(stages), on_device=there
    )


def _acting(problem: Problem, time: float) -> Step:
    """What acts where an equilibrium is at a time [s]."""
    materials, (remembered, *_) = changing_materials(problem.model), problem.remembered.take()
    return Step(np.inf, problem.positions, problem.loads.force, materials, time, remembered)


@takes_options
def simulate(
    scene: Scene | SceneFile,
    solver: Solver | str | None = None,
    *,
    dt: float | None = None,
    frames: int | None = None,
    substeps: int | None = None,
    damping: float | None = None,
    quasistatic: bool | None = None,
    integrator: str | None = None,
    initial_guess: str | None = None,
    start: np.ndarray | State | None = None,
    velocities: np.ndarray | None = None,
    first_frame: int = 1,
    history: bool = False,
    watch: Watcher | None = None,
    **options: Unpack[Options],
) -> Iterator[Frame]:
    """Frames of a motion, each a time dt after the last and warm-started from it.

    A dynamic scene takes `substeps` backward Euler steps per frame, each with v = (1 - damping) Δx/Δt; a
    quasistatic one finds the equilibrium at each frame's time. integrator: "bdf2" and "trapezoidal" are steps
    of second order, see docs/motions.md. initial_guess: where the solver starts in a step, "adaptive",
    "inertial" or "coast". dt, frames, substeps, damping, quasistatic, integrator, initial_guess and
    the velocities at the start default to the scene's; a scene file's start comes with its own velocities. To
    go on from frame k, pass its state as start and first_frame = k + 1: the frames are bitwise those of a
    motion that never stopped. Positions (n, 3) as start, and velocities (n, 3), do as well.

    solver, start, compute, history, watch: as for `equilibrium`. stop, or its limits one by one, holds for
    every step. max_iterations and time_budget come on top of a tolerance of 1e-4, unless tolerance=None.
    Where no limit is given, neither by the call nor by a scene file, a solver with `iterations` makes that
    number of them without a tolerance."""
    asked = request(scene, solver, options)
    check_watching(history, watch)
    scene = scene_of(scene)
    pace = make_pace(scene, asked.solver, dt, substeps, damping, quasistatic, integrator, initial_guess)
    if pace.quasistatic:
        asked = replace(asked, stop=arriving(asked.stop, options, asked.file))
    frames = whole_number("frames", scene.frames if frames is None else frames)
    if isinstance(start, State) and velocities is not None:
        raise ValueError("a state has its own velocities; give either a state as start, or velocities")
    first = whole_number("first_frame", first_frame)
    return _frames(asked, pace, frames, start, velocities, first, history, watch)


def _frames(
    asked: Request,
    pace: Pace,
    frames: int,
    start: np.ndarray | State | None,
    velocities: np.ndarray | None,
    first_frame: int,
    history: bool,
    watch: Watcher | None,
) -> Iterator[Frame]:
    began = perf_counter()
    problem = make_problem(asked.scene, pace.quasistatic, asked.compute)
    begin = (first_frame - 1) * pace.dt
    problem.contacts.stand_at(begin)
    problem.room.stand_at(begin)
    if not place(problem, asked, start):
        problem.begin_step(begin)
    if velocities is not None:
        limit = LARGEST
        given = finite_rows("velocities", velocities, problem.model.vertices, limit=limit)
        problem.states.set_velocities(given)
    elif not isinstance(start, State):
        moving = asked.velocities(start, problem.model, first_frame)
        if moving is not None:
            problem.states.set_velocities(moving)
    stepping = stepping_of(problem, asked.solver, asked.stop, pace, history, watch, began)
    stepping.index = first_frame - 1
    if not isinstance(start, State):
        stepping.count_inverted()
    for _ in range(first_frame, frames + 1):
        yield frame_of(stepping, stepping.advance()[0])


def frame_of(stepping: Stepping, report: Report) -> Frame:
    """The frame at which a motion has arrived; the caller may do anything with it."""
    problem, (v, *_), (step, *_) = stepping.problem, stepping.settle(), stepping.last_steps()
    return Frame(
        problem.positions,
        report,
        stepping.model,
        v,
        stepping.index,
        stepping.time,
        state=problem.state,
        step=step,
        on_device=problem.states.on_device(),
    )


def sound(state: State, model: Model) -> State:
    """The state, one of a model and finite."""
    return State(
        finite_rows("displacements of the state", state.displacements, model.vertices),
        finite_rows("velocities of the state", state.velocities, model.vertices, limit=LARGEST),
        checked_remembered(model, state.remembered),
    )


def place(problem: Problem, asked: Request, start: np.ndarray | State | None) -> bool:
    """Begin from positions (n, 3) [m], at rest, or from a state; False where neither call nor file says."""
    if isinstance(start, State):
        problem.state = sound(start, problem.model)
        return True
    if (begin := asked.start(start, problem.model)) is not None:
        problem.positions = finite_rows("start", begin, problem.model.vertices)
    return begin is not None
