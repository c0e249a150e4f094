"""Picture of a deformed body: rendered surface with title and legend."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.model.model import Model, Step
from supple.support.arguments import check_number
from supple.view.camera import CAMERAS, Angles, Camera, fit_camera, outline
from supple.view.fields import Field, field_named
from supple.view.picture_layout import layout_for
from supple.view.renderers.axes_and_legend import Annotations, LabeledBody, named_bodies, outlines_of_bodies
from supple.view.renderers.drawing import attachment_lines, make_drawing
from supple.view.renderers.ground import ground_level
from supple.view.renderers.surface import surface_of
from supple.view.renderers.transparency import near_obstacles
from supple.view.renderers.with_vtk import vtk_problem_while_importing
from supple.view.style import theme_named

SIZE = (1600, 1200)
"""Default width and height [pixels]."""

SMALLEST, LARGEST = 160, 8192
"""Limits of a picture's width and height [pixels]."""


LIMIT_PRIORITY = (True, True), (True, False), (False, True), (False, False)
"""Priority of (solved, nonzero) shapes for the color limits. Initial shapes and vanishing fields, such as
plastic strain before yield, come last."""

MAX_THICKNESS_FACTOR = 1000.0
"""Largest factor by which cloth thickness is drawn."""


@dataclass(frozen=True, eq=False)
class Shape:
    """One state of a model.

    Attributes:
        positions: (n, 3) vertex positions [m].
        caption: Caption.
        step: Time step that led to this state, or None.
        solved: False for an initial guess, whose extreme values are excluded from the color limits.
        time: Time [s], for moving obstacles.
    """

    positions: np.ndarray
    caption: str = ""
    step: Step | None = None
    solved: bool = True
    time: float = np.inf


@dataclass(frozen=True, eq=False)
class View:
    """Settings shared by comparable pictures.

    Attributes:
        camera: Camera.
        limits: Values at the ends of the color bar.
        ground: Height of the ground [m].
        seen: (k, 3) outline of all shapes [m].
        thickness: Factor by which cloth thickness is drawn, 0 for an infinitely thin surface.
        named: Bodies with labels.
    """

    camera: Camera
    limits: tuple[float, float]
    ground: float
    seen: np.ndarray
    thickness: float = 0.0
    named: tuple[LabeledBody, ...] = ()


def shared_view(
    model: Model,
    shapes: Iterable[Shape | np.ndarray],
    field: str | Field = "displacement",
    size: tuple[int, int] = SIZE,
    camera: Angles = CAMERAS["corner"],
    thickness: float = 0.0,
    names: bool = False,
) -> View:
    """Return a view that fits several shapes of a model.

    Shapes are processed one by one, so that a long film need not fit into memory.

    Args:
        model: Model.
        shapes: Shapes, or positions (n, 3) [m].
        field: Name in `FIELDS`, or a field.
        size: Width and height [pixels].
        camera: Azimuth and elevation [degrees].
        thickness: Factor by which cloth thickness is drawn.
        names: Label bodies with their names.
    """
    field, outlines = _field(field), []
    bodies: list[list[np.ndarray]] = []
    ends: dict[tuple[bool, bool], list[tuple[float, float]]] = defaultdict(list)
    surface = surface_of(model, thickness)
    for shape in map(_shape, shapes):
        links = attachment_lines(model, shape.positions).reshape(-1, 3)
        outlines.append(outline([np.concatenate([surface.corners(shape.positions), links])]))
        bodies += [outlines_of_bodies(model, shape.positions)] if names else []
        values = surface.values(field.values(model, shape.positions, shape.step), field.separate)
        something = bool(np.nan_to_num(values).any())
        ends[shape.solved, something].append(field.limits(values))
        outlines.append(near_obstacles(model.obstacles, shape.time, outlines[-1]))
    seen = np.concatenate(outlines)
    ranges = next(filter(None, (ends[key] for key in LIMIT_PRIORITY)))
    limits = min(low for low, _ in ranges), max(high for _, high in ranges)
    placed = fit_camera(seen, layout_for(size).aspect, camera)
    return View(placed, limits, ground_level(seen), seen, thickness, named_bodies(model, bodies))


