"""Numba compiler pipelines: inlined functions are lowered only as far as kernels need them.

By default Numba gives every function two wrappers and translates it to machine code, both unused for inlined
functions.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, DefaultPassBuilder, PassManager, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import NativeLowering


class _DeviceFunctionLibrary(JITCodeLibrary):
    """Code library linked into kernels, optimized beforehand so that it rounds identically in all of them."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _ControlLibrary(_DeviceFunctionLibrary):
    """Code library of control-flow functions, not optimized beforehand.

    The functions it calls are optimized already. A second pass at each level of nesting would take time and
    change rounding.
    """

    def _optimize_final_module(self) -> None:
        pass


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerDeviceFunction(NativeLowering):
    """Lower to LLVM's intermediate representation, without wrappers and machine code."""

    _name = "lower_ingredient"
    _library: type[_DeviceFunctionLibrary] = _DeviceFunctionLibrary

    def run_pass(self, state: Any) -> bool:
        library = state.library = self._library(state.targetctx.codegen(), state.func_id.func_qualname)
        flags = state.flags
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
        super().run_pass(state)
        library.finalize()
        lowered = state["cr"]
        module, name = lowered.fndesc.lookup_module(), state.func_id.func_name
        entry = _dynfunc.make_function(module, name, name, 0, lowered.env, (library,))
        state.targetctx.insert_user_function(entry, lowered.fndesc, [library])
        state.reload_init.extend(library._reload_init)
        state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=entry, env=lowered.env)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerControl(_LowerDeviceFunction):
    _name = "lower_passage"
    _library = _ControlLibrary


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerKernel(NativeLowering):
    """Lower to machine code, and provide the Python environment that inlined functions need, for example for
    `print`."""

    _name = "lower_kernel"

    def run_pass(self, state: Any) -> bool:
        super().run_pass(state)
        for variable in state.library._final_module.global_variables:
            environment = lookup_environment(variable.name)
            if environment is not None:
                state.library.codegen.set_env(variable.name, environment)
        return True


def _pipeline(state: Any, lowering: type) -> list[PassManager]:
    manager = DefaultPassBuilder.define_nopython_pipeline(state)
    manager.passes = [(lowering if kind is NativeLowering else kind, why) for kind, why in manager.passes]
    manager.finalize()
    return [manager]


class DeviceFunctionCompiler(Compiler):
    """Compiler of inlined functions."""

    def define_pipelines(self) -> list[PassManager]:
        return _pipeline(self.state, _LowerDeviceFunction)


class ControlCompiler(Compiler):
    """Compiler of inlined control-flow functions."""

    def define_pipelines(self) -> list[PassManager]:
        return _pipeline(self.state, _LowerControl)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Context manager that disables garbage collection.

    The compiler creates many objects and little garbage; the collector would take one eighth of its time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class KernelCompiler(Compiler):
    """Compiler of kernels, with random function numbers.

    Numba numbers functions to distinguish their machine code, starting at the same number in every process.
    Code from the disk cache could then be confused with another function of the same name.
    """

    def compile_extra(self, function: Callable) -> Any:
        with _without_collection():
            return super().compile_extra(function)

    def define_pipelines(self) -> list[PassManager]:
        self.state.func_id.unique_id = uuid4().int >> 65
        return _pipeline(self.state, _LowerKernel)
