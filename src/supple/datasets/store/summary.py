"""Summary arrays of the finished shards: reports, statistics and splits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from supple.datasets.errors import DatasetError
from supple.datasets.store.dataset_store import GOOD_OUTCOMES, OUTCOMES, REPORT_COLUMNS, Store
from supple.datasets.store.store_checksums import (
    CHECKSUM_FILE,
    CHECKSUM_PLACEHOLDER,
    checksums_of,
    read_verified,
    text_with_checksum,
    write_with_checksum,
    wrong_files,
)
from supple.datasets.store.zarr_arrays import (
    chunk_file,
    group,
    read_array,
    write_array,
    write_json,
    write_text,
)

REPORT_FILE = "report/zarr.json"
"""File that lists the shards covered by reports, splits and statistics."""

UNFINISHED_REPORT = json.dumps(group({"shards": None}))
"""Content of that file while the summaries are being written."""

MAX_WRITE_ATTEMPTS = 3
"""Maximum number of write attempts while other processes finish shards or write summaries."""


def reports(store: Store) -> dict[str, np.ndarray]:
    """Report columns (count,) of all samples; the outcome is "missing" for unfinished shards."""
    if is_summary_current(store):
        return {name: read_array(store.path / "report" / name) for name in REPORT_COLUMNS}
    return _collect_reports(store, store.finished_shards())


def is_summary_current(store: Store) -> bool:
    """True if reports, splits and statistics exist and cover all finished shards."""
    try:
        said = json.loads((store.path / REPORT_FILE).read_text(encoding="utf-8"))
        return bool(said["attributes"]["shards"] == store.finished_shards())
    except (OSError, ValueError, KeyError, TypeError):  # missing or damaged
        return False


def _collect_reports(store: Store, finished: list[int]) -> dict[str, np.ndarray]:
    nothing = {name: np.nan if np.dtype(kind).kind == "f" else 0 for name, kind in REPORT_COLUMNS.items()}
    columns = {name: np.full(store.count, nothing[name], kind) for name, kind in REPORT_COLUMNS.items()}
    for shard in finished:
        ids, report = store.ids(shard), store.manifest(shard)["report"]
        for name, column in columns.items():
            column[ids.start : ids.stop] = [float(v) if isinstance(v, str) else v for v in report[name]]
    return columns


def good_samples(columns: dict[str, np.ndarray]) -> np.ndarray:
    """(count,) mask of samples that reached their tolerance without inverted elements."""
    reached = np.isin(columns["outcome"], [OUTCOMES.index(name) for name in GOOD_OUTCOMES])
    return reached & (columns["inverted"] == 0)


def write_summary(store: Store) -> None:
    """Write reports, splits and statistics of the finished shards.

    Each file is replaced atomically; the list of covered shards is written last. Writing is repeated if other
    processes finished shards or wrote the same files meanwhile.
    """
    for _ in range(MAX_WRITE_ATTEMPTS):
        finished = store.finished_shards()
        _write_summary(store, finished)
        if store.finished_shards() == finished and not any(wrong_reports(store)):
            return


def _write_summary(store: Store, finished: list[int]) -> None:
    columns = _collect_reports(store, finished)
    known = store.path / REPORT_FILE
    write_text(known, UNFINISHED_REPORT)
    nodes: dict[str, Any] = {}
    for name, values in columns.items():
        nodes[f"report/{name}"] = write_array(store.path / "report" / name, values, ("sample",))
    good = np.flatnonzero(good_samples(columns))
    for name, ids in store.parts_of(good).items():
        nodes[f"splits/{name}"] = write_array(
            store.path / "splits" / name, ids.astype(np.int64), ("sample_id",)
        )
    for name, quantity_statistics in statistics(store, finished, columns).items():
        for statistic, values in quantity_statistics.items():
            nodes[f"stats/{name}/{statistic}"] = write_array(
                store.path / "stats" / name / statistic, values, ("component",)
            )
        nodes[f"stats/{name}"] = group()
        write_json(store.path / "stats" / name / "zarr.json", nodes[f"stats/{name}"])
    for name in ("splits", "stats"):
        nodes[name] = group({"part": part_of_statistics(store, good)} if name == "stats" else None)
        write_json(store.path / name / "zarr.json", nodes[name])
    nodes["report"] = group({"shards": finished, "outcomes": OUTCOMES})
    _update_root_metadata(store, nodes)
    text = json.dumps(nodes["report"])
    names = [file for name in nodes if name != "report" for file in _files(name, nodes)]
    files = checksums_of(store.path, names)
    files[REPORT_FILE] = hashlib.sha256(text.encode()).hexdigest()
    write_with_checksum(store.path / "report" / CHECKSUM_FILE, {"files": files})
    write_text(known, text)


def _files(name: str, nodes: Mapping[str, Any]) -> list[str]:
    """File names of a Zarr array or group."""
    chunks = [f"{name}/{chunk_file(len(nodes[name]['shape']))}"] if "shape" in nodes[name] else []
    return [f"{name}/zarr.json", *chunks]


def wrong_reports(store: Store) -> Iterator[str]:
    """Yield a sentence for each damaged or missing report, split or statistics file.

    Yields nothing while these files are being written, or after an interrupted write.
    """
    before = _state(store)
    problems = list(_wrong_reports(store))
    if _state(store) == before:
        yield from problems


def _wrong_reports(store: Store) -> Iterator[str]:
    text, checksums = _state(store)
    if text == UNFINISHED_REPORT or (checksums is None and text is None):
        return
    try:
        files = read_verified(store.path / "report" / CHECKSUM_FILE)["files"]
    except DatasetError as error:
        yield str(error)
        return
    yield from wrong_files(store.path, files)


def report_files(store: Store) -> set[str]:
    """Names of the files written by `write_summary`."""
    try:
        files = read_verified(store.path / "report" / CHECKSUM_FILE)["files"]
    except DatasetError:
        return set()
    return {*files, f"report/{CHECKSUM_FILE}"}


def _state(store: Store) -> tuple[str | None, ...]:
    """Contents of two files that every `write_summary` changes; None for missing files."""
    paths = (store.path / REPORT_FILE, store.path / "report" / CHECKSUM_FILE)
    return tuple(path.read_text(errors="replace") if path.exists() else None for path in paths)


def _update_root_metadata(store: Store, nodes: dict[str, Any]) -> None:
    """Add new arrays to the consolidated metadata of the root group."""
    path = store.path / "zarr.json"
    root = json.loads(path.read_text(encoding="utf-8"))
    before = dict(root["consolidated_metadata"]["metadata"])
    root["consolidated_metadata"]["metadata"] |= nodes
    if root["consolidated_metadata"]["metadata"] != before:
        root["attributes"] = {"checksum": CHECKSUM_PLACEHOLDER, "supple": root["attributes"]["supple"]}
        write_text(path, text_with_checksum(root))


def part_of_statistics(store: Store, good: np.ndarray) -> str:
    """Statistics cover the split "train", or "all" without good training samples."""
    return "train" if len(store.parts_of(good)["train"]) else "all"


def statistics(
    store: Store, finished: list[int], columns: dict[str, np.ndarray]
) -> dict[str, dict[str, np.ndarray]]:
    """Per-coordinate mean, std, rms, min and max of every quantity and input.

    Covers the good training samples, or all good samples if none is in the training part.
    """
    by_quantity: dict[str, dict[str, np.ndarray]] = {}
    good = np.flatnonzero(good_samples(columns))
    part = part_of_statistics(store, good)
    ids = store.parts_of(good)["train"] if part == "train" else good
    sums = [_sums_of_shard(store, shard, part) for shard in finished]
    for quantity in store.quantities:
        parts = [one for each in sums for one in each[quantity.name] if one["count"]]
        if parts:
            count = sum(part["count"] for part in parts)
            mean = np.sum([part["sum"] for part in parts], axis=0) / count
            squares = np.sum([part["squares"] for part in parts], axis=0) / count
            by_quantity[quantity.name] = {
                "mean": mean,
                "std": np.sqrt(np.maximum(squares - mean**2, 0)),
                "rms": np.sqrt(squares),
                "min": np.min([part["min"] for part in parts], axis=0),
                "max": np.max([part["max"] for part in parts], axis=0),
            }
    for label, column in store.inputs.items() if len(ids) else ():
        values = column.reshape(len(column), -1)[ids]
        by_quantity[label] = {
            "mean": values.mean(axis=0),
            "std": values.std(axis=0),
            "rms": np.sqrt((values**2).mean(axis=0)),
            "min": values.min(axis=0),
            "max": values.max(axis=0),
        }
    return by_quantity


def _sums_of_shard(store: Store, shard: int, part: str) -> dict[str, list[dict[str, Any]]]:
    """Partial sums per quantity over one split or all splits of a shard."""
    by_part = store.manifest(shard)["sums_by_part"]
    return {name: [sums[part]] if part != "all" else list(sums.values()) for name, sums in by_part.items()}
