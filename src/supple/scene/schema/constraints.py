"""Tables of supports and connectors: [[pin]], [[attach]] and [[spring]]."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictBool, StrictStr, WithJsonSchema

from supple.scene.constraints.pins import constrained_directions
from supple.scene.schema.base import Choice, Coordinate, NotNegative, Point, Positive, Vector
from supple.scene.schema.body_reference import Naming, OnBody
from supple.scene.schema.motions import Motion
from supple.scene.schema.selections import Where


def _axes(value: Any) -> Any:
    constrained_directions(value, None, None, 1)
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


class Pin(OnBody):
    """Vertices with prescribed positions, optionally along selected directions only."""

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
        """Constrained directions, as arguments of `Scene.pin`."""
        return self.model_dump(include={"axes", "normal", "along"})


class Target(Naming, Choice):
    """Target of an attachment."""

    extra_keys = ("where",)
    solid: StrictStr | None = Field(
        None, description="Another solid: the closest point of it at rest, or, with where, vertices in order."
    )
    cloth: StrictStr | None = Field(None, description="Other cloth, in place of a solid.")
    points: list[Point] | None = Field(None, description="Fixed points [m]: one, or one for each vertex.")
    where: Where | None = Field(None, description="Vertices of the body, paired in order with the others.")


class Attach(OnBody):
    """Weak constraints (springs of zero length) between vertices and another body or fixed points."""

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


class SpringEnd(Naming, Choice):
    """Other ends of springs."""

    extra_keys = ("where",)
    solid: StrictStr | None = Field(
        None, description="A solid, whose vertices are paired in order with the others."
    )
    cloth: StrictStr | None = Field(None, description="Cloth, in place of a solid.")
    points: list[Point] | None = Field(None, description="Fixed points [m]: one, or one for each vertex.")
    where: Where | None = Field(None, description="Which of its vertices; all of them unless given.")


class Spring(OnBody):
    """Springs between vertices, or to fixed points."""

    to: SpringEnd = Field(description='The other ends, e.g. { solid = "lid", where = { side = "y-" } }.')
    stiffness: Positive = Field(description="Stiffness of each spring [N/m], positive.")
    rest_length: Annotated[Coordinate, Field(ge=0)] | None = Field(
        None, description="Length at which a spring pulls nothing [m]; as long as it is at rest unless given."
    )
