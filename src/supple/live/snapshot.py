"""What a session shows to the outside: a state that never changes, replaced as a whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supple.live.pins import PinSet
from supple.live.settings import Settings
from supple.live.simulation import Simulation
from supple.live.track import Track
from supple.model import Model
from supple.view.fields import Step


@dataclass(frozen=True, eq=False)
class Shape:
    """What one solver has found: positions (n, 3) [m]; history (k, 2) of update numbers and the imbalance
    after them; imbalance and residual [N] are NaN before the first update."""

    label: str
    positions: np.ndarray
    iterations: int
    imbalance: float
    residual: float
    history: np.ndarray
    step: Step | None


@dataclass(frozen=True, eq=False)
class Handle:
    """Where the handle of a pin set belongs: position (3,) [m], wxyz (4,), stretch (3,)."""

    name: str
    position: np.ndarray
    wxyz: np.ndarray
    stretch: np.ndarray


@dataclass(frozen=True, eq=False)
class Snapshot:
    """version counts up; status is a sentence; held (h,) are the vertices that a hand holds."""

    version: int
    status: str
    playing: bool
    updates_per_second: float
    time: float
    updates: int
    settings: Settings
    model: Model
    shapes: tuple[Shape, ...]
    handles: tuple[Handle, ...]
    held: np.ndarray


@dataclass(frozen=True)
class Notice:
    """A sentence for the user. kind: "info", "warning" or "error"."""

    kind: str
    text: str


def look_at(
    simulation: Simulation, version: int, status: str, playing: bool, updates_per_second: float
) -> Snapshot:
    return Snapshot(
        version,
        status,
        playing,
        updates_per_second,
        simulation.time,
        simulation.updates,
        simulation.settings,
        simulation.model,
        tuple(map(_shape, simulation.settings.labels, simulation.tracks)),
        tuple(_handle(each, simulation.time) for each in simulation.pins.sets),
        simulation.pins.held,
    )


def _shape(label: str, track: Track) -> Shape:
    balance = track.balance
    return Shape(
        label,
        track.positions,
        track.iterations,
        balance.imbalance if balance else np.nan,
        balance.residual if balance else np.nan,
        np.array(track.history).reshape(-1, 2),
        track.step,
    )


def _handle(pins: PinSet, time: float) -> Handle:
    placement = pins.placement
    wxyz = np.roll(placement.rotation.as_quat(), 1)
    return Handle(pins.name, pins.centre(time), wxyz, placement.stretch)
