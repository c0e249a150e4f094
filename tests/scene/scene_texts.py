"""Texts of scene files for tests."""

from pathlib import Path

import numpy as np
import pyvista

from supple.meshes import block

SCENES = sorted((Path(__file__).parents[2] / "scenes").glob("*.toml"))


SOLID = """
[[solid]]
name = "cube"
mesh = { block = { cells = [2, 2, 2] } }
material = { corotated = { young = 1e3, poisson = 0.3 } }
"""


PINNED = SOLID + '\n[[pin]]\nwhere = { side = "x-" }\n'


def cells_inside(surface, length, message):
    """Tetrahedra of a grid inside a surface, as a fast replacement of fTetWild."""
    cells = np.maximum(2, np.ceil(surface.size / length)).astype(int)
    grid = block(cells.tolist(), surface.size, surface.points.min(axis=0))
    centers = pyvista.PolyData(grid.points[grid.tets].mean(axis=1))
    shell = pyvista.PolyData.from_regular_faces(surface.points, surface.triangles)
    inside = centers.select_interior_points(shell, method="cell_locator", check_surface=False)
    return grid.points, grid.tets[inside["selected_points"].astype(bool)]


def pinned(**replacements):
    text = PINNED
    for old, new in replacements.items():
        assert old in text
        text = text.replace(old, new)
    return text
