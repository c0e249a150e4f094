"""What is in the files that a scene names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from supple.scene.errors import SceneError
from supple.scene.paths import located

SHOWN = ("title", "name", "view", "output", "render")
"""Keys of tables that make no difference to what is solved."""

FABRICS = "$SUPPLE_DATA/{}.json", "$SUPPLE_DATA/hylc/materials/{}.json"
"""Where fabrics are that are called by their names."""


def files_of(tables: Any, folder: Path) -> dict[str, str]:
    """SHA-256 of every file that the tables of a scene name relative to a folder, by the text that does."""
    found = {}
    for key, text in _texts(tables):
        for place in [text, *(at.format(text) for at in FABRICS if key == "fabric")]:
            with suppress(SceneError, OSError, ValueError):  # most texts are no paths
                if (path := located(folder, place)).is_file():
                    with path.open("rb") as file:
                        found[text] = hashlib.file_digest(file, "sha256").hexdigest()
                    break
    return dict(sorted(found.items()))


def _texts(here: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """All texts of nested tables, each with the key that it has."""
    if isinstance(here, str):
        yield key, here
    elif isinstance(here, dict):
        for name, inner in here.items():
            if name not in SHOWN:
                yield from _texts(inner, name)
    elif isinstance(here, list):
        for inner in here:
            yield from _texts(inner, key)
