"""Results on disk: frames, reports, results folders and exports."""

from supple.io.bodies import SavedBody, joined, read_bodies, write_data, write_skins
from supple.io.errors import FrameError, ResultsError
from supple.io.export import export, save_frames
from supple.io.formats import FORMATS
from supple.io.frames import SavedFrame, read_frame, write_frame, write_pvd
from supple.io.machine import machine, show_versions, versions
from supple.io.results import ComparisonFolder, ResultsFolder

__all__ = [
    "FORMATS",
    "ComparisonFolder",
    "FrameError",
    "ResultsError",
    "ResultsFolder",
    "SavedBody",
    "SavedFrame",
    "export",
    "joined",
    "machine",
    "read_bodies",
    "read_frame",
    "save_frames",
    "show_versions",
    "versions",
    "write_data",
    "write_frame",
    "write_pvd",
    "write_skins",
]
