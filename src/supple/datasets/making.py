"""Store creation from a spec: draws and writes the full design before the first solve."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from supple.datasets.creating import Facts, create, write_empty
from supple.datasets.designs import draw
from supple.datasets.errors import DatasetError
from supple.datasets.files import named_files, scene_with_copies
from supple.datasets.growing import grown
from supple.datasets.identity import identity_of, origin_of
from supple.datasets.ordering import path_in_parts
from supple.datasets.quantities import kinds_of
from supple.datasets.spec import Spec
from supple.datasets.store import Store
from supple.io.lock import locked
from supple.io.replacing import put_back, replacing_folder
from supple.model import Model

SHARD, LARGER, MANY = {"cpu": 64, "cuda": 1024}, 256, 10_000
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
    put_back(path)
    if not path.exists() or not (overwrite or grow):
        return _made(spec, path, command)
    with locked(path, beside=True):
        if overwrite:
            return _anew(spec, path, command)
        return _grown(spec, path, command)


def _made(spec: Spec, path: Path, command: Sequence[str] | None) -> Store:
    counts = Store(path).grown if (path / "zarr.json").exists() else []
    return create(path, facts_of(spec, counts), command)


def _anew(spec: Spec, path: Path, command: Sequence[str] | None) -> Store:
    """Replace a data set; the previous one stays until the new files are written."""
    if any(path.iterdir()) and not (path / "zarr.json").exists():
        raise DatasetError(f"{path} is no data set, and is not deleted; name another folder.")
    facts = facts_of(spec)
    with replacing_folder(path) as folder:
        write_empty(folder, facts, command, path.name)
    return Store(path)


def _grown(spec: Spec, path: Path, command: Sequence[str] | None) -> Store:
    before = Store(path) if (path / "zarr.json").exists() else None
    if before is None or len(facts_of(spec, before.grown).drawn) <= before.count:
        return _made(spec, path, command)
    return grown(before, facts_of(spec, [*before.grown, before.count]), command)


def facts_of(spec: Spec, counts: Sequence[int] = ()) -> Facts:
    """Determine store contents from a spec, including the design.

    Args:
        spec: The spec.
        counts: Sample counts before each extension. Later samples have ids after the earlier ones.
    """
    table, source, model = spec.table, spec.source, spec.source.model
    columns = draw(spec, counts)
    logarithmic = {vary.label for vary in table.vary if vary.scale == "log"}
    drawn = path_in_parts(columns, logarithmic, counts)
    columns = {label: values[drawn] for label, values in columns.items()}
    said = table.model_dump(mode="json")
    origin, files = origin_of(said, source), named_files(source.tables, source.file.folder)
    return Facts(
        identity=identity_of(origin, table.count, columns),
        origin=origin,
        files=files,
        spec=said,
        title=spec.title,
        scene=scene_with_copies(source.text, files),
        source=source,
        columns={_folder_name(label): values for label, values in columns.items()},
        drawn=drawn,
        paths={_folder_name(vary.label): vary.paths for vary in table.vary},
        logarithmic={_folder_name(label) for label in logarithmic},
        kinds=kinds_of(table.store.quantities, model),
        dtype=np.dtype(table.store.precision),
        shard=table.store.shard or _shard(table.solve.device, min([*counts, len(drawn)])),
        constants=_constants(model),
        bodies=[body.name for body in model.bodies],
        pins=[name for name, *_ in model.supports],
        grown=list(counts),
    )


def _shard(device: str, count: int) -> int:
    return LARGER if device == "cpu" and count >= MANY else SHARD[device]


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
