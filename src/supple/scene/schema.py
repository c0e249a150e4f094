"""The tables of a scene file. Field names, defaults and descriptions here are the format's definition."""

from __future__ import annotations

import zlib
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zipfile import BadZipFile

import numpy as np
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    StrictBool,
    StrictStr,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import CoreSchema

from supple import meshes
from supple.materials import MATERIALS, Material, membrane_materials
from supple.memory import refuse_too_many
from supple.meshes.generators import SIZES
from supple.model import Model
from supple.scene import contact, motions, ramps, selections
from supple.scene.cavities import ATMOSPHERE
from supple.scene.cloth_tables import BendingChoice, Rest, Surface
from supple.scene.directions import held_directions
from supple.scene.errors import SceneError
from supple.scene.material_tables import MaterialChoice, material_choice
from supple.scene.obstacle_tables import ShapeTable
from supple.scene.paths import located
from supple.scene.solid_tables import (
    Box,
    RegionTable,
    RestShape,
    Sphere,
    Swelling,
    ViscosityChoice,
    as_grown,
)
from supple.scene.tables import (
    FILE,
    Choice,
    Coordinate,
    Count,
    Factors,
    Index,
    Length,
    NotNegative,
    Number,
    Numbers,
    Point,
    Positive,
    Table,
    Vector,
)
from supple.solvers import DEFAULT_SOLVER, SOLVERS
from supple.terms import load_fabric
from supple.words import counted


class Block(Table):
    cells: Annotated[list[Count], Field(min_length=3, max_length=3)] = Field(
        description="How many cells along x, y, z; each becomes five tetrahedra."
    )
    size: Annotated[list[Length], Field(min_length=3, max_length=3)] = Field(
        [1.0, 1.0, 1.0], description="Edge lengths [m], three positive numbers."
    )
    origin: Point = Field([0.0, 0.0, 0.0], description="The lowest corner [m].")


class Ball(Table):
    radius: Length = Field(1.0, description="Radius [m] of the ball about the origin, positive.")
    resolution: Count = Field(8, description="Layers of tetrahedra from the centre to the surface.")


class Torus(Table):
    major: Length = Field(1.0, description="Radius [m] of the ring about the z axis, positive.")
    minor: Length = Field(0.35, description="Radius [m] of the tube, smaller than major.")
    resolution: Count = Field(4, description="Tetrahedra along the minor radius.")


class Mesh(Choice):
    """The rest shape of a solid: a generated one, or a file."""

    further = ("edge_length", "without", "scale", "translate", "repair")
    block: Block | None = Field(None, description="A box.")
    bar: Block | None = Field(None, description="A box that is long in x.")
    ball: Ball | None = Field(None, description="A ball about the origin.")
    torus: Torus | None = Field(None, description="A ring about the z axis.")
    file: StrictStr | None = Field(
        None,
        description="A mesh file (.mesh, .msh, .vtk, .vtu, .node, .ele), or a closed surface "
        f"(.obj, .stl, .ply, .off) that is filled with tetrahedra. {FILE}",
    )
    edge_length: Length | None = Field(
        None,
        description="For a surface file: edges of the tetrahedra [m], about, after scaling; a twentieth of "
        "the surface's diagonal unless given.",
    )
    without: list[Box] = Field(
        [], description="Boxes [m] that are cut out: tetrahedra whose centres are inside, after moving."
    )
    scale: Factors = Field(
        [1.0, 1.0, 1.0], description="Scales the mesh: one positive factor, or one per axis."
    )
    translate: Point = Field([0.0, 0.0, 0.0], description="Moves the mesh [m], after scaling.")
    repair: StrictBool = Field(
        False, description="Turn inverted tetrahedra of a file and drop its unused vertices."
    )

    @model_validator(mode="after")
    def _edges_of_files(self) -> Self:
        if self.edge_length is not None and self.file is None:
            raise ValueError(
                "edge_length is for a surface file; generated meshes have cells or a resolution."
            )
        return self

    def make(self, folder: Path) -> meshes.TetMesh:
        kind, value = self.chosen
        if kind == "file":
            mesh = meshes.load_mesh(
                located(folder, value), self.repair, edge_length=self.edge_length, scale=self.scale
            )
        else:
            refuse_too_many(*SIZES[kind](**value.given()), kind, solved=True)
            mesh = getattr(meshes, kind)(**value.given())
            if "scale" in self.model_fields_set:
                mesh = mesh.scaled(self.scale)
        return self._cut(mesh.translated(self.translate) if any(self.translate) else mesh)

    def _cut(self, mesh: meshes.TetMesh) -> meshes.TetMesh:
        """Without what is cut out."""
        if not self.without:
            return mesh
        centres = mesh.points[mesh.tets].mean(axis=1)
        left = np.ones(mesh.n_tets, bool)
        for hole in self.without:
            left &= ~selections.box(**hole.given())(centres)
        if not left.any():
            raise meshes.MeshError("without: nothing is left of the mesh.")
        return meshes.select_tets(mesh, left)


