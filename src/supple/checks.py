"""Checks of what a user gives. Each returns the value, or raises a sentence that says what would be right."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

SMALLEST, LARGEST = 1e-30, 1e30
"""Numbers in SI units may be this large, and positive ones this small: then squares and products of them stay
within float64."""

SHORTEST, LONGEST = 1e-12, 1e12
"""Lengths [m] may be this small and this large. A vertex that has moved a thousand times further is lost."""

MOST = 2**31 - 1
"""The largest whole number: counts and vertex numbers of kernels have 32 bits."""

NUMBERS_ONLY = "iuf"
"""Kinds of NumPy types that are numbers; text and bools are none."""


def floats(value: Any) -> np.ndarray:
    """Numbers of any shape as float64; NaN in place of what is no number."""
    try:
        given = np.asarray(value)
        if given.dtype.kind not in NUMBERS_ONLY and not (given.dtype.kind == "O" and _plain(given)):
            return np.array(np.nan)
        with np.errstate(all="ignore"):
            return given.astype(float, copy=False)
    except (TypeError, ValueError, OverflowError):
        return np.array(np.nan)


def _plain(given: np.ndarray) -> bool:
    return not any(isinstance(item, str | bytes | bool | None) for item in given.ravel())


def whole_number(name: str, value: Any, *, at_least: int = 1, at_most: int = MOST) -> int:
    """One whole number in range."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if is_whole and at_least <= value <= at_most:
        return int(value)
    too_large = at_most < MOST or (is_whole and value > MOST)
    wanted = f"from {at_least} to {at_most}" if too_large else f"of at least {at_least}"
    raise ValueError(f"{name} must be a whole number {wanted}, got {shown(value)}")


def check_iterations(value: Any) -> None:
    """A solver's `iterations`: a whole number, or None where a call sets the limit."""
    if value is not None:
        whole_number("iterations", value)


def one_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    below: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> float:
    """One finite number in range."""
    numbers = floats(value)
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
        wanted = f"must lie between {low:g} and {high:g}"
    elif low is not None:
        wanted = f"must be a finite number {'greater than' if at_least is None else 'of at least'} {low:g}"
    else:
        wanted = "must be one finite number"
    raise ValueError(f"{name} {wanted}, got {shown(value)}")


def positive(name: str, value: Any, unit: str) -> float:
    """One positive number of a unit, neither so large nor so small that its powers leave float64."""
    numbers = floats(value)
    given = float(numbers) if numbers.ndim == 0 else np.nan
    if not 0 < given < np.inf:
        raise ValueError(f"{name} must be positive and finite [{unit}], got {shown(value)}")
    if not SMALLEST <= given <= LARGEST:
        raise ValueError(f"{name} must lie between {SMALLEST:g} and {LARGEST:g} [{unit}], got {shown(value)}")
    return given


def flag(name: str, value: Any) -> bool:
    """True or False, and not something that merely counts as such."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    """One of several words."""
    words = list(known)
    if isinstance(value, str) and value in words:
        return value
    told = f"{', '.join(map(repr, words[:-1]))} or {words[-1]!r}" if len(words) > 1 else repr(words[0])
    raise ValueError(f"{name} must be {told}, got {shown(value)}")


def finite_rows(
    name: str,
    values: Any,
    count: int,
    error: type[ValueError] = ValueError,
    limit: float = LONGEST,
    copies: int | None = None,
    per: str = "vertex",
) -> np.ndarray:
    """(count, 3) finite float64, one row for each vertex; the array itself where it is that already. copies:
    how long an axis before those may be."""
    rows = floats(values)
    shapes = [(count, 3)] if copies is None else [(count, 3), (copies, count, 3)]
    if rows.shape not in shapes:
        found = f"shape {rows.shape}" if rows.ndim else shown(values)
        wanted = " or ".join(map(str, shapes))
        raise error(f"{name} must have shape {wanted}, one row of three numbers per {per}; got {found}")
    bad = np.count_nonzero(~np.isfinite(rows).all(axis=-1))
    if bad:
        raise error(f"{name} has NaN or infinite values for {bad} of {rows.size // 3} vertices")
    if np.abs(rows).max(initial=0) > limit:
        raise error(f"{name} has values up to {np.abs(rows).max():.3g}; the limit is {limit:g}")
    return rows


def a_path(value: Any, what: str) -> Path:
    """The path of a file or folder."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{what} is needed as text or as a pathlib.Path, got {shown(value)}")
    path = Path(value)
    if "\0" in str(path):
        raise ValueError(f"{what} must not have NUL characters in it, got {shown(value)}")
    return path


def each(values: Any, what: str) -> Iterator[Any]:
    """The items of a list or of anything else that can be gone through; `what` says what it should be."""
    try:
        return iter(values)
    except TypeError:
        raise TypeError(f"{what}; got {shown(values)}") from None


def items(value: Any) -> tuple[Any, ...]:
    """What a list or anything else that can be gone through consists of; what cannot is its only item, which
    whoever looks at items refuses."""
    try:
        return tuple(value)
    except TypeError:
        return (value,)


def thread_count(value: Any) -> int | None:
    """How many threads: None for all cores. More than the cores only wait for each other, so that beyond 64,
    or four for each core where that is more, it is a mistake."""
    return (
        None if value is None else whole_number("threads", value, at_most=max(64, 4 * (os.cpu_count() or 1)))
    )


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
