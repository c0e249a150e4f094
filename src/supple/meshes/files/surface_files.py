"""Surface file readers, based on trimesh."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from supple.meshes.checks import MeshError
from supple.meshes.trimesh import TriMesh
from supple.support.arguments import check_path
from supple.support.input_files import InputFileError, check_regular

SURFACES = {".obj": "Wavefront", ".stl": "STL", ".ply": "PLY", ".off": "OFF"}
"""File suffixes of surface formats, and their names."""


WITH_DATA = (".vtu", ".vtk", ".msh")
"""File suffixes of mesh formats whose triangles can be loaded as a surface with data."""


def is_surface_file(path: Path) -> bool:
    """True for the suffix of a surface format."""
    return path.suffix.lower() in SURFACES


def load_surface(path: str | os.PathLike[str]) -> TriMesh:
    """Load a triangle surface from a file.

    Wavefront (.obj), STL (.stl), PLY (.ply) and OFF (.off) files: polygons are divided, coincident vertices
    merged (STL repeats them), and triangles without area and unused vertices dropped. Texture coordinates are
    kept if every corner has them. VTU (.vtu), VTK (.vtk) and Gmsh (.msh) files: triangles are unchanged and
    keep their data.

    Args:
        path: Path of the file.

    Returns:
        The surface.

    Raises:
        FileNotFoundError: Missing file.
        MeshError: Unreadable file or invalid surface.
    """
    path = check_path(path, "the path of a surface file")
    with_data = path.suffix.lower() in WITH_DATA
    if not is_surface_file(path) and not with_data:
        raise MeshError(
            f"{path}: surface files end in one of {', '.join((*SURFACES, *WITH_DATA))}, not {path.suffix!r}."
        )
    if not path.exists():
        raise FileNotFoundError(f"There is no surface file {path} (looked for {path.absolute()}).")
    try:
        check_regular(path)
    except InputFileError as error:
        raise MeshError(f"{path} {error}.") from None
    if with_data:
        from supple.meshes.files.load_save import read_triangles  # avoids a circular import

        return read_triangles(path)
    points, triangles, uv = _read(path)
    try:
        return _merge_vertices(TriMesh(points, triangles, uv))
    except MeshError as error:
        raise MeshError(f"{path}: {error}") from error


def _read(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Points (n, 3), triangles (m, 3) and texture coordinates (m, 3, 2) of a file."""
    import trimesh

    kind = path.suffix.lower()
    options = {"skip_materials": True} if kind == ".obj" else {}
    try:
        content = trimesh.load_mesh(path, process=False, **options)
        triangles, uv = np.asarray(content.faces), getattr(content.visual, "uv", None)
        known = uv is not None and len(uv) == len(content.vertices) and bool(np.isfinite(uv).all())
        return np.asarray(content.vertices), triangles, np.asarray(uv)[triangles] if known else None
    except Exception as error:  # trimesh raises arbitrary parser errors
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        raise MeshError(
            f"{path} could not be read as a {SURFACES[kind]} file ({reason}). It may be cut short or in "
            "another format."
        ) from error


def _merge_vertices(surface: TriMesh) -> TriMesh:
    """Merge coincident vertices and drop triangles without area."""
    used = surface.points[surface.triangles.ravel()]
    points, ids = np.unique(used, axis=0, return_inverse=True)
    triangles = ids.reshape(-1, 3)
    a, b, c = triangles.T
    has_area = (a != b) & (b != c) & (c != a)
    return TriMesh(points, triangles[has_area], None if surface.uv is None else surface.uv[has_area])
