"""Tables of contact: [contact] between bodies, and each [[obstacle]]."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr

from supple.scene import contact_settings as contact
from supple.scene.schema.base import Length, NotNegative, Positive, Table, Vector
from supple.scene.schema.motions import Motion
from supple.scene.schema.shapes import ShapeTable


class FrictionPairTable(Table):
    """Friction coefficients of one body pair, which override those of [contact]."""

    bodies: list[StrictStr] = Field(min_length=2, max_length=2, description="Their names.")
    friction: NotNegative = Field(description="Coulomb's coefficient of what sticks.")
    kinetic_friction: NotNegative | None = Field(None, description="Of what slides; the same unless given.")


class Contact(Table):
    """Contact between bodies, including self-contact."""

    others_call: ClassVar[dict[str, str]] = {
        "refresh": "detection_interval",
        "kinetic": "kinetic_friction",
        "pair": "friction_pair",
        "push_apart": "separate_initial",
    }

    method: Literal["weak", "barrier", "grid", "none"] = Field(
        "weak",
        description="How contact is treated; with a barrier nothing passes anything; a grid carries all.",
    )
    thickness: Length | None = Field(
        None,
        description="What is nearer is pushed apart [m]; 1 % of the mean edge unless given, barrier 5 %.",
    )
    stiffness: Positive | None = Field(
        None,
        description="Of each contact [N/m]; Young's modulus times the edge unless given, weak ten times, "
        "barrier 30 times.",
    )
    detection_interval: Annotated[StrictInt, Field(ge=1)] = Field(
        10, description="Sweeps after which weak contacts are found anew within a step."
    )
    friction: NotNegative = Field(0.0, description="Coulomb's coefficient between bodies that stick.")
    kinetic_friction: NotNegative | None = Field(None, description="Of what slides; the same unless given.")
    friction_pair: list[FrictionPairTable] = Field([], description="Bodies with a friction of their own.")
    spacing: Length | None = Field(
        None, description="Edge of the cells of a grid [m]; the mean edge of tetrahedra unless given."
    )
    cfl: Annotated[Positive, Field(le=1)] = Field(
        0.4, description="Part of a cell that anything may move in a step of a grid, at most 1."
    )
    separate_initial: StrictBool = Field(
        False, description="Whether what intersects in the beginning is pushed apart, for a barrier."
    )

    def make(self) -> contact.Contact:
        given = self.given()
        pairs = tuple(contact.FrictionPair(**pair.given()) for pair in self.friction_pair)
        given.pop("friction_pair", None)
        return contact.Contact(**given, friction_pairs=pairs)


class Obstacle(Table):
    """A shape that bodies cannot enter."""

    others_call: ClassVar[dict[str, str]] = {"kinetic": "kinetic_friction", "spin": "angular_velocity"}

    shape: ShapeTable = Field(description="What it looks like, e.g. { plane = { normal = [0, 1, 0] } }.")
    friction: NotNegative = Field(0.0, description="Coulomb's coefficient of friction, at least 0.")
    kinetic_friction: NotNegative | None = Field(None, description="Of what slides; the same unless given.")
    name: StrictStr | None = Field(
        None, description="For its forces in reports; 'obstacle0', 'obstacle1', ... unless given."
    )
    motion: list[Motion] = Field([], description="A list of motions as of a pin; they must not deform it.")
    mass: Positive | None = Field(
        None, description="Of a sphere or box that falls, and is moved by what it touches [kg]."
    )
    velocity: Vector = Field([0.0, 0.0, 0.0], description="Of one with a mass at the start [m/s].")
    angular_velocity: Vector = Field([0.0, 0.0, 0.0], description="Of one with a mass at the start [rad/s].")
