"""The table [start]: where free vertices start, instead of at rest."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Literal
from zipfile import BadZipFile

import numpy as np
from pydantic import Field, StrictStr

from supple.model import Model
from supple.scene.errors import SceneError
from supple.scene.tables.base import Choice, Coordinate, Index, Table
from supple.words import counted


class Scramble(Table):
    seed: Index = Field(0, description="Seed of the random numbers.")


class Flatten(Table):
    axis: Literal["x", "y", "z"] = Field(
        description="The coordinate that becomes the same for all: x, y or z."
    )
    at: Coordinate = Field(0.0, description="Its value [m].")


class Start(Choice):
    """Where free vertices start, instead of at rest."""

    scramble: Scramble | None = Field(None, description="At random in the bounding box of the scene at rest.")
    flatten: Flatten | None = Field(None, description="In a plane.")
    file: StrictStr | None = Field(
        None,
        description="Where an NPZ file, such as one of a run's frames, has `positions`, and perhaps "
        "`velocities`; its path is relative to the scene file.",
    )

    def positions(self, model: Model, folder: Path) -> np.ndarray:
        """(n, 3) [m]; what is pinned is left at rest. folder: that of the scene file."""
        positions = model.rest.copy()
        if self.file is not None:
            positions = _saved_positions(folder / self.file, positions.shape)
        if self.scramble is not None:
            low, high = model.rest.min(axis=0), model.rest.max(axis=0)
            positions = np.random.default_rng(self.scramble.seed).uniform(low, high, positions.shape)
        elif self.flatten is not None:
            positions[:, "xyz".index(self.flatten.axis)] = self.flatten.at
        model.hold(positions, model.rest[model.pinned])
        return positions

    def velocities(self, model: Model, folder: Path) -> np.ndarray | None:
        """(n, 3) [m/s] that a motion starts with; None for rest. folder: that of the scene file."""
        return None if self.file is None else _saved_velocities(folder / self.file, model.rest.shape)


def _saved_velocities(path: Path, shape: tuple[int, ...]) -> np.ndarray | None:
    """The velocities in an NPZ file, whose positions have been read; None where it has none."""
    with np.load(path) as saved:
        if "velocities" not in saved:
            return None
        velocities = np.array(saved["velocities"], float)
    if velocities.shape != shape or not np.isfinite(velocities).all():
        raise SceneError(
            f"start.file: the velocities in {path} must be finite and of shape {shape}, as the positions are."
        )
    return velocities


def _saved_positions(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """The positions in an NPZ file, one row for each vertex of the scene."""
    try:
        with path.open("rb") as file, np.load(file) as saved:
            positions = np.array(saved["positions"], float)
    except OSError as error:
        raise SceneError(f"start.file: {path} cannot be read: {error.strerror or error}.") from None
    except KeyError:
        raise SceneError(f"start.file: {path} has no `positions`.") from None
    except (ValueError, TypeError, EOFError, BadZipFile, zlib.error):
        raise SceneError(
            f"start.file: {path} is no NPZ file with numbers as `positions`, or it is damaged."
        ) from None
    if positions.shape != shape:
        raise SceneError(
            f"start.file: {path} must have positions of shape {shape}, one row for each vertex of the scene; "
            f"they have shape {positions.shape}."
        )
    bad = int(np.count_nonzero(~np.isfinite(positions).all(axis=1)))
    if bad:
        where = counted(bad, "vertex", "vertices")
        raise SceneError(f"start.file: {path} has positions that are NaN or infinite, of {where}.")
    return positions
