"""Creation of empty stores: everything known before the first solve, written atomically."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from supple.datasets.arrays import array, group, write_array, write_json, write_text
from supple.datasets.card import card
from supple.datasets.checksums import CHECKSUMS, UNKNOWN, checksums_of, sealed_text, write_sealed
from supple.datasets.errors import DatasetError
from supple.datasets.files import COPIES, NamedFile, copy_files, without_folder
from supple.datasets.quantities import Kind
from supple.datasets.source import Source
from supple.datasets.store import ACCOUNTS, OUTCOMES, SCHEMA, Store
from supple.datasets.tables import WORDS
from supple.io.machine import machine, versions
from supple.io.replacing import unfinished
from supple.naming import naming

PATHS = ("scene", "table")
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
        source: Scene with its original paths.
        columns: (count, size) values of each varied quantity.
        drawn: (count,) number of each sample in drawing order.
        paths: Scene paths of each varied quantity.
        logarithmic: Labels of quantities sampled evenly in their logarithm.
        kinds: Stored quantities.
        dtype: Storage type of the samples.
        shard: Samples per shard.
        constants: Arrays shared by all samples, with their axes.
        bodies: Names of the bodies.
        pins: Names of the pins.
        grown: Sample counts before each extension.
    """

    identity: str
    origin: str
    files: list[NamedFile]
    spec: dict[str, Any]
    title: str
    scene: str
    source: Source
    columns: dict[str, np.ndarray]
    drawn: np.ndarray
    paths: dict[str, list[str]]
    logarithmic: set[str]
    kinds: list[Kind]
    dtype: np.dtype
    shard: int
    constants: dict[str, tuple[np.ndarray, tuple[str, ...]]]
    bodies: list[str]
    pins: list[str]
    grown: list[int]


def create(path: Path, facts: Facts, command: Sequence[str] | None = None) -> Store:
    """Create an empty store with its full design, atomically.

    Returns:
        The new store, or the existing store with the same identity.
    """
    if path.exists():
        return same(path, facts)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = unfinished(path)
    try:
        with naming(path, temporary):
            write_empty(temporary, facts, command, path.name)
            try:
                os.rename(temporary, path)
            except OSError:
                if not path.exists():  # else another process was faster
                    raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return same(path, facts)


def same(path: Path, facts: Facts) -> Store:
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
            f"{path} is a data set of another spec, scene or design ({store.facts['title']!r}, "
            f"{store.count:,} samples, made {store.facts['created'][:10]}): "
            f"{difference(store, facts)}. Name "
            "another folder with --output, or replace it with --overwrite"
            f"{_or_grow(store, facts)}."
        )
    return store


def _or_grow(store: Store, facts: Facts) -> str:
    more = len(facts.drawn) > store.count and store.facts.get("origin") == facts.origin
    return ", or let it grow with --grow" if more else ""


def difference(store: Store, facts: Facts) -> str:
    """Short description of differences between a new spec and a store's spec."""
    old, new = store.spec, facts.spec
    keys = [key for key in {**old, **new} if key not in WORDS and old.get(key) != new.get(key)]
    if set(keys) - {"count"}:
        return "different are " + ", ".join(keys)
    own = facts.scene if store.has_checksums else facts.source.text
    if (store.path / "scene.toml").read_text(encoding="utf-8") != own:
        return "its scene is different"
    now = {file.name: file.digest for file in facts.files} if store.has_checksums else facts.source.files
    return other_files(store, now) or ("different are count" if keys else "its design is different")


def other_files(store: Store, now: dict[str, str]) -> str:
    """Message about scene files modified since store creation; empty without changes."""
    before = store.facts.get("files", now)
    changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return f"its scene is of other files now: {', '.join(changed)}" if changed else ""


def write_empty(path: Path, facts: Facts, command: Sequence[str] | None, called: str) -> None:
    """Write all store files that precede the first solve.

    Args:
        path: Folder to write to.
        facts: Contents of the store.
        command: Command line to record; sys.argv if None.
        called: Final name of the store.
    """
    count = len(facts.drawn)
    nodes: dict[str, Any] = {}
    (path / ACCOUNTS).mkdir(parents=True)
    for name in ("rest", "inputs", "samples"):
        nodes[name] = group()
        write_json(path / name / "zarr.json", nodes[name])
    for name, (values, axes) in facts.constants.items():
        nodes[f"rest/{name}"] = write_array(path / "rest" / name, values, axes)
    for label, values in facts.columns.items():
        flat = values[:, 0] if values.shape[1] == 1 else values
        axes = ("sample", "component")[: flat.ndim]
        nodes[f"inputs/{label}"] = write_array(path / "inputs" / label, flat, axes, paths=facts.paths[label])
    for kind in facts.kinds:
        metadata = array(
            (count, *kind.shape), facts.dtype, ("sample", *kind.axes), facts.shard, {"meaning": kind.text}
        )
        write_json(path / "samples" / kind.name / "zarr.json", metadata)
        nodes[f"samples/{kind.name}"] = metadata
    _write_design(path / "design.csv", facts)
    copy_files(facts.files, path / COPIES)
    write_text(path / "scene.toml", facts.scene)
    write_text(path / "zarr.json", sealed_text(_root(facts, command, nodes)))
    write_card(path, called)


def write_card(path: Path, called: str) -> None:
    """Write data card and file checksums of a new store."""
    write_text(path / "README.md", card(Store(path), called))
    every = (file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    names = [name for name in every if name not in ("zarr.json", CHECKSUMS)]
    write_sealed(path / CHECKSUMS, {"files": checksums_of(path, names)})


def _root(facts: Facts, command: Sequence[str] | None, nodes: dict[str, Any]) -> dict[str, Any]:
    said = {
        "schema": SCHEMA,
        "identity": facts.identity,
        "origin": facts.origin,
        "files": {file.name: file.digest for file in facts.files},
        "title": facts.title,
        "count": len(facts.drawn),
        "grown": facts.grown,
        "shard": facts.shard,
        "precision": facts.dtype.name,
        "quantities": [{"name": k.name, "shape": k.shape, "axes": k.axes} for k in facts.kinds],
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
        "spec": {key: without_folder(v) if key in PATHS and v else v for key, v in facts.spec.items()},
        "folder": ".",
        "units": "SI",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "command": [without_folder(word) for word in (sys.argv if command is None else command)],
    }
    root = group({"checksum": UNKNOWN, "supple": said})
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
        for number, (drawn, row) in enumerate(zip(facts.drawn, rows, strict=True)):
            file.write(f"{number},{drawn}," + ",".join(map(repr, row.tolist())) + "\n")
