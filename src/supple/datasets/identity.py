"""Hashes that identify the spec, scene and design of a store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from supple.datasets.source import Source
from supple.datasets.tables import WORDS


def origin_of(spec: Mapping[str, Any], source: Source) -> str:
    """Hash of everything that determines sample values, excluding the sample count and the design.

    Args:
        spec: Spec as JSON values.
        source: Scene of the data set.
    """
    said = {key: value for key, value in spec.items() if key not in WORDS}
    said |= {"count": None, "files": source.files}
    found = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    found.update(source.text.encode())
    model = source.model
    for values in (model.rest, model.cells.astype(np.int64)):
        found.update(np.ascontiguousarray(values).tobytes())
    return found.hexdigest()


def identity_of(origin: str, count: int | None, columns: Mapping[str, np.ndarray]) -> str:
    """Hash of origin and design values (count, size)."""
    found = hashlib.sha256(json.dumps([origin, count]).encode())
    for values in columns.values():
        found.update(np.ascontiguousarray(values).tobytes())
    return found.hexdigest()
