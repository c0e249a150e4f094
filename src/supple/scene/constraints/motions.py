"""Prescribed motions: positions at time t of points with rest positions X."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supple.scene.errors import SceneError
from supple.scene.loads.ramps import check_keyframes
from supple.scene.value_checks import Vector, array, direction, format_value, number, vector
from supple.support.keywords import suggest_keywords


class Motion(ABC):
    """A prescribed motion x(X, t) of points with rest positions X.

    The end of the motion is t = inf. `a + b` applies a, then b: x = b(a(X, t), t). Arrays of points may have
    a leading axis, for several motions of one class.
    """

    @abstractmethod
    def __call__(self, points: np.ndarray, t: float) -> np.ndarray:
        """Return the positions at a time.

        Args:
            points: (k, 3) rest positions [m].
            t: Time [s].

        Returns:
            (k, 3) positions [m].
        """

    @abstractmethod
    def part(self, points: np.ndarray, fraction: float) -> np.ndarray:
        """Return positions after a fraction of the motion.

        Args:
            points: (k, 3) rest positions [m].
            fraction: Fraction of the motion; 0 is rest, 1 the complete motion.

        Returns:
            (k, 3) positions [m].
        """

    @property
    def end(self) -> float:
        """End time [s]; 1 s unless a motion overrides it."""
        return 1.0

    def __add__(self, other: Motion) -> Compose:
        if not isinstance(other, Motion):
            return NotImplemented
        return Compose(_parts(self) + _parts(other))


@dataclass(frozen=True)
class Compose(Motion):
    """Composition of several motions in order, written `a + b`."""

    motions: tuple[Motion, ...]

    @property
    def end(self) -> float:
        return max(motion.end for motion in self.motions)

    def __call__(self, points: np.ndarray, t: float) -> np.ndarray:
        for motion in self.motions:
            points = motion(points, t)
        return points

    def part(self, points: np.ndarray, fraction: float) -> np.ndarray:
        for motion in self.motions:
            points = motion.part(points, fraction)
        return points


def _parts(motion: Motion) -> tuple[Motion, ...]:
    return motion.motions if isinstance(motion, Compose) else (motion,)


@dataclass(frozen=True, kw_only=True)
class _Timed(Motion):
    """A motion that proceeds linearly from `start_time` to `start_time + duration` [s]."""

    duration: float = 1.0
    start_time: float = 0.0

    def __post_init__(self) -> None:
        self._set("duration", number(self.duration, "duration [s] of a motion", at_least=0))
        self._set("start_time", number(self.start_time, "start_time [s] of a motion"))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def end(self) -> float:
        return self.start_time + self.duration

    def __call__(self, points: np.ndarray, t: float) -> np.ndarray:
        if t >= self.start_time + self.duration:
            return self.part(points, 1.0)
        return self.part(points, 0.0 if t <= self.start_time else (t - self.start_time) / self.duration)


@suggest_keywords
@dataclass(frozen=True)
class Translate(_Timed):
    """Translation x = X + s d with the fraction s of the motion.

    Args:
        offset: d (3,) [m].
        duration: Duration [s].
        start_time: Start time [s].

    Raises:
        SceneError: A value is not finite, or the duration is out of range.
    """

    offset: Vector

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("offset", vector(self.offset, "offset [m] of Translate"))

    def part(self, points: np.ndarray, fraction: float) -> np.ndarray:
        return points + fraction * np.array(self.offset)


@dataclass(frozen=True)
class _AboutAxis(_Timed):
    axis: Vector
    center: Vector

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        self._set("axis", direction(self.axis, f"axis of {name}"))
        self._set("center", vector(self.center, f"center [m] of {name}"))

    def _rotate(self, points: np.ndarray, angle: np.ndarray) -> np.ndarray:
        """Rodrigues: x = c + cos θ r + sin θ a × r + (1 - cos θ)(a·r) a, r = X - c; angle θ () or (k,)."""
        axis, center = np.array(self.axis), np.array(self.center)
        r = points - center
        cos, sin = np.cos(angle)[..., None], np.sin(angle)[..., None]
        return (
            center
            + cos * r
            + sin * np.cross(axis, r)
            + (1 - cos) * np.einsum("...i,i->...", r, axis)[..., None] * axis
        )


@suggest_keywords
@dataclass(frozen=True)
class Rotate(_AboutAxis):
    """Right-handed rotation about an axis.

    Args:
        axis: Direction of the axis (3,).
        center: A point of the axis (3,) [m].
        angle: Angle [rad].
        duration: Duration [s].
        start_time: Start time [s].

    Raises:
        SceneError: A value is not finite, the axis is zero, or the duration is out of range.
    """

    angle: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("angle", number(self.angle, "angle of Rotate"))

    def part(self, points: np.ndarray, fraction: float) -> np.ndarray:
        return self._rotate(points, np.asarray(fraction * self.angle))


@suggest_keywords
@dataclass(frozen=True)
class Twist(_AboutAxis):
    """Twist about an axis: rotation by rate × h, h [m] the axial coordinate from `center`.

    The plane through `center` does not move; planes at h > 0 rotate right-handed.

    Args:
        axis: Direction of the axis (3,).
        center: A point of the axis (3,) [m].
        rate: Angle per length [rad/m].
        duration: Duration [s].
        start_time: Start time [s].

    Raises:
        SceneError: A value is not finite, the axis is zero, or the duration is out of range.
    """

    rate: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("rate", number(self.rate, "rate of Twist"))

    def part(self, points: np.ndarray, fraction: float) -> np.ndarray:
        h = np.einsum("...i,i->...", points - np.array(self.center), np.array(self.axis))
        return self._rotate(points, fraction * self.rate * h)


@suggest_keywords
@dataclass(frozen=True)
class Scale(_Timed):
    """Scaling x = c + (1 + s (f - 1)) (X - c) with the fraction s of the motion.

    Args:
        factor: f > 0, one number or one per axis (3,).
        center: c (3,) [m].
        duration: Duration [s].
        start_time: Start time [s].

    Raises:
        SceneError: A factor is not positive, or the duration is out of range.
    """

    factor: float | Vector
    center: Vector = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        factor = array(self.factor, "factor of Scale")
        if factor.shape not in [(), (3,)] or not np.all(factor > 0):
            raise SceneError(
                f"factor of Scale must be one positive number or three, got {format_value(self.factor)}."
            )
        self._set("factor", tuple(np.broadcast_to(factor, 3).tolist()))
        self._set("center", vector(self.center, "center [m] of Scale"))

    def part(self, points: np.ndarray, fraction: float) -> np.ndarray:
        center = np.array(self.center)
        return center + (1 + fraction * (np.array(self.factor) - 1)) * (points - center)


@suggest_keywords
@dataclass(frozen=True)
class Keyframes(Motion):
    """Motion driven by keyframes: motion fractions at given times, linear in between.

    Before the first time the first fraction applies, after the last time the last one. Fractions may decrease
    and exceed 1: `Keyframes(Scale((1.5, 1, 1)), times=(0, 1, 2), fractions=(0, 1, -0.5))` stretches, then
    compresses. The motion's own `start_time` and `duration` are ignored.

    Args:
        motion: Motion without keyframes.
        times: Increasing times [s].
        fractions: Fraction of the motion at each time.

    Raises:
        SceneError: The motion has keyframes of its own, times do not increase, or the numbers of times and
            fractions differ.
    """

    motion: Motion
    times: Sequence[float]
    fractions: Sequence[float]

    def __post_init__(self) -> None:
        if not isinstance(self.motion, Motion) or any(isinstance(m, Keyframes) for m in _parts(self.motion)):
            raise SceneError(
                "Keyframes need a motion such as Translate(...), not other Keyframes; got "
                f"{format_value(self.motion)}."
            )
        times, fractions = check_keyframes(self.times, self.fractions, "Keyframes")
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "fractions", fractions)

    @staticmethod
    def path(times: Sequence[float], offsets: ArrayLike) -> Motion:
        """Return a piecewise linear translation through offsets.

        Args:
            times: (k,) increasing times [s].
            offsets: (k, 3) offsets [m] at these times.

        Returns:
            The motion. It keeps the first offset before the first time, and the last one after the last time.

        Raises:
            SceneError: Times do not increase, or the offsets are not an array (k, 3).
        """
        rows = array(offsets, "offsets [m] of a path")
        if rows.ndim != 2 or rows.shape[1] != 3:
            raise SceneError(
                f"offsets [m] of a path must be rows of three numbers, got {format_value(offsets)}."
            )
        unit = np.eye(3)
        return Compose(
            tuple(Keyframes(Translate(tuple(unit[i])), times, rows[:, i].tolist()) for i in range(3))
        )

    @property
    def end(self) -> float:
        return float(self.times[-1])

    def __call__(self, points: np.ndarray, t: float) -> np.ndarray:
        return self.part(points, float(np.interp(t, self.times, self.fractions)))

    def part(self, points: np.ndarray, fraction: float) -> np.ndarray:
        return self.motion.part(points, fraction)
