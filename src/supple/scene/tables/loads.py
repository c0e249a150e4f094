"""Tables of loads and time-dependent material parameters."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StrictBool, StrictStr, model_validator

from supple.scene.loads.cavities import ATMOSPHERE
from supple.scene.tables.motions import Ramp
from supple.scene.tables.selections import OfBody, OnBody
from supple.scene.tables.table import (
    Coordinate,
    NotNegative,
    Number,
    NumberOrVector,
    Point,
    Positive,
    Table,
    Vector,
)


class Load(OnBody):
    ramp: Ramp | None = Field(
        None,
        description="Variation in time, e.g. { times = [0, 1], fractions = [0, 1] }; constant by default.",
    )


class Force(Load):
    """A force on vertices."""

    force: Vector = Field(description="Total force [N], distributed equally over the vertices.")


class BodyForce(OfBody):
    """Force per rest volume, or per rest area of cloth."""

    force: Vector | None = Field(None, description="Force per volume [N/m³], of cloth per area [N/m²].")
    field: StrictStr | None = Field(None, description="Mesh field with the force, instead of force.")
    region: StrictStr | None = Field(None, description="Region of the solid on which the force acts.")
    ramp: Ramp | None = Field(
        None, description="Variation in time, e.g. { times = [0, 1], fractions = [0, 1] }."
    )

    @model_validator(mode="after")
    def _one_force(self) -> Self:
        if (self.force is None) == (self.field is None):
            raise ValueError("must have either a force or a field.")
        return self


class Traction(Load):
    """Traction on surface triangles with three selected vertices."""

    traction: NumberOrVector = Field(
        description="Force per area [Pa]; a number acts along the outer normals."
    )
    following: StrictBool = Field(False, description="Follow the rotation and the area of the surface.")


class Pressure(Load):
    """Pressure inside a closed surface, or inside one with pinned edges."""

    pressure: Number = Field(description="Pressure [Pa] along the outer normals of the deformed surface.")


class Cavity(Load):
    """A closed chamber filled with gas."""

    pressure: Number = Field(0.0, description="Gauge pressure of the air inside [Pa].")
    sealed: StrictBool = Field(
        False, description="Closed chamber: (pressure + ambient) V^exponent is constant."
    )
    ambient: NotNegative = Field(ATMOSPHERE, description="Ambient pressure [Pa].")
    exponent: Positive = Field(
        1.0, description="Polytropic exponent: 1 for slow changes, 1.4 for fast changes of air."
    )


class Cable(Load):
    """Cable through body points with prescribed tension or length."""

    points: Annotated[list[Point], Field(min_length=2)] = Field(
        description="Points [m] along the cable, in order; it passes through the nearest vertices."
    )
    tension: NotNegative | None = Field(None, description="Tension [N]; alternatively length and stiffness.")
    length: Annotated[Coordinate, Field(ge=0)] | None = Field(
        None, description="Slack length [m], with a stiffness."
    )
    stiffness: Positive | None = Field(None, description="Stiffness of a cable with a length [N/m].")


class Wind(Table):
    """Wind in a dynamic scene."""

    velocity: Vector = Field(description="Velocity of the air [m/s].")
    bodies: list[StrictStr] = Field([], description="Names of the bodies in the wind; all by default.")
    drag: NotNegative = Field(1.0, description="Coefficient of the force along the wind.")
    lift: NotNegative = Field(0.5, description="Coefficient of the force across the wind.")
    density: Positive = Field(1.2, description="Density of the air [kg/m³].")
    ramp: Ramp | None = Field(
        None, description="Variation in time, e.g. { times = [0, 1], fractions = [0, 1] }."
    )


class Vary(OfBody):
    """Material parameter that varies in time."""

    parameter: StrictStr = Field(description="Scalar parameter of the material, e.g. young.")
    region: StrictStr | None = Field(None, description="Region of the solid whose material varies.")
    ramp: Ramp = Field(
        description="Fraction of the material's value, e.g. { times = [0, 1], fractions = [0, 1] }."
    )
