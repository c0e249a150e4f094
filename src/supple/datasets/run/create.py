"""Stores from a spec: creation of empty stores with their full design, and extension by more samples.

Everything known before the first solve is written atomically.

Extension keeps ids and splits of existing samples.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from supple.datasets.errors import DatasetError
from supple.datasets.read.data_card import card
from supple.datasets.read.quantities import Quantity, quantities_of
from supple.datasets.run.traversal import path_in_parts
from supple.datasets.spec.dataset_spec import Spec, identity_of, origin_of
from supple.datasets.spec.sampling import draw
from supple.datasets.spec.spec_tables import DESCRIPTIVE_KEYS
from supple.datasets.store.dataset_store import MANIFEST_FOLDER, OUTCOMES, SCHEMA_VERSION, Store
from supple.datasets.store.journal import Journal, finished_rows
from supple.datasets.store.scene_files import (
    COPY_FOLDER,
    NamedFile,
    copy_files,
    named_files,
    scene_with_copied_files,
    strip_folder,
)
from supple.datasets.store.store_checksums import (
    CHECKSUM_FILE,
    CHECKSUM_PLACEHOLDER,
    checksums_of,
    text_with_checksum,
    write_with_checksum,
)
from supple.datasets.store.summary import write_summary
from supple.datasets.store.zarr_arrays import array, group, write_array, write_json, write_text
from supple.io.lock import hold_lock
from supple.io.machine import machine, versions
from supple.io.replace_file import replacing_folder, restore_replaced, temporary_path
from supple.model.model import Model
from supple.support.os_errors import add_path_to_os_errors

PATH_KEYS = ("scene", "table")
"""Spec keys whose values are paths."""


@dataclass(frozen=True)
class Facts:
    """Contents of a new store.

    Attributes:
        identity: Hash of spec, scene and design.
        origin: Hash shared by all stores that extend one another.
        files: Files named by the scene.
        spec: Spec as JSON values.
        title: Title of the data set.
        scene: Scene text with paths relative to the store.
        columns: (count, size) values of each varied quantity.
        draw_order: (count,) number of each sample in drawing order.
        paths: Scene paths of each varied quantity.
        logarithmic: Labels of quantities sampled evenly in their logarithm.
        quantities: Stored quantities.
        dtype: Storage type of the samples.
        shard: Samples per shard.
        constants: Arrays shared by all samples, with their axes.
        bodies: Names of the bodies.
        pins: Names of the pins.
        previous_counts: Sample counts before each extension.
    """

    identity: str
    origin: str
    files: list[NamedFile]
    spec: dict[str, Any]
    title: str
    scene: str
    columns: dict[str, np.ndarray]
    draw_order: np.ndarray
    paths: dict[str, list[str]]
    logarithmic: set[str]
    quantities: list[Quantity]
    dtype: np.dtype
    shard: int
    constants: dict[str, tuple[np.ndarray, tuple[str, ...]]]
    bodies: list[str]
    pins: list[str]
    previous_counts: list[int]


def create(path: Path, facts: Facts, command: Sequence[str] | None = None) -> Store:
    """Create an empty store with its full design, atomically.

    Returns:
        The new store, or the existing store with the same identity.
    """
    if path.exists():
        return open_matching(path, facts)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
    try:
        with add_path_to_os_errors(path, temporary):
            write_empty(temporary, facts, command, path.name)
            try:
                os.rename(temporary, path)
            except OSError:
                if not path.exists():  # else another process was faster
                    raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return open_matching(path, facts)


def open_matching(path: Path, facts: Facts) -> Store:
    """Open an existing store with the same spec, scene and design.

    Raises:
        DatasetError: The store has another identity.
    """
    if path.is_dir() and not any(path.iterdir()):
        path.rmdir()
        return create(path, facts)
    store = Store(path)
    if store.facts["identity"] != facts.identity:
        raise DatasetError(
            f"{path} is the data set of another spec, scene or design ({store.facts['title']!r}, "
            f"{store.count:,} samples, created {store.facts['created'][:10]}): "
            f"{difference(store, facts)}. Name another folder with --output, or replace it with "
            f"--overwrite{_grow_hint(store, facts)}."
        )
    return store


def _grow_hint(store: Store, facts: Facts) -> str:
    more = len(facts.draw_order) > store.count and store.facts["origin"] == facts.origin
    return ", or let it grow with --grow" if more else ""


def difference(store: Store, facts: Facts) -> str:
    """Short description of differences between a new spec and a store's spec."""
    old, new = store.spec, facts.spec
    keys = [key for key in {**old, **new} if key not in DESCRIPTIVE_KEYS and old.get(key) != new.get(key)]
    if set(keys) - {"count"}:
        return "different are " + ", ".join(keys)
    if (store.path / "scene.toml").read_text(encoding="utf-8") != facts.scene:
        return "its scene is different"
    return _changed_files(store, facts) or ("different are count" if keys else "its design is different")


