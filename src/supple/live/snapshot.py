"""What a session shows to the outside: a state that never changes, replaced as a whole."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace

import numpy as np

from supple.live.pins import PinSet, Placement
from supple.live.settings import Settings
from supple.live.simulation import Simulation
from supple.live.track import Track
from supple.model import Model, Step
from supple.report import Report


@dataclass(frozen=True, eq=False)
class Shape:
    """What one solver has found: positions (n, 3) [m]; history (k, 2) of update numbers and the imbalance
    after them; imbalance and residual [N] are NaN before the first update; model: with rigid bodies where
    this solver has them; notes: sentences on how the last step of a motion was solved."""

    label: str
    positions: np.ndarray
    iterations: int
    imbalance: float
    residual: float
    history: np.ndarray
    step: Step | None
    model: Model
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Handle:
    """Where the handle of a pin set belongs: position (3,) [m], wxyz (4,), stretch (3,)."""

    name: str
    position: np.ndarray
    wxyz: np.ndarray
    stretch: np.ndarray

    def same_as(self, other: Handle) -> bool:
        pairs = zip(astuple(self)[1:], astuple(other)[1:], strict=True)
        return all(np.allclose(mine, theirs, rtol=0, atol=1e-9) for mine, theirs in pairs)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """version counts up; obeyed: how many commands were; status is a sentence; held (h,) are the vertices
    that a hand holds; offsets (o, 3) [m]: by how much hands have shifted obstacles."""

    version: int
    obeyed: int
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
    offsets: np.ndarray


@dataclass(frozen=True)
class Notice:
    """A sentence for the user. kind: "info", "warning" or "error"."""

    kind: str
    text: str


def snapshot_of(
    simulation: Simulation,
    version: int,
    obeyed: int,
    status: str,
    playing: bool,
    updates_per_second: float,
) -> Snapshot:
    return Snapshot(
        version,
        obeyed,
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
        simulation.pins.held,
        simulation.carried.offsets.copy(),
    )


def _shape(label: str, track: Track, model: Model) -> Shape:
    balance = track.balance
    return Shape(
        label,
        track.positions,
        track.iterations,
        balance.imbalance if balance else np.nan,
        balance.residual if balance else np.nan,
        np.array(track.history).reshape(-1, 2),
        track.step,
        track.model_of(model),
        _notes(track.report),
    )


def _notes(report: Report | None) -> tuple[str, ...]:
    """Sentences on a step of a motion that was not solved as asked, and the notes of its report."""
    if report is None:
        return ()
    return (() if report.ok else (report.sentence,)) + tuple(report.notes)


def _handle(pins: PinSet, time: float) -> Handle:
    return placed_handle(pins.name, replace(pins.placement, position=pins.centre(time)))


def placed_handle(name: str, placement: Placement) -> Handle:
    """The handle of a pin set where a hand has put it."""
    wxyz = np.roll(placement.rotation.as_quat(), 1)
    return Handle(name, placement.position, wxyz, placement.stretch)
