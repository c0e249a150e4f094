"""Files named by a scene: checksums, copies in a store, and the scene text that names the copies."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supple.datasets.errors import DatasetError
from supple.scene.errors import SceneError
from supple.scene.files.file_paths import resolve_path

DISPLAY_KEYS = ("title", "name", "view", "output", "render")
"""Scene keys that do not affect the solution."""

FABRIC_PATHS = "$SUPPLE_DATA/{}.json", "$SUPPLE_DATA/hylc/materials/{}.json"
"""Locations of fabrics given by name."""

FILE_KEYS = ("file", "files", "fabric")
"""Scene keys whose values are paths."""

COPY_FOLDER = "files"
"""Folder of a store with copies of the files named by its scene."""

LITERAL_PATTERN = re.compile(r'"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*')
"""Strings and comments of TOML."""


@dataclass(frozen=True)
class NamedFile:
    """File named by a scene.

    Attributes:
        text: Value in the scene file.
        name: Name of the copy in a store.
        paths: The file and its companion files.
        digest: SHA-256 of all of them.
    """

    text: str
    name: str
    paths: tuple[Path, ...]
    digest: str

    @property
    def copy_names(self) -> list[str]:
        """File names of all copies."""
        return [str(Path(self.name).with_suffix(path.suffix)) for path in self.paths]


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_of(tables: Any, folder: Path) -> dict[str, str]:
    """SHA-256 checksums of files named by scene tables, by scene value.

    Args:
        tables: Tables of the scene.
        folder: Folder that paths are relative to.
    """
    checksums = {}
    for key, text in _texts(tables, DISPLAY_KEYS):
        path = _path_of(key, text, folder)
        if path is not None:
            checksums[text] = sha256_of(path)
    return dict(sorted(checksums.items()))


def named_files(tables: Any, folder: Path) -> list[NamedFile]:
    """List the files named by scene tables, sorted by their values in the scene.

    Copies of different files get different names.
    """
    files: list[NamedFile] = []
    for text, key in sorted({text: key for key, text in _texts(tables, ()) if key in FILE_KEYS}.items()):
        path = _path_of(key, text, folder)
        if path is None:
            continue
        paths = _companion_files(path)
        digest = hashlib.sha256("".join(map(sha256_of, paths)).encode()).hexdigest()
        files.append(NamedFile(text, _free_name(path, digest, files), paths, digest))
    return files


def _path_of(key: str, text: str, folder: Path) -> Path | None:
    """Resolve a scene value to an existing file; None for other values."""
    for candidate in [text, *(at.format(text) for at in FABRIC_PATHS if key == "fabric")]:
        with suppress(SceneError, OSError, ValueError):
            if (path := resolve_path(folder, candidate)).is_file():
                return path
    return None


def _companion_files(path: Path) -> tuple[Path, ...]:
    """A file and its companion files: TetGen meshes are pairs of files."""
    pair = {".node": ".ele", ".ele": ".node"}.get(path.suffix)
    partner = None if pair is None else path.with_suffix(pair)
    return (path,) if partner is None or not partner.is_file() else (path, partner)


def _free_name(path: Path, digest: str, others: Sequence[NamedFile]) -> str:
    """File name for a copy, numbered on name collisions."""
    stem = {Path(other.name).stem.lower(): other.digest for other in others}
    name, number = path.name, 1
    while stem.get(Path(name).stem.lower(), digest) != digest:
        number += 1
        name = f"{path.stem}_{number}{path.suffix}"
    return name


def copy_files(files: Sequence[NamedFile], folder: Path) -> None:
    """Copy files to a folder.

    Raises:
        DatasetError: A file has changed since its checksum was computed.
    """
    for file in files:
        folder.mkdir(parents=True, exist_ok=True)
        copied_paths = [folder / name for name in file.copy_names]
        for path, copy in zip(file.paths, copied_paths, strict=True):
            shutil.copyfile(path, copy)
        if hashlib.sha256("".join(map(sha256_of, copied_paths)).encode()).hexdigest() != file.digest:
            raise DatasetError(f"{file.paths[0]} changed while it was copied; run the command again.")


def scene_with_copied_files(text: str, files: Sequence[NamedFile]) -> str:
    """Scene text with file paths replaced by files/NAME; all other text is unchanged."""
    names = {file.text: f"{COPY_FOLDER}/{file.name}" for file in files}
    tables, at = tomllib.loads(text), 0
    while (match := LITERAL_PATTERN.search(text, at)) is not None:
        literal, at = match[0], match.end()
        if literal.startswith("#") or (name := names.get(tomllib.loads(f"x = {literal}")["x"])) is None:
            continue
        changed = text[: match.start()] + json.dumps(name, ensure_ascii=False) + text[match.end() :]
        with suppress(tomllib.TOMLDecodeError):
            if _only_paths_differ(tables, tomllib.loads(changed), names):
                text, at = changed, at + len(changed) - len(text)
    return text


def _only_paths_differ(old: Any, new: Any, names: Mapping[str, str], key: str = "") -> bool:
    """True if nested tables differ only by file paths."""
    if isinstance(old, dict) and isinstance(new, dict):
        return list(old) == list(new) and all(_only_paths_differ(old[k], new[k], names, k) for k in old)
    if isinstance(old, list) and isinstance(new, list):
        pairs = zip(old, new, strict=False)
        return len(old) == len(new) and all(_only_paths_differ(a, b, names, key) for a, b in pairs)
    moved = isinstance(old, str) and key in FILE_KEYS and new == names.get(old)
    return bool(moved or old == new or (old != old and new != new))


def strip_folder(text: str) -> str:
    """Strip folders from an absolute path or a command argument ending in one."""
    before, equals, path = text.rpartition("=")
    absolute = path.startswith(("/", "~", "$")) or re.match(r"[A-Za-z]:[\\/]|\\\\", path)
    return before + equals + re.split(r"[\\/]", path.rstrip("\\/"))[-1] if absolute else text


def _texts(node: Any, left_out: Sequence[str], key: str = "") -> Iterator[tuple[str, str]]:
    """Yield all strings of nested tables with their keys."""
    if isinstance(node, str):
        yield key, node
    elif isinstance(node, dict):
        for name, inner in node.items():
            if name not in left_out:
                yield from _texts(inner, left_out, name)
    elif isinstance(node, list):
        for inner in node:
            yield from _texts(inner, left_out, key)
