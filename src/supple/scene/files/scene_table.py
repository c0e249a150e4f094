"""Table of complete scene files, built from the tables of `scene.tables`, and its JSON Schema.

Field names, defaults and descriptions define the file format.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictStr, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from supple.materials import MATERIALS, Material, membrane_materials
from supple.scene.tables.bodies import Cloth, Solid
from supple.scene.tables.cloth import ClothRegion
from supple.scene.tables.constraints import Attach, Pin, Spring
from supple.scene.tables.contact import Contact, Obstacle
from supple.scene.tables.initial import InitialState
from supple.scene.tables.loads import (
    BodyForce,
    Cable,
    Cavity,
    Force,
    Pressure,
    Traction,
    Vary,
    Wind,
)
from supple.scene.tables.materials import material_choice
from supple.scene.tables.motions import Ramp
from supple.scene.tables.output import Output, View
from supple.scene.tables.solids import RegionTable
from supple.scene.tables.solver import Solver, StopCriteria
from supple.scene.tables.table import Count, Number, Positive, Table, Vector


class SceneTable(Table):
    """A scene of supple: solids and cloth with pins, loads, contact and solver settings. SI units."""

    title: StrictStr = Field("", description="Title of the scene.")
    gravity: Vector = Field(
        [0.0, -9.81, 0.0], description="Gravitational acceleration [m/s²], three numbers."
    )
    gravity_ramp: Ramp | None = Field(
        None,
        description="Variation of gravity in time, e.g. { times = [0, 1], fractions = [0, 1] }; constant by "
        "default.",
    )
    quasistatic: StrictBool = Field(True, description="True: equilibria without inertia; false: dynamics.")
    dt: Positive = Field(1 / 30, description="Time between frames [s], positive, e.g. 0.01.")
    frames: Count = Field(1, description="Number of frames, at least 1; frame i is at time i dt.")
    substeps: Count = Field(
        1, description="Number of time steps per frame, at least 1, each of dt / substeps."
    )
    integrator: Literal["backward_euler", "bdf2", "trapezoidal"] = Field(
        "backward_euler",
        description="Time integrator: first order with damping, or second order with little or none.",
    )
    initial_guess: Literal["adaptive", "inertial", "coast"] = Field(
        "adaptive",
        description="Initial guess of a step: adaptive (free bodies fall), x + Δt v + Δt² g, or x + Δt v.",
    )
    damping: Annotated[Number, Field(ge=0, lt=1)] = Field(
        0.0,
        description="Fraction of every velocity that is lost per step of a dynamic scene, below 1.",
    )
    solid: list[Solid] = Field([], description="Solids, each a table [[solid]].")
    cloth: list[Cloth] = Field([], description="Pieces of cloth, each a table [[cloth]].")
    pin: list[Pin] = Field([], description="Prescribed positions, each a table [[pin]].")
    force: list[Force] = Field([], description="Forces, each a table [[force]].")
    body_force: list[BodyForce] = Field([], description="Forces per volume, each a table [[body_force]].")
    traction: list[Traction] = Field([], description="Surface loads, each a table [[traction]].")
    pressure: list[Pressure] = Field([], description="Pressures, each a table [[pressure]].")
    cavity: list[Cavity] = Field([], description="Closed chambers with air, each a table [[cavity]].")
    cable: list[Cable] = Field([], description="Cables, each a table [[cable]].")
    wind: list[Wind] = Field([], description="Winds, each a table [[wind]].")
    attach: list[Attach] = Field([], description="Attachments, each a table [[attach]].")
    obstacle: list[Obstacle] = Field([], description="Obstacles, each a table [[obstacle]].")
    spring: list[Spring] = Field([], description="Springs, each a table [[spring]].")
    vary: list[Vary] = Field([], description="Material parameters that vary in time, each a table [[vary]].")
    contact: Contact | None = Field(None, description="Contact between bodies, the table [contact].")
    solver: Solver = Field(default_factory=Solver, description="Solver and its options, the table [solver].")
    initial: InitialState | None = Field(
        None, description="Initial positions other than the rest shape, the table [initial]."
    )
    stop: StopCriteria = Field(
        default_factory=StopCriteria, description="Termination criteria, the table [stop]."
    )
    view: View = Field(default_factory=View, description="Display settings of pictures, the table [view].")
    output: Output = Field(default_factory=Output, description="Content of frame files, the table [output].")


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
    """Return the JSON Schema of scene files, for editors.

    Returns:
        The schema as plain values for JSON, as `supple schema` prints it.
    """
    schema = scene_table().model_json_schema(schema_generator=_TomlSchema)
    schema["anyOf"] = [{"required": ["solid"]}, {"required": ["cloth"]}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "supple scene"}
