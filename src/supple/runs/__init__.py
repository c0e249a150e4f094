"""Saved runs: report, frames, pictures, and the result page."""

from supple.runs.pages import write_page
from supple.runs.pictures import Appearance, draw_film, draw_picture, draw_plots, make_appearance
from supple.runs.saved import SavedFrames, SavedRun, SavedShapes, load_run

__all__ = [
    "Appearance",
    "SavedFrames",
    "SavedRun",
    "SavedShapes",
    "draw_film",
    "draw_picture",
    "draw_plots",
    "load_run",
    "make_appearance",
    "write_page",
]
