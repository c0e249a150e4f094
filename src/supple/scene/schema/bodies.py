"""Tables of bodies: [[solid]] and [[cloth]]."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import Field, StrictStr, model_validator

from supple import meshes
from supple.materials import Material
from supple.scene.files.paths import resolve_path
from supple.scene.schema.base import FILE, Length, Positive, Table, Vector
from supple.scene.schema.cloth import BendingChoice, ClothRegion, Rest, Surface
from supple.scene.schema.materials import MaterialChoice
from supple.scene.schema.meshes import Mesh, Render
from supple.scene.schema.solids import RegionTable, RestShape, Swelling, ViscosityChoice, as_prestrained
from supple.terms import load_fabric


class Body(Table):
    name: StrictStr | None = Field(None, description="How pins, loads and attachments refer to it.")
    velocity: Vector = Field(
        [0.0, 0.0, 0.0], description="Of its center of mass at the start of a dynamic scene [m/s]."
    )
    angular_velocity: Vector = Field(
        [0.0, 0.0, 0.0],
        description="About its center of mass at the start [rad/s], right-handed about this direction.",
    )
    render: Render | None = Field(
        None, description='A detailed surface to show in place of its own, e.g. { file = "armadillo.obj" }.'
    )


class Solid(Body):
    mesh: Mesh = Field(description="Its rest shape, e.g. { block = { cells = [10, 10, 10] } }.")
    material: MaterialChoice = Field(
        description="What it is made of, e.g. { corotated = { young = 1e5, poisson = 0.3 } }."
    )
    density: Positive = Field(
        1000.0, description="Mass density [kg/m³], positive; that of a preset unless given."
    )
    region: list[RegionTable] = Field(
        [], description="Tetrahedra of other materials, each under [[solid.region]]."
    )
    viscosity: list[ViscosityChoice] = Field(
        [], description="What resists the rate of strain, each under [[solid.viscosity]]."
    )
    swelling: Swelling | None = Field(
        None, description="By what part every length at rest is larger than in the mesh; may [[vary]]."
    )
    rest_deformation: RestShape | None = Field(
        None, description="The deformation gradient at which there is no stress, three rows; I unless given."
    )

    @property
    def mass_density(self) -> float:
        """Mass density [kg/m³] from the file, preset, or default, in this order."""
        known = None if "density" in self.model_fields_set else self.material.density
        return self.density if known is None else known

    def make_material(self, mesh: meshes.TetMesh | None) -> Material | None:
        """Return the material with rest deformation; None if required mesh data could not be read."""
        material = self.material.make(mesh)
        if material is None or mesh is None:
            return material
        return as_prestrained(material, self.swelling, self.rest_deformation, mesh)


class Cloth(Body):
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
        None, description="What resists folds, e.g. { hinge = { rigidity = 1e-5 } }; nothing unless given."
    )
    density: Positive | None = Field(
        None,
        description="Mass density [kg/m²] where nothing is stretched, positive; 0.2, or that of the fabric, "
        "unless given.",
    )
    thickness: Length = Field(
        1e-3, description="Thickness [m], by which the energy of the material is multiplied."
    )
    region: list[ClothRegion] = Field(
        [], description="Triangles of other membranes, each under [[cloth.region]]."
    )
    rest: Rest | None = Field(
        None, description="Where nothing is stretched, e.g. { uv = {} }; where it starts unless given."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.membrane is None) == (self.fabric is None):
            given = "neither" if self.fabric is None else "both"
            raise ValueError(
                f"must have either a membrane, such as {{ stvk = {{ young = 1e5, poisson = 0.3 }} }}, or a "
                f"fabric, such as 'basket1'; it has {given}."
            )
        return self

    def make_membrane(self, folder: Path, mesh: meshes.TriMesh | None) -> Any:
        """Return the `membrane` argument of `Scene.add_cloth`: material or fabric."""
        if self.fabric is None:
            assert self.membrane is not None
            return self.membrane.make(mesh)
        return load_fabric(resolve_path(folder, self.fabric) if Path(self.fabric).suffix else self.fabric)
