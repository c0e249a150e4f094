"""A picture of a deformed body: the rendered surface with its title and colour bar."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from supple.model import Model
from supple.view.camera import Camera, fitted_camera
from supple.view.drawing import Drawing, drawing
from supple.view.fields import field_named
from supple.view.probe import vtk_problem
from supple.view.style import BACKGROUND, DPI, FADED, INK, SMALL_SIZE, TEXT_SIZE, TITLE_SIZE

HEADER, LEGEND = 0.13, 0.16
"""Parts of the picture's height and width that title and colour bar take."""

SIZE = (1600, 1200)
"""Dots across and up."""


@dataclass(frozen=True, eq=False)
class View:
    """What pictures must share to be comparable: the camera, and the values at the ends of the colour bar."""

    camera: Camera
    limits: tuple[float, float]


def shared_view(
    model: Model,
    shapes: Sequence[np.ndarray],
    colour_by: str = "displacement",
    size: tuple[int, int] = SIZE,
) -> View:
    """The view for pictures of a model at several positions (n, 3) [m]: all of them are in sight."""
    field = field_named(colour_by)
    shown = [drawing(model, np.asarray(positions, float), field) for positions in shapes]
    width, height = _inner(size)
    return View(
        fitted_camera(np.concatenate([each.points for each in shown]), width / height),
        field.limits(np.concatenate([each.values for each in shown])),
    )


def picture(
    path: str | os.PathLike[str],
    model: Model,
    positions: np.ndarray,
    *,
    title: str = "",
    subtitle: str = "",
    colour_by: str = "displacement",
    size: tuple[int, int] = SIZE,
    view: View | None = None,
    backend: str | None = None,
) -> str | None:
    """Draw the surface of a model at positions (n, 3) [m] into a PNG file.

    colour_by: one of FIELDS. view: a `shared_view` for the same size and field; unless given, one that fits.
    backend: "vtk" or "matplotlib"; unless given, VTK where it can draw. Returns a sentence where VTK could
    not, else None.
    """
    problem = vtk_problem() if backend is None else None
    backend = backend or ("matplotlib" if problem else "vtk")
    view = view or shared_view(model, [positions], colour_by, size)
    shown = replace(drawing(model, np.asarray(positions, float), field_named(colour_by)), limits=view.limits)
    image = _render(backend, shown, view.camera, _inner(size))
    _compose(path, image, shown, view.camera, title, subtitle, size)
    return problem


def _inner(size: tuple[int, int]) -> tuple[int, int]:
    """Dots that are left for the body."""
    return round(size[0] * (1 - LEGEND)), round(size[1] * (1 - HEADER))


def _render(backend: str, shown: Drawing, camera: Camera, size: tuple[int, int]) -> np.ndarray:
    if backend == "vtk":
        from supple.view import with_vtk

        return with_vtk.render(shown, camera, size)
    if backend == "matplotlib":
        from supple.view import with_matplotlib

        return with_matplotlib.render(shown, camera, size)
    raise ValueError(f"backend must be 'vtk' or 'matplotlib', got {backend!r}")


def _compose(
    path: str | os.PathLike[str],
    image: np.ndarray,
    shown: Drawing,
    camera: Camera,
    title: str,
    subtitle: str,
    size: tuple[int, int],
) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] / DPI, size[1] / DPI), dpi=DPI, facecolor=BACKGROUND)
    FigureCanvasAgg(figure)
    figure.figimage(image, 0, 0, origin="upper")
    figure.text(0.035, 0.955, title, size=TITLE_SIZE, weight="bold", color=INK, va="top")
    figure.text(0.035, 0.9, subtitle, size=TEXT_SIZE, color=FADED, va="top")
    _add_colour_bar(figure, shown)
    _add_directions(figure, camera)
    figure.savefig(path, format="png", facecolor=BACKGROUND)


def _add_colour_bar(figure: Any, shown: Drawing) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    axes = figure.add_axes((1 - 0.95 * LEGEND, 0.22, 0.016, 0.5))
    bar = figure.colorbar(ScalarMappable(Normalize(*shown.limits), shown.field.colour_map), cax=axes)
    bar.outline.set_visible(False)
    axes.tick_params(labelsize=SMALL_SIZE, color=FADED, labelcolor=INK, length=2)
    figure.text(
        1 - 0.95 * LEGEND, 0.745, shown.field.label, size=SMALL_SIZE, color=INK, ha="left", va="bottom"
    )


def _add_directions(figure: Any, camera: Camera) -> None:
    """A small cross of the x, y and z axes in the lower left corner."""
    axes = figure.add_axes(
        (0.02, 0.02, 0.09, 0.12), xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal", zorder=1
    )
    axes.axis("off")
    for name, (x, y, _) in zip("xyz", camera.axes.T, strict=True):
        axes.plot([0, 0.8 * x], [0, 0.8 * y], color=FADED, linewidth=1, solid_capstyle="round")
        axes.text(1.08 * x, 1.08 * y, name, size=SMALL_SIZE, color=FADED, ha="center", va="center")
