"""Meshes of property tests, and checks of conformity."""

import numpy as np

from supple.meshes import TetMesh, ball, block, torus

SHAPES = {
    "block": lambda: block((3, 4, 5), size=(1, 2, 0.5), origin=(-1, 0, 3)),
    "one cell": lambda: block(1),
    "bar": lambda: block((40, 10, 10), size=(4, 1, 1)),
    "ball": lambda: ball(0.7, resolution=5),
    "coarse ball": lambda: ball(resolution=1),
    "torus": lambda: torus(2, 0.5, resolution=3),
    "coarse torus": lambda: torus(1, 0.9, resolution=1),
}


def face_counts(mesh: TetMesh) -> np.ndarray:
    """Number of tets of each triangle of the mesh."""
    faces = np.concatenate([np.delete(mesh.tets, corner, axis=1) for corner in range(4)])
    return np.unique(np.sort(faces, axis=1), axis=0, return_counts=True)[1]


def enclosed_volume(mesh: TetMesh) -> float:
    """Volume inside the surface by the divergence theorem, ∫ x · n dA / 3."""
    a, b, c = np.moveaxis(mesh.points[mesh.surface], 1, 0)
    return float(np.sum(a * np.cross(b, c)) / 6)
