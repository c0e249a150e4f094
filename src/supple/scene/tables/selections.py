"""Tables of vertex and cell selections, and base classes of tables that name a body."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, StrictStr, model_validator

from supple.scene import selections
from supple.scene.tables.table import Bound, Choice, Index, Length, Number, Point, Table


class Box(Table):
    min: Annotated[list[Bound], Field(min_length=3, max_length=3)] = Field(
        description="Lowest corner [m]; -inf leaves a side open."
    )
    max: Annotated[list[Bound], Field(min_length=3, max_length=3)] = Field(
        description="Highest corner [m]; inf leaves a side open."
    )


class Sphere(Table):
    center: Point = Field(description="Center [m].")
    radius: Length = Field(description="Radius [m], positive.")


class Having(Table):
    """Mesh field with its values in a region."""

    field: StrictStr = Field(description="Name of mesh data with one value per cell or vertex.")
    values: Annotated[list[Number], Field(min_length=1)] = Field(description="Selected values, such as [3].")


class _Cells(Choice):
    box: Box | None = Field(None, description="Cells whose centers are in an axis-aligned box.")
    sphere: Sphere | None = Field(None, description="Cells whose centers are in a sphere.")
    data: Having | None = Field(
        None, description='Cells selected by mesh data, e.g. { field = "region", values = [3] }.'
    )

    def make(self) -> Any:
        """Return the `where` argument of a `Region`."""
        kind, value = self.chosen
        if kind == "data":
            return {value.field: value.values}
        return value if isinstance(value, list) else getattr(selections, kind)(**value.given())


class Cells(_Cells):
    """Tetrahedron selection in rest positions."""

    tets: list[Index] | None = Field(None, description="Numbers of the tetrahedra, from 0.")


class Triangles(_Cells):
    """Triangle selection on the initial surface."""

    triangles: list[Index] | None = Field(None, description="Numbers of the triangles, from 0.")


class Where(Choice):
    """Vertex selection in rest positions."""

    box: Box | None = Field(None, description="Vertices in an axis-aligned box.")
    sphere: Sphere | None = Field(None, description="Vertices in a sphere.")
    side: Literal["x-", "x+", "y-", "y+", "z-", "z+"] | None = Field(
        None, description="The outermost vertices in a direction: x-, x+, y-, y+, z- or z+."
    )
    vertices: list[Index] | None = Field(None, description="Vertex numbers, counted from 0 within the body.")
    all: Literal[True] | None = Field(None, description="All vertices, the default.")

    def selection(self) -> Any:
        """Return the argument of `Body.where`."""
        kind, value = self.chosen
        if kind == "vertices":
            return value
        if kind == "side":
            return selections.side(value)
        if kind == "all":
            return lambda X: np.ones(len(X), bool)
        return getattr(selections, kind)(**value.given())


class Naming:
    """Mixin for tables that name a body."""

    solid: str | None
    cloth: str | None

    @property
    def key(self) -> str:
        """Key that names the body."""
        return "cloth" if self.cloth is not None else "solid"

    @property
    def body(self) -> str | None:
        """Body name, None if omitted."""
        return self.solid if self.cloth is None else self.cloth


class OfBody(Naming, Table):
    solid: StrictStr | None = Field(
        None, description="Name of the solid; optional if the scene has one body."
    )
    cloth: StrictStr | None = Field(None, description="Name of the cloth, instead of a solid.")

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        if self.solid is not None and self.cloth is not None:
            raise ValueError("must name a solid or cloth, not both.")
        return self


class OnBody(OfBody):
    where: Where | None = Field(None, description="Selected vertices of the body; all by default.")
