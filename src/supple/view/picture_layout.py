"""Picture layout: title, legend and body, for any picture size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

STANDARD_WIDTH = 1600
"""Picture width for which font sizes are designed [pixels]; they scale with the picture."""

MIN_FONT_SCALE = {320: 0.42, 640: 0.5}
"""Smallest font scale by picture width [pixels], for legibility."""


@dataclass(frozen=True)
class Layout:
    """Layout of a picture.

    Attributes:
        size: Width and height [pixels].
        scale: Scale of fonts and annotations relative to pictures of width WIDTH.
        header, side: Fractions of the picture's height and width for title and legend, 0 without them.
    """

    size: tuple[int, int]
    scale: float
    header: float
    side: float

    @property
    def aspect(self) -> float:
        """Width over height of the remaining space for the body, in the lower left."""
        return self.size[0] * (1 - self.side) / (self.size[1] * (1 - self.header))

    def across(self, dots: float) -> float:
        """Convert pixels of a picture of width WIDTH to a fraction of this picture's width."""
        return dots * self.scale / self.size[0]

    def up(self, dots: float) -> float:
        """Convert pixels of a picture of width WIDTH to a fraction of this picture's height."""
        return dots * self.scale / self.size[1]


def layout_for(size: tuple[int, int]) -> Layout:
    """Return the layout for a picture size.

    Small pictures have relatively larger fonts; the smallest have no text.
    """
    width, height = size
    least = float(np.interp(width, list(MIN_FONT_SCALE), list(MIN_FONT_SCALE.values())))
    scale = max(least, min(width / STANDARD_WIDTH, height / (0.75 * STANDARD_WIDTH)))
    header = float(np.clip(0.13 * height, 112 * scale, 156 * scale)) / height
    side = float(np.clip(0.16 * width, 190 * scale, 256 * scale)) / width
    labelled = width >= 240 and height >= 180
    return Layout(size, scale, header if labelled else 0.0, side if labelled and width >= 300 else 0.0)
