"""Sums and maxima over the state on a CUDA device, each in a fixed order and in float64."""

from __future__ import annotations

import numpy as np
from numba import cuda, types

from supple.kernels.compile import kernel
from supple.kernels.cuda.launching import Shape, start
from supple.kernels.cuda.memory import Mirror

REDUCE_BLOCKS, REDUCE_THREADS = 64, 256
"""Blocks that sum up one copy of the state, each a part; and threads of each."""

_SHAPE = Shape(64, REDUCE_THREADS)


@kernel
def _measure(active, net, sizes, softness, u, out):
    shared = cuda.shared.array((REDUCE_THREADS, 5), types.float64)
    t, copy = cuda.threadIdx.x, active[cuda.blockIdx.y]
    r2, s2, a2, length, ratio = 0.0, 0.0, 0.0, 0.0, 0.0
    step = cuda.gridDim.x * cuda.blockDim.x
    i = cuda.blockIdx.x * cuda.blockDim.x + t
    count = net.shape[0] // sizes.shape[0]
    first = copy * count
    while i < count - 1:
        for axis in range(3):
            r2 += types.float64(net[first + i, axis]) * net[first + i, axis]
            length = max(length, abs(types.float64(u[first + i, axis])))
        i += step
    lanes = sizes.shape[3]
    i = cuda.blockIdx.x * cuda.blockDim.x + t
    while i < sizes.shape[1] * lanes:
        s = types.float64(sizes[copy, i // lanes, 0, i % lanes])
        a = types.float64(sizes[copy, i // lanes, 1, i % lanes])
        s2 += s * s
        a2 += a * a
        ratio = max(ratio, s * softness[copy, i // lanes, i % lanes])
        i += step
    shared[t, 0], shared[t, 1], shared[t, 2], shared[t, 3], shared[t, 4] = r2, s2, a2, length, ratio
    half = REDUCE_THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            for k in range(3):
                shared[t, k] += shared[t + half, k]
            for k in range(3, 5):
                shared[t, k] = max(shared[t, k], shared[t + half, k])
        half //= 2
    if t == 0:
        for k in range(5):
            out[copy, cuda.blockIdx.x, k] = shared[0, k]


@kernel
def _add_up(active, values, out):
    shared = cuda.shared.array(REDUCE_THREADS, types.float64)
    t, copy, field = cuda.threadIdx.x, active[cuda.blockIdx.y], cuda.blockIdx.z
    total = 0.0
    lanes = values.shape[3]
    i = cuda.blockIdx.x * cuda.blockDim.x + t
    while i < values.shape[1] * lanes:
        total += types.float64(values[copy, i // lanes, field, i % lanes])
        i += cuda.gridDim.x * cuda.blockDim.x
    shared[t] = total
    half = REDUCE_THREADS // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            shared[t] += shared[t + half]
        half //= 2
    if t == 0:
        out[copy, cuda.blockIdx.x, field] = shared[0]


def sums(mirror: Mirror, active: np.ndarray, values: np.ndarray, out: np.ndarray) -> np.ndarray:
    """(copies, fields) sums of values (copies, rows, fields, lanes) of the active copies; out: memory for the
    result (copies, REDUCE_BLOCKS, fields) in float64."""
    start(mirror, _add_up, _SHAPE, (REDUCE_BLOCKS, len(active), values.shape[2]), active, values, out)
    mirror.pull(out)
    return out.sum(axis=1)


def measure(mirror: Mirror, active: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
    """(copies, 5): Σ|r|², Σs², Σ(tr A)², max|u| and max s·softness of the active copies. arrays: net forces
    (copies (n + 1), 4), s and tr A (copies, batches, 2, lanes), softness (copies, batches, lanes),
    displacements (copies (n + 1), 4), and memory for the result (copies, REDUCE_BLOCKS, 5) in float64."""
    start(mirror, _measure, _SHAPE, (REDUCE_BLOCKS, len(active), 1), active, *arrays)
    out = arrays[-1]
    mirror.pull(out)
    return np.concatenate([out[:, :, :3].sum(axis=1), out[:, :, 3:].max(axis=1)], axis=1)
