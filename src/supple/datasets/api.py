"""Entry point `dataset()`: from a spec to a store of equilibria."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from supple.datasets.run.create import make_store
from supple.datasets.run.run_dataset import parse_share, run_store, store_path
from supple.datasets.spec.dataset_spec import Spec, load_spec
from supple.support.arguments import check_flag, check_path
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
