"""Extension of a store by further samples; existing samples keep their ids and splits."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from supple.datasets.checksums import write_sealed
from supple.datasets.creating import Facts, difference, write_empty
from supple.datasets.errors import DatasetError
from supple.datasets.finishing import finish
from supple.datasets.journal import Journal, finished_rows
from supple.datasets.store import Store
from supple.io.replacing import replacing_folder


def grown(store: Store, facts: Facts, command: Sequence[str] | None) -> Store:
    """Extend a store to the design of new facts.

    The extended store is built next to the original and replaces it atomically. Partial and unfinished shards
    resume from their journals. Workers of the original store cannot publish into the extended one.
    """
    _refuse_others(store, facts)
    whole = store.count // store.shard
    with replacing_folder(store.path) as folder:
        write_empty(folder, facts, command, store.path.name)
        new = Store(folder)
        finished = set(store.finished())
        for shard in range(store.shards):
            if shard not in finished:
                _go_on(store, new, shard)
            elif shard < whole:
                _take_over(store, new, shard)
            else:
                _write_journal(store, new, shard)
        finish(new)
    return Store(store.path)


def _refuse_others(store: Store, facts: Facts) -> None:
    """Check that only the sample count differs and that the existing samples are unchanged."""
    if store.facts.get("origin") != facts.origin:
        why = difference(store, facts) if "origin" in store.facts else "an earlier supple has begun it"
        raise DatasetError(f"{store.path} cannot grow into this spec: {why}. Only count may be different.")
    for label, values in facts.columns.items():
        before = store.inputs[label].reshape(store.count, -1)
        if not np.array_equal(values[: store.count], before):
            raise DatasetError(
                f"{store.path} cannot grow: the first {store.count:,} values of {label!r} are other ones in "
                "this design. A table grows by lines at its end, and a function must draw the first ones "
                "alike; a grid does not grow."
            )


def _take_over(store: Store, new: Store, shard: int) -> None:
    """Link a finished shard into the new store; finished files are never modified."""
    for kind in store.kinds:
        own = new.file(kind.name, shard)
        own.parent.mkdir(parents=True, exist_ok=True)
        _link(store.file(kind.name, shard), own)
    if store.has_checksums:
        _link(store.account_file(shard), new.account_file(shard))
    else:
        write_sealed(new.account_file(shard), store.account(shard))


def _link(old: Path, new: Path) -> None:
    with suppress(OSError):  # not all file systems support hard links
        os.link(old, new)
        return
    shutil.copy2(old, new)


def _go_on(store: Store, new: Store, shard: int) -> None:
    """Copy the journal of an unfinished shard."""
    journal = Journal(new.journal_file(shard), new.facts["identity"])
    for sample, row in Journal(store.journal_file(shard), store.facts["identity"]).read().items():
        journal.add(sample, row)


def _write_journal(store: Store, new: Store, shard: int) -> None:
    """Write finished samples of a partially filled shard to a journal, to resume from."""
    journal = Journal(new.journal_file(shard), new.facts["identity"])
    for sample, row in finished_rows(store, shard):
        journal.add(sample, row)
