"""Turning what a user wrote into numbers, or into a sentence that says what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np

from supple.scene.errors import SceneError

Vector = tuple[float, float, float]


def array(value: Any, what: str) -> np.ndarray:
    """Finite float64 numbers of any shape; `what` names the argument in the error."""
    try:
        numbers = np.asarray(value, float)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if not np.all(np.isfinite(numbers)):
        raise SceneError(f"{what} must be finite numbers, got {shown(value)}.")
    return numbers


def vector(value: Any, what: str) -> Vector:
    """Three finite numbers."""
    numbers = array(value, what)
    if numbers.shape != (3,):
        raise SceneError(f"{what} must be three numbers (x, y, z), got {shown(value)}.")
    x, y, z = numbers.tolist()
    return x, y, z


def direction(value: Any, what: str) -> Vector:
    """Three finite numbers, not all zero, scaled to length 1."""
    numbers = np.array(vector(value, what))
    length = float(np.linalg.norm(numbers))
    if length == 0:
        raise SceneError(f"{what} must not be the zero vector, got {shown(value)}.")
    x, y, z = (numbers / length).tolist()
    return x, y, z


def number(value: Any, what: str, *, above: float | None = None, at_least: float | None = None) -> float:
    """One finite number, in range."""
    numbers = array(value, what)
    if numbers.ndim:
        raise SceneError(f"{what} must be one number, got {shown(value)}.")
    result = float(numbers)
    if above is not None and not result > above:
        raise SceneError(f"{what} must be greater than {above:g}, got {shown(value)}.")
    if at_least is not None and not result >= at_least:
        raise SceneError(f"{what} must be at least {at_least:g}, got {shown(value)}.")
    return result


def count(value: Any, what: str) -> int:
    """A whole number, at least 1."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise SceneError(f"{what} must be a whole number, at least 1, got {shown(value)}.")
    return int(value)


def part(value: Any, what: str) -> float:
    """A number from 0 to below 1."""
    result = number(value, what, at_least=0)
    if not result < 1:
        raise SceneError(f"{what} must be less than 1, got {shown(value)}.")
    return result


def shown(value: Any, limit: int = 60) -> str:
    """`repr` cut to a readable length."""
    text = " ".join(repr(value).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


def closest(name: str, known: Iterable[str]) -> str:
    """A sentence that suggests the known name nearest to a mistyped one, or lists them all."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"known here: {listed(known)}."