def _changed_files(store: Store, facts: Facts) -> str:
    """Message about scene files modified since store creation; empty without changes."""
    before, now = store.facts["files"], {file.name: file.digest for file in facts.files}
    changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return f"its scene uses other files now: {', '.join(changed)}" if changed else ""


def write_empty(path: Path, facts: Facts, command: Sequence[str] | None, called: str) -> None:
    """Write all store files that precede the first solve.

    Args:
        path: Folder to write to.
        facts: Contents of the store.
        command: Command line to record; sys.argv if None.
        called: Final name of the store.
    """
    count = len(facts.draw_order)
    nodes: dict[str, Any] = {}
    (path / MANIFEST_FOLDER).mkdir(parents=True)
    for name in ("rest", "inputs", "samples"):
        nodes[name] = group()
        write_json(path / name / "zarr.json", nodes[name])
    for name, (values, axes) in facts.constants.items():
        nodes[f"rest/{name}"] = write_array(path / "rest" / name, values, axes)
    for label, values in facts.columns.items():
        flat = values[:, 0] if values.shape[1] == 1 else values
        axes = ("sample", "component")[: flat.ndim]
        nodes[f"inputs/{label}"] = write_array(path / "inputs" / label, flat, axes, paths=facts.paths[label])
    for quantity in facts.quantities:
        metadata = array(
            (count, *quantity.shape),
            facts.dtype,
            ("sample", *quantity.axes),
            facts.shard,
            {"meaning": quantity.text},
        )
        write_json(path / "samples" / quantity.name / "zarr.json", metadata)
        nodes[f"samples/{quantity.name}"] = metadata
    _write_design(path / "design.csv", facts)
    copy_files(facts.files, path / COPY_FOLDER)
    write_text(path / "scene.toml", facts.scene)
    write_text(path / "zarr.json", text_with_checksum(_root_metadata(facts, command, nodes)))
    write_card(path, called)


def write_card(path: Path, called: str) -> None:
    """Write data card and file checksums of a new store."""
    write_text(path / "README.md", card(Store(path), called))
    every = (file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    names = [name for name in every if name not in ("zarr.json", CHECKSUM_FILE)]
    write_with_checksum(path / CHECKSUM_FILE, {"files": checksums_of(path, names)})


def _root_metadata(facts: Facts, command: Sequence[str] | None, nodes: dict[str, Any]) -> dict[str, Any]:
    attributes = {
        "schema": SCHEMA_VERSION,
        "identity": facts.identity,
        "origin": facts.origin,
        "files": {file.name: file.digest for file in facts.files},
        "title": facts.title,
        "count": len(facts.draw_order),
        "grown": facts.previous_counts,
        "shard": facts.shard,
        "precision": facts.dtype.name,
        "quantities": [{"name": k.name, "shape": k.shape, "axes": k.axes} for k in facts.quantities],
        "varied": [
            {
                "label": label,
                "paths": facts.paths[label],
                "size": values.shape[1],
                "scale": "log" if label in facts.logarithmic else "linear",
            }
            for label, values in facts.columns.items()
        ],
        "bodies": facts.bodies,
        "pins": facts.pins,
        "vertices": len(facts.constants["points"][0]),
        "outcomes": OUTCOMES,
        "spec": {key: strip_folder(v) if key in PATH_KEYS and v else v for key, v in facts.spec.items()},
        "folder": ".",
        "units": "SI",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "command": [strip_folder(word) for word in (sys.argv if command is None else command)],
    }
    root = group({"checksum": CHECKSUM_PLACEHOLDER, "supple": attributes})
    root["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": nodes}
    return root


def _write_design(path: Path, facts: Facts) -> None:
    """Write the design as a CSV table: sample id, number in drawing order, value of each quantity."""
    names = ["id", "drawn"]
    for label, values in facts.columns.items():
        names += [label] if values.shape[1] == 1 else [f"{label}.{k}" for k in range(values.shape[1])]
    rows = np.concatenate([*facts.columns.values()], axis=1)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(names) + "\n")
        for number, (draw_order, row) in enumerate(zip(facts.draw_order, rows, strict=True)):
            file.write(f"{number},{draw_order}," + ",".join(map(repr, row.tolist())) + "\n")


