"""Compilation for CPU and CUDA: inlined device functions, functions dispatched by type, cached kernels.

NamedTuple classes get unique names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property, wraps
from typing import Any

from numba import njit, types
from numba.core import config
from numba.core.imputils import impl_ret_untracked
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic, overload

from supple.kernels.compile.code_hash import tables
from supple.kernels.compile.disk_cache import cache_directory, cache_in_files, can_cache
from supple.kernels.compile.inlining import ControlCompiler, DeviceFunctionCompiler, KernelCompiler
from supple.kernels.compile.notices import announce
from supple.kernels.simd.pack import FAST_FLAGS

_owners: dict[str, type] = {}


def make_name_unique(cls: type) -> None:
    """Append a number to a class name already used by another class: Gent_2 after Gent.

    Numba identifies the types of kernel arguments by class name and member types. Without unique names, a
    user's material with the name of a built-in one, or a class redefined in a notebook, would run the code of
    the first class of that name.
    """
    name, number = cls.__name__, 2
    while _owners.setdefault(cls.__name__, cls) is not cls:
        cls.__name__ = f"{name}_{number}"
        number += 1


numba_config: Any = config

_OPTIONS: dict[str, Any] = {"fastmath": set(FAST_FLAGS), "error_model": "numpy"}
INLINED: Any = {"forceinline": True, **_OPTIONS}
NO_REFERENCE_COUNTING: Any = {"_nrt": False}
"""Numba option without reference counting. Kernels do not own arrays, and reference counting for every array
in every tuple would dominate compile times."""


class _InlinedFunction(CPUDispatcher):
    """Inlined function, compiled as part of kernels only; a call from Python compiles it separately."""

    def __call__(self, *args: Any) -> Any:
        return self._compiled_function(*args)

    @cached_property
    def _compiled_function(self) -> Any:
        return njit(**_OPTIONS)(self.py_func)


def device_function(function: Callable) -> Any:
    """Decorate a function on scalars and small tuples for kernels of every target; always inlined."""
    return _inlined_dispatcher(function, INLINED)


def strict_order(function: Callable) -> Any:
    """Decorate a device function like `device_function`, but without reordering of sums.

    With reordering, LLVM vectorizes short inner loops, such as those over the blocks in a matrix row, which
    makes them three times slower.
    """
    return _inlined_dispatcher(function, {**INLINED, "fastmath": {"contract"}})


def inline_control(function: Callable) -> Any:
    """Decorate a control-flow function, such as a loop around other functions.

    Always inlined, and optimized only as part of its kernel.
    """
    return _inlined_dispatcher(function, INLINED, ControlCompiler)


def _inlined_dispatcher(
    function: Callable, options: dict[str, Any], compiler: type = DeviceFunctionCompiler
) -> Any:
    dispatcher = njit(pipeline_class=compiler, **options, **NO_REFERENCE_COUNTING)(function)
    if _is_compiled(dispatcher):
        dispatcher.__class__ = _InlinedFunction
    return dispatcher


def register_overload(
    function: Callable,
    choose: Callable,
    options: Any = INLINED,
    strict: bool = False,
    compiler: type = DeviceFunctionCompiler,
) -> None:
    """Register `choose`, which returns the implementation of a function by argument type, for all targets."""
    overload(function, jit_options=options, strict=strict)(choose)
    options = {"pipeline_class": compiler, **options, **NO_REFERENCE_COUNTING}
    overload(function, jit_options=options, strict=strict, target="cpu")(choose)


def generic(declaration: Callable, control_flow: bool = False) -> Any:
    """Decorate a function whose implementation is selected by the class of its first argument, a NamedTuple.

    Kernels select the implementation at compile time, Python at each call. `@declaration.of(SomeNamedTuple)`
    registers an implementation. `declaration.write(SomeNamedTuple, writer)` registers a factory, called with
    that class or a subclass on first use. `declaration.has_implementation(cls)` is True for supported
    classes. In contrast to closures over functions, selection by type keeps Numba's disk cache usable.

    Args:
        declaration: Function with the signature and docstring.
        control_flow: Compile the implementations as `inline_control`.
    """
    table: dict[type, Callable] = {}
    writers: dict[type, Callable[[type], Callable]] = {}
    name = declaration.__name__

    def find(cls: type) -> Callable:
        for base in cls.__mro__:
            if base in table:
                return table[base]
            if base in writers:
                return table.setdefault(cls, writers[base](cls))
        raise TypeError(f"{name}() has no implementation for {cls.__name__}; add one with @{name}.of")

    def has_implementation(cls: type) -> bool:
        return any(base in table or base in writers for base in cls.__mro__)

    tables.append(
        (f"{declaration.__module__}.{name}", lambda cls: find(cls) if has_implementation(cls) else None)
    )

    @wraps(declaration)
    def call(first: Any, *rest: Any) -> Any:
        return find(type(first))(first, *rest)

    def choose(first, *rest):
        return find(first.instance_class) if isinstance(first, types.BaseNamedTuple) else None

    choose.__signature__ = inspect.signature(declaration)  # type: ignore[attr-defined]
    register_overload(call, choose, compiler=ControlCompiler if control_flow else DeviceFunctionCompiler)

    def of(cls: type) -> Callable[[Callable], Callable]:
        make_name_unique(cls)

        def add(implementation: Callable) -> Callable:
            table[cls] = implementation
            return implementation

        return add

    call.of = of  # type: ignore[attr-defined]
    call.write = writers.__setitem__  # type: ignore[attr-defined]
    call.has_implementation = has_implementation  # type: ignore[attr-defined]
    call.classes = lambda: tuple(table)  # type: ignore[attr-defined]
    call.owner = lambda cls: next(base for base in cls.__mro__ if base in table)  # type: ignore[attr-defined]
    return call


def generic_control(declaration: Callable) -> Any:
    """Decorate a `generic` function with implementations compiled as `inline_control`."""
    return generic(declaration, control_flow=True)


def overload_by_type(function: Callable, control_flow: bool = False) -> Any:
    """Decorate a function that returns the kernel implementation of `function` for given argument types.

    The implementation is always inlined. Otherwise a process that compiles a kernel would call it, whereas a
    kernel from the disk cache would have it inlined, and the two would round differently.

    Args:
        function: Function to implement.
        control_flow: Compile the implementation as `inline_control`.
    """
    compiler = ControlCompiler if control_flow else DeviceFunctionCompiler

    def decorate(choose: Callable) -> Callable:
        function.overload_chooser = choose  # type: ignore[attr-defined]
        register_overload(function, choose, {"forceinline": True}, True, compiler)
        return choose

    return decorate


def like(example: Any, values: tuple) -> Any:
    """Build a NamedTuple of the example's class from `values`."""
    return type(example)._make(values)


