"""Table of complete scene files, and JSON Schema; `tables` has all parts.

Field names, defaults and descriptions define the file format.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictStr, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from supple.materials import MATERIALS, Material, membrane_materials
from supple.scene.schema.base import Count, Number, Positive, Table, Vector
from supple.scene.schema.bodies import Cloth, Solid
from supple.scene.schema.cloth import ClothRegion
from supple.scene.schema.constraints import Attach, Pin, Spring
from supple.scene.schema.contact import Contact, Obstacle
from supple.scene.schema.initial import InitialState
from supple.scene.schema.loads import (
    BodyForce,
    Cable,
    Cavity,
    Force,
    Pressure,
    Traction,
    Vary,
    Wind,
)
from supple.scene.schema.materials import material_choice
from supple.scene.schema.motions import Ramp
from supple.scene.schema.output import Output, View
from supple.scene.schema.solids import RegionTable
from supple.scene.schema.solver import Solver, StopCriteria


class SceneTable(Table):
    """A scene of supple: solids and cloth with pins, loads, contact and solver settings. SI units."""

    title: StrictStr = Field("", description="What the scene shows.")
    gravity: Vector = Field([0.0, -9.81, 0.0], description="Acceleration [m/s²], three numbers.")
    gravity_ramp: Ramp | None = Field(
        None,
        description="How gravity varies, e.g. { times = [0, 1], fractions = [0, 1] }; constant unless given.",
    )
    quasistatic: StrictBool = Field(True, description="Equilibria without inertia; false: a motion.")
    dt: Positive = Field(1 / 30, description="Time from frame to frame [s], positive, e.g. 0.01.")
    frames: Count = Field(1, description="How many frames, at least 1; frame i is at time i dt.")
    substeps: Count = Field(
        1, description="Steps of the integrator from frame to frame, at least 1, each of dt / substeps."
    )
    integrator: Literal["backward_euler", "bdf2", "trapezoidal"] = Field(
        "backward_euler",
        description="The rule of steps: first order and damped, or second order and damped less or not.",
    )
    initial_guess: Literal["adaptive", "inertial", "coast"] = Field(
        "adaptive",
        description="Start of a step: free bodies fall, x + Δt v + Δt² g for all, or x + Δt v.",
    )
    damping: Annotated[Number, Field(ge=0, lt=1)] = Field(
        0.0,
        description="The part of every velocity lost in each step of a dynamic scene, from 0 to below 1.",
    )
    solid: list[Solid] = Field([], description="The solids, each under [[solid]].")
    cloth: list[Cloth] = Field([], description="Cloth, each piece under [[cloth]].")
    pin: list[Pin] = Field([], description="Prescribed positions, each under [[pin]].")
    force: list[Force] = Field([], description="Forces, each under [[force]].")
    body_force: list[BodyForce] = Field([], description="Forces per volume, each under [[body_force]].")
    traction: list[Traction] = Field([], description="Surface loads, each under [[traction]].")
    pressure: list[Pressure] = Field([], description="Pressures, each under [[pressure]].")
    cavity: list[Cavity] = Field([], description="Closed chambers with air, each under [[cavity]].")
    cable: list[Cable] = Field([], description="Cables, each under [[cable]].")
    wind: list[Wind] = Field([], description="Winds, each under [[wind]].")
    attach: list[Attach] = Field([], description="Attachments, each under [[attach]].")
    obstacle: list[Obstacle] = Field([], description="What solids cannot enter, each under [[obstacle]].")
    spring: list[Spring] = Field([], description="Springs, each under [[spring]].")
    vary: list[Vary] = Field([], description="Parameters of materials in time, each under [[vary]].")
    contact: Contact | None = Field(None, description="Contact between solids, under [contact].")
    solver: Solver = Field(default_factory=Solver, description="The solver and its options, under [solver].")
    initial: InitialState | None = Field(
        None, description="Initial positions other than the rest shape, under [initial]."
    )
    stop: StopCriteria = Field(default_factory=StopCriteria, description="When a solve ends, under [stop].")
    view: View = Field(default_factory=View, description="How pictures show the scene, under [view].")
    output: Output = Field(default_factory=Output, description="What files of frames have, under [output].")


class _TomlSchema(GenerateJsonSchema):
    """JSON Schema for TOML without null: optional keys keep their type."""

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().default_schema(schema)
        return {key: value for key, value in described.items() if (key, value) != ("default", None)}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def scene_table() -> type[SceneTable]:
    """Return the scene table with one key per currently registered material."""
    return _scene_table(tuple(MATERIALS.items()), tuple(membrane_materials().items()))


Materials = tuple[tuple[str, type[Material]], ...]


@cache
def _scene_table(materials: Materials, membranes: Materials) -> type[SceneTable]:
    solid: Any = _with_regions(Solid, RegionTable, "material", materials)
    cloth: Any = _with_regions(Cloth, ClothRegion, "membrane", membranes)
    known = SceneTable.model_fields
    return create_model(
        "SceneTable",
        __base__=SceneTable,
        __doc__=SceneTable.__doc__,
        solid=(list[solid], known["solid"]),
        cloth=(list[cloth], known["cloth"]),
    )


def _with_regions(table: type[Table], region: type[Table], key: str, materials: Materials) -> Any:
    """Return a body table with region tables and one key per allowed material."""
    body: Any = _with_materials(table, key, materials)
    part: Any = _with_materials(region, key, materials)
    fields: Any = {"region": (list[part], table.model_fields["region"])}
    return create_model(table.__name__, __base__=body, **fields)


def _with_materials(table: type[Table], key: str, materials: Materials) -> Any:
    """Return a body or region table with one key per allowed material."""
    choice: Any = material_choice(materials, key.capitalize())
    known = table.model_fields[key]
    fields: Any = {key: (choice if known.is_required() else choice | None, known)}
    return create_model(table.__name__, __base__=table, **fields)


def scene_schema() -> dict[str, Any]:
    """Return the JSON Schema of scene files, for editors."""
    schema = scene_table().model_json_schema(schema_generator=_TomlSchema)
    schema["anyOf"] = [{"required": ["solid"]}, {"required": ["cloth"]}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "supple scene"}
