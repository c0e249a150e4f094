"""Results on disk: frames, reports, results folders and exports."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from supple.io.errors import FrameError, ResultsError
from supple.io.formats import FORMATS
from supple.io.frame_export import save_frames
from supple.io.frames import SavedFrame, read_frame
from supple.io.frames import write_frame as write_frame
from supple.io.frames import write_pvd as write_pvd
from supple.io.machine import machine as machine
from supple.io.machine import show_versions
from supple.io.machine import versions as versions
from supple.io.results import ComparisonFolder as ComparisonFolder
from supple.io.results import ResultsFolder as ResultsFolder
from supple.io.saved_bodies import SavedBody as SavedBody
from supple.io.saved_bodies import concatenate_bodies as concatenate_bodies
from supple.io.saved_bodies import read_bodies as read_bodies
from supple.io.saved_bodies import write_data as write_data
from supple.io.saved_bodies import write_skins as write_skins

if TYPE_CHECKING:
    from supple.runs.present import export, load_run

__all__ = [
    "FORMATS",
    "FrameError",
    "ResultsError",
    "SavedFrame",
    "export",
    "load_run",
    "read_frame",
    "save_frames",
    "show_versions",
]


def __getattr__(name: str) -> Any:
    """Return functions of results folders, whose package imports this one."""
    if name in ("export", "load_run"):
        return getattr(import_module("supple.runs.present"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
