"""Disk cache of compiled kernels.

Every kernel has one file per signature, named by a hash. Numba's own index is unsuitable: it loses or
confuses entries when several processes compile at once, and it names classes by modules that other programs
do not have. Here user classes, such as a material in a script, are identified by their code (see `identity`),
and numbered instead of named in the files.

Kernels are pickles, and reading a pickle runs code. Folders and files are therefore used only if the user or
root owns them and no other user can write to them, and they are created with these permissions.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import pickle
import platform
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from multiprocessing import parent_process
from pathlib import Path
from typing import Any
from uuid import uuid4

import numba
from numba import types
from numba.core.serialize import NumbaPickler
from platformdirs import user_cache_path

from supple.kernels.compile.code_hash import UnknownError, code_identity, identity, is_foreign

log = logging.getLogger("supple")

KERNEL_PACKAGES = (
    "kernels",
    "algebra",
    "collision",
    "contact",
    "materials",
    "terms",
    "ordering",
    "problem",
    "linear",
    "solvers",
)
"""Packages with functions that Numba compiles; their sources name the cache folder."""

MAX_UNUSED_DAYS = 30
"""Days after which unused kernels are deleted."""


@cache
def cache_directory() -> Path:
    """Cache folder, named by a hash of supple's sources and the versions of Numba and Python.

    Numba itself detects changes in the file of a kernel, but not in functions called by it.
    """
    digest = hashlib.sha256(f"{numba.__version__} {platform.python_version()}".encode())
    root = Path(__file__).parents[2]
    for folder in KERNEL_PACKAGES:
        for source in sorted((root / folder).rglob("*.py")):
            digest.update(source.read_bytes())
    return user_cache_path("supple") / "kernels" / digest.hexdigest()[:16]


@cache
def can_cache() -> bool:
    """True if the cache folder is usable; Numba's fallback folders, which would miss edits, are not used."""
    return cache_obstacle() is None


