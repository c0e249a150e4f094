"""Tables of solid rest shapes, and of detailed surfaces for pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

import numpy as np
from pydantic import Field, StrictBool, StrictStr, model_validator

from supple import meshes
from supple.meshes.generators.solids import SIZES
from supple.scene import selections
from supple.scene.files.file_paths import resolve_path
from supple.scene.tables.cloth import Surface
from supple.scene.tables.selections import Box
from supple.scene.tables.table import FILE, Choice, Count, Factors, Length, Point, Table
from supple.support.memory import refuse_too_many


class Block(Table):
    cells: Annotated[list[Count], Field(min_length=3, max_length=3)] = Field(
        description="Number of cells along x, y, z; each is divided into five tetrahedra."
    )
    size: Annotated[list[Length], Field(min_length=3, max_length=3)] = Field(
        [1.0, 1.0, 1.0], description="Edge lengths [m], three positive numbers."
    )
    origin: Point = Field([0.0, 0.0, 0.0], description="Lowest corner [m].")


class Ball(Table):
    radius: Length = Field(1.0, description="Radius [m] of the ball about the origin, positive.")
    resolution: Count = Field(8, description="Layers of tetrahedra from the center to the surface.")


class Torus(Table):
    major: Length = Field(1.0, description="Radius [m] of the ring about the z axis, positive.")
    minor: Length = Field(0.35, description="Radius [m] of the tube, smaller than major.")
    resolution: Count = Field(4, description="Tetrahedra along the minor radius.")


class Mesh(Choice):
    """Rest shape of a solid: generated mesh or file."""

    extra_keys = ("edge_length", "without", "scale", "translate", "repair")
    block: Block | None = Field(None, description="A box.")
    ball: Ball | None = Field(None, description="A ball about the origin.")
    torus: Torus | None = Field(None, description="A ring about the z axis.")
    file: StrictStr | None = Field(
        None,
        description="Mesh file (.mesh, .msh, .vtk, .vtu, .node, .ele), or a closed surface "
        f"(.obj, .stl, .ply, .off) that is filled with tetrahedra. {FILE}",
    )
    edge_length: Length | None = Field(
        None,
        description="Approximate edge length [m] of the tetrahedra that fill a surface, after scaling; by "
        "default a twentieth of the surface's diagonal.",
    )
    without: list[Box] = Field(
        [], description="Boxes [m] from which tetrahedra are removed, by their centers, after translation."
    )
    scale: Factors = Field(
        [1.0, 1.0, 1.0], description="Scale of the mesh: one positive factor, or one per axis."
    )
    translate: Point = Field([0.0, 0.0, 0.0], description="Translation of the mesh [m], after scaling.")
    repair: StrictBool = Field(
        False, description="Reorient inverted tetrahedra of a file and remove unused vertices."
    )

    @model_validator(mode="after")
    def _edges_of_files(self) -> Self:
        if self.edge_length is not None and self.file is None:
            raise ValueError(
                "edge_length is only for surface files; set cells or resolution of generated meshes."
            )
        return self

    def make(self, folder: Path) -> meshes.TetMesh:
        kind, value = self.chosen
        if kind == "file":
            mesh = meshes.load_mesh(
                resolve_path(folder, value), self.repair, edge_length=self.edge_length, scale=self.scale
            )
        else:
            refuse_too_many(*SIZES[kind](**value.given()), kind, solved=True)
            mesh = getattr(meshes, kind)(**value.given())
            if "scale" in self.model_fields_set:
                mesh = mesh.scaled(self.scale)
        return self._cut(mesh.translated(self.translate) if any(self.translate) else mesh)

    def _cut(self, mesh: meshes.TetMesh) -> meshes.TetMesh:
        """Remove tetrahedra with centroids inside boxes of `without`."""
        if not self.without:
            return mesh
        centers = mesh.points[mesh.tets].mean(axis=1)
        left = np.ones(mesh.n_tets, bool)
        for hole in self.without:
            left &= ~selections.box(**hole.given())(centers)
        if not left.any():
            raise meshes.MeshError("without: this removes all cells of the mesh; use smaller boxes.")
        return mesh.extract_cells(left)


class Render(Table):
    """Detailed surface that follows a body in pictures and exports."""

    file: StrictStr = Field(description=f"Surface file (.obj, .stl, .ply, .off). {FILE}")
    scale: Factors | None = Field(
        None, description="Scale: one positive factor, or one per axis; that of the mesh by default."
    )
    translate: Point | None = Field(
        None, description="Translation [m], after scaling; that of the mesh by default."
    )

    def make(self, folder: Path, mesh: Mesh | Surface) -> meshes.TriMesh:
        surface = meshes.load_surface(resolve_path(folder, self.file))
        translate = mesh.translate if self.translate is None else self.translate
        return surface.scaled(self.scale or mesh.scale).translated(translate)
