"""What stands around the body in a picture: title, caption, legend and directions."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.view.camera import Camera
from supple.view.fields import Field
from supple.view.style import DPI, SMALL_SIZE, TEXT_SIZE, TITLE_SIZE, Theme

HEADER, LEGEND = 0.13, 0.16
"""Parts of the picture's height and width that title and legend take."""

WIDTH = 1600
"""Dots across of pictures for which the sizes of type are right; they grow and shrink with the picture."""

MOST_SWATCHES = 14
SMALLEST = 0.5
"""How far type shrinks at most: smaller it could not be read."""


def aspect_for_body(size: tuple[int, int]) -> float:
    """Width over height of what is left for the body, in the lower left."""
    return size[0] * (1 - LEGEND) / (size[1] * (1 - HEADER))


class Furniture:
    """Title, legend and directions, drawn around rendered bodies; only caption and directions may change."""

    def __init__(
        self,
        size: tuple[int, int],
        theme: Theme,
        title: str,
        field: Field,
        limits: tuple[float, float],
        names: dict[int, str],
    ) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.size, self.theme = size, theme
        dpi = DPI * max(SMALLEST, min(size[0] / WIDTH, size[1] / (0.75 * WIDTH)))
        self._figure: Any = Figure(figsize=(size[0] / dpi, size[1] / dpi), dpi=dpi, facecolor="none")
        self._canvas = FigureCanvasAgg(self._figure)
        self._figure.text(0.035, 0.955, title, size=TITLE_SIZE, weight="bold", color=theme.ink, va="top")
        self._caption = self._figure.text(0.035, 0.9, "", size=TEXT_SIZE, color=theme.faded, va="top")
        if field.separate:
            self._add_swatches(field, limits, names)
        else:
            self._add_colour_bar(field, limits)
        self._directions: Any = None

    def around(self, image: np.ndarray, caption: str, camera: Camera) -> np.ndarray:
        """The picture (height, width, 3) uint8 of a rendered body with all that stands around it."""
        self._caption.set_text(caption)
        self._show_directions(camera)
        self._canvas.draw()
        drawn = np.asarray(self._canvas.buffer_rgba())
        whole = image.copy()
        rows, columns = np.nonzero(drawn[..., 3])
        alpha = drawn[rows, columns, 3:].astype(float) / 255
        mixed = alpha * drawn[rows, columns, :3] + (1 - alpha) * whole[rows, columns]
        whole[rows, columns] = np.round(mixed).astype(np.uint8)
        return whole

    def _add_colour_bar(self, field: Field, limits: tuple[float, float]) -> None:
        from matplotlib.cm import ScalarMappable

        axes = self._figure.add_axes((1 - 0.95 * LEGEND, 0.22, 0.016, 0.5))
        colours = ScalarMappable(field.scale(limits), field.colour_map)
        extend = "max" if field.beyond else "min" if field.logarithmic else "neither"
        bar = self._figure.colorbar(colours, cax=axes, extend=extend, extendfrac=0.03)
        bar.outline.set_visible(False)
        axes.minorticks_off()
        axes.tick_params(
            labelsize=SMALL_SIZE, color=self.theme.faded, labelcolor=self.theme.ink, length=2, which="both"
        )
        axes.yaxis.get_offset_text().set(size=SMALL_SIZE, color=self.theme.ink)
        self._label(field.label, 0.76)

    def _add_swatches(self, field: Field, limits: tuple[float, float], names: dict[int, str]) -> None:
        """A square and a name for each number between the limits, as far as there is room."""
        from matplotlib.patches import Rectangle

        numbers = range(round(limits[0] + 0.5), round(limits[1] - 0.5) + 1)
        left, shown = 1 - 0.95 * LEGEND, numbers[:MOST_SWATCHES]
        style: dict[str, Any] = {"size": SMALL_SIZE, "va": "center_baseline"}
        for row, number in enumerate(shown):
            y = 0.7 - 0.036 * row
            colour = field.paint(np.array([number]), limits)[0]
            self._figure.add_artist(Rectangle((left, y), 0.0165, 0.022, color=colour))
            name = names.get(number, str(number))
            self._figure.text(left + 0.026, y + 0.011, name, color=self.theme.ink, **style)
        if len(numbers) > len(shown):
            y = 0.7 - 0.036 * len(shown) + 0.011
            self._figure.text(left, y, f"… {len(numbers)} in all", color=self.theme.faded, **style)
        self._label(field.label, 0.745)

    def _label(self, text: str, y: float) -> None:
        """The name of the field, its unit on a line of its own where both are long."""
        name, bracket, unit = text.partition(" [")
        lines = f"{name}\n[{unit}" if bracket and len(text) > 18 else text.replace(" of the ", "\nof the ")
        lines = lines.replace("energy density\n", "energy\ndensity ")
        self._figure.text(
            1 - 0.95 * LEGEND, y, lines, size=SMALL_SIZE, color=self.theme.ink, va="bottom", linespacing=1.4
        )

    def _show_directions(self, camera: Camera) -> None:
        """A small cross of the x, y and z axes in the lower left corner."""
        if self._directions is not None:
            self._directions.remove()
        axes = self._directions = self._figure.add_axes(
            (0.02, 0.02, 0.09, 0.12), xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal", zorder=1
        )
        axes.axis("off")
        for name, (x, y, _) in zip("xyz", camera.axes.T, strict=True):
            axes.plot([0, 0.8 * x], [0, 0.8 * y], color=self.theme.faded, linewidth=1, solid_capstyle="round")
            axes.text(
                1.08 * x, 1.08 * y, name, size=SMALL_SIZE, color=self.theme.faded, ha="center", va="center"
            )
