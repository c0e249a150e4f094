"""Turning what a user wrote into numbers, or into a sentence that says what would be right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from supple.checks import LARGEST, LONGEST, SMALLEST, closest, floats, listed, one_of, shown, whole_number
from supple.scene.errors import SceneError

__all__ = [
    "Vector",
    "array",
    "chosen",
    "closest",
    "count",
    "direction",
    "listed",
    "number",
    "part",
    "shown",
    "sound_name",
    "vector",
]

Vector = tuple[float, float, float]

LONGEST_NAME = 100
"""Letters of a body's name, so that files can be named after it."""


def array(value: Any, what: str) -> np.ndarray:
    """Finite float64 numbers of any shape, of a magnitude that the problem can carry; `what` names the
    argument and its unit in the error."""
    numbers = floats(value)
    if not np.all(np.isfinite(numbers)):
        raise SceneError(f"{what} must be finite numbers, got {shown(value)}.")
    limit = LONGEST if "[m]" in what else LARGEST
    if np.abs(numbers).max(initial=0) > limit:
        raise SceneError(f"{what} must not exceed {limit:g} in magnitude, got {shown(value)}.")
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
    if above == 0 and result < SMALLEST:
        raise SceneError(f"{what} must be at least {SMALLEST:g}, got {shown(value)}.")
    if at_least is not None and not result >= at_least:
        raise SceneError(f"{what} must be at least {at_least:g}, got {shown(value)}.")
    return result


def count(value: Any, what: str) -> int:
    """A whole number, at least 1."""
    try:
        return whole_number(what, value)
    except ValueError as error:
        raise SceneError(f"{error}.") from None


def chosen(value: Any, what: str, known: Iterable[str]) -> str:
    """One of the values that there are."""
    try:
        return one_of(what, value, known)
    except ValueError as error:
        raise SceneError(f"{error}.") from None


def sound_name(name: Any, what: str = "body") -> str:
    """A name that messages, files and exports can have."""
    if not isinstance(name, str) or not name.strip(" .") or not name.isprintable() or set(name) & set("/\\"):
        raise SceneError(
            f"The name of a {what} must be text that can also be the name of a file, without slashes, for "
            f"example 'left_arm'; got {shown(name)}."
        )
    if len(name) > LONGEST_NAME:
        raise SceneError(
            f"The name of a {what} may have {LONGEST_NAME} letters; {shown(name)} has {len(name)}."
        )
    return name


def part(value: Any, what: str) -> float:
    """A number from 0 to below 1."""
    result = number(value, what, at_least=0)
    if not result < 1:
        raise SceneError(f"{what} must be less than 1, got {shown(value)}.")
    return result
