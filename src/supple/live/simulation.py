"""A scene that is solved update by update while settings, pins and grabs change. Knows no threads."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from supple.live.carrying import Carried
from supple.live.moments import LOST, Moment, is_sound, spread
from supple.live.pins import Grab, Pins, Placement
from supple.live.settings import Settings, file_settings, steps_of, sweeps_to_balance
from supple.live.track import AbandonedError, DivergedError, Track
from supple.live.wind import Winds
from supple.model import Model
from supple.scene import Scene, SceneError, SceneFile, build_model
from supple.scene.contact import contact_of

ADVICE = "try another solver, acceleration or time step, more sweeps, or reset."


class Simulation:
    """The state of a live scene: time [s], settings, what is held, and a track for each solver.

    Changes are cheap; `prepare` brings model and tracks in line with them before the next update.
    """

    def __init__(self, file: SceneFile, settings: Settings | None = None) -> None:
        self.file = file
        if contact_of(file.scene.contact).method == "grid":
            raise SceneError(
                'contact="grid" is for supple run and simulate: the live page moves vertices and no grid, so '
                'that bodies would pass each other; take "weak" or "barrier" to see it there.'
            )
        self.winds = Winds(file.scene)
        self.settings = self._sound = self.winds.known(settings or file_settings(file))
        self.pins = Pins(file.scene)
        self.carried = Carried(file.scene)
        self._dragged: dict[Any, Grab] = {}
        self._bare, self._built = build_model(file.scene), file_settings(file).physics
        self.model = self._held_model()
        self._start, self._start_velocities = _start(file, self._bare, self.pins)
        self.tracks: list[Track] = []
        self._arrange_tracks()
        self.reset()

    def reset(self) -> None:
        """Back to the start of the scene, with the present settings."""
        self.pins.reset()
        self.carried.reset()
        self._dragged.clear()
        self.time, self.updates = 0.0, 0
        for track in self.tracks:
            track.begin_at(self._start, self._start_velocities)
        self._good = Moment(0.0, 0, ((self._start, None),))
        self._last_targets, self._last_loads = np.empty((0, 3)), self._bare.varied_at(0.0)
        self._last_poses = np.empty((0, 12))
        self.stale = True

    def change(self, settings: Settings) -> None:
        settings = self.winds.known(settings)
        parts = ("physics", "solvers", "precision", "device")
        self.stale |= any(getattr(settings, part) != getattr(self.settings, part) for part in parts)
        self.settings = settings
        if not self.stale:
            self._sound = settings

    def place(self, pin: int, placement: Placement) -> None:
        """Move, turn and stretch a pin set by hand."""
        self.pins.sets[pin].place(placement, self.time)

    def carry(self, obstacle: int, offset: np.ndarray) -> None:
        """Shift an obstacle by hand, by so much (3,) [m] from where its motion has it."""
        self.carried.offsets[obstacle] = offset

    def grab(self, vertex: int, radius: float, hand: Any) -> None:
        """Hold a vertex, and all within a radius [m] of it at rest. A hand holds one part at a time."""
        self.release(hand, keep=False)
        rest = self.model.rest
        near = np.flatnonzero(np.linalg.norm(rest - rest[vertex], axis=1) <= radius)
        self._dragged[hand] = self.pins.grab(np.union1d(near, [vertex]), self.tracks[0].positions)
        self.stale = True

    def drag(self, offset: np.ndarray, hand: Any) -> None:
        """Move what a hand has grabbed to so far (3,) [m] from where it was."""
        if hand in self._dragged:
            self._dragged[hand].offset = np.array(offset, float)

    def release(self, hand: Any, keep: bool) -> None:
        """Let go of what a hand has grabbed; keep: it stays pinned where it is."""
        grab = self._dragged.pop(hand, None)
        if grab is not None and not keep:
            self._let_go([grab])

    def release_all(self) -> None:
        self._dragged.clear()
        self._let_go(list(self.pins.grabs))

    def _let_go(self, grabs: list[Grab]) -> None:
        self.pins.release(grabs)
        self.stale = True

    def prepare(self) -> None:
        """Build what the changes need. Settings that cannot be used are undone, and the reason is raised."""
        self.stale = False
        try:
            now = self.settings
            if now.physics != self._built:
                self._bare, self._built = build_model(self._scene(), now.quasistatic), now.physics
            self.model = self._held_model()
            self._arrange_tracks()
            for track in self.tracks:
                track.work_on(self.model, now.compute, self.time)
                if not now.quasistatic:
                    track.move_by(*steps_of(now, track.solver, self.file))
        except ValueError:
            self.stale = self.settings is not self._sound
            self.settings = self._sound
            raise
        self._sound = self.settings

    def update(
        self, interrupted: Callable[[], bool] = lambda: False, abandoned: Callable[[], bool] = lambda: False
    ) -> bool:
        """Go on by dt. A motion goes on by one step, solved as `supple run` solves it; equilibria are
        approached by some sweeps.

        Args:
            interrupted: True ends the sweeps of a slow solver towards an equilibrium early.
            abandoned: True gives up a step of a motion, which then has not happened.

        Returns:
            False where the step was given up.

        Raises:
            DivergedError: A solver diverged; all have gone back to the last good moment.
        """
        time, before = self.time + self.settings.dt, [track.positions for track in self.tracks]
        targets = self.pins.prescribed(time)
        loads = self.model.varied_at(time)
        poses = self.carried.poses(time)
        moved = (
            loads != self._last_loads
            or not np.array_equal(targets, self._last_targets)
            or not np.array_equal(poses, self._last_poses)
        )
        kept = [track.keep() for track in self.tracks]
        try:
            for track in self.tracks:
                self._advance(track, time, targets, moved, interrupted, abandoned)
        except AbandonedError:
            for track, there in zip(self.tracks, kept, strict=True):
                track.undo(there, self.time)
            return False
        except DivergedError as error:
            self._go_back()
            where = f"Went back to the last good state, at t = {self.time:.3g} s"
            raise DivergedError(f"{error} {where}; {ADVICE}") from None
        self.time, self._last_targets, self._last_loads = time, targets, loads
        self._last_poses = poses
        self.updates += 1
        for track in self.tracks:
            assert track.balance is not None
            track.history.append((self.updates, track.balance.imbalance))
        after = [track.positions for track in self.tracks]
        if all(is_sound(self.model, a, b, targets) for a, b in zip(before, after, strict=True)):
            states = tuple((track.positions, track.bodies) for track in self.tracks)
            self._good = Moment(self.time, self.updates, states)
        return True

    def _advance(
        self,
        track: Track,
        time: float,
        targets: np.ndarray,
        moved: bool,
        interrupted: Callable[[], bool],
        abandoned: Callable[[], bool],
    ) -> None:
        """One solver's part of an update to a time [s]."""
        s, scene = self.settings, self.file.scene
        if s.quasistatic:
            track.relax(time, moved, sweeps_to_balance(s, track.solver, scene), interrupted)
        else:
            forces = self.winds.forces(s.winds, track.positions, track.velocities, time)
            track.advance(self.time, *steps_of(s, track.solver, self.file), forces, abandoned)
        times = spread(self.model, track.positions, targets)
        if times > LOST:
            raise DivergedError(
                f"{track.solver.name} diverged: a body grew to {times:.0f} times the size of the scene."
            )

    def _go_back(self) -> None:
        """To the last good moment, at rest. What hands hold stays held."""
        good, s = self._good, self.settings
        self.time, self.updates, self._last_targets = good.time, good.updates, np.empty((0, 3))
        for i, track in enumerate(self.tracks):
            track.go_back_to(*good.states[min(i, len(good.states) - 1)], good.updates)
            track.work_on(self.model, s.compute, self.time)

    def rest(self) -> bool:
        """Let time pass where nothing moves and all forces balance; False where there is something to do."""
        time = self.time + self.settings.dt
        if not self.settings.quasistatic or not all(self._balanced(track) for track in self.tracks):
            return False
        if not np.array_equal(self.pins.prescribed(time), self._last_targets):
            return False
        if self.model.varied_at(time) != self._last_loads:
            return False
        if not np.array_equal(self.carried.poses(time), self._last_poses):
            return False
        self.time = time
        return True

    def _balanced(self, track: Track) -> bool:
        return track.balance is not None and track.balance.imbalance <= self.settings.tolerance

    def follow_pins(self) -> None:
        """Show the pinned vertices where they are, without solving. A motion whose pins are where its last
        step has put them is left as it is."""
        if not self.settings.quasistatic and np.array_equal(
            self.pins.prescribed(self.time), self._last_targets
        ):
            return
        for track in self.tracks:
            track.follow_pins(self.time)

    def _scene(self) -> Scene:
        """The file's scene with the present materials."""
        scene = copy(self.file.scene)
        scene.bodies = [
            replace(body, material=material)
            for body, material in zip(scene.bodies, self.settings.materials, strict=True)
        ]
        return scene

    def _held_model(self) -> Model:
        pins = self.pins
        obstacles = self.carried.of(self._bare.obstacles)
        held = replace(self._bare, pinned=pins.pinned, prescribed=pins.prescribed, held=pins.directions)
        return held if obstacles is None else replace(held, obstacles=obstacles)

    def _arrange_tracks(self) -> None:
        """One track for each solver; a new one starts where the first is."""
        solvers = self.settings.solvers
        for track, solver in zip(self.tracks, solvers, strict=False):
            track.solver = solver
        for solver in solvers[len(self.tracks) :]:
            first = self.tracks[0] if self.tracks else Track(solver, self._start, self._start_velocities)
            self.tracks.append(Track(solver, first.positions, first.velocities, first.bodies))
        del self.tracks[len(solvers) :]


def _start(file: SceneFile, model: Model, pins: Pins) -> tuple[np.ndarray, np.ndarray]:
    """Positions (n, 3) [m] that the file asks for, with pins where they are at time 0, and velocities (n, 3)
    [m/s]: those of the start file, else those of the scene's bodies."""
    asked, saved = file.start_positions(model), file.start_velocities(model)
    positions = model.rest.copy() if asked is None else asked
    model.hold(positions, pins.prescribed(0.0))
    velocities = model.velocities if saved is None else saved
    return positions, np.zeros_like(positions) if velocities is None else velocities
