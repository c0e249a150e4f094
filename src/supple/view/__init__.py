"""Pictures and films of results, result pages, and plots of convergence and of materials."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from supple.view.comparison_plot import comparison_plot
from supple.view.fields import FIELDS
from supple.view.film import film as film
from supple.view.picture import Artist as Artist
from supple.view.picture import Shape as Shape
from supple.view.picture import View as View
from supple.view.picture import picture as picture
from supple.view.picture import shared_view as shared_view
from supple.view.plots import frames_plot, histogram_plot, history_plot
from supple.view.stress_stretch import stretch_plot

if TYPE_CHECKING:
    from supple.runs.present import animate, render, write_report

__all__ = [
    "FIELDS",
    "animate",
    "comparison_plot",
    "frames_plot",
    "histogram_plot",
    "history_plot",
    "render",
    "stretch_plot",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Return functions of results, whose package imports this one."""
    if name in ("animate", "render", "write_report"):
        return getattr(import_module("supple.runs.present"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
