"""Results on disk: frames, reports, results folders and exports."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from supple.io.bodies import SavedBody, joined, read_bodies, write_data, write_skins  # noqa: F401
from supple.io.errors import FrameError, ResultsError
from supple.io.formats import FORMATS
from supple.io.frame_export import save_frames
from supple.io.frames import SavedFrame, read_frame, write_frame, write_pvd  # noqa: F401
from supple.io.machine import machine, show_versions, versions  # noqa: F401
from supple.io.results import ComparisonFolder, ResultsFolder  # noqa: F401

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
