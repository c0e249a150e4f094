"""Models for pictures: a bar pinned at one end, and a ball tied to it by a spring."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import supple
from supple.view.renderers import with_matplotlib, with_vtk

needs_vtk = pytest.mark.skipif(with_vtk.vtk_problem() is not None, reason=with_vtk.VTK_MISSING)
RENDERERS = [
    pytest.param(with_vtk.Renderer, marks=needs_vtk, id="vtk"),
    pytest.param(with_matplotlib.Renderer, id="matplotlib"),
]
BACKENDS = [pytest.param("vtk", marks=needs_vtk), "matplotlib"]


def bar_and_ball(attached: bool = False) -> supple.Scene:
    scene = supple.Scene(quasistatic=False, dt=0.01)
    material = supple.Corotated(young=1e5, poisson=0.3)
    bar = scene.add_solid(supple.block(cells=(8, 2, 2)), material, name="bar")
    ball = scene.add_solid(supple.ball(resolution=3).translated((2, 2.5, 0)), material, name="ball")
    scene.pin(bar.where(lambda X: X[:, 0] <= 0))
    if attached:
        scene.attach(ball.where(lambda X: X[:, 1] < 1.6), bar, stiffness=1e4, keep_offset=True)
    return scene


def bent(points: np.ndarray) -> np.ndarray:
    x = points.copy()
    x[:, 1] -= 0.08 * np.clip(x[:, 0], 0, None) ** 2
    return x


def empty(image: np.ndarray, background: str) -> np.ndarray:
    """Mask (h, w) bool of the background pixels."""
    color = np.round(255 * np.array(to_rgb(background)))
    return (np.abs(image[..., :3].astype(int) - color) <= 2).all(axis=-1)
