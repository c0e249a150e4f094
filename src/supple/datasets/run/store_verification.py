"""Store verification: compares checksums and solves a few samples again."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from supple.config.stop_criteria import DEFAULT_POSITION_TOLERANCE
from supple.datasets.errors import DamagedError, DatasetError
from supple.datasets.run.shard import MAX_ENERGY_DIFFERENCE, Shards
from supple.datasets.store.dataset_store import Store
from supple.datasets.store.integrity import extra_files, wrong_constants
from supple.datasets.store.summary import good_samples, is_summary_current, reports, wrong_reports
from supple.datasets.store.zarr_arrays import Shard
from supple.support.progress import Progress
from supple.support.text import pluralize

POSITION_TOLERANCE_FACTOR = 4.0
"""Largest difference between two solves, as a multiple of the position tolerance of one."""


@dataclass
class Verdict:
    """Result of `verify`.

    Attributes:
        chunks: Number of sample chunks read.
        problems: Sentences about damaged, missing or foreign files, and about samples that differ when solved
            again.
        damaged: Shards with problems.
        solved: Differences of the samples that were solved again.
        missing: Number of samples that are not solved yet.
        up_to_date: True if reports, splits and statistics cover all solved samples.
        notes: Sentences about unfinished parts.
    """

    chunks: int = 0
    problems: list[str] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    solved: list[dict[str, Any]] = field(default_factory=list)
    missing: int = 0
    up_to_date: bool = True
    notes: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """True if nothing is damaged."""
        return not self.problems

    @property
    def complete(self) -> bool:
        """True if nothing is damaged and all samples, reports, splits and statistics are present."""
        return self.good and not self.missing and self.up_to_date


def verify(store: Store, samples: int = 5, seed: int = 0, progress: Progress | None = None) -> Verdict:
    """Verify the checksums of all files and sample chunks in a store.

    If nothing is damaged, some samples are solved again from the scene's initial positions, and their
    positions are compared with the stored ones.

    Args:
        store: A store, finished or not.
        samples: Number of random samples to solve again.
        seed: Seed of their selection.
        progress: Called as progress(done, total) after each finished shard.
    """
    verdict, finished = Verdict(), store.finished_shards()
    if not store.is_metadata_valid:  # its checksums of other files cannot be trusted
        verdict.problems += wrong_constants(store)
        return verdict
    verdict.problems += wrong_constants(store)
    for done, shard in enumerate(finished, 1):
        for sentence in wrong_in_shard(store, shard, verdict):
            verdict.problems.append(sentence)
            if shard not in verdict.damaged:
                verdict.damaged.append(shard)
        if progress is not None:
            progress(done, len(finished))
    verdict.problems += (
        f"{sentence} `supple dataset resume {store.path}` writes it again."
        for sentence in wrong_reports(store)
    )
    verdict.problems += extra_files(store)
    _note_unfinished(store, verdict)
    if (
        samples
        and finished
        and not verdict.problems
        and "positions" in {quantity.name for quantity in store.quantities}
    ):
        _solve_again(store, samples, seed, verdict)
    return verdict


def _note_unfinished(store: Store, verdict: Verdict) -> None:
    """Add notes about missing samples and outdated summaries."""
    finished = store.finished_shards()
    left = [shard for shard in range(store.shards) if shard not in set(finished)]
    verdict.missing = sum(len(store.ids(shard)) for shard in left)
    if verdict.missing:
        verdict.notes.append(
            f"{verdict.missing:,} of {pluralize(store.count, 'sample')} are missing, in "
            f"{pluralize(len(left), 'shard')} not solved yet; `supple dataset resume {store.path}` "
            "solves them."
        )
    verdict.up_to_date = is_summary_current(store) or not finished
    if not verdict.up_to_date:
        verdict.notes.append(
            "Reports, splits and statistics do not cover all finished shards; `supple dataset "
            f"resume {store.path}` writes them."
        )


def wrong_in_shard(store: Store, shard: int, verdict: Verdict) -> Iterator[str]:
    """Yield a sentence per problem found in a shard."""
    try:
        manifest = store.manifest(shard)
    except DatasetError as error:
        yield str(error)
        return
    good = len(store.ids(shard)) - len(manifest["failures"])
    for quantity in store.quantities:
        path, checksums = store.file(quantity.name, shard), manifest["checksums"][quantity.name]
        try:
            chunks = Shard(path, quantity.shape, store.dtype, store.shard)
        except FileNotFoundError:
            yield f"{path} is missing."
            continue
        except (DatasetError, OSError, ValueError) as error:
            yield str(error)
            continue
        present = sum(checksum is not None for checksum in checksums)
        if path.stat().st_size != chunks.size_of(present):
            yield f"{path} is damaged: it has bytes that belong to no sample."
        if present != good:
            yield f"{path} has {present} samples, but its report has {good} converged ones."
        for slot, checksum in enumerate(checksums):
            verdict.chunks += 1
            sample = store.ids(shard)[slot]
            if (checksum is None) == (slot in chunks):
                state = "there" if checksum is None else "missing"
                yield f"{path}: sample {sample} is {state}, unlike in its manifest."
            elif checksum is not None and zlib.crc32(chunks[slot].data) != checksum:
                yield f"{path}: sample {sample} is damaged: its checksum is wrong."


def _solve_again(store: Store, samples: int, seed: int, verdict: Verdict) -> None:
    from supple.datasets.read.dataset import Samples

    shards, columns = Shards(store, None), reports(store)
    ids = np.flatnonzero(good_samples(columns))
    chosen = np.random.default_rng(seed).choice(ids, min(samples, len(ids)), replace=False)
    positions, model = Samples(store, "positions"), shards.sampler.model
    size = float(np.ptp(model.rest, axis=0).max())
    allowed = POSITION_TOLERANCE_FACTOR * (
        store.spec["solve"]["position_tolerance"] or DEFAULT_POSITION_TOLERANCE
    )
    allowed += 4 * float(np.finfo(store.dtype).eps) * float(np.abs(model.rest).max()) / size
    for sample in sorted(map(int, chosen)):
        sample_result = shards.sampler.solve(shards.values(sample), [None])
        if not sample_result.ok or sample_result.measured is None or sample_result.report is None:
            verdict.problems.append(
                f"sample {sample} is stored as converged; solved again, it did not converge: "
                f"{sample_result.sentence}"
            )
            continue
        distance = float(np.abs(sample_result.measured.positions - positions[sample]).max()) / size
        energy, stored = sample_result.report.energy, float(columns["energy"][sample])
        verdict.solved.append(
            {"sample": sample, "apart": distance, "energy": energy, "stored_energy": stored}
        )
        if distance <= allowed:
            continue
        differs = abs(energy - stored) > MAX_ENERGY_DIFFERENCE * max(abs(energy), abs(stored))
        why = (
            f"another equilibrium, with energy {energy:.6g} J instead of {stored:.6g} J"
            if differs
            else "the same energy"
        )
        verdict.problems.append(
            f"sample {sample}, solved again, differs by {distance:.1e} of the size, more than "
            f"{allowed:.1e}: {why}."
        )


def verify_folder(path: Path, samples: int, seed: int, discarding: bool) -> Verdict:
    """Verify the store in a folder.

    Args:
        path: Folder of the store. A store that is too damaged to open gives a verdict with that problem.
        samples: Number of random samples to solve again.
        seed: Seed of their selection.
        discarding: Mark damaged shards as unfinished.
    """
    try:
        store = Store(path)
    except DamagedError as error:
        return Verdict(problems=[str(error)])
    verdict = verify(store, samples, seed)
    if discarding:
        discard(store, verdict.damaged)
    return verdict


def discard(store: Store, shards: list[int]) -> None:
    """Mark shards as unfinished; the next run solves them again."""
    for shard in shards:
        store.manifest_file(shard).unlink(missing_ok=True)


def summarize_verdict(verdict: Verdict, path: Path, discarded: bool) -> str:
    """One-line summary of a verdict.

    Args:
        verdict: The verdict.
        path: Folder of the store.
        discarded: True if damaged shards were marked as unfinished.
    """
    if verdict.damaged:
        return (
            f"{pluralize(len(verdict.problems), 'problem')}, {_repair_hint(verdict.damaged, path, discarded)}"
        )
    text = (
        f"{pluralize(verdict.chunks, 'chunk')} read, all checksums match"
        + (f", {pluralize(verdict.missing, 'sample')} missing" if verdict.missing else "")
        if verdict.good
        else f"{pluralize(len(verdict.problems), 'problem')}"
    )
    if verdict.solved:
        worst = max(each["apart"] for each in verdict.solved)
        text += (
            f"; {pluralize(len(verdict.solved), 'sample')} solved again, at most {worst:.1e} of the "
            "size apart"
        )
    return text


def _repair_hint(damaged: list[int], path: Path, discarded: bool) -> str:
    those = pluralize(len(damaged), "shard")
    if discarded:
        return f"in {those}, now marked as unfinished: supple dataset resume {path} solves them again"
    then = f"supple dataset resume {path} solves them again"
    return f"in {those}: run again with --discard, which marks them as unfinished, then {then}"
