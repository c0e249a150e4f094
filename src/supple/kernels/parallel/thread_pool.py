"""Thread pool: one kernel called by several Python threads, which share chunks of work.

A kernel with many phases (iterations × colors) uses two counters per phase. Each thread draws the next chunk
with an atomic add and leaves the phase once the count of finished chunks is complete, so a thread preempted
by another process delays at most one chunk. Results do not depend on the assignment of chunks to threads.

The default number of threads respects the CPU quota of Linux control groups, such as that of a container.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from supple.kernels.compile.dispatch import device_function


def cpu_quota(
    memberships: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")
) -> float | None:
    """Smallest CPU quota, in cores, of the process's control groups and their parents; None without a limit.

    Args:
        memberships: File with the control groups of the process.
        mount: Mount point of the control group file system.
    """
    try:
        lines = memberships.read_text().splitlines()
    except OSError:  # not Linux
        return None
    quotas = [quota for line in lines for quota in _quotas(line, mount)]
    return min(quotas, default=None)


def _quotas(line: str, mount: Path) -> Iterator[float]:
    """Quotas of the groups in a line such as "0::/a/b" (version 2) or "4:cpu,cpuacct:/a/b" (version 1)."""
    _, _, rest = line.partition(":")
    controllers, _, path = rest.partition(":")
    if controllers and "cpu" not in controllers.split(","):
        return
    for root in (mount / controllers, mount / "cpu") if controllers else (mount,):
        group = PurePosixPath(path)
        for folder in (group, *group.parents):
            quota = _quota(root / str(folder).lstrip("/"))
            if quota is not None:
                yield quota


def _quota(folder: Path) -> float | None:
    """Quota of one group: "max 100000" or "150000 100000" in cpu.max, or two files, where -1 is no limit."""
    for names in (["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"]):
        try:
            time, period = " ".join((folder / name).read_text() for name in names).split()
            return int(time) / int(period) if int(time) > 0 and int(period) > 0 else None
        except (OSError, ValueError):  # missing file, or "max"
            continue
    return None


_yield_core = types.ExternalFunction(
    "SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32()
)

MAX_SPINS = 200
"""Number of polls of the counter before a waiting thread yields its core."""


def _counter_pointer(context, builder, array_type, array, index):
    struct = context.make_array(array_type)(context, builder, array)
    return builder.gep(struct.data, [index], source_etype=ir.IntType(64))


@intrinsic
def atomic_add_seq_cst(typingctx, counters, index, amount):
    """Atomic counters[index] += amount; returns the previous value."""

    def codegen(context, builder, sig, args):
        pointer = _counter_pointer(context, builder, counters, args[0], args[1])
        return builder.atomic_rmw("add", pointer, args[2], "seq_cst")

    return types.int64(counters, types.int64, types.int64), codegen


@intrinsic
def atomic_load_seq_cst(typingctx, counters, index):
    """Load counters[index] with all earlier writes of the threads that changed it visible."""

    def codegen(context, builder, sig, args):
        pointer = _counter_pointer(context, builder, counters, args[0], args[1])
        return builder.load_atomic(pointer, "seq_cst", 8, typ=ir.IntType(64))

    return types.int64(counters, types.int64), codegen


@device_function
def claim_chunk(counters, phase, chunks):
    """Draw the next chunk of a phase; -1 after the last chunk."""
    chunk = atomic_add_seq_cst(counters, 2 * phase, 1)
    return chunk if chunk < chunks else -1


@device_function
def finish_chunk(counters, phase):
    """Count a finished chunk of a phase."""
    atomic_add_seq_cst(counters, 2 * phase + 1, 1)


@device_function
def wait_for_phase(counters, phase, chunks):
    """Barrier: wait until every chunk of the phase is finished."""
    spins = 0
    while atomic_load_seq_cst(counters, 2 * phase + 1) < chunks:
        spins += 1
        if spins > MAX_SPINS:
            _yield_core()


def counters_for(phases: int) -> np.ndarray:
    """Create the counters of one kernel call."""
    return np.zeros(2 * phases, np.int64)


def default_threads() -> int:
    """Number of available cores, limited by affinity and container quota, or SUPPLE_THREADS if set."""
    setting = os.environ.get("SUPPLE_THREADS")
    if setting:
        if not setting.isdigit() or int(setting) < 1:
            raise ValueError(f"SUPPLE_THREADS must be a whole number of threads, at least 1, got {setting!r}")
        return int(setting)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota()
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_pool_lock = threading.Lock()


def _workers(count: int) -> ThreadPoolExecutor:
    global _pool, _pool_size
    with _pool_lock:
        if _pool is None or _pool_size < count:
            _pool, _pool_size = ThreadPoolExecutor(count, thread_name_prefix="supple"), count
        return _pool


def _clear_pool() -> None:
    global _pool, _pool_size
    _pool, _pool_size = None, 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_clear_pool)


def run(kernel: Callable, threads: int, *args: Any) -> None:
    """Call `kernel(*args)` on `threads` threads concurrently, including the calling thread."""
    if threads == 1:
        kernel(*args)
        return
    pool = _workers(threads - 1)
    others = [pool.submit(kernel, *args) for _ in range(threads - 1)]
    kernel(*args)
    for other in others:
        other.result()
