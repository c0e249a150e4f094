"""Pictures of bodies and plots of how solves went."""

from supple.view.comparison import comparison_plot
from supple.view.fields import FIELDS
from supple.view.picture import View, picture, shared_view
from supple.view.plots import residual_plot

__all__ = ["FIELDS", "View", "comparison_plot", "picture", "residual_plot", "shared_view"]
