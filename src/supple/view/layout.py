"""Where title, legend and body stand in a picture of any size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WIDTH = 1600
"""Dots across of pictures for which the sizes of type are right; they grow and shrink with the picture."""

SMALLEST = {320: 0.42, 640: 0.5}
"""How far type shrinks at most in pictures of so many dots across: smaller it could not be read."""


@dataclass(frozen=True)
class Layout:
    """scale: sizes of type and of all that stands beside it, over those of pictures WIDTH dots across. header
    and side: the parts of the picture's height and width that title and legend take, 0 without them."""

    size: tuple[int, int]
    scale: float
    header: float
    side: float

    @property
    def aspect(self) -> float:
        """Width over height of what is left for the body, in the lower left."""
        return self.size[0] * (1 - self.side) / (self.size[1] * (1 - self.header))

    def across(self, dots: float) -> float:
        """Dots, counted in pictures WIDTH dots across, as a part of the picture's width."""
        return dots * self.scale / self.size[0]

    def up(self, dots: float) -> float:
        """Dots, counted in pictures WIDTH dots across, as a part of the picture's height."""
        return dots * self.scale / self.size[1]


def layout_for(size: tuple[int, int]) -> Layout:
    """Small pictures give more of their room to type; the smallest have room for the body only."""
    width, height = size
    least = float(np.interp(width, list(SMALLEST), list(SMALLEST.values())))
    scale = max(least, min(width / WIDTH, height / (0.75 * WIDTH)))
    header = float(np.clip(0.13 * height, 112 * scale, 156 * scale)) / height
    side = float(np.clip(0.16 * width, 190 * scale, 256 * scale)) / width
    labelled = width >= 240 and height >= 180
    return Layout(size, scale, header if labelled else 0.0, side if labelled and width >= 300 else 0.0)
