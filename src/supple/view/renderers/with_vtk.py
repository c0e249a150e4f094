"""Off-screen rendering with PyVista, and a test in a child process: without system libraries VTK crashes."""

from __future__ import annotations

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from supple.view.camera import OPENING_ANGLE, Camera
from supple.view.picture_layout import Layout, layout_for
from supple.view.renderers.drawing import Drawing
from supple.view.renderers.ground import Shadow
from supple.view.renderers.transparency import transparent_obstacles
from supple.view.style import Theme

SAMPLES_PER_PIXEL = 8
"""Samples per pixel for anti-aliasing."""

EDGE_DOTS = 7
"""Smallest mean length of drawn triangle edges [pixels]."""


class Renderer:
    """Images of drawings of one surface; the first is slowest, later ones only update meshes."""

    def __init__(self, size: tuple[int, int], theme: Theme) -> None:
        import pyvista
        from vtkmodules.vtkCommonCore import vtkLogger

        vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_ERROR)  # no warnings about a missing X server
        self.size, self.theme, self.layout = size, theme, layout_for(size)
        plotter: Any = pyvista.Plotter
        self._plotter = plotter(off_screen=True, window_size=list(size), lighting="none")
        self._plotter.set_background(theme.background)
        self._plotter.enable_anti_aliasing("msaa", multi_samples=SAMPLES_PER_PIXEL)
        self._meshes: dict[str, Any] = {}

    def render(self, drawing: Drawing, camera: Camera) -> np.ndarray:
        """Return the image (height, width, 3) uint8."""
        if drawing.shadow is not None:
            self._show_shadow(drawing.shadow)
        self._show_surface(drawing, camera)
        self._show_obstacles(*drawing.obstacles, camera)
        self._show_lines(drawing.lines, camera)
        self._show_links(drawing.links, camera)
        self._show_dots("pin", drawing.pins, camera, 8.5, self.theme.pins, self.theme.rim)
        self._show_dots("roller", drawing.rollers, camera, 8.5, self.theme.rim, self.theme.pins)
        self._show_dots("contact", drawing.contacts, camera, 9.5, self.theme.contacts, self.theme.rim)
        self._set_camera(camera)
        self._plotter.render()
        return np.asarray(self._plotter.screenshot(return_img=True))

    def close(self) -> None:
        self._plotter.close()

    def _set_camera(self, camera: Camera) -> None:
        self._plotter.camera.position = camera.position
        self._plotter.camera.focal_point = camera.focus
        self._plotter.camera.up = camera.axes[1]
        opening = 2 * math.atan(math.tan(OPENING_ANGLE / 2) / (1 - self.layout.header))
        self._plotter.camera.view_angle = math.degrees(opening)
        self._plotter.camera.SetWindowCenter(self.layout.side, self.layout.header)
        self._plotter.camera.reset_clipping_range()

    def _show(self, name: str, mesh: Any, colors: np.ndarray | None = None, **options: Any) -> None:
        """Add a mesh, or update the mesh of this name; colors (n, 3) or (n, 4) uint8."""
        if colors is not None:
            mesh["colors"] = colors
            options |= {"scalars": "colors", "rgb": True}
        if name in self._meshes:
            self._meshes[name].copy_from(mesh)
            return
        self._meshes[name] = mesh
        self._plotter.add_mesh(mesh, name=name, lighting=False, copy_mesh=False, **options)

    def _show_surface(self, drawing: Drawing, camera: Camera) -> None:
        import pyvista

        paint, edges = drawing.paint, shows_edges(drawing, camera, self.layout)
        mesh = pyvista.PolyData.from_regular_faces(paint.points, paint.triangles)
        colors = np.round(255 * paint.shade_colors(camera)).astype(np.uint8)
        cull = "back" if drawing.surface.two_sided else None
        style: dict[str, Any] = {
            "culling": cull,
            "edge_color": self.theme.edges,
            "edge_opacity": 0.22,
            "line_width": 1,
        }
        self._show("surface", mesh, colors, show_edges=edges and not paint.divided, **style)
        if edges and paint.divided:
            points = _shift_to_camera(drawing.points, camera, 0.001)
            mesh = pyvista.PolyData.from_regular_faces(points, drawing.surface.triangles)
            self._show("edges", mesh, color=self.theme.edges, opacity=0.12, style="wireframe", line_width=1)

    def _show_obstacles(self, points: np.ndarray, triangles: np.ndarray, camera: Camera) -> None:
        import pyvista
        from matplotlib.colors import to_rgb

        corners, colors = transparent_obstacles(points, triangles, to_rgb(self.theme.faded), camera)
        if not len(corners) and "obstacles" in self._meshes:
            self._meshes["obstacles"].copy_from(pyvista.PolyData())
        if len(corners):
            faces: Any = np.arange(3 * len(corners)).reshape(-1, 3)
            mesh = pyvista.PolyData.from_regular_faces(corners.reshape(-1, 3), faces)
            self._show("obstacles", mesh, np.round(255 * np.repeat(colors, 3, axis=0)).astype(np.uint8))

    def _show_shadow(self, shadow: Shadow) -> None:
        import pyvista
        from matplotlib.colors import to_rgb

        mesh = pyvista.StructuredGrid(*np.moveaxis(shadow.points, -1, 0))
        tones = np.outer(
            1 - self.theme.shadow * shadow.darkness.ravel(order="F"), to_rgb(self.theme.background)
        )
        self._show("shadow", mesh, np.round(255 * tones).astype(np.uint8))

    def _show_lines(self, lines: np.ndarray, camera: Camera) -> None:
        import pyvista

        if len(lines):
            mesh = pyvista.PolyData(
                _shift_to_camera(lines.reshape(-1, 3), camera, 0.002), lines=_segments(len(lines))
            )
            self._show("lines", mesh, color=self.theme.edges, opacity=0.7, line_width=self.size[1] / 500)

    def _show_links(self, links: np.ndarray, camera: Camera) -> None:
        """Draw thin lines with a dot at the constrained vertex."""
        import pyvista

        if not len(links):
            return
        points = _shift_to_camera(links.reshape(-1, 3), camera, 0.002)
        mesh = pyvista.PolyData(points, lines=_segments(len(links)))
        self._show("links", mesh, color=self.theme.links, line_width=2)
        self._show_dots("link", links[:, 0], camera, 6, self.theme.links, self.theme.rim)

    def _show_dots(
        self, name: str, points: np.ndarray, camera: Camera, width: float, color: str, rim: str
    ) -> None:
        """Draw dots with a rim, slightly in front of the surface, which would otherwise hide half of them."""
        import pyvista

        if not len(points):
            for part in ("rim", "dot"):
                if self._meshes.pop(f"{name} {part}", None) is not None:
                    self._plotter.remove_actor(f"{name} {part}", render=False)
            return
        dots = max(width * self.size[1] / 1200, 4.5)
        for part, tone, across, nearer in (
            ("rim", rim, dots, 0.003),
            ("dot", color, 0.68 * dots, 0.004),
        ):
            self._show(
                f"{name} {part}",
                pyvista.PolyData(_shift_to_camera(points, camera, nearer)),
                color=tone,
                style="points",
                point_size=across,
                render_points_as_spheres=True,
            )


