"""Merging of stores with equal specs and shards solved in different locations."""

from __future__ import annotations

import shutil
from pathlib import Path

from supple.datasets.errors import DatasetError
from supple.datasets.run.create import write_card
from supple.datasets.run.store_verification import Verdict, wrong_in_shard
from supple.datasets.store.dataset_store import MANIFEST_FOLDER, Store
from supple.datasets.store.integrity import refuse_changed
from supple.datasets.store.scene_files import COPY_FOLDER
from supple.datasets.store.store_checksums import write_with_checksum
from supple.datasets.store.summary import write_summary
from supple.io.replace_file import replacing, replacing_folder


def merge(target: Path, sources: list[Path]) -> Store:
    """Copy the finished shards of all sources into the target store.

    Args:
        target: Folder of the target, created if it does not exist. Its finished shards are kept.
        sources: Folders of the source stores.

    Raises:
        DatasetError: A source is damaged, edited, or of another spec, scene or design.
    """
    opened = [Store(source) for source in sources]
    if not target.exists():
        _copy_empty(opened[0], target)
    store = Store(target)
    for source in opened:
        if not source.is_metadata_valid:
            raise DatasetError(
                f"{source.path / 'zarr.json'} is damaged or was edited: its checksum is wrong. Nothing is "
                "merged."
            )
        if source.facts["identity"] != store.facts["identity"]:
            raise DatasetError(
                f"{source.path} and {target} have different specs, scenes or designs; they cannot be merged."
            )
    for source in opened:
        for shard in source.finished_shards():
            if not store.manifest_file(shard).exists():
                _copy_shard(source, store, shard)
    write_summary(store)
    return store


def _copy_empty(source: Store, target: Path) -> None:
    """Copy an unmodified store without samples."""
    refuse_changed(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    ignore = shutil.ignore_patterns(".unfinished_*", "c")
    with replacing_folder(target) as unfinished:
        shutil.copytree(source.path / "samples", unfinished / "samples", ignore=ignore)
        for name in ("rest", "inputs", COPY_FOLDER):
            if (source.path / name).is_dir():
                shutil.copytree(source.path / name, unfinished / name)
        for name in ("zarr.json", "scene.toml", "design.csv"):
            shutil.copyfile(source.path / name, unfinished / name)
        (unfinished / MANIFEST_FOLDER).mkdir()
        write_card(unfinished, target.name)


def _copy_shard(source: Store, store: Store, shard: int) -> None:
    problems = list(wrong_in_shard(source, shard, Verdict()))
    if problems:
        raise DatasetError(f"{problems[0]} It was not merged; shards merged before it are kept.")
    for quantity in store.quantities:
        new = store.file(quantity.name, shard)
        new.parent.mkdir(parents=True, exist_ok=True)
        with replacing(new) as unfinished:
            shutil.copyfile(source.file(quantity.name, shard), unfinished)
    write_with_checksum(store.manifest_file(shard), source.manifest(shard))
