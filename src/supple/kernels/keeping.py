"""Where compiled kernels are kept, and for how long.

Every kernel has a file for each choice of types, named by a hash of these. Numba's own index would not do: it
loses or confuses entries when several processes compile at once, and it names classes by their modules, which
other programs do not have. Here classes of users, such as a material in a script, are known by what they
compute (see `identity`), and are numbered in the files rather than named.

Kernels are pickles, and reading one runs what it says. Therefore folders and files are only used if the
user, or root, owns them and nobody else can write to them; they are made so.
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

from supple.kernels.identity import UnknownError, code_identity, identity, is_foreign

log = logging.getLogger("supple")

KEPT_DAYS = 30
"""How long kernels are kept that nobody uses."""


@cache
def cache_directory() -> Path:
    """A folder named by a hash of supple's sources and the versions of Numba and Python.

    Numba itself only notices edits in the file of the kernel, not in what the kernel calls.
    """
    digest = hashlib.sha256(f"{numba.__version__} {platform.python_version()}".encode())
    root = Path(__file__).parent.parent
    rooms = "kernels algebra contact materials terms ordering problem linear solvers"
    for folder in rooms.split():
        for source in sorted((root / folder).rglob("*.py")):
            digest.update(source.read_bytes())
    return user_cache_path("supple") / "kernels" / digest.hexdigest()[:16]


@cache
def can_keep() -> bool:
    """Whether kernels can be kept there. Numba's other places would not notice edits and are not used."""
    return why_not_kept() is None


@cache
def why_not_kept() -> str | None:
    """Why kernels cannot be kept in the cache folder, None if they can; a folder that others could write to
    is warned of."""
    folder = cache_directory()
    try:
        make_private_folder(folder)
        danger = next(filter(None, map(_danger, (folder.parents[1], folder.parent, folder))), None)
    except OSError:
        return f"{folder} cannot be written"
    if danger is not None:
        if parent_process() is None:  # workers of data sets repeat nothing
            log.warning("Compiled kernels are neither read nor kept, since %s", danger)
        return danger
    with suppress(OSError):
        os.utime(folder)  # it is in use
    return None if os.access(folder, os.W_OK) else f"{folder} cannot be written"


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are not there, to which nobody else can write."""
    for each in (*reversed(folder.parents), folder):
        if not each.exists():
            with suppress(FileExistsError):  # another process was faster
                each.mkdir(mode=0o700)
    if not folder.is_dir():
        raise NotADirectoryError(folder)


def _danger(folder: Path) -> str | None:
    """Who else could put programs into a folder, in a sentence; None if nobody could."""
    state = folder.stat()
    if is_private(state):
        return None
    who = (
        f"another user (uid {state.st_uid}) owns {folder}"
        if state.st_uid not in _trusted()
        else f"others can write to {folder} (mode {stat.S_IMODE(state.st_mode):o})"
    )
    return (
        f"{who} and could put programs there that would be run. Delete it, or set XDG_CACHE_HOME to a folder "
        "that only you can write to."
    )


def is_private(state: os.stat_result) -> bool:
    """True if the user, or root, owns a file or folder and nobody else can write to it."""
    shared = state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return not hasattr(os, "geteuid") or (state.st_uid in _trusted() and not shared)


def _trusted() -> tuple[int, int]:
    return 0, os.geteuid()


@cache
def forget_unused() -> None:
    """Remove what has not been used for a month: folders of other versions of the sources, and kernels. A
    process that still wants one of them compiles anew."""
    if not can_keep():
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
        return now - path.stat().st_mtime > KEPT_DAYS * 24 * 3600
    except OSError:  # another process has removed it
        return False


def _remove(folder: Path) -> None:
    """Under another name first, so that no process finds half of it."""
    doomed = folder.with_name(f"removed {uuid4().hex}")
    with suppress(OSError):
        folder.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def keep_in_files(cache: Any, kind: str = "") -> None:
    """Make a cache of Numba's keep kernels so. kind: tells caches of the same function apart."""

    def load_overload(signature: Any, context: Any) -> Any:
        path = _path(cache, kind, signature, context.codegen())
        return _read(path, cache, signature, context) if path is not None else None

    def save_overload(signature: Any, data: Any) -> None:
        path = _path(cache, kind, signature, data.codegen)
        if path is not None and cache._impl.check_cachable(data):
            _write(path, cache, signature, data)

    cache.load_overload, cache.save_overload = load_overload, save_overload


def _foreign_classes(signature: Any) -> list[type]:
    """The classes from outside of supple in a signature or in the types of arguments, in their order."""
    found = [cls for cls in _classes(getattr(signature, "args", signature)) if is_foreign(cls)]
    return list(dict.fromkeys(found))


def _classes(kinds: Any) -> Iterator[type]:
    for kind in kinds:
        if isinstance(kind, types.BaseTuple):
            if isinstance(kind, types.BaseNamedTuple):
                yield kind.instance_class  # type: ignore[attr-defined]
            yield from _classes(kind)


def _path(cache: Any, kind: str, signature: Any, codegen: Any) -> Path | None:
    """The file of a kernel; None if it cannot be told what its classes compute."""
    function = cache._py_func
    try:
        arguments = [_describe(argument) for argument in getattr(signature, "args", signature)]
        described = "\n".join([kind, code_identity(function), *arguments])
    except UnknownError as why:
        _say_once(f"kernels are not kept on disk, and are compiled in every process: {why}")
        return None
    _, *where = cache._index_key((), codegen)
    digest = hashlib.sha256(f"{described}\n{where}".encode()).hexdigest()
    return cache_directory() / f"{function.__name__}.{digest[:32]}.nbc"


@cache
def _warn_once(sentence: str) -> None:
    log.warning(sentence)


@cache
def _say_once(sentence: str) -> None:
    log.info(sentence)


def _describe(kind: Any) -> str:
    """A type in words that are the same in every process."""
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
        log.info("a compiled kernel could not be kept: %s", error)


def _read(path: Path, cache: Any, signature: Any, context: Any) -> Any:
    """What has been kept in a file; None if there is nothing or nothing that can be read."""
    try:
        with path.open("rb") as file:
            state = os.fstat(file.fileno())
            if not is_private(state):
                _warn_once(
                    f"Others could write to compiled kernels in {path.parent}, which are compiled again."
                )
                return None
            content = file.read()
    except OSError:
        return None
    try:
        context.refresh()
        data = _Unpickler(io.BytesIO(content), _foreign_classes(signature)).load()
        found = cache._impl.rebuild(context, data)
    except Exception as error:  # whatever a damaged file, or one of another program, leads to
        log.info("%s cannot be read (%s) and is made anew", path, error)
        return None
    with suppress(OSError):
        os.utime(path)  # it is in use
    return found


class _Pickler(NumbaPickler):
    """Writes the numbers of classes instead of their names."""

    def __init__(self, file: Any, number_of: Callable[[Any], int | None]) -> None:
        super().__init__(file, protocol=4)
        self._number_of = number_of

    def persistent_id(self, thing: Any) -> int | None:
        return self._number_of(thing) if isinstance(thing, type) else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, classes: list[type]) -> None:
        super().__init__(file)
        self._classes = classes

    def persistent_load(self, number: int) -> type:
        return self._classes[number]
