"""CUDA: the same kernels as a grid of threads. Imported only when a device is asked for."""

import numpy as np

if not hasattr(np, "row_stack"):  # numba-cuda still asks NumPy for a name that NumPy 2.5 has dropped
    setattr(np, "row_stack", np.vstack)  # noqa: B010

from supple.kernels.cuda.launch import FAT, SPACIOUS, WIDE, Arrivals, Shape, launch  # noqa: E402
from supple.kernels.cuda.memory import (  # noqa: E402
    Mirror,
    free_memory,
    multiprocessors,
    require_device,
    synchronise,
)
from supple.kernels.cuda.reductions import REDUCE_BLOCKS, measure, sums  # noqa: E402

__all__ = [
    "FAT",
    "REDUCE_BLOCKS",
    "SPACIOUS",
    "WIDE",
    "Arrivals",
    "Mirror",
    "Shape",
    "free_memory",
    "launch",
    "measure",
    "multiprocessors",
    "require_device",
    "sums",
    "synchronise",
]
