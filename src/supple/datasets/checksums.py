"""Checksums of all files of a store that are not chunks of samples, whose own are in the accounts of their
shards.

checksums.json has those of files that are there from the beginning; report/checksums.json those of reports,
splits and statistics, which are written again as shards are finished. Both, zarr.json and accounts have a
checksum of themselves.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from supple.datasets.arrays import write_text
from supple.datasets.errors import DatasetError
from supple.datasets.files import sha256_of

CHECKSUMS = "checksums.json"
"""The file of checksums, in a store and in its folder report/."""

UNKNOWN = "0" * 64
OWN = re.compile(r'"checksum": "([0-9a-f]{64})"')
"""Where a JSON file has the checksum of itself: the SHA-256 of its text with zeros in place of that."""


def sealed_text(values: Mapping[str, Any]) -> str:
    """JSON of values whose first "checksum" is `UNKNOWN`, with the checksum of the text in its place."""
    text = json.dumps(values)
    return text.replace(UNKNOWN, _digest(text), 1)


def write_sealed(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON file that has a checksum of itself."""
    others = {key: value for key, value in values.items() if key != "checksum"}
    write_text(path, sealed_text({"checksum": UNKNOWN, **others}))


def is_sound(text: str, required: bool = True) -> bool:
    """True when the checksum that a JSON file has of itself is right; required: False for files of earlier
    versions, which have none."""
    match = OWN.search(text)
    if match is None:
        return not required
    return _digest(text[: match.start(1)] + UNKNOWN + text[match.end(1) :]) == match[1]


def read_sealed(path: Path, required: bool = True) -> dict[str, Any]:
    """The content of a JSON file; a `DatasetError` says how it is damaged."""
    try:
        text = path.read_text(encoding="utf-8")
        values: dict[str, Any] = json.loads(text)
    except FileNotFoundError:
        raise DatasetError(f"{path} is missing.") from None
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path} is damaged ({error}).") from None
    if not is_sound(text, required):
        raise DatasetError(f"{path} is damaged or was edited: its checksum is wrong.")
    return values


def checksums_of(folder: Path, names: list[str]) -> dict[str, str]:
    """SHA-256 of files, by their names in a folder."""
    return {name: sha256_of(folder / name) for name in sorted(names)}


def wrong_files(folder: Path, checksums: Mapping[str, str]) -> Iterator[str]:
    """Sentences about files of a folder that are missing or do not have these checksums."""
    for name, checksum in checksums.items():
        path = folder / name
        try:
            sound = sha256_of(path) == checksum
        except FileNotFoundError:
            yield f"{path} is missing."
        except OSError as error:
            yield f"{path} cannot be read ({error.strerror})."
        else:
            if not sound:
                yield f"{path} is damaged or was edited: its checksum is wrong."


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
