"""Tables of motions and ramps."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import ConfigDict, Field, model_validator

from supple.scene.constraints import motions
from supple.scene.loads import ramps
from supple.scene.tables.table import (
    Choice,
    Factors,
    NotNegative,
    Number,
    Numbers,
    Point,
    Table,
    Vector,
)


class Timed(Table):
    foreign_names: ClassVar[dict[str, str]] = {"start": "start_time"}

    duration: NotNegative = Field(1.0, description="Duration [s], at least 0.")
    start_time: Number = Field(0.0, description="Start time [s].")


class Translate(Timed):
    offset: Point = Field(description="Displacement [m].")


class Rotate(Timed):
    axis: Vector = Field(description="Direction of the axis, not zero.")
    center: Point = Field(description="Point on the axis [m].")
    angle: Number = Field(description="Angle [rad], right-handed about the axis.")


class Twist(Timed):
    foreign_names: ClassVar[dict[str, str]] = {"start": "start_time", "angle": "rate"}

    axis: Vector = Field(description="Direction of the axis, not zero.")
    center: Point = Field(description="Point on the axis [m], through which the fixed plane passes.")
    rate: Number = Field(description="Twist rate: angle per length along the axis [rad/m].")


class Scale(Timed):
    factor: Factors = Field(description="Scale factor: one positive number, or one per axis.")
    center: Point = Field([0.0, 0.0, 0.0], description="Fixed point [m].")


class Keyframes(Table):
    """Motion fractions or offsets at given times, linear in between."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["motion", "fractions"]}, {"required": ["offsets"]}]}
    )
    times: Numbers = Field(description="Times [s], increasing.")
    offsets: list[Point] | None = Field(None, description="Displacement [m] at each time.")
    motion: list[Motion] | None = Field(None, description="Motions in their order.")
    fractions: Numbers | None = Field(None, description="Completed fraction of the motion at each time.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.model_fields_set not in ({"times", "offsets"}, {"times", "motion", "fractions"}):
            raise ValueError("must have times and either offsets, or motion and fractions.")
        return self

    def make(self) -> motions.Motion:
        if self.offsets is not None:
            return motions.Keyframes.path(self.times, self.offsets)
        return motions.Keyframes(compose_motions(self.motion or []), self.times, self.fractions or [])


class Motion(Choice):
    """Motion of pinned vertices or an obstacle."""

    translate: Translate | None = Field(None, description="Translation by an offset.")
    rotate: Rotate | None = Field(None, description="Rotation about an axis.")
    twist: Twist | None = Field(
        None, description="Rotation about an axis by an angle proportional to the distance along it."
    )
    scale: Scale | None = Field(None, description="Scaling about a point.")
    keyframes: Keyframes | None = Field(None, description="Motion through keyframes in time.")

    def make(self) -> motions.Motion:
        kind, value = self.chosen
        if kind == "keyframes":
            return value.make()
        return getattr(motions, kind.capitalize())(**value.given())


def compose_motions(tables: list[Motion]) -> motions.Motion:
    """Compose motions in list order."""
    return motions.Compose(tuple(table.make() for table in tables))


class Ramp(Table):
    """Fraction of a load or parameter over time, piecewise linear."""

    times: Numbers = Field(description="Times [s], increasing.")
    fractions: Numbers = Field(
        description="Fraction of the load at each time; constant before the first and after the last."
    )

    def make(self) -> ramps.Ramp:
        return ramps.Ramp(self.times, self.fractions)
