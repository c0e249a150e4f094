"""Equilibria and simulations: `equilibrium` and `simulate`, with their results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from supple.model.model import Model, Step, latest_model
from supple.model.state import State
from supple.problem import Problem
from supple.problem.history_variables import check_history
from supple.problem.material_update import changing_materials
from supple.scene import Body, Scene, SceneFile
from supple.scene.scene import scene_of
from supple.solve.batch_solve import Callback, make_problem
from supple.solve.call_options import (
    BackendOptions,
    Options,
    Request,
    add_position_tolerance,
    check_callbacks,
    resolve_backend,
    resolve_request,
    takes_options,
)
from supple.solve.grid_time_loop import make_time_loop
from supple.solve.load_stepping import LoadStepping
from supple.solve.report import IterationInfo, Report
from supple.solve.time_loop import TimeLoop
from supple.solve.time_step_options import StepSchedule, make_schedule
from supple.solvers import Solver
from supple.support.arguments import MAX_MAGNITUDE, check_integer, check_vectors, comma_list, format_value

if TYPE_CHECKING:
    from supple.postprocess.evaluation import Evaluation
    from supple.postprocess.modes import Mode


@dataclass(repr=False)
class Result:
    """Result of a solve.

    It can be pickled and copied, without data in device memory.

    Attributes:
        positions: (n, 3) positions of all bodies' vertices [m], in the order in which bodies were added.
        report: Report of the solve.
        model: Model with its contacts at these positions.
        velocities: (n, 3) velocities [m/s], or None.
        state: Complete state, from which `initial` continues exactly.
        step: Last step, for pictures of the residual, or None.
        stages: Intermediate equilibria, if loads and motions were applied in steps.
        on_device: Displacements in device memory, or None.
    """

    positions: np.ndarray
    report: Report
    model: Model
    velocities: np.ndarray | None = None
    state: State | None = field(default=None, repr=False, kw_only=True)
    step: Step | None = field(default=None, repr=False, kw_only=True)
    stages: tuple[Result, ...] = field(default=(), repr=False, kw_only=True)
    on_device: Any = field(default=None, repr=False, kw_only=True)

    def positions_of(self, body: Body) -> np.ndarray:
        """Return the positions of one body.

        Args:
            body: Body of the scene.

        Returns:
            (k, 3) positions of its vertices [m].

        Raises:
            TypeError: The argument is not a body.
            ValueError: The body belongs to another scene.
        """
        if not isinstance(body, Body):
            raise TypeError(f"positions_of() takes a body of the scene, got {format_value(body)}")
        if not any(body.is_like(own) for own in self.model.bodies):
            names = comma_list(own.name for own in self.model.bodies)
            raise ValueError(f"body {body.name!r} belongs to another scene; the result has {names}")
        return self.positions[body.vertices]

    @property
    def displacements(self) -> np.ndarray:
        """(n, 3) displacements from the rest positions [m]."""
        return self.positions - self.model.rest

    def positions_as(self, like: str) -> Any:
        """Return positions in the array type of another library.

        After a solve on a CUDA device, the array is on that device in the precision of the solve, without a
        copy through the host. On the CPU it shares memory with `positions` if the library permits it.

        Args:
            like: "torch" or "cupy".

        Returns:
            (n, 3) positions [m].

        Raises:
            ValueError: The library is unknown or not installed.
        """
        from supple.api.array_interop import convert_positions

        return convert_positions(like, self.positions, self.model.rest, self.on_device)

    @takes_options
    def evaluate(self, **options: Unpack[BackendOptions]) -> Evaluation:
        """Evaluate forces, reactions, energies, deformations and stresses at this result.

        Loads and inertia are those of the step that led here.

        Args:
            **options: `backend`, or its fields one by one, as in `supple.evaluate`.

        Returns:
            The evaluated quantities.

        Raises:
            ValueError: The positions are not finite, or an option is invalid.
        """
        from supple.postprocess.evaluate import evaluate_model

        backend = resolve_backend(options)
        x = check_vectors("positions", self.positions, self.model.vertices)
        return evaluate_model(self.model, x, self.step, backend)

    def lowest_modes(self, count: int = 1) -> tuple[Mode, ...]:
        """Compute the lowest eigenmodes of the energy's Hessian, without inertia.

        They show how close an equilibrium is to buckling, for example one of the many equilibria of wrinkled
        cloth. A negative eigenvalue means that the equilibrium is unstable.

        Args:
            count: Number of modes.

        Returns:
            Modes with curvature [N/m] and direction (n, 3), by ascending curvature.

        Raises:
            ValueError: The count or the positions are invalid, or forces are infinite or NaN.
            RuntimeError: The eigenvalue iteration did not converge.
        """
        from supple.postprocess.modes import lowest_modes

        x = check_vectors("positions", self.positions, self.model.vertices)
        return lowest_modes(self.model, x, self.step, check_integer("count", count))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"on_device": None}

    def __repr__(self) -> str:
        """One line; `print` also shows the report."""
        report = self.report
        return (
            f"<{self._title()}: {report.short_outcome}, {len(self.positions):,} vertices, relative residual "
            f"{report.relative_residual:.2e} after {report.iterations:,} iterations of {report.solver}>"
        )

    def __str__(self) -> str:
        return f"{self._title()}: {self.report}"

    def _title(self) -> str:
        """Title in printed text."""
        return "Result"


@dataclass(repr=False)
class Frame(Result):
    """One frame of a simulation.

    Attributes:
        index: Number of the frame, from 1.
        time: Time [s].
        positions: (n, 3) positions of all bodies' vertices [m], in the order in which bodies were added.
        report: Report of the last substep, with the iterations and times of all substeps.
        model: Model with its contacts at these positions.
        velocities: (n, 3) velocities [m/s], or None.
        state: Complete state, from which `initial` continues exactly.
        step: Last step, for pictures of the residual, or None.
        stages: Empty: steps of a motion have no load steps.
        on_device: Displacements in device memory, or None.
    """

    index: int = 0
    time: float = 0.0

    def _title(self) -> str:
        """Title in printed text."""
        return f"Frame {self.index} at {self.time:.6g} s"


@takes_options
def equilibrium(
    scene: Scene | SceneFile | Model,
    *,
    solver: Solver | str | None = None,
    initial: np.ndarray | State | None = None,
    load_steps: int = 1,
    record_history: bool = False,
    callback: Callback | None = None,
    **options: Unpack[Options],
) -> Result:
    """Solve for a static equilibrium, with all prescribed motions and loads at their end.

    Args:
        scene: Scene, scene file or model. A scene file provides the solver, initial state and limits that the
            call omits.
        solver: Solver with its options, or a name such as "newton". The default is `supple.Hybrid`.
        initial: Initial positions (n, 3) [m] or a state; the rest positions by default.
        load_steps: Number of steps in which loads and motions are applied, each from the previous
            equilibrium; see `stages` of the result. More steps are made if forces would be infinite
            otherwise, or if a solve stagnates or fails.
        record_history: Record residual and energy after every iteration.
        callback: Called with an `IterationInfo` (iteration, relative_residual, energy, seconds, stage) after
            each measurement of the relative residual.
        **options: `stop`, or `tolerance` (of the relative residual), `max_iterations`, `time_limit` [s] and
            `position_tolerance` (of every body from the equilibrium, relative to its size) one by one.
            Tolerance and position tolerance are 1e-4 by default, also together with other limits; None
            disables them. `backend`, or `device`, `precision` and `threads` one by one.

    Returns:
        Positions and report. A solve that does not converge also returns a result; see `ok` of its report.

    Raises:
        ValueError: The scene or an argument is invalid.
        TypeError: An argument has the wrong type.
    """
    began = perf_counter()
    request = resolve_request(scene, solver, options, always_tolerance=True, models=True)
    check_callbacks(record_history, callback)
    problem = make_problem(request.scene, True, request.backend)
    set_initial_state(problem, request, initial)
    if isinstance(initial, State):
        problem.history.flow()
    stages, model = [], problem.model
    count = check_integer("load_steps", load_steps)
    for fraction, report in LoadStepping(
        problem, request.solver, request.stop, count, callback, record_history, began
    ).run():
        if fraction < 1:
            acting = _make_step(problem, fraction * model.duration)
            model = latest_model(model, problem.model)
            stages.append(Result(problem.positions, report, model, state=problem.state, step=acting))
    device_displacements, state = problem.states.on_device(), problem.state
    acts = model.varying or model.obstacles is not None or state.history
    step = _make_step(problem, np.inf) if acts else None
    model = latest_model(model, problem.model)
    return Result(
        problem.positions,
        report,
        model,
        state=state,
        step=step,
        stages=tuple(stages),
        on_device=device_displacements,
    )


def _make_step(problem: Problem, time: float) -> Step:
    """Forces, parameters and history variables at an equilibrium at a time [s]."""
    materials, (history, *_) = changing_materials(problem.model), problem.history.get_variables()
    return Step(np.inf, problem.positions, problem.loads.force, materials, time, history)


@takes_options
def simulate(
    scene: Scene | SceneFile,
    *,
    solver: Solver | str | None = None,
    dt: float | None = None,
    frames: int | None = None,
    substeps: int | None = None,
    damping: float | None = None,
    quasistatic: bool | None = None,
    integrator: str | None = None,
    initial_guess: str | None = None,
    initial: np.ndarray | State | None = None,
    velocities: np.ndarray | None = None,
    first_frame: int = 1,
    record_history: bool = False,
    callback: Callback | None = None,
    **options: Unpack[Options],
) -> Iterator[Frame]:
    """Simulate a motion frame by frame; every frame starts from the previous one.

    A dynamic scene takes `substeps` backward Euler steps per frame, each with v = (1 - damping) Δx/Δt. A
    quasistatic scene finds the equilibrium at the time of each frame.

    To continue from frame k, pass its state as `initial` and first_frame = k + 1: the frames are bitwise
    those of an uninterrupted simulation. Positions and velocities are accepted as well.

    Args:
        scene: Scene or scene file. The scene provides the defaults of time stepping. A scene file's initial
            positions come with their own velocities.
        solver: Solver or its name, as in `equilibrium`.
        dt: Time from frame to frame [s].
        frames: Number of the last frame.
        substeps: Steps per frame.
        damping: Fraction of every velocity that is removed per step, from 0 to below 1.
        quasistatic: Compute one equilibrium per frame, without inertia.
        integrator: "backward_euler", or "bdf2" or "trapezoidal" of second order, see docs/motions.md.
        initial_guess: Initial guess of a step: "adaptive", "inertial" or "coast".
        initial: Initial positions (n, 3) [m] or a state.
        velocities: (n, 3) initial velocities [m/s].
        first_frame: Number of the first frame.
        record_history: Record residual and energy after every iteration.
        callback: Called with an `IterationInfo` after each measurement of the relative residual. Its `frame`
            is the number of the frame being computed.
        **options: `stop` and `backend`, or their fields one by one, as in `equilibrium`. Limits apply to
            every step. `max_iterations` and `time_limit` apply in addition to a tolerance of 1e-4, unless
            the tolerance is None. If neither call nor scene file sets a limit, a solver with `iterations`
            makes that number of iterations without a tolerance.

    Yields:
        Frames with positions, velocities and report.

    Raises:
        ValueError: The scene or an argument is invalid.
        TypeError: An argument has the wrong type.
    """
    request = resolve_request(scene, solver, options)
    check_callbacks(record_history, callback)
    scene = scene_of(scene)
    schedule = make_schedule(
        scene, request.solver, dt, substeps, damping, quasistatic, integrator, initial_guess
    )
    if schedule.quasistatic:
        request = replace(request, stop=add_position_tolerance(request.stop, options, request.file))
    frames = check_integer("frames", scene.frames if frames is None else frames)
    if isinstance(initial, State) and velocities is not None:
        raise ValueError(
            "the state given as initial has velocities of its own; omit velocities, or give positions "
            "as initial"
        )
    first = check_integer("first_frame", first_frame)
    return _frames(request, schedule, frames, initial, velocities, first, record_history, callback)


def _frames(
    request: Request,
    schedule: StepSchedule,
    frames: int,
    initial: np.ndarray | State | None,
    velocities: np.ndarray | None,
    first_frame: int,
    record_history: bool,
    callback: Callback | None,
) -> Iterator[Frame]:
    """Yield the frames of a motion."""
    began = perf_counter()
    problem = make_problem(request.scene, schedule.quasistatic, request.backend)
    begin = (first_frame - 1) * schedule.dt
    problem.contacts.set_time(begin)
    problem.trust_region.set_time(begin)
    if not set_initial_state(problem, request, initial):
        problem.begin_step(begin)
    if velocities is not None:
        limit = MAX_MAGNITUDE
        values = check_vectors("velocities", velocities, problem.model.vertices, limit=limit)
        problem.states.set_velocities(values)
    elif not isinstance(initial, State):
        saved = request.velocities(initial, problem.model, first_frame)
        if saved is not None:
            problem.states.set_velocities(saved)

    def report_frame(info: IterationInfo) -> None:
        if callback is not None:
            callback(replace(info, frame=time_loop.index + 1))

    time_loop = make_time_loop(
        problem,
        request.solver,
        request.stop,
        schedule,
        record_history,
        None if callback is None else report_frame,
        began,
    )
    time_loop.index = first_frame - 1
    if not isinstance(initial, State):
        time_loop.count_inverted()
    for _ in range(first_frame, frames + 1):
        yield make_frame(time_loop, time_loop.advance()[0])


def make_frame(time_loop: TimeLoop, report: Report) -> Frame:
    """Create the frame at the current time; the caller may modify it."""
    problem, (v, *_), (step, *_) = time_loop.problem, time_loop.finish_frame(), time_loop.last_steps()
    return Frame(
        problem.positions,
        report,
        time_loop.model,
        v,
        time_loop.index,
        time_loop.time,
        state=problem.state,
        step=step,
        on_device=problem.states.on_device(),
    )


def validate_state(state: State, model: Model) -> State:
    """Validate a state: matching model size and finite values."""
    return State(
        check_vectors("displacements of the state", state.displacements, model.vertices),
        check_vectors("velocities of the state", state.velocities, model.vertices, limit=MAX_MAGNITUDE),
        check_history(model, state.history),
    )


def set_initial_state(problem: Problem, request: Request, initial: np.ndarray | State | None) -> bool:
    """Set the initial positions (n, 3) [m], or the state; False if neither call nor file provides one."""
    if isinstance(initial, State):
        problem.state = validate_state(initial, problem.model)
        return True
    if (begin := request.initial(initial, problem.model)) is not None:
        problem.positions = check_vectors("initial", begin, problem.model.vertices)
    return begin is not None
