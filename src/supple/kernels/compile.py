"""Compiling for a target: physics functions, generic functions chosen by type, and cached kernels."""

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

from supple.kernels.announcing import announce
from supple.kernels.apart import name_apart
from supple.kernels.identity import tables
from supple.kernels.inlining import IngredientCompiler, KernelCompiler, PassageCompiler
from supple.kernels.keeping import cache_directory, can_keep, keep_in_files
from supple.kernels.pack import FAST_FLAGS

numba_config: Any = config

_OPTIONS: dict[str, Any] = {"fastmath": set(FAST_FLAGS), "error_model": "numpy"}
INLINED: Any = {"forceinline": True, **_OPTIONS}
UNCOUNTED: Any = {"_nrt": False}
"""Arrays are the caller's, and nobody counts references to them: to compile that for every array in every
tuple takes longer than all else."""


class _Ingredient(CPUDispatcher):
    """A function that has machine code only as a part of kernels; called from Python it is compiled alone."""

    def __call__(self, *args: Any) -> Any:
        return self._alone(*args)

    @cached_property
    def _alone(self) -> Any:
        return njit(**_OPTIONS)(self.py_func)


def physics(function: Callable) -> Any:
    """A function on scalars and small tuples that kernels of every target call; always inlined."""
    return _ingredient(function, INLINED)


def ordered(function: Callable) -> Any:
    """`physics` whose sums keep their order. If they need not, LLVM vectorises short inner loops, such as
    those over the blocks in a row of a matrix, which makes them three times slower."""
    return _ingredient(function, {**INLINED, "fastmath": {"contract"}})


def passage(function: Callable) -> Any:
    """A function that only leads to what others do, such as a loop around it: always inlined, and optimised
    with its kernel only."""
    return _ingredient(function, INLINED, PassageCompiler)


def _ingredient(function: Callable, options: dict[str, Any], compiler: type = IngredientCompiler) -> Any:
    dispatcher = njit(pipeline_class=compiler, **options, **UNCOUNTED)(function)
    if _is_compiled(dispatcher):
        dispatcher.__class__ = _Ingredient
    return dispatcher


def let_choose(
    function: Callable,
    choose: Callable,
    options: Any = INLINED,
    strict: bool = False,
    compiler: type = IngredientCompiler,
) -> None:
    """Let `choose` give the implementation of a function in kernels of every target."""
    overload(function, jit_options=options, strict=strict)(choose)
    options = {"pipeline_class": compiler, **options, **UNCOUNTED}
    overload(function, jit_options=options, strict=strict, target="cpu")(choose)


def generic(declaration: Callable, leads_on: bool = False) -> Any:
    """A function whose implementation is chosen by the class of its first argument, a NamedTuple. leads_on:
    whether the implementations are a `passage` each.

    In kernels the choice is made when the kernel is compiled, in Python at each call. Implementations are
    added with `@declaration.of(SomeNamedTuple)`, or by `declaration.write(SomeNamedTuple, writer)`: then the
    writer is called with a class, that one or one below it, when its implementation is first wanted;
    `.known(cls)` tells whether there is one. Choosing by type, unlike closing over a function, keeps Numba's
    on-disk cache usable.
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

    def known(cls: type) -> bool:
        return any(base in table or base in writers for base in cls.__mro__)

    tables.append((f"{declaration.__module__}.{name}", lambda cls: find(cls) if known(cls) else None))

    @wraps(declaration)
    def call(first: Any, *rest: Any) -> Any:
        return find(type(first))(first, *rest)

    def choose(first, *rest):
        return find(first.instance_class) if isinstance(first, types.BaseNamedTuple) else None

    choose.__signature__ = inspect.signature(declaration)  # type: ignore[attr-defined]
    let_choose(call, choose, compiler=PassageCompiler if leads_on else IngredientCompiler)

    def of(cls: type) -> Callable[[Callable], Callable]:
        name_apart(cls)

        def add(implementation: Callable) -> Callable:
            table[cls] = implementation
            return implementation

        return add

    call.of = of  # type: ignore[attr-defined]
    call.write = writers.__setitem__  # type: ignore[attr-defined]
    call.known = known  # type: ignore[attr-defined]
    call.classes = lambda: tuple(table)  # type: ignore[attr-defined]
    call.owner = lambda cls: next(base for base in cls.__mro__ if base in table)  # type: ignore[attr-defined]
    return call


def generic_passage(declaration: Callable) -> Any:
    """A `generic` function whose implementations are a `passage` each."""
    return generic(declaration, leads_on=True)


def chosen_by_type(function: Callable, leads_on: bool = False) -> Any:
    """Decorates what gives the implementation of a function in kernels for the types of its arguments. It is
    always inlined: a process that compiles a kernel would call it, one that finds the kernel on disk would
    have it inlined, and the two would round differently. leads_on: whether it is a `passage`."""
    compiler = PassageCompiler if leads_on else IngredientCompiler

    def decorate(choose: Callable) -> Callable:
        function.chosen_by = choose  # type: ignore[attr-defined]
        let_choose(function, choose, {"forceinline": True}, True, compiler)
        return choose

    return decorate


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


def base_of(whole: Any) -> Any:
    """The first members of a NamedTuple as one of the class that its own class names as its `base`."""
    kind = type(whole).base
    return kind._make(whole[: len(kind._fields)])


@intrinsic
def _base_of(typingctx, whole):
    kind = whole.instance_class.base
    count = len(kind._fields)
    made = types.BaseTuple.from_types(tuple(whole)[:count], kind)

    def codegen(context, builder, sig, args):
        items = [builder.extract_value(args[0], i) for i in range(count)]
        return impl_ret_untracked(context, builder, made, context.make_tuple(builder, made, items))

    return made(whole), codegen


@chosen_by_type(base_of)
def _overload_base_of(whole):
    return lambda whole: _base_of(whole)


def kernel(function: Callable) -> Any:
    """A compiled loop over batches, cached on disk, that releases the interpreter lock while it runs. It
    makes no arrays."""
    return _kernel(function, UNCOUNTED)


def maker(function: Callable) -> Any:
    """A kernel that makes arrays of its own; what it calls returns none."""
    return _kernel(function, {})


def _kernel(function: Callable, counting: dict[str, Any]) -> Any:
    options: Any = {"nogil": True, "cache": can_keep(), "no_cfunc_wrapper": True, **_OPTIONS, **counting}
    previous, numba_config.CACHE_DIR = numba_config.CACHE_DIR, str(cache_directory())
    try:
        dispatcher = njit(pipeline_class=KernelCompiler, **options)(function)
    finally:
        numba_config.CACHE_DIR = previous
    if can_keep() and _is_compiled(dispatcher):
        keep_in_files(dispatcher._cache)
    announce(function)
    return dispatcher


def _is_compiled(function: Any) -> bool:
    """Which it is not where compilation is switched off."""
    return isinstance(function, CPUDispatcher)
