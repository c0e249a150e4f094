"""Residual plot of the page."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from supple.live.snapshot import Snapshot
from supple.view.style import Theme

MIN_PLOTTED_RESIDUAL = 1e-16
"""Lower bound of plotted values, since zero has no logarithm."""


class ResidualPlot:
    """Plot of log relative residual against updates, one curve per solver."""

    def __init__(self, gui: Any, folder: Any) -> None:
        self._gui, self._folder = gui, folder
        self._kind: tuple[Any, ...] = ()
        self._plot: Any = None

    def show(self, snapshot: Snapshot, theme: Theme) -> None:
        """Update the plot.

        The plot is created with the first values, since an initially empty plot never shows any.
        """
        labels = tuple(shape.label for shape in snapshot.shapes)
        data = _columns([shape.history for shape in snapshot.shapes])
        kind = labels, theme.name, len(data[0]) > 1
        if kind != self._kind:
            self._renew(labels, theme, data)
            self._kind = kind
        elif self._plot is not None:
            self._plot.data = data

    def _renew(self, labels: tuple[str, ...], theme: Theme, data: tuple[np.ndarray, ...]) -> None:
        before, self._plot = self._plot, None
        if before is not None:
            before.remove()
        self._folder.visible = len(data[0]) > 1
        if self._folder.visible:
            with self._folder:
                self._plot = self._new(labels, theme, data)

    def _new(self, labels: tuple[str, ...], theme: Theme, data: tuple[np.ndarray, ...]) -> Any:
        from viser import uplot

        colors = [theme.curve(label.split()[0]) for label in labels]
        if len(set(colors)) < len(colors):
            colors = [theme.accent, theme.links]
        series = [
            uplot.Series(label=label, stroke=color, width=2)
            for label, color in zip(labels, colors, strict=True)
        ]
        return self._gui.add_uplot(
            data,
            (uplot.Series(label="update"), *series),
            scales={"x": uplot.Scale(time=False), "y": uplot.Scale()},
            axes=(
                uplot.Axis(size=28, label="update", labelSize=16),
                uplot.Axis(size=40, label="log₁₀ relative residual", labelSize=16),
            ),
            legend=uplot.Legend(show=len(series) > 1),
            height=180,
        )


def _columns(histories: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Updates common to all solvers, with log₁₀ of each solver's relative residual.

    Infinite forces count as 1, the largest relative residual.
    """
    updates = reduce(np.intersect1d, [history[:, 0] for history in histories])
    columns = []
    for history in histories:
        relative_residual = history[np.isin(history[:, 0], updates), 1]
        columns.append(np.log10(np.clip(relative_residual, MIN_PLOTTED_RESIDUAL, 1.0)))
    return (updates, *columns)
