"""Pictures of bodies and plots of how solves went."""

from supple.view.fields import FIELDS
from supple.view.picture import picture
from supple.view.plots import residual_plot

__all__ = ["FIELDS", "picture", "residual_plot"]
