"""Checksums of all store files except sample chunks, whose checksums are in the shard manifests.

checksums.json covers the files written at creation; report/checksums.json covers reports, splits and
statistics, which are rewritten as shards finish. Both of these files, zarr.json and the manifests contain
their own checksum.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from supple.datasets.errors import DatasetError
from supple.datasets.store.scene_files import sha256_of
from supple.datasets.store.zarr_arrays import write_text

CHECKSUM_FILE = "checksums.json"
"""Name of the checksum file, in a store and in its folder report/."""

CHECKSUM_PLACEHOLDER = "0" * 64
OWN_CHECKSUM = re.compile(r'"checksum": "([0-9a-f]{64})"')
"""A JSON file's own checksum: SHA-256 of its text with zeros in place of the checksum."""


def text_with_checksum(values: Mapping[str, Any]) -> str:
    """Serialize values as JSON; the first `CHECKSUM_PLACEHOLDER` becomes the checksum of the text."""
    text = json.dumps(values)
    return text.replace(CHECKSUM_PLACEHOLDER, _digest(text), 1)


def write_with_checksum(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON file that contains its own checksum."""
    others = {key: value for key, value in values.items() if key != "checksum"}
    write_text(path, text_with_checksum({"checksum": CHECKSUM_PLACEHOLDER, **others}))


def has_valid_checksum(text: str) -> bool:
    """True if a JSON text stores its own checksum."""
    match = OWN_CHECKSUM.search(text)
    if match is None:
        return False
    return _digest(text[: match.start(1)] + CHECKSUM_PLACEHOLDER + text[match.end(1) :]) == match[1]


def read_verified(path: Path) -> dict[str, Any]:
    """Read a JSON file and verify the checksum stored in it.

    Raises:
        DatasetError: The file is missing, unreadable, damaged or edited.
    """
    try:
        text = path.read_text(encoding="utf-8")
        values: dict[str, Any] = json.loads(text)
    except FileNotFoundError:
        raise DatasetError(f"{path} is missing.") from None
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path} is damaged ({error}).") from None
    if not has_valid_checksum(text):
        raise DatasetError(f"{path} is damaged or was edited: its checksum is wrong.")
    return values


def checksums_of(folder: Path, names: list[str]) -> dict[str, str]:
    """SHA-256 checksums by file name."""
    return {name: sha256_of(folder / name) for name in sorted(names)}


def wrong_files(folder: Path, checksums: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence per missing or damaged file of a folder."""
    for name, checksum in checksums.items():
        path = folder / name
        try:
            matches = sha256_of(path) == checksum
        except FileNotFoundError:
            yield f"{path} is missing."
        except OSError as error:
            yield f"{path} cannot be read ({error.strerror})."
        else:
            if not matches:
                yield f"{path} is damaged or was edited: its checksum is wrong."


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
