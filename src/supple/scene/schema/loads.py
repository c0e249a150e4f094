"""Tables of loads and time-dependent material parameters."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StrictBool, StrictStr, model_validator

from supple.scene.loads.cavities import ATMOSPHERE
from supple.scene.schema.base import (
    Coordinate,
    NotNegative,
    Number,
    NumberOrVector,
    Point,
    Positive,
    Table,
    Vector,
)
from supple.scene.schema.body_reference import OfBody, OnBody
from supple.scene.schema.motions import Ramp


class Load(OnBody):
    ramp: Ramp | None = Field(
        None,
        description="How it varies, e.g. { times = [0, 1], fractions = [0, 1] }; constant unless given.",
    )


class Force(Load):
    """A force on vertices."""

    force: Vector = Field(description="The total force [N], shared equally by the vertices.")


class BodyForce(OfBody):
    """Force per rest volume, or per rest area of cloth."""

    force: Vector | None = Field(None, description="[N/m³], or [N/m²] of cloth.")
    field: StrictStr | None = Field(None, description="In place of that, a field of the mesh that has it.")
    region: StrictStr | None = Field(None, description="The region of a solid on which it acts.")
    ramp: Ramp | None = Field(None, description="How it varies, e.g. { times = [0, 1], fractions = [0, 1] }.")

    @model_validator(mode="after")
    def _one_force(self) -> Self:
        if (self.force is None) == (self.field is None):
            raise ValueError("must have either a force or a field.")
        return self


class Traction(Load):
    """Traction on surface triangles with three selected vertices."""

    traction: NumberOrVector = Field(
        description="Force per area [Pa], of which a number is that along the outer normals."
    )
    following: StrictBool = Field(
        False, description="It turns with the surface and acts on the area that this has."
    )


class Pressure(Load):
    """Pressure inside a closed surface, or inside one with pinned edges."""

    pressure: Number = Field(description="Outwards on the surface [Pa], wherever it turns.")


class Cavity(Load):
    """A closed chamber filled with gas."""

    pressure: Number = Field(0.0, description="Of the air inside above that outside [Pa].")
    sealed: StrictBool = Field(
        False, description="The gas stays inside: (pressure + ambient) V^exponent is constant."
    )
    ambient: NotNegative = Field(ATMOSPHERE, description="The pressure outside [Pa].")
    exponent: Positive = Field(1.0, description="1 for slow changes, 1.4 for quick ones of air.")


class Cable(Load):
    """Cable through body points with prescribed tension or length."""

    points: Annotated[list[Point], Field(min_length=2)] = Field(
        description="Where it leads [m]: through the nearest vertices, in this order."
    )
    tension: NotNegative | None = Field(None, description="[N], or length.")
    length: Annotated[Coordinate, Field(ge=0)] | None = Field(
        None, description="As long as it may be [m], with a stiffness."
    )
    stiffness: Positive | None = Field(None, description="Of a cable of a given length [N/m].")


class Wind(Table):
    """Wind in a dynamic scene."""

    velocity: Vector = Field(description="Of the air [m/s].")
    bodies: list[StrictStr] = Field([], description="Names of what it blows on; everything unless given.")
    drag: NotNegative = Field(1.0, description="Coefficient of the force along the wind.")
    lift: NotNegative = Field(0.5, description="Coefficient of the force across it.")
    density: Positive = Field(1.2, description="Of the air [kg/m³].")
    ramp: Ramp | None = Field(None, description="How it varies, e.g. { times = [0, 1], fractions = [0, 1] }.")


class Vary(OfBody):
    """Material parameter that varies in time."""

    parameter: StrictStr = Field(description="A number that its material declares, e.g. young.")
    region: StrictStr | None = Field(None, description="The region of a solid whose material it is.")
    ramp: Ramp = Field(
        description="What part it has of the material's value, e.g. { times = [0, 1], fractions = [0, 1] }."
    )
