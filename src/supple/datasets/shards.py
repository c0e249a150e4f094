"""One shard: its samples solved in a fixed order, and published together."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import numpy as np

from supple.datasets.ordering import CHECK, coordinates, drawn_share
from supple.datasets.solving import Sampler, Solved
from supple.datasets.starting import Neighbours
from supple.datasets.store import COLUMNS, Store

SAME_ENERGY = 1e-3
"""Part by which energies of the same equilibrium may differ from one start to another."""

Progress = Callable[[int], None]
"""Called with the id of every sample that is done."""


class Shards:
    """Solves whole shards of a store. A sample depends on those before it in its shard, and on nothing else:
    what a worker did before makes no difference."""

    def __init__(self, store: Store, threads: int | None = 1) -> None:
        self.store, self.sampler = store, Sampler(store, threads)
        spec = store.spec
        self._start, self._check, self._seed = spec["solve"]["start"], spec["solve"]["check"], spec["seed"]
        logarithmic = {v["label"] for v in store.facts["varied"] if v["scale"] == "log"}
        columns = {name: v.reshape(len(v), -1) for name, v in store.inputs.items()}
        self._points = coordinates(columns, logarithmic)

    def values(self, sample: int) -> dict[str, Any]:
        """What a sample has for each varied quantity."""
        return {label: column[sample].tolist() for label, column in self.store.inputs.items()}

    def run(self, shard: int, progress: Progress | None = None) -> None:
        """Solve and publish a shard."""
        began = perf_counter()
        ids = self.store.ids(shard)
        checks: list[dict[str, Any]] = []
        solved = self._together(ids) if self.sampler.together else self._one_by_one(ids, checks)
        samples: dict[str, list[np.ndarray | None]] = {kind.name: [] for kind in self.store.kinds}
        report: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        failures = {}
        for sample, each in zip(ids, solved, strict=True):
            for name, chunks in samples.items():
                chunks.append(each.measured.value(name) if each.ok and each.measured else None)
            for name, value in each.figures().items():
                report[name].append(value)
            if not each.ok:
                failures[str(sample)] = each.sentence
            if progress is not None:
                progress(sample)
        who = {
            "host": platform.node(),
            "process": os.getpid(),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        further = {
            "shard": shard,
            "failures": failures,
            "checks": checks,
            "seconds": perf_counter() - began,
        } | who
        self.store.publish(shard, samples, report, further)

    def _together(self, ids: range) -> Iterator[Solved]:
        return self.sampler.solve_all([self.values(sample) for sample in ids])

    def _one_by_one(self, ids: range, checks: list[dict[str, Any]]) -> Iterator[Solved]:
        neighbours = Neighbours()
        twice = drawn_share(np.arange(ids.start, ids.stop), self._seed, CHECK) < self._check
        for sample, checked in zip(ids, twice, strict=True):
            point = self._points[sample]
            starts = self._starts(neighbours, point)
            found = self.sampler.solve(self.values(sample), starts)
            if checked and found.warm and found.report is not None:
                found = self._compared(sample, found, checks)
            if found.ok and found.measured is not None:
                neighbours.add(point, found.measured.positions)
            yield found

    def _starts(self, neighbours: Neighbours, point: np.ndarray) -> list[np.ndarray | None]:
        """Where to begin, the best first and the scene's own start last."""
        if self._start == "cold":
            return [None]
        nearest = neighbours.nearest(point)
        guess = neighbours.predicted(point) if self._start == "predicted" else None
        return [*(start for start in (guess, nearest) if start is not None), None]

    def _compared(self, sample: int, found: Solved, checks: list[dict[str, Any]]) -> Solved:
        """What was found, or what is found from the scene's own start where the energy is lower there."""
        cold = self.sampler.solve(self.values(sample), [None])
        assert found.report is not None
        if not cold.ok or cold.report is None:
            return found
        scale = max(abs(cold.report.energy), abs(found.report.energy))
        lower = cold.report.energy < found.report.energy - SAME_ENERGY * scale
        checks.append(
            {
                "sample": sample,
                "warm_iterations": found.report.iterations,
                "cold_iterations": cold.report.iterations,
                "warm_seconds": found.report.seconds,
                "cold_seconds": cold.report.seconds,
                "warm_energy": found.report.energy,
                "cold_energy": cold.report.energy,
                "cold_is_lower": lower,
            }
        )
        return cold if lower else found
