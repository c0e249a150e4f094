"""A data set, opened: arrays that are read when they are asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.checks import a_path, closest, flag, whole_number
from supple.datasets.arrays import Shard, read_array
from supple.datasets.errors import DatasetError
from supple.datasets.finishing import good_samples, reports, statistics
from supple.datasets.pairs import Pairs
from supple.datasets.quantities import SHORT
from supple.datasets.store import OUTCOMES, Store

if TYPE_CHECKING:
    from supple.scene import SceneFile

OPEN_SHARDS = 512
"""Shards that are mapped at a time; the one that was used longest ago is let go."""


def open_dataset(path: Any) -> Dataset:
    """The data set in a folder, finished or not. Nothing is read yet but what it is of."""
    return Dataset(Store(a_path(path, "the folder of a data set")))


class Samples:
    """One quantity of all samples, (count, ...): `[i]` is that of a sample, read-only and without a copy;
    `[i:j]` and `[ids]` are stacked. A sample that was not solved, or not to its tolerance, is NaN."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self.name = store, name
        kind = next(kind for kind in store.kinds if kind.name == name)
        self.shape, self.dtype = (store.count, *kind.shape), store.dtype
        self.dims = ("sample", *kind.axes)
        self._open: OrderedDict[int, Shard] = OrderedDict()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which: Any) -> np.ndarray:
        if isinstance(which, int | np.integer):
            return self._one(int(which))
        if isinstance(which, slice):
            which = np.arange(*which.indices(len(self)))
        ids = np.asarray(which)
        ids = np.flatnonzero(ids) if ids.dtype == bool else ids
        return self._several(ids.astype(np.int64))

    def _several(self, ids: np.ndarray) -> np.ndarray:
        """(k, ...) of samples (k,), shard by shard."""
        ids = np.where(ids < 0, ids + len(self), ids)
        if len(ids) and not (ids.min() >= 0 and ids.max() < len(self)):
            wrong = ids[(ids < 0) | (ids >= len(self))][0]
            raise IndexError(f"{self.name} has samples 0 to {len(self) - 1}; asked for {wrong}")
        found = np.empty((len(ids), *self.shape[1:]), self.dtype)
        shards, places = np.divmod(ids, self._store.shard)
        for number in np.unique(shards):
            mine, shard = shards == number, self._shard(int(number))
            found[mine] = np.nan if shard is None else shard.take(places[mine])
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype)

    def _one(self, sample: int) -> np.ndarray:
        sample = sample + len(self) if sample < 0 else sample
        if not 0 <= sample < len(self):
            raise IndexError(f"{self.name} has samples 0 to {len(self) - 1}; asked for {sample}")
        shard, place = divmod(sample, self._store.shard)
        found = self._shard(shard)
        if found is None:
            return np.full(self.shape[1:], np.nan, self.dtype)
        return found[place]

    def _shard(self, number: int) -> Shard | None:
        """A shard; None where it is not finished: files without an account do not count."""
        if number in self._open:
            self._open.move_to_end(number)
            return self._open[number]
        if not self._store.account_file(number).exists():
            return None
        path = self._store.file(self.name, number)
        if not path.exists():
            raise DatasetError(
                f"{path} is missing, though its shard is said to be finished; `supple dataset verify` "
                f"finds what else is."
            )
        self._open[number] = Shard(path, self.shape[1:], self.dtype, self._store.shard)
        if len(self._open) > OPEN_SHARDS:
            self._open.popitem(last=False)
        return self._open[number]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_open": OrderedDict()}

    def __repr__(self) -> str:
        return f"<Samples {self.name!r}: {self.shape} {self.dtype}>"


class Displaced(Samples):
    """Positions less those at rest."""

    def __init__(self, store: Store, rest: np.ndarray) -> None:
        super().__init__(store, "positions")
        self._rest = rest.astype(store.dtype)

    def _one(self, sample: int) -> np.ndarray:
        return super()._one(sample) - self._rest

    def _several(self, ids: np.ndarray) -> np.ndarray:
        found = super()._several(ids)
        found -= self._rest
        return found


