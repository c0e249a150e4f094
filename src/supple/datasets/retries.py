"""Samples without a result, which are to be solved again."""

from __future__ import annotations

from collections.abc import Iterable

from supple.datasets.arrays import write_text
from supple.datasets.finishing import REPORT, UNFINISHED
from supple.datasets.journal import Journal, finished_rows
from supple.datasets.store import Store


def release_failed(store: Store, shards: Iterable[int]) -> int:
    """Let shards with failed samples count as not finished, and return how many samples failed.

    All other samples of these shards go into their journals, so that they are not solved again. Reports count
    as unfinished from then on. An account is deleted last: a process that is killed meanwhile loses nothing.
    """
    count = 0
    for shard in shards:
        if not (failures := store.account(shard)["failures"]):
            continue
        journal = Journal(store.journal_file(shard), store.facts["identity"])
        journal.close()  # of an attempt that was killed
        for sample, row in finished_rows(store, shard):
            if str(sample) not in failures:
                journal.add(sample, row)
        write_text(store.path / REPORT, UNFINISHED)
        store.account_file(shard).unlink()
        count += len(failures)
    return count
