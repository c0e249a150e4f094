"""Progress of a data set."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.datasets.store.dataset_store import OUTCOMES, Store
from supple.datasets.store.summary import good_samples, reports


def status(store: Store) -> dict[str, Any]:
    """Progress of a store: samples by outcome, shards, times, retries, measured gain of warm starts."""
    columns, finished = reports(store), store.finished_shards()
    outcome = columns["outcome"]
    counts = {name: int((outcome == k).sum()) for k, name in enumerate(OUTCOMES) if (outcome == k).any()}
    good = good_samples(columns)
    manifests = [store.manifest(shard) for shard in finished]
    failures = {sample: text for manifest in manifests for sample, text in manifest["failures"].items()}
    return {
        "title": store.facts["title"],
        "path": str(store.path),
        "samples": store.count,
        "outcomes": counts,
        "good": int(good.sum()),
        "shards": store.shards,
        "finished_shards": len(finished),
        "left": [shard for shard in range(store.shards) if shard not in set(finished)],
        "solving_seconds": float(np.nansum(columns["seconds"])),
        "worker_seconds": float(sum(manifest["seconds"] for manifest in manifests)),
        "worst_relative_residual": float(columns["relative_residual"][good].max()) if good.any() else None,
        "worst_position_error": _largest(columns["position_error"][good]),
        "inverted": int((columns["inverted"] > 0).sum()),
        "retried": int((columns["retries"] > 0).sum()),
        "iterations": int(columns["iterations"].sum()),
        "warm_starts": warm_start_gain([check for manifest in manifests for check in manifest["checks"]]),
        "failures": failures,
    }


def _largest(values: np.ndarray) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else None


def warm_start_gain(checks: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Gain of warm starts, measured on samples that were also solved from a cold start."""
    if not checks:
        return None
    total = {
        key: sum(check[key] for check in checks)
        for key in ("warm_iterations", "cold_iterations", "warm_seconds", "cold_seconds")
    }
    return {
        "compared": len(checks),
        "fewer_iterations": total["cold_iterations"] / max(total["warm_iterations"], 1),
        "faster": total["cold_seconds"] / max(total["warm_seconds"], 1e-12),
        "lower_from_cold": sum(check["cold_is_lower"] for check in checks),
    }
