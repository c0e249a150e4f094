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
from supple.datasets.run.sampler import SYSTEM_ERRORS, ConditionsOrError, Sampler, SampleResult, crash_result
from supple.datasets.run.traversal import coordinates
from supple.datasets.run.warm_start import Neighbors
from supple.datasets.spec.parametric_scene import has_friction
from supple.datasets.store.dataset_store import REPORT_COLUMNS, Store
from supple.datasets.store.journal import Journal, Row
from supple.datasets.store.splits import CHECK_PURPOSE, pseudorandom_numbers

FIRST_BATCH_STRIDE = 4
"""Stride of the samples in a batched shard that start from the scene's initial positions; the others are
predicted from these."""

MAX_GROUP_SAMPLES, MAX_GROUP_VERTICES = 32, 1_000_000
"""Number of samples whose pins, forces and materials are evaluated together when samples are solved one by
one, and the limit on their total number of vertices."""

MAX_ENERGY_DIFFERENCE = 1e-3
"""Relative energy difference up to which two solves from different initial positions are the same
equilibrium."""

Progress = Callable[[Sequence[int]], None]
"""Called with the ids of finished samples."""


class Shards:
    """Solver of full shards of a store.

    A sample depends only on earlier samples of its shard, not on other work of the same process.
    """

    def __init__(self, store: Store, threads: int | None = 1, device_workers: int = 1) -> None:
        with _name_failed_operation(f"{store.path}: none of its samples can be solved"):
            self.store, self.sampler = store, Sampler(store, threads, device_workers)
        spec = store.spec
        self._initial, self._check, self._seed = (
            spec["solve"]["initial"],
            spec["solve"]["check"],
            spec["seed"],
        )
        if has_friction(self.sampler.source):
            self._initial = "cold"
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
        report_progress = progress or _ignore_progress
        with _name_failed_operation(f"{self.store.path}: shard {shard} cannot be solved"):
            rows = (
                self._solve_batched(ids)
                if self.sampler.batched
                else [*self._solve_sequentially(ids, journal, report_progress)]
            )
            if self.sampler.batched:
                report_progress(ids)
            self._publish(shard, rows, perf_counter() - began)
        journal.close()

    def _publish(self, shard: int, rows: list[Row], seconds: float) -> None:
        samples = {
            quantity.name: [None if row.quantities is None else row.quantities[quantity.name] for row in rows]
            for quantity in self.store.quantities
        }
        report = {name: [row.report[name] for row in rows] for name in REPORT_COLUMNS}
        numbered = list(zip(self.store.ids(shard), rows, strict=True))
        extra_entries = {
            "shard": shard,
            "failures": {str(sample): row.sentence for sample, row in numbered if row.quantities is None},
            "checks": [row.check for row in rows if row.check is not None],
            "seconds": seconds,
            "host": platform.node(),
            "process": os.getpid(),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        self.store.publish(shard, samples, report, extra_entries)

    def _row(self, solved: SampleResult, check: dict[str, Any] | None = None) -> Row:
        """Journal entry of a solved sample."""
        if not solved.ok or solved.measured is None:
            return Row(solved.report_row(), None, None, solved.sentence, check)
        dtype, measured = self.store.dtype, solved.measured
        try:
            stored_values = {
                quantity.name: measured.value(quantity.name).astype(dtype)
                for quantity in self.store.quantities
            }
        except Exception as error:
            lost = crash_result(error)
            return Row(lost.report_row(), None, None, lost.sentence, check)
        return Row(solved.report_row(), stored_values, solved.measured.positions, "", check)

    def _solve_batched(self, ids: range) -> list[Row]:
        """Solve the shard in batches.

        The first batch starts from the scene's initial positions, the second from predictions made by the
        first. A random subset is also solved from the scene's initial positions as a check.
        """
        every = np.arange(ids.start, ids.stop)
        first = self._first_batch_mask(len(every))
        results = dict(zip(every[first], self._solve_from(every[first], None), strict=True))
        later = every[~first]
        starts = self._predict_positions(results, later)
        twice = later[self._cold_check_mask(ids)[~first]] if starts is not None else later[:0]
        solved = self._solve_from(np.concatenate([later, twice]), starts)
        results |= zip(later, solved, strict=False)
        cold = dict(zip(twice, solved[len(later) :], strict=True))
        rows = []
        for sample in every:
            one, check = results[sample], None
            if sample in cold and one.ok:
                one, check = _compare_cold_start(int(sample), one, cold[sample])
            rows.append(self._row(one, check))
        return rows

    def _first_batch_mask(self, count: int) -> np.ndarray:
        """(count,) mask of the samples in the first batch.

        These are every `FIRST_BATCH_STRIDE`-th sample along the path, or all samples if the shard is too
        small for predictions.
        """
        first = np.ones(count, bool)
        if self._initial != "cold" and count >= 2 * FIRST_BATCH_STRIDE * (self._points.shape[1] + 2):
            first[np.arange(count) % FIRST_BATCH_STRIDE != 0] = False
        return first

    def _predict_positions(
        self, results: Mapping[int, SampleResult], samples: np.ndarray
    ) -> np.ndarray | None:
        """Predicted positions (k, n, 3) [m] of samples; None with too few solved samples."""
        neighbors = Neighbors(len(results))
        for sample, solved in results.items():
            if solved.ok and solved.measured is not None:
                neighbors.add(self._points[sample], solved.measured.positions)
        return neighbors.predict_at(self._points[samples]) if len(samples) else None

    def _solve_from(self, samples: np.ndarray, starts: np.ndarray | None) -> list[SampleResult]:
        """Solve samples: the first k from positions (k, n, 3), the others from the scene's own."""
        begun = [] if starts is None else list(starts)
        begun += [None] * (len(samples) - len(begun))
        return list(self.sampler.solve_all([self.values(int(sample)) for sample in samples], begun))

    def _cold_check_mask(self, ids: range) -> np.ndarray:
        """(k,) mask of samples that are also solved from the scene's initial positions."""
        return pseudorandom_numbers(np.arange(ids.start, ids.stop), self._seed, CHECK_PURPOSE) < self._check

    def _solve_sequentially(self, ids: range, journal: Journal, report_progress: Progress) -> Iterator[Row]:
        neighbors, known = Neighbors(len(ids)), journal.read()
        sample_conditions = self._precompute_conditions(ids)
        for sample, checked, conditions in zip(
            ids, self._cold_check_mask(ids), sample_conditions, strict=True
        ):
            if (row := known.get(sample)) is None:
                row = self._solve_sample(sample, neighbors, bool(checked), conditions)
                journal.add(sample, row)
            if row.positions is not None:
                neighbors.add(self._points[sample], row.positions)
            report_progress([sample])
            yield row

    def _precompute_conditions(self, ids: range) -> Iterator[ConditionsOrError | None]:
        """Evaluate conditions in fixed-size groups; None if samples need their own models."""
        group_size = max(1, min(MAX_GROUP_SAMPLES, MAX_GROUP_VERTICES // self.sampler.model.vertices))
        for first in range(0, len(ids), group_size):
            every = [self.values(sample) for sample in ids[first : first + group_size]]
            yield from self.sampler.precompute_conditions(every)

    def _solve_sample(
        self, sample: int, neighbors: Neighbors, checked: bool, conditions: ConditionsOrError | None
    ) -> Row:
        starts, values = self._initial_guesses(neighbors, self._points[sample]), self.values(sample)
        result, check = self.sampler.solve(values, starts, conditions), None
        if checked and result.ok and result.warm:
            result, check = _compare_cold_start(
                sample, result, self.sampler.solve(values, [None], conditions)
            )
        return self._row(result, check)

    def _initial_guesses(self, neighbors: Neighbors, point: np.ndarray) -> list[np.ndarray | None]:
        """Initial positions to try in order: prediction, nearest sample, the scene's own."""
        if self._initial == "cold":
            return [None]
        nearest = neighbors.nearest(point)
        guess = neighbors.predict(point) if self._initial == "predicted" else None
        return [*(start for start in (guess, nearest) if start is not None), None]


@contextmanager
def _name_failed_operation(what: str) -> Iterator[None]:
    """Add the failed operation to unexpected errors; data set and system errors pass unchanged."""
    try:
        yield
    except (DatasetError, *SYSTEM_ERRORS):
        raise
    except ValueError as error:
        raise DatasetError(f"{what}: {error}") from error
    except Exception as error:
        raise RuntimeError(f"{what}: {type(error).__name__}: {error}") from error


def _ignore_progress(samples: Sequence[int]) -> None:
    """Progress callback that does nothing."""


def _compare_cold_start(
    sample: int, warm_result: SampleResult, cold: SampleResult
) -> tuple[SampleResult, dict[str, Any] | None]:
    """Compare a warm start with a cold start.

    Returns:
        The solution to keep, which is the cold one if its energy is lower, and the measurements of both.
    """
    warm, other = warm_result.report, cold.report
    if not cold.ok or warm is None or other is None:
        return warm_result, None
    scale = max(abs(other.energy), abs(warm.energy))
    lower = bool(other.energy < warm.energy - MAX_ENERGY_DIFFERENCE * scale)
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
    return (cold if lower else warm_result), check
