"""Tables of contact: [contact] between bodies, and each [[obstacle]]."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr

from supple.scene import contact_settings as contact
from supple.scene.tables.motions import Motion
from supple.scene.tables.shapes import ShapeTable
from supple.scene.tables.table import Length, NotNegative, Positive, Table, Vector


class FrictionPairTable(Table):
    """Friction coefficients of one body pair, which override those of [contact]."""

    bodies: list[StrictStr] = Field(min_length=2, max_length=2, description="Names of the two bodies.")
    friction: NotNegative = Field(description="Coefficient of static friction.")
    kinetic_friction: NotNegative | None = Field(
        None, description="Coefficient of kinetic friction; that of static friction by default."
    )


class Contact(Table):
    """Contact between bodies, including self-contact."""

    foreign_names: ClassVar[dict[str, str]] = {
        "refresh": "detection_interval",
        "kinetic": "kinetic_friction",
        "pair": "friction_pair",
        "push_apart": "separate_initial",
    }

    method: Literal["weak", "barrier", "grid", "none"] = Field(
        "weak",
        description="Contact method: weak, barrier (without intersections), grid or none.",
    )
    thickness: Length | None = Field(
        None,
        description="Distance below which surfaces repel each other [m]; by default 1 % of the mean edge, "
        "barrier 5 %.",
    )
    stiffness: Positive | None = Field(
        None,
        description="Stiffness of each contact [N/m]; by default Young's modulus times the edge, times 10 "
        "(weak) or 30 (barrier).",
    )
    detection_interval: Annotated[StrictInt, Field(ge=1)] = Field(
        10, description="Number of sweeps between detections of weak contact within a step."
    )
    friction: NotNegative = Field(0.0, description="Coefficient of static friction between bodies.")
    kinetic_friction: NotNegative | None = Field(
        None, description="Coefficient of kinetic friction; that of static friction by default."
    )
    friction_pair: list[FrictionPairTable] = Field(
        [], description="Pairs of bodies with friction of their own, each a table [[contact.friction_pair]]."
    )
    spacing: Length | None = Field(
        None, description="Edge of the grid cells [m]; the mean edge of tetrahedra by default."
    )
    cfl: Annotated[Positive, Field(le=1)] = Field(
        0.4, description="Largest displacement per step of a grid, as a fraction of a cell, at most 1."
    )
    separate_initial: StrictBool = Field(
        False, description="Separate initially intersecting surfaces, for a barrier."
    )

    def make(self) -> contact.Contact:
        given = self.given()
        pairs = tuple(contact.FrictionPair(**pair.given()) for pair in self.friction_pair)
        given.pop("friction_pair", None)
        return contact.Contact(**given, friction_pairs=pairs)


class Obstacle(Table):
    """A shape that bodies cannot enter."""

    foreign_names: ClassVar[dict[str, str]] = {"kinetic": "kinetic_friction", "spin": "angular_velocity"}

    shape: ShapeTable = Field(description="Shape, e.g. { plane = { normal = [0, 1, 0] } }.")
    friction: NotNegative = Field(0.0, description="Coefficient of static friction, at least 0.")
    kinetic_friction: NotNegative | None = Field(
        None, description="Coefficient of kinetic friction; that of static friction by default."
    )
    name: StrictStr | None = Field(
        None, description="Name in reports; 'obstacle0', 'obstacle1', ... by default."
    )
    motion: list[Motion] = Field([], description="Motions, as of a pin, without deformation.")
    mass: Positive | None = Field(
        None, description="Mass [kg] of a sphere or box that moves as a rigid body under gravity and contact."
    )
    velocity: Vector = Field(
        [0.0, 0.0, 0.0], description="Initial velocity of an obstacle with a mass [m/s]."
    )
    angular_velocity: Vector = Field(
        [0.0, 0.0, 0.0], description="Initial angular velocity of an obstacle with a mass [rad/s]."
    )
