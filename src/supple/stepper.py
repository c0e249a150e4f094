"""`Stepper`: interactive simulation, advanced step by step by an external loop."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from supple.asking import Options, arriving, request, takes_options
from supple.checks import LONGEST, whole_number
from supple.copies import MOST_COPIES, Frames, OneByOne, Together, of_copy, problem_of_copies
from supple.driving import Driving, Forces, Pins
from supple.equilibria import move_together
from supple.grid_stepping import stepping_of
from supple.magnitudes import refuse_beyond
from supple.pace import make_pace
from supple.problem import Problem
from supple.report import Outcome, Report
from supple.scene import Scene, SceneFile, build_model
from supple.scene.scene import scene_of
from supple.simulate import frame_of
from supple.solvers import Solver
from supple.solving import make_problem
from supple.springs import springs_between, with_room_for_springs
from supple.state import State
from supple.words import counted

log = logging.getLogger("supple")


class Stepper:
    """Simulation that an external loop advances step by step:

        sim = supple.Stepper(scene, dt=0.01)
        for _ in range(10):
            frame = sim.step(forces={body: (0, 2, 0)})  # and pins={vertices: positions}
            frame.positions, frame.velocities, frame.report

    Everything is built once, from the scene at the time of construction; a step only solves. A dynamic scene
    takes `substeps` backward Euler steps per step, each with v = (1 - damping) Δx/Δt, or those of another
    integrator, as in `simulate`. A quasistatic scene finds the equilibrium.

    With `copies`, each batch member has its own forces, pins and state. Arrays then have a leading batch
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
        copies: Batch size; None for a single state without batch axis.
        springs: Capacity for springs of `set_springs`.
        **options: `stop` and `compute`, or their fields one by one, as in `simulate`.

    Attributes:
        scene: Scene.
        copies: Batch size, or None.
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
        solver: Solver | str | None = None,
        *,
        substeps: int | None = None,
        damping: float | None = None,
        quasistatic: bool | None = None,
        integrator: str | None = None,
        initial_guess: str | None = None,
        copies: int | None = None,
        springs: int = 0,
        **options: Unpack[Options],
    ) -> None:
        began = perf_counter()
        asked = request(scene, solver, options)
        scene, solver, stop, compute = scene_of(scene), asked.solver, asked.stop, asked.compute
        pace = make_pace(scene, solver, dt, substeps, damping, quasistatic, integrator, initial_guess)
        if copies is not None:
            copies = whole_number("copies", copies, at_most=MOST_COPIES)
        self.scene, self.copies, self._asked = scene, copies, asked
        self._gravity = tuple(np.ravel(scene.gravity).tolist())
        self.model = build_model(scene, pace.quasistatic)
        self._springs = whole_number("springs", springs, at_least=0) > 0
        if self._springs:
            self.model = with_room_for_springs(self.model, springs)
        at_once = move_together(self.model, solver, compute)
        if copies is not None and at_once:
            problem = problem_of_copies(self.model, compute.precision, copies, solver)
        else:
            problem = make_problem(self.model, pace.quasistatic, compute)
        if pace.quasistatic and not (copies is not None and at_once):
            stop = arriving(stop, options, asked.file)
        self._stepping = stepping_of(problem, solver, stop, pace, began=began)
        kind = Together if copies is None or at_once else OneByOne
        self._copies: Together | OneByOne = kind(self._stepping)
        self._driving = Driving(scene, self.model, copies, problem.dtype)
        self._failed: dict[int, Report] = {}
        self.reset()

    def __repr__(self) -> str:
        of = "" if self.copies is None else f"{counted(self.copies, 'copy', 'copies')} of "
        return (
            f"<Stepper at {self.time:.6g} s after {counted(self.index, 'step')}: "
            f"{of}{self.model.vertices:,} vertices, {self._asked.solver.name}>"
        )

    @property
    def dt(self) -> float:
        """Time from step to step [s]."""
        return self._stepping.pace.dt

    @property
    def time(self) -> float:
        """Time since the last reset [s]."""
        return self._stepping.time

    @property
    def index(self) -> int:
        """Number of steps since the last reset."""
        return self._stepping.index

    @property
    def pinned(self) -> np.ndarray:
        """(k,) ids of the pinned vertices, in the order of positions in `pins`.

        Vertices constrained along some directions are included; of their positions, only the components along
        these directions are used.
        """
        return self.model.pinned

    @property
    def positions(self) -> np.ndarray:
        """(n, 3) or (copies, n, 3) positions [m]."""
        return self._all_or_one(self._copies.positions)

    def _all_or_one(self, of_copies: Any) -> Any:
        """Remove the batch axis if the stepper has none."""
        return of_copies[0] if self.copies is None else of_copies

    @property
    def velocities(self) -> np.ndarray:
        """(n, 3) or (copies, n, 3) velocities [m/s]."""
        return self._all_or_one(self._copies.velocities)

    def positions_like(self, like: str) -> Any:
        """Return the positions in the array type of another library.

        If the stepper runs on a device, the array is in device memory.

        Args:
            like: "torch" or "cupy".

        Returns:
            (n, 3) or (copies, n, 3) positions [m].

        Raises:
            ValueError: The library is unknown or not installed.
        """
        from supple.interop import array_of

        there = self._copies.on_device()
        here = self.positions if there is None else None
        return array_of(like, here, self.model.rest, there, self.copies)

    @property
    def state(self) -> Any:
        """Snapshot from which the next step continues; a list of them for a batch.

        Setting it restores the snapshot, and the following steps are then bitwise the same. The time is not
        part of the state.
        """
        return self._all_or_one(self._copies.take())

    @state.setter
    def state(self, state: State | Sequence[State]) -> None:
        self._copies.put(self._driving.states(state))
        self._failed.clear()

    def reset(
        self,
        positions: ArrayLike | None = None,
        velocities: ArrayLike | None = None,
        copies: Sequence[int] | None = None,
    ) -> None:
        """Reset to time 0, or reset some batch members only.

        Members reset by `copies` keep the current time: their pins are placed at the scene's prescribed
        positions at `time`, and the next step continues from there.

        Args:
            positions: (n, 3) or (copies, n, 3) positions [m]; by default the initial positions of the scene,
                with the pins at their start.
            velocities: (n, 3) or (copies, n, 3) velocities [m/s]; by default those of the scene. A scene
                file's initial positions come with their own velocities.
            copies: Indices of the batch members to reset, all by default.

        Raises:
            ValueError: An array or index is invalid.
        """
        x, v = self._start
        if copies is not None:
            x = x.copy()
            self.model.hold(x, self.model.prescribed(self.time))
        if positions is not None:
            x = self._driving.rows("positions [m]", positions, limit=LONGEST)
            v = np.zeros_like(self.model.rest) if self.model.velocities is None else self.model.velocities
        if velocities is not None:
            v = self._driving.rows("velocities [m/s]", velocities)
        u = x - self.model.rest
        begun = [self._driving.rounded(State(*of_copy(k, u, v))) for k in range(self.copies or 1)]
        if copies is None:
            self._stepping.index = 0
            self._copies.put(begun)
            self._failed.clear()
            return
        chosen = self._driving.chosen(copies)
        if not chosen:
            return
        states = self.state
        for k in chosen:
            states[k] = begun[k]
            self._failed.pop(k, None)
        self._copies.put(states)

    def step(self, forces: Forces | None = None, pins: Pins | None = None) -> Any:
        """Advance by dt and return the frame.

        Args:
            forces: Forces [N] in this step, in addition to the scene's: (n, 3), or a dictionary of vertices
                or bodies with a total (3,) or one force per vertex (k, 3).
            pins: Positions [m] of the pinned vertices at the end of this step, reached at constant velocity:
                (k, 3) in the order of `pinned`, or a dictionary of pinned vertices with positions or a
                motion. By default the scene's prescribed motion.

        Returns:
            The `Frame`, or `Frames` for a batch.

        Raises:
            ValueError: Forces or pins are invalid, or the previous step was interrupted.
            RuntimeError: The previous step failed.
        """
        reports = self._advance(forces, pins)
        if self.copies is None:
            return frame_of(self._stepping, reports[0])
        return Frames(
            self.positions, self.velocities, reports, self.model, self.index, self.time, self.state,
            self._copies.last_steps(), self._copies.models,
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
        return reports[0] if self.copies is None else reports

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
            raise ValueError("this stepper has no room for springs: make it with Stepper(..., springs=100)")
        if rest_length is None and self.copies is not None:
            raise ValueError("the copies are not alike: give the springs a rest_length")
        now = self.model.rest if self.copies is not None else self.positions
        term = springs_between(self.model, pairs, stiffness, rest_length, now)
        refuse_beyond(replace(self.model, terms=(term,)), str(self._problem.dtype))
        self._problem.refresh(len(self.model.terms) - 1, term)
        self.model = self._problem.model

    def _advance(self, forces: Forces | None, pins: Pins | None) -> list[Report]:
        """Advance by one step and return the reports; failed batch members must be reset first."""
        if self._failed:
            which = "" if self.copies is None else f" of copies {', '.join(map(str, sorted(self._failed)))}"
            again = "reset()" if self.copies is None else f"reset(copies={sorted(self._failed)})"
            raise RuntimeError(
                f"The last step{which} failed: the forces became infinite or NaN. Start again with {again}, "
                "or go back by setting the state to an earlier one; smaller steps or forces may help."
            )
        self._say_changed_gravity()
        acting = self._driving.forces(forces)
        arriving = self._driving.pins(pins, (self.index + 1) * self.dt)
        reports = self._copies.advance(acting, arriving)
        self._failed = {k: r for k, r in enumerate(reports) if r.outcome is Outcome.FAILED}
        return reports

    def _say_changed_gravity(self) -> None:
        """Warn once about a gravity change since construction, which has no effect."""
        now = tuple(np.ravel(self.scene.gravity).tolist())
        if now != self._gravity:
            log.warning(
                "scene.gravity is %s now and was %s when this Stepper was made, which goes on with that: "
                "make a new Stepper, let gravity_ramp change its size, or pass forces to step()",
                now,
                self._gravity,
            )
            self._gravity = now

    @property
    def _problem(self) -> Problem:
        return self._stepping.problem

    @cached_property
    def _start(self) -> tuple[np.ndarray, np.ndarray]:
        """Initial positions and velocities (n, 3) of the scene, or of its file."""
        x, v = self._asked.start(None, self.model), self._asked.velocities(None, self.model)
        x = self.model.rest.copy() if x is None else x.copy()
        self.model.hold(x, self.model.prescribed(0.0))
        return x, np.zeros_like(x) if v is None else v
