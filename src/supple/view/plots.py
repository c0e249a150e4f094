"""Curves of how solves went."""

from __future__ import annotations

import os
from collections.abc import Mapping

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
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] / DPI, size[1] / DPI), dpi=DPI, facecolor=BACKGROUND)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.1, 0.13, 0.78, 0.72), facecolor=BACKGROUND, yscale="log")
    shades = colormaps["viridis"]
    for i, (name, history) in enumerate(histories.items()):
        one = len(histories) == 1
        colour = ACCENT if one else shades(0.85 * i / (len(histories) - 1))
        axes.plot(history.iterations, history.imbalance, color=colour, linewidth=1.5)
        if not one and (i in (0, len(histories) - 1) or len(histories) <= 6):
            axes.annotate(
                name,
                (history.iterations[-1], history.imbalance[-1]),
                xytext=(4, 0),
                textcoords="offset points",
                size=SMALL_SIZE,
                color=colour,
                va="center",
                annotation_clip=False,
            )
    if tolerance is not None:
        axes.axhline(tolerance, color=FADED, linewidth=0.8, linestyle=(0, (4, 3)))
        axes.annotate(
            f"tolerance {tolerance:g}", (1, tolerance), xycoords=("axes fraction", "data"), xytext=(-4, 4),
            textcoords="offset points", size=SMALL_SIZE, color=FADED, ha="right", va="bottom",
        )  # fmt: skip
    axes.set_xlim(left=0)
    axes.set_xlabel("iteration", size=TEXT_SIZE, color=INK)
    axes.set_ylabel("imbalance |r| / |s|", size=TEXT_SIZE, color=INK)
    axes.tick_params(labelsize=SMALL_SIZE, color=FADED, labelcolor=INK, which="both")
    axes.grid(which="major", color=FADED, alpha=0.2, linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.text(0.1, 0.95, title, size=TITLE_SIZE, weight="bold", color=INK, va="top")
    figure.savefig(path, format="png", facecolor=BACKGROUND)
