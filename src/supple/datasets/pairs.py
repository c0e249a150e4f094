"""Inputs and outputs of samples, as networks are trained on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.checks import closest
from supple.datasets.errors import DatasetError

if TYPE_CHECKING:
    from supple.datasets.opened import Dataset


class Pairs(Sequence[tuple[np.ndarray, np.ndarray]]):
    """(x (d,), y) float32 of samples, `ids`. It has what a map-style dataset of PyTorch must have, and
    does not need PyTorch.

    x_mean, x_std, y_mean, y_std: what they were normalised by, 0 and 1 where they were not; of inputs that
    the design has evenly in their logarithm, that of the logarithm."""

    def __init__(
        self, data: Dataset, ids: np.ndarray, inputs: list[str], output: str, normalise: bool
    ) -> None:
        wrong = [name for name in inputs if name not in data.inputs]
        if wrong:
            raise DatasetError(f"{wrong[0]!r} is no input of the data set; {closest(wrong[0], data.inputs)}")
        if not hasattr(data[output], "dims"):
            known = [kind.name for kind in data.store.kinds]
            raise DatasetError(f"{output!r} is not stored for every sample; {closest(output, known)}")
        self.ids, self.names, self.output = np.asarray(ids), inputs, output
        self._y = data[output]
        logarithmic = (
            {v["label"] for v in data.store.facts["varied"] if v["scale"] == "log"} if normalise else ()
        )
        x = np.column_stack([_even(data.inputs[name], name in logarithmic) for name in inputs])
        self.x_mean: Any
        self.x_std: Any
        self.x_mean, self.x_std = _moments(x) if normalise else (0.0, 1.0)
        self._x = ((x - self.x_mean) / self.x_std).astype(np.float32)
        self.y_mean, self.y_std, self._normalised = 0.0, 1.0, normalise
        if normalise:
            self.y_mean, self.y_std = self._output_moments(data)

    def _output_moments(self, data: Dataset) -> tuple[Any, Any]:
        """Of each coordinate, from the statistics where they are stored, else from some samples."""
        if self.output in data.stats:
            found = data.stats[self.output]
            return found["mean"].astype(np.float32), _not_zero(found["std"]).astype(np.float32)
        some = self.ids[:: max(1, len(self.ids) // 256)]
        if not len(some):
            return 0.0, 1.0
        values = self._y[some]
        mean, deviation = _moments(values.reshape(-1, values.shape[-1]))
        return mean.astype(np.float32), deviation.astype(np.float32)

    @property
    def shard(self) -> int:
        """Samples in a shard of the store."""
        return self._y._store.shard

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, number: Any) -> Any:
        sample = int(self.ids[number])
        return self._x[sample], self._normal(self._y[sample])

    def __getitems__(self, numbers: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Several at once, as the loader of PyTorch asks for them."""
        return [self[number] for number in numbers]

    def batch(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x (k, d) and y (k, ...)."""
        ids = self.ids[numbers]
        return self._x[ids], self._normal(self._y[ids])

    def _normal(self, y: np.ndarray) -> np.ndarray:
        if not self._normalised:
            return np.asarray(y, np.float32)
        found = np.subtract(y, self.y_mean, dtype=np.float32)
        found /= self.y_std
        return found

    def restored(self, y: Any) -> Any:
        """Outputs of a network in their own units."""
        return y * self.y_std + self.y_mean


def _even(values: np.ndarray, logarithmic: bool) -> np.ndarray:
    return np.log(values) if logarithmic else values


def _moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return values.mean(axis=0), _not_zero(values.std(axis=0))


def _not_zero(deviation: np.ndarray) -> np.ndarray:
    """What does not vary is left as it is."""
    return np.where(deviation > 0, deviation, 1.0)
