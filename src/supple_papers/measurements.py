"""Measurements of an experiment, stored part by part, so that interrupted experiments can resume."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import supple
from supple_papers.internals import machine, replacing

Quantities = dict[str, Any]

Say = Callable[[str], None]

DEVICES = ("cpu", "cuda")
"""Devices of timed rows; each has measurements of its own."""


@dataclass(frozen=True)
class Claim:
    """Claim of a paper as a condition on measured quantities.

    Attributes:
        says: The claim in words.
        holds: True if the measurements satisfy it.
        why: Known reason if it does not hold.
    """

    says: str
    holds: bool
    why: str = ""


class NotMeasuredError(Exception):
    """A required quantity has not been measured."""


class Measurements:
    """Measurements of one figure or table, stored in a folder.

    Args:
        folder: Folder of the measurements.
        key: Key of the figure or table, such as "pbng-fig7".
        full: True to use the paper's problem sizes.
        say: Called with a message after every part.
        device: Device of timed rows that support it, "cpu" or "cuda".
        measures: False to judge stored measurements only.

    Attributes:
        values: Stored measurements, written as JSON.
    """

    def __init__(
        self,
        folder: Path,
        key: str,
        full: bool = False,
        say: Say = lambda text: None,
        device: str = "cpu",
        measures: bool = True,
    ) -> None:
        self.path, self.key, self.full, self._say = measurements_path(folder, key, device), key, full, say
        self.device, self._measures = device, measures
        self.values: Quantities = self._load()

    def _load(self) -> Quantities:
        """Return stored measurements with the same sizes and version."""
        empty: Quantities = {"key": self.key, "full": self.full, "version": supple.__version__, "parts": {}}
        stored = read_measurements(self.path)
        if stored is None or any(stored.get(name) != empty[name] for name in ("full", "version")):
            return empty
        return stored

    @property
    def done(self) -> bool:
        return "verdict" in self.values

    def part(self, name: str, measure: Callable[[], Any]) -> Any:
        """Return a named measurement, stored or measured now.

        Raises:
            NotMeasuredError: The measurement is not stored and `measures` is False.
        """
        parts = self.values["parts"]
        if name not in parts:
            if not self._measures:
                raise NotMeasuredError(name)
            parts[name] = plain(measure())
            self._write()
        self._say(f"{self.key}, {name}: {brief(parts[name])}")
        return parts[name]

    def picture(self, result: Any, caption: str, **view: Any) -> None:
        """Save a picture of a result, at small size because of the large number of pictures."""
        path = self._new_picture(caption)
        supple.render(result, path, **{"size": (640, 420), "title": ""} | view)
        self._write()

    def curves(self, lines: dict[str, tuple[Any, Any]], caption: str, x: str, y: str, **axes: bool) -> None:
        """Save a plot of named lines (x, y); `axes` may set log_x and log_y."""
        from supple_papers.curves import save_curves

        save_curves(self._new_picture(caption), lines, x, y, **axes)
        self._write()

    def _new_picture(self, caption: str) -> Path:
        """Register the next picture and return its path."""
        if not self._measures:
            raise NotMeasuredError(caption)
        name = f"{self.path.stem}-{len(self.pictures) + 1}.png"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.values["pictures"] = [*self.pictures, [name, caption]]
        return self.path.parent / name

    @property
    def pictures(self) -> list[list[str]]:
        """File names and captions of the stored pictures."""
        return self.values.get("pictures", [])

    def judge(self, said: str, *claims: Claim) -> str:
        """Return the verdict: agrees if all claims hold, differs if none does, otherwise partly agrees."""
        results = [bool(claim.holds) for claim in claims]
        word = "agrees" if all(results) else "partly agrees" if any(results) else "differs"
        self.values["claims"] = [
            {"says": claim.says, "holds": holds} | ({} if holds else {"why": claim.why})
            for claim, holds in zip(claims, results, strict=True)
        ]
        return f"{word}: {said}"

    def close(self, verdict: str, began: float) -> None:
        """Store the verdict with the machine, the load and the total time."""
        seconds = round(perf_counter() - began, 1)
        when = datetime.now(UTC).isoformat(timespec="seconds")
        load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
        where = {"device": gpu_name()} if self.device != "cpu" else {}
        about = {"machine": machine(), **where, "load": load, "measured": when, "seconds": seconds}
        self.values |= {"verdict": verdict, **about}
        self._write()

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as path:
            path.write_text(json.dumps(self.values, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def gpu_name() -> str:
    """Return the name of the present GPU, or "a GPU"."""
    try:
        from supple_papers.internals import require_device

        return require_device()
    except (ImportError, ValueError):  # no numba-cuda, no usable GPU
        return "a GPU"


def measurements_path(folder: Path, key: str, device: str = "cpu") -> Path:
    """Return the path of the measurements: pbng-fig7.json, or pbng-fig7-cuda.json for a GPU."""
    return folder / (f"{key}.json" if device == "cpu" else f"{key}-{device}.json")


def read_measurements(path: Path) -> Quantities | None:
    """Read stored measurements; None if the file is missing or damaged."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return stored if isinstance(stored, dict) and isinstance(stored.get("parts"), dict) else None


def plain(value: Any) -> Any:
    """Convert a measurement to JSON values with four digits; non-finite numbers become null."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, bool | str | int) or value is None:
        return value
    number = float(value)
    return float(f"{number:.4g}") if abs(number) < float("inf") else None


def brief(value: Any) -> str:
    """Format a measurement in one line; lists of more than 6 values show their length."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {brief(one)}" for name, one in value.items())
    if isinstance(value, list):
        return f"{len(value)} values" if len(value) > 6 else " ".join(map(brief, value))
    if isinstance(value, float):
        return f"{value:.3g}"
    return "not finite" if value is None else str(value)


def run_row(measurements: Measurements) -> str:
    """Measure the missing parts of a figure or table and return its verdict."""
    from supple_papers.registry import experiment

    began = perf_counter()
    if not measurements.done:
        measurements.close(experiment(measurements.key)(measurements), began)
    return measurements.values["verdict"]


def judge_again(folder: Path, key: str, device: str = "cpu") -> bool:
    """Update a stored verdict to the present criteria without new measurements.

    Returns:
        False, with the verdict unchanged, if the criteria require further measurements.
    """
    from supple_papers.registry import experiment

    known = read_measurements(measurements_path(folder, key, device))
    if known is None or "verdict" not in known:
        return True
    measurements = Measurements(folder, key, known["full"], device=device, measures=False)
    try:
        verdict = experiment(key)(measurements)
    except (NotMeasuredError, KeyError):
        return False
    except FileNotFoundError:  # measured on a machine that has the files
        return True
    if measurements.values != known | {"verdict": verdict}:
        measurements.values["verdict"] = verdict
        measurements._write()
    return True
