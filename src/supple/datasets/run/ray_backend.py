"""Shards as tasks of a Ray cluster, which restarts failed workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from supple.datasets.errors import DatasetError
from supple.datasets.run.worker_pool import MAX_SHARD_CRASHES, SINGLE_THREAD_ENVIRONMENT
from supple.datasets.store.dataset_store import Store

Watch = Callable[[Sequence[int]], None]
_SHARD_SOLVERS: dict[str, Any] = {}
"""Shard solver cached between tasks of a worker process, so that its problem is built once."""


def run_ray(path: Path, shards: Sequence[int], address: str | None, watch: Watch, store: Store) -> None:
    """Solve shards of a store on a Ray cluster, whose machines must mount the store under the same path.

    Args:
        path: Folder of the store.
        shards: Shards to solve.
        address: Address of a running cluster; None starts a local one.
        watch: Called with the ids of finished samples.
        store: The store.

    Raises:
        DatasetError: Ray is not installed, the cluster is lost, or a shard repeatedly crashes its worker.
    """
    try:
        import ray
    except ImportError:
        raise DatasetError(
            "Ray is not installed: pip install 'supple[ray]', or use --workers or --shards instead of --ray."
        ) from None
    begun = not ray.is_initialized()
    if begun:
        ray.init(address=address, log_to_driver=False, runtime_env={"env_vars": _environment()})
    try:
        _run(ray, path.resolve(), shards, watch, store)
    except ray.exceptions.RayTaskError:
        raise
    except ray.exceptions.RayError as error:
        raise _cluster_error(path, error) from None
    finally:
        if begun:
            ray.shutdown()


def _environment() -> dict[str, str]:
    """Environment variables to pass to workers."""
    own = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return SINGLE_THREAD_ENVIRONMENT | own


def _run(ray: Any, path: Path, shards: Sequence[int], watch: Watch, store: Store) -> None:
    cuda = store.spec["solve"]["device"] == "cuda"
    resources = {"num_cpus": 1, "num_gpus": 1 if cuda else 0}
    solve = ray.remote(max_retries=MAX_SHARD_CRASHES, **resources)(solve_shard)
    waiting = {solve.remote(str(path), shard): shard for shard in shards}
    try:
        while waiting:
            done, _ = ray.wait(list(waiting), num_returns=1)
            for task in done:
                shard = waiting.pop(task)
                _result(ray, task, shard, path)
                watch(store.ids(shard))
    finally:
        with suppress(ray.exceptions.RayError, OSError, RuntimeError):  # the cluster may be lost
            for task in waiting:
                ray.cancel(task, force=True)


def _cluster_error(path: Path, error: Exception) -> DatasetError:
    """Error message for a lost node, raylet or head node; all finished shards are kept."""
    said = " ".join(str(error).split()) or "Ray gave no further message"
    return DatasetError(
        f"{path}: the Ray cluster, or the node of a task, was lost ({type(error).__name__}: "
        f"{said[:300]}). All finished shards are kept; start a cluster again, and run `supple "
        f"dataset resume {path}`."
    )


def _result(ray: Any, task: Any, shard: int, path: Path) -> None:
    try:
        ray.get(task)
    except ray.exceptions.WorkerCrashedError:
        raise DatasetError(
            f"{path}: shard {shard} crashed its worker {MAX_SHARD_CRASHES + 1} times. All finished "
            f"shards are kept; give the tasks more memory, or run `supple dataset resume {path} "
            "--workers 1` without Ray."
        ) from None
    except ray.exceptions.OutOfMemoryError as error:
        raise MemoryError(f"{path}: shard {shard}: {error}") from None
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        raise cause if isinstance(cause, ValueError | OSError) else error from None


def solve_shard(path: str, shard: int) -> int:
    """Ray task: solve a shard unless already finished."""
    from supple.datasets.run.shard import Shards

    if path not in _SHARD_SOLVERS:
        _SHARD_SOLVERS.clear()
        _SHARD_SOLVERS[path] = Shards(Store(Path(path)))
    shards = _SHARD_SOLVERS[path]
    if not shards.store.manifest_file(shard).exists():
        shards.run(shard)
    return shard