@cache
def cache_obstacle() -> str | None:
    """Reason why the cache folder is unusable, or None. Logs a warning if other users could write to it."""
    folder = cache_directory()
    try:
        make_private_folder(folder)
        danger = next(
            filter(None, map(_untrusted_owner_message, (folder.parents[1], folder.parent, folder))), None
        )
    except OSError:
        return f"{folder} cannot be written"
    if danger is not None:
        if parent_process() is None:  # workers of data sets do not repeat the warning
            log.warning("The cache of compiled kernels is not used, since %s", danger)
        return danger
    with suppress(OSError):
        os.utime(folder)  # marks it as used
    return None if os.access(folder, os.W_OK) else f"{folder} cannot be written"


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents, writable by the user only."""
    for each in (*reversed(folder.parents), folder):
        if not each.exists():
            with suppress(FileExistsError):  # another process was faster
                each.mkdir(mode=0o700)
    if not folder.is_dir():
        raise NotADirectoryError(folder)


def _untrusted_owner_message(folder: Path) -> str | None:
    """Sentence about other users who could put programs into a folder, or None."""
    state = folder.stat()
    if is_private(state):
        return None
    risk = (
        f"another user (uid {state.st_uid}) owns {folder}"
        if state.st_uid not in _trusted_user_ids()
        else f"others can write to {folder} (mode {stat.S_IMODE(state.st_mode):o})"
    )
    return (
        f"{risk} and could place programs there that would be executed. Delete the folder, or set "
        "XDG_CACHE_HOME to a folder that only you can write to."
    )


def is_private(state: os.stat_result) -> bool:
    """True if the user, or root, owns a file or folder and no other user can write to it."""
    shared = state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return not hasattr(os, "geteuid") or (state.st_uid in _trusted_user_ids() and not shared)


def _trusted_user_ids() -> tuple[int, int]:
    return 0, os.geteuid()


@cache
def delete_unused() -> None:
    """Delete kernels, and folders of other source versions, that have not been used for KEPT_DAYS.

    A process that still needs one of them recompiles it.
    """
    if not can_cache():
        return
    now = time.time()
    for folder in _children(cache_directory().parent):
        if folder != cache_directory() and _is_old(folder, now):
            _remove(folder)
    for file in cache_directory().glob("*.nbc"):
        if _is_old(file, now):
            with suppress(OSError):
                file.unlink()


def _children(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _is_old(path: Path, now: float) -> bool:
    try:
        return now - path.stat().st_mtime > MAX_UNUSED_DAYS * 24 * 3600
    except OSError:  # another process has removed it
        return False


def _remove(folder: Path) -> None:
    """Rename a folder before deletion, so that no process finds it incomplete."""
    doomed = folder.with_name(f"removed {uuid4().hex}")
    with suppress(OSError):
        folder.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def cache_in_files(cache: Any, kind: str = "") -> None:
    """Replace the load and save functions of a Numba cache.

    Args:
        cache: Numba's cache of a dispatcher.
        kind: Label that separates caches of the same function.
    """

    def load_overload(signature: Any, context: Any) -> Any:
        path = _path(cache, kind, signature, context.codegen())
        return _read(path, cache, signature, context) if path is not None else None

    def save_overload(signature: Any, data: Any) -> None:
        path = _path(cache, kind, signature, data.codegen)
        if path is not None and cache._impl.check_cachable(data):
            _write(path, cache, signature, data)

    cache.load_overload, cache.save_overload = load_overload, save_overload


def _foreign_classes(signature: Any) -> list[type]:
    """User classes in a signature or in argument types, in order of appearance."""
    classes = [cls for cls in _classes(getattr(signature, "args", signature)) if is_foreign(cls)]
    return list(dict.fromkeys(classes))


def _classes(argument_types: Any) -> Iterator[type]:
    for kind in argument_types:
        if isinstance(kind, types.BaseTuple):
            if isinstance(kind, types.BaseNamedTuple):
                yield kind.instance_class  # type: ignore[attr-defined]
            yield from _classes(kind)


def _path(cache: Any, kind: str, signature: Any, codegen: Any) -> Path | None:
    """Cache file of a kernel; None for classes without identifiable code."""
    function = cache._py_func
    try:
        arguments = [_describe(argument) for argument in getattr(signature, "args", signature)]
        description = "\n".join([kind, code_identity(function), *arguments])
    except UnknownError as error:
        _log_once(f"kernels are not cached on disk and are compiled in every process: {error}")
        return None
    _, *where = cache._index_key((), codegen)
    digest = hashlib.sha256(f"{description}\n{where}".encode()).hexdigest()
    return cache_directory() / f"{function.__name__}.{digest[:32]}.nbc"


@cache
def _warn_once(sentence: str) -> None:
    log.warning(sentence)


@cache
def _log_once(sentence: str) -> None:
    log.info(sentence)


def _describe(kind: Any) -> str:
    """Text of a type, equal in every process."""
    if not isinstance(kind, types.BaseTuple):
        return str(kind)
    name = "tuple"
    if isinstance(kind, types.BaseNamedTuple):
        cls = kind.instance_class  # type: ignore[attr-defined]
        name = identity(cls) if is_foreign(cls) else f"{cls.__module__}.{cls.__qualname__}"
    return f"{name}({', '.join(_describe(part) for part in kind)})"  # type: ignore[attr-defined]


def _write(path: Path, cache: Any, signature: Any, data: Any) -> None:
    content = io.BytesIO()
    numbers = {cls: number for number, cls in enumerate(_foreign_classes(signature))}
    _Pickler(content, numbers.get).dump(cache._impl.reduce(data))
    unfinished = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        make_private_folder(path.parent)
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content.getvalue())
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        log.info("a compiled kernel could not be cached: %s", error)


def _read(path: Path, cache: Any, signature: Any, context: Any) -> Any:
    """Load a kernel from its file, or return None if it is missing or unreadable."""
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            if not is_private(state):
                _warn_once(
                    f"Other users could write to the compiled kernels in {path.parent}, so kernels are "
                    "compiled again."
                )
                return None
            content = file.read()
    except OSError:
        return None
    try:
        context.refresh()
        data = _Unpickler(io.BytesIO(content), _foreign_classes(signature)).load()
        compiled = cache._impl.rebuild(context, data)
    except Exception as error:  # damaged or foreign files raise arbitrary errors
        log.info("%s cannot be read (%s); the kernel is compiled again", path, error)
        return None
    with suppress(OSError):
        os.utime(path)  # marks it as used
    return compiled


class _Pickler(NumbaPickler):
    """Pickler that stores user classes by number instead of name."""

    def __init__(self, file: Any, number_of: Callable[[Any], int | None]) -> None:
        super().__init__(file, protocol=4)
        self._number_of = number_of

    def persistent_id(self, value: Any) -> int | None:
        return self._number_of(value) if isinstance(value, type) else None


class _Unpickler(pickle.Unpickler):
    """Unpickler that resolves class numbers."""

    def __init__(self, file: Any, classes: list[type]) -> None:
        super().__init__(file)
        self._classes = classes

    def persistent_load(self, number: int) -> type:
        return self._classes[number]
