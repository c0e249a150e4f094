"""Reader of data sets; arrays are loaded on access."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.datasets.errors import DatasetError
from supple.datasets.read.quantities import SHORT_NAMES
from supple.datasets.read.training_pairs import Pairs
from supple.datasets.store.dataset_store import OUTCOMES, Store
from supple.datasets.store.summary import good_samples, reports, statistics
from supple.datasets.store.zarr_arrays import Shard, read_array
from supple.support.arguments import check_flag, check_integer, check_path, suggest_name

if TYPE_CHECKING:
    from supple.scene import SceneFile

MAX_OPEN_SHARDS = 512
"""Maximum number of memory-mapped shards per quantity; the least recently used one is closed."""


def open_dataset(path: Any) -> Dataset:
    """Open a data set, finished or not. Arrays are read on access.

    Args:
        path: Folder of the store.

    Returns:
        The data set.

    Raises:
        DatasetError: The folder is not a readable data set.

    Example: `supple.data.open("bar.zarr")["positions"][0]` reads the positions of the first sample.
    """
    return Dataset(Store(check_path(path, "the folder of a data set")))


class Samples:
    """One quantity of all samples as a lazy array (count, ...).

    `[i]` is a read-only view of one sample; `[i:j]` and `[ids]` are stacked copies. Samples without a result
    are NaN.

    Attributes:
        name: Name of the quantity.
        shape: (count, ...) shape.
        dtype: Data type.
        dims: Dimension names.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store, self.name = store, name
        quantity = next(quantity for quantity in store.quantities if quantity.name == name)
        self.shape, self.dtype = (store.count, *quantity.shape), store.dtype
        self.dims = ("sample", *quantity.axes)
        self._open: OrderedDict[int, Shard] = OrderedDict()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which: Any) -> np.ndarray:
        if isinstance(which, int | np.integer):
            return self._read_one(int(which))
        if isinstance(which, slice):
            which = np.arange(*which.indices(len(self)))
        ids = np.asarray(which)
        ids = np.flatnonzero(ids) if ids.dtype == bool else ids
        return self._read_many(ids.astype(np.int64))

    def _read_many(self, ids: np.ndarray) -> np.ndarray:
        """Stacked samples (k, ...), read shard by shard."""
        ids = np.where(ids < 0, ids + len(self), ids)
        if len(ids) and not (ids.min() >= 0 and ids.max() < len(self)):
            wrong = ids[(ids < 0) | (ids >= len(self))][0]
            raise IndexError(f"{self.name} has samples 0 to {len(self) - 1}; got {wrong}")
        samples = np.empty((len(ids), *self.shape[1:]), self.dtype)
        shards, slots = np.divmod(ids, self._store.shard)
        for number in np.unique(shards):
            in_shard, shard = shards == number, self._shard(int(number))
            samples[in_shard] = np.nan if shard is None else shard.read_chunks(slots[in_shard])
        return samples

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype)

    def _read_one(self, sample: int) -> np.ndarray:
        sample = sample + len(self) if sample < 0 else sample
        if not 0 <= sample < len(self):
            raise IndexError(f"{self.name} has samples 0 to {len(self) - 1}; got {sample}")
        shard, slot = divmod(sample, self._store.shard)
        shard_chunks = self._shard(shard)
        if shard_chunks is None:
            return np.full(self.shape[1:], np.nan, self.dtype)
        return shard_chunks[slot]

    def _shard(self, number: int) -> Shard | None:
        """Memory-mapped shard; None without a manifest, which marks unfinished shards."""
        if number in self._open:
            self._open.move_to_end(number)
            return self._open[number]
        if not self._store.manifest_file(number).exists():
            return None
        path = self._store.file(self.name, number)
        if not path.exists():
            raise DatasetError(
                f"{path} is missing, although its shard is recorded as finished; `supple dataset "
                "verify` lists all missing files."
            )
        self._open[number] = Shard(path, self.shape[1:], self.dtype, self._store.shard)
        if len(self._open) > MAX_OPEN_SHARDS:
            self._open.popitem(last=False)
        return self._open[number]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_open": OrderedDict()}

    def __repr__(self) -> str:
        return f"<Samples {self.name!r}: {self.shape} {self.dtype}>"


