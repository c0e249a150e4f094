"""Integrity of a store's file set: missing, modified and foreign files."""

from __future__ import annotations

from collections.abc import Iterator

from supple.datasets.errors import DatasetError
from supple.datasets.store.dataset_store import Store
from supple.datasets.store.store_checksums import CHECKSUM_FILE, read_verified, wrong_files
from supple.datasets.store.summary import REPORT_FILE, is_summary_current, report_files

CARD_FILE = "README.md"

TEMPORARY_PREFIXES = (".unfinished_", ".nfs")
"""File name prefixes of files that are being written, or are still open on a network file system."""


def wrong_constants(store: Store) -> Iterator[str]:
    """Yield a sentence per missing or modified file among those written at creation."""
    if not store.is_metadata_valid:
        yield f"{store.path / 'zarr.json'} is damaged or was edited: its checksum is wrong."
    try:
        yield from wrong_files(store.path, _constants(store))
    except DatasetError as error:
        yield str(error)


def _constants(store: Store) -> dict[str, str]:
    """Checksums of the files written at creation, by name."""
    checksums: dict[str, str] = read_verified(store.path / CHECKSUM_FILE)["files"]
    return checksums


def refuse_changed(store: Store) -> None:
    """Refuse to solve samples of a store whose scene, spec or design has changed.

    Raises:
        DatasetError: A file written at creation is missing or has changed.
    """
    card = store.path / CARD_FILE
    problems = [sentence for sentence in wrong_constants(store) if not sentence.startswith(f"{card} ")]
    if problems:
        raise DatasetError(
            f"{problems[0]} New samples would not match the scene, spec or design of the existing "
            f"ones: restore the file, or create a new data set. `supple dataset verify {store.path}` "
            "lists all changed files."
        )


def extra_files(store: Store) -> Iterator[str]:
    """Yield a sentence per foreign file in a store."""
    try:
        known = {*_constants(store), CHECKSUM_FILE, "zarr.json"}
    except DatasetError:  # reported elsewhere
        return
    for shard in range(store.shards):
        own = (store.manifest_file(shard), store.journal_file(shard))
        paths = (*own, *(store.file(quantity.name, shard) for quantity in store.quantities))
        known |= {path.relative_to(store.path).as_posix() for path in paths}
    known |= {REPORT_FILE, *report_files(store)}
    free = () if is_summary_current(store) else ("report/", "splits/", "stats/")
    for path in sorted(store.path.rglob("*")):
        name = path.relative_to(store.path).as_posix()
        if (
            name in known
            or name.startswith(free)
            or path.name.startswith(TEMPORARY_PREFIXES)
            or path.is_dir()
        ):
            continue
        yield f"{path} is not a file of the data set: remove it."
