"""Validation of user arguments. Every check returns the value, or raises an error with the accepted range."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

MIN_MAGNITUDE, MAX_MAGNITUDE = 1e-30, 1e30
"""Range of magnitudes in SI units. Squares and products of such numbers stay within float64."""

MIN_LENGTH, MAX_LENGTH = 1e-12, 1e12
"""Range of lengths [m]. A vertex that has moved a thousand times further is lost."""

MAX_INTEGER = 2**31 - 1
"""Largest integer: counts and vertex numbers of kernels have 32 bits."""

NUMBERS_ONLY = "iuf"
"""Kinds of numeric NumPy dtypes; text and bool are excluded."""


def to_floats(value: Any) -> np.ndarray:
    """Convert numbers of any shape to float64; other values become a single NaN."""
    try:
        given = np.asarray(value)
        if given.dtype.kind not in NUMBERS_ONLY and not (given.dtype.kind == "O" and _plain(given)):
            return np.array(np.nan)
        with np.errstate(all="ignore"):
            return given.astype(float, copy=False)
    except (TypeError, ValueError, OverflowError):
        return np.array(np.nan)


def _plain(given: np.ndarray) -> bool:
    """True if an object array contains neither text nor bool nor None."""
    return not any(isinstance(item, str | bytes | bool | None) for item in given.ravel())


def check_integer(name: str, value: Any, *, at_least: int = 1, at_most: int = MAX_INTEGER) -> int:
    """Check an integer and its range."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if is_integer and at_least <= value <= at_most:
        return int(value)
    too_large = at_most < MAX_INTEGER or (is_integer and value > MAX_INTEGER)
    expected = f"from {at_least} to {at_most}" if too_large else f"of at least {at_least}"
    raise ValueError(f"{name} must be a whole number {expected}, got {format_value(value)}")


def check_iterations(value: Any) -> None:
    """Check a solver's `iterations`: integer, or None if set by the call."""
    if value is not None:
        check_integer("iterations", value)


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    below: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> float:
    """Check a finite number and its range."""
    numbers = to_floats(value)
    low, high = above if at_least is None else at_least, below if at_most is None else at_most
    if numbers.ndim == 0:
        given = float(numbers)
        inside = (
            (above is None or given > above)
            and (at_least is None or given >= at_least)
            and (below is None or given < below)
            and (at_most is None or given <= at_most)
        )
        if inside and np.isfinite(given):
            return given
    if low is not None and high is not None:
        expected = f"must lie between {low:g} and {high:g}"
    elif low is not None:
        expected = f"must be a finite number {'greater than' if at_least is None else 'of at least'} {low:g}"
    else:
        expected = "must be one finite number"
    raise ValueError(f"{name} {expected}, got {format_value(value)}")


def check_positive(name: str, value: Any, unit: str) -> float:
    """Check a positive number whose powers neither overflow nor underflow float64."""
    numbers = to_floats(value)
    given = float(numbers) if numbers.ndim == 0 else np.nan
    if not 0 < given < np.inf:
        raise ValueError(f"{name} must be positive and finite [{unit}], got {format_value(value)}")
    if not MIN_MAGNITUDE <= given <= MAX_MAGNITUDE:
        raise ValueError(
            f"{name} must lie between {MIN_MAGNITUDE:g} and {MAX_MAGNITUDE:g} [{unit}], got "
            f"{format_value(value)}"
        )
    return given


def check_flag(name: str, value: Any) -> bool:
    """Check a bool; other truthy or falsy values raise an error."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {format_value(value)}")
    return bool(value)


def check_choice(name: str, value: Any, known: Iterable[str]) -> str:
    """Check a string against the known choices."""
    words = list(known)
    if isinstance(value, str) and value in words:
        return value
    choices = f"{', '.join(map(repr, words[:-1]))} or {words[-1]!r}" if len(words) > 1 else repr(words[0])
    raise ValueError(f"{name} must be {choices}, got {format_value(value)}")


def check_vectors(
    name: str,
    values: Any,
    count: int,
    error: type[ValueError] = ValueError,
    limit: float = MAX_LENGTH,
    batch_size: int | None = None,
    per: str = "vertex",
) -> np.ndarray:
    """Check finite vectors, one per vertex.

    Args:
        name: Name of the argument, for messages.
        values: Array-like.
        count: Number of rows.
        error: Class of the error.
        limit: Largest magnitude.
        batch_size: Batch size. If given, a leading batch axis of this length is accepted.
        per: Singular name of the row's owner, for messages.

    Returns:
        (count, 3) or (batch_size, count, 3) float64 array. It is the array itself if that is valid already.

    Raises:
        ValueError: Shape or values are invalid; `error` is raised.
    """
    rows = to_floats(values)
    shapes = [(count, 3)] if batch_size is None else [(count, 3), (batch_size, count, 3)]
    if rows.shape not in shapes:
        actual = f"shape {rows.shape}" if rows.ndim else format_value(values)
        expected = " or ".join(map(str, shapes))
        raise error(f"{name} must have shape {expected}, one row of three numbers per {per}; got {actual}")
    bad = np.count_nonzero(~np.isfinite(rows).all(axis=-1))
    if bad:
        raise error(f"{name} has NaN or infinite values for {bad} of {rows.size // 3} vertices")
    if np.abs(rows).max(initial=0) > limit:
        raise error(f"{name} has values up to {np.abs(rows).max():.3g}; the limit is {limit:g}")
    return rows


def check_path(value: Any, what: str) -> Path:
    """Check a file or folder path."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{what} must be text or a pathlib.Path, got {format_value(value)}")
    path = Path(value)
    if "\0" in str(path):
        raise ValueError(f"{what} must not contain NUL characters, got {format_value(value)}")
    return path


def iterate_argument(values: Any, what: str) -> Iterator[Any]:
    """Iterate over an argument; `what` describes the expected value in the error message."""
    try:
        return iter(values)
    except TypeError:
        raise TypeError(f"{what}; got {format_value(values)}") from None


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return the elements of an iterable; other values become a single element, rejected by later checks."""
    try:
        return tuple(value)
    except TypeError:
        return (value,)


def check_thread_count(value: Any) -> int | None:
    """Check a number of threads; None means all cores.

    Threads beyond the number of cores only wait for each other. The limit is 64, or four per core if that is
    more.
    """
    return (
        None if value is None else check_integer("threads", value, at_most=max(64, 4 * (os.cpu_count() or 1)))
    )


def format_value(value: Any, limit: int = 60) -> str:
    """Return `repr` cut to a readable length."""
    text = " ".join(repr(value).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def comma_list(names: Iterable[str]) -> str:
    """Join quoted names with commas."""
    return ", ".join(repr(name) for name in names)


def match_name(name: str, known: Iterable[str]) -> str | None:
    """Find a known name whatever its case and underscores: NeoHookean is neo_hookean; None if unknown."""

    def normalize(one: str) -> str:
        return one.replace("_", "").casefold()

    return next((own for own in known if normalize(own) == normalize(name)), None)


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Suggest the known name closest to a mistyped one, or list all known names."""
    known = list(known)
    folded = {one.casefold(): one for one in reversed(known)}
    near = [folded[one] for one in difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)]
    return f"did you mean {near[0]!r}?" if near else f"known here: {comma_list(known)}."
