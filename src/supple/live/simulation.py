"""Interactive simulation: a scene solved update by update while settings, pins, grabs and obstacles change.

This module does not use threads.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from supple.collision import Obstacles
from supple.live.movable_pins import Grab, Pins, Placement
from supple.live.settings import Settings, file_settings, steps_of, sweeps_to_balance
from supple.live.solver_track import AbandonedError, DivergedError, Track
from supple.live.wind import Winds
from supple.model.model import Model
from supple.scene import Scene, SceneError, SceneFile, build_model
from supple.scene.contact_settings import contact_of
from supple.scene.shapes.obstacle import obstacles_of


class OffsetObstacles:
    """Obstacles of a scene, displaced from their prescribed motions by hand.

    Attributes:
        names: Names of the obstacles.
        offsets: (o, 3) offset of each obstacle [m].
    """

    def __init__(self, scene: Scene) -> None:
        self._own = obstacles_of(scene)
        self.names = () if self._own is None else self._own.names
        self.reset()

    def reset(self) -> None:
        self.offsets = np.zeros((len(self.names), 3))

    def poses(self, time: float) -> np.ndarray:
        """Frames (r, 12) of all shapes at a time [s], including offsets."""
        if self._own is None:
            return np.empty((0, 12))
        frames = self._own.poses(time).copy()
        frames[:, 9:] += self.offsets[self._own.obstacle]
        return frames

    def of(self, obstacles: Obstacles | None) -> Obstacles | None:
        """Copy of obstacles with displaced poses."""
        return None if obstacles is None else replace(obstacles, poses=self.poses)


DIVERGENCE_ADVICE = "try another solver, acceleration or time step, more sweeps, or reset."


class Simulation:
    """State of a live scene.

    Changes of settings are cheap; `prepare` applies them to model and tracks before the next update.

    Attributes:
        time: Time [s].
        updates: Number of updates.
        settings: Current settings.
        pins: Dirichlet conditions.
        offset_obstacles: Obstacles with their offsets.
        tracks: One track per solver.
        model: Current model.
        needs_preparation: True if `prepare` is required.
    """

    def __init__(self, file: SceneFile, settings: Settings | None = None) -> None:
        self.file = file
        if contact_of(file.scene.contact).method == "grid":
            raise SceneError(
                'the live page does not support contact="grid"; use "weak" or "barrier", or `supple run`.'
            )
        self.winds = Winds(file.scene)
        self.settings = self._valid_settings = self.winds.with_winds(settings or file_settings(file))
        self.pins = Pins(file.scene)
        self.offset_obstacles = OffsetObstacles(file.scene)
        self._dragged: dict[Any, Grab] = {}
        self._bare, self._built = build_model(file.scene), file_settings(file).physics
        self.model = self._constrained_model()
        self._start, self._start_velocities = _start(file, self._bare, self.pins)
        self.tracks: list[Track] = []
        self._arrange_tracks()
        self.reset()

    def reset(self) -> None:
        """Return to the initial scene state with current settings."""
        self.pins.reset()
        self.offset_obstacles.reset()
        self._dragged.clear()
        self.time, self.updates = 0.0, 0
        for track in self.tracks:
            track.reset(self._start, self._start_velocities)
        self._checkpoint = Checkpoint(0.0, 0, ((self._start, None),))
        self._last_targets, self._last_loads = np.empty((0, 3)), self._bare.load_factors_at(0.0)
        self._last_poses = np.empty((0, 12))
        self.needs_preparation = True

    def change(self, settings: Settings) -> None:
        settings = self.winds.with_winds(settings)
        parts = ("physics", "solvers", "precision", "device")
        self.needs_preparation |= any(
            getattr(settings, part) != getattr(self.settings, part) for part in parts
        )
        self.settings = settings
        if not self.needs_preparation:
            self._valid_settings = settings

    def place(self, pin: int, placement: Placement) -> None:
        """Place a pin set by hand."""
        self.pins.sets[pin].place(placement, self.time)

    def carry(self, obstacle: int, offset: np.ndarray) -> None:
        """Set the offset (3,) [m] of an obstacle from its prescribed motion."""
        self.offset_obstacles.offsets[obstacle] = offset

    def grab(self, vertex: int, radius: float, hand: Any) -> None:
        """Grab a vertex and all vertices within a radius [m] at rest. Each hand holds one part at a time."""
        self.release(hand, keep=False)
        rest = self.model.rest
        near = np.flatnonzero(np.linalg.norm(rest - rest[vertex], axis=1) <= radius)
        self._dragged[hand] = self.pins.grab(np.union1d(near, [vertex]), self.tracks[0].positions)
        self.needs_preparation = True

    def drag(self, offset: np.ndarray, hand: Any) -> None:
        """Set the drag offset (3,) [m] of a grabbed part."""
        if hand in self._dragged:
            self._dragged[hand].offset = np.array(offset, float)

    def release(self, hand: Any, keep: bool) -> None:
        """Release the grabbed part of a hand; `keep` leaves it pinned at its current position."""
        grab = self._dragged.pop(hand, None)
        if grab is not None and not keep:
            self._release_grabs([grab])

    def release_all(self) -> None:
        self._dragged.clear()
        self._release_grabs(list(self.pins.grabs))

    def _release_grabs(self, grabs: list[Grab]) -> None:
        self.pins.release(grabs)
        self.needs_preparation = True

    def prepare(self) -> None:
        """Apply pending changes to model and tracks. Invalid settings are reverted.

        Raises:
            ValueError: The settings are invalid.
        """
        self.needs_preparation = False
        try:
            now = self.settings
            if now.physics != self._built:
                self._bare, self._built = build_model(self._scene(), now.quasistatic), now.physics
            self.model = self._constrained_model()
            self._arrange_tracks()
            for track in self.tracks:
                track.set_model(self.model, now.backend, self.time)
                if not now.quasistatic:
                    track.prepare_steps(*steps_of(now, track.solver, self.file))
        except ValueError:
            self.needs_preparation = self.settings is not self._valid_settings
            self.settings = self._valid_settings
            raise
        self._valid_settings = self.settings

    def update(
        self,
        interrupted: Callable[[], bool] = lambda: False,
        is_abandoned: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Advance by one time step.

        A motion advances by one step, solved as in `supple run`; a quasistatic scene by a number of sweeps.

        Args:
            interrupted: Returns True to end the sweeps of a slow quasistatic solver early.
            is_abandoned: Returns True to abandon a step of a motion, which leaves the state unchanged.

        Returns:
            False if the step was abandoned.

        Raises:
            DivergedError: A solver diverged; all have returned to the last valid state.
        """
        time, before = self.time + self.settings.dt, [track.positions for track in self.tracks]
        targets = self.pins.prescribed(time)
        loads = self.model.load_factors_at(time)
        poses = self.offset_obstacles.poses(time)
        moved = (
            loads != self._last_loads
            or not np.array_equal(targets, self._last_targets)
            or not np.array_equal(poses, self._last_poses)
        )
        saved_states = [track.save_state() for track in self.tracks]
        try:
            for track in self.tracks:
                self._advance(track, time, targets, moved, interrupted, is_abandoned)
        except AbandonedError:
            for track, state in zip(self.tracks, saved_states, strict=True):
                track.restore_state(state, self.time)
            return False
        except DivergedError as error:
            self._roll_back()
            where = f"Returned to the last finite state, at t = {self.time:.3g} s"
            raise DivergedError(f"{error} {where}; {DIVERGENCE_ADVICE}") from None
        self.time, self._last_targets, self._last_loads = time, targets, loads
        self._last_poses = poses
        self.updates += 1
        for track in self.tracks:
            assert track.balance is not None
            track.history.append((self.updates, track.balance.relative_residual))
        after = [track.positions for track in self.tracks]
        if all(is_valid_state(self.model, a, b, targets) for a, b in zip(before, after, strict=True)):
            states = tuple((track.positions, track.bodies) for track in self.tracks)
            self._checkpoint = Checkpoint(self.time, self.updates, states)
        return True

    def _advance(
        self,
        track: Track,
        time: float,
        targets: np.ndarray,
        moved: bool,
        interrupted: Callable[[], bool],
        is_abandoned: Callable[[], bool],
    ) -> None:
        """Advance one solver to a time [s]."""
        s, scene = self.settings, self.file.scene
        if s.quasistatic:
            track.sweep_to_equilibrium(time, moved, sweeps_to_balance(s, track.solver, scene), interrupted)
        else:
            forces = self.winds.forces(s.winds, track.positions, track.velocities, time)
            track.advance(self.time, *steps_of(s, track.solver, self.file), forces, is_abandoned)
        times = extent_ratio(self.model, track.positions, targets)
        if times > DIVERGENCE_RATIO:
            raise DivergedError(
                f"{track.solver.name} diverged: a body grew to {times:.0f} times the size of the scene."
            )

    def _roll_back(self) -> None:
        """Return to the last valid state at zero velocity; grabbed vertices stay constrained."""
        checkpoint, s = self._checkpoint, self.settings
        self.time, self.updates, self._last_targets = checkpoint.time, checkpoint.updates, np.empty((0, 3))
        for i, track in enumerate(self.tracks):
            track.roll_back_to(*checkpoint.states[min(i, len(checkpoint.states) - 1)], checkpoint.updates)
            track.set_model(self.model, s.backend, self.time)

    def skip_if_at_rest(self) -> bool:
        """Advance time without solving if nothing moves and all forces balance.

        Returns:
            False if there is something to solve.
        """
        time = self.time + self.settings.dt
        if not self.settings.quasistatic or not all(self._is_balanced(track) for track in self.tracks):
            return False
        if not np.array_equal(self.pins.prescribed(time), self._last_targets):
            return False
        if self.model.load_factors_at(time) != self._last_loads:
            return False
        if not np.array_equal(self.offset_obstacles.poses(time), self._last_poses):
            return False
        self.time = time
        return True

    def _is_balanced(self, track: Track) -> bool:
        return track.balance is not None and track.balance.relative_residual <= self.settings.tolerance

    def follow_pins(self) -> None:
        """Move constrained vertices to their targets without solving.

        Skipped for motions whose targets have not changed since the last step.
        """
        if not self.settings.quasistatic and np.array_equal(
            self.pins.prescribed(self.time), self._last_targets
        ):
            return
        for track in self.tracks:
            track.follow_pins(self.time)

    def _scene(self) -> Scene:
        """Copy of the scene with current materials."""
        scene = copy(self.file.scene)
        scene.bodies = [
            replace(body, material=material)
            for body, material in zip(scene.bodies, self.settings.materials, strict=True)
        ]
        return scene

    def _constrained_model(self) -> Model:
        pins = self.pins
        obstacles = self.offset_obstacles.of(self._bare.obstacles)
        model = replace(
            self._bare, pinned=pins.pinned, prescribed=pins.prescribed, constraint_projection=pins.directions
        )
        return model if obstacles is None else replace(model, obstacles=obstacles)

    def _arrange_tracks(self) -> None:
        """Create one track per solver; new tracks copy the first track's state."""
        solvers = self.settings.solvers
        for track, solver in zip(self.tracks, solvers, strict=False):
            track.solver = solver
        for solver in solvers[len(self.tracks) :]:
            first = self.tracks[0] if self.tracks else Track(solver, self._start, self._start_velocities)
            self.tracks.append(Track(solver, first.positions, first.velocities, first.bodies))
        del self.tracks[len(solvers) :]


