"""Memory of a CUDA device: device copies of host arrays, and their kernel arguments."""

from __future__ import annotations

import math
import weakref
from functools import cache
from numbers import Integral
from threading import local
from typing import Any

import numpy as np
from cuda.bindings import driver
from numba import cuda

from supple.kernels.devices import DeviceError


def require_device() -> str:
    """Return the name of the GPU.

    Raises:
        DeviceError: No usable GPU.
    """
    try:
        name = cuda.get_current_device().name
        cuda.current_context()  # for this thread
    except Exception as error:
        reason = " ".join(str(error).split())
        raise DeviceError(
            f"device='cuda' needs an NVIDIA GPU with its driver, and none was found ({reason}); "
            "use device='cpu'"
        ) from error
    return name.decode() if isinstance(name, bytes) else str(name)


@cache
def multiprocessors() -> int:
    """Number of multiprocessors of the GPU."""
    return int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def synchronize() -> None:
    """Wait for all operations started on the device."""
    check(driver.cuCtxSynchronize())


@cache
def _pool() -> Any:
    """Memory pool of device arrays. It retains freed memory, since an allocation by the driver takes longer
    than a sweep."""
    card = driver.CUdevice(cuda.get_current_device().id)
    supported = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
    if not check(driver.cuDeviceGetAttribute(supported, card))[0]:
        raise DeviceError(
            "this GPU or its driver has no memory pools, which device='cuda' needs; update the driver, "
            "or use device='cpu'"
        )
    (pool,) = check(driver.cuDeviceGetDefaultMemPool(card))
    keep = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    check(driver.cuMemPoolSetAttribute(pool, keep, driver.cuuint64_t(2**64 - 1)))
    return pool


def release_memory() -> None:
    """Return unused memory to the driver and to other libraries."""
    check(driver.cuCtxSynchronize())
    check(driver.cuMemPoolTrimTo(_pool(), 0))


def free_memory() -> int:
    """Number of allocatable bytes of device memory."""
    attributes = driver.CUmemPool_attribute
    reserved, used = (
        int(check(driver.cuMemPoolGetAttribute(_pool(), attribute))[0])
        for attribute in (
            attributes.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
            attributes.CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
        )
    )
    return int(check(driver.cuMemGetInfo())[0]) + reserved - used


def check(result: tuple) -> tuple:
    """Check the error code of a driver call and return its other results.

    Raises:
        DeviceError: The call failed.
    """
    if result[0] != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(
            f"the CUDA device failed ({result[0].name}), and the results of this solve are lost. Start a "
            "new Python process, or use device='cpu'"
        )
    return result[1:]


_thread_state = local()
"""Per thread: True if it has a CUDA context. The query takes longer than the deallocation of an array."""


def _free(pointer: int) -> None:
    if not getattr(_thread_state, "context", False):  # the finalizing thread may have no context yet
        cuda.current_context()
        _thread_state.context = True
    driver.cuMemFreeAsync(pointer, 0)


