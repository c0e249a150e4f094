"""Conversion of positions to arrays of PyTorch and CuPy."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from supple.support.arguments import check_choice

LIBRARIES = ("torch", "cupy")
"""Names of the supported array libraries."""


def convert_positions(
    like: str, positions: np.ndarray | None, rest: np.ndarray, vectors: Any, batch_size: int | None = None
) -> Any:
    """Return positions in the array type of another library.

    Device displacements are shared through the CUDA array interface; otherwise the array is made from the
    host's positions.

    Args:
        like: Name in `LIBRARIES`.
        positions: Host positions, used if there are no device displacements.
        rest: (n, 3) rest positions [m].
        vectors: (n + 1, 4) displacements in device memory, padded vectors [m], or None.
        batch_size: Batch size. The displacements of batch members are then stored one after the other.

    Returns:
        (n, 3) positions [m], or (batch_size, n, 3) for a batch.

    Raises:
        ValueError: The library is unknown or not installed.
    """
    check_choice("like", like, LIBRARIES)
    try:
        library = import_module(like)
    except ImportError as error:
        raise ValueError(f"positions like {like!r} need that library: pip install {like}") from error
    if vectors is None:
        return library.asarray(positions)
    options = {"device": "cuda"} if like == "torch" else {}
    displacements = library.asarray(vectors, **options)
    displacements = (
        displacements if batch_size is None else displacements.reshape(batch_size, len(rest) + 1, 4)
    )[..., :-1, :3]
    return displacements + library.asarray(rest.astype(vectors.dtype), **options)