def _start(file: SceneFile, model: Model, pins: Pins) -> tuple[np.ndarray, np.ndarray]:
    """Initial positions (n, 3) [m] and velocities (n, 3) [m/s].

    Both come from the start file, otherwise from the scene; pins are at their targets at time 0.
    """
    start_positions, start_velocities = file.initial_positions(model), file.initial_velocities(model)
    positions = model.rest.copy() if start_positions is None else start_positions
    model.apply_dirichlet(positions, pins.prescribed(0.0))
    velocities = model.velocities if start_velocities is None else start_velocities
    return positions, np.zeros_like(positions) if velocities is None else velocities


DIVERGENCE_RATIO = 100.0
"""Ratio of body extent to reference size above which a solve has diverged."""

MAX_VALID_RATIO = 10.0
"""Largest ratio of body extent to reference size in a state saved for rollback."""

MAX_RELATIVE_MOTION = 0.2
"""Largest vertex displacement relative to the mean displacement in the update before a saved state, as a
fraction of the scene size."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Saved state of a simulation.

    Attributes:
        time: Time [s].
        updates: Number of updates until then.
        states: For each solver, positions (n, 3) [m] and rigid bodies (k, 18); None for the initial rigid
            bodies.
    """

    time: float
    updates: int
    states: tuple[tuple[np.ndarray, np.ndarray | None], ...]


