"""A picture of a deformed body: the rendered surface with its title and legend."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.checks import one_number
from supple.model import Model, Step
from supple.view.camera import CAMERAS, Angles, Camera, fitted_camera, outline
from supple.view.drawing import drawing, links_of
from supple.view.fields import Field, field_named
from supple.view.furniture import Furniture
from supple.view.glass import near_obstacles
from supple.view.ground import ground_level
from supple.view.layout import layout_for
from supple.view.naming import Named, named_bodies, outlines_of_bodies
from supple.view.probe import vtk_problem_while_importing
from supple.view.style import theme_named
from supple.view.surface import surface_of

SIZE = (1600, 1200)
"""Dots across and up."""

SMALLEST, LARGEST = 160, 8192
"""Dots across or up that a picture may have."""


COUNTS = (True, True), (True, False), (False, True), (False, False)
"""Whose values the colours are to show: of solved shapes first, and of those that are not zero everywhere, as
plastic strains are before anything flows."""

THICKEST = 1000.0
"""How many times as thick as it is cloth may be drawn."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A model at positions (n, 3) [m], with a caption; step: what led there, where that was dynamic; solved:
    False for a start, whose values may be far beyond those that the colours are to show; time [s]: when that
    is, for obstacles that move."""

    positions: np.ndarray
    caption: str = ""
    step: Step | None = None
    solved: bool = True
    time: float = np.inf


@dataclass(frozen=True, eq=False)
class View:
    """What pictures must share to be comparable: the camera, the values at the ends of the colour bar and the
    height of the ground; seen (k, 3): the outline of all that is shown; thickness: how many times as thick as
    it is cloth is drawn, 0 for a surface without any; named: bodies whose names are written below them."""

    camera: Camera
    limits: tuple[float, float]
    ground: float
    seen: np.ndarray
    thickness: float = 0.0
    named: tuple[Named, ...] = ()


def shared_view(
    model: Model,
    shapes: Iterable[Shape | np.ndarray],
    field: str | Field = "displacement",
    size: tuple[int, int] = SIZE,
    camera: Angles = CAMERAS["corner"],
    thickness: float = 0.0,
    names: bool = False,
) -> View:
    """The view for pictures of a model in several shapes, or at several positions: all of them are in sight.
    Shapes are taken one by one, so that those of a long film need not fit into memory."""
    field, outlines = _field(field), []
    bodies: list[list[np.ndarray]] = []
    ends: dict[tuple[bool, bool], list[tuple[float, float]]] = defaultdict(list)
    surface = surface_of(model, thickness)
    for shape in map(_shape, shapes):
        links = links_of(model, shape.positions).reshape(-1, 3)
        outlines.append(outline([np.concatenate([surface.corners(shape.positions), links])]))
        bodies += [outlines_of_bodies(model, shape.positions)] if names else []
        values = surface.values(field.values(model, shape.positions, shape.step), field.separate)
        something = bool(np.nan_to_num(values).any())
        ends[shape.solved, something].append(field.limits(values))
        outlines.append(near_obstacles(model.obstacles, shape.time, outlines[-1]))
    seen = np.concatenate(outlines)
    shown = next(filter(None, (ends[key] for key in COUNTS)))
    limits = min(low for low, _ in shown), max(high for _, high in shown)
    placed = fitted_camera(seen, layout_for(size).aspect, camera)
    return View(placed, limits, ground_level(seen), seen, thickness, named_bodies(model, bodies))


class Artist:
    """Draws a model in several shapes, all alike. Close it after use, or use it in a with statement.

    backend: "vtk" or "matplotlib"; unless given, VTK where it can draw. note: a sentence where it could not.
    """

    def __init__(
        self,
        model: Model,
        view: View,
        field: str | Field = "displacement",
        title: str = "",
        size: tuple[int, int] = SIZE,
        theme: str = "light",
        backend: str | None = None,
    ) -> None:
        self.model, self.view, self.field = model, view, _field(field)
        self.note = vtk_problem_while_importing() if backend is None else None
        backend = backend or ("matplotlib" if self.note else "vtk")
        style = theme_named(theme)
        names = {} if self.field.names is None else self.field.names(model)
        self._renderer = _renderer(backend)(size, style)
        self._furniture = Furniture(size, style, title, self.field, view.limits, names, view.named)

    def __enter__(self) -> Artist:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._renderer.close()

    def draw(self, shape: Shape, camera: Camera | None = None) -> np.ndarray:
        """The picture (height, width, 3) uint8 of a shape; camera: another one than the view's."""
        camera = camera or self.view.camera
        positions = np.asarray(shape.positions, float)
        ground = self.view.ground if camera.position[1] > self.view.ground else None  # it hides what is above
        limits, thickness = self.view.limits, self.view.thickness
        shown = drawing(self.model, positions, self.field, limits, shape.step, ground, shape.time, thickness)
        return self._furniture.around(self._renderer.render(shown, camera), shape.caption, camera)


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
    backend: str | None = None,
) -> str | None:
    """Draw the surface of a model in a shape, or at positions (n, 3) [m], into a PNG file.

    field: one of FIELDS by name, or a field of your own. thickness: how many times as thick as it is cloth is
    drawn, 0 for a surface without any. names: write those of bodies below them. view: a `shared_view` for
    the same size and field; unless given, one that fits. backend: "vtk" or "matplotlib"; unless given, VTK
    where it can draw. Returns a sentence where VTK could not, else None.
    """
    shape = _shape(shape, subtitle)
    view = view or shared_view(model, [shape], field, size, camera, thickness, names)
    with Artist(model, view, field, title, size, theme, backend) as artist:
        save_image(path, artist.draw(shape))
        return artist.note


def check_size(size: Any, written: Any = None) -> tuple[int, int]:
    """Dots across and up, two whole numbers; written: how the user put it."""
    whole = isinstance(size, list | tuple) and len(size) == 2 and all(isinstance(n, int) for n in size)
    if not whole or min(size) < SMALLEST or max(size) > LARGEST:
        said = repr(size if written is None else written)
        example = "1920x1080" if isinstance(written or size, str) else "(1920, 1080)"
        raise ValueError(
            f"a size is dots across and up, such as {example}, each from {SMALLEST} to {LARGEST}; got {said}"
        )
    return size[0], size[1]


def check_thickness(thickness: Any, name: str = "thickness") -> float:
    """How many times as thick as it is cloth is drawn."""
    return one_number(name, thickness, at_least=0, at_most=THICKEST)


def save_image(path: str | os.PathLike[str], image: np.ndarray) -> None:
    from PIL import Image

    Image.fromarray(image).save(path, format="png")


def _shape(shape: Shape | np.ndarray, caption: str = "") -> Shape:
    return shape if isinstance(shape, Shape) else Shape(np.asarray(shape, float), caption)


def _field(field: str | Field) -> Field:
    return field if isinstance(field, Field) else field_named(field)


def _renderer(backend: str) -> Callable[..., Any]:
    if backend == "vtk":
        from supple.view import with_vtk

        return with_vtk.Renderer
    if backend == "matplotlib":
        from supple.view import with_matplotlib

        return with_matplotlib.Renderer
    raise ValueError(f"backend must be 'vtk' or 'matplotlib', got {backend!r}")
