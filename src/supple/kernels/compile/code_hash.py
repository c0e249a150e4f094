"""Content hash of user classes for the kernel cache, equal in every process and changed with their code.

The hash covers the input of the compiler instead of source text: the bytecode of all implementations for a
class (see `generic`), of the functions they call, and the values of the globals they read, which are
constants in compiled kernels. It does not depend on the location of a class: module, script or notebook.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

tables: list[tuple[str, Callable[[type], Callable | None]]] = []
"""Name of every generic function, and a function that returns its implementation for a class."""

_KNOWN = {"supple", "numba", "numpy", "builtins"} | set(sys.stdlib_module_names) - {"__main__"}
"""Packages whose functions are identified by name: supple's sources and the versions of Numba and Python are
part of the cache folder's name."""


class UnknownError(Exception):
    """Raised for a value whose identity in another process cannot be determined."""


def is_foreign(cls: type) -> bool:
    """True for classes defined outside of supple, or with implementations from outside."""
    if _package(cls) not in ("supple", "builtins"):
        return True
    return any(_package(implementation) != "supple" for implementation in _implementations(cls))


def identity(cls: type) -> str:
    """Hash of everything that affects compiled code for a class."""
    parts = [f"{'.'.join(cls._fields)}\n"]  # type: ignore[attr-defined]
    seen: dict[int, int] = {}
    for base in cls.__mro__:
        parts.append(f"{base.__qualname__}\n")
        if _package(base) not in _KNOWN:
            parts += [f"{name} {_constant(value)}\n" for name, value in _settings(base)]
    for name, implementation_for in sorted(tables, key=lambda entry: entry[0]):
        implementation = implementation_for(cls)
        if implementation is not None:
            parts.append(f"{name} ")
            parts += _describe(implementation, seen)
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def code_identity(function: Callable) -> str:
    """Qualified name of a supple function, or the hash of another function's code."""
    if _package(function) == "supple":
        return f"{function.__module__}.{function.__qualname__}"
    return hashlib.sha256("".join(_describe(function, {})).encode()).hexdigest()


def _implementations(cls: type) -> Iterator[Callable]:
    for _, implementation_for in tables:
        implementation = implementation_for(cls)
        if implementation is not None:
            yield implementation


def _package(value: Any) -> str:
    return (getattr(value, "__module__", None) or "").split(".")[0]


def _settings(cls: type) -> Iterator[tuple[str, Any]]:
    """Class variables such as `barrier`, which affect compiled code."""
    for name, value in sorted(vars(cls).items()):
        if not name.startswith("_") and isinstance(value, (bool, int, float, str)):
            yield name, value


def _describe(value: Any, seen: dict[int, int]) -> Iterable[str]:
    """Lines that uniquely describe a function or a value read by it."""
    if hasattr(value, "py_func"):  # compiled by Numba
        return [f"{_options(value.targetoptions)} ", *_describe(value.py_func, seen)]
    if id(value) in seen:
        return [f"again {seen[id(value)]}\n"]
    if hasattr(value, "unrolled"):  # by `each` and similar functions
        arguments, texts, using = value.unrolled
        return [f"unrolled {arguments} {texts} ", *(line for f in using for line in _describe(f, seen))]
    if isinstance(value, ModuleType):
        return [f"module {value.__name__}\n"]
    if _package(value) in _KNOWN and hasattr(value, "__qualname__"):
        return [f"{value.__module__}.{value.__qualname__}\n"]
    if isinstance(value, (BuiltinFunctionType, np.ufunc)):
        return [f"{value.__name__}\n"]
    if isinstance(value, FunctionType):
        seen[id(value)] = len(seen)
        return _describe_function(value, seen)
    if isinstance(value, type) and hasattr(value, "_fields"):
        return [f"class {value.__qualname__} {value._fields}\n"]
    return [f"{_constant(value)}\n"]


def _describe_function(function: FunctionType, seen: dict[int, int]) -> Iterator[str]:
    reader = f"{function.__module__}.{function.__qualname__}"
    yield f"function {_code(function.__code__)} "
    if hasattr(function, "overload_chooser"):
        yield from _describe(function.overload_chooser, seen)
    yield from _of(reader, "its defaults", function.__defaults__, seen)
    names = sorted(_names(function.__code__))
    read = [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    read += [
        (name, cell.cell_contents)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    ]
    for name, value in read:
        yield f"{name} "
        yield from _of(reader, name, value, seen)
        if isinstance(value, ModuleType) and value.__name__.split(".")[0] not in _KNOWN:
            for attribute in names:
                if hasattr(value, attribute):
                    yield f"{name}.{attribute} "
                    yield from _of(value.__name__, attribute, getattr(value, attribute), seen)


def _of(reader: str, name: str, value: Any, seen: dict[int, int]) -> Iterable[str]:
    try:
        return list(_describe(value, seen))
    except UnknownError:
        raise UnknownError(
            f"{reader} reads {name}, a {type(value).__name__}, whose value may differ in another process"
        ) from None


def _options(options: dict[str, Any]) -> str:
    """Options of `njit` as text; sets are sorted."""
    plain = {name: sorted(o) if isinstance(o, (set, frozenset)) else o for name, o in options.items()}
    return str(sorted(plain.items()))


def _names(code: CodeType) -> set[str]:
    nested = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*(_names(inner) for inner in nested))


def _code(code: CodeType) -> str:
    constants = [_code(c) if isinstance(c, CodeType) else _constant(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {constants} {code.co_names} {code.co_varnames} {code.co_freevars}"


def _constant(value: Any) -> str:
    """Text of a value that compiled code may contain."""
    if value is None or value is Ellipsis or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    if isinstance(value, (np.generic, np.ndarray)) and value.dtype != object:
        return f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, np.dtype):
        return str(value)
    if isinstance(value, tuple):
        return f"{type(value).__qualname__}({', '.join(map(_constant, value))})"
    if isinstance(value, frozenset):
        return f"frozenset({', '.join(sorted(map(_constant, value)))})"
    raise UnknownError
