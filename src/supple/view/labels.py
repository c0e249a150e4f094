"""Names at the ends of curves, where they cover neither each other nor, if possible, a curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.view.style import BACKGROUND, SMALL_SIZE

GAP = 5.0
"""Points between the end of a curve and its name."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A named curve through points (k, 2) in the units of its axes."""

    name: str
    points: np.ndarray
    colour: Any


@dataclass(frozen=True)
class Box:
    """A rectangle in dots."""

    left: float
    bottom: float
    width: float
    height: float

    def overlaps(self, other: Box) -> bool:
        return (
            self.left < other.left + other.width
            and other.left < self.left + self.width
            and self.bottom < other.bottom + other.height
            and other.bottom < self.bottom + self.height
        )

    def holds(self, points: np.ndarray) -> np.ndarray:
        """Which of the points (k, 2) lie in it."""
        offset = points - [self.left, self.bottom]
        return ((offset >= 0) & (offset <= [self.width, self.height])).all(axis=1)


def label_ends(axes: Any, curves: Sequence[Curve]) -> None:
    """Write each curve's name beside its last point; a thin line leads to names that had to give way."""
    from matplotlib.patheffects import withStroke

    figure = axes.figure
    dots = figure.dpi / 72
    renderer = figure.canvas.get_renderer()
    paths = [_densely(axes.transData.transform(curve.points)) for curve in curves]
    ends = [axes.transData.transform(curve.points[-1]) for curve in curves]
    taken: list[Box] = []
    for k in sorted(range(len(curves)), key=lambda k: -ends[k][1]):
        text = axes.text(
            0,
            0,
            curves[k].name,
            transform=None,
            size=SMALL_SIZE,
            color=curves[k].colour,
            va="center",
            path_effects=[withStroke(linewidth=2.5, foreground=BACKGROUND)],
            zorder=5,
        )
        extent = text.get_window_extent(renderer)
        size = extent.width, 1.1 * SMALL_SIZE * dots
        box = best_place(ends[k], size, GAP * dots, taken, paths, axes.bbox)
        taken.append(box)
        middle = box.bottom + box.height / 2
        text.set_position((box.left, middle))
        if abs(middle - ends[k][1]) > 0.6 * box.height:
            axes.plot(
                [ends[k][0], box.left - 1.5 * dots],
                [ends[k][1], middle],
                transform=None,
                color=curves[k].colour,
                linewidth=0.5,
                clip_on=False,
                zorder=1.5,
            )


def best_place(
    end: np.ndarray,
    size: tuple[float, float],
    gap: float,
    taken: Sequence[Box],
    paths: Sequence[np.ndarray],
    within: Any,
) -> Box:
    """The nearest free place to the right of an end, not below or above the axes' box; a name across curves
    counts as far away."""
    width, height = size

    def cost(box: Box) -> float:
        away = abs(box.bottom + height / 2 - end[1]) / height
        covered = sum(float(box.holds(path).sum()) for path in paths) / width
        return away + 4 * covered

    heights = [end[1] + 0.25 * height * step for step in range(-80, 81)]
    places = [Box(end[0] + gap, y - height / 2, width, height) for y in heights]
    inside = [box for box in places if within.y0 + gap / 2 <= box.bottom <= within.y1]
    free = [box for box in inside if not any(box.overlaps(other) for other in taken)]
    return min(free or inside or places, key=cost)


def _densely(points: np.ndarray) -> np.ndarray:
    """The path through points (k, 2) as points one dot apart."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    at = np.linspace(0, along[-1], max(2, int(along[-1])))
    return np.column_stack([np.interp(at, along, axis) for axis in points.T])
