"""Compiling for a target: physics functions, generic functions chosen by type, and cached kernels."""

from __future__ import annotations

import hashlib
import inspect
import logging
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from time import perf_counter
from typing import Any

import numba
from numba import njit, types
from numba.core import config, event
from numba.core.imputils import impl_ret_untracked
from numba.extending import intrinsic, overload
from platformdirs import user_cache_path

from supple.kernels.pack import FAST_FLAGS

log = logging.getLogger("supple")
numba_config: Any = config

_OPTIONS: dict[str, Any] = {"fastmath": set(FAST_FLAGS), "error_model": "numpy"}
INLINED: Any = {"forceinline": True, **_OPTIONS}


def physics(function: Callable) -> Any:
    """A function on scalars and small tuples that kernels of every target call; always inlined."""
    return njit(**INLINED)(function)


def generic(declaration: Callable) -> Any:
    """A function whose implementation is chosen by the class of its first argument, a NamedTuple.

    In kernels the choice is made when the kernel is compiled, in Python at each call. Implementations are
    added with `@declaration.of(SomeNamedTuple)`; `.known(cls)` tells whether there is one. Choosing by type,
    unlike closing over a function, keeps Numba's on-disk cache usable.
    """
    table: dict[type, Callable] = {}
    name = declaration.__name__

    def find(cls: type) -> Callable:
        for base in cls.__mro__:
            if base in table:
                return table[base]
        raise TypeError(f"{name}() has no implementation for {cls.__name__}; add one with @{name}.of")

    @wraps(declaration)
    def call(first: Any, *rest: Any) -> Any:
        return find(type(first))(first, *rest)

    def choose(first, *rest):
        return find(first.instance_class) if isinstance(first, types.BaseNamedTuple) else None

    choose.__signature__ = inspect.signature(declaration)  # type: ignore[attr-defined]
    overload(call, jit_options=INLINED, strict=False)(choose)

    def of(cls: type) -> Callable[[Callable], Callable]:
        def add(implementation: Callable) -> Callable:
            table[cls] = implementation
            return implementation

        return add

    call.of = of  # type: ignore[attr-defined]
    call.known = lambda cls: any(base in table for base in cls.__mro__)  # type: ignore[attr-defined]
    call.classes = lambda: tuple(table)  # type: ignore[attr-defined]
    return call


def chosen_by_type(function: Callable) -> Any:
    """Decorates what gives the implementation of a function in kernels for the types of its arguments. It is
    always inlined: a process that compiles a kernel would call it, one that finds the kernel on disk would
    have it inlined, and the two would round differently."""
    return overload(function, jit_options={"forceinline": True})


def like(example: Any, values: tuple) -> Any:
    """A NamedTuple of the example's class holding `values`."""
    return type(example)._make(values)


@intrinsic
def _like(typingctx, example, values):
    made = types.BaseNamedTuple
    if isinstance(values, types.UniTuple):
        made = types.NamedUniTuple(values.dtype, values.count, example.instance_class)
    else:
        made = types.NamedTuple(values.types, example.instance_class)

    def codegen(context, builder, sig, args):
        items = [builder.extract_value(args[1], i) for i in range(len(values))]
        return impl_ret_untracked(context, builder, made, context.make_tuple(builder, made, items))

    return made(example, values), codegen


@chosen_by_type(like)
def _overload_like(example, values):
    return lambda example, values: _like(example, values)


@cache
def cache_directory() -> Path:
    """Where compiled kernels live: a folder named by a hash of supple's sources and Numba's version.

    Numba itself only notices edits in the file of the kernel, not in what the kernel calls.
    """
    digest = hashlib.sha256(f"{numba.__version__} {platform.python_version()}".encode())
    root = Path(__file__).parent.parent
    for folder in ("kernels", "algebra", "materials", "terms", "ordering", "solvers"):
        for source in sorted((root / folder).rglob("*.py")):
            digest.update(source.read_bytes())
    return user_cache_path("supple") / "kernels" / digest.hexdigest()[:16]


@cache
def can_keep() -> bool:
    """Whether kernels can be kept there. Numba's other places would not notice edits and are not used."""
    try:
        cache_directory().mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(cache_directory(), os.W_OK)


def keep_only_own_types(cache: Any) -> None:
    """Do not keep what was compiled for classes from outside of supple, such as a material in a script: other
    programs could not read the cache any more, since it names their modules."""
    save = cache.save_overload

    def save_if_own(signature: Any, data: Any) -> None:
        if not any(_is_foreign(kind) for kind in getattr(signature, "args", signature)):
            save(signature, data)

    cache.save_overload = save_if_own


def _is_foreign(kind: Any) -> bool:
    if not isinstance(kind, types.BaseTuple):
        return False
    owner = getattr(kind, "instance_class", tuple).__module__.split(".")[0]
    return owner not in ("supple", "builtins") or any(_is_foreign(part) for part in kind)  # type: ignore[attr-defined]


_kernels: set[str] = set()


def kernel(function: Callable) -> Any:
    """A compiled loop over batches, cached on disk, that releases the interpreter lock while it runs."""
    previous, numba_config.CACHE_DIR = numba_config.CACHE_DIR, str(cache_directory())
    try:
        dispatcher = njit(nogil=True, cache=can_keep(), **_OPTIONS)(function)
    finally:
        numba_config.CACHE_DIR = previous
    if can_keep() and hasattr(dispatcher, "_cache"):  # which it is not where compilation is switched off
        keep_only_own_types(dispatcher._cache)
    _kernels.add(f"{function.__module__}.{function.__qualname__}")
    return dispatcher


class _CompileListener(event.Listener):
    """Announces and times the compilation of supple's kernels."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._began = 0.0

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if self._depth or f"{function.__module__}.{function.__qualname__}" in _kernels:
            if not self._depth:
                self._began = perf_counter()
                log.info("compiling %s (once on this machine, then cached)", function.__name__)
            self._depth += 1

    def on_end(self, event: Any) -> None:
        if self._depth:
            self._depth -= 1
            if not self._depth:
                self.seconds += perf_counter() - self._began


@contextmanager
def compilation() -> Iterator[_CompileListener]:
    """Within it, kernels that have to be compiled are announced; `.seconds` is the time that took."""
    with event.install_listener("numba:compile", _CompileListener()) as listener:
        yield listener
