"""Labels at the ends of curves, placed without overlaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.view.style import SMALL_SIZE

GAP = 5.0
"""Distance between the end of a curve and its label [points]."""

LINE = 1.15 * SMALL_SIZE
"""Vertical distance of labels [points]."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A named curve through points (k, 2) in axis units."""

    name: str
    points: np.ndarray
    colour: Any


def label_ends(axes: Any, curves: Sequence[Curve]) -> None:
    """Write each curve's name next to its last point; displaced labels are connected by a thin line."""
    dots = axes.figure.dpi / 72
    texts = [_text(axes, curve) for curve in curves]
    renderer = axes.figure.canvas.get_renderer()
    widths = np.array([text.get_window_extent(renderer).width for text in texts])
    _make_room(axes, float(widths.max()) + 2 * GAP * dots)
    paths = [axes.transData.transform(curve.points) for curve in curves]
    ends = np.array([path[-1] for path in paths])
    left = ends[:, 0] + GAP * dots
    right = left + widths
    inked = np.concatenate([_densely(path) for path in paths])
    limits = axes.bbox.y0 + 0.6 * LINE * dots, axes.bbox.y1
    heights = place_labels(ends[:, 1], left, right, LINE * dots, inked, limits)
    for curve, text, end, x, y in zip(curves, texts, ends, left, heights, strict=True):
        text.set_position((x, y))
        if abs(y - end[1]) > 0.8 * LINE * dots:
            line = {"transform": None, "color": curve.colour, "linewidth": 0.5, "clip_on": False}
            axes.plot([end[0], x - 1.5 * dots], [end[1], y], zorder=1.5, **line)


def place_labels(
    wanted: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    height: float,
    inked: np.ndarray,
    limits: tuple[float, float],
) -> np.ndarray:
    """Compute label heights without overlaps.

    Args:
        wanted: (k,) preferred heights.
        left, right: (k,) horizontal extents.
        height: Line height.
        inked: (n, 2) points of the curves, which labels should avoid.
        limits: Lowest and highest height.

    Returns:
        (k,) heights near the preferred ones, separated, and mostly in their order [pixels].
    """
    rivals = (left[:, None] < right) & (left < right[:, None]) & ~np.eye(len(wanted), dtype=bool)
    y = _apart(wanted, rivals, height, limits)
    steps = 0.25 * height * np.arange(-40, 41)
    for _ in range(5):
        for k in range(len(y)):
            others = y[rivals[k]]
            beside = inked[(inked[:, 0] >= left[k]) & (inked[:, 0] <= right[k]), 1]
            places = np.clip(np.append(y[k], wanted[k] + steps), *limits)
            covered = [np.count_nonzero(abs(beside - place) < height / 2) for place in places]
            gaps = abs(places[:, None] - others)
            swapped = (places[:, None] - others) * (wanted[k] - wanted[rivals[k]]) < 0
            cost = abs(places - wanted[k]) / height + 4 * np.array(covered) / (right - left)[k]
            cost += 100 * (gaps < 0.999 * height).sum(axis=1) + 0.5 * swapped.sum(axis=1)
            y[k] = places[np.argmin(cost)]
    return y


def _apart(wanted: np.ndarray, rivals: np.ndarray, height: float, limits: tuple[float, float]) -> np.ndarray:
    """Heights nearest to the preferred ones, order-preserving and free of overlaps between rivals."""
    y, order = wanted.astype(float), np.argsort(wanted, kind="stable")
    for _ in range(400):
        y = np.clip(y, *limits)
        for place, lower in enumerate(order):
            for upper in order[place + 1 :]:
                missing = height - (y[upper] - y[lower])
                if rivals[lower, upper] and missing > 0:
                    y[lower], y[upper] = y[lower] - missing / 2, y[upper] + missing / 2
    return y


def _make_room(axes: Any, width: float) -> None:
    """Reserve space of a given width [pixels] right of the axes."""
    box = axes.get_position()
    box.x1 = min(box.x1, 1 - width / axes.figure.bbox.width)
    axes.set_position(box)


def _text(axes: Any, curve: Curve) -> Any:
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground=axes.get_facecolor())]
    style = {"size": SMALL_SIZE, "color": curve.colour, "va": "center", "zorder": 5}
    return axes.text(0, 0, curve.name, transform=None, path_effects=halo, **style)


def _densely(points: np.ndarray) -> np.ndarray:
    """Resample a path through points (k, 2) at one-pixel spacing."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    at = np.linspace(0, along[-1], max(2, int(along[-1])))
    return np.column_stack([np.interp(at, along, axis) for axis in points.T])
