"""Splits of a data set, by pseudorandom numbers that depend on sample id and seed only."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


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
