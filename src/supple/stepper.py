"""Stepper: a motion that somebody else's loop drives, step by step."""

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
    """A scene that moves on by dt [s] whenever it is told to:

        sim = supple.Stepper(scene, dt=0.01)
        for _ in range(10):
            frame = sim.step(forces={body: (0, 2, 0)})  # and pins={vertices: positions}
            frame.positions, frame.velocities, frame.report

    Everything is built once, from the scene as it is then; a step only solves. A dynamic scene takes
    `substeps` backward Euler steps per step, each with v = (1 - damping) Δx/Δt, or those of another
    integrator, as `simulate` does; a quasistatic one finds the equilibrium. dt, substeps, damping,
    quasistatic, integrator and initial_guess default to the scene's.
    solver, stop and compute, or what these consist of one by one: as for `simulate`.

    copies: how many instances to move together, each with its own forces, pins and state; arrays then have a
    leading axis of that length, or none for what is the same for all. On a CUDA device all solvers but Newton
    move all of them at once; on the CPU they go one by one, with one set-up for all.

    springs: room for that many springs that come and go, see `set_springs`.
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
        """[s] from step to step."""
        return self._stepping.pace.dt

    @property
    def time(self) -> float:
        """[s] since the last reset."""
        return self._stepping.time

    @property
    def index(self) -> int:
        """Steps since the last reset."""
        return self._stepping.index

    @property
    def pinned(self) -> np.ndarray:
        """(k,) numbers of the pinned vertices, in the order in which `pins` has their positions; those that
        are held along some directions are among them, and only these count of their positions."""
        return self.model.pinned

    @property
    def positions(self) -> np.ndarray:
        """(n, 3), or (copies, n, 3) [m]."""
        return self._all_or_one(self._copies.positions)

    def _all_or_one(self, of_copies: Any) -> Any:
        """Without the leading axis where nobody asked for copies."""
        return of_copies[0] if self.copies is None else of_copies

    @property
    def velocities(self) -> np.ndarray:
        """(n, 3), or (copies, n, 3) [m/s]."""
        return self._all_or_one(self._copies.velocities)

    def positions_like(self, like: str) -> Any:
        """The positions as an array of "torch" or "cupy", on the device if the stepper is there."""
        from supple.interop import array_of

        there = self._copies.on_device()
        here = self.positions if there is None else None
        return array_of(like, here, self.model.rest, there, self.copies)

    @property
    def state(self) -> Any:
        """What the next step goes on from, a snapshot; with copies a list of them. Set it to go back: what
        follows is then bitwise what followed before. The clock is not part of it."""
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
        """Back to time 0: positions (n, 3) [m], at rest with the pins at their start unless given, and
        velocities (n, 3) [m/s], the scene's unless given. A scene file's start comes with its own velocities.
        copies: which of them to reset, all unless given. The clock then goes on, and pins are put where the
        scene has them at the present `time`, from where the next step moves them."""
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
        """Go on by dt; returns the `Frame` at which that arrives, or `Frames` of all copies.

        forces [N] act in this step in addition to the scene's: one for each vertex, (n, 3), or a dictionary
        of vertices or bodies with a total (3,) or one for each (k, 3). pins [m]: where the pinned vertices
        arrive at the end of this step, at constant velocity, in the order of `pinned`, (k, 3), or a
        dictionary of pinned vertices with positions or a motion; where the scene moves them unless given.
        """
        reports = self._advance(forces, pins)
        if self.copies is None:
            return frame_of(self._stepping, reports[0])
        return Frames(
            self.positions, self.velocities, reports, self.model, self.index, self.time, self.state,
            self._copies.last_steps(), self._copies.models,
        )  # fmt: skip

    def advance(self, forces: Forces | None = None, pins: Pins | None = None) -> Report | list[Report]:
        """Go on by dt as `step` does, but read nothing back: positions stay on the device until somebody asks
        for them. Velocities, too, are rounded to the solve's precision only when they are read, as `step`
        does at the end of every frame, so that the two differ by that rounding. Returns the report, or those
        of all copies."""
        reports = self._advance(forces, pins)
        return reports[0] if self.copies is None else reports

    def set_springs(
        self, pairs: ArrayLike, stiffness: ArrayLike | None = None, rest_length: ArrayLike | None = None
    ) -> None:
        """From now on these springs are there, ½ k (l - L)² [J], and none of those before:

            sim = supple.Stepper(scene, dt=0.01, springs=100)
            sim.set_springs([(3, 17), (4, 18)], stiffness=50.0, rest_length=0.1)
            sim.step()
            sim.set_springs([])

        pairs (m, 2): numbers of the vertices at their ends; stiffness k [N/m] and rest_length L [m] are
        numbers or one for each, and springs without a rest_length are as long as they are now. Nothing is
        built anew, as long as there are not more of them than what the stepper was made with (`springs`).
        They are the same for all copies, and no part of the state.
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
        """Warn once of a gravity that was set too late: everything was built with the one before."""
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
        """Positions and velocities (n, 3) of the scene, or of its file, at time 0."""
        x, v = self._asked.start(None, self.model), self._asked.velocities(None, self.model)
        x = self.model.rest.copy() if x is None else x.copy()
        self.model.hold(x, self.model.prescribed(0.0))
        return x, np.zeros_like(x) if v is None else v
