"""A fake GPU with its driver and numba-cuda: all external modules that supple.kernels.cuda imports.

Device memory is separate and initialized with UNINITIALIZED_BYTE, and every copy is checked to stay within an
allocation. A launch is decoded as on a GPU: its values are assembled by the argument types of the compiled
kernel, which then runs lane by lane on the CPU.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any

import numba
import numpy as np
from numba import types

from supple.kernels.emulated_gpu import Lanewise
from supple.kernels.simd.load_store import WARP

UNINITIALIZED_BYTE = 0xCC
"""Initial value of every byte of device memory."""


class CUresult(Enum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_LAUNCH_FAILED = 719


SUCCESS = CUresult.CUDA_SUCCESS


class FakeCard:
    """State of the fake GPU. total: memory [bytes]; present: whether a driver answers; pools: whether memory
    pools exist; failing: error code of every call, or None."""

    def __init__(self) -> None:
        self.total, self.present, self.pools = 1 << 30, True, True
        self.failing: CUresult | None = None
        self.blocks = 6
        self.allocations: dict[int, np.ndarray] = {}
        self.earlier: dict[int, np.ndarray] = {}
        """Allocations of earlier tests that are not freed yet, whose memory must not be reused."""
        self.reserved = 0
        self.functions: dict[int, Compiled] = {}
        self.launched: list[str] = []
        self.grids: list[tuple[int, int, int]] = []
        self.compiled: list[str] = []
        self.bound: list[str] = []
        self.moved = 0

    @property
    def used(self) -> int:
        return sum(memory.nbytes for memory in self.allocations.values())

    def at(self, pointer: int, size: int) -> int:
        """The pointer, checked to lie with `size` bytes in one allocation."""
        for start, memory in self.allocations.items():
            if start <= pointer and pointer + size <= start + memory.nbytes:
                return pointer
        raise AssertionError(f"{size} bytes at {pointer:#x} are no memory of the card")


class Driver(ModuleType):
    """The module cuda.bindings.driver."""

    CUresult = CUresult
    CUfunction = CUdevice = cuuint64_t = staticmethod(int)
    CUdevice_attribute = SimpleNamespace(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED="pools")
    CUmemPool_attribute = SimpleNamespace(
        CU_MEMPOOL_ATTR_RELEASE_THRESHOLD="threshold",
        CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT="reserved",
        CU_MEMPOOL_ATTR_USED_MEM_CURRENT="used",
    )

    def __init__(self, card: FakeCard) -> None:
        super().__init__("cuda.bindings.driver")
        self.card = card

    def _dispatch(self, *values: Any) -> tuple:
        return (self.card.failing, *(None for _ in values)) if self.card.failing else (SUCCESS, *values)

    def cuCtxSynchronize(self) -> tuple:
        return self._dispatch()

    def cuDeviceGetAttribute(self, attribute: str, device: int) -> tuple:
        return self._dispatch(int(self.card.pools))

    def cuDeviceGetDefaultMemPool(self, device: int) -> tuple:
        return self._dispatch("the pool")

    def cuMemPoolSetAttribute(self, pool: str, attribute: str, value: int) -> tuple:
        return self._dispatch()

    def cuMemPoolGetAttribute(self, pool: str, attribute: str) -> tuple:
        return self._dispatch(getattr(self.card, attribute))

    def cuMemPoolTrimTo(self, pool: str, size: int) -> tuple:
        self.card.reserved = max(size, self.card.used)
        return self._dispatch()

    def cuMemGetInfo(self) -> tuple:
        return self._dispatch(self.card.total - self.card.reserved, self.card.total)

    def cuMemAllocAsync(self, size: int, stream: int) -> tuple:
        card = self.card
        if card.used + size > card.total:
            return CUresult.CUDA_ERROR_OUT_OF_MEMORY, None
        memory = np.full(size + 64, UNINITIALIZED_BYTE, np.uint8)
        first = -memory.ctypes.data % 64
        memory = memory[first : first + size]
        card.allocations[memory.ctypes.data] = memory
        card.reserved = max(card.reserved, card.used)
        return self._dispatch(memory.ctypes.data)

    def cuMemFreeAsync(self, pointer: int, stream: int) -> tuple:
        del (self.card.allocations if pointer in self.card.allocations else self.card.earlier)[pointer]
        return self._dispatch()

    def cuMemcpyHtoD(self, target: int, source: int, size: int) -> tuple:
        self.card.moved += size
        ctypes.memmove(self.card.at(target, size), source, size)
        return self._dispatch()

    def cuMemcpyDtoH(self, target: int, source: int, size: int) -> tuple:
        self.card.moved += size
        ctypes.memmove(target, self.card.at(source, size), size)
        return self._dispatch()

    def cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int) -> tuple:
        ctypes.memmove(self.card.at(target, size), self.card.at(source, size), size)
        return self._dispatch()

    def cuMemsetD8Async(self, target: int, value: int, size: int, stream: int) -> tuple:
        ctypes.memset(self.card.at(target, size), value, size)
        return self._dispatch()

    def cuLaunchCooperativeKernel(self, function: int, *sizes: int) -> tuple:
        *grid, threads, y, z, shared, stream, values = sizes
        assert (grid[2], y, z, shared, stream) == (1, 1, 1, 0, 0)
        assert threads % WARP == 0
        assert 1 <= grid[0] * grid[1] <= self.card.blocks, "all blocks must be on the card at once"
        if not self.card.failing:
            self.card.grids.append((grid[0], grid[1], threads))
            self.card.functions[function].run(self.card, values, grid[0] * grid[1])
        return self._dispatch()


class Compiled:
    """A kernel for some types of its arguments, of which the team is the first."""

    numbers = count(1)

    def __init__(self, card: FakeCard, function: Any, types: tuple) -> None:
        self.card, self.function, self.signature = card, function, types
        self.codegen = CODEGEN
        handle = next(self.numbers)
        card.functions[handle] = self
        self._codelibrary = SimpleNamespace(get_cufunc=lambda: SimpleNamespace(handle=handle))

    def max_cooperative_grid_blocks(self, threads: int) -> int:
        return self.card.blocks

    def bind(self) -> None:
        self.card.bound.append(self.function.__name__)

    def run(self, card: FakeCard, values: int, blocks: int) -> None:
        """Run all blocks in sequence; arrivals continue from the count of the launch."""
        words = _addresses(values)
        team, *args = (_decoded(card, kind, words) for kind in self.signature)
        assert int(team.arrivals[0]) == team.before, "blocks would wait for each other forever"
        active = getattr(team, "active", np.zeros(1, np.int32))
        left = np.zeros(1, np.int64)
        kernel = getattr(sys.modules[self.function.__module__], self.function.__name__)
        kernel(Lanewise(active, np.int64(team.records), left), *args)
        team.arrivals[0] = (int(team.arrivals[0]) + int(left[0]) * blocks) % 2**32
        card.launched.append(self.function.__name__)


def _addresses(values: int) -> Iterator[int]:
    """Addresses of the values of a launch."""
    size = ctypes.sizeof(ctypes.c_void_p)
    for k in count():
        yield ctypes.c_void_p.from_address(values + k * size).value or 0


def _decoded(card: FakeCard, kind: Any, words: Iterator[int]) -> Any:
    """Value of a type, decoded from the next words."""
    if isinstance(kind, types.BaseTuple):
        items = [_decoded(card, item, words) for item in kind]  # type: ignore[attr-defined]
        return kind.instance_class._make(items) if hasattr(kind, "instance_class") else tuple(items)
    if not isinstance(kind, types.Array):
        word = ctypes.c_int64 if kind == types.int64 else ctypes.c_double
        return word.from_address(next(words)).value
    numbers = [ctypes.c_int64.from_address(next(words)).value for _ in range(5 + 2 * kind.ndim)]
    _, _, items, itemsize, pointer = numbers[:5]
    shape, strides = tuple(numbers[5 : 5 + kind.ndim]), tuple(numbers[5 + kind.ndim :])
    like = np.empty(shape, numba.np.numpy_support.as_dtype(kind.dtype))
    assert (items, itemsize) == (like.size, like.itemsize)
    if not like.nbytes:
        return like
    assert strides == like.strides
    memory = (ctypes.c_char * like.nbytes).from_address(card.at(pointer, like.nbytes))
    return np.frombuffer(memory, like.dtype).reshape(shape)


CODEGEN = SimpleNamespace(magic="sm_00")


class Cache:
    """The parts of a Numba cache that `keep_in_files` uses."""

    def __init__(self, card: FakeCard, function: Any) -> None:
        self._py_func, self._impl = function, self
        self._card = card

    def load_overload(self, types: Any, context: Any) -> None:
        return None

    def save_overload(self, types: Any, compiled: Any) -> None:
        pass

    def _index_key(self, types: Any, codegen: Any) -> tuple:
        return types, codegen.magic

    def check_cachable(self, compiled: Compiled) -> bool:
        return True

    def reduce(self, compiled: Compiled) -> tuple:
        return (compiled.signature,)

    def rebuild(self, context: Any, reduced: tuple) -> Compiled:
        return Compiled(self._card, self._py_func, *reduced)


class Dispatcher:
    def __init__(self, card: FakeCard, function: Any) -> None:
        self.card, self.function, self._cache = card, function, Cache(card, function)
        self.targetctx = SimpleNamespace(codegen=lambda: CODEGEN, refresh=lambda: None)

    def compile(self, types: tuple) -> Compiled:
        self.card.compiled.append(self.function.__name__)
        compiled = Compiled(self.card, self.function, types)
        self._cache.save_overload(types, compiled)
        return compiled


def numba_cuda(card: FakeCard) -> ModuleType:
    """The module numba.cuda as hosts use it, with settable thread indices."""
    module = ModuleType("numba.cuda")

    def get_current_device() -> SimpleNamespace:
        if not card.present:
            raise RuntimeError("Error at driver init: \n libcuda.so cannot be found")
        return SimpleNamespace(name=b"a fake card", id=0, MULTIPROCESSOR_COUNT=2, compute_capability=(9, 0))

    module.get_current_device = get_current_device
    module.current_context = get_current_device
    module.jit = lambda function, **options: Dispatcher(card, function)
    for name in ("blockIdx", "blockDim", "threadIdx", "gridDim"):
        setattr(module, name, SimpleNamespace(x=0, y=0))
    return module


CARD = FakeCard()
"""The fake GPU with which all modules below were imported."""

_driver, _cuda = Driver(CARD), numba_cuda(CARD)


def _fake_modules() -> dict[str, ModuleType]:
    bindings, core = ModuleType("cuda.bindings"), ModuleType("numba.cuda.core")
    bindings.driver, core.config = _driver, ModuleType("numba.cuda.core.config")
    core.config.CACHE_DIR = ""
    return {
        "cuda": ModuleType("cuda"),
        "cuda.bindings": bindings,
        "cuda.bindings.driver": _driver,
        "numba.cuda": _cuda,
        "numba.cuda.core": core,
        "numba.cuda.core.config": core.config,
    }


FAKE_MODULES = _fake_modules()

_imported: dict[str, ModuleType] = {}
"""Modules of supple imported with the fakes, once, since they register their definitions."""


def _cuda_modules() -> dict[str, ModuleType]:
    modules = sys.modules.items()
    return {name: module for name, module in modules if name.startswith("supple.") and "cuda" in name}


@contextmanager
def installed(monkeypatch: Any) -> Iterator[FakeCard]:
    """Context in which supple.kernels.cuda and its drivers use a fresh state of the fake GPU."""
    earlier = CARD.earlier | CARD.allocations
    CARD.__dict__.update(vars(FakeCard()) | {"earlier": earlier, "functions": CARD.functions})
    real = _cuda_modules()
    for name in real:
        del sys.modules[name]
    for name, module in {**FAKE_MODULES, **_imported}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(numba, "cuda", _cuda, raising=False)
    monkeypatch.setattr("supple.kernels.devices.find_spec", lambda name: True)
    import supple.kernels.cuda.device_memory as memory
    import supple.kernels.cuda.launcher as launching

    launching._launchers.clear()
    launching._dispatcher.cache_clear()
    memory._pool.cache_clear()
    monkeypatch.setattr(launching, "can_cache", lambda: False)
    try:
        yield CARD
    finally:
        _imported.update(_cuda_modules())
        for name in _cuda_modules():
            del sys.modules[name]
        sys.modules.update(real)
