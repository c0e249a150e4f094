"""Plots of convergence curves, frame values and histograms."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from supple.solve.report import History
from supple.view.style import DPI, LIGHT, SMALL_SIZE, TEXT_SIZE, TITLE_SIZE, Theme

Abscissa = Literal["iterations", "seconds"]
Quantity = Literal["relative_residual", "energy"]

LABELS = {"relative_residual": "relative residual |r| / |s|", "energy": "energy above the lowest [J]"}


def history_plot(
    path: str | os.PathLike[str],
    histories: Mapping[str, History],
    quantity: Quantity = "relative_residual",
    against: Abscissa = "iterations",
    *,
    title: str = "",
    tolerance: float | None = None,
    size: tuple[int, int] = (1600, 1000),
    theme: Theme = LIGHT,
) -> None:
    """Plot relative residual or energy against iterations or seconds into a PNG file, logarithmically.

    Energies are measured from the lowest value of each curve.

    Args:
        path: PNG file.
        histories: Histories by name, one curve each.
        quantity: "relative_residual" for the relative residual, or "energy".
        against: "iterations" or "seconds".
        title: Title.
        tolerance: Value marked by a line, or None.
        size: Width and height [pixels].
        theme: Colors.
    """
    from matplotlib import colormaps

    axes = plot_axes(size, title, theme=theme)
    axes.set_yscale("log")
    last = len(histories) - 1
    for i, (name, history) in enumerate(histories.items()):
        color = colormaps["viridis"](0.15 + 0.75 * i / last) if last else theme.accent
        x, y = np.array(getattr(history, against), float), _values(history, quantity)
        axes.plot(x, y, color=color, linewidth=1.5)
        if last and (i in (0, last) or last < 6) and np.isfinite(y).any():
            end = np.flatnonzero(np.isfinite(y))[-1]
            _label(axes, name, (x[end], y[end]), color)
    if quantity == "relative_residual":
        _mark(axes, tolerance, theme)
    axes.set_xlim(left=0)
    axes.set_xlabel("iteration" if against == "iterations" else "time [s]")
    axes.set_ylabel(LABELS[quantity])
    save(axes, path)


def frames_plot(
    path: str | os.PathLike[str],
    values: np.ndarray,
    label: str,
    *,
    title: str = "",
    tolerance: float | None = None,
    logarithmic: bool = False,
    size: tuple[int, int] = (1600, 1000),
    theme: Theme = LIGHT,
) -> None:
    """Plot one value per frame into a PNG file.

    Args:
        path: PNG file.
        values: (k,) values of frames 1 to k.
        label: Name of the value with its unit, such as "energy [J]".
        title: Title.
        tolerance: Value marked by a line, or None.
        logarithmic: Use a logarithmic axis, which omits values that are not positive.
        size: Width and height [pixels].
        theme: Colors.
    """
    axes = plot_axes(size, title, theme=theme)
    plotted = _positive(values) if logarithmic else values
    axes.plot(np.arange(1, len(values) + 1), plotted, "o-", color=theme.accent, markersize=3, linewidth=1)
    _mark(axes, tolerance, theme)
    if logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel("frame")
    axes.set_ylabel(label)
    save(axes, path)


def histogram_plot(
    path: str | os.PathLike[str],
    values: np.ndarray,
    label: str,
    *,
    title: str = "",
    logarithmic: bool = False,
    size: tuple[int, int] = (1600, 1000),
    theme: Theme = LIGHT,
) -> None:
    """Plot a histogram into a PNG file.

    Args:
        path: PNG file.
        values: (k,) values of samples.
        label: Name of the value with its unit, such as "energy [J]".
        title: Title.
        logarithmic: Use a logarithmic axis and bins, for positive values.
        size: Width and height [pixels].
        theme: Colors.
    """
    axes = plot_axes(size, title, theme=theme)
    low, high = float(values.min()), float(values.max())
    if logarithmic:
        bins = np.geomspace(low, max(high, low * 1.001), 41)
        axes.set_xscale("log")
    else:
        margin = 1e-9 * max(abs(low), abs(high), 1e-300)
        bins = np.linspace(low - margin, high + margin, 41)
    axes.hist(values, bins=bins.tolist(), color=theme.accent)
    axes.set_xlabel(label)
    axes.set_ylabel("samples")
    save(axes, path)


def plot_axes(size: tuple[int, int], title: str, subtitle: str = "", theme: Theme = LIGHT) -> Any:
    """Return empty axes in common style, on a figure of given size [pixels]."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] / DPI, size[1] / DPI), dpi=DPI, facecolor=theme.background)
    FigureCanvasAgg(figure)
    height = 0.72 if title else 0.77 if subtitle else 0.82
    axes = figure.add_axes((0.12, 0.13, 0.76, height), facecolor=theme.background)
    axes.tick_params(labelsize=SMALL_SIZE, color=theme.faded, labelcolor=theme.ink, which="both")
    axes.grid(which="major", color=theme.faded, alpha=0.2, linewidth=0.6)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(size=TEXT_SIZE, color=theme.ink)
    for side, spine in axes.spines.items():
        spine.set(visible=side in ("left", "bottom"), color=theme.faded)
    figure.text(0.12, 0.95, title, size=TITLE_SIZE, weight="bold", color=theme.ink, va="top")
    figure.text(0.12, 0.895 if title else 0.96, subtitle, size=TEXT_SIZE, color=theme.faded, va="top")
    return axes


def save(axes: Any, path: str | os.PathLike[str]) -> None:
    axes.figure.savefig(path, format="png", facecolor=axes.get_facecolor())


def above_lowest(energy: np.ndarray, lowest: float | None = None) -> np.ndarray:
    """Energies above their minimum, or above `lowest`; NaN at the minimum itself."""
    finite = energy[np.isfinite(energy)]
    if not len(finite):
        return np.full(energy.shape, np.nan)
    return _positive(energy - (finite.min() if lowest is None else lowest))


def _values(history: History, quantity: Quantity) -> np.ndarray:
    values = np.array(getattr(history, quantity), float)
    return above_lowest(values) if quantity == "energy" else _positive(values)


def _positive(values: np.ndarray) -> np.ndarray:
    """Replace values that a logarithmic axis cannot show by NaN."""
    values = np.asarray(values, float)
    return np.where(np.isfinite(values) & (values > 0), values, np.nan)


def _mark(axes: Any, tolerance: float | None, theme: Theme) -> None:
    if tolerance is not None:
        axes.axhline(tolerance, color=theme.faded, linewidth=0.8, linestyle=(0, (4, 3)))
        _label(axes, f"tolerance\n{tolerance:g}", (1, tolerance), theme.faded, ("axes fraction", "data"))


def _label(
    axes: Any, text: str, position: tuple[float, float], color: Any, coordinates: Any = "data"
) -> None:
    """Add text right of a point, legible on top of curves."""
    from matplotlib.patheffects import withStroke

    axes.annotate(
        text,
        position,
        xycoords=coordinates,
        xytext=(5, 0),
        textcoords="offset points",
        size=SMALL_SIZE,
        color=color,
        va="center",
        annotation_clip=False,
        path_effects=[withStroke(linewidth=2.5, foreground=axes.get_facecolor())],
        zorder=4,
    )