def extend_store(store: Store, facts: Facts, command: Sequence[str] | None) -> Store:
    """Extend a store to the design of new facts.

    The extended store is built next to the original and replaces it atomically. Partial and unfinished shards
    resume from their journals. Workers of the original store cannot publish into the extended one.
    """
    _check_extendable(store, facts)
    full_shards = store.count // store.shard
    with replacing_folder(store.path) as folder:
        write_empty(folder, facts, command, store.path.name)
        new = Store(folder)
        finished = set(store.finished_shards())
        for shard in range(store.shards):
            if shard not in finished:
                _copy_journal(store, new, shard)
            elif shard < full_shards:
                _link_shard(store, new, shard)
            else:
                _write_journal(store, new, shard)
        write_summary(new)
    return Store(store.path)


def _check_extendable(store: Store, facts: Facts) -> None:
    """Check that only the sample count differs and that the existing samples are unchanged."""
    if store.facts["origin"] != facts.origin:
        raise DatasetError(
            f"{store.path} cannot grow into this spec: {difference(store, facts)}. Only count may differ."
        )
    for label, values in facts.columns.items():
        before = store.inputs[label].reshape(store.count, -1)
        if not np.array_equal(values[: store.count], before):
            raise DatasetError(
                f"{store.path} cannot grow: the first {store.count:,} values of {label!r} differ "
                "from those in the store. Append rows at the end of a table; a design function must "
                "return the same first values; a grid cannot grow."
            )


def _link_shard(store: Store, new: Store, shard: int) -> None:
    """Link a finished shard into the new store; finished files are never modified."""
    for quantity in store.quantities:
        own = new.file(quantity.name, shard)
        own.parent.mkdir(parents=True, exist_ok=True)
        _link_or_copy(store.file(quantity.name, shard), own)
    _link_or_copy(store.manifest_file(shard), new.manifest_file(shard))


def _link_or_copy(old: Path, new: Path) -> None:
    with suppress(OSError):  # not all file systems support hard links
        os.link(old, new)
        return
    shutil.copy2(old, new)


def _copy_journal(store: Store, new: Store, shard: int) -> None:
    """Copy the journal of an unfinished shard."""
    journal = Journal(new.journal_file(shard), new.facts["identity"])
    for sample, row in Journal(store.journal_file(shard), store.facts["identity"]).read().items():
        journal.add(sample, row)


def _write_journal(store: Store, new: Store, shard: int) -> None:
    """Write finished samples of a partially filled shard to a journal, to resume from."""
    journal = Journal(new.journal_file(shard), new.facts["identity"])
    for sample, row in finished_rows(store, shard):
        journal.add(sample, row)


DEFAULT_SHARD_SIZE, LARGE_SET_SHARD_SIZE, LARGE_SET_COUNT = {"cpu": 64, "cuda": 1024}, 256, 10_000
"""Default number of samples per shard: 64 on the CPU, 1024 on a CUDA device, and 256 on the CPU for sets of
at least 10,000 samples. Larger shards give better predictions of initial positions."""


def make_store(
    spec: Spec,
    path: Path,
    overwrite: bool = False,
    command: Sequence[str] | None = None,
    grow: bool = False,
) -> Store:
    """Create, open, replace or extend the store of a spec.

    Args:
        spec: The spec.
        path: Folder of the store.
        overwrite: Replace an existing data set.
        command: Command line to record; sys.argv if None.
        grow: Extend an existing store to the sample count of the spec.
    """
    restore_replaced(path)
    if not path.exists() or not (overwrite or grow):
        return _create_or_open(spec, path, command)
    with hold_lock(path, outside=True):
        if overwrite:
            return _replace_store(spec, path, command)
        return _extend_or_open(spec, path, command)


