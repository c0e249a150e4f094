"""Tables of obstacle shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, StrictBool, StrictStr

from supple.meshes import load_surface
from supple.scene.files.file_paths import resolve_path
from supple.scene.shapes.analytic_shapes import SHAPES, Shape
from supple.scene.shapes.surface_shapes import SurfaceSequence, SurfaceShape
from supple.scene.tables.table import Choice, Length, Number, Point, Table, Vector

INSIDE_DESCRIPTION = "Keep bodies inside the shape instead of outside."


class PlaneTable(Table):
    normal: Vector = Field([0.0, 1.0, 0.0], description="Normal toward the side of the bodies, not zero.")
    point: Point = Field([0.0, 0.0, 0.0], description="Point on the plane [m].")


class BoxTable(Table):
    size: Vector = Field(description="Edge lengths [m], positive.")
    center: Point = Field([0.0, 0.0, 0.0], description="Center [m].")
    axis: Vector = Field([0.0, 0.0, 1.0], description="Direction of the axis of rotation.")
    angle: Number = Field(0.0, description="Angle of rotation [rad].")
    hollow: StrictBool = Field(False, description=INSIDE_DESCRIPTION)


class SphereTable(Table):
    radius: Length = Field(description="Radius [m], positive.")
    center: Point = Field([0.0, 0.0, 0.0], description="Center [m].")
    hollow: StrictBool = Field(False, description=INSIDE_DESCRIPTION)


class RoundTable(Table):
    foreign_names: ClassVar[dict[str, str]] = {"start": "point0", "end": "point1"}

    point0: Point = Field(description="First end of the axis [m].")
    point1: Point = Field(description="Second end of the axis [m].")
    radius: Length = Field(description="Radius [m], positive.")
    hollow: StrictBool = Field(False, description=INSIDE_DESCRIPTION)


class SurfaceTable(Table):
    file: StrictStr = Field(description="File of a closed surface: .obj, .stl, .ply or .off.")


class SequenceTable(Table):
    files: list[StrictStr] = Field(min_length=2, description="Files of closed surfaces, one per time.")
    times: list[Number] = Field(description="Time of each surface [s], increasing.")


class ShapeTable(Choice):
    """Shape of an obstacle."""

    plane: PlaneTable | None = Field(None, description="Half-space behind a plane.")
    box: BoxTable | None = Field(None, description="A box.")
    sphere: SphereTable | None = Field(None, description="A ball.")
    capsule: RoundTable | None = Field(None, description="A cylinder with round ends.")
    cylinder: RoundTable | None = Field(None, description="A cylinder with flat ends.")
    surface: SurfaceTable | None = Field(None, description="A closed surface from a file.")

    sequence: SequenceTable | None = Field(None, description="A closed surface that deforms, from files.")

    def make(self, folder: Path) -> Shape:
        kind, value = self.chosen
        given: dict[str, Any] = value.given()
        if kind == "sequence":
            meshes = [load_surface(resolve_path(folder, file)) for file in value.files]
            return SurfaceSequence(meshes, value.times)
        if kind == "surface":
            return SurfaceShape(load_surface(resolve_path(folder, value.file)))
        return SHAPES[kind](**given)
