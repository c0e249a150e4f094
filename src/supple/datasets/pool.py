"""Processes that solve shards side by side; those that die are replaced."""

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

TRIES = 3
"""How often a shard may end its worker before that is taken for the shard's fault."""

STARTS = 10
"""How many workers in a row may end before they begin with anything."""

SINGLE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Small problems are solved side by side: what each does must not start threads of its own."""

Watch = Callable[[Sequence[int]], None]
"""Called with the ids of samples that are done, and with none when all of a shard are."""


@dataclass
class _Worker:
    process: SpawnProcess
    pipe: connection.Connection
    shard: int | None = None
    done: int = 0
    """Samples of its shard."""
    ready: bool = False
    """Whether it has built what it needs."""


def run_pool(path: Path, shards: Sequence[int], workers: int, threads: int, watch: Watch) -> None:
    """Have all of these shards of a store solved and published, by so many workers of so many threads."""
    left, deaths = deque(shards), _Deaths(path)
    pool: list[_Worker] = []
    try:
        while left or any(worker.shard is not None for worker in pool):
            while len(pool) < workers and _needs_more(pool, left):
                pool.append(_started(path, threads, workers))
            for worker in pool:
                if worker.shard is None and left:
                    worker.shard = left.popleft()
                    with suppress(OSError):  # it has died; its end is seen below
                        worker.pipe.send(worker.shard)
            waiting: list[Any] = [thing for w in pool for thing in (w.pipe, w.process.sentinel)]
            ready = connection.wait(waiting)
            for worker in [w for w in pool if w.pipe in ready or w.process.sentinel in ready]:
                if not _heard(worker, watch):
                    pool.remove(worker)
                    deaths.count(worker)
                    left.extendleft([] if worker.shard is None else [worker.shard])
    finally:
        for worker in pool:
            _end(worker)


def _needs_more(pool: list[_Worker], left: deque[int]) -> bool:
    """Whether a further worker would have something to do."""
    return sum(worker.shard is None for worker in pool) < len(left)


def _started(path: Path, threads: int, workers: int) -> _Worker:
    context = get_context("spawn")
    mine, its = context.Pipe()
    process = context.Process(target=_work, args=(its, path, threads, workers), daemon=True)
    with _environment(SINGLE if threads == 1 else {}):
        process.start()
    its.close()
    return _Worker(process, mine)


@contextmanager
def _environment(values: dict[str, str]) -> Any:
    """What processes that are started within it find in their environment."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def _heard(worker: _Worker, watch: Watch) -> bool:
    """Listen to what a worker says; False where it is dead."""
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


class _Deaths:
    """Of workers: a shard that ends several at the same sample is at fault, for what was done before is in
    its journal; and where one after the other ends before it begins, something else is."""

    def __init__(self, path: Path) -> None:
        self._path, self._starts = path, 0
        self._tries, self._reached = Counter[int](), Counter[int]()

    def count(self, worker: _Worker) -> None:
        self._starts = 0 if worker.ready else self._starts + 1
        how = _ending(worker.process.exitcode)
        if self._starts >= STARTS:
            raise DatasetError(
                f"{self._path}: {STARTS} workers in a row ended before they had begun, the last with {how}. "
                "All finished shards are kept."
            )
        shard = worker.shard
        if shard is None or not worker.ready:
            return
        if worker.done > self._reached[shard]:
            self._reached[shard], self._tries[shard] = worker.done, 0
        self._tries[shard] += 1
        if self._tries[shard] >= TRIES:
            raise DatasetError(
                f"{self._path}: shard {shard} has ended its worker {TRIES} times after {worker.done} of its "
                f"samples, the last time with {how}. All finished shards are kept; look at its next sample."
            )


def _ending(code: int | None) -> str:
    """exit code 3, or SIGKILL, which the system sends when memory runs out."""
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"{name}, which the system sends when memory runs out" if name == "SIGKILL" else name
    return f"exit code {code}"


def _end(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.join(0.2)
    if worker.process.is_alive():
        worker.process.terminate()
        worker.process.join()


def _work(pipe: connection.Connection, path: Path, threads: int, workers: int) -> None:
    """Solve the shards that come through a pipe until it is closed, also by the end of who holds the other
    end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it ends it
    try:
        from supple.datasets.shards import Shards
        from supple.datasets.store import Store

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
    """The error itself where it can be pickled and is one that is said in a sentence, else its text."""
    if isinstance(error, OSError):
        return OSError(error.errno, error.strerror, error.filename)
    if isinstance(error, ValueError | MemoryError):
        return DatasetError(str(error)) if isinstance(error, ValueError) else MemoryError(str(error))
    return RuntimeError("".join(traceback.format_exception(error)))
