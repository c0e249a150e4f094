"""CUDA back end: kernels run by a grid of threads. Imported only if the device is requested."""

import numpy as np

if not hasattr(np, "row_stack"):  # numba-cuda uses a name removed in NumPy 2.5
    setattr(np, "row_stack", np.vstack)  # noqa: B010

from supple.kernels.cuda.device_memory import (
    Mirror,
    free_memory,
    multiprocessors,
    release_memory,
    require_device,
    synchronize,
)
from supple.kernels.cuda.launcher import HIGH_THROUGHPUT, LOW_LATENCY, Arrivals, launch

__all__ = [
    "HIGH_THROUGHPUT",
    "LOW_LATENCY",
    "Arrivals",
    "Mirror",
    "free_memory",
    "launch",
    "multiprocessors",
    "release_memory",
    "require_device",
    "synchronize",
]
