"""A storm of bad input: gallery scenes changed at random (`storm_scenes`), and calls with arguments that are
no good (`storm_calls`).

Whatever happens must be an answer or a sentence: an error that our own code raises, of the right kind.
Anything else is a finding: other exceptions, warnings of NumPy, and reports that say "ok" next to figures
that are not finite.
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

PATIENCE = 60
"""Seconds of processors after which a case counts as hanging, or ten times as many by the clock: on a busy
machine the kernels that it compiles take long."""


@dataclass
class Tally:
    """How cases ended, and those that ended as none should."""

    counts: Counter = field(default_factory=Counter)
    findings: list[dict[str, str]] = field(default_factory=list)

    def add(self, case: str, act: Callable[[], Any]) -> None:
        outcome, finding = judge(act)
        self.counts[outcome] += 1
        if finding:
            self.findings.append({"case": case, "finding": finding})


def judge(act: Callable[[], Any]) -> tuple[str, str]:
    """ "answer" or "sentence" with nothing more to say, or "finding" and what it is."""
    try:
        with warnings.catch_warnings(record=True) as heard, time_limit(PATIENCE):
            warnings.simplefilter("always")
            result = act()
    except (ValueError, TypeError, OSError) as error:
        return ("sentence", "") if is_reported(error) else ("finding", last_words(error))
    except Exception as error:
        return "finding", last_words(error)
    raw = [str(w.message) for w in heard if issubclass(w.category, RuntimeWarning)]
    wrong = raw[0] if raw else not_finite(result)
    return ("finding", wrong) if wrong else ("answer", "")


def is_reported(error: BaseException) -> bool:
    """Whether our own code raises it, with a sentence; an OSError names its file."""
    if isinstance(error, OSError) and error.filename:
        return True
    frame = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    ours = Path(frame.filename).is_relative_to(Path(supple.__file__).parent)
    return ours and line.startswith("raise ") and len(str(error).split()) > 3


def last_words(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"[:300]


def not_finite(result: Any) -> str:
    """What is wrong with a result whose report says that all is well."""
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
    """A RuntimeError where it takes longer, on systems that have alarms."""
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
