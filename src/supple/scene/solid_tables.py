"""Tables of scene files that only solids have: regions of other materials, viscosity and rest shapes."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StrictStr

from supple import meshes
from supple.materials import Material, grown
from supple.scene import regions, selections, viscosity
from supple.scene.errors import SceneError
from supple.scene.material_tables import FromField, MaterialChoice, OrField, Row
from supple.scene.tables import Bound, Choice, Index, Length, NotNegative, Number, Point, Positive, Table


class Box(Table):
    min: Annotated[list[Bound], Field(min_length=3, max_length=3)] = Field(
        description="The lowest corner [m]; -inf leaves a side open."
    )
    max: Annotated[list[Bound], Field(min_length=3, max_length=3)] = Field(
        description="The highest corner [m]; inf leaves a side open."
    )


class Sphere(Table):
    centre: Point = Field(description="Its centre [m].")
    radius: Length = Field(description="Its radius [m], positive.")


class Having(Table):
    """A field of the mesh, and what it is in a region."""

    field: StrictStr = Field(description="The name of data for each cell or vertex of the mesh.")
    values: Annotated[list[Number], Field(min_length=1)] = Field(
        description="The values that it has there, such as [3]."
    )


class Cells(Choice):
    """Which tetrahedra of a solid, at rest."""

    box: Box | None = Field(None, description="Those whose centres are in an axis-aligned box.")
    sphere: Sphere | None = Field(None, description="Those whose centres are in a sphere.")
    data: Having | None = Field(
        None, description='Those that data of the mesh name, e.g. { field = "region", values = [3] }.'
    )
    tets: list[Index] | None = Field(None, description="Their numbers, from 0.")

    def make(self) -> Any:
        """What a `Region` takes."""
        kind, value = self.chosen
        if kind == "data":
            return {value.field: value.values}
        return value if kind == "tets" else getattr(selections, kind)(**value.given())


class RegionTable(Table):
    """Tetrahedra that are of another material than the rest of a solid."""

    name: StrictStr = Field(description="How [[vary]] refers to it.")
    where: Cells = Field(description='Which, e.g. { data = { field = "region", values = [3] } }.')
    material: MaterialChoice = Field(description="What they are made of, as that of a solid.")
    density: Positive | None = Field(
        None, description="Mass density [kg/m³]; that of the solid unless given."
    )

    def make(self, mesh: meshes.TetMesh) -> regions.Region:
        return regions.Region(self.name, self.where.make(), self.material.make(mesh), self.density)


class KelvinVoigt(Table):
    shear: NotNegative = Field(description="Shear viscosity η [Pa s].")
    bulk: NotNegative = Field(0.0, description="Bulk viscosity ζ [Pa s].")


class Maxwell(Table):
    young: Positive = Field(description="Young's modulus E [Pa] of the spring.")
    poisson: Annotated[Number, Field(gt=-1, lt=0.5)] = Field(description="Its Poisson's ratio ν.")
    time: Positive = Field(description="In which its stress relaxes, τ [s].")


class Rayleigh(Table):
    stiffness: NotNegative = Field(0.0, description="β [s]: damping in proportion to the stiffness at rest.")
    mass: NotNegative = Field(0.0, description="α [1/s]: damping in proportion to the mass.")


class ViscosityChoice(Choice):
    """What resists the rate of strain of a solid as steps of time pass."""

    kelvin_voigt: KelvinVoigt | None = Field(None, description="A dashpot beside the material.")
    maxwell: Maxwell | None = Field(None, description="A spring with a dashpot behind it.")
    rayleigh: Rayleigh | None = Field(None, description="In proportion to stiffness at rest and mass.")

    def make(self) -> viscosity.Viscosity:
        kind, value = self.chosen
        kinds = {
            "kelvin_voigt": viscosity.KelvinVoigt,
            "maxwell": viscosity.Maxwell,
            "rayleigh": viscosity.Rayleigh,
        }
        return kinds[kind](**value.given())


Swelling = Annotated[Number, Field(gt=-1), OrField()]
RestShape = Annotated[list[Row], Field(min_length=3, max_length=3), OrField()]


def as_grown(material: Material, swelling: Any, rest_shape: Any, mesh: meshes.TetMesh) -> Material:
    """A material with what a file says of its rest shape, if anything."""
    if swelling is None and rest_shape is None:
        return material

    def on(value: Any) -> Any:
        if isinstance(value, Table) and not isinstance(value, FromField):
            raise SceneError("must be numbers, or a field of the mesh, { field = ... }.")
        return mesh.field(value.field) if isinstance(value, FromField) else value

    return grown(material, 0.0 if swelling is None else on(swelling), on(rest_shape))
