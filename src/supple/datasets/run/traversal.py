"""Sample order: a path through the design that visits nearby points consecutively."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

BLOCK_SIZE = 4096
"""Number of samples ordered together; the cost grows quadratically."""


def coordinates(columns: Mapping[str, np.ndarray], logarithmic: set[str]) -> np.ndarray:
    """(count, d) quantity values, scaled to [0, 1] over the design.

    Args:
        columns: (count, size) values of each quantity.
        logarithmic: Labels of quantities to scale by their logarithm.
    """
    parts = []
    for label, values in columns.items():
        x = np.log(values) if label in logarithmic and (values > 0).all() else values
        low, high = x.min(axis=0), x.max(axis=0)
        parts.append((x - low) / np.where(high > low, high - low, 1.0))
    return np.concatenate(parts, axis=1)


def path_through(points: np.ndarray) -> np.ndarray:
    """Greedy nearest-neighbor order (count,) of points (count, d), block by block.

    Each block starts at the point nearest to the end of the previous one; the first starts at the point
    nearest to the origin.
    """
    order: list[int] = []
    at = np.zeros(points.shape[1])
    for first in range(0, len(points), BLOCK_SIZE):
        left = np.arange(first, min(first + BLOCK_SIZE, len(points)))
        while len(left):
            distance = ((points[left] - at) ** 2).sum(axis=1)
            k = int(distance.argmin())
            order.append(int(left[k]))
            at = points[left[k]]
            left = np.delete(left, k)
    return np.array(order, np.int64)


def path_in_parts(
    columns: Mapping[str, np.ndarray], logarithmic: set[str], counts: Sequence[int]
) -> np.ndarray:
    """(count,) sample order along a path, separate for each data set extension.

    Extensions do not change the order of earlier samples.

    Args:
        columns: (count, size) values of each quantity.
        logarithmic: Labels of quantities to scale by their logarithm.
        counts: Sample counts before each extension.
    """
    count = len(next(iter(columns.values())))
    ends = [0, *(before for before in counts if before < count), count]
    parts = []
    for first, last in pairwise(ends):
        own = {label: values[first:last] for label, values in columns.items()}
        parts.append(first + path_through(coordinates(own, logarithmic)))
    return np.concatenate(parts)
