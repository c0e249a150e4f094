"""Tables of supports and connectors: [[pin]], [[attach]] and [[spring]]."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StrictBool, StrictStr, WithJsonSchema

from supple.scene.constraints.pins import constrained_directions
from supple.scene.tables.motions import Motion
from supple.scene.tables.selections import Naming, OnBody, Where
from supple.scene.tables.table import Choice, Coordinate, NotNegative, Point, Positive, Vector


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

    axes: Axes | None = Field(None, description='Constrained coordinates, e.g. "x" or "yz"; all by default.')
    normal: Vector | None = Field(
        None, description="Only constrained direction, as of a roller or a symmetry plane."
    )
    along: Vector | None = Field(None, description="Only free direction, as on a rail.")
    name: StrictStr | None = Field(
        None, description="Name of the reaction force; 'pin0', 'pin1', ... by default."
    )
    motion: list[Motion] = Field(
        [], description="Motions in their order, e.g. [{ translate = { offset = [1, 0, 0] } }]."
    )

    @property
    def holds(self) -> dict[str, Any]:
        """Constrained directions, as arguments of `Scene.pin`."""
        return self.model_dump(include={"axes", "normal", "along"})


class Target(Naming, Choice):
    """Target of an attachment."""

    extra_keys = ("where",)
    solid: StrictStr | None = Field(
        None, description="Other solid: its closest points at rest or, with where, its vertices in order."
    )
    cloth: StrictStr | None = Field(None, description="Other cloth, instead of a solid.")
    points: list[Point] | None = Field(None, description="Fixed points [m]: one, or one per vertex.")
    where: Where | None = Field(None, description="Vertices of the other body, paired in order.")


class Attach(OnBody):
    """Weak constraints (springs of zero length) between vertices and another body or fixed points."""

    to: Target | None = Field(
        None, description="Solid, cloth or fixed points; by default the rest positions of the vertices."
    )
    stiffness: Positive = Field(description="Stiffness of each constraint [N/m], positive.")
    normal: Vector | None = Field(
        None, description="Direction in which stiffness acts, while tangent_stiffness acts across."
    )
    tangent_stiffness: NotNegative | None = Field(
        None, description="Stiffness across the normal [N/m], 0 by default."
    )
    keep_offset: StrictBool = Field(False, description="Keep the offset at rest instead of closing it.")
    within: NotNegative | None = Field(
        None,
        description="For seams: largest distance at rest [m] of a vertex from the one it is attached to.",
    )
    at: list[Point] | None = Field(
        None,
        description="Points [m] of attachment instead of vertices: the closest points of both bodies, which "
        "may lie between vertices.",
    )


class SpringEnd(Naming, Choice):
    """Other ends of springs."""

    extra_keys = ("where",)
    solid: StrictStr | None = Field(
        None, description="Solid, whose vertices are paired in order with those of the first body."
    )
    cloth: StrictStr | None = Field(None, description="Cloth, instead of a solid.")
    points: list[Point] | None = Field(None, description="Fixed points [m]: one, or one per vertex.")
    where: Where | None = Field(None, description="Selected vertices; all by default.")


class Spring(OnBody):
    """Springs between vertices, or to fixed points."""

    to: SpringEnd = Field(description='Other ends, e.g. { solid = "lid", where = { side = "y-" } }.')
    stiffness: Positive = Field(description="Stiffness of each spring [N/m], positive.")
    rest_length: Annotated[Coordinate, Field(ge=0)] | None = Field(
        None, description="Rest length [m]; the distance at rest by default."
    )
