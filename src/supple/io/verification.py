"""Checksum verification of results folders."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from supple.io.checksums import CHECKSUMS, Checksums, read_checksums
from supple.io.errors import ResultsError
from supple.io.lock import LOCK_NAME
from supple.io.results import ComparisonFolder, ResultsFolder
from supple.support.text import pluralize


@dataclass
class Verification:
    """Result of `verify_results`.

    Attributes:
        files: Number of files read.
        damaged: Files that differ from their checksums, relative to the folder.
        missing: Missing files with a checksum.
        unexpected: Files with names of supple's own files, without a checksum.
        foreign: Other files without a checksum, such as a user's notes; not a problem.
        problems: A sentence for each damaged, missing or unexpected file.
    """

    files: int = 0
    damaged: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """True if there are no problems."""
        return not self.problems


def verify_results(folder: Path) -> Verification:
    """Compare every file of a results folder with its recorded checksum.

    Raises:
        ResultsError: Not a folder of `supple run` or `supple compare`.
    """
    results = _results_folder(folder)
    checksums, verification = read_checksums(folder), Verification()
    if checksums is None:
        verification.problems.append(
            f"{folder} has no {CHECKSUMS}: the run was written by an earlier version of supple, or the file "
            "was deleted, so its files cannot be verified."
        )
        return verification
    for line in checksums.broken:
        verification.problems.append(f"{folder / CHECKSUMS} is damaged: line {line} is not a checksum.")
    for name in sorted(checksums.digests):
        _verify_file(checksums, name, verification)
    own = {path.relative_to(folder).as_posix() for path in results.files}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if (
            path.is_dir()
            or name in checksums.digests
            or name in (CHECKSUMS, LOCK_NAME)
            or _is_unfinished(name)
        ):
            continue
        if name in own or any(name.startswith(f"{folder_name}/") for folder_name in own):
            verification.unexpected.append(name)
            verification.problems.append(f"{path} is unexpected: it has no checksum.")
        else:
            verification.foreign.append(name)
    return verification


def _verify_file(checksums: Checksums, name: str, verification: Verification) -> None:
    path = checksums.folder / name
    if not path.exists():
        verification.missing.append(name)
        verification.problems.append(f"{path} is missing.")
        return
    verification.files += 1
    try:
        is_intact = checksums.is_intact(name)
    except OSError as error:
        verification.damaged.append(name)
        verification.problems.append(f"{path} cannot be read: {error.strerror or error}.")
        return
    if not is_intact:
        verification.damaged.append(name)
        verification.problems.append(f"{path} is damaged: it does not match its checksum.")


def summarize_verification(verification: Verification) -> str:
    """One line with the number of intact files, or of problems."""
    if verification.good:
        return f"{pluralize(verification.files, 'file')} read, all checksums match"
    return pluralize(len(verification.problems), "problem")


def _results_folder(folder: Path) -> ResultsFolder:
    """Results folder of a run or comparison.

    Raises:
        ResultsError: Another folder; for a data set the message names the right command.
    """
    if not folder.is_dir():
        raise ResultsError(f"there is no results folder {folder}; `supple run SCENE` creates one.")
    if (folder / ComparisonFolder.report).exists():
        return ComparisonFolder(folder)
    if (folder / ResultsFolder.report).exists() or read_checksums(folder) is not None:
        return ResultsFolder(folder)
    if (folder / "zarr.json").exists():
        raise ResultsError(f"{folder} is a data set; `supple dataset verify {folder}` verifies it.")
    raise ResultsError(
        f"{folder} has no report.json, so it is not a results folder of `supple run` or `supple compare`."
    )


def _is_unfinished(name: str) -> bool:
    """True for temporary files of a killed process, which the next command removes."""
    return name.startswith((".unfinished_", ".replaced_")) or "/.unfinished_" in name
