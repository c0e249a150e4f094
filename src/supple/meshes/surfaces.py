"""Reading surface files; the only file that knows trimesh's readers."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from supple.checks import a_path
from supple.meshes.checks import MeshError
from supple.meshes.trimesh import TriMesh

SURFACES = {".obj": "Wavefront", ".stl": "STL", ".ply": "PLY", ".off": "OFF"}
"""Suffixes of surface files, and what they are called."""


def is_surface_file(path: Path) -> bool:
    return path.suffix.lower() in SURFACES


def load_surface(path: str | os.PathLike[str]) -> TriMesh:
    """The triangles of a Wavefront (.obj), STL (.stl), PLY (.ply) or OFF (.off) file; polygons are divided.

    Vertices at the same place become one, as STL files repeat them; triangles without area that this leaves,
    and vertices without triangles, are dropped.
    """
    path = a_path(path, "the path of a surface file")
    if not is_surface_file(path):
        raise MeshError(f"{path}: surface files end in one of {', '.join(SURFACES)}, not {path.suffix!r}.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no surface file {path} (looked for {path.absolute()}).")
    points, triangles = _read(path)
    try:
        return _merged(TriMesh(points, triangles))
    except MeshError as error:
        raise MeshError(f"{path}: {error}") from error


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    import trimesh

    kind = path.suffix.lower()
    options = {"skip_materials": True} if kind == ".obj" else {}
    try:
        content = trimesh.load_mesh(path, process=False, **options)
        return np.asarray(content.vertices), np.asarray(content.faces)
    except Exception as error:  # trimesh raises whatever its parser stumbled on
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        raise MeshError(
            f"{path} could not be read as a {SURFACES[kind]} file ({reason}). It may be cut short or in "
            "another format."
        ) from error


def _merged(surface: TriMesh) -> TriMesh:
    used = surface.points[surface.triangles.ravel()]
    points, ids = np.unique(used, axis=0, return_inverse=True)
    triangles = ids.reshape(-1, 3)
    a, b, c = triangles.T
    return TriMesh(points, triangles[(a != b) & (b != c) & (c != a)])
