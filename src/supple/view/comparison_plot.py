"""Convergence plots: residuals and energies of several solvers, labeled at the ends of curves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from supple.api.compare import Trial
from supple.view.plots import plot_axes, save
from supple.view.style import DASHES, LIGHT, SMALL_SIZE, Theme

LABEL_GAP = 5.0
"""Distance between the end of a curve and its label [points]."""

LINE_HEIGHT = 1.15 * SMALL_SIZE
"""Vertical distance of labels [points]."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A named curve through points (k, 2) in axis units."""

    name: str
    points: np.ndarray
    color: Any


def label_ends(axes: Any, curves: Sequence[Curve]) -> None:
    """Write each curve's name next to its last point; displaced labels are connected by a thin line."""
    dots = axes.figure.dpi / 72
    texts = [_text(axes, curve) for curve in curves]
    renderer = axes.figure.canvas.get_renderer()
    widths = np.array([text.get_window_extent(renderer).width for text in texts])
    _reserve_width(axes, float(widths.max()) + 2 * LABEL_GAP * dots)
    paths = [axes.transData.transform(curve.points) for curve in curves]
    ends = np.array([path[-1] for path in paths])
    left = ends[:, 0] + LABEL_GAP * dots
    right = left + widths
    inked = np.concatenate([_resample(path) for path in paths])
    limits = axes.bbox.y0 + 0.6 * LINE_HEIGHT * dots, axes.bbox.y1
    heights = place_labels(ends[:, 1], left, right, LINE_HEIGHT * dots, inked, limits)
    for curve, text, end, x, y in zip(curves, texts, ends, left, heights, strict=True):
        text.set_position((x, y))
        if abs(y - end[1]) > 0.8 * LINE_HEIGHT * dots:
            line = {"transform": None, "color": curve.color, "linewidth": 0.5, "clip_on": False}
            axes.plot([end[0], x - 1.5 * dots], [end[1], y], zorder=1.5, **line)


def place_labels(
    preferred: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    height: float,
    inked: np.ndarray,
    limits: tuple[float, float],
) -> np.ndarray:
    """Compute label heights without overlaps.

    Args:
        preferred: (k,) preferred heights.
        left, right: (k,) horizontal extents.
        height: Line height.
        inked: (n, 2) points of the curves, which labels should avoid.
        limits: Lowest and highest height.

    Returns:
        (k,) heights near the preferred ones, separated, and mostly in their order [pixels].
    """
    rivals = (left[:, None] < right) & (left < right[:, None]) & ~np.eye(len(preferred), dtype=bool)
    y = _separate_labels(preferred, rivals, height, limits)
    steps = 0.25 * height * np.arange(-40, 41)
    for _ in range(5):
        for k in range(len(y)):
            others = y[rivals[k]]
            inked_heights = inked[(inked[:, 0] >= left[k]) & (inked[:, 0] <= right[k]), 1]
            candidates = np.clip(np.append(y[k], preferred[k] + steps), *limits)
            covered = [
                np.count_nonzero(abs(inked_heights - candidate) < height / 2) for candidate in candidates
            ]
            distances = abs(candidates[:, None] - others)
            swapped = (candidates[:, None] - others) * (preferred[k] - preferred[rivals[k]]) < 0
            cost = abs(candidates - preferred[k]) / height + 4 * np.array(covered) / (right - left)[k]
            cost += 100 * (distances < 0.999 * height).sum(axis=1) + 0.5 * swapped.sum(axis=1)
            y[k] = candidates[np.argmin(cost)]
    return y


def _separate_labels(
    preferred: np.ndarray, rivals: np.ndarray, height: float, limits: tuple[float, float]
) -> np.ndarray:
    """Move labels apart vertically until none overlap, in their preferred order.

    `rivals[i, j]` is True for labels that overlap horizontally.
    """
    y, order = preferred.astype(float), np.argsort(preferred, kind="stable")
    for _ in range(400):
        y = np.clip(y, *limits)
        for i, lower in enumerate(order):
            for upper in order[i + 1 :]:
                missing = height - (y[upper] - y[lower])
                if rivals[lower, upper] and missing > 0:
                    y[lower], y[upper] = y[lower] - missing / 2, y[upper] + missing / 2
    return y


def _reserve_width(axes: Any, width: float) -> None:
    """Reserve space of a given width [pixels] right of the axes."""
    box = axes.get_position()
    box.x1 = min(box.x1, 1 - width / axes.figure.bbox.width)
    axes.set_position(box)


def _text(axes: Any, curve: Curve) -> Any:
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground=axes.get_facecolor())]
    style = {"size": SMALL_SIZE, "color": curve.color, "va": "center", "zorder": 5}
    return axes.text(0, 0, curve.name, transform=None, path_effects=halo, **style)