@intrinsic
def _like(typingctx, example, values):
    result_type = types.BaseNamedTuple
    if isinstance(values, types.UniTuple):
        result_type = types.NamedUniTuple(values.dtype, values.count, example.instance_class)
    else:
        result_type = types.NamedTuple(values.types, example.instance_class)

    def codegen(context, builder, sig, args):
        items = [builder.extract_value(args[1], i) for i in range(len(values))]
        return impl_ret_untracked(
            context, builder, result_type, context.make_tuple(builder, result_type, items)
        )

    return result_type(example, values), codegen


@overload_by_type(like)
def _overload_like(example, values):
    return lambda example, values: _like(example, values)


def base_of(derived: Any) -> Any:
    """Leading members of a NamedTuple, as an instance of the class named by `base`."""
    kind = type(derived).base
    return kind._make(derived[: len(kind._fields)])


@intrinsic
def _base_of(typingctx, derived):
    kind = derived.instance_class.base
    count = len(kind._fields)
    result_type = types.BaseTuple.from_types(tuple(derived)[:count], kind)

    def codegen(context, builder, sig, args):
        items = [builder.extract_value(args[0], i) for i in range(count)]
        return impl_ret_untracked(
            context, builder, result_type, context.make_tuple(builder, result_type, items)
        )

    return result_type(derived), codegen


@overload_by_type(base_of)
def _overload_base_of(derived):
    return lambda derived: _base_of(derived)


def kernel(function: Callable) -> Any:
    """Decorate a kernel: compiled, cached on disk, releases the interpreter lock, allocates no arrays."""
    return _kernel(function, NO_REFERENCE_COUNTING)


def allocating_kernel(function: Callable) -> Any:
    """Decorate a kernel that allocates arrays; functions it calls must not return arrays."""
    return _kernel(function, {})


def _kernel(function: Callable, counting: dict[str, Any]) -> Any:
    options: Any = {"nogil": True, "cache": can_cache(), "no_cfunc_wrapper": True, **_OPTIONS, **counting}
    previous, numba_config.CACHE_DIR = numba_config.CACHE_DIR, str(cache_directory())
    try:
        dispatcher = njit(pipeline_class=KernelCompiler, **options)(function)
    finally:
        numba_config.CACHE_DIR = previous
    if can_cache() and _is_compiled(dispatcher):
        cache_in_files(dispatcher._cache)
    announce(function)
    return dispatcher


def _is_compiled(function: Any) -> bool:
    """False if Numba's compilation is disabled."""
    return isinstance(function, CPUDispatcher)