class Artist:
    """Renderer for several shapes of a model, in a common style.

    Close it after use, or use it as a context manager.

    Attributes:
        note: A sentence if VTK was requested by default but is not available, otherwise None.
    """

    def __init__(
        self,
        model: Model,
        view: View,
        field: str | Field = "displacement",
        title: str = "",
        size: tuple[int, int] = SIZE,
        theme: str = "light",
        renderer: str | None = None,
    ) -> None:
        self.model, self.view, self.field = model, view, _field(field)
        self.note = vtk_problem_while_importing() if renderer is None else None
        renderer = renderer or ("matplotlib" if self.note else "vtk")
        style = theme_named(theme)
        names = {} if self.field.names is None else self.field.names(model)
        self._renderer = _renderer(renderer)(size, style)
        self._annotations = Annotations(size, style, title, self.field, view.limits, names, view.named)

    def __enter__(self) -> Artist:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._renderer.close()

    def draw(self, shape: Shape, camera: Camera | None = None) -> np.ndarray:
        """Return the picture (height, width, 3) uint8 of a shape.

        Args:
            shape: Shape.
            camera: Camera; by default the view's.
        """
        camera = camera or self.view.camera
        positions = np.asarray(shape.positions, float)
        ground = self.view.ground if camera.position[1] > self.view.ground else None  # hides the body
        limits, thickness = self.view.limits, self.view.thickness
        scene = make_drawing(
            self.model, positions, self.field, limits, shape.step, ground, shape.time, thickness
        )
        return self._annotations.annotate_image(self._renderer.render(scene, camera), shape.caption, camera)


def picture(
    path: str | os.PathLike[str],
    model: Model,
    shape: Shape | np.ndarray,
    *,
    title: str = "",
    subtitle: str = "",
    field: str | Field = "displacement",
    size: tuple[int, int] = SIZE,
    theme: str = "light",
    camera: Angles = CAMERAS["corner"],
    thickness: float = 0.0,
    names: bool = False,
    view: View | None = None,
    renderer: str | None = None,
) -> str | None:
    """Draw the surface of a model in a shape into a PNG file.

    Args:
        path: PNG file.
        model: Model.
        shape: Shape, or positions (n, 3) [m].
        title, subtitle: Header lines.
        field: Name in `FIELDS`, or a field.
        size: Width and height [pixels].
        theme: "light" or "dark".
        camera: Azimuth and elevation [degrees].
        thickness: Factor by which cloth thickness is drawn, 0 for an infinitely thin surface.
        names: Label bodies with their names.
        view: A `shared_view` for the same size and field; by default one that fits the shape.
        renderer: "vtk" or "matplotlib"; by default VTK if it is available.

    Returns:
        A sentence if VTK was not available, otherwise None.
    """
    shape = _shape(shape, subtitle)
    view = view or shared_view(model, [shape], field, size, camera, thickness, names)
    with Artist(model, view, field, title, size, theme, renderer) as artist:
        save_image(path, artist.draw(shape))
        return artist.note


def check_size(size: Any, written: Any = None) -> tuple[int, int]:
    """Validate width and height [pixels], two integers; `written` is the user's text for messages."""
    is_pair = isinstance(size, list | tuple) and len(size) == 2 and all(isinstance(n, int) for n in size)
    if not is_pair or min(size) < SMALLEST or max(size) > LARGEST:
        said = repr(size if written is None else written)
        example = "1920x1080" if isinstance(written or size, str) else "(1920, 1080)"
        raise ValueError(
            f"size must be width and height in pixels, such as {example}, each from {SMALLEST} to "
            f"{LARGEST}; got {said}"
        )
    return size[0], size[1]


def check_thickness(thickness: Any, name: str = "thickness") -> float:
    """Validate the factor by which cloth thickness is drawn."""
    return check_number(name, thickness, at_least=0, at_most=MAX_THICKNESS_FACTOR)


def save_image(path: str | os.PathLike[str], image: np.ndarray) -> None:
    from PIL import Image

    Image.fromarray(image).save(path, format="png")


def _shape(shape: Shape | np.ndarray, caption: str = "") -> Shape:
    return shape if isinstance(shape, Shape) else Shape(np.asarray(shape, float), caption)


def _field(field: str | Field) -> Field:
    return field if isinstance(field, Field) else field_named(field)


def _renderer(renderer: str) -> Callable[..., Any]:
    if renderer == "vtk":
        from supple.view.renderers import with_vtk

        return with_vtk.Renderer
    if renderer == "matplotlib":
        from supple.view.renderers import with_matplotlib

        return with_matplotlib.Renderer
    raise ValueError(f"renderer must be 'vtk' or 'matplotlib', got {renderer!r}")
