"""Prescribed motions: where points that rest at X are at time t."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from supple.scene.checks import Vector, array, direction, number, shown, vector
from supple.scene.errors import SceneError
from supple.scene.ramps import keyed


class Motion(ABC):
    """x(X, t): points (k, 3) [m] that rest at X are at x at time t [s]; t = inf is the end of the motion. An
    axis for several motions of a kind may stand before that of the points.

    `a + b` does a, then b: x = b(a(X, t), t).
    """

    @abstractmethod
    def __call__(self, points: np.ndarray, t: float) -> np.ndarray:
        """The positions (k, 3) [m] at time t [s] of points (k, 3) at rest."""

    @abstractmethod
    def part(self, points: np.ndarray, fraction: float) -> np.ndarray:
        """The positions (k, 3) [m] after a fraction of the motion: 0 is rest, 1 the whole."""

    @property
    def end(self) -> float:
        """When the motion is over [s]; what says nothing takes a second."""
        return 1.0

    def __add__(self, other: Motion) -> Compose:
        if not isinstance(other, Motion):
            return NotImplemented
        return Compose(_parts(self) + _parts(other))


@dataclass(frozen=True)
class Compose(Motion):
    """Several motions, the first one first; written `a + b`."""

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
    """A motion that grows linearly from nothing at `start` to the whole at `start + duration` [s]."""

    duration: float = 1.0
    start: float = 0.0

    def __post_init__(self) -> None:
        self._set("duration", number(self.duration, "duration [s] of a motion", at_least=0))
        self._set("start", number(self.start, "start [s] of a motion"))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def end(self) -> float:
        return self.start + self.duration

    def __call__(self, points: np.ndarray, t: float) -> np.ndarray:
        if t >= self.start + self.duration:
            return self.part(points, 1.0)
        return self.part(points, 0.0 if t <= self.start else (t - self.start) / self.duration)


@dataclass(frozen=True)
class Translate(_Timed):
    """x = X + s d with the offset d [m] and the fraction s of the motion."""

    offset: Vector

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("offset", vector(self.offset, "offset [m] of Translate"))

    def part(self, points: np.ndarray, fraction: float) -> np.ndarray:
        return points + fraction * np.array(self.offset)


@dataclass(frozen=True)
class _AboutAxis(_Timed):
    axis: Vector
    centre: Vector
    angle: float

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        self._set("axis", direction(self.axis, f"axis of {name}"))
        self._set("centre", vector(self.centre, f"centre [m] of {name}"))
        self._set("angle", number(self.angle, f"angle of {name}"))

    def _rotated(self, points: np.ndarray, angle: np.ndarray) -> np.ndarray:
        """Rodrigues: x = c + cos θ r + sin θ a × r + (1 - cos θ)(a·r) a, r = X - c; angle θ () or (k,)."""
        axis, centre = np.array(self.axis), np.array(self.centre)
        r = points - centre
        cos, sin = np.cos(angle)[..., None], np.sin(angle)[..., None]
        return (
            centre
            + cos * r
            + sin * np.cross(axis, r)
            + (1 - cos) * np.einsum("...i,i->...", r, axis)[..., None] * axis
        )


@dataclass(frozen=True)
class Rotate(_AboutAxis):
    """Rotation by `angle` [rad], right-handed about the line through `centre` [m] along `axis`."""

    def part(self, points: np.ndarray, fraction: float) -> np.ndarray:
        return self._rotated(points, np.asarray(fraction * self.angle))


@dataclass(frozen=True)
class Twist(_AboutAxis):
    """Rotation about the axis by angle × h, where h [m] is a point's coordinate along the axis from `centre`.

    `angle` is in radians per metre: the plane through `centre` stays, planes at h > 0 turn right-handed.
    """

    def part(self, points: np.ndarray, fraction: float) -> np.ndarray:
        h = np.einsum("...i,i->...", points - np.array(self.centre), np.array(self.axis))
        return self._rotated(points, fraction * self.angle * h)


@dataclass(frozen=True)
class Scale(_Timed):
    """x = c + (1 + s (f - 1)) (X - c): one factor f > 0, or one per axis (3,), about the centre c [m]."""

    factor: float | Vector
    centre: Vector = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        factor = array(self.factor, "factor of Scale")
        if factor.shape not in [(), (3,)] or not np.all(factor > 0):
            raise SceneError(
                f"factor of Scale must be one positive number or three, got {shown(self.factor)}."
            )
        self._set("factor", tuple(np.broadcast_to(factor, 3).tolist()))
        self._set("centre", vector(self.centre, "centre [m] of Scale"))

    def part(self, points: np.ndarray, fraction: float) -> np.ndarray:
        centre = np.array(self.centre)
        return centre + (1 + fraction * (np.array(self.factor) - 1)) * (points - centre)


@dataclass(frozen=True)
class Keyframes(Motion):
    """A motion driven by keyframes: at `times` [s] the `fractions` of it, linear in between.

    Before the first and after the last time the first and last fraction hold. Fractions may go back and
    beyond 1: `Keyframes(Scale((1.5, 1, 1)), times=(0, 1, 2), fractions=(0, 1, -0.5))` stretches, then
    squeezes. The motion's own `start` and `duration` play no role.
    """

    motion: Motion
    times: Sequence[float]
    fractions: Sequence[float]

    def __post_init__(self) -> None:
        if not isinstance(self.motion, Motion) or any(isinstance(m, Keyframes) for m in _parts(self.motion)):
            raise SceneError(
                f"Keyframes need a motion such as Translate(...), and not other Keyframes, "
                f"got {shown(self.motion)}."
            )
        times, fractions = keyed(self.times, self.fractions, "Keyframes")
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "fractions", fractions)

    @staticmethod
    def path(times: Sequence[float], offsets: ArrayLike) -> Motion:
        """Translations through `offsets` (k, 3) [m], reached at `times` (k,) [s], straight in between."""
        rows = array(offsets, "offsets [m] of a path")
        if rows.ndim != 2 or rows.shape[1] != 3:
            raise SceneError(f"offsets [m] of a path must be rows of three numbers, got {shown(offsets)}.")
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