class Render(Table):
    """A detailed surface that follows a body in pictures and exports."""

    file: StrictStr = Field(description=f"A surface file (.obj, .stl, .ply, .off). {FILE}")
    scale: Factors | None = Field(
        None, description="Scales it: one positive factor, or one per axis; the mesh's unless given."
    )
    translate: Point | None = Field(None, description="Moves it [m], after scaling; the mesh's unless given.")

    def make(self, folder: Path, mesh: Mesh | Surface) -> meshes.TriMesh:
        surface = meshes.load_surface(located(folder, self.file))
        translate = mesh.translate if self.translate is None else self.translate
        return surface.scaled(self.scale or mesh.scale).translated(translate)


class _Body(Table):
    name: StrictStr | None = Field(None, description="How pins, loads and attachments refer to it.")
    velocity: Vector = Field(
        [0.0, 0.0, 0.0], description="Of its centre of mass at the start of a dynamic scene [m/s]."
    )
    angular_velocity: Vector = Field(
        [0.0, 0.0, 0.0],
        description="About its centre of mass at the start [rad/s], right-handed about this direction.",
    )
    render: Render | None = Field(
        None, description='A detailed surface to show in place of its own, e.g. { file = "armadillo.obj" }.'
    )


class Solid(_Body):
    mesh: Mesh = Field(description="Its rest shape, e.g. { block = { cells = [10, 10, 10] } }.")
    material: MaterialChoice = Field(
        description="What it is made of, e.g. { corotated = { young = 1e5, poisson = 0.3 } }."
    )
    density: Positive = Field(1000.0, description="Mass density [kg/m³], positive.")
    region: list[RegionTable] = Field(
        [], description="Tetrahedra of other materials, each under [[solid.region]]."
    )
    viscosity: list[ViscosityChoice] = Field(
        [], description="What resists the rate of strain, each under [[solid.viscosity]]."
    )
    swelling: Swelling | None = Field(
        None, description="By what part every length at rest is larger than in the mesh; may [[vary]]."
    )
    rest_shape: RestShape | None = Field(
        None, description="The deformation gradient at which there is no stress, three rows; I unless given."
    )

    def made_of(self, mesh: meshes.TetMesh | None) -> Material | None:
        """The material, with its rest shape; None where it needs a mesh that could not be read."""
        material = self.material.make(mesh)
        if material is None or mesh is None:
            return material
        return as_grown(material, self.swelling, self.rest_shape, mesh)

    def options(self, mesh: meshes.TetMesh) -> dict[str, Any]:
        """Further arguments of `Scene.add_solid`."""
        return {
            "regions": [region.make(mesh) for region in self.region],
            "viscosity": [each.make() for each in self.viscosity],
        }


