"""One shard: its samples solved in a fixed order and published together."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import numpy as np

from supple.datasets.errors import DatasetError
from supple.datasets.run.sampler import SYSTEM_ERRORS, Meaning, Sampler, Solved, crash
from supple.datasets.run.traversal import CHECK, coordinates, drawn_share
from supple.datasets.run.warm_start import Neighbors
from supple.datasets.spec.parametric_scene import rubs
from supple.datasets.store.dataset_store import COLUMNS, Store
from supple.datasets.store.journal import Journal, Row

EVERY = 4
"""Stride of the samples in a batched shard that start from the scene's initial positions; the others are
predicted from these."""

AT_ONCE, MOST_VERTICES = 32, 1_000_000
"""Number of samples whose pins, forces and materials are evaluated together when samples are solved one by
one, and the limit on their total number of vertices."""

SAME_ENERGY = 1e-3
"""Relative energy difference up to which two solves from different initial positions are the same
equilibrium."""

Progress = Callable[[Sequence[int]], None]
"""Called with the ids of finished samples."""


class Shards:
    """Solver of full shards of a store.

    A sample depends only on earlier samples of its shard, not on other work of the same process.
    """

    def __init__(self, store: Store, threads: int | None = 1, beside: int = 1) -> None:
        with _naming_what_failed(f"{store.path}: none of its samples can be solved"):
            self.store, self.sampler = store, Sampler(store, threads, beside)
        spec = store.spec
        self._start, self._check, self._seed = spec["solve"]["start"], spec["solve"]["check"], spec["seed"]
        if rubs(self.sampler.source):
            self._start = "cold"
        logarithmic = {v["label"] for v in store.facts["varied"] if v["scale"] == "log"}
        columns = {name: v.reshape(len(v), -1) for name, v in store.inputs.items()}
        self._points = coordinates(columns, logarithmic)

    def values(self, sample: int) -> dict[str, Any]:
        """Sample values by quantity label."""
        return {label: column[sample].tolist() for label, column in self.store.inputs.items()}

    def run(self, shard: int, progress: Progress | None = None) -> None:
        """Solve and publish a shard, skipping samples already in its journal."""
        began = perf_counter()
        ids = self.store.ids(shard)
        journal = Journal(self.store.journal_file(shard), self.store.facts["identity"])
        told = progress or _nobody
        with _naming_what_failed(f"{self.store.path}: shard {shard} cannot be solved"):
            rows = self._together(ids) if self.sampler.together else [*self._one_by_one(ids, journal, told)]
            if self.sampler.together:
                told(ids)
            self._publish(shard, rows, perf_counter() - began)
        journal.close()

    def _publish(self, shard: int, rows: list[Row], seconds: float) -> None:
        samples = {
            kind.name: [None if row.quantities is None else row.quantities[kind.name] for row in rows]
            for kind in self.store.kinds
        }
        report = {name: [row.figures[name] for row in rows] for name in COLUMNS}
        numbered = list(zip(self.store.ids(shard), rows, strict=True))
        further = {
            "shard": shard,
            "failures": {str(sample): row.sentence for sample, row in numbered if row.quantities is None},
            "checks": [row.check for row in rows if row.check is not None],
            "seconds": seconds,
            "host": platform.node(),
            "process": os.getpid(),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        self.store.publish(shard, samples, report, further)

    def _row(self, solved: Solved, check: dict[str, Any] | None = None) -> Row:
        """Journal entry of a solved sample."""
        if not solved.ok or solved.measured is None:
            return Row(solved.figures(), None, None, solved.sentence, check)
        dtype, measured = self.store.dtype, solved.measured
        try:
            kept = {kind.name: measured.value(kind.name).astype(dtype) for kind in self.store.kinds}
        except Exception as error:
            lost = crash(error)
            return Row(lost.figures(), None, None, lost.sentence, check)
        return Row(solved.figures(), kept, solved.measured.positions, "", check)

    def _together(self, ids: range) -> list[Row]:
        """Solve the shard in batches.

        The first batch starts from the scene's initial positions, the second from predictions made by the
        first. A random subset is also solved from the scene's initial positions as a check.
        """
        every = np.arange(ids.start, ids.stop)
        first = self._solved_first(len(every))
        found = dict(zip(every[first], self._from(every[first], None), strict=True))
        later = every[~first]
        starts = self._predicted(found, later)
        twice = later[self._checked(ids)[~first]] if starts is not None else later[:0]
        solved = self._from(np.concatenate([later, twice]), starts)
        found |= zip(later, solved, strict=False)
        cold = dict(zip(twice, solved[len(later) :], strict=True))
        rows = []
        for sample in every:
            one, check = found[sample], None
            if sample in cold and one.ok:
                one, check = _compared(int(sample), one, cold[sample])
            rows.append(self._row(one, check))
        return rows

    def _solved_first(self, count: int) -> np.ndarray:
        """(count,) mask of the samples in the first batch.

        These are every `EVERY`-th sample along the path, or all samples if the shard is too small for
        predictions.
        """
        first = np.ones(count, bool)
        if self._start != "cold" and count >= 2 * EVERY * (self._points.shape[1] + 2):
            first[np.arange(count) % EVERY != 0] = False
        return first

    def _predicted(self, found: Mapping[int, Solved], samples: np.ndarray) -> np.ndarray | None:
        """Predicted positions (k, n, 3) [m] of samples; None with too few solved samples."""
        neighbors = Neighbors(len(found))
        for sample, solved in found.items():
            if solved.ok and solved.measured is not None:
                neighbors.add(self._points[sample], solved.measured.positions)
        return neighbors.predicted_at(self._points[samples]) if len(samples) else None

    def _from(self, samples: np.ndarray, starts: np.ndarray | None) -> list[Solved]:
        """Solve samples: the first k from positions (k, n, 3), the others from the scene's own."""
        begun = [] if starts is None else list(starts)
        begun += [None] * (len(samples) - len(begun))
        return list(self.sampler.solve_all([self.values(int(sample)) for sample in samples], begun))

    def _checked(self, ids: range) -> np.ndarray:
        """(k,) mask of samples that are also solved from the scene's initial positions."""
        return drawn_share(np.arange(ids.start, ids.stop), self._seed, CHECK) < self._check

    def _one_by_one(self, ids: range, journal: Journal, told: Progress) -> Iterator[Row]:
        neighbors, known = Neighbors(len(ids)), journal.read()
        meanings = self._meanings(ids)
        for sample, checked, meaning in zip(ids, self._checked(ids), meanings, strict=True):
            if (row := known.get(sample)) is None:
                row = self._solved(sample, neighbors, bool(checked), meaning)
                journal.add(sample, row)
            if row.positions is not None:
                neighbors.add(self._points[sample], row.positions)
            told([sample])
            yield row

    def _meanings(self, ids: range) -> Iterator[Meaning | None]:
        """Evaluate conditions in fixed-size groups; None if samples need their own models."""
        some = max(1, min(AT_ONCE, MOST_VERTICES // self.sampler.model.vertices))
        for first in range(0, len(ids), some):
            every = [self.values(sample) for sample in ids[first : first + some]]
            yield from self.sampler.meanings(every)

    def _solved(self, sample: int, neighbors: Neighbors, checked: bool, meaning: Meaning | None) -> Row:
        starts, values = self._starts(neighbors, self._points[sample]), self.values(sample)
        found, check = self.sampler.solve(values, starts, meaning), None
        if checked and found.ok and found.warm:
            found, check = _compared(sample, found, self.sampler.solve(values, [None], meaning))
        return self._row(found, check)

    def _starts(self, neighbors: Neighbors, point: np.ndarray) -> list[np.ndarray | None]:
        """Initial positions to try in order: prediction, nearest sample, the scene's own."""
        if self._start == "cold":
            return [None]
        nearest = neighbors.nearest(point)
        guess = neighbors.predicted(point) if self._start == "predicted" else None
        return [*(start for start in (guess, nearest) if start is not None), None]


@contextmanager
def _naming_what_failed(what: str) -> Iterator[None]:
    """Add the failed operation to unexpected errors; data set and system errors pass unchanged."""
    try:
        yield
    except (DatasetError, *SYSTEM_ERRORS):
        raise
    except ValueError as error:
        raise DatasetError(f"{what}: {error}") from error
    except Exception as error:
        raise RuntimeError(f"{what}: {type(error).__name__}: {error}") from error


def _nobody(samples: Sequence[int]) -> None:
    """Progress callback that does nothing."""


def _compared(sample: int, found: Solved, cold: Solved) -> tuple[Solved, dict[str, Any] | None]:
    """Compare a warm start with a cold start.

    Returns:
        The solution to keep, which is the cold one if its energy is lower, and the measurements of both.
    """
    warm, other = found.report, cold.report
    if not cold.ok or warm is None or other is None:
        return found, None
    scale = max(abs(other.energy), abs(warm.energy))
    lower = bool(other.energy < warm.energy - SAME_ENERGY * scale)
    check = {
        "sample": sample,
        "warm_iterations": warm.iterations,
        "cold_iterations": other.iterations,
        "warm_seconds": warm.seconds,
        "cold_seconds": other.seconds,
        "warm_energy": warm.energy,
        "cold_energy": other.energy,
        "cold_is_lower": lower,
    }
    return (cold if lower else found), check
