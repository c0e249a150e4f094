"""The folder that a run writes to."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from supple.io.frames import frame_path
from supple.io.replacing import replacing


class ResultsError(ValueError):
    """A results folder cannot be used as asked."""


class ResultsFolder:
    """Frames, animation.pvd, report.json and pictures of one run, and its exports."""

    report: ClassVar[str] = "report.json"
    ours: ClassVar[tuple[str, ...]] = (
        "frame_*.vtu",
        "frame_*.npz",
        "animation.pvd",
        "report.json",
        "scene.toml",
        "picture.png",
        "film.mp4",
        "film.gif",
        "residual_*.png",
        "energy_*.png",
        "report.html",
        "skins.npz",
        ".unfinished_*",
    )

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def has_results(self) -> bool:
        return any(self._files())

    def create(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise ResultsError(f"{self.path} is a file; name a folder with --output.")
        self.path.mkdir(parents=True, exist_ok=True)

    def clear(self) -> None:
        """Delete what a run has written here, and nothing else."""
        for file in self._files():
            shutil.rmtree(file) if file.is_dir() else file.unlink()

    def write_report(self, report: dict[str, Any]) -> None:
        with replacing(self.path / self.report) as path:
            path.write_text(to_json(report) + "\n", encoding="utf-8")

    def read_report(self) -> dict[str, Any]:
        path = self.path / "report.json"
        try:
            report = json.loads(path.read_text(encoding="utf-8"))
            report["scene"], report["solver"], report["frames"]
        except FileNotFoundError:
            raise ResultsError(
                f"{self.path} has frames but no report.json; --overwrite starts again."
            ) from None
        except (ValueError, KeyError, TypeError) as error:
            raise ResultsError(f"{path} is not a report of supple; --overwrite starts again.") from error
        return report

    def complete(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        """The frames of a report that are there, up to the first that is not."""
        frames = []
        for index, frame in enumerate(report["frames"], start=1):
            if not all(frame_path(self.path, index, suffix).exists() for suffix in (".vtu", ".npz")):
                break
            frames.append(frame)
        return frames

    def indices(self, report: dict[str, Any]) -> range:
        """The numbers of the complete frames, and of the start, 0, where it is there."""
        first = 0 if frame_path(self.path, 0, ".npz").exists() else 1
        return range(first, len(self.complete(report)) + 1)

    def _patterns(self) -> Iterable[str]:
        from supple.io.formats import FORMATS  # which know this file

        return chain(self.ours, *(format.patterns for format in FORMATS.values()))

    def _files(self) -> list[Path]:
        return [file for pattern in self._patterns() for file in sorted(self.path.glob(pattern))]


class ComparisonFolder(ResultsFolder):
    """comparison.json, plots and pictures of one comparison."""

    report = "comparison.json"
    ours = (
        "comparison.json",
        "scene.toml",
        "residual_*.png",
        "energy_*.png",
        "picture_*.png",
        "report.html",
        ".unfinished_*",
    )

    def _patterns(self) -> Iterable[str]:
        return self.ours


def to_json(values: Any) -> str:
    """JSON that every reader accepts: NaN and infinite numbers become null."""
    return json.dumps(_plain(values), indent=2, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