class Cloth(_Body):
    mesh: Surface = Field(description="Where it starts, e.g. { sheet = { cells = 32, size = [1, 1] } }.")
    membrane: MaterialChoice | None = Field(
        None, description="What it is made of, e.g. { stvk = { young = 1e5, poisson = 0.3 } }."
    )
    fabric: StrictStr | None = Field(
        None,
        description="In place of a membrane and bending: the file of a fabric (HYLC), or its name, such as "
        f"basket1, in the folder $SUPPLE_DATA. Computed in float64. {FILE}",
    )
    bending: BendingChoice | None = Field(
        None, description="What resists folds, e.g. { hinge = { stiffness = 1e-5 } }; nothing unless given."
    )
    density: Positive | None = Field(
        None,
        description="Mass density [kg/m²] where nothing is stretched, positive; 0.2, or that of the fabric, "
        "unless given.",
    )
    thickness: Length = Field(
        1e-3, description="Thickness [m], by which the energy of the material is multiplied."
    )
    rest: Rest | None = Field(
        None, description="Where nothing is stretched, e.g. { uv = {} }; where it starts unless given."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.membrane is None) == (self.fabric is None):
            found = "neither" if self.fabric is None else "both"
            raise ValueError(
                f"must have either a membrane, such as {{ stvk = {{ young = 1e5, poisson = 0.3 }} }}, or a "
                f"fabric, such as 'basket1'; it has {found}."
            )
        return self

    def made_of(self, folder: Path, mesh: meshes.TriMesh | None) -> Any:
        """What `Scene.add_cloth` takes as membrane."""
        if self.fabric is None:
            assert self.membrane is not None
            return self.membrane.make(mesh)
        return load_fabric(located(folder, self.fabric) if Path(self.fabric).suffix else self.fabric)


class Where(Choice):
    """Which vertices of a body, at rest."""

    box: Box | None = Field(None, description="Vertices in an axis-aligned box.")
    sphere: Sphere | None = Field(None, description="Vertices in a sphere.")
    side: Literal["x-", "x+", "y-", "y+", "z-", "z+"] | None = Field(
        None, description="The outermost vertices in a direction: x-, x+, y-, y+, z- or z+."
    )
    vertices: list[Index] | None = Field(None, description="Vertex numbers, from 0 within the body.")
    all: Literal[True] | None = Field(None, description="All vertices; the same as no where at all.")

    def selection(self) -> Any:
        """What `Body.where` takes."""
        kind, value = self.chosen
        if kind == "vertices":
            return value
        if kind == "side":
            return selections.side(value)
        if kind == "all":
            return lambda X: np.ones(len(X), bool)
        return getattr(selections, kind)(**value.given())


class _Timed(Table):
    duration: NotNegative = Field(1.0, description="How long the motion takes [s], at least 0.")
    start: Number = Field(0.0, description="When the motion starts [s].")


class Translate(_Timed):
    offset: Point = Field(description="By how much [m].")


class Rotate(_Timed):
    axis: Vector = Field(description="Direction of the axis, not zero.")
    centre: Point = Field(description="A point of the axis [m].")
    angle: Number = Field(description="Angle [rad], right-handed about the axis.")


class Twist(_Timed):
    axis: Vector = Field(description="Direction of the axis, not zero.")
    centre: Point = Field(description="A point of the axis [m]; the plane through it stays.")
    angle: Number = Field(description="Angle per length along the axis [rad/m].")


class Scale(_Timed):
    factor: Factors = Field(description="One positive factor, or one per axis.")
    centre: Point = Field([0.0, 0.0, 0.0], description="The point [m] that stays.")


