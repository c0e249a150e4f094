"""Annotations of a picture: title, caption, legend, coordinate axes and names of bodies."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np

from supple.model.model import Model
from supple.view.camera import Camera, outline
from supple.view.fields import Field
from supple.view.picture_layout import Layout, layout_for
from supple.view.style import DPI, SMALL_SIZE, TEXT_SIZE, TITLE_SIZE, Theme

MAX_SWATCHES = 14
"""Largest number of body colors in a legend; more are indistinguishable."""

MIN_TITLE_SCALE = 0.75
"""Smallest scale of a title that is shrunk to fit; longer titles are cut."""

MARGIN = 0.035
"""Left and right margin of title and caption, relative to the width."""


class Annotations:
    """Title, legend and coordinate axes around rendered bodies.

    Only caption and axes change between pictures. Small pictures have fewer annotations, and text is fitted
    to its space.
    """

    def __init__(
        self,
        size: tuple[int, int],
        theme: Theme,
        title: str,
        field: Field,
        limits: tuple[float, float],
        names: dict[int, str],
        named: tuple[LabeledBody, ...] = (),
    ) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.theme, self.layout = theme, layout_for(size)
        dpi = DPI * self.layout.scale
        self._figure: Any = Figure(figsize=(size[0] / dpi, size[1] / dpi), dpi=dpi, facecolor="none")
        self._canvas = FigureCanvasAgg(self._figure)
        self._parts: int | None = None
        self._directions: Any = None
        self._names = BodyLabels(self._figure, self.layout, theme, named)
        if self.layout.header:
            self._add_title(title)
        if self.layout.side and field.separate:
            self._add_swatches(field, limits, names)
        elif self.layout.side:
            self._add_color_bar(field, limits)

    def annotate_image(self, image: np.ndarray, caption: str, camera: Camera) -> np.ndarray:
        """Return the image (height, width, 3) uint8 with all annotations."""
        if not self.layout.header:
            return image
        self._show_caption(caption)
        self._show_directions(camera)
        self._names.update(camera)
        self._canvas.draw()
        drawn = np.asarray(self._canvas.buffer_rgba())
        annotated = image.copy()
        rows, columns = np.nonzero(drawn[..., 3])
        alpha = drawn[rows, columns, 3:].astype(float) / 255
        mixed = alpha * drawn[rows, columns, :3] + (1 - alpha) * annotated[rows, columns]
        annotated[rows, columns] = np.round(mixed).astype(np.uint8)
        return annotated

    def _add_title(self, title: str) -> None:
        end = 1 - self.layout.header
        top, style = end + self.layout.up(96), {"weight": "bold", "color": self.theme.ink}
        text = self._figure.text(MARGIN, top, title, size=TITLE_SIZE, va="top", **style)
        part = (1 - 2 * MARGIN) / max(self._width(text), 1e-9)
        text.set_size(TITLE_SIZE * np.clip(part, MIN_TITLE_SCALE, 1))
        self._truncate(text, 1 - 2 * MARGIN)
        below = end + self.layout.up(36)
        self._caption = self._figure.text(MARGIN, below, "", size=TEXT_SIZE, color=self.theme.faded, va="top")

    def _show_caption(self, caption: str) -> None:
        """Show caption parts as far as space permits.

        The number of parts never increases within a film, which avoids flicker.
        """
        parts = caption.split(" · ")
        self._caption.set_text(" · ".join(parts[: self._parts]))
        while self._width(self._caption) > 1 - 2 * MARGIN and self._parts != 1:
            self._parts = min(self._parts or len(parts), len(parts)) - 1 or 1
            self._caption.set_text(" · ".join(parts[: self._parts]))
        self._truncate(self._caption, 1 - 2 * MARGIN)

    def _add_color_bar(self, field: Field, limits: tuple[float, float]) -> None:
        from matplotlib.cm import ScalarMappable

        top = self._add_label(field.label, 0.76) - self.layout.up(48)
        bottom = min(0.22, top / 3)
        axes = self._figure.add_axes((self._left, bottom, self.layout.across(25.6), top - bottom))
        colors = ScalarMappable(field.scale(limits), field.color_map)
        extend = "max" if field.beyond else "min" if field.logarithmic else "neither"
        bar = self._figure.colorbar(colors, cax=axes, extend=extend, extendfrac=0.03)
        bar.outline.set_visible(False)
        axes.minorticks_off()
        axes.tick_params(
            labelsize=SMALL_SIZE, color=self.theme.faded, labelcolor=self.theme.ink, length=2, which="both"
        )
        axes.yaxis.get_offset_text().set(size=SMALL_SIZE, color=self.theme.ink)

    def _add_swatches(self, field: Field, limits: tuple[float, float], names: dict[int, str]) -> None:
        """Add color squares with names, one per number between the limits, as far as space permits."""
        from matplotlib.patches import Rectangle

        numbers = range(round(limits[0] + 0.5), round(limits[1] - 0.5) + 1)
        square, row = 26.4, np.clip(0.036, self.layout.up(36), self.layout.up(43.2))
        top = self._add_label(field.label, 0.745) - self.layout.up(18)
        swatches = numbers[: min(MAX_SWATCHES, int((top - 0.05) / row) - 1)]
        style: dict[str, Any] = {"size": SMALL_SIZE, "va": "center_baseline"}
        text_left = self._left + self.layout.across(41.6)
        for k, number in enumerate(swatches, start=1):
            y, height = top - row * k, self.layout.up(square)
            color = field.paint(np.array([number]), limits)[0]
            corner = (self._left, y)
            self._figure.add_artist(Rectangle(corner, self.layout.across(square), height, color=color))
            name = names.get(number, str(number))
            text = self._figure.text(text_left, y + height / 2, name, color=self.theme.ink, **style)
            self._truncate(text, 0.99 - text_left)
        if len(numbers) > len(swatches):
            y = top - row * (len(swatches) + 1) + self.layout.up(square / 2)
            self._figure.text(self._left, y, f"… {len(numbers)} in all", color=self.theme.faded, **style)

    @property
    def _left(self) -> float:
        """Left edge of the legend, relative to the width."""
        return 1 - 0.95 * self.layout.side

    def _add_label(self, text: str, y: float) -> float:
        """Add the field's label, wrapped to the available width.

        Returns its vertical position, at most y and below the header.
        """
        style = {"size": SMALL_SIZE, "color": self.theme.ink, "va": "bottom", "linespacing": 1.4}
        label = self._figure.text(self._left, y, text, **style)
        for letters in range(len(text), 0, -1):
            label.set_text("\n".join(wrap(text, letters, break_long_words=False)))
            if self._width(label) <= 0.99 - self._left:
                break
        height = label.get_window_extent(self._canvas.get_renderer()).height / self.layout.size[1]
        label.set_y(min(y, 1 - self.layout.header - height - self.layout.up(6)))
        return label.get_position()[1]

    def _width(self, text: Any) -> float:
        """Text width relative to the picture width."""
        return text.get_window_extent(self._canvas.get_renderer()).width / self.layout.size[0]

    def _truncate(self, text: Any, width: float) -> None:
        """Truncate a text that exceeds its space."""
        letters = text.get_text()
        while letters and self._width(text) > width:
            letters = letters[:-1].rstrip()
            text.set_text(f"{letters}…")

    def _show_directions(self, camera: Camera) -> None:
        """Draw the x, y and z axes in the lower left corner."""
        if self._directions is not None:
            self._directions.remove()
        box = (0.02, 0.02, self.layout.across(144), self.layout.up(144))
        axes = self._directions = self._figure.add_axes(
            box, xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal", zorder=1
        )
        axes.axis("off")
        for name, (x, y, _) in zip("xyz", camera.axes.T, strict=True):
            axes.plot([0, 0.8 * x], [0, 0.8 * y], color=self.theme.faded, linewidth=1, solid_capstyle="round")
            axes.text(
                1.08 * x, 1.08 * y, name, size=SMALL_SIZE, color=self.theme.faded, ha="center", va="center"
            )


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
