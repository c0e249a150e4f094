"""Curves of how solves went."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from supple.report import History
from supple.view.style import ACCENT, BACKGROUND, DPI, FADED, INK, SMALL_SIZE, TEXT_SIZE, TITLE_SIZE


def residual_plot(
    path: str | os.PathLike[str],
    histories: Mapping[str, History],
    *,
    title: str = "",
    tolerance: float | None = None,
    size: tuple[int, int] = (1600, 1000),
) -> None:
    """Draw the imbalance against iterations, one curve for each named history, into a PNG file."""
    from matplotlib import colormaps

    axes = plot_axes(size, title)
    axes.set_yscale("log")
    for i, (name, history) in enumerate(histories.items()):
        last = len(histories) - 1
        colour = colormaps["viridis"](0.75 * i / last) if last else ACCENT
        axes.plot(history.iterations, history.imbalance, color=colour, linewidth=1.5)
        if last and (i in (0, last) or last < 6):
            _label(axes, name, (history.iterations[-1], history.imbalance[-1]), colour)
    if tolerance is not None:
        axes.axhline(tolerance, color=FADED, linewidth=0.8, linestyle=(0, (4, 3)))
        _label(axes, f"tolerance\n{tolerance:g}", (1, tolerance), FADED, ("axes fraction", "data"))
    axes.set_xlim(left=0)
    axes.set_xlabel("iteration")
    axes.set_ylabel("imbalance |r| / |s|")
    save(axes, path)


def plot_axes(size: tuple[int, int], title: str, subtitle: str = "") -> Any:
    """Empty axes in the house style, on a figure of so many dots across and up."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] / DPI, size[1] / DPI), dpi=DPI, facecolor=BACKGROUND)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.1, 0.13, 0.78, 0.72), facecolor=BACKGROUND)
    axes.tick_params(labelsize=SMALL_SIZE, color=FADED, labelcolor=INK, which="both")
    axes.grid(which="major", color=FADED, alpha=0.2, linewidth=0.6)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(size=TEXT_SIZE, color=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.text(0.1, 0.95, title, size=TITLE_SIZE, weight="bold", color=INK, va="top")
    figure.text(0.1, 0.895, subtitle, size=TEXT_SIZE, color=FADED, va="top")
    return axes


def save(axes: Any, path: str | os.PathLike[str]) -> None:
    axes.figure.savefig(path, format="png", facecolor=BACKGROUND)


def _label(axes: Any, text: str, place: tuple[float, float], colour: Any, coordinates: Any = "data") -> None:
    """A name to the right of a place, readable above curves."""
    from matplotlib.patheffects import withStroke

    axes.annotate(
        text,
        place,
        xycoords=coordinates,
        xytext=(5, 0),
        textcoords="offset points",
        size=SMALL_SIZE,
        color=colour,
        va="center",
        annotation_clip=False,
        path_effects=[withStroke(linewidth=2.5, foreground=BACKGROUND)],
        zorder=4,
    )
