"""Base classes of tables that name a body."""

from __future__ import annotations

from typing import Self

from pydantic import Field, StrictStr, model_validator

from supple.scene.tables.selections import Where
from supple.scene.tables.table import Table


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
