"""The table [initial]: initial positions of free vertices, if not the rest positions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field, StrictStr

from supple.model.model import Model
from supple.scene.errors import SceneError
from supple.scene.tables.table import Choice, Coordinate, Index, Table
from supple.support.input_files import ArrayFile, InputFileError, open_arrays
from supple.support.text import pluralize


class Scramble(Table):
    seed: Index = Field(0, description="Seed of the random numbers.")


class Flatten(Table):
    axis: Literal["x", "y", "z"] = Field(
        description="Coordinate that is set to one value for all vertices: x, y or z."
    )
    at: Coordinate = Field(0.0, description="Value of the coordinate [m].")


class InitialState(Choice):
    """Initial positions of free vertices, if not the rest positions."""

    scramble: Scramble | None = Field(
        None, description="Random positions in the bounding box of the scene at rest."
    )
    flatten: Flatten | None = Field(None, description="Positions projected onto a plane.")
    file: StrictStr | None = Field(
        None,
        description="NPZ file with `positions` and optional `velocities`, such as a frame of a run; the path "
        "is relative to the scene file.",
    )

    def positions(self, model: Model, folder: Path) -> np.ndarray:
        """Return initial positions (n, 3) [m]; constrained vertices are at rest.

        Args:
            model: Model of the scene.
            folder: Folder of the scene file.
        """
        positions = model.rest.copy()
        if self.file is not None:
            positions = _saved_positions(folder / self.file, positions.shape)
        if self.scramble is not None:
            low, high = model.rest.min(axis=0), model.rest.max(axis=0)
            positions = np.random.default_rng(self.scramble.seed).uniform(low, high, positions.shape)
        elif self.flatten is not None:
            positions[:, "xyz".index(self.flatten.axis)] = self.flatten.at
        model.apply_dirichlet(positions, model.rest[model.pinned])
        return positions

    def velocities(self, model: Model, folder: Path) -> np.ndarray | None:
        """Return initial velocities (n, 3) [m/s], or None for zero velocities.

        Args:
            model: Model of the scene.
            folder: Folder of the scene file.
        """
        return None if self.file is None else _saved_velocities(folder / self.file, model.rest.shape)


def _saved_velocities(path: Path, shape: tuple[int, ...]) -> np.ndarray | None:
    """Read velocities from an NPZ file of initial positions; None if missing."""
    with _arrays(path) as saved:
        return _vectors(path, saved, "velocities", shape) if "velocities" in saved else None


def _saved_positions(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Read positions from an NPZ file, one row per scene vertex."""
    with _arrays(path) as saved:
        if "positions" not in saved:
            raise SceneError(f"initial.file: {path} has no `positions`.")
        return _vectors(path, saved, "positions", shape)


@contextmanager
def _arrays(path: Path) -> Iterator[ArrayFile]:
    """Open an NPZ file; read errors become a `SceneError` with its path."""
    try:
        with open_arrays(path) as saved:
            yield saved
    except OSError as error:
        raise SceneError(f"initial.file: {path} cannot be read: {error.strerror or error}.") from None
    except InputFileError as error:
        raise SceneError(f"initial.file: {path} {error}.") from None


def _vectors(path: Path, saved: ArrayFile, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Read one NPZ array as finite float64, after checking its shape."""
    actual = saved.shape(name)
    if actual != shape:
        raise SceneError(
            f"initial.file: {path} must have {name} of shape {shape}, one row for each vertex of the "
            f"scene; their shape is {actual}."
        )
    vectors = np.array(saved[name], float)
    bad = int(np.count_nonzero(~np.isfinite(vectors).all(axis=1)))
    if bad:
        where = pluralize(bad, "vertex", "vertices")
        raise SceneError(f"initial.file: {path} has {name} that are NaN or infinite, of {where}.")
    return vectors
