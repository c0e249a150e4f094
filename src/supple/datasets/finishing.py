"""What follows from the accounts of all finished shards: reports, statistics and splits as arrays."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from supple.datasets.arrays import group, read_array, write_array, write_json
from supple.datasets.ordering import split_of
from supple.datasets.store import COLUMNS, GOOD, OUTCOMES, Store


def reports(store: Store) -> dict[str, np.ndarray]:
    """Every column of the report, (count,), with the outcome "missing" where a shard is not finished."""
    if is_told(store):
        return {name: read_array(store.path / "report" / name) for name in COLUMNS}
    return _gathered(store, store.finished())


def is_told(store: Store) -> bool:
    """Whether reports, splits and statistics are there, of all shards that are finished."""
    known = store.path / "report" / "zarr.json"
    return known.exists() and json.loads(known.read_text())["attributes"]["shards"] == store.finished()


def _gathered(store: Store, finished: list[int]) -> dict[str, np.ndarray]:
    nothing = {name: np.nan if np.dtype(kind).kind == "f" else 0 for name, kind in COLUMNS.items()}
    columns = {name: np.full(store.count, nothing[name], kind) for name, kind in COLUMNS.items()}
    for shard in finished:
        ids, report = store.ids(shard), store.account(shard)["report"]
        for name, column in columns.items():
            column[ids.start : ids.stop] = [float(v) if isinstance(v, str) else v for v in report[name]]
    return columns


def good_samples(columns: dict[str, np.ndarray]) -> np.ndarray:
    """(count,) which samples have reached their tolerance."""
    return np.isin(columns["outcome"], [OUTCOMES.index(name) for name in GOOD])


def finish(store: Store) -> None:
    """Write reports, splits and statistics of what is finished; each file is replaced as a whole, and the
    list of shards that they are of is written last."""
    finished = store.finished()
    columns = _gathered(store, finished)
    if (known := store.path / "report" / "zarr.json").exists():
        write_json(known, group({"shards": None}))
    nodes: dict[str, Any] = {}
    for name, values in columns.items():
        nodes[f"report/{name}"] = write_array(store.path / "report" / name, values, ("sample",))
    good = np.flatnonzero(good_samples(columns))
    parts = split_of(good, store.spec["seed"], store.spec["splits"])
    for name, ids in parts.items():
        nodes[f"splits/{name}"] = write_array(
            store.path / "splits" / name, ids.astype(np.int64), ("sample_id",)
        )
    for name, figures in statistics(store, finished).items():
        for figure, values in figures.items():
            nodes[f"stats/{name}/{figure}"] = write_array(
                store.path / "stats" / name / figure, values, ("component",)
            )
        nodes[f"stats/{name}"] = group()
        write_json(store.path / "stats" / name / "zarr.json", nodes[f"stats/{name}"])
    for name in ("splits", "stats"):
        nodes[name] = group()
        write_json(store.path / name / "zarr.json", nodes[name])
    nodes["report"] = group({"shards": finished, "outcomes": OUTCOMES})
    _tell_root(store, nodes)
    write_json(known, nodes["report"])


def _tell_root(store: Store, nodes: dict[str, Any]) -> None:
    """Let the consolidated metadata of the root know of new arrays."""
    path = store.path / "zarr.json"
    root = json.loads(path.read_text(encoding="utf-8"))
    before = dict(root["consolidated_metadata"]["metadata"])
    root["consolidated_metadata"]["metadata"] |= nodes
    if root["consolidated_metadata"]["metadata"] != before:
        write_json(path, root)


def statistics(store: Store, finished: list[int]) -> dict[str, dict[str, np.ndarray]]:
    """mean, std, rms, min and max of every quantity over the good samples, for each coordinate, and of the
    inputs over the whole design."""
    found: dict[str, dict[str, np.ndarray]] = {}
    accounts = [store.account(shard)["sums"] for shard in finished]
    for kind in store.kinds:
        parts = [account[kind.name] for account in accounts if account[kind.name]["count"]]
        if parts:
            count = sum(part["count"] for part in parts)
            mean = np.sum([part["sum"] for part in parts], axis=0) / count
            squares = np.sum([part["squares"] for part in parts], axis=0) / count
            found[kind.name] = {
                "mean": mean,
                "std": np.sqrt(np.maximum(squares - mean**2, 0)),
                "rms": np.sqrt(squares),
                "min": np.min([part["min"] for part in parts], axis=0),
                "max": np.max([part["max"] for part in parts], axis=0),
            }
    for label, column in store.inputs.items():
        values = column.reshape(len(column), -1)
        found[label] = {
            "mean": values.mean(axis=0),
            "std": values.std(axis=0),
            "rms": np.sqrt((values**2).mean(axis=0)),
            "min": values.min(axis=0),
            "max": values.max(axis=0),
        }
    return found
