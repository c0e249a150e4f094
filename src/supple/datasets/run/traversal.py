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


def pseudorandom_numbers(ids: np.ndarray, seed: int, purpose: int) -> np.ndarray:
    """(count,) pseudorandom numbers in [0, 1): SplitMix64 of sample id, seed and purpose.

    They do not depend on the sample count, so they stay the same when the data set grows.
    """
    with np.errstate(over="ignore"):
        mixed = np.uint64((seed * 0x9E3779B97F4A7C15 + purpose * 0xD1B54A32D192ED03) % 2**64)
        z = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + mixed
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(float) / 2**53


SPLIT_PURPOSE, CHECK_PURPOSE = 1, 2
"""Purposes of random numbers: assignment to a split, and selection for the cold-start check."""


def split_of(ids: np.ndarray, seed: int, parts: Mapping[str, float]) -> dict[str, np.ndarray]:
    """Ids that belong to each split.

    Args:
        ids: Sample ids.
        seed: Seed of the data set.
        parts: Fraction of each split.
    """
    share = pseudorandom_numbers(ids, seed, SPLIT_PURPOSE)
    ends = np.cumsum([0.0, *parts.values()])
    ends[-1] = 1.0
    return {name: ids[(share >= ends[k]) & (share < ends[k + 1])] for k, name in enumerate(parts)}
