"""Pictures and films of bodies, and plots of solver convergence."""

from supple.view.comparison_plot import comparison_plot
from supple.view.fields import FIELDS
from supple.view.film import film
from supple.view.picture import Artist, Shape, View, picture, shared_view
from supple.view.plots import frames_plot, history_plot

__all__ = [
    "FIELDS",
    "Artist",
    "Shape",
    "View",
    "comparison_plot",
    "film",
    "frames_plot",
    "history_plot",
    "picture",
    "shared_view",
]
