"""Tables of the solution method: [solver] and [stop]."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

from pydantic import (
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    StrictStr,
    ValidatorFunctionWrapHandler,
    model_validator,
)
from pydantic.functional_validators import WrapValidator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from supple.scene.tables.table import Count, Number, Positive, Table
from supple.solvers import DEFAULT_SOLVER, SOLVERS, find_solver


def _parts_of_solvers() -> dict[str, Any]:
    """JSON schemas of solver components given by name or table, such as acceleration."""
    parts = {part: classes for method in SOLVERS.values() for part, classes in method.parts.items()}
    return {part: _part(part, classes) for part, classes in parts.items()}


def _part(part: str, classes: dict[str, type]) -> dict[str, Any]:
    """JSON schema of a component: name, or table { kind = ..., option = ... }."""
    types = {"int": "integer", "float": "number", "bool": "boolean", "str": "string"}
    tables = [
        {
            "type": "object",
            "description": " ".join((kind.__doc__ or "").split()),
            "properties": {
                "kind": {"const": name},
                **{o.name: {"type": types[str(o.type)], "default": o.default} for o in fields(kind)},
            },
            "required": ["kind"],
            "additionalProperties": False,
        }
        for name, kind in classes.items()
    ]
    example = f'e.g. "{next(iter(classes))}", "none", or a table {{ kind = ..., option = ... }}'
    return {
        "anyOf": [{"enum": ["none", *classes]}, *tables],
        "description": f"The {part} of solvers that have one, {example}.",
    }


class Solver(Table):
    """Solver name and options."""

    model_config = ConfigDict(extra="allow")
    method: StrictStr = Field(
        default=DEFAULT_SOLVER.name, description="Name of the solver, e.g. pbng or newton."
    )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        handler.resolve_ref_schema(schema)["properties"] |= _parts_of_solvers()
        return schema

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, given: Any) -> Any:
        """Replace an alias, or a name in another case, by the name of the solver and its options."""
        if not (isinstance(given, dict) and isinstance(given.get("method"), str)):
            return given
        try:
            kind, options = find_solver(given["method"])
        except ValueError:  # the check of the solver names it
            return given
        return options | given | {"method": kind.name}

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


def _limit_or_false(value: Any, validate: ValidatorFunctionWrapHandler) -> float | bool:
    """Accept a limit, or false for no limit; errors mention only limits."""
    return False if value is False else validate(value)


class _FalseToo:
    """JSON schema of limits that accept false."""

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [handler(core_schema), {"const": False, "type": "boolean"}]}


LimitOrFalse = Annotated[Number, Field(gt=0, lt=1), WrapValidator(_limit_or_false), _FalseToo()]
"""A tolerance between 0 and 1, or false to switch it off."""


class StopCriteria(Table):
    """Termination criteria of a solve: the first limit reached ends it."""

    tolerance: LimitOrFalse | None = Field(
        default=None,
        description="Tolerance of the relative residual, between 0 and 1; 1e-4 by default, also together "
        "with other limits; false disables it.",
    )
    max_iterations: Count | None = Field(
        default=None, description="Largest number of iterations of a solve, at least 1."
    )
    time_limit: Positive | None = Field(default=None, description="Time limit of a solve [s], positive.")
    position_tolerance: LimitOrFalse | None = Field(
        default=None,
        description="Largest distance of every body from its equilibrium, relative to its size, required in "
        "addition to the tolerance; 1e-4 in quasistatic scenes by default; false disables it.",
    )