class Keyframes(Table):
    """Fractions of a motion, or offsets, reached at given times; linear in between."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["motion", "fractions"]}, {"required": ["offsets"]}]}
    )
    times: Numbers = Field(description="Times [s], increasing.")
    offsets: list[Point] | None = Field(None, description="A translation [m] for each time.")
    motion: list[Motion] | None = Field(None, description="Motions, the first one first.")
    fractions: Numbers | None = Field(None, description="For each time, the fraction of the motion done.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.model_fields_set not in ({"times", "offsets"}, {"times", "motion", "fractions"}):
            raise ValueError("must have times and either offsets, or motion and fractions.")
        return self

    def make(self) -> motions.Motion:
        if self.offsets is not None:
            return motions.Keyframes.path(self.times, self.offsets)
        return motions.Keyframes(composed(self.motion or []), self.times, self.fractions or [])


class Motion(Choice):
    """One motion of pinned vertices."""

    translate: Translate | None = Field(None, description="Move by an offset.")
    rotate: Rotate | None = Field(None, description="Turn about an axis.")
    twist: Twist | None = Field(None, description="Turn about an axis, more the further along it.")
    scale: Scale | None = Field(None, description="Stretch about a point.")
    keyframes: Keyframes | None = Field(None, description="Go back and forth.")

    def make(self) -> motions.Motion:
        kind, value = self.chosen
        if kind == "keyframes":
            return value.make()
        return getattr(motions, kind.capitalize())(**value.given())


def composed(tables: list[Motion]) -> motions.Motion:
    """The motions of a list, done in its order."""
    return motions.Compose(tuple(table.make() for table in tables))


class _Naming:
    """What names a solid or cloth."""

    solid: str | None
    cloth: str | None

    @property
    def key(self) -> str:
        """The key that names it."""
        return "cloth" if self.cloth is not None else "solid"

    @property
    def body(self) -> str | None:
        """Its name, None where it is left out."""
        return self.solid if self.cloth is None else self.cloth


class _OfBody(_Naming, Table):
    solid: StrictStr | None = Field(
        None, description="Name of the solid; may be left out where there is only one body."
    )
    cloth: StrictStr | None = Field(None, description="Name of the cloth, in place of a solid.")

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        if self.solid is not None and self.cloth is not None:
            raise ValueError("must name a solid or cloth, not both.")
        return self


class _OnBody(_OfBody):
    where: Where | None = Field(None, description="Which of its vertices; all of them unless given.")


def _axes(value: Any) -> Any:
    held_directions(value, None, None, 1)
    return value


Axes = Annotated[
    StrictStr | list[StrictStr],
    BeforeValidator(_axes),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": "^[xyz]{1,3}$"},
                {"type": "array", "items": {"enum": ["x", "y", "z"]}, "minItems": 1, "uniqueItems": True},
            ]
        }
    ),
]


class Pin(_OnBody):
    """Vertices whose positions are prescribed, wholly or in some directions."""

    axes: Axes | None = Field(
        None, description='The coordinates that are held, e.g. "x" or "yz"; all of them unless given.'
    )
    normal: Vector | None = Field(
        None, description="The only direction that is held, as by a roller or a plane of symmetry."
    )
    along: Vector | None = Field(None, description="The only direction that is free, as on a rail.")
    name: StrictStr | None = Field(None, description="For its reaction; 'pin0', 'pin1', ... unless given.")
    motion: list[Motion] = Field(
        [], description="A list of motions, done in its order, e.g. [{ translate = { offset = [1, 0, 0] } }]."
    )

    @property
    def holds(self) -> dict[str, Any]:
        """What it holds, as arguments of `Scene.pin`."""
        return self.model_dump(include={"axes", "normal", "along"})


class Ramp(Table):
    """What part of a load or parameter there is at which time; linear in between."""

    times: Numbers = Field(description="Times [s], increasing.")
    fractions: Numbers = Field(
        description="For each time, the fraction of it; before and after, the first and last."
    )

    def make(self) -> ramps.Ramp:
        return ramps.Ramp(self.times, self.fractions)


class _Load(_OnBody):
    ramp: Ramp | None = Field(
        None,
        description="How it varies, e.g. { times = [0, 1], fractions = [0, 1] }; constant unless given.",
    )


class Force(_Load):
    """A force."""

    force: Vector = Field(description="The total force [N], shared equally by the vertices.")


class Traction(_Load):
    """A traction on the surface triangles whose vertices are all chosen."""

    traction: Vector = Field(description="Force per area at rest [Pa].")


class Pressure(_Load):
    """A pressure inside a closed surface, or one that is pinned along its edges."""

    pressure: Number = Field(description="Outwards on the surface [Pa], wherever it turns.")


class Cavity(_Load):
    """A closed chamber with air inside."""

    pressure: Number = Field(0.0, description="Of the air inside above that outside [Pa].")
    sealed: StrictBool = Field(
        False, description="The gas stays inside: (pressure + ambient) V^exponent is constant."
    )
    ambient: NotNegative = Field(ATMOSPHERE, description="The pressure outside [Pa].")
    exponent: Positive = Field(1.0, description="1 for slow changes, 1.4 for quick ones of air.")


class Cable(_Load):
    """A cable through points of a body, at a tension or of a length."""

    points: Annotated[list[Point], Field(min_length=2)] = Field(
        description="Where it leads [m]: through the nearest vertices, in this order."
    )
    tension: NotNegative | None = Field(None, description="[N], or length.")
    length: Annotated[Coordinate, Field(ge=0)] | None = Field(
        None, description="As long as it may be [m], with a stiffness."
    )
    stiffness: Positive | None = Field(None, description="Of a cable of a given length [N/m].")


class Wind(Table):
    """Air that moves past bodies of a dynamic scene."""

    velocity: Vector = Field(description="Of the air [m/s].")
    bodies: list[StrictStr] = Field([], description="Names of what it blows on; everything unless given.")
    drag: NotNegative = Field(1.0, description="Coefficient of the force along the wind.")
    lift: NotNegative = Field(0.5, description="Coefficient of the force across it.")
    density: Positive = Field(1.2, description="Of the air [kg/m³].")
    ramp: Ramp | None = Field(None, description="How it varies, e.g. { times = [0, 1], fractions = [0, 1] }.")


class Target(_Naming, Choice):
    """What vertices are attached to."""

    further = ("where",)
    solid: StrictStr | None = Field(
        None, description="Another solid: the closest point of it at rest, or, with where, vertices in order."
    )
    cloth: StrictStr | None = Field(None, description="Other cloth, in place of a solid.")
    points: list[Point] | None = Field(None, description="Fixed points [m]: one, or one for each vertex.")
    where: Where | None = Field(None, description="Vertices of the body, paired in order with the others.")


class Attach(_OnBody):
    """Weak constraints (springs of zero length) between vertices and something else."""

    to: Target | None = Field(
        None, description="A solid, cloth or fixed points; where the vertices are at rest unless given."
    )
    stiffness: Positive = Field(description="Stiffness of each constraint [N/m], positive.")
    normal: Vector | None = Field(
        None, description="If given, stiffness acts along it and tangent_stiffness across."
    )
    tangent_stiffness: NotNegative | None = Field(
        None, description="Stiffness across the normal [N/m], 0 unless given."
    )
    keep_offset: StrictBool = Field(False, description="Keep the gap at rest instead of closing it.")
    within: NotNegative | None = Field(
        None, description="For seams: attach only what is no farther away at rest [m], to the nearest vertex."
    )
    at: list[Point] | None = Field(
        None,
        description="Points [m] at which the body is bound, in place of vertices: the closest points of both "
        "bodies, which may lie between vertices on either side.",
    )


class RubTable(Table):
    """Friction between two bodies that differs from that of all others."""

    bodies: list[StrictStr] = Field(min_length=2, max_length=2, description="Their names.")
    friction: NotNegative = Field(description="Coulomb's coefficient of what sticks.")
    kinetic: NotNegative | None = Field(None, description="Of what slides; the same unless given.")


class Contact(Table):
    """How solids see each other and themselves."""

    method: Literal["weak", "barrier", "none"] = Field(
        "weak", description="How contact is treated; with a barrier nothing ever passes anything."
    )
    thickness: Length | None = Field(
        None,
        description="What is nearer is pushed apart [m]; 1 % of the mean edge unless given, barrier 5 %.",
    )
    stiffness: Positive | None = Field(
        None,
        description="Of each contact [N/m]; Young's modulus times the edge unless given, weak ten times.",
    )

    friction: NotNegative = Field(0.0, description="Coulomb's coefficient between bodies that stick.")
    kinetic: NotNegative | None = Field(None, description="Of what slides; the same unless given.")
    pair: list[RubTable] = Field([], description="Bodies with a friction of their own.")

    def make(self) -> contact.Contact:
        given = self.given()
        pairs = tuple(contact.Rub(**pair.given()) for pair in self.pair)
        given.pop("pair", None)
        return contact.Contact(**given, pairs=pairs)


class Obstacle(Table):
    """Something rigid that solids cannot enter."""

    shape: ShapeTable = Field(description="What it looks like, e.g. { plane = { normal = [0, 1, 0] } }.")
    friction: NotNegative = Field(0.0, description="Coulomb's coefficient of friction, at least 0.")
    kinetic: NotNegative | None = Field(None, description="Of what slides; the same unless given.")
    name: StrictStr | None = Field(
        None, description="For its forces in reports; 'obstacle0', 'obstacle1', ... unless given."
    )
    motion: list[Motion] = Field([], description="A list of motions as of a pin; they must not deform it.")
    mass: Positive | None = Field(
        None, description="Of a sphere or box that falls, and is moved by what it touches [kg]."
    )
    velocity: Vector = Field([0.0, 0.0, 0.0], description="Of one with a mass at the start [m/s].")
    spin: Vector = Field([0.0, 0.0, 0.0], description="Of one with a mass at the start [rad/s].")


class SpringEnd(_Naming, Choice):
    """What springs lead to."""

    further = ("where",)
    solid: StrictStr | None = Field(
        None, description="A solid, whose vertices are paired in order with the others."
    )
    cloth: StrictStr | None = Field(None, description="Cloth, in place of a solid.")
    points: list[Point] | None = Field(None, description="Fixed points [m]: one, or one for each vertex.")
    where: Where | None = Field(None, description="Which of its vertices; all of them unless given.")


class Spring(_OnBody):
    """Springs from vertices to other vertices or fixed points."""

    to: SpringEnd = Field(description='The other ends, e.g. { solid = "lid", where = { side = "y-" } }.')
    stiffness: Positive = Field(description="Stiffness of each spring [N/m], positive.")
    rest_length: Annotated[Coordinate, Field(ge=0)] | None = Field(
        None, description="Length at which a spring pulls nothing [m]; as long as it is at rest unless given."
    )


class Vary(_OfBody):
    """A parameter of a body's material that varies in time."""

    parameter: StrictStr = Field(description="A number that its material declares, e.g. young.")
    region: StrictStr | None = Field(None, description="The region of a solid whose material it is.")
    ramp: Ramp = Field(
        description="What part it has of the material's value, e.g. { times = [0, 1], fractions = [0, 1] }."
    )


