"""`Stepper`: interactive simulation, advanced step by step by an external loop, with checked inputs."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from supple.api.batch_stepper import (
    MAX_BATCH_SIZE,
    BatchedStates,
    BatchFrame,
    SequentialStates,
    make_batch_problem,
    select_member,
)
from supple.api.dynamic_springs import add_spring_capacity, make_springs
from supple.api.equilibria import is_batched
from supple.api.simulate import make_frame, validate_state
from supple.model.model import Model
from supple.model.state import State
from supple.problem import Problem
from supple.scene import Scene, SceneFile, build_model
from supple.scene.scene import scene_of
from supple.scene.variations import Vertices, forces_on, pins_at
from supple.solve.batch_solve import make_problem
from supple.solve.call_options import Options, add_position_tolerance, resolve_request, takes_options
from supple.solve.float_range import check_float_range
from supple.solve.grid_time_loop import make_time_loop
from supple.solve.report import Outcome, Report
from supple.solve.time_step_options import make_schedule
from supple.solvers import Solver
from supple.support.arguments import (
    MAX_LENGTH,
    MAX_MAGNITUDE,
    check_integer,
    check_vectors,
    format_value,
    iterate_argument,
)
from supple.support.keywords import suggest_keywords
from supple.support.text import pluralize

Forces = ArrayLike | Mapping[Vertices, ArrayLike]
"""Forces [N] accepted by a stepper: an array, or a dictionary of vertices or bodies with forces."""
Pins = ArrayLike | Mapping[Vertices, Any]
"""Pin positions [m] accepted by a stepper: an array, or a dictionary of vertices or bodies with positions or
motions."""


@dataclass(frozen=True, eq=False)
class StepInputs:
    """Converter of stepper inputs: forces, pin positions, states.

    Attributes:
        scene: Scene.
        model: Model of the scene.
        batch_size: Batch size, None without a batch axis.
        dtype: Working precision of states.
    """

    scene: Scene
    model: Model
    batch_size: int | None
    dtype: np.dtype[Any]

    def forces(self, given: Forces | None) -> np.ndarray | None:
        """Convert forces to (n, 3) or (batch_size, n, 3) [N]."""
        if isinstance(given, Mapping):
            return forces_on(self.scene, self.model, given)
        return None if given is None else self.rows("forces [N]", given)

    def pins(self, given: Pins | None, time: float) -> np.ndarray | None:
        """Positions of the k pinned vertices at a time [s]: (k, 3) or (batch_size, k, 3) [m]."""
        if isinstance(given, Mapping):
            return pins_at(self.scene, self.model, given, time)
        if given is None:
            return None
        return self.rows("pins [m]", given, len(self.model.pinned), MAX_LENGTH, "pinned vertex")

    def rows(
        self,
        what: str,
        values: ArrayLike,
        count: int | None = None,
        limit: float = MAX_MAGNITUDE,
        per: str = "vertex",
    ) -> np.ndarray:
        """Copy an array of finite vectors (count, 3), with an optional leading batch axis."""
        count = self.model.vertices if count is None else count
        return check_vectors(what, values, count, limit=limit, batch_size=self.batch_size, per=per).copy()

    def states(self, given: State | Sequence[State]) -> list[State]:
        """Check states, one per batch member, and round them to the working precision."""
        expected = "a supple.State" if self.batch_size is None else f"a list of {self.batch_size} states"
        what = f"the state of this stepper must be {expected}, such as stepper.state"
        states = [given] if isinstance(given, State) else list(iterate_argument(given, what))
        if not all(isinstance(state, State) for state in states):
            raise TypeError(f"{what}; got {format_value(given)}")
        if len(states) != (self.batch_size or 1):
            raise ValueError(f"{what}; got {pluralize(len(states), 'state')}")
        return [self.round_state(validate_state(state, self.model)) for state in states]

    def round_state(self, state: State) -> State:
        """Copy a state in working precision."""
        u, v = state.displacements.astype(self.dtype), state.velocities.astype(self.dtype)
        return replace(state, displacements=u, velocities=v)

    def check_members(self, members: Sequence[int]) -> list[int]:
        """Check the indices of selected batch members."""
        chosen = np.asarray(members)
        if self.batch_size is None:
            raise ValueError("this stepper has no batch_size; call reset() without members")
        if (
            chosen.ndim != 1
            or (chosen.size and chosen.dtype.kind not in "iu")
            or not np.all((chosen >= 0) & (chosen < self.batch_size))
        ):
            raise ValueError(
                f"members must be numbers from 0 to {self.batch_size - 1}, got {format_value(members)}"
            )
        return [int(k) for k in chosen]


log = logging.getLogger("supple")


@suggest_keywords
class Stepper:
    """Simulation that an external loop advances step by step:

        sim = supple.Stepper(scene, dt=0.01)
        for _ in range(10):
            frame = sim.step(forces={body: (0, 2, 0)})  # and pins={vertices: positions}
            frame.positions, frame.velocities, frame.report

    Everything is built once, from the scene at the time of construction; a step only solves. A dynamic scene
    takes `substeps` backward Euler steps per step, each with v = (1 - damping) Δx/Δt, or those of another
    integrator, as in `simulate`. A quasistatic scene finds the equilibrium.

    With `members`, each batch member has its own forces, pins and state. Arrays then have a leading batch
    axis; inputs without it apply to all members. On a CUDA device all solvers but Newton advance the whole
    batch at once. On the CPU members are advanced sequentially, with one common set-up.

    Args:
        scene: Scene or scene file, which provides the defaults of time stepping.
        dt: Time from step to step [s].
        solver: Solver or its name, as in `equilibrium`.
        substeps: Time steps per step.
        damping: Fraction of every velocity that is removed per substep, from 0 to below 1.
        quasistatic: Compute one equilibrium per step, without inertia.
        integrator: "backward_euler", "bdf2" or "trapezoidal".
        initial_guess: Initial guess of a step: "adaptive", "inertial" or "coast".
        batch_size: Batch size; None for a single state without batch axis.
        springs: Capacity for springs of `set_springs`.
        **options: `stop` and `backend`, or their fields one by one, as in `simulate`.

    Attributes:
        scene: Scene.
        batch_size: Batch size, or None.
        model: Model of the scene.

    Raises:
        ValueError: The scene or an argument is invalid.
        TypeError: An argument has the wrong type.
    """

    @takes_options
    def __init__(
        self,
        scene: Scene | SceneFile,
        dt: float | None = None,
        *,
        solver: Solver | str | None = None,
        substeps: int | None = None,
        damping: float | None = None,
        quasistatic: bool | None = None,
        integrator: str | None = None,
        initial_guess: str | None = None,
        batch_size: int | None = None,
        springs: int = 0,
        **options: Unpack[Options],
    ) -> None:
        began = perf_counter()
        request = resolve_request(scene, solver, options)
        scene, solver, stop, backend = scene_of(scene), request.solver, request.stop, request.backend
        schedule = make_schedule(scene, solver, dt, substeps, damping, quasistatic, integrator, initial_guess)
        if batch_size is not None:
            batch_size = check_integer("batch_size", batch_size, at_most=MAX_BATCH_SIZE)
        self.scene, self.batch_size, self._request = scene, batch_size, request
        self._gravity = tuple(np.ravel(scene.gravity).tolist())
        self.model = build_model(scene, schedule.quasistatic)
        self._springs = check_integer("springs", springs, at_least=0) > 0
        if self._springs:
            self.model = add_spring_capacity(self.model, springs)
        batched = is_batched(self.model, solver, backend)
        if batch_size is not None and batched:
            problem = make_batch_problem(self.model, backend.precision, batch_size, solver)
        else:
            problem = make_problem(self.model, schedule.quasistatic, backend)
        if schedule.quasistatic and not (batch_size is not None and batched):
            stop = add_position_tolerance(stop, options, request.file)
        self._time_loop = make_time_loop(problem, solver, stop, schedule, began=began)
        batch_class = BatchedStates if batch_size is None or batched else SequentialStates
        self._batch: BatchedStates | SequentialStates = batch_class(self._time_loop)
        self._inputs = StepInputs(scene, self.model, batch_size, problem.dtype)
        self._failed: dict[int, Report] = {}
        self.reset()

    def __repr__(self) -> str:
        of = "" if self.batch_size is None else f"{pluralize(self.batch_size, 'batch member')} of "
        return (
            f"<Stepper at {self.time:.6g} s after {pluralize(self.index, 'step')}: "
            f"{of}{self.model.vertices:,} vertices, {self._request.solver.name}>"
        )

    @property
    def dt(self) -> float:
        """Time from step to step [s]."""
        return self._time_loop.schedule.dt

    @property
    def time(self) -> float:
        """Time since the last reset [s]."""
        return self._time_loop.time

    @property
    def index(self) -> int:
        """Number of steps since the last reset."""
        return self._time_loop.index

    @property
    def pinned(self) -> np.ndarray:
        """(k,) ids of the pinned vertices, in the order of positions in `pins`.

        Vertices constrained along some directions are included; of their positions, only the components along
        these directions are used.
        """
        return self.model.pinned

    @property
    def positions(self) -> np.ndarray:
        """(n, 3) or (batch_size, n, 3) positions [m]."""
        return self._without_batch_axis(self._batch.positions)

    def _without_batch_axis(self, batch: Any) -> Any:
        """Remove the batch axis if the stepper has none."""
        return batch[0] if self.batch_size is None else batch

    @property
    def velocities(self) -> np.ndarray:
        """(n, 3) or (batch_size, n, 3) velocities [m/s]."""
        return self._without_batch_axis(self._batch.velocities)

    def positions_as(self, like: str) -> Any:
        """Return the positions in the array type of another library.

        If the stepper runs on a device, the array is in device memory.

        Args:
            like: "torch" or "cupy".

        Returns:
            (n, 3) or (batch_size, n, 3) positions [m].

        Raises:
            ValueError: The library is unknown or not installed.
        """
        from supple.api.array_interop import convert_positions

        device_displacements = self._batch.on_device()
        host_positions = self.positions if device_displacements is None else None
        return convert_positions(like, host_positions, self.model.rest, device_displacements, self.batch_size)

    @property
    def state(self) -> Any:
        """Snapshot from which the next step continues; a list of them for a batch.

        Setting it restores the snapshot, and the following steps are then bitwise the same. The time is not
        part of the state.
        """
        return self._without_batch_axis(self._batch.get_states())

    @state.setter
    def state(self, state: State | Sequence[State]) -> None:
        self._batch.set_states(self._inputs.states(state))
        self._failed.clear()

    def reset(
        self,
        positions: ArrayLike | None = None,
        velocities: ArrayLike | None = None,
        members: Sequence[int] | None = None,
    ) -> None:
        """Reset to time 0, or reset some batch members only.

        Members reset by `members` keep the current time: their pins are placed at the scene's prescribed
        positions at `time`, and the next step continues from there.

        Args:
            positions: (n, 3) or (batch_size, n, 3) positions [m]; by default the initial positions of the
                scene, with the pins at their start.
            velocities: (n, 3) or (batch_size, n, 3) velocities [m/s]; by default those of the scene. A scene
                file's initial positions come with their own velocities.
            members: Indices of the batch members to reset, all by default.

        Raises:
            ValueError: An array or index is invalid.
        """
        x, v = self._initial
        if members is not None:
            x = x.copy()
            self.model.apply_dirichlet(x, self.model.prescribed(self.time))
        if positions is not None:
            x = self._inputs.rows("positions [m]", positions, limit=MAX_LENGTH)
            v = np.zeros_like(self.model.rest) if self.model.velocities is None else self.model.velocities
        if velocities is not None:
            v = self._inputs.rows("velocities [m/s]", velocities)
        u = x - self.model.rest
        initial_states = [
            self._inputs.round_state(State(*select_member(k, u, v))) for k in range(self.batch_size or 1)
        ]
        if members is None:
            self._time_loop.index = 0
            self._batch.set_states(initial_states)
            self._failed.clear()
            return
        chosen = self._inputs.check_members(members)
        if not chosen:
            return
        states = self.state
        for k in chosen:
            states[k] = initial_states[k]
            self._failed.pop(k, None)
        self._batch.set_states(states)

    def step(self, forces: Forces | None = None, pins: Pins | None = None) -> Any:
        """Advance by dt and return the frame.

        Args:
            forces: Forces [N] in this step, in addition to the scene's: (n, 3), or a dictionary of vertices
                or bodies with a total (3,) or one force per vertex (k, 3).
            pins: Positions [m] of the pinned vertices at the end of this step, reached at constant velocity:
                (k, 3) in the order of `pinned`, or a dictionary of pinned vertices with positions or a
                motion. By default the scene's prescribed motion.

        Returns:
            The `Frame`, or `BatchFrame` for a batch.

        Raises:
            ValueError: Forces or pins are invalid, or the previous step was interrupted.
            RuntimeError: The previous step failed.
        """
        reports = self._advance(forces, pins)
        if self.batch_size is None:
            return make_frame(self._time_loop, reports[0])
        return BatchFrame(
            self.positions, self.velocities, reports, self.model, self.index, self.time, self.state,
            self._batch.last_steps(), self._batch.models,
        )  # fmt: skip

    def advance(self, forces: Forces | None = None, pins: Pins | None = None) -> Report | list[Report]:
        """Advance by dt like `step`, without reading anything back from the device.

        Positions stay in device memory until they are accessed. Velocities are rounded to the precision of
        the solve when they are read, which `step` does after every frame. Results of the two methods
        therefore differ by that rounding.

        Args:
            forces, pins: As in `step`.

        Returns:
            The report, or a list of reports for a batch.

        Raises:
            ValueError: Forces or pins are invalid, or the previous step was interrupted.
            RuntimeError: The previous step failed.
        """
        reports = self._advance(forces, pins)
        return reports[0] if self.batch_size is None else reports

    def set_springs(
        self, pairs: ArrayLike, stiffness: ArrayLike | None = None, rest_length: ArrayLike | None = None
    ) -> None:
        """Replace all dynamic springs by these, with energy ½ k (l - L)² [J]:

            sim = supple.Stepper(scene, dt=0.01, springs=100)
            sim.set_springs([(3, 17), (4, 18)], stiffness=50.0, rest_length=0.1)
            sim.step()
            sim.set_springs([])

        Nothing is rebuilt, as long as their number does not exceed the capacity `springs` of the stepper.
        Springs are common to all batch members, and not part of the state.

        Args:
            pairs: (m, 2) ids of the end vertices.
            stiffness: Stiffness k [N/m], one number or (m,).
            rest_length: Rest length L [m], one number or (m,); by default the current lengths.

        Raises:
            ValueError: The stepper has no capacity for springs, an argument is invalid, or a batch has no
                rest length.
        """
        if not self._springs:
            raise ValueError(
                "this stepper has no capacity for springs: create it with Stepper(..., springs=100)"
            )
        if rest_length is None and self.batch_size is not None:
            raise ValueError(
                "with batch_size, springs need an explicit rest_length, because the batch members differ"
            )
        current = self.model.rest if self.batch_size is not None else self.positions
        term = make_springs(self.model, pairs, stiffness, rest_length, current)
        check_float_range(replace(self.model, terms=(term,)), str(self._problem.dtype))
        self._problem.refresh(len(self.model.terms) - 1, term)
        self.model = self._problem.model

    def _advance(self, forces: Forces | None, pins: Pins | None) -> list[Report]:
        """Advance by one step and return the reports; failed batch members must be reset first."""
        if self._failed:
            which = (
                ""
                if self.batch_size is None
                else f" of batch members {', '.join(map(str, sorted(self._failed)))}"
            )
            again = "reset()" if self.batch_size is None else f"reset(members={sorted(self._failed)})"
            raise RuntimeError(
                f"The last step{which} failed: the forces became infinite or NaN. Call {again}, or "
                "assign an earlier state; smaller steps or forces may help."
            )
        self._warn_changed_gravity()
        external = self._inputs.forces(forces)
        targets = self._inputs.pins(pins, (self.index + 1) * self.dt)
        reports = self._batch.advance(external, targets)
        self._failed = {k: r for k, r in enumerate(reports) if r.outcome is Outcome.FAILED}
        return reports

    def _warn_changed_gravity(self) -> None:
        """Warn once about a gravity change since construction, which has no effect."""
        now = tuple(np.ravel(self.scene.gravity).tolist())
        if now != self._gravity:
            log.warning(
                "scene.gravity is %s now and was %s when this Stepper was created; the change has "
                "no effect. Create a new Stepper, change the magnitude with gravity_ramp, or pass "
                "forces to step()",
                now,
                self._gravity,
            )
            self._gravity = now

    @property
    def _problem(self) -> Problem:
        return self._time_loop.problem

    @cached_property
    def _initial(self) -> tuple[np.ndarray, np.ndarray]:
        """Initial positions and velocities (n, 3) of the scene, or of its file."""
        x, v = self._request.initial(None, self.model), self._request.velocities(None, self.model)
        x = self.model.rest.copy() if x is None else x.copy()
        self.model.apply_dirichlet(x, self.model.prescribed(0.0))
        return x, np.zeros_like(x) if v is None else v
