"""Results folders of runs and comparisons."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from supple.io.checksums import CHECKSUMS, check_unchanged, read_checksums
from supple.io.errors import FrameError, ResultsError
from supple.io.frames import check_frame, frame_path
from supple.io.lock import hold_lock
from supple.io.replace_file import replacing
from supple.support.input_files import read_text
from supple.support.memory import format_bytes, format_count

MIN_FRAME_BYTES = 2000
"""Size of a frame's files without positions [bytes]."""

REPORT_SCHEMA = 2
"""Version of the names in report.json and comparison.json; others are rejected."""

REPORT_LIMIT = 2**32
"""Largest size of report.json [bytes]; histories of long runs reach several hundred million bytes."""

PLOTS = ("residual_iterations.png", "residual_seconds.png", "energy_iterations.png", "energy_seconds.png")


class ResultsFolder:
    """Frames, animation.pvd, report.json, pictures and exports of one run."""

    report: ClassVar[str] = "report.json"
    ours: ClassVar[tuple[str, ...]] = (
        CHECKSUMS,
        "frame_*.vtu",
        "frame_*.npz",
        "animation.pvd",
        "report.json",
        "scene.toml",
        "picture.png",
        "film.mp4",
        "film.gif",
        *PLOTS,
        "report.html",
        "skins.npz",
        "mesh_data.npz",
        ".unfinished_*",
    )

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def has_results(self) -> bool:
        """True if the folder contains files of a run or export."""
        return any(self.files)

    def create(self) -> None:
        """Create the folder."""
        if self.path.exists() and not self.path.is_dir():
            raise ResultsError(f"{self.path} is a file; name a folder with --output.")
        self.path.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Hold the folder's lock; deletes unfinished files of killed processes."""
        with hold_lock(self.path):
            for file in self.path.glob(".unfinished_*"):
                shutil.rmtree(file) if file.is_dir() else file.unlink()
            yield

    def check_disk_space(self, frames: int, vertices: int) -> None:
        """Raise a ResultsError if disk space is insufficient for this number of frames."""
        needed, free = frames * (MIN_FRAME_BYTES + 48 * vertices), shutil.disk_usage(self.path).free
        if needed > free:
            raise ResultsError(
                f"{format_count(frames)} frames of {vertices:,} vertices need at least "
                f"{format_bytes(needed)}, but {self.path} has {format_bytes(free)} left; request "
                "fewer frames, or name another folder."
            )

    def clear(self) -> None:
        """Delete all files of a run, no others."""
        for file in self.files:
            shutil.rmtree(file) if file.is_dir() else file.unlink()

    def write_report(self, report: dict[str, Any]) -> None:
        """Write the report atomically."""
        with replacing(self.path / self.report) as path:
            path.write_text(to_json(report) + "\n", encoding="utf-8")

    def read_report(self) -> dict[str, Any]:
        """Read the report; accessing a missing key raises a ResultsError."""
        path = self.path / self.report
        again = "--overwrite starts again."
        check_unchanged(
            path,
            "its numbers may be wrong. Restore a copy, or run the scene again with --overwrite; "
            f"without {CHECKSUMS} it is read without verification.",
        )
        try:
            text = read_text(path, REPORT_LIMIT)
            report = json.loads(text, object_hook=partial(_Entries, path))
        except FileNotFoundError:
            raise ResultsError(f"{self.path} has frames but no {path.name}; {again}") from None
        except ValueError as error:
            raise ResultsError(f"{path} is not a report of supple; {again}") from error
        types = {"scene": dict, "solver": dict, "frames": list}
        if not isinstance(report, dict) or not all(isinstance(report[k], types[k]) for k in types):
            raise ResultsError(f"{path} is not a report of supple; {again}")
        if not all(isinstance(frame, dict) for frame in report["frames"]):
            raise ResultsError(f"{path} is not a report of supple: its frames are not tables; {again}")
        if report.get("schema") != REPORT_SCHEMA:
            version = report["versions"].get("supple", "of unknown version")
            raise ResultsError(
                f"{path} was written by supple {version} in an earlier format; run the scene again "
                "with --overwrite."
            )
        return report

    def complete(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        """Report entries of existing frames, up to the first missing one."""
        frames = []
        for index, frame in enumerate(report["frames"], start=1):
            if not all(frame_path(self.path, index, suffix).exists() for suffix in (".vtu", ".npz")):
                break
            frames.append(frame)
        return frames

    def intact_frames(self, report: dict[str, Any], vertices: int) -> tuple[list[dict[str, Any]], str | None]:
        """Complete frames up to the first damaged one; also returns a description of the damage, or None."""
        frames, checksums = self.complete(report), read_checksums(self.path)
        for index in range(1, len(frames) + 1):
            try:
                check_frame(self.path, index, vertices, checksums)
            except FrameError as error:
                return frames[: index - 1], str(error)
        return frames, None

    def start_damage(self, vertices: int) -> str | None:
        """Reason to rewrite frame 0, the initial state; None if it is intact."""
        try:
            check_frame(self.path, 0, vertices, read_checksums(self.path))
        except FrameError as error:
            return str(error)
        except FileNotFoundError:
            return f"{frame_path(self.path, 0, '.vtu')} is missing."
        return None

    def indices(self, report: dict[str, Any]) -> range:
        """Numbers of the complete frames, including 0 if the initial state exists."""
        first = 0 if frame_path(self.path, 0, ".npz").exists() else 1
        return range(first, len(self.complete(report)) + 1)

    def _patterns(self) -> Iterable[str]:
        from supple.io.formats import FORMATS  # imports this module

        return chain(self.ours, *(format.patterns for format in FORMATS.values()))

    @property
    def files(self) -> list[Path]:
        """Files of runs and exports, and export folders, in this folder."""
        return [file for pattern in self._patterns() for file in sorted(self.path.glob(pattern))]


class ComparisonFolder(ResultsFolder):
    """comparison.json, plots and pictures of one comparison."""

    report = "comparison.json"
    ours = (
        CHECKSUMS,
        "comparison.json",
        "scene.toml",
        *PLOTS,
        "picture_*.png",
        "report.html",
        ".unfinished_*",
    )

    def _patterns(self) -> Iterable[str]:
        return self.ours


class _Entries(dict[str, Any]):
    """JSON object of a report, with an explanatory error for missing keys."""

    def __init__(self, path: Path, entries: dict[str, Any]) -> None:
        super().__init__(entries)
        self._path = path

    def __missing__(self, key: str) -> Any:
        raise ResultsError(
            f"{self._path} is not a report of this version of supple, it has no {key!r}; "
            "run the scene again with --overwrite."
        )


def to_json(values: Any, ascii_only: bool = False) -> str:
    """Standard JSON: NaN and infinite numbers become null."""
    return json.dumps(_plain(values), indent=2, ensure_ascii=ascii_only, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
