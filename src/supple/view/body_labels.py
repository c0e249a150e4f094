"""Body names in pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.model.model import Model
from supple.view.camera import Camera, outline
from supple.view.picture_layout import Layout
from supple.view.style import SMALL_SIZE, Theme

LABEL_GAP = 8.0
"""Distance between a body and its name, in pictures of standard width [pixels]."""


@dataclass(frozen=True, eq=False)
class LabeledBody:
    """A body's name and the outline (k, 3) of all its shapes [m], which fixes the label's place in a film."""

    name: str
    seen: np.ndarray


def outlines_of_bodies(model: Model, positions: np.ndarray) -> list[np.ndarray]:
    """Outline of each body at positions (n, 3) [m]."""
    return [outline([np.asarray(positions, float)[vertices]]) for _, vertices in model.body_vertices]


def named_bodies(model: Model, shapes: list[list[np.ndarray]]) -> tuple[LabeledBody, ...]:
    """Bodies of a model with outlines from several shapes."""
    names = [name for name, _ in model.body_vertices]
    each = zip(names, zip(*shapes, strict=True), strict=True) if shapes else ()
    return tuple(LabeledBody(name, np.concatenate(outlines)) for name, outlines in each if name)


class BodyLabels:
    """Text labels on a figure, one per body, placed for the camera."""

    def __init__(self, figure: Any, layout: Layout, theme: Theme, named: tuple[LabeledBody, ...]) -> None:
        from matplotlib.patheffects import withStroke

        self._layout, self._named = layout, named
        halo = [withStroke(linewidth=2.5, foreground=theme.background)]
        style = {"size": SMALL_SIZE, "color": theme.ink, "ha": "center", "va": "top", "path_effects": halo}
        self._texts = [figure.text(0, 0, body.name, **style) for body in named]

    def update(self, camera: Camera) -> None:
        """Place labels below bodies in the camera's view, within the picture."""
        layout = self._layout
        extent = (1 - layout.side), (1 - layout.header)
        lowest = layout.up(LABEL_GAP + 2 * SMALL_SIZE)
        for text, body in zip(self._texts, self._named, strict=True):
            projected, _ = camera.project(body.seen)
            text.set_visible(bool(len(projected)))
            if len(projected):
                low, high = projected.min(axis=0), projected.max(axis=0)
                x, y = (
                    extent[0] * (low[0] + high[0] + 2) / 4,
                    extent[1] * (low[1] + 1) / 2 - layout.up(LABEL_GAP),
                )
                text.set_position((float(np.clip(x, 0.0, extent[0])), max(float(y), lowest)))