def _parts_of_solvers() -> dict[str, Any]:
    """Options of solvers that are names or tables, such as the acceleration."""
    parts = {part: kinds for method in SOLVERS.values() for part, kinds in method.parts.items()}
    return {part: _part(part, kinds) for part, kinds in parts.items()}


def _part(part: str, kinds: dict[str, type]) -> dict[str, Any]:
    """A name, or a table { kind = ..., option = ... }."""
    types = {"int": "integer", "float": "number", "bool": "boolean", "str": "string"}
    tables = [
        {
            "type": "object",
            "description": " ".join((kind.__doc__ or "").split()),
            "properties": {
                "kind": {"const": name},
                **{o.name: {"type": types[str(o.type)], "default": o.default} for o in fields(kind)},
            },
            "required": ["kind"],
            "additionalProperties": False,
        }
        for name, kind in kinds.items()
    ]
    example = f'e.g. "{next(iter(kinds))}", "none", or a table {{ kind = ..., option = ... }}'
    return {
        "anyOf": [{"enum": ["none", *kinds]}, *tables],
        "description": f"The {part} of solvers that have one, {example}.",
    }


class Solver(Table):
    """The method, and its options under their own names."""

    model_config = ConfigDict(extra="allow")
    method: StrictStr = Field(
        default=DEFAULT_SOLVER.name, description="Name of the solver, e.g. pbng or newton."
    )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        handler.resolve_ref_schema(schema)["properties"] |= _parts_of_solvers()
        return schema

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class Scramble(Table):
    seed: Index = Field(0, description="Seed of the random numbers.")


