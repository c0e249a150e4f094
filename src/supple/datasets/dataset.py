"""dataset(): from a spec to a store of equilibria."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from supple.checks import a_path, flag
from supple.datasets.making import make_store
from supple.datasets.running import parse_share, run_store, store_path
from supple.datasets.spec import Spec, load_spec

if TYPE_CHECKING:
    from supple.datasets.opened import Dataset


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
    watch: Callable[[int, int], None] | None = None,
) -> Dataset:
    """Make a data set of equilibria, or go on with one, and open it.

    spec: a TOML file, see docs/datasets.md, or a dictionary of what would be in one, in which `function` may
    be a function. path: the folder of the store, results/NAME.zarr unless given. What is finished there is
    not solved again, and a store of another spec is refused unless `overwrite`. grow: a store of the same
    spec with fewer samples gets the others; those that it has keep their ids. shards: "i/N" for every
    N-th shard from the i-th on, for job arrays. workers: processes, as many as there are cores unless
    given. ray: True for a Ray cluster that is started here, or the address of one. allow_code: run the Python
    that a spec names with `function = "module:name"`; such a spec is a program, and is refused otherwise. A
    function that is passed itself needs no permission. retry_failed: solve samples again that crashed or did
    not reach their tolerance; all others stay. watch: called as watch(done, samples).

    Workers are processes that import the calling script anew: protect it by `if __name__ == "__main__":`.
    """
    from supple.datasets.opened import open_dataset

    flag("overwrite", overwrite)
    flag("grow", grow)
    flag("allow_code", allow_code)
    flag("retry_failed", retry_failed)
    share, described = parse_share(shards, grow, overwrite), load_spec(spec, allow_code=allow_code)
    folder = store_path(None if path is None else a_path(path, "the folder of a data set"), described.name)
    store = make_store(described, folder, overwrite, grow=grow)
    run_store(store, share, workers, ray, watch, retry_failed)
    return open_dataset(folder)
