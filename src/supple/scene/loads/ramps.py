"""Ramps: fractions of loads and parameters over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.scene.errors import SceneError
from supple.scene.pickling import picklable
from supple.scene.value_checks import array, format_value
from supple.support.keywords import suggest_keywords

AnyRamp = Callable[[float], float]
"""The fraction of a load that acts at a time t [s]; t = inf is the final state."""


@suggest_keywords
@dataclass(frozen=True)
class Ramp:
    """Fraction of a load over time, linear between given times.

    Before the first time the first fraction applies, after the last time the last one. Fractions may
    decrease, exceed 1 and be negative: `Ramp(times=(0, 1, 2), fractions=(0, 1, 0))` loads for a second and
    unloads for another.

    Args:
        times: Increasing times [s].
        fractions: Fraction of the load at each time.
    """

    times: Sequence[float]
    fractions: Sequence[float]

    def __post_init__(self) -> None:
        times, fractions = check_keyframes(self.times, self.fractions, "A Ramp")
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "fractions", fractions)

    def __call__(self, t: float) -> float:
        return float(np.interp(t, self.times, self.fractions))


def check_keyframes(times: Any, fractions: Any, what: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Check increasing times [s] with one fraction each; `what` names their owner in the message."""
    at, values = array(times, "times [s]"), array(fractions, "fractions")
    if at.ndim != 1 or len(at) == 0 or at.shape != values.shape:
        raise SceneError(
            f"{what} must have one fraction for each time, got times {format_value(times)} "
            f"and fractions {format_value(fractions)}."
        )
    if np.any(np.diff(at) <= 0):
        raise SceneError(f"times [s] must increase, got {format_value(times)}.")
    return tuple(at.tolist()), tuple(values.tolist())


def check_ramp(ramp: Any) -> AnyRamp | None:
    """Check that a ramp is callable or None (constant load)."""
    if ramp is not None and not callable(ramp):
        raise SceneError(
            "A ramp must be for example supple.loads.Ramp(times=(0, 1), fractions=(0, 1)), or a function "
            "of the "
            f"time [s]; got {format_value(ramp)}."
        )
    return ramp


@dataclass(frozen=True)
class Fraction:
    """Checked load fraction as a function of time t [s]."""

    ramp: AnyRamp | None

    def __call__(self, t: float) -> float:
        return fraction_at(self.ramp, t)

    def __getstate__(self) -> dict[str, Any]:
        return {"ramp": picklable(self.ramp, "a load", "ramp")}


def fraction_at(ramp: AnyRamp | None, t: float) -> float:
    """Return the load fraction at time t [s]; t = inf is the final state."""
    if ramp is None:
        return 1.0
    fraction = ramp(t)
    if np.ndim(fraction) or not np.isfinite(fraction):
        raise SceneError(
            f"A ramp must give one finite number; at t = {t:g} s it gives {format_value(fraction)}."
        )
    return float(fraction)