def _resample(points: np.ndarray) -> np.ndarray:
    """Resample a path through points (k, 2) at one-pixel spacing."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    at = np.linspace(0, along[-1], max(2, int(along[-1])))
    return np.column_stack([np.interp(at, along, axis) for axis in points.T])


LABELS = {
    "residual": "residual |r| / |r at the start|",
    "energy": "energy above the lowest / that at the start",
}

DECADES = 3
"""Number of decades a curve may fall below all others, or rise above 1, before it is cut off."""


def comparison_plot(
    path: str | os.PathLike[str],
    trials: Sequence[Trial],
    against: Literal["iterations", "seconds"],
    *,
    title: str = "",
    subtitle: str = "",
    size: tuple[int, int] = (1600, 1100),
    quantity: Literal["residual", "energy"] = "residual",
    theme: Theme = LIGHT,
) -> None:
    """Plot convergence curves of several solvers into a PNG file.

    Residuals and energies are relative to their initial values; energies are measured from the lowest value
    of all curves. Curves against seconds are step functions, since a solver has no new result between
    iterations.

    Args:
        path: PNG file.
        trials: Solver runs; those without a report are skipped.
        against: Horizontal axis, "iterations" or "seconds".
        title: Title.
        subtitle: Second line.
        size: Width and height [pixels].
        quantity: "residual" or "energy".
        theme: Colors.
    """
    ran = [trial for trial in trials if trial.report is not None]
    relative = _relative(ran, quantity)
    points = [_points(trial, values, against) for trial, values in zip(ran, relative, strict=True)]
    axes = plot_axes(size, title, subtitle, theme)
    left, right = _scale(axes, np.concatenate([p[:, 0] for p in points]), against)
    low, high = _range([p[:, 1] for p in points])
    axes.set(xlim=(left, right), yscale="log", ylim=(low, high), ylabel=LABELS[quantity])
    curves = []
    for trial, values, p in zip(ran, relative, points, strict=True):
        line = _visible(_steps(p, left) if against == "seconds" else _after(p, left), low, high)
        color, end = theme.curve(trial.solver.name), p[-1, 1]
        axes.plot(*line.T, color=color, linestyle=_dash(trial, ran), linewidth=1.4)
        marker = "v" if end < low else "^" if end > high else "o"
        axes.plot(*line[-1], color=color, marker=marker, markersize=3.2, clip_on=False, zorder=3)
        curves.append(Curve(trial.label + _destination(values[-1], low, high), line, color))
    label_ends(axes, curves)
    save(axes, path)


def _destination(end: float, low: float, high: float) -> str:
    """Label suffix for a curve that ends outside the plot."""
    if not np.isfinite(end):
        return ", not finite"
    return "" if low <= end <= high else f", to {end:.0e}" if end else ", to 0"


def _relative(trials: Sequence[Trial], quantity: str) -> list[np.ndarray]:
    """Residuals relative to the initial one, or energies above the lowest relative to the initial."""
    curves = [np.array(getattr(trial.report.history, quantity)) for trial in trials]  # type: ignore[union-attr]
    if quantity == "energy":
        lowest = min((float(c[np.isfinite(c)].min()) for c in curves if np.isfinite(c).any()), default=0.0)
        curves = [curve - lowest for curve in curves]
    return [curve / (curve[0] or 1.0) for curve in curves]


def _points(trial: Trial, values: np.ndarray, against: str) -> np.ndarray:
    """(k, 2) iterations or seconds, and values; without values that are zero, negative or not finite."""
    points = np.column_stack([getattr(trial.report.history, against), values])  # type: ignore[union-attr]
    is_drawable = np.isfinite(points[:, 1]) & (points[:, 1] > 0)
    return points[is_drawable] if is_drawable.any() else np.array([[0.0, 1.0]])


def _range(values: Sequence[np.ndarray]) -> tuple[float, float]:
    """Vertical range; a curve far below all others, or far above 1, leaves it."""
    lows = sorted(float(v.min()) for v in values)
    low = max(lows[0], lows[min(1, len(lows) - 1)] / 10**DECADES)
    high = 2 * min(max(float(v.max()) for v in values), 10**DECADES)
    return min(low / 2, high / 50), high


def _scale(axes: Any, values: np.ndarray, against: str) -> tuple[float, float]:
    """Scale and label the horizontal axis and return its limits; linear from 0 for up to 100 iterations."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    last = float(values.max()) or 1.0
    if against == "iterations" and last <= 100:
        axes.set_xlabel("iteration")
        axes.xaxis.set_major_locator(MaxNLocator(steps=[1, 2, 5, 10], integer=True))
        return 0.0, last
    axes.set_xscale("log")
    axes.set_xlabel("iteration" if against == "iterations" else "time")
    axes.xaxis.set_major_formatter(FuncFormatter(_say_number if against == "iterations" else _say_time))
    first = float(values[values > 0].min(initial=last))
    return (1.0, last) if against == "iterations" else (first / 2, max(last, 10 * first))


def _steps(points: np.ndarray, left: float) -> np.ndarray:
    """Step function through points (k, 2); the start, at 0, moves to `left`."""
    x, y = np.repeat(points, 2, axis=0).T
    return np.column_stack([np.maximum(x[1:], left), y[:-1]])


def _after(points: np.ndarray, left: float) -> np.ndarray:
    """Points within a logarithmic axis, without the start."""
    later = points[points[:, 0] >= left]
    return later if len(later) else np.maximum(points, [left, 0.0])


def _say_number(value: float, _: Any) -> str:
    return f"{value:,.0f}"


def _say_time(seconds: float, _: Any) -> str:
    if seconds < 0.9e-3:
        return f"{1e6 * seconds:g} µs"
    return f"{1e3 * seconds:g} ms" if seconds < 0.9 else f"{seconds:g} s"


def _visible(points: np.ndarray, low: float, high: float) -> np.ndarray:
    """Truncate a curve at its final exit from the plot."""
    inside = np.flatnonzero((points[:, 1] >= low) & (points[:, 1] <= high))
    if not len(inside) or inside[-1] == len(points) - 1:
        return points
    inner, outer = points[inside[-1]], points[inside[-1] + 1]
    level = low if outer[1] < low else high
    part = np.log(level / inner[1]) / np.log(outer[1] / inner[1])
    exit = inner[0] + part * (outer[0] - inner[0])
    return np.vstack([points[: inside[-1] + 1], [exit, level]])


def _dash(trial: Trial, trials: Sequence[Trial]) -> Any:
    variants = [other for other in trials if other.solver.name == trial.solver.name]
    return DASHES[variants.index(trial) % len(DASHES)]