class DeviceArray:
    """Contiguous array in device memory, freed together with this object."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.shape, self.dtype = shape, dtype
        self.nbytes = math.prod(shape) * dtype.itemsize
        self.pointer = 0
        if self.nbytes:
            _pool()
            code, pointer = driver.cuMemAllocAsync(self.nbytes, 0)
            if code == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
                raise DeviceError(
                    f"the CUDA device has no room for another {self.nbytes / 2**20:,.0f} MiB "
                    f"({free_memory() / 2**20:,.0f} MiB are free); use precision='float32', a smaller "
                    "mesh, a smaller batch_size, or device='cpu'"
                )
            check((code,))
            self.pointer = int(pointer)
            weakref.finalize(self, _free, self.pointer).atexit = False

    @property
    def fields(self) -> list[int]:
        """Kernel arguments that describe the array."""
        strides = [math.prod(self.shape[k + 1 :]) * self.dtype.itemsize for k in range(len(self.shape))]
        return [0, 0, math.prod(self.shape), self.dtype.itemsize, self.pointer, *self.shape, *strides]

    @property
    def __cuda_array_interface__(self) -> dict:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "strides": None,
            "version": 3,
        }


MAX_CACHED_TUPLES = 24
"""Number of cached argument tuples; a launch has fewer than ten."""


class Mirror:
    """Device copies of host arrays, identified by object and freed together with the host array."""

    def __init__(self) -> None:
        self._device_arrays: dict[int, tuple[DeviceArray, list]] = {}
        self._tuples: dict[int, tuple[tuple, list, list]] = {}
        self.calls: dict[Any, Any] = {}
        """The last launch of each kernel, see `launcher.py`."""

    def _entry(self, array: np.ndarray) -> tuple[DeviceArray, list]:
        """Device copy of a host array, and its kernel arguments."""
        entry = self._device_arrays.get(id(array))
        if entry is None:
            entry = self.reserve(array)
            if array.nbytes:
                source = np.ascontiguousarray(array)
                check(driver.cuMemcpyHtoD(entry[0].pointer, source.ctypes.data, source.nbytes))
        return entry

    def reserve(self, array: np.ndarray) -> tuple[DeviceArray, list]:
        """Allocate uninitialized device memory for a host array."""
        device_array = DeviceArray(array.shape, array.dtype)
        entry = self._device_arrays[id(array)] = device_array, device_array.fields
        weakref.finalize(array, self._device_arrays.pop, id(array), None).atexit = False
        return entry

    def __contains__(self, array: np.ndarray) -> bool:
        return id(array) in self._device_arrays

    def clear_launches(self) -> None:
        """Release the host arrays of earlier launches, and thereby device copies without other owners."""
        self.calls.clear()
        self._tuples.clear()

    def upload_all(self, value: Any) -> None:
        """Create device copies of all arrays in nested tuples immediately instead of at their first use."""
        self.flatten(value, [], [])

    def clear(self, array: np.ndarray) -> None:
        """Set the device copy of an array to zero, without a transfer."""
        device_array = (self._device_arrays.get(id(array)) or self.reserve(array))[0]
        if device_array.nbytes:
            check(driver.cuMemsetD8Async(device_array.pointer, 0, device_array.nbytes, 0))

    def download(self, array: np.ndarray, first: int = 0, last: int | None = None) -> None:
        entry, part = self._device_arrays.get(id(array)), array[first:last]
        if entry is not None and part.nbytes:
            source = entry[0].pointer + first * array.strides[0]
            check(driver.cuMemcpyDtoH(part.ctypes.data, source, part.nbytes))

    def upload(self, array: np.ndarray, rows: int | None = None) -> None:
        entry, part = self._device_arrays.get(id(array)), array[:rows]
        if entry is not None and part.nbytes:
            check(driver.cuMemcpyHtoD(entry[0].pointer, part.ctypes.data, part.nbytes))

    def assign(self, target: np.ndarray, source: np.ndarray, first: int, last: int) -> None:
        """target[first:last] = source[first:last] in device memory."""
        row = source.strides[0]
        pointers = (self._entry(array)[0].pointer + first * row for array in (target, source))
        check(driver.cuMemcpyDtoDAsync(*pointers, (last - first) * row, 0))

    def duplicate(self, array: np.ndarray, first: int, last: int) -> DeviceArray:
        """Copy rows first to last - 1 to a new device array, not tracked by the mirror."""
        result = DeviceArray((last - first, *array.shape[1:]), array.dtype)
        source = self._entry(array)[0].pointer + first * array.strides[0]
        check(driver.cuMemcpyDtoDAsync(result.pointer, source, result.nbytes, 0))
        return result

    def flatten(self, value: Any, fields: list, type_key: list) -> None:
        """Append the kernel arguments of a value to `fields` and their compile-time types to `type_key`."""
        if isinstance(value, np.ndarray):
            fields += self._entry(value)[1]
            type_key += (value.dtype, value.ndim)
        elif isinstance(value, tuple):
            known = self._tuples.get(id(value))
            if known is None or known[0] is not value:
                known = value, [], [type(value)]
                for item in value:
                    self.flatten(item, known[1], known[2])
                self._tuples[id(value)] = known
                if len(self._tuples) > MAX_CACHED_TUPLES:
                    self._tuples.pop(next(iter(self._tuples)))
            fields += known[1]
            type_key += (*known[2], None)
        else:
            is_integer = isinstance(value, Integral)
            fields.append(int(value) if is_integer else float(value))
            type_key.append(int if is_integer else float)
