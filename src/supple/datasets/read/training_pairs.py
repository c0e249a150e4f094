"""Input-output pairs of samples for training neural networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.datasets.errors import DatasetError
from supple.support.arguments import format_value, iterate_argument, suggest_name

if TYPE_CHECKING:
    from supple.datasets.read.dataset import Dataset


class Pairs(Sequence[tuple[np.ndarray, Any]]):
    """Pairs (x (d,), y) of float32 arrays; a map-style dataset for PyTorch that does not require PyTorch.

    For several outputs, y, y_mean and y_std are dictionaries by output name, which PyTorch's loader collates
    to dictionaries of batches. Means and standard deviations come from the good training samples, independent
    of the selected ids, or from all good samples if none is in the training part. Inputs sampled evenly in
    their logarithm are normalized in their logarithm.

    Attributes:
        ids: (k,) sample ids.
        names: Names of the inputs.
        output: Name or names of the outputs.
        x_mean, x_std: (d,) mean and standard deviation of the inputs; 0 and 1 without normalization.
        y_mean, y_std: Per-coordinate mean and standard deviation of the outputs; 0 and 1 without
            normalization.
    """

    def __init__(
        self,
        data: Dataset,
        ids: np.ndarray,
        inputs: list[str],
        output: str | Sequence[str],
        normalize: bool,
    ) -> None:
        wrong = [name for name in inputs if name not in data.inputs]
        if wrong:
            raise DatasetError(
                f"{wrong[0]!r} is not an input of the data set; {suggest_name(wrong[0], data.inputs)}"
            )
        self.ids, self.names, self.output = np.asarray(ids), inputs, output
        self._y = {name: _stored_array(data, name) for name in _names(output)}
        logarithmic = (
            {v["label"] for v in data.store.facts["varied"] if v["scale"] == "log"} if normalize else ()
        )
        x = np.column_stack([_linearize(data.inputs[name], name in logarithmic) for name in inputs])
        train = _training_ids(data) if normalize else np.empty(0, int)
        self.x_mean: Any
        self.x_std: Any
        self.x_mean, self.x_std = _moments(x[train]) if len(train) else (0.0, 1.0)
        self._x = ((x - self.x_mean) / self.x_std).astype(np.float32)
        self._moments = {name: _output_moments(data, name, values, train) for name, values in self._y.items()}
        self._normalized = bool(len(train))

    @property
    def y_mean(self) -> Any:
        """Per-coordinate output mean; a dictionary for several outputs."""
        return self._unwrap({name: mean for name, (mean, _) in self._moments.items()})

    @property
    def y_std(self) -> Any:
        """Per-coordinate output standard deviation; a dictionary for several outputs."""
        return self._unwrap({name: deviation for name, (_, deviation) in self._moments.items()})

    def _unwrap(self, by_name: dict[str, Any]) -> Any:
        """The single value if one output was requested by name, otherwise the dictionary."""
        return by_name[self.output] if isinstance(self.output, str) else by_name

    @property
    def shard(self) -> int:
        """Samples per shard of the store."""
        return next(iter(self._y.values()))._store.shard

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, number: Any) -> Any:
        sample = int(self.ids[number])
        return self._x[sample], self._outputs(sample)

    def __getitems__(self, numbers: list[int]) -> list[tuple[np.ndarray, Any]]:
        """List of several pairs, the batched access of PyTorch's loader."""
        return [self[number] for number in numbers]

    def batch(self, numbers: np.ndarray) -> tuple[np.ndarray, Any]:
        """Stacked x (k, d) and y (k, ...) of the pairs with the given numbers."""
        ids = self.ids[numbers]
        return self._x[ids], self._outputs(ids)

    def _outputs(self, which: Any) -> Any:
        return self._unwrap({name: self._normalize(name, values[which]) for name, values in self._y.items()})

    def _normalize(self, name: str, y: np.ndarray) -> np.ndarray:
        if not self._normalized:
            return np.asarray(y, np.float32)
        mean, deviation = self._moments[name]
        normalized = np.subtract(y, mean, dtype=np.float32)
        normalized /= deviation
        return normalized

    def denormalize(self, y: Any) -> Any:
        """Convert normalized network outputs to physical units; a dictionary for several outputs."""
        if isinstance(self.output, str):
            return y * self.y_std + self.y_mean
        return {name: y[name] * self._moments[name][1] + self._moments[name][0] for name in y}


def _names(output: Any) -> list[str]:
    """List of output names."""
    names = (
        [output]
        if isinstance(output, str)
        else list(iterate_argument(output, "output must be a name or a list of names"))
    )
    if not names or not all(isinstance(name, str) for name in names):
        raise DatasetError(
            f"output must be the name of a stored quantity, or a list of names; got {format_value(output)}."
        )
    return names


def _stored_array(data: Dataset, name: str) -> Any:
    """Lazy array of a stored per-sample output."""
    known = [quantity.name for quantity in data.store.quantities]
    try:
        stored = data[name]
    except KeyError:
        stored = None
    if not hasattr(stored, "dims"):
        raise DatasetError(f"{name!r} is not stored for every sample; {suggest_name(name, known)}")
    return stored


def _training_ids(data: Dataset) -> np.ndarray:
    """Ids of good training samples, otherwise of all good samples."""
    train = data.split("train")
    return train if len(train) else data.ids


def _output_moments(data: Dataset, name: str, stored: Any, train: np.ndarray) -> tuple[Any, Any]:
    """Per-coordinate mean and standard deviation of an output.

    Uses the stored statistics if available, otherwise a subset of the training samples.
    """
    if not len(train):
        return 0.0, 1.0
    known = name if name == "displacements" else stored.name
    if known in data.stats:
        moments = data.stats[known]
        return moments["mean"].astype(np.float32), _replace_zeros(moments["std"]).astype(np.float32)
    values = stored[train[:: max(1, len(train) // 256)]]
    mean, deviation = _moments(values.reshape(-1, values.shape[-1]))
    return mean.astype(np.float32), deviation.astype(np.float32)


def _linearize(values: np.ndarray, logarithmic: bool) -> np.ndarray:
    return np.log(values) if logarithmic else values


def _moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return values.mean(axis=0), _replace_zeros(values.std(axis=0))


def _replace_zeros(deviation: np.ndarray) -> np.ndarray:
    """Replace zero deviations by 1, which leaves constants unscaled."""
    return np.where(deviation > 0, deviation, 1.0)
