"""What a run is once it is on disk: its account, the saved run, its pictures, and the page that shows it."""

from supple.runs.pages import write_page
from supple.runs.pictures import Appearance, draw_film, draw_picture, draw_plots, make_appearance
from supple.runs.saved import SavedFrames, SavedRun, SavedShapes, open_run

__all__ = [
    "Appearance",
    "SavedFrames",
    "SavedRun",
    "SavedShapes",
    "draw_film",
    "draw_picture",
    "draw_plots",
    "make_appearance",
    "open_run",
    "write_page",
]
