"""Rendering with Matplotlib alone: triangles from back to front, for machines where VTK cannot draw."""

from __future__ import annotations

import numpy as np

from supple.view.camera import Camera
from supple.view.drawing import Drawing
from supple.view.style import BACKGROUND, DPI, EDGES, PINS


def render(drawing: Drawing, camera: Camera, size: tuple[int, int]) -> np.ndarray:
    """The image (height, width, 3) uint8."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] / DPI, size[1] / DPI), dpi=DPI, facecolor=BACKGROUND)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(-1, 1), ylim=(-1, 1))
    axes.axis("off")
    places, distance = camera.project(drawing.points)
    normals = _normals(drawing)
    facing = _dot(normals, camera.position - drawing.points[drawing.triangles[:, 0]]) > 0
    order = np.argsort(-distance[drawing.triangles].mean(axis=1))
    order = order[facing[order]]
    axes.add_collection(
        PolyCollection(
            places[drawing.triangles[order]],
            facecolors=_colours(drawing, normals, camera)[order],
            edgecolors=(*_rgb(EDGES), 0.25),
            linewidths=0.3,
        )
    )
    seen = np.intersect1d(drawing.pinned, drawing.triangles[facing])
    axes.scatter(
        places[seen, 0], places[seen, 1], s=2.2, color=PINS, edgecolors=BACKGROUND, linewidths=0.3, zorder=3
    )
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _colours(drawing: Drawing, normals: np.ndarray, camera: Camera) -> np.ndarray:
    """(k, 3) colours of the triangles by field and light."""
    from matplotlib.colors import Normalize

    values = drawing.values[drawing.triangles].mean(axis=1)
    base = drawing.field.colour_map(Normalize(*drawing.limits)(values))[:, :3]
    right, up, towards = camera.axes
    light = 0.35 + 0.3 * np.clip(normals @ towards, 0, 1)
    for direction, intensity in ((towards - right + 1.4 * up, 0.45), (2 * right + towards, 0.3)):
        light += intensity * np.clip(normals @ (direction / np.linalg.norm(direction)), 0, 1)
    return np.clip(base * light[:, None], 0, 1)


def _normals(drawing: Drawing) -> np.ndarray:
    """(k, 3) unit normals of the triangles, outwards."""
    a, b, c = np.moveaxis(drawing.points[drawing.triangles], 1, 0)
    normals = np.cross(b - a, c - a)
    return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", a, b)


def _rgb(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(colour)
