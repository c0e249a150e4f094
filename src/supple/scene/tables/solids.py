"""Tables of scene files for solids only: regions, viscosity and rest deformation."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, StrictStr

from supple import meshes
from supple.materials import Material, prestrained
from supple.scene import regions, viscosity
from supple.scene.errors import SceneError
from supple.scene.tables.materials import FromField, MaterialChoice, OrField, Row
from supple.scene.tables.selections import Cells
from supple.scene.tables.table import Choice, NotNegative, Number, Positive, Table


class RegionTable(Table):
    """Tetrahedra of a solid with a different material."""

    name: StrictStr = Field(description="Name by which [[vary]] refers to the region.")
    where: Cells = Field(
        description='Tetrahedra of the region, e.g. { data = { field = "region", values = [3] } }.'
    )
    material: MaterialChoice = Field(description="Material, as of a solid.")
    density: Positive | None = Field(
        None, description="Mass density [kg/m³]; by default that of the preset or of the solid."
    )

    def make(self, mesh: meshes.TetMesh) -> regions.Region:
        density = self.density or self.material.density
        return regions.Region(self.name, self.where.make(), self.material.make(mesh), density)


class KelvinVoigt(Table):
    foreign_names: ClassVar[dict[str, str]] = {"shear": "shear_viscosity", "bulk": "bulk_viscosity"}

    shear_viscosity: NotNegative = Field(description="Shear viscosity η [Pa s].")
    bulk_viscosity: NotNegative = Field(0.0, description="Bulk viscosity ζ [Pa s].")


class Maxwell(Table):
    young: Positive = Field(description="Young's modulus E [Pa] of the spring.")
    poisson: Annotated[Number, Field(gt=-1, lt=0.5)] = Field(description="Poisson's ratio ν of the spring.")
    time: Positive = Field(description="Relaxation time τ [s].")


class Rayleigh(Table):
    foreign_names: ClassVar[dict[str, str]] = {"stiffness": "stiffness_factor", "mass": "mass_factor"}

    stiffness_factor: NotNegative = Field(
        0.0, description="Factor β [s] of damping proportional to the rest stiffness."
    )
    mass_factor: NotNegative = Field(0.0, description="Factor α [1/s] of damping proportional to the mass.")


class ViscosityChoice(Choice):
    """Viscosity or damping in dynamic scenes."""

    kelvin_voigt: KelvinVoigt | None = Field(None, description="Dashpot parallel to the material.")
    maxwell: Maxwell | None = Field(
        None, description="Spring and dashpot in series, parallel to the material."
    )
    rayleigh: Rayleigh | None = Field(None, description="Damping proportional to rest stiffness and mass.")

    def make(self) -> viscosity.Viscosity:
        kind, value = self.chosen
        classes = {
            "kelvin_voigt": viscosity.KelvinVoigt,
            "maxwell": viscosity.Maxwell,
            "rayleigh": viscosity.Rayleigh,
        }
        return classes[kind](**value.given())


Swelling = Annotated[Number, Field(gt=-1), OrField()]
RestShape = Annotated[list[Row], Field(min_length=3, max_length=3), OrField()]


def as_prestrained(
    material: Material, swelling: Any, rest_deformation: Any, mesh: meshes.TetMesh
) -> Material:
    """Apply optional swelling and rest shape to a material."""
    if swelling is None and rest_deformation is None:
        return material

    def on(value: Any) -> Any:
        if isinstance(value, Table) and not isinstance(value, FromField):
            raise SceneError("must be numbers, or a field of the mesh, { field = ... }.")
        return mesh.field(value.field) if isinstance(value, FromField) else value

    return prestrained(material, 0.0 if swelling is None else on(swelling), on(rest_deformation))
