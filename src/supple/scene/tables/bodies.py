"""Tables of bodies: [[solid]] and [[cloth]]."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import Field, StrictStr, model_validator

from supple import meshes
from supple.materials import Material
from supple.scene.files.file_paths import resolve_path
from supple.scene.tables.cloth import BendingChoice, ClothRegion, Rest, Surface
from supple.scene.tables.materials import MaterialChoice
from supple.scene.tables.meshes import Mesh, Render
from supple.scene.tables.solids import RegionTable, RestShape, Swelling, ViscosityChoice, as_prestrained
from supple.scene.tables.table import FILE, Length, Positive, Table, Vector
from supple.terms import load_fabric


class Body(Table):
    name: StrictStr | None = Field(
        None, description="Name by which pins, loads and attachments refer to the body."
    )
    velocity: Vector = Field(
        [0.0, 0.0, 0.0], description="Initial velocity of the center of mass in dynamic scenes [m/s]."
    )
    angular_velocity: Vector = Field(
        [0.0, 0.0, 0.0],
        description="Initial angular velocity about the center of mass [rad/s], right-handed.",
    )
    render: Render | None = Field(
        None, description='Detailed surface for pictures and exports, e.g. { file = "armadillo.obj" }.'
    )


class Solid(Body):
    mesh: Mesh = Field(description="Rest shape, e.g. { block = { cells = [10, 10, 10] } }.")
    material: MaterialChoice = Field(
        description="Material, e.g. { corotated = { young = 1e5, poisson = 0.3 } }."
    )
    density: Positive = Field(
        1000.0, description="Mass density [kg/m³], positive; a preset has its own default."
    )
    region: list[RegionTable] = Field(
        [], description="Tetrahedra of other materials, each a table [[solid.region]]."
    )
    viscosity: list[ViscosityChoice] = Field([], description="Viscosities, each a table [[solid.viscosity]].")
    swelling: Swelling | None = Field(
        None, description="Relative growth of all rest lengths over the mesh; may vary in time, see [[vary]]."
    )
    rest_deformation: RestShape | None = Field(
        None, description="Stress-free deformation gradient, three rows; the identity by default."
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
    mesh: Surface = Field(description="Initial shape, e.g. { sheet = { cells = 32, size = [1, 1] } }.")
    membrane: MaterialChoice | None = Field(
        None, description="Membrane material, e.g. { stvk = { young = 1e5, poisson = 0.3 } }."
    )
    fabric: StrictStr | None = Field(
        None,
        description="Instead of membrane and bending: file of a fabric (HYLC), or its name, such as "
        f"basket1, in the folder $SUPPLE_DATA. Computed in float64. {FILE}",
    )
    bending: BendingChoice | None = Field(
        None, description="Bending model, e.g. { hinge = { rigidity = 1e-5 } }; none by default."
    )
    density: Positive | None = Field(
        None,
        description="Mass per rest area [kg/m²], positive; by default 0.2, or that of the fabric.",
    )
    thickness: Length = Field(
        1e-3, description="Thickness [m], the factor between energy per volume and per area."
    )
    region: list[ClothRegion] = Field(
        [], description="Triangles of other membranes, each a table [[cloth.region]]."
    )
    rest: Rest | None = Field(
        None, description="Unstretched shape, e.g. { uv = {} }; the initial shape by default."
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
