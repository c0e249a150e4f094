"""Convergence plots: residuals and energies of several solvers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from supple.compare import Trial
from supple.view.labels import Curve, label_ends
from supple.view.plots import plot_axes, save
from supple.view.style import DASHES, LIGHT, Theme

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
        colour, end = theme.curve(trial.solver.name), p[-1, 1]
        axes.plot(*line.T, color=colour, linestyle=_dash(trial, ran), linewidth=1.4)
        marker = "v" if end < low else "^" if end > high else "o"
        axes.plot(*line[-1], color=colour, marker=marker, markersize=3.2, clip_on=False, zorder=3)
        curves.append(Curve(trial.label + _destination(values[-1], low, high), line, colour))
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
    shown = np.isfinite(points[:, 1]) & (points[:, 1] > 0)
    return points[shown] if shown.any() else np.array([[0.0, 1.0]])


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
    here, there = points[inside[-1]], points[inside[-1] + 1]
    level = low if there[1] < low else high
    part = np.log(level / here[1]) / np.log(there[1] / here[1])
    exit = here[0] + part * (there[0] - here[0])
    return np.vstack([points[: inside[-1] + 1], [exit, level]])


def _dash(trial: Trial, trials: Sequence[Trial]) -> Any:
    variants = [other for other in trials if other.solver.name == trial.solver.name]
    return DASHES[variants.index(trial) % len(DASHES)]
