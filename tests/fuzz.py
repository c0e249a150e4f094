"""Fuzz testing of bad input: randomly mutated gallery scenes (`fuzz_scenes`), and calls with wrong arguments
(`fuzz_calls`).

The outcome of a case must be an answer or a sentence: an error message raised by supple's own code, of the
right type. Everything else is a finding: other exceptions, warnings of NumPy, and reports that say "ok" next
to non-finite values.
"""

from __future__ import annotations

import linecache
import math
import signal
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import supple

MAX_CASE_SECONDS = 60
"""Processor time after which a case counts as hanging; the limit of wall time is ten times as long, since its
kernels may compile on a busy machine."""


@dataclass
class Tally:
    """Counts of outcomes, and the findings."""

    counts: Counter = field(default_factory=Counter)
    findings: list[dict[str, str]] = field(default_factory=list)

    def add(self, case: str, act: Callable[[], Any]) -> None:
        outcome, finding = judge(act)
        self.counts[outcome] += 1
        if finding:
            self.findings.append({"case": case, "finding": finding})


def judge(act: Callable[[], Any]) -> tuple[str, str]:
    """Outcome of a case and description of a finding: ("answer" or "sentence", "") or ("finding", text)."""
    try:
        with warnings.catch_warnings(record=True) as heard, time_limit(MAX_CASE_SECONDS):
            warnings.simplefilter("always")
            result = act()
    except (ValueError, TypeError, OSError) as error:
        return ("sentence", "") if is_reported(error) else ("finding", describe_error(error))
    except Exception as error:
        return "finding", describe_error(error)
    raw = [str(w.message) for w in heard if issubclass(w.category, RuntimeWarning)]
    wrong = raw[0] if raw else find_non_finite(result)
    return ("finding", wrong) if wrong else ("answer", "")


def is_reported(error: BaseException) -> bool:
    """True if supple's own code raises the error with a message; an OSError must name its file."""
    if isinstance(error, OSError) and error.filename:
        return True
    frame = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    ours = Path(frame.filename).is_relative_to(Path(supple.__file__).parent)
    return ours and line.startswith("raise ") and len(str(error).split()) > 3


def describe_error(error: BaseException) -> str:
    """Type, message and location of an error."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"[:300]


def find_non_finite(result: Any) -> str:
    """Non-finite values of a result whose report is ok; empty if there are none."""
    for one in result if isinstance(result, list) else [result]:
        if isinstance(one, supple.Result):
            if not np.isfinite(one.positions).all():
                return "positions are not finite"
            values = {name: getattr(one.report, name) for name in ("relative_residual", "residual", "energy")}
            wrong = [f"{name} = {value}" for name, value in values.items() if not math.isfinite(value)]
            if one.report.ok and wrong:
                return f"the report is ok with {', '.join(wrong)}"
    return ""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Context that raises a RuntimeError after a time limit, on systems with alarms."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    clocks = {
        signal.ITIMER_PROF: (signal.SIGPROF, seconds),
        signal.ITIMER_REAL: (signal.SIGALRM, 10 * seconds),
    }

    def stop(*_: Any) -> None:
        raise RuntimeError(f"took longer than {seconds} s")

    before = {kind: signal.signal(kind, stop) for kind, _ in clocks.values()}
    for clock, (_, limit) in clocks.items():
        signal.setitimer(clock, limit)
    try:
        yield
    finally:
        for clock in clocks:
            signal.setitimer(clock, 0)
        for kind, handler in before.items():
            signal.signal(kind, handler)
