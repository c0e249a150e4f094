"""`dataset()`: creates a store and solves its unfinished shards, in worker processes or on a Ray cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from supple.datasets.errors import DatasetError
from supple.datasets.run.create import make_store
from supple.datasets.run.worker_pool import run_pool
from supple.datasets.spec.dataset_spec import Spec, load_spec
from supple.datasets.store.dataset_store import Store
from supple.datasets.store.integrity import refuse_changed
from supple.datasets.store.journal import release_failed
from supple.datasets.store.summary import (
    is_summary_current,
    write_summary,
    wrong_reports,
)
from supple.kernels import default_threads
from supple.support.arguments import check_flag, check_integer, check_path, format_value
from supple.support.progress import Progress

if TYPE_CHECKING:
    from supple.datasets.read.dataset import Dataset


def dataset(
    spec: str | os.PathLike[str] | dict[str, Any] | Spec,
    path: str | os.PathLike[str] | None = None,
    *,
    shards: str | None = None,
    workers: int | None = None,
    ray: str | bool | None = None,
    overwrite: bool = False,
    grow: bool = False,
    allow_code: bool = False,
    retry_failed: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """Compute or resume a data set of equilibria and open it.

    Finished shards are not solved again. Worker processes import the calling script: protect its code by `if
    __name__ == "__main__":`.

    Args:
        spec: Path of a TOML file (see docs/datasets.md), or a dictionary with the same content, in which
            `function` may be a Python function.
        path: Folder of the store; results/NAME.zarr by default.
        shards: "i/N" solves every N-th shard from the i-th on, for job arrays.
        workers: Number of worker processes; one per core by default.
        ray: True starts a local Ray cluster; a string is the address of a running one.
        overwrite: Replace a store of another spec.
        grow: Extend a store of the same spec to the sample count of this one. Existing samples keep their
            ids.
        allow_code: Permit a spec to import and run Python named by `function = "module:name"`. A function
            object needs no permission.
        retry_failed: Solve samples again that crashed or did not reach their tolerance.
        progress: Called as progress(done, total) after each sample.

    Returns:
        The opened data set.

    Raises:
        SpecError: The spec is invalid; the message lists all mistakes.
        DatasetError: The store belongs to another spec, or cannot be used as requested.
    """
    from supple.datasets.read.dataset import open_dataset

    check_flag("overwrite", overwrite)
    check_flag("grow", grow)
    check_flag("allow_code", allow_code)
    check_flag("retry_failed", retry_failed)
    share, described = parse_share(shards, grow, overwrite), load_spec(spec, allow_code=allow_code)
    folder = store_path(
        None if path is None else check_path(path, "the folder of a data set"), described.name
    )
    store = make_store(described, folder, overwrite, grow=grow)
    run_store(store, share, workers, ray, progress, retry_failed)
    return open_dataset(folder)


MAX_SINGLE_THREAD_VERTICES = 20_000
"""Number of vertices up to which one thread per sample is faster than several."""

MAX_DEVICE_PROCESSES = 6
"""Maximum number of processes per CUDA device: while one solves, the others prepare and write samples."""


@dataclass(frozen=True)
class Share:
    """Part of the shards assigned to a process: shard numbers equal to `index` modulo `of`."""

    index: int = 0
    of: int = 1

    def select(self, shards: Sequence[int]) -> list[int]:
        return [shard for shard in shards if shard % self.of == self.index]


def parse_share(text: Any, grow: bool = False, overwrite: bool = False) -> Share:
    """Parse a share "i/N" such as 3/16; None selects all shards.

    Raises:
        DatasetError: The text is invalid, or a share is combined with growing or overwriting, which must
            happen once and not in every job of an array.
    """
    if overwrite and text is not None:
        raise DatasetError(
            "--overwrite cannot be combined with --shards: every call would delete the results of "
            "the others. Run once with --overwrite and without --shards; then start the --shards "
            "calls without it."
        )
    if grow and text is not None:
        raise DatasetError(
            "--grow cannot be combined with --shards. Run once with --grow and without --shards; "
            "then start the --shards calls without it."
        )
    if text is None or isinstance(text, Share):
        return text or Share()
    match = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", str(text))
    index, of = (int(match[1]), int(match[2])) if match else (0, 0)
    if not match or not index < of:
        raise DatasetError(
            f"shards must have the form i/N with i from 0 to N-1, such as 0/16; got {format_value(text)}."
        )
    return Share(index, of)


def run_store(
    store: Store,
    share: Share,
    workers: int | None = None,
    ray: str | bool | None = None,
    progress: Progress | None = None,
    retry_failed: bool = False,
) -> None:
    """Solve the unfinished shards of a store, then update reports, splits and statistics.

    Args:
        store: The store.
        share: Shards assigned to this process.
        workers: Number of worker processes; chosen by device and problem size if None.
        ray: True for a local Ray cluster, or the address of a running one.
        progress: Called as progress(done, total) after each sample of this call.
        retry_failed: Solve failed samples again.
    """
    refuse_changed(store)
    store.clear_abandoned()
    if retry_failed:
        release_failed(store, share.select(store.finished_shards()))
    done = set(store.finished_shards())
    left = [shard for shard in share.select(range(store.shards)) if shard not in done]
    total, solved = sum(len(store.ids(shard)) for shard in left), set[int]()

    def count_samples(samples: Sequence[int]) -> None:
        solved.update(samples)
        if progress is not None:
            progress(len(solved), total)

    try:
        if left and ray:
            from supple.datasets.run.ray_backend import run_ray

            run_ray(store.path, left, None if ray is True else str(ray), count_samples, store)
        elif left:
            workers, threads = _worker_counts(store, workers, len(left))
            run_pool(store.path, left, workers, threads, count_samples)
    finally:
        if left or not is_summary_current(store) or any(wrong_reports(store)):
            write_summary(Store(store.path))


def _worker_counts(store: Store, workers: int | None, shards: int) -> tuple[int, int]:
    """Choose process count and threads per process.

    A CUDA device gets a few processes; the CPU gets one single-threaded process per core for small problems.
    """
    cores = default_threads()
    if workers is None and store.spec["solve"]["device"] == "cuda":
        workers = min(MAX_DEVICE_PROCESSES, max(1, cores // 2))
    if workers is None:
        workers = cores if store.facts["vertices"] <= MAX_SINGLE_THREAD_VERTICES else 1
    workers = min(shards, check_integer("workers", workers, at_most=1024))
    return workers, max(1, cores // workers)


def store_path(path: Any, name: str) -> Path:
    return Path("results") / f"{name}.zarr" if path is None else Path(path)
