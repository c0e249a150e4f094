"""Small plots of curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from supple_papers.internals import plot_axes

DASHES: tuple[Any, ...] = ("-", "--", ":", "-.")

LEGEND_SIZE = 7.5
"""Font size of the legend, equal to that of tick labels."""


def save_curves(
    path: Path,
    lines: dict[str, tuple[Any, Any]],
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = True,
) -> None:
    """Save a plot of named lines (x, y)."""
    from matplotlib import colormaps

    axes = plot_axes((1000, 620), "")
    for k, (label, (x, y)) in enumerate(lines.items()):
        y_values = np.array([np.nan if value is None else value for value in y], float)
        if log_y:
            y_values = np.where(y_values > 0, y_values, np.nan)
        color = colormaps["viridis"](0.85 * k / max(len(lines) - 1, 1))
        axes.plot(x, y_values, color=color, linestyle=DASHES[k % 4], linewidth=1.5, label=label)
    axes.set_xscale("log" if log_x else "linear")
    axes.set_yscale("log" if log_y else "linear")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.legend(fontsize=LEGEND_SIZE, frameon=False)
    axes.figure.savefig(path, format="png", facecolor=axes.get_facecolor())
