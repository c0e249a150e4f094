"""Tables of obstacle shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, StrictBool, StrictStr

from supple.meshes import load_surface
from supple.scene.files.paths import resolve_path
from supple.scene.schema.base import Choice, Length, Number, Point, Table, Vector
from supple.scene.shapes.primitives import SHAPES, Shape
from supple.scene.shapes.surfaces import SurfaceSequence, SurfaceShape

INSIDE = "Whether bodies are inside it."


class PlaneTable(Table):
    normal: Vector = Field([0.0, 1.0, 0.0], description="Where bodies are, not zero.")
    point: Point = Field([0.0, 0.0, 0.0], description="A point of the plane [m].")


class BoxTable(Table):
    size: Vector = Field(description="Its edges [m], positive.")
    center: Point = Field([0.0, 0.0, 0.0], description="Its center [m].")
    axis: Vector = Field([0.0, 0.0, 1.0], description="Direction of the axis that it is turned about.")
    angle: Number = Field(0.0, description="By how much it is turned [rad].")
    hollow: StrictBool = Field(False, description=INSIDE)


class SphereTable(Table):
    radius: Length = Field(description="Its radius [m], positive.")
    center: Point = Field([0.0, 0.0, 0.0], description="Its center [m].")
    hollow: StrictBool = Field(False, description=INSIDE)


class RoundTable(Table):
    others_call: ClassVar[dict[str, str]] = {"start": "point0", "end": "point1"}

    point0: Point = Field(description="One end of its axis [m].")
    point1: Point = Field(description="The other end of its axis [m].")
    radius: Length = Field(description="Its radius [m], positive.")
    hollow: StrictBool = Field(False, description=INSIDE)


class SurfaceTable(Table):
    file: StrictStr = Field(description="A closed surface, .obj, .stl, .ply or .off.")


class SequenceTable(Table):
    files: list[StrictStr] = Field(min_length=2, description="Closed surfaces, one for each time.")
    times: list[Number] = Field(description="When it is each of them [s], in order.")


class ShapeTable(Choice):
    """Shape of an obstacle."""

    plane: PlaneTable | None = Field(None, description="Everything behind a plane.")
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