class Dataset(Mapping[str, Any]):
    """A data set: `data["positions"][0]`, `data["gravity.y"]`, `data["imbalance"]`.

    Its names are those of the stored quantities, of the varied ones (`inputs`), of the columns of the report
    and of what all samples share (`rest`: points, cells, surface, edges, mass, body, pinned).
    """

    def __init__(self, store: Store) -> None:
        self.store, self.path = store, store.path
        self.title: str = store.facts["title"]
        self._samples: dict[str, Samples] = {}

    @property
    def count(self) -> int:
        """Samples of the design, solved or not."""
        return self.store.count

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """(count,) or (count, size) the values of each varied quantity."""
        return self.store.inputs

    @property
    def input_matrix(self) -> np.ndarray:
        """(count, d) all varied quantities side by side, in the order of `inputs`."""
        return np.column_stack([*self.inputs.values()])

    @cached_property
    def report(self) -> dict[str, np.ndarray]:
        """(count,) of each figure: outcome (see `outcomes`), imbalance, distance, energy [J], iterations,
        seconds, inverted, retries, warm, stable."""
        return reports(self.store)

    @property
    def outcomes(self) -> np.ndarray:
        """(count,) what became of every sample, in words."""
        return np.array(OUTCOMES)[self.report["outcome"]]

    @cached_property
    def ids(self) -> np.ndarray:
        """Of the samples that have reached their tolerance: all others have a report and no positions."""
        return np.flatnonzero(good_samples(self.report))

    @cached_property
    def rest(self) -> dict[str, np.ndarray]:
        """What all samples share."""
        folder = self.path / "rest"
        return {file.parent.name: read_array(file.parent) for file in sorted(folder.glob("*/zarr.json"))}

    @cached_property
    def stats(self) -> dict[str, dict[str, np.ndarray]]:
        """mean, std, rms, min and max of every quantity and input, for each coordinate, over the good samples
        for training: no others have a part in what networks see. Over all good ones where none is for
        training."""
        return statistics(self.store, self.store.finished(), self.report)

    def split(self, name: str) -> np.ndarray:
        """Ids of the samples for "train", "valid" or "test"; they stay in their part when the set grows."""
        parts = self.store.parts_of(self.ids)
        if name not in parts:
            raise DatasetError(f"there is no part {name!r}; {closest(name, parts)}")
        return parts[name]

    def __getitem__(self, name: str) -> Any:
        name = SHORT.get(name, name)
        if name in {kind.name for kind in self.store.kinds}:
            if name not in self._samples:
                self._samples[name] = Samples(self.store, name)
            return self._samples[name]
        if name == "displacements" and any(kind.name == "positions" for kind in self.store.kinds):
            return Displaced(self.store, self.rest["points"])
        for place in (self.inputs, self.report, self.rest):
            if name in place:
                return place[name]
        raise KeyError(f"the data set has no {name!r}; {closest(name, list(self))}")

    def __iter__(self) -> Iterator[str]:
        yield from (kind.name for kind in self.store.kinds)
        yield from self.inputs
        yield from self.report
        yield from self.rest

    def __len__(self) -> int:
        return len(list(iter(self)))

    def sample(self, number: int) -> dict[str, Any]:
        """Everything about one sample."""
        found = {kind.name: self[kind.name][number] for kind in self.store.kinds}
        found |= {label: column[number] for label, column in self.inputs.items()}
        return (
            found
            | {name: column[number] for name, column in self.report.items()}
            | {"outcome": str(self.outcomes[number])}
        )

    def pairs(
        self,
        split: str | None = None,
        inputs: Sequence[str] | None = None,
        output: str | Sequence[str] = "displacements",
        normalise: bool = True,
    ) -> Pairs:
        """Inputs and outputs of samples, as float32: what a `torch.utils.data.DataLoader` takes as it is.

        Args:
            split: "train", "valid" or "test"; all good samples unless given.
            inputs: Names of varied quantities; all unless given.
            output: The name of a stored quantity, or several, of which every sample has a dictionary.
            normalise: Subtract means and divide by standard deviations, which are those of the good samples
                for training for every split, so that nothing of the others leaks into them.
        """
        ids = self.ids if split is None else self.split(split)
        return Pairs(self, ids, list(self.inputs) if inputs is None else list(inputs), output, normalise)

    def stream(self, batch: int = 64, shuffle: bool = True, seed: int = 0, **options: Any) -> Any:
        """`pairs` as a `torch.utils.data.IterableDataset` of batches, shuffled by shards and within them,
        for `DataLoader(..., batch_size=None)` with any number of workers; options as for `pairs`. Needs
        torch."""
        batch, shuffle = whole_number("batch", batch), flag("shuffle", shuffle)
        from supple.datasets.torch_data import Stream

        return Stream(self.pairs(**options), batch, shuffle, seed)

    def graph(self, number: int | None = None) -> dict[str, np.ndarray]:
        """For PyTorch Geometric: edge_index (2, 2 k), both ways, pos (n, 3) at rest, and of a sample x
        (d,), its inputs, and y (n, 3), its displacements."""
        edges = self.rest["edges"].astype(np.int64)
        both = np.concatenate([edges, edges[:, ::-1]]).T
        found = {"edge_index": both.copy(), "pos": self.rest["points"].astype(np.float32)}
        if number is None:
            return found
        sample = whole_number("the sample of a graph", number, at_least=-self.count, at_most=self.count - 1)
        return found | {"x": self.input_matrix[sample].astype(np.float32), "y": self["displacements"][sample]}

    def to_xarray(self) -> Any:
        """An `xarray.Dataset` of everything, read into memory. Needs xarray."""
        try:
            import xarray
        except ImportError:
            raise DatasetError("to_xarray needs xarray: pip install xarray.") from None
        found: dict[str, Any] = {k.name: (self[k.name].dims, self[k.name][:]) for k in self.store.kinds}
        found |= {name: (("sample", f"{name}_")[: v.ndim], v) for name, v in self.inputs.items()}
        found |= {name: (("sample",), v) for name, v in self.report.items()}
        return xarray.Dataset(found, attrs={"title": self.title})

    def scene(self) -> SceneFile:
        """The scene that the samples are of, as its file has it."""
        from supple.scene import load_scene

        return load_scene(self.path / "scene.toml", self.store.scene_folder)

    def __repr__(self) -> str:
        names = ", ".join(kind.name for kind in self.store.kinds)
        return (
            f"<Dataset {str(self.path)!r}: {len(self.ids):,} of {self.count:,} samples, {names} of "
            f"{self.store.facts['vertices']:,} vertices, varied {', '.join(self.inputs)}>"
        )
