"""Exported frames of two bodies, and readers of the written files."""

import meshio
import numpy as np

import supple

NAMES = ["Würfel 1", "ball"]


FRAMES, DT = 3, 1 / 30


def make_scene():
    """A cube, and a coarse ball with a finer one as its skin."""
    scene = supple.Scene(dt=DT, frames=FRAMES)
    material = supple.Corotated(young=1e4, poisson=0.3)
    fine = supple.ball(0.41, 5)
    scene.add_solid(supple.block(2), material, name=NAMES[0])
    points = fine.points[fine.surface_vertices]
    triangles = np.searchsorted(fine.surface_vertices, fine.surface)
    skin = supple.TriMesh(points, triangles, uv=seamed(points[triangles]))
    scene.add_solid(supple.ball(0.4, 2), material, name=NAMES[1], render=skin)
    return scene


def seamed(corners):
    """Texture coordinates (t, 3, 2) with a seam at x = 0, where each side has its own."""
    side = corners[:, :, 0].mean(axis=1, keepdims=True) > 0
    return np.stack([corners[:, :, 1] + side, corners[:, :, 2] / 3], axis=2)


SCENE = make_scene()


CUBE, BALL = SCENE.bodies


REST = np.concatenate([body.points for body in SCENE.bodies])


def positions(index):
    """Rotated, translated and slightly stretched; volumes become (1 + index / 10) of those at rest."""
    turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1 + index / 10]])
    return REST @ turn.T + [index, 0, np.pi]


def skin_points(index):
    return BALL.skin.deform(positions(index)[BALL.vertices])


def boundary_points(index):
    return positions(index)[CUBE.vertices][CUBE.mesh.surface_vertices]


def read_surface(path):
    """Points and triangles with the numbering of a file; meshio cannot read textured OBJ files."""
    if path.suffix == ".ply":
        grid = meshio.read(path)
        return grid.points, grid.cells_dict["triangle"]
    lines = [line.split() for line in path.read_text().splitlines()]
    points = [[float(word) for word in words] for kind, *words in lines if kind == "v"]
    faces = [[int(word.split("/")[0]) - 1 for word in words] for kind, *words in lines if kind == "f"]
    return np.array(points), np.array(faces)


def snapshot(path):
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return {file: file.read_bytes() for file in files}
