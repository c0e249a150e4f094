"""Release of failed samples for another attempt."""

from __future__ import annotations

from collections.abc import Iterable

from supple.datasets.arrays import write_text
from supple.datasets.finishing import REPORT, UNFINISHED
from supple.datasets.journal import Journal, finished_rows
from supple.datasets.store import Store


def release_failed(store: Store, shards: Iterable[int]) -> int:
    """Mark shards with failed samples as unfinished and return the number of failed samples.

    All other samples of these shards are written to their journals and are not solved again. Reports count as
    unfinished from then on. Manifests are deleted last, so that an interrupted call loses nothing.
    """
    count = 0
    for shard in shards:
        if not (failures := store.account(shard)["failures"]):
            continue
        journal = Journal(store.journal_file(shard), store.facts["identity"])
        journal.close()  # left by an interrupted attempt
        for sample, row in finished_rows(store, shard):
            if str(sample) not in failures:
                journal.add(sample, row)
        write_text(store.path / REPORT, UNFINISHED)
        store.account_file(shard).unlink()
        count += len(failures)
    return count
