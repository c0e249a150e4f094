"""Pool of worker processes that solve shards in parallel; crashed workers are replaced."""

from __future__ import annotations

import os
import signal
import traceback
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from supple.datasets.errors import DatasetError

MAX_SHARD_CRASHES = 3
"""Number of worker crashes at one sample after which the shard is considered faulty."""

MAX_STARTUP_CRASHES = 10
"""Number of consecutive worker crashes during startup after which the run is aborted."""

SINGLE_THREAD_ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment that disables the thread pools of numerical libraries, since parallelism is over samples."""

Watch = Callable[[Sequence[int]], None]
"""Called with the ids of finished samples; with an empty sequence at the end of a shard."""


@dataclass
class _Worker:
    """Worker process.

    Attributes:
        process: The process.
        pipe: Connection to it.
        shard: Shard that it is solving.
        done: Finished samples of that shard.
        ready: True once it has built its problem.
    """

    process: SpawnProcess
    pipe: connection.Connection
    shard: int | None = None
    done: int = 0
    ready: bool = False


def run_pool(path: Path, shards: Sequence[int], workers: int, threads: int, watch: Watch) -> None:
    """Solve and publish shards with a worker pool.

    Args:
        path: Folder of the store.
        shards: Shards to solve.
        workers: Number of worker processes.
        threads: Threads per worker.
        watch: Called with the ids of finished samples.

    Raises:
        DatasetError: A shard repeatedly crashes its worker, or workers fail to start.
    """
    left, deaths = deque(shards), _CrashCounter(path)
    pool: list[_Worker] = []
    try:
        while left or any(worker.shard is not None for worker in pool):
            while len(pool) < workers and _needs_more(pool, left):
                pool.append(_start_worker(path, threads, workers))
            for worker in pool:
                if worker.shard is None and left:
                    worker.shard = left.popleft()
                    with suppress(OSError):  # it has died; handled below
                        worker.pipe.send(worker.shard)
            waiting: list[Any] = [waitable for w in pool for waitable in (w.pipe, w.process.sentinel)]
            ready = connection.wait(waiting)
            for worker in [w for w in pool if w.pipe in ready or w.process.sentinel in ready]:
                if not _process_messages(worker, watch):
                    pool.remove(worker)
                    deaths.count(worker)
                    left.extendleft([] if worker.shard is None else [worker.shard])
    finally:
        for worker in pool:
            _end_worker(worker)


def _needs_more(pool: list[_Worker], left: deque[int]) -> bool:
    """True if unsolved shards outnumber idle workers."""
    return sum(worker.shard is None for worker in pool) < len(left)


def _start_worker(path: Path, threads: int, workers: int) -> _Worker:
    context = get_context("spawn")
    mine, its = context.Pipe()
    process = context.Process(target=_work, args=(its, path, threads, workers), daemon=True)
    with _environment(SINGLE_THREAD_ENVIRONMENT if threads == 1 else {}):
        process.start()
    its.close()
    return _Worker(process, mine)


@contextmanager
def _environment(values: dict[str, str]) -> Any:
    """Set environment variables for processes started within the context."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def _process_messages(worker: _Worker, watch: Watch) -> bool:
    """Process worker messages; False for dead workers."""
    try:
        while worker.pipe.poll():
            kind, what = worker.pipe.recv()
            if kind == "error":
                raise what
            if kind == "ready":
                worker.ready = True
                continue
            watch(what)
            worker.done += len(what)
            if kind == "shard":
                worker.shard, worker.done = None, 0
    except (EOFError, ConnectionError):
        worker.process.join()
        return False
    return worker.process.is_alive() or worker.pipe.poll()


class _CrashCounter:
    """Counter of worker crashes.

    A shard that crashes several workers at the same sample is faulty, since earlier samples are in its
    journal. Consecutive crashes during startup indicate an error outside the shards.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._starts = path, 0
        self._tries, self._reached = Counter[int](), Counter[int]()

    def count(self, worker: _Worker) -> None:
        self._starts = 0 if worker.ready else self._starts + 1
        how = _exit_description(worker.process.exitcode)
        if self._starts >= MAX_STARTUP_CRASHES:
            raise DatasetError(
                f"{self._path}: {MAX_STARTUP_CRASHES} workers in a row ended during their start, the "
                f"last with {how}. All finished shards are kept; try fewer --workers."
            )
        shard = worker.shard
        if shard is None or not worker.ready:
            return
        if worker.done > self._reached[shard]:
            self._reached[shard], self._tries[shard] = worker.done, 0
        self._tries[shard] += 1
        if self._tries[shard] >= MAX_SHARD_CRASHES:
            raise DatasetError(
                f"{self._path}: shard {shard} crashed its worker {MAX_SHARD_CRASHES} times after "
                f"{worker.done} of its samples, the last time with {how}. All finished shards are "
                "kept. Its next sample is the cause, or too little memory: try --workers 1."
            )


def _exit_description(code: int | None) -> str:
    """Exit code or signal of a process, with an out-of-memory hint for SIGKILL."""
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"{name}, sent by the system when memory runs out" if name == "SIGKILL" else name
    return f"exit code {code}"


def _end_worker(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.join(0.2)
    if worker.process.is_alive():
        worker.process.terminate()
        worker.process.join()


def _work(pipe: connection.Connection, path: Path, threads: int, workers: int) -> None:
    """Worker main loop: solve the shards received through a pipe until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process stops it
    try:
        from supple.datasets.run.shard import Shards
        from supple.datasets.store.dataset_store import Store

        shards = Shards(Store(path), threads, workers)
        pipe.send(("ready", ()))
        while True:
            shard = pipe.recv()
            shards.run(shard, lambda samples: pipe.send(("samples", samples)))
            pipe.send(("shard", ()))
    except (EOFError, BrokenPipeError, ConnectionError):
        return
    except BaseException as error:
        with suppress(OSError):
            pipe.send(("error", _sendable(error)))


def _sendable(error: BaseException) -> BaseException:
    """Picklable form of an error: same message for user and system errors, otherwise the traceback."""
    if isinstance(error, OSError):
        return OSError(error.errno, error.strerror, error.filename)
    if isinstance(error, ValueError | MemoryError):
        return DatasetError(str(error)) if isinstance(error, ValueError) else MemoryError(str(error))
    return RuntimeError("".join(traceback.format_exception(error)))
