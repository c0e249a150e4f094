"""Batch streams for PyTorch; no other data set module imports it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from supple.datasets.read.training_pairs import Pairs


class Stream(IterableDataset):  # type: ignore[misc]
    """Iterable of batches (x (k, d), y (k, ...)) over all pairs, once per epoch.

    Shuffling randomizes the order of shards and mixes the samples within groups of `MIXED` shards, so that
    files are read group by group.
    """

    MIXED = 8
    """Number of shards whose samples are shuffled together."""

    def __init__(self, pairs: Pairs, batch_size: int, shuffle: bool, seed: int) -> None:
        self.pairs, self.batch_size, self.shuffle, self.seed, self.epoch = pairs, batch_size, shuffle, seed, 0

    def __len__(self) -> int:
        return -(-len(self.pairs) // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        rng = np.random.default_rng([self.seed, self.epoch])
        self.epoch += 1
        shards = self.pairs.ids // self.pairs.shard
        order = np.unique(shards)
        if self.shuffle:
            rng.shuffle(order)
        for first in range(worker * self.MIXED, len(order), workers * self.MIXED):
            numbers = np.flatnonzero(np.isin(shards, order[first : first + self.MIXED]))
            if self.shuffle:
                rng.shuffle(numbers)
            for begin in range(0, len(numbers), self.batch_size):
                x, y = self.pairs.batch(numbers[begin : begin + self.batch_size])
                yield torch.from_numpy(x), _tensors(y)


def _tensors(y: Any) -> Any:
    """Convert arrays to tensors; several outputs form a dictionary."""
    if isinstance(y, dict):
        return {name: torch.from_numpy(values) for name, values in y.items()}
    return torch.from_numpy(y)
