"""Packed term data as trees of arrays, with operations independent of the term."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from supple.terms import Incidence, Term


def map_rows(function: Callable, *rows: Any) -> Any:
    """Apply function(a, b, ...) to corresponding arrays (rows, fields, lanes) of packed term data.

    Other fields are copied from the last argument.
    """
    if isinstance(rows[0], tuple):
        values = [map_rows(function, *fields) for fields in zip(*rows, strict=True)]
        kind = type(rows[0])
        return kind._make(values) if hasattr(kind, "_make") else tuple(values)
    return function(*rows) if isinstance(rows[0], np.ndarray) and rows[0].ndim == 3 else rows[-1]


def row_arrays(rows: Any) -> tuple[np.ndarray, ...]:
    """All arrays (rows, fields, lanes) of packed term data."""
    arrays: list[np.ndarray] = []
    map_rows(arrays.append, rows)
    return tuple(arrays)


def empty_rows(term: Term, count: int, lanes: int, n: int, dtype: np.dtype) -> Any:
    """Allocate `count` rows of a term without incidences, for a model of n vertices."""
    none = np.empty(0, np.int64)
    return term.rows(
        Incidence(none, none, none, none, np.full((count, lanes), n, np.int32), dtype), np.zeros(1, np.int64)
    )
