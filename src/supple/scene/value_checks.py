"""Validation of user input: values become numbers, or an error that states the accepted values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from supple.scene.errors import SceneError
from supple.support.arguments import (
    MAX_LENGTH,
    MAX_MAGNITUDE,
    MIN_MAGNITUDE,
    check_choice,
    check_integer,
    comma_list,
    format_value,
    suggest_name,
    to_floats,
)

__all__ = [
    "Vector",
    "array",
    "check_name",
    "chosen",
    "comma_list",
    "count",
    "direction",
    "format_value",
    "number",
    "part",
    "suggest_name",
    "vector",
]

Vector = tuple[float, float, float]

LONGEST_NAME = 100
"""Largest number of characters of a body name, so that files can be named after it."""


def array(value: Any, what: str) -> np.ndarray:
    """Convert input to finite float64 numbers of any shape within the supported magnitude.

    Args:
        value: Input of the user.
        what: Argument name with its unit, for the message; "[m]" selects the limit for lengths.

    Raises:
        SceneError: A number is missing, not finite or too large.
    """
    numbers = to_floats(value)
    if not np.all(np.isfinite(numbers)):
        raise SceneError(f"{what} must be finite numbers, got {format_value(value)}.")
    limit = MAX_LENGTH if "[m]" in what else MAX_MAGNITUDE
    if np.abs(numbers).max(initial=0) > limit:
        raise SceneError(f"{what} must not exceed {limit:g} in magnitude, got {format_value(value)}.")
    return numbers


def vector(value: Any, what: str) -> Vector:
    """Convert input to three finite numbers."""
    numbers = array(value, what)
    if numbers.shape != (3,):
        raise SceneError(f"{what} must be three numbers (x, y, z), got {format_value(value)}.")
    x, y, z = numbers.tolist()
    return x, y, z


def direction(value: Any, what: str) -> Vector:
    """Convert input to a unit vector; the zero vector is refused."""
    numbers = np.array(vector(value, what))
    length = float(np.linalg.norm(numbers))
    if length == 0:
        raise SceneError(f"{what} must not be the zero vector, got {format_value(value)}.")
    x, y, z = (numbers / length).tolist()
    return x, y, z


def number(value: Any, what: str, *, above: float | None = None, at_least: float | None = None) -> float:
    """Convert input to one finite number within bounds."""
    numbers = array(value, what)
    if numbers.ndim:
        raise SceneError(f"{what} must be one number, got {format_value(value)}.")
    result = float(numbers)
    if above is not None and not result > above:
        raise SceneError(f"{what} must be greater than {above:g}, got {format_value(value)}.")
    if above == 0 and result < MIN_MAGNITUDE:
        raise SceneError(f"{what} must be at least {MIN_MAGNITUDE:g}, got {format_value(value)}.")
    if at_least is not None and not result >= at_least:
        raise SceneError(f"{what} must be at least {at_least:g}, got {format_value(value)}.")
    return result


def count(value: Any, what: str) -> int:
    """Convert input to a positive integer."""
    try:
        return check_integer(what, value)
    except ValueError as error:
        raise SceneError(f"{error}.") from None


def chosen(value: Any, what: str, known: Iterable[str]) -> str:
    """Check a value against known choices."""
    try:
        return check_choice(what, value, known)
    except ValueError as error:
        raise SceneError(f"{error}.") from None


def check_name(name: Any, what: str = "body") -> str:
    """Check for printable text usable as a file name."""
    if not isinstance(name, str) or not name.strip(" .") or not name.isprintable() or set(name) & set("/\\"):
        raise SceneError(
            f"The name of a {what} must be text that can also be the name of a file, without slashes, for "
            f"example 'left_arm'; got {format_value(name)}."
        )
    if len(name) > LONGEST_NAME:
        raise SceneError(
            f"The name of a {what} may have {LONGEST_NAME} letters; {format_value(name)} has {len(name)}."
        )
    return name


def part(value: Any, what: str) -> float:
    """Convert input to a number in [0, 1)."""
    result = number(value, what, at_least=0)
    if not result < 1:
        raise SceneError(f"{what} must be less than 1, got {format_value(value)}.")
    return result
