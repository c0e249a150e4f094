"""What an experiment has measured, kept part by part: one that was interrupted goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from supple import __version__
from supple.io.machine import machine
from supple.io.replacing import replacing

Figures = dict[str, Any]

Say = Callable[[str], None]


@dataclass(frozen=True)
class Claim:
    """What a paper says, as a condition on figures. why: the reason, where it is known not to hold."""

    says: str
    holds: bool
    why: str = ""


class NotMeasuredError(Exception):
    """A figure is asked for that nobody has measured."""


class Account:
    """The measurements of one row in a folder. full: at the paper's sizes; say: told of every part that is
    done; device: where rows of times are measured that know how, "cpu" or "cuda"; measures: False where
    verdicts are asked for of what is known only."""

    def __init__(
        self,
        folder: Path,
        key: str,
        full: bool = False,
        say: Say = lambda text: None,
        device: str = "cpu",
        measures: bool = True,
    ) -> None:
        self.path, self.key, self.full, self._say = account_path(folder, key, device), key, full, say
        self.device, self._measures = device, measures
        self.values: Figures = self._known()

    def _known(self) -> Figures:
        """What an earlier run has measured with the same sizes and version."""
        fresh: Figures = {"key": self.key, "full": self.full, "version": __version__, "parts": {}}
        found = read_account(self.path)
        if found is None or any(found.get(name) != fresh[name] for name in ("full", "version")):
            return fresh
        return found

    @property
    def done(self) -> bool:
        return "verdict" in self.values

    def part(self, name: str, measure: Callable[[], Any]) -> Any:
        """A measurement by name: done now and kept, or known from before."""
        parts = self.values["parts"]
        if name not in parts:
            if not self._measures:
                raise NotMeasuredError(name)
            parts[name] = plain(measure())
            self._write()
        self._say(f"{self.key}, {name}: {brief(parts[name])}")
        return parts[name]

    def picture(self, result: Any, caption: str, **view: Any) -> None:
        """Keep what a result looks like; small, since there are many."""
        from supple.showing import picture

        path = self._new_picture(caption)
        picture(result, path, **{"size": (640, 420), "title": ""} | view)
        self._write()

    def curves(self, lines: dict[str, tuple[Any, Any]], caption: str, x: str, y: str, **axes: bool) -> None:
        """Keep a plot of named lines (x, y); axes: log_x, log_y."""
        from supple.papers.curves import save_curves

        save_curves(self._new_picture(caption), lines, x, y, **axes)
        self._write()

    def _new_picture(self, caption: str) -> Path:
        """Where the next picture is to be; it counts from now on."""
        if not self._measures:
            raise NotMeasuredError(caption)
        name = f"{self.path.stem}-{len(self.pictures) + 1}.png"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.values["pictures"] = [*self.pictures, [name, caption]]
        return self.path.parent / name

    @property
    def pictures(self) -> list[list[str]]:
        """Names and captions of those that there are."""
        return self.values.get("pictures", [])

    def judge(self, said: str, *claims: Claim) -> str:
        """The verdict: agrees where every claim holds, differs where none does, partly where some do."""
        held = [bool(claim.holds) for claim in claims]
        word = "agrees" if all(held) else "partly agrees" if any(held) else "differs"
        self.values["claims"] = [
            {"says": claim.says, "holds": holds} | ({} if holds else {"why": claim.why})
            for claim, holds in zip(claims, held, strict=True)
        ]
        return f"{word}: {said}"

    def close(self, verdict: str, began: float) -> None:
        """All parts are there, and this is what they say."""
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
    """Of the GPU in use; accounts made without one say so little."""
    from supple.kernels.device import DeviceError

    try:
        from supple.kernels.cuda import require_device

        return require_device()
    except (ImportError, DeviceError):
        return "a GPU"


def account_path(folder: Path, key: str, device: str = "cpu") -> Path:
    """pbng-fig7.json, or pbng-fig7-cuda.json of what was measured on a GPU."""
    return folder / (f"{key}.json" if device == "cpu" else f"{key}-{device}.json")


def read_account(path: Path) -> Figures | None:
    """What is written there; None where nothing is, or nothing that can be read."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("parts"), dict) else None


def plain(value: Any) -> Any:
    """A measurement for JSON, with four digits, and no infinity, which JSON does not know."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, bool | str | int) or value is None:
        return value
    number = float(value)
    return float(f"{number:.4g}") if abs(number) < float("inf") else None


def brief(value: Any) -> str:
    """A measurement in a line: figures, and of long lists how many there are."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {brief(one)}" for name, one in value.items())
    if isinstance(value, list):
        return f"{len(value)} values" if len(value) > 6 else " ".join(map(brief, value))
    if isinstance(value, float):
        return f"{value:.3g}"
    return "not finite" if value is None else str(value)


def run_row(account: Account) -> str:
    """Measure what is missing of a row, and its verdict."""
    from supple.papers.registry import experiment

    began = perf_counter()
    if not account.done:
        account.close(experiment(account.key)(account), began)
    return account.values["verdict"]


def judge_again(folder: Path, key: str, device: str = "cpu") -> bool:
    """Bring the verdict of an account up to the criteria of today, from what it has measured. False, and as
    it was, where these ask for more."""
    from supple.papers.registry import experiment

    known = read_account(account_path(folder, key, device))
    if known is None or "verdict" not in known:
        return True
    account = Account(folder, key, known["full"], device=device, measures=False)
    try:
        verdict = experiment(key)(account)
    except (NotMeasuredError, KeyError):
        return False
    except FileNotFoundError:  # it was measured where the files were
        return True
    if account.values != known | {"verdict": verdict}:
        account.values["verdict"] = verdict
        account._write()
    return True