def shows_edges(drawing: Drawing, camera: Camera, layout: Layout) -> bool:
    """True for body edges long enough not to darken the picture."""
    if drawing.surface.skinned:
        return False
    projected, _ = camera.project(drawing.points)
    a, b = projected[drawing.surface.triangles[:, 0]], projected[drawing.surface.triangles[:, 1]]
    lengths = np.linalg.norm((a - b) * np.array(layout.size) * (1 - layout.header) / 2, axis=1)
    return len(lengths) > 0 and float(lengths.mean()) >= EDGE_DOTS


def _shift_to_camera(points: np.ndarray, camera: Camera, part: float) -> np.ndarray:
    return points + part * (camera.position - points)


def _segments(count: int) -> np.ndarray:
    return np.column_stack([np.full(count, 2), np.arange(2 * count).reshape(-1, 2)]).ravel()


VTK_PROBE = """
import sys
from vtkmodules.vtkCommonCore import vtkLogger, vtkUnsignedCharArray
import vtkmodules.vtkRenderingOpenGL2
from vtkmodules.vtkRenderingCore import vtkRenderer, vtkRenderWindow
vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_OFF)
window, renderer, pixel = vtkRenderWindow(), vtkRenderer(), vtkUnsignedCharArray()
window.SetOffScreenRendering(True)
window.SetSize(8, 8)
window.AddRenderer(renderer)
renderer.SetBackground(1, 1, 1)
window.Render()
window.GetPixelData(4, 4, 4, 4, 0, pixel, 0)
sys.exit(pixel.GetNumberOfValues() == 0 or pixel.GetValue(0) != 255)
"""

VTK_MISSING = (
    "VTK cannot render on this machine, so Matplotlib rendered the picture. On Debian or Ubuntu, "
    "`apt-get install libegl1 libgl1-mesa-dri` (or libosmesa6) enables VTK without a display."
)


def vtk_problem_while_importing() -> str | None:
    """Run `vtk_problem` while VTK's dependencies are imported, which takes equally long."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(vtk_problem)
        with suppress(ImportError):  # missing libraries are reported by `vtk_problem`
            import_module("pyvista.plotting")
        return future.result()


@cache
def vtk_problem() -> str | None:
    """None if VTK can draw, otherwise a sentence naming the packages to install."""
    try:
        done = subprocess.run([sys.executable, "-c", VTK_PROBE], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return VTK_MISSING
    return None if done.returncode == 0 else VTK_MISSING