class Flatten(Table):
    axis: Literal["x", "y", "z"] = Field(
        description="The coordinate that becomes the same for all: x, y or z."
    )
    at: Coordinate = Field(0.0, description="Its value [m].")


class Start(Choice):
    """Where free vertices start, instead of at rest."""

    scramble: Scramble | None = Field(None, description="At random in the bounding box of the scene at rest.")
    flatten: Flatten | None = Field(None, description="In a plane.")
    file: StrictStr | None = Field(
        None,
        description="Where an NPZ file, such as one of a run's frames, has `positions`, and perhaps "
        "`velocities`; its path is relative to the scene file.",
    )

    def positions(self, model: Model, folder: Path) -> np.ndarray:
        """(n, 3) [m]; what is pinned is left at rest. folder: that of the scene file."""
        positions = model.rest.copy()
        if self.file is not None:
            positions = _saved_positions(folder / self.file, positions.shape)
        if self.scramble is not None:
            low, high = model.rest.min(axis=0), model.rest.max(axis=0)
            positions = np.random.default_rng(self.scramble.seed).uniform(low, high, positions.shape)
        elif self.flatten is not None:
            positions[:, "xyz".index(self.flatten.axis)] = self.flatten.at
        model.hold(positions, model.rest[model.pinned])
        return positions

    def velocities(self, model: Model, folder: Path) -> np.ndarray | None:
        """(n, 3) [m/s] that a motion starts with; None for rest. folder: that of the scene file."""
        return None if self.file is None else _saved_velocities(folder / self.file, model.rest.shape)


