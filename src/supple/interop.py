"""Positions as arrays of other libraries."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from supple.checks import one_of

LIBRARIES = ("torch", "cupy")


def array_of(
    like: str, positions: np.ndarray | None, rest: np.ndarray, records: Any, copies: int | None = None
) -> Any:
    """Positions (n, 3) as an array of a library: from the device's displacement records (n + 1, 4), if there
    are any, through the CUDA array interface; else from the host's positions. copies: so many one after the
    other among the records, which give (copies, n, 3)."""
    one_of("like", like, LIBRARIES)
    try:
        library = import_module(like)
    except ImportError as error:
        raise ValueError(f"positions like {like!r} need that library: pip install {like}") from error
    if records is None:
        return library.asarray(positions)
    there = {"device": "cuda"} if like == "torch" else {}
    moved = library.asarray(records, **there)
    moved = (moved if copies is None else moved.reshape(copies, len(rest) + 1, 4))[..., :-1, :3]
    return moved + library.asarray(rest.astype(records.dtype), **there)
