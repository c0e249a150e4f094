"""Copies of meshio's readers in which no array and no loop is longer than the file."""

from __future__ import annotations

import math
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np


def bound_reader(module: ModuleType, size: int, *helpers: ModuleType, **replaced: Any) -> SimpleNamespace:
    """A copy of a reader's module that refuses counts larger than a file of this size [bytes].

    meshio allocates arrays, and repeats loops, as often as a file says. The functions of the copy share one
    namespace, in which `np` and `range` are checked; meshio itself stays as it is.

    Args:
        module: The module with the reader's functions.
        size: Size of the file [bytes]. No number takes less than a byte of it.
        helpers: Modules of meshio whose functions the reader calls.
        replaced: Other names of the module with new values.
    """
    modules = (*helpers, module)
    names: dict[str, Any] = {}
    for each in modules:
        names |= vars(each)
    names |= {"np": _Numpy(size), "range": _checked_range(size)} | replaced
    for name, value in list(names.items()):
        if isinstance(value, FunctionType) and any(value.__globals__ is vars(each) for each in modules):
            names[name] = FunctionType(value.__code__, names, name, value.__defaults__, value.__closure__)
    return SimpleNamespace(**names)


class _Numpy:
    """NumPy, with arrays whose length a file claims checked against the size of the file."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def fromfile(self, file: Any, dtype: Any = float, count: Any = -1, sep: str = "") -> np.ndarray:
        check_claim(int(count) * (1 if sep else np.dtype(dtype).itemsize), self._size)
        return np.fromfile(file, dtype, int(count), sep)

    def empty(self, shape: Any, dtype: Any = float) -> np.ndarray:
        check_claim(math.prod(map(int, np.atleast_1d(shape))), self._size)
        return np.empty(shape, dtype)

    def arange(self, *limits: Any, **options: Any) -> np.ndarray:
        check_claim(max(map(int, limits)), self._size)
        return np.arange(*limits, **options)


def _checked_range(size: int) -> Any:
    def check_range(*limits: Any) -> range:
        check_claim(max(map(int, limits)), size)
        return range(*limits)

    return check_range


def check_claim(count: int, size: int) -> None:
    """Raise a ValueError if a file claims to have more than its size [bytes] can hold."""
    if count > size:
        raise ValueError(
            f"its header announces at least {count:,} bytes of data, but the file has {size:,} bytes"
        )