def _create_or_open(spec: Spec, path: Path, command: Sequence[str] | None) -> Store:
    counts = Store(path).previous_counts if (path / "zarr.json").exists() else []
    return create(path, facts_of(spec, counts), command)


def _replace_store(spec: Spec, path: Path, command: Sequence[str] | None) -> Store:
    """Replace a data set; the previous one stays until the new files are written."""
    if any(path.iterdir()) and not (path / "zarr.json").exists():
        raise DatasetError(f"{path} is not a data set, so it is not deleted; name another folder.")
    facts = facts_of(spec)
    with replacing_folder(path) as folder:
        write_empty(folder, facts, command, path.name)
    return Store(path)


def _extend_or_open(spec: Spec, path: Path, command: Sequence[str] | None) -> Store:
    before = Store(path) if (path / "zarr.json").exists() else None
    if before is None or len(facts_of(spec, before.previous_counts).draw_order) <= before.count:
        return _create_or_open(spec, path, command)
    return extend_store(before, facts_of(spec, [*before.previous_counts, before.count]), command)


def facts_of(spec: Spec, counts: Sequence[int] = ()) -> Facts:
    """Determine store contents from a spec, including the design.

    Args:
        spec: The spec.
        counts: Sample counts before each extension. Later samples have ids after the earlier ones.
    """
    table, source, model = spec.table, spec.source, spec.source.model
    columns = draw(spec, counts)
    logarithmic = {vary.label for vary in table.vary if vary.scale == "log"}
    draw_order = path_in_parts(columns, logarithmic, counts)
    columns = {label: values[draw_order] for label, values in columns.items()}
    spec_values = table.model_dump(mode="json")
    origin, files = origin_of(spec_values, source), named_files(source.tables, source.file.folder)
    return Facts(
        identity=identity_of(origin, table.count, columns),
        origin=origin,
        files=files,
        spec=spec_values,
        title=spec.title,
        scene=scene_with_copied_files(source.text, files),
        columns={_folder_name(label): values for label, values in columns.items()},
        draw_order=draw_order,
        paths={_folder_name(vary.label): vary.paths for vary in table.vary},
        logarithmic={_folder_name(label) for label in logarithmic},
        quantities=quantities_of(table.store.quantities, model),
        dtype=np.dtype(table.store.precision),
        shard=table.store.shard_size
        or _default_shard_size(table.solve.device, min([*counts, len(draw_order)])),
        constants=_constants(model),
        bodies=[body.name for body in model.bodies],
        pins=[name for name, *_ in model.supports],
        previous_counts=list(counts),
    )


def _default_shard_size(device: str, count: int) -> int:
    return (
        LARGE_SET_SHARD_SIZE if device == "cpu" and count >= LARGE_SET_COUNT else DEFAULT_SHARD_SIZE[device]
    )


def _folder_name(label: str) -> str:
    return label.replace("[", "_").replace("]", "")


def _constants(model: Model) -> dict[str, tuple[np.ndarray, tuple[str, ...]]]:
    """Shared arrays of all samples: rest points, cells, surface, edges, masses, bodies, pinned vertices."""
    cells = model.cells.astype(np.int32)
    body = np.concatenate(
        [np.full(b.vertices.stop - b.vertices.start, k, np.int32) for k, b in enumerate(model.bodies)]
    )
    pinned = np.zeros(model.vertices, np.uint8)
    pinned[model.pinned] = 1
    surface = np.concatenate([b.mesh.surface + b.vertices.start for b in model.bodies]).astype(np.int32)
    return {
        "points": (model.rest, ("vertex", "xyz")),
        "cells": (cells, ("cell", "corner")),
        "surface": (surface, ("triangle", "corner")),
        "edges": (_edges(cells), ("edge", "end")),
        "mass": (model.mass, ("vertex",)),
        "body": (body, ("vertex",)),
        "pinned": (pinned, ("vertex",)),
    }


def _edges(cells: np.ndarray) -> np.ndarray:
    """(k, 2) unique edges of the cells; corners of -1 are skipped."""
    corners = cells.shape[1]
    pairs = [cells[:, [a, b]] for a in range(corners) for b in range(a + 1, corners)]
    every = np.sort(np.concatenate(pairs), axis=1)
    return np.unique(every[every[:, 0] >= 0], axis=0).astype(np.int32)
