"""A path through the points of a design on which neighbours are near each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

BLOCK = 4096
"""Samples that are ordered together: the time grows with the square of it."""


def coordinates(columns: Mapping[str, np.ndarray], logarithmic: set[str]) -> np.ndarray:
    """(count, d) the values of all quantities, each from 0 to 1 over the design."""
    parts = []
    for label, values in columns.items():
        x = np.log(values) if label in logarithmic and (values > 0).all() else values
        low, high = x.min(axis=0), x.max(axis=0)
        parts.append((x - low) / np.where(high > low, high - low, 1.0))
    return np.concatenate(parts, axis=1)


def path_through(points: np.ndarray) -> np.ndarray:
    """(count,) numbers of points (count, d) in an order in which each is followed by the nearest one that is
    left, block by block; the first is the one nearest to the lowest corner, or to the end of the last
    block."""
    order: list[int] = []
    at = np.zeros(points.shape[1])
    for first in range(0, len(points), BLOCK):
        left = np.arange(first, min(first + BLOCK, len(points)))
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
    """(count,) numbers of samples along a path, where they came in parts: first so many, then until there
    were so many, and then all. What comes later does not change the order of those before."""
    count = len(next(iter(columns.values())))
    ends = [0, *(before for before in counts if before < count), count]
    parts = []
    for first, last in pairwise(ends):
        own = {label: values[first:last] for label, values in columns.items()}
        parts.append(first + path_through(coordinates(own, logarithmic)))
    return np.concatenate(parts)


def drawn_share(ids: np.ndarray, seed: int, purpose: int) -> np.ndarray:
    """(count,) numbers from 0 to below 1 that depend on the id of a sample, the seed and the purpose
    alone, so that they stay when the set grows: SplitMix64 of the three."""
    with np.errstate(over="ignore"):
        mixed = np.uint64((seed * 0x9E3779B97F4A7C15 + purpose * 0xD1B54A32D192ED03) % 2**64)
        z = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + mixed
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(float) / 2**53


SPLIT, CHECK = 1, 2
"""Purposes of shares: which part a sample belongs to, and whether it is solved twice."""


def split_of(ids: np.ndarray, seed: int, parts: Mapping[str, float]) -> dict[str, np.ndarray]:
    """The ids that belong to each part."""
    share = drawn_share(ids, seed, SPLIT)
    ends = np.cumsum([0.0, *parts.values()])
    ends[-1] = 1.0
    return {name: ids[(share >= ends[k]) & (share < ends[k + 1])] for k, name in enumerate(parts)}
