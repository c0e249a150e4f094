"""Results on disk: frames, reports, and folders of them."""

from supple.io.frames import SavedFrame, read_frame, write_frame, write_pvd
from supple.io.machine import machine, versions
from supple.io.results import ComparisonFolder, ResultsError, ResultsFolder

__all__ = [
    "ComparisonFolder",
    "ResultsError",
    "ResultsFolder",
    "SavedFrame",
    "machine",
    "read_frame",
    "versions",
    "write_frame",
    "write_pvd",
]