class Displacements(Samples):
    """Displacements [m]: positions minus rest positions."""

    def __init__(self, store: Store, rest: np.ndarray) -> None:
        super().__init__(store, "positions")
        self._rest = rest.astype(store.dtype)

    def _read_one(self, sample: int) -> np.ndarray:
        return super()._read_one(sample) - self._rest

    def _read_many(self, ids: np.ndarray) -> np.ndarray:
        samples = super()._read_many(ids)
        samples -= self._rest
        return samples


class Dataset(Mapping[str, Any]):
    """Data set of equilibria: `data["positions"][0]`, `data["gravity.y"]`, `data["relative_residual"]`.

    Names are the stored quantities, the varied quantities (`inputs`), the columns of the report, and the
    arrays shared by all samples (`rest`: points, cells, surface, edges, mass, body, pinned).

    Args:
        store: Opened store of the data set; `open_dataset` opens it from a path.
    """

    def __init__(self, store: Store) -> None:
        self.store, self.path = store, store.path
        self.title: str = store.facts["title"]
        self._samples: dict[str, Samples] = {}

    @property
    def count(self) -> int:
        """Total number of samples, solved or unsolved."""
        return self.store.count

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """Values (count,) or (count, size) of each varied quantity."""
        return self.store.inputs

    @property
    def input_matrix(self) -> np.ndarray:
        """(count, d) values of all varied quantities, concatenated in the order of `inputs`."""
        return np.column_stack([*self.inputs.values()])

    @cached_property
    def report(self) -> dict[str, np.ndarray]:
        """Report columns (count,) by name.

        The columns are outcome (a code, see `outcomes`), relative residual, position error, energy [J],
        iterations, seconds, inverted, retries, warm and stable.
        """
        return reports(self.store)

    @property
    def outcomes(self) -> np.ndarray:
        """(count,) sample outcomes as words."""
        return np.array(OUTCOMES)[self.report["outcome"]]

    @cached_property
    def ids(self) -> np.ndarray:
        """Ids of converged samples; all other samples have a report but no positions."""
        return np.flatnonzero(good_samples(self.report))

    @cached_property
    def rest(self) -> dict[str, np.ndarray]:
        """Arrays shared by all samples, by name."""
        folder = self.path / "rest"
        return {file.parent.name: read_array(file.parent) for file in sorted(folder.glob("*/zarr.json"))}

    @cached_property
    def stats(self) -> dict[str, dict[str, np.ndarray]]:
        """Per-coordinate mean, std, rms, min and max of every quantity and input.

        Computed from the good training samples only, so that no validation or test data enters the
        normalization; from all good samples if none is in the training part.
        """
        return statistics(self.store, self.store.finished_shards(), self.report)

    def split(self, name: str) -> np.ndarray:
        """Ids of the good samples in a split. Samples keep their split when the data set grows.

        Args:
            name: "train", "valid" or "test".

        Returns:
            Ids of the samples.

        Raises:
            DatasetError: There is no such split.
        """
        parts = self.store.parts_of(self.ids)
        if name not in parts:
            raise DatasetError(f"there is no part {name!r}; {suggest_name(name, parts)}")
        return parts[name]

    def __getitem__(self, name: str) -> Any:
        name = SHORT_NAMES.get(name, name)
        if name in {quantity.name for quantity in self.store.quantities}:
            if name not in self._samples:
                self._samples[name] = Samples(self.store, name)
            return self._samples[name]
        if name == "displacements" and any(
            quantity.name == "positions" for quantity in self.store.quantities
        ):
            return Displacements(self.store, self.rest["points"])
        for arrays in (self.inputs, self.report, self.rest):
            if name in arrays:
                return arrays[name]
        raise KeyError(f"the data set has no {name!r}; {suggest_name(name, list(self))}")

    def __iter__(self) -> Iterator[str]:
        yield from (quantity.name for quantity in self.store.quantities)
        yield from self.inputs
        yield from self.report
        yield from self.rest

    def __len__(self) -> int:
        return len(list(iter(self)))

    def sample(self, number: int) -> dict[str, Any]:
        """All quantities, inputs and report values of one sample.

        Args:
            number: Sample id.

        Returns:
            Values by name, including "outcome".
        """
        values = {quantity.name: self[quantity.name][number] for quantity in self.store.quantities}
        values |= {label: column[number] for label, column in self.inputs.items()}
        return (
            values
            | {name: column[number] for name, column in self.report.items()}
            | {"outcome": str(self.outcomes[number])}
        )

    def pairs(
        self,
        split: str | None = None,
        inputs: Sequence[str] | None = None,
        output: str | Sequence[str] = "displacements",
        normalize: bool = True,
    ) -> Pairs:
        """Input-output pairs as float32, usable as a map-style dataset by `torch.utils.data.DataLoader`.

        Args:
            split: "train", "valid" or "test"; all good samples by default.
            inputs: Names of varied quantities; all by default.
            output: Name of a stored quantity, or a list of names, which gives a dictionary per sample.
            normalize: Subtract means and divide by standard deviations. Both come from the good training
                samples for every split, so that no validation or test data enters the normalization.

        Returns:
            Sequence of pairs (input, output).

        Raises:
            DatasetError: A name is not in the data set.
        """
        ids = self.ids if split is None else self.split(split)
        return Pairs(self, ids, list(self.inputs) if inputs is None else list(inputs), output, normalize)

    def stream(self, batch_size: int = 64, shuffle: bool = True, seed: int = 0, **options: Any) -> Any:
        """Batches of `pairs` as a `torch.utils.data.IterableDataset`; requires torch.

        Use it with `DataLoader(..., batch_size=None)` and any number of workers.

        Args:
            batch_size: Samples per batch.
            shuffle: Shuffle the order of shards and the samples within groups of shards.
            seed: Seed of the shuffling.
            **options: Options of `pairs`.

        Returns:
            Iterable over batches.
        """
        batch_size, shuffle = check_integer("batch_size", batch_size), check_flag("shuffle", shuffle)
        from supple.datasets.read.torch_adapter import Stream

        return Stream(self.pairs(**options), batch_size, shuffle, seed)

    def graph(self, number: int | None = None) -> dict[str, np.ndarray]:
        """Mesh graph for PyTorch Geometric.

        Args:
            number: Sample id; None returns the rest mesh only.

        Returns:
            edge_index (2, 2 k) with both directions of every edge, pos (n, 3) rest positions [m], and for a
            sample x (d,) inputs and y (n, 3) displacements [m].
        """
        edges = self.rest["edges"].astype(np.int64)
        both = np.concatenate([edges, edges[:, ::-1]]).T
        arrays = {"edge_index": both.copy(), "pos": self.rest["points"].astype(np.float32)}
        if number is None:
            return arrays
        sample = check_integer("the sample of a graph", number, at_least=-self.count, at_most=self.count - 1)
        return arrays | {
            "x": self.input_matrix[sample].astype(np.float32),
            "y": self["displacements"][sample],
        }

    def to_xarray(self) -> Any:
        """Load the full data set into an `xarray.Dataset`; requires xarray.

        Returns:
            The `xarray.Dataset`.

        Raises:
            DatasetError: xarray is not installed.
        """
        try:
            import xarray
        except ImportError:
            raise DatasetError("to_xarray needs xarray: pip install xarray.") from None
        variables: dict[str, Any] = {
            k.name: (self[k.name].dims, self[k.name][:]) for k in self.store.quantities
        }
        variables |= {name: (("sample", f"{name}_")[: v.ndim], v) for name, v in self.inputs.items()}
        variables |= {name: (("sample",), v) for name, v in self.report.items()}
        return xarray.Dataset(variables, attrs={"title": self.title})

    def scene(self) -> SceneFile:
        """Load the scene with its original, unvaried values.

        Returns:
            The scene file.
        """
        from supple.scene import load_scene

        return load_scene(self.path / "scene.toml", self.path)

    def __repr__(self) -> str:
        names = ", ".join(quantity.name for quantity in self.store.quantities)
        return (
            f"<Dataset {str(self.path)!r}: {len(self.ids):,} of {self.count:,} samples, {names} of "
            f"{self.store.facts['vertices']:,} vertices, varied {', '.join(self.inputs)}>"
        )
