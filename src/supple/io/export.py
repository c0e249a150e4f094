"""Writing frames for other programs: from a results folder, or as they are computed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from supple.io.bodies import read_bodies
from supple.io.errors import ResultsError
from supple.io.formats import FORMATS, Format, Moment, Shot
from supple.io.frames import SavedFrame, frame_path, read_frame
from supple.io.lock import locked
from supple.io.results import ResultsFolder
from supple.scene import Scene
from supple.scene.checks import closest
from supple.simulate import Frame, Result

Watch = Callable[[int, int], None]
"""Called as watch(frames that are written, all frames) after every frame."""


def export(
    results: str | os.PathLike[str],
    formats: str | Iterable[str],
    output: str | os.PathLike[str] | None = None,
    watch: Watch | None = None,
) -> dict[str, Path]:
    """Write the frames of a results folder in formats such as "usd,glb"; nothing is simulated.

    An unfinished run gives the frames that are complete. output: a folder, which is the results folder itself
    unless given. Returns the file or folder that each format wrote.
    """
    chosen = parse_formats(formats)
    folder = ResultsFolder(Path(results))
    count, shot = open_shot(folder)
    target = _made(folder.path if output is None else Path(output))
    with locked(target):
        return _write(shot, _read(folder.path, count, watch), chosen, target)


def export_own(results: Path, formats: str | Iterable[str]) -> dict[str, Path]:
    """The same into the results folder by who holds its lock."""
    count, shot = open_shot(ResultsFolder(results))
    return _write(shot, _read(results, count, None), parse_formats(formats), results)


def save_frames(
    scene: Scene,
    frames: Iterable[Any],
    formats: str | Iterable[str],
    output: str | os.PathLike[str],
    dt: float | None = None,
) -> dict[str, Path]:
    """Write frames in formats such as "usd,glb" as they are computed, one in memory at a time:
    `save_frames(scene, supple.simulate(scene), "usd", "animation")`.

    frames: what `simulate` gives, results of `equilibrium`, or positions (n, 3) [m]. dt [s] from frame to
    frame, the scene's unless given. Returns the file or folder that each format wrote.
    """
    shot = Shot(scene.bodies, scene.dt if dt is None else dt)
    chosen, target = parse_formats(formats), _made(Path(output))
    with locked(target):
        return _write(shot, _moments(frames, scene, shot.dt), chosen, target)


def parse_formats(formats: str | Iterable[str]) -> list[Format]:
    """Formats from their names, which may be separated by commas; each is there once."""
    words = formats.split(",") if isinstance(formats, str) else formats
    names = list(dict.fromkeys(word.strip().lower() for word in words if word.strip()))
    if not names:
        raise ResultsError(f"no format is named; there are {', '.join(FORMATS)}.")
    for name in names:
        if name not in FORMATS:
            raise ResultsError(f"there is no format {name!r}; {closest(name, FORMATS)}")
        FORMATS[name].refuse_missing_package()
    return [FORMATS[name] for name in names]


def open_shot(folder: ResultsFolder) -> tuple[int, Shot]:
    """How many complete frames a results folder has, and what is the same in all of them."""
    if not folder.path.is_dir():
        raise ResultsError(f"there is no results folder {folder.path}; `supple run SCENE` makes one.")
    if not (folder.path / folder.report).exists():
        raise ResultsError(f"{folder.path} has no report.json, so it is no results folder of `supple run`.")
    report = folder.read_report()
    count = len(folder.complete(report))
    if count == 0:
        raise ResultsError(f"{folder.path} has no complete frame yet; `supple run SCENE --resume` goes on.")
    names = report["scene"]["bodies"]
    return count, Shot(
        read_bodies(folder.path, frame_path(folder.path, 1, ".vtu"), names), report["scene"]["dt"]
    )


def _read(folder: Path, count: int, watch: Watch | None) -> Iterator[Moment]:
    for index in range(1, count + 1):
        yield read_frame(folder, index)
        if watch is not None:
            watch(index, count)


def _made(output: Path) -> Path:
    """A folder, made where there is none."""
    if output.exists() and not output.is_dir():
        raise ResultsError(f"{output} is a file; name a folder for what is exported.")
    output.mkdir(parents=True, exist_ok=True)
    return output


def _write(shot: Shot, frames: Iterable[Moment], formats: list[Format], output: Path) -> dict[str, Path]:
    paths = {format.name: output / format.path for format in formats}
    any_frame = False
    with ExitStack() as stack:
        writers = [stack.enter_context(format.writer(paths[format.name], shot)) for format in formats]
        for frame in frames:
            any_frame = True
            for add in writers:
                add(frame)
        if not any_frame:
            raise ResultsError("there are no frames to write.")
    return paths


def _moments(frames: Iterable[Any], scene: Scene, dt: float) -> Iterator[Moment]:
    """Frames with an index and a time, also where they are results or plain arrays."""
    shape = (scene.bodies[-1].vertices.stop, 3) if scene.bodies else (0, 3)
    for number, frame in enumerate(frames, start=1):
        positions = np.asarray(frame.positions if isinstance(frame, Result) else frame, float)
        if positions.shape != shape:
            raise ResultsError(
                f"frame {number} must have the positions of all vertices of the scene, shape {shape}; "
                f"it has shape {positions.shape}."
            )
        if isinstance(frame, Frame):
            yield frame
        else:
            yield SavedFrame(positions, np.zeros(shape), number, number * dt)
