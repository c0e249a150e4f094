"""Tables of scene files for cloth only: surfaces, regions, rest shapes and bending."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, StrictBool, StrictStr, WithJsonSchema, model_validator

from supple import meshes, terms
from supple.meshes.generators.sheets import SHEETS
from supple.scene import regions
from supple.scene.files.file_paths import resolve_path
from supple.scene.tables.materials import MaterialChoice
from supple.scene.tables.selections import Triangles
from supple.scene.tables.table import (
    FILE,
    Choice,
    Count,
    Factors,
    Length,
    NotNegative,
    Number,
    Point,
    Positive,
    Table,
)
from supple.support.memory import refuse_too_many

Pattern = Literal["alternating", "parallel", "equilateral"]
Plane = Literal["xy", "yz", "zx", "yx", "zy", "xz"]


def _as_list(value: Any) -> Any:
    """Wrap a single cell count in a list."""
    return [value] if isinstance(value, int) and not isinstance(value, bool) else value


_COUNT = {"type": "integer", "minimum": 1}
Cells = Annotated[
    list[Count],
    BeforeValidator(_as_list),
    Field(min_length=1, max_length=2),
    WithJsonSchema({"anyOf": [_COUNT, {"type": "array", "items": _COUNT, "minItems": 2, "maxItems": 2}]}),
]


class _Generated(Table):
    def arguments(self) -> dict[str, Any]:
        """Return mesh generator arguments; single cell counts stay numbers."""
        given = self.given()
        cells = given.get("cells", ())
        return given | ({"cells": cells[0]} if len(cells) == 1 else {})


class Sheet(_Generated):
    cells: Cells = Field(
        [16],
        description="Cells along both axes; one number counts along the first, with about regular cells.",
    )
    size: Annotated[list[Length], Field(min_length=2, max_length=2)] = Field(
        [1.0, 1.0], description="Edge lengths [m], two positive numbers."
    )
    pattern: Pattern = Field(
        "alternating",
        description="Diagonals: alternating or parallel; or equilateral triangles in rows, with the same "
        "bending in all directions.",
    )
    plane: Plane = Field("xy", description="Axes of the plane, such as xz; xy by default.")
    origin: Point = Field([0.0, 0.0, 0.0], description="Lowest corner [m].")


class Disc(_Generated):
    radius: Length = Field(0.5, description="Radius [m].")
    resolution: Count = Field(8, description="Rings of triangles.")
    plane: Plane = Field("xy", description="Axes of the plane, such as xz.")
    center: Point = Field([0.0, 0.0, 0.0], description="Center [m].")


class Tube(_Generated):
    radius: Length = Field(0.25, description="Radius [m] about the x axis.")
    length: Length = Field(1.0, description="Length [m] along x, from 0.")
    cells: Cells = Field([32], description="Cells around and along the axis, or around only.")
    pattern: Pattern = Field("equilateral", description="Pattern of triangles, as of a sheet.")


class SphereSurface(_Generated):
    radius: Length = Field(0.5, description="Radius [m].")
    resolution: Count = Field(
        8, description="Number of edges into which each edge of an icosahedron is divided."
    )
    center: Point = Field([0.0, 0.0, 0.0], description="Center [m].")


class Pillow(Sheet):
    plane: Plane = Field("xz", description="Axes of the plane, such as xz.")


class Surface(Choice):
    """Initial surface of cloth: generated surface or file."""

    extra_keys = ("scale", "translate", "weld")
    sheet: Sheet | None = Field(None, description="A rectangle.")
    disc: Disc | None = Field(None, description="A flat disc.")
    tube: Tube | None = Field(None, description="An open tube about the x axis.")
    sphere: SphereSurface | None = Field(None, description="A closed sphere.")
    pillow: Pillow | None = Field(None, description="Two sheets sewn together along their edges.")
    file: StrictStr | None = Field(
        None, description=f"Surface file (.obj, .stl, .ply, .off, or .vtu, .vtk, .msh of triangles). {FILE}"
    )
    scale: Factors = Field(
        [1.0, 1.0, 1.0], description="Scale of the surface: one positive factor, or one per axis."
    )
    translate: Point = Field([0.0, 0.0, 0.0], description="Translation of the surface [m], after scaling.")
    weld: NotNegative | None = Field(
        None, description="Largest distance [m], after scaling, of vertices that are merged into seams."
    )

    def make(self, folder: Path) -> meshes.TriMesh:
        kind, value = self.chosen
        if kind == "file":
            mesh = meshes.load_surface(resolve_path(folder, value))
        else:
            arguments = value.arguments()
            refuse_too_many(*SHEETS[kind](**arguments), kind, solved=True, cells="triangles")
            mesh = getattr(meshes, kind)(**arguments)
        mesh = mesh.scaled(self.scale) if "scale" in self.model_fields_set else mesh
        mesh = mesh if self.weld is None else meshes.weld(mesh, self.weld)
        return mesh.translated(self.translate) if any(self.translate) else mesh


class ClothRegion(Table):
    """Triangles of cloth with a different membrane."""

    name: StrictStr = Field(description="Name by which [[vary]] refers to the region.")
    where: Triangles = Field(
        description='Triangles of the region, e.g. { data = { field = "region", values = [3] } }.'
    )
    membrane: MaterialChoice = Field(description="Membrane material, as of cloth.")
    density: Positive | None = Field(
        None, description="Mass per rest area [kg/m²]; that of the cloth by default."
    )

    def make(self, mesh: meshes.TriMesh) -> regions.Region:
        return regions.Region(self.name, self.where.make(), self.membrane.make(mesh), self.density)


class UV(Table):
    scale: Positive = Field(1.0, description="Length [m] of a unit of uv, positive.")


class Rest(Choice):
    """Rest shape of cloth, if different from the initial surface."""

    extra_keys = ("scale",)
    uv: UV | None = Field(
        None, description="Shape given by the uv coordinates, e.g. { uv = { scale = 1.2 } }."
    )
    file: StrictStr | None = Field(
        None, description=f"Surface file with the same triangles in the same order. {FILE}"
    )
    scale: Factors = Field([1.0, 1.0, 1.0], description="Scale of the surface of a file.")

    def make(self, folder: Path, mesh: meshes.TriMesh) -> np.ndarray | meshes.TriMesh:
        if self.file is not None:
            return meshes.load_surface(resolve_path(folder, self.file)).scaled(self.scale)
        assert self.uv is not None
        if mesh.uv is None:
            raise meshes.MeshError("the surface has no uv coordinates that could be its rest shape.")
        return self.uv.scale * mesh.uv


class _Bending(Table):
    foreign_names: ClassVar[dict[str, str]] = {"stiffness": "rigidity"}

    rigidity: NotNegative | None = Field(
        None, description="Bending rigidity B [N m]; alternatively young and poisson."
    )
    young: Positive | None = Field(
        None,
        description="Young's modulus [Pa] of a plate as thick as the cloth: B = E h³/(12 (1 - ν²)).",
    )
    poisson: Annotated[Number, Field(gt=-1, le=0.5)] | None = Field(
        None, description="Poisson's ratio of that plate."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        given = self.model_fields_set & {"rigidity", "young", "poisson"}
        if given not in ({"rigidity"}, {"young", "poisson"}):
            named = ", ".join(sorted(given)) or "none"
            raise ValueError(f"must have either rigidity, or young and poisson; it has {named}.")
        return self

    def arguments(self, thickness: float) -> dict[str, Any]:
        options = {name: value for name, value in self.given().items() if name not in ("young", "poisson")}
        if self.young is None or self.poisson is None:
            return options
        return options | {"rigidity": terms.plate_stiffness(self.young, self.poisson, thickness)}


class Hinge(_Bending):
    weighted: StrictBool = Field(
        True, description="Weight edges so that B is that of plate theory; false: B is k_b of PBNG."
    )
    rest: Literal["shape", "flat"] = Field(
        "shape", description="Rest angles: those of the rest shape, or flat."
    )


class Creased(Hinge):
    yield_angle: NotNegative = Field(0.2, description="Elastic angle [rad] from which a hinge flows.")
    creep: NotNegative = Field(10.0, description="Rate of flow [1/s].")
    max_angle: Annotated[Positive, Field(le=3.15)] = Field(3.0, description="Largest rest angle [rad].")


class Isometric(_Bending):
    pass


class BendingChoice(Choice):
    """Bending model of cloth."""

    hinge: Hinge | None = Field(None, description="Bending energy of the angles between triangles.")
    creased: Creased | None = Field(
        None, description="Bending energy of the angles between triangles, with plastic creases in motions."
    )
    isometric: Isometric | None = Field(
        None, description="Quadratic bending energy of cloth that is flat at rest and nearly inextensible."
    )

    def make(self, thickness: float) -> terms.Bending:
        kind, value = self.chosen
        return terms.BENDINGS[kind](**value.arguments(thickness))
