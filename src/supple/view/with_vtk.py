"""Rendering with PyVista, without a display."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from supple.view.camera import OPENING, Camera
from supple.view.drawing import Drawing
from supple.view.style import BACKGROUND, EDGES, PINS


def render(drawing: Drawing, camera: Camera, size: tuple[int, int]) -> np.ndarray:
    """The image (height, width, 3) uint8."""
    import pyvista
    from vtkmodules.vtkCommonCore import vtkLogger

    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_ERROR)  # else it warns that there is no X server
    plotter: Any = pyvista.Plotter(off_screen=True, window_size=list(size), lighting="none")
    try:
        plotter.set_background(BACKGROUND)
        _add_lights(plotter, camera)
        _add_surface(plotter, drawing)
        _add_pins(plotter, drawing, camera)
        plotter.camera.position = camera.position
        plotter.camera.focal_point = camera.focus
        plotter.camera.up = camera.axes[1]
        plotter.camera.view_angle = math.degrees(OPENING)
        plotter.camera.reset_clipping_range()
        plotter.enable_anti_aliasing("ssaa")
        return np.asarray(plotter.screenshot(return_img=True))
    finally:
        plotter.close()


def _add_surface(plotter: Any, drawing: Drawing) -> None:
    import pyvista

    surface = pyvista.PolyData.from_regular_faces(drawing.points, drawing.triangles)
    surface[drawing.field.label] = drawing.values
    plotter.add_mesh(
        surface,
        cmap=drawing.field.colour_map,
        clim=drawing.limits,
        show_scalar_bar=False,
        smooth_shading=True,
        split_sharp_edges=True,
        feature_angle=35,
        show_edges=True,
        edge_color=EDGES,
        edge_opacity=0.35,
        line_width=1,
        ambient=0.4,
        diffuse=0.75,
        specular=0.08,
        specular_power=12,
    )


def _add_pins(plotter: Any, drawing: Drawing, camera: Camera) -> None:
    """Dots with a light rim, slightly in front of the surface, which would half hide them."""
    if len(drawing.pinned):
        points = drawing.points[drawing.pinned]
        for colour, width, nearer in ((BACKGROUND, 9, 0.003), (PINS, 6, 0.004)):
            plotter.add_points(
                points + nearer * (camera.position - points),
                color=colour,
                point_size=width,
                render_points_as_spheres=True,
                lighting=False,
            )


def _add_lights(plotter: Any, camera: Camera) -> None:
    """A strong light from the upper left, a weak one from the right, and one from the camera."""
    import pyvista

    right, up, towards = camera.axes
    for direction, intensity in (
        (towards - right + 1.4 * up, 0.65),
        (2 * right + towards, 0.25),
        (towards, 0.25),
    ):
        plotter.add_light(
            pyvista.Light(
                position=camera.focus + direction,
                focal_point=camera.focus,
                intensity=intensity,
                color="white",
            )
        )
