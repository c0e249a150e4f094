"""Rendering with Matplotlib: triangles sorted from back to front, for machines without VTK."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from supple.view.camera import Camera
from supple.view.picture_layout import layout_for
from supple.view.renderers.drawing import Drawing
from supple.view.renderers.transparency import transparent_obstacles
from supple.view.style import DPI, Theme


class Renderer:
    """Images of drawings, each rendered independently."""

    def __init__(self, size: tuple[int, int], theme: Theme) -> None:
        self.size, self.theme = size, theme

    def render(self, drawing: Drawing, camera: Camera) -> np.ndarray:
        """Return the image (height, width, 3) uint8."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        inches = self.size[0] / DPI, self.size[1] / DPI
        figure = Figure(figsize=inches, dpi=DPI, facecolor=self.theme.background)
        canvas = FigureCanvasAgg(figure)
        layout = layout_for(self.size)
        right, top = 2 / (1 - layout.side) - 1, 2 / (1 - layout.header) - 1
        axes = figure.add_axes((0, 0, 1, 1), xlim=(-1, right), ylim=(-1, top))
        axes.axis("off")
        self._add_shadow(axes, drawing, camera)
        self._add_obstacles(axes, *drawing.obstacles, camera)
        seen = self._add_surface(axes, drawing, camera)
        self._add_lines(axes, drawing.lines, camera, seen)
        self._add_links(axes, drawing, camera)
        self._add_pins(axes, drawing, camera, seen)
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()

    def close(self) -> None:
        """Does nothing."""

    def _add_shadow(self, axes: Any, drawing: Drawing, camera: Camera) -> None:
        if drawing.shadow is None:
            return
        from matplotlib.colors import LinearSegmentedColormap

        projected, _ = camera.project(drawing.shadow.points.reshape(-1, 3))
        x, y = projected.T.reshape(2, *drawing.shadow.darkness.shape)
        clear_to_dark = LinearSegmentedColormap.from_list(
            "shadow", [(0, 0, 0, 0), (0, 0, 0, self.theme.shadow)]
        )
        style = {"cmap": clear_to_dark, "vmin": 0, "vmax": 1, "antialiased": False, "linewidth": 0}
        axes.pcolormesh(x, y, drawing.shadow.darkness[1:, 1:], shading="flat", **style)

    def _add_obstacles(self, axes: Any, points: np.ndarray, triangles: np.ndarray, camera: Camera) -> None:
        """Draw obstacles behind everything else."""
        from matplotlib.collections import PolyCollection
        from matplotlib.colors import to_rgb

        corners, colors = transparent_obstacles(points, triangles, to_rgb(self.theme.faded), camera)
        if len(corners):
            projected = camera.project(corners.reshape(-1, 3))[0].reshape(-1, 3, 2)
            axes.add_collection(PolyCollection(list(projected), facecolors=colors, edgecolors="none"))

    def _add_surface(self, axes: Any, drawing: Drawing, camera: Camera) -> np.ndarray:
        """Draw the triangles that face the camera; returns their corner points (k, 3)."""
        from matplotlib.collections import PolyCollection
        from matplotlib.colors import to_rgba

        paint = drawing.paint
        triangles = paint.triangles
        projected, distance = camera.project(paint.points)
        a, b, c = np.moveaxis(paint.points[triangles], 1, 0)
        is_front = np.einsum("ij,ij->i", np.cross(b - a, c - a), camera.position - a) > 0
        order = np.argsort(-distance[triangles].mean(axis=1))
        order = order[is_front[order]]
        fill = paint.shade_colors(camera)[triangles[order]].mean(axis=1)
        edges = fill if paint.divided else to_rgba(self.theme.edges, 0.25)
        axes.add_collection(
            PolyCollection(projected[triangles[order]], facecolors=fill, edgecolors=edges, linewidths=0.3)
        )
        return paint.points[np.unique(triangles[is_front])]

    def _add_lines(self, axes: Any, lines: np.ndarray, camera: Camera, seen: np.ndarray) -> None:
        """Draw lines on triangles that face the camera, detected by visible corners near their midpoints."""
        from matplotlib.collections import LineCollection

        if len(lines):
            gap, _ = cKDTree(seen).query(lines.mean(axis=1))
            near = gap < 3 * np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1)
            projected, _ = camera.project(lines[near].reshape(-1, 3))
            style: Any = {"colors": self.theme.edges, "linewidths": 0.5, "alpha": 0.7}
            axes.add_collection(LineCollection(list(projected.reshape(-1, 2, 2)), **style))

    def _add_links(self, axes: Any, drawing: Drawing, camera: Camera) -> None:
        from matplotlib.collections import LineCollection

        if not len(drawing.links):
            return
        projected, _ = camera.project(drawing.links.reshape(-1, 3))
        axes.add_collection(
            LineCollection(list(projected.reshape(-1, 2, 2)), colors=self.theme.links, linewidths=0.6)
        )
        axes.scatter(*projected[::2].T, s=1.2, color=self.theme.links, linewidths=0, zorder=3)

    def _add_pins(self, axes: Any, drawing: Drawing, camera: Camera, seen: np.ndarray) -> None:
        """Draw pins and contacts that are visible: close to a visible corner of the surface."""
        tones, touching = (self.theme.pins, self.theme.rim), (self.theme.contacts, self.theme.rim)
        dots = (drawing.pins, tones), (drawing.rollers, tones[::-1]), (drawing.contacts, touching)
        for points, (color, rim) in dots:
            if not len(points):
                continue
            gap, _ = cKDTree(seen).query(points)
            size = np.linalg.norm(np.ptp(drawing.points, axis=0))
            projected, _ = camera.project(points[gap < 1e-3 * size])
            axes.scatter(*projected.T, s=5, linewidths=0.4, zorder=3, color=color, edgecolors=rim)