def extent_ratio(model: Model, positions: np.ndarray, constrained: np.ndarray) -> float:
    """Largest body extent relative to the reference size; translation does not contribute.

    The reference is the extent of the scene at rest or of the constrained points, whichever is larger.

    Args:
        model: The model.
        positions: (n, 3) positions [m].
        constrained: (k, 3) constrained points [m].
    """
    extents = [np.ptp(positions[body.vertices], axis=0).max() for body in model.bodies]
    constrained_extent = np.ptp(constrained, axis=0).max() if len(constrained) else 0.0
    return float(max(extents) / max(size(model), constrained_extent))


def is_valid_state(model: Model, before: np.ndarray, after: np.ndarray, constrained: np.ndarray) -> bool:
    """True if bodies kept a plausible size and moved little in an update.

    Args:
        model: The model.
        before: (n, 3) positions before the update [m].
        after: (n, 3) positions after the update [m].
        constrained: (k, 3) constrained points [m].
    """
    moved = after - before
    relative_motion = np.abs(moved - moved.mean(axis=0)).max() / size(model)
    return bool(
        relative_motion <= MAX_RELATIVE_MOTION and extent_ratio(model, after, constrained) <= MAX_VALID_RATIO
    )


def size(model: Model) -> float:
    """Largest extent of the scene at rest [m]."""
    return float(np.ptp(model.rest, axis=0).max())