def _saved_velocities(path: Path, shape: tuple[int, ...]) -> np.ndarray | None:
    """The velocities in an NPZ file, whose positions have been read; None where it has none."""
    with np.load(path) as saved:
        if "velocities" not in saved:
            return None
        velocities = np.array(saved["velocities"], float)
    if velocities.shape != shape or not np.isfinite(velocities).all():
        raise SceneError(
            f"start.file: the velocities in {path} must be finite and of shape {shape}, as the positions are."
        )
    return velocities


def _saved_positions(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """The positions in an NPZ file, one row for each vertex of the scene."""
    try:
        with path.open("rb") as file, np.load(file) as saved:
            positions = np.array(saved["positions"], float)
    except OSError as error:
        raise SceneError(f"start.file: {path} cannot be read: {error.strerror or error}.") from None
    except KeyError:
        raise SceneError(f"start.file: {path} has no `positions`.") from None
    except (ValueError, TypeError, EOFError, BadZipFile, zlib.error):
        raise SceneError(
            f"start.file: {path} is no NPZ file with numbers as `positions`, or it is damaged."
        ) from None
    if positions.shape != shape:
        raise SceneError(
            f"start.file: {path} must have positions of shape {shape}, one row for each vertex of the scene; "
            f"they have shape {positions.shape}."
        )
    bad = int(np.count_nonzero(~np.isfinite(positions).all(axis=1)))
    if bad:
        where = counted(bad, "vertex", "vertices")
        raise SceneError(f"start.file: {path} has positions that are NaN or infinite, of {where}.")
    return positions


class Stop(Table):
    """When a solve ends: whichever comes first."""

    tolerance: Annotated[Number, Field(gt=0, lt=1)] | None = Field(
        default=None, description="Stop when the imbalance is below this, between 0 and 1."
    )
    max_iterations: Count | None = Field(
        default=None, description="Stop after so many iterations, at least 1."
    )
    time_budget: Positive | None = Field(default=None, description="Stop after so many seconds, positive.")
    distance: Annotated[Number, Field(gt=0, lt=1)] | None = Field(
        default=None,
        description="Where the imbalance is reached, every body must also be this close to the equilibrium, "
        "relative to its size; 1e-4 in quasistatic scenes unless given.",
    )


class View(Table):
    """How pictures and films show the scene."""

    field: StrictStr = Field(default="displacement", description="What surfaces are coloured by.")
    camera: Annotated[list[Number], Field(min_length=2, max_length=2)] = Field(
        default=[32.0, 20.0],
        description="Azimuth and elevation of the camera [degrees]; [0, 0] looks along -z.",
    )
    thickness: Annotated[Number, Field(ge=0, le=1000)] = Field(
        default=0.0, description="How many times as thick as it is cloth is drawn, 0 for not at all."
    )


class Output(Table):
    """What the files of frames have beside positions."""

    fields: list[StrictStr] = Field(
        default=[], description="Of `supple list quantities`, e.g. ['von_mises', 'cauchy']."
    )


class SceneTable(Table):
    """A scene of supple: solids and cloth, what holds, moves and loads them, and how to solve. SI units."""

    title: StrictStr = Field("", description="What the scene shows.")
    gravity: Vector = Field([0.0, -9.81, 0.0], description="Acceleration [m/s²], three numbers.")
    gravity_ramp: Ramp | None = Field(
        None,
        description="How gravity varies, e.g. { times = [0, 1], fractions = [0, 1] }; constant unless given.",
    )
    quasistatic: StrictBool = Field(True, description="Equilibria without inertia; false: backward Euler.")
    dt: Positive = Field(1 / 30, description="Time from frame to frame [s], positive, e.g. 0.01.")
    frames: Count = Field(1, description="How many frames, at least 1; frame i is at time i dt.")
    substeps: Count = Field(
        1, description="Backward Euler steps from frame to frame, at least 1, each of dt / substeps."
    )
    damping: Annotated[Number, Field(ge=0, lt=1)] = Field(
        0.0,
        description="The part of every velocity lost in each step of a dynamic scene, from 0 to below 1.",
    )
    solid: list[Solid] = Field([], description="The solids, each under [[solid]].")
    cloth: list[Cloth] = Field([], description="Cloth, each piece under [[cloth]].")
    pin: list[Pin] = Field([], description="Prescribed positions, each under [[pin]].")
    force: list[Force] = Field([], description="Forces, each under [[force]].")
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
    start: Start | None = Field(None, description="A start other than the rest shape, under [start].")
    stop: Stop = Field(default_factory=Stop, description="When a solve ends, under [stop].")
    view: View = Field(default_factory=View, description="How pictures show the scene, under [view].")
    output: Output = Field(default_factory=Output, description="What files of frames have, under [output].")


class _TomlSchema(GenerateJsonSchema):
    """TOML has no null: what may be left out is not required, and otherwise has its own type."""

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        described = super().default_schema(schema)
        return {key: value for key, value in described.items() if (key, value) != ("default", None)}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def scene_table() -> type[SceneTable]:
    """The tables of a scene file with a key for each material that there is now."""
    return _scene_table(tuple(MATERIALS.items()), tuple(membrane_materials().items()))


Materials = tuple[tuple[str, type[Material]], ...]


@cache
def _scene_table(materials: Materials, membranes: Materials) -> type[SceneTable]:
    region: Any = _with_materials(RegionTable, "material", materials)
    solid: Any = _with_materials(Solid, "material", materials)
    solid = create_model("Solid", __base__=solid, region=(list[region], Solid.model_fields["region"]))
    cloth: Any = _with_materials(Cloth, "membrane", membranes)
    known = SceneTable.model_fields
    return create_model(
        "SceneTable",
        __base__=SceneTable,
        __doc__=SceneTable.__doc__,
        solid=(list[solid], known["solid"]),
        cloth=(list[cloth], known["cloth"]),
    )


def _with_materials(table: type[Table], key: str, materials: Materials) -> Any:
    """The table of a body with a key for each material that it may be made of."""
    choice: Any = material_choice(materials, key.capitalize())
    known = table.model_fields[key]
    fields: Any = {key: (choice if known.is_required() else choice | None, known)}
    return create_model(table.__name__, __base__=table, **fields)


def scene_schema() -> dict[str, Any]:
    """The JSON Schema of scene files, for editors."""
    schema = scene_table().model_json_schema(schema_generator=_TomlSchema)
    schema["anyOf"] = [{"required": ["solid"]}, {"required": ["cloth"]}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "supple scene"}
