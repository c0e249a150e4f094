"""Immutable snapshots of a session for observers."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace

import numpy as np

from supple.live.movable_pins import PinSet, Placement
from supple.live.settings import Settings
from supple.live.simulation import Simulation
from supple.live.solver_track import Track
from supple.model.model import Model, Step
from supple.solve.report import Report


@dataclass(frozen=True, eq=False)
class Shape:
    """Shape computed by one solver.

    Attributes:
        label: Name of the solver.
        positions: (n, 3) positions [m].
        iterations: Number of iterations.
        relative_residual: Relative residual; NaN before the first update.
        residual: Residual norm [N]; NaN before the first update.
        history: (k, 2) update numbers and relative residuals.
        step: Time step that led to the shape.
        model: Model with the rigid bodies of this solver.
        notes: Sentences about the last step of a motion.
    """

    label: str
    positions: np.ndarray
    iterations: int
    relative_residual: float
    residual: float
    history: np.ndarray
    step: Step | None
    model: Model
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Handle:
    """Pose of a pin set's handle.

    Attributes:
        name: Name of the pin set.
        position: (3,) position [m].
        wxyz: (4,) rotation quaternion.
        stretch: (3,) stretch factors.
    """

    name: str
    position: np.ndarray
    wxyz: np.ndarray
    stretch: np.ndarray

    def is_close_to(self, other: Handle) -> bool:
        pairs = zip(astuple(self)[1:], astuple(other)[1:], strict=True)
        return all(np.allclose(mine, theirs, rtol=0, atol=1e-9) for mine, theirs in pairs)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """State of a session.

    Attributes:
        version: Number of the snapshot, increasing.
        executed: Number of executed commands.
        status: Sentence about the state.
        playing: True while playing.
        updates_per_second: Recent update rate.
        time: Simulated time [s].
        updates: Number of updates.
        settings: Current settings.
        model: Current model.
        shapes: Shape of each solver.
        handles: Handle of each pin set.
        grabbed: (h,) ids of the grabbed vertices.
        offsets: (o, 3) offsets of the obstacles [m].
    """

    version: int
    executed: int
    status: str
    playing: bool
    updates_per_second: float
    time: float
    updates: int
    settings: Settings
    model: Model
    shapes: tuple[Shape, ...]
    handles: tuple[Handle, ...]
    grabbed: np.ndarray
    offsets: np.ndarray


@dataclass(frozen=True)
class Notice:
    """Message for the user.

    Attributes:
        kind: "info", "warning" or "error".
        text: A sentence.
    """

    kind: str
    text: str


def snapshot_of(
    simulation: Simulation,
    version: int,
    executed: int,
    status: str,
    playing: bool,
    updates_per_second: float,
) -> Snapshot:
    return Snapshot(
        version,
        executed,
        status,
        playing,
        updates_per_second,
        simulation.time,
        simulation.updates,
        simulation.settings,
        simulation.model,
        tuple(
            _shape(label, track, simulation.model)
            for label, track in zip(simulation.settings.labels, simulation.tracks, strict=False)
        ),
        tuple(_handle(each, simulation.time) for each in simulation.pins.sets),
        simulation.pins.grabbed,
        simulation.offset_obstacles.offsets.copy(),
    )


def _shape(label: str, track: Track, model: Model) -> Shape:
    balance = track.balance
    return Shape(
        label,
        track.positions,
        track.iterations,
        balance.relative_residual if balance else np.nan,
        balance.residual if balance else np.nan,
        np.array(track.history).reshape(-1, 2),
        track.step,
        track.model_of(model),
        _notes(track.report),
    )


def _notes(report: Report | None) -> tuple[str, ...]:
    """Sentences about an unsuccessful step, followed by report notes."""
    if report is None:
        return ()
    return (() if report.ok else (report.sentence,)) + tuple(report.notes)


def _handle(pins: PinSet, time: float) -> Handle:
    return handle_at(pins.name, replace(pins.placement, position=pins.center(time)))


def handle_at(name: str, placement: Placement) -> Handle:
    """Handle of a pin set with a manual placement."""
    wxyz = np.roll(placement.rotation.as_quat(), 1)
    return Handle(name, placement.position, wxyz, placement.stretch)
