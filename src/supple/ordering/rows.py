"""The rows of terms as trees of arrays: what is done to all arrays alike, whatever the term."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from supple.terms import Term, Visits


def map_rows(function: Callable, *rows: Any) -> Any:
    """Terms' rows with function(a, b, ...) in place of all arrays (rows, fields, lanes); what else they have
    is that of the last of them."""
    if isinstance(rows[0], tuple):
        values = [map_rows(function, *fields) for fields in zip(*rows, strict=True)]
        kind = type(rows[0])
        return kind._make(values) if hasattr(kind, "_make") else tuple(values)
    return function(*rows) if isinstance(rows[0], np.ndarray) and rows[0].ndim == 3 else rows[-1]


def row_arrays(rows: Any) -> tuple[np.ndarray, ...]:
    """All arrays (rows, fields, lanes) of terms' rows."""
    found: list[np.ndarray] = []
    map_rows(found.append, rows)
    return tuple(found)


def empty_rows(term: Term, count: int, lanes: int, n: int, dtype: np.dtype) -> Any:
    """That many rows of a term without a visit, of n vertices."""
    none = np.empty(0, np.int64)
    return term.rows(
        Visits(none, none, none, none, np.full((count, lanes), n, np.int32), dtype), np.zeros(1, np.int64)
    )
