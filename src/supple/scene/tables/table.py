"""Building blocks of scene tables: numbers within limits, and choices between variants."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from supple.support.arguments import (
    MAX_INTEGER,
    MAX_LENGTH,
    MAX_MAGNITUDE,
    MIN_LENGTH,
    MIN_MAGNITUDE,
    format_value,
)

Number = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=-MAX_MAGNITUDE, le=MAX_MAGNITUDE)]
Positive = Annotated[Number, Field(ge=MIN_MAGNITUDE)]
NotNegative = Annotated[Number, Field(ge=0)]
Coordinate = Annotated[Number, Field(ge=-MAX_LENGTH, le=MAX_LENGTH)]
Length = Annotated[Number, Field(ge=MIN_LENGTH, le=MAX_LENGTH)]
Count = Annotated[int, Field(strict=True, ge=1, le=MAX_INTEGER)]
Index = Annotated[int, Field(strict=True, ge=0, le=MAX_INTEGER)]
Bound = Annotated[float, Field(strict=True)]
Numbers = Annotated[list[Number], Field(min_length=1)]
Vector = Annotated[list[Number], Field(min_length=3, max_length=3)]
Point = Annotated[list[Coordinate], Field(min_length=3, max_length=3)]


FILE = "Its path is relative to the scene file, and may begin with ~ or an environment variable, $NAME/."
"""Remark on file paths, appended to field descriptions."""


def _factors(value: Any) -> Any:
    factors = value if isinstance(value, list) else [value] * 3
    numbers = all(isinstance(f, int | float) and not isinstance(f, bool) for f in factors)
    if not numbers or len(factors) != 3 or not all(MIN_MAGNITUDE <= f <= MAX_MAGNITUDE for f in factors):
        raise ValueError(f"must be one positive number, or three for x, y, z; got {format_value(value)}.")
    return factors


Factors = Annotated[
    list[float],
    BeforeValidator(_factors),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {
                    "type": "array",
                    "items": {"type": "number", "exclusiveMinimum": 0},
                    "minItems": 3,
                    "maxItems": 3,
                },
            ]
        }
    ),
]


def _as_vector(value: Any) -> Any:
    numbers = value if isinstance(value, list) else [value] * 3
    real = all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers)
    if not real or len(numbers) != 3 or not all(abs(n) <= MAX_MAGNITUDE for n in numbers):
        raise ValueError(f"must be one number, or three for x, y, z; got {format_value(value)}.")
    return value


NumberOrVector = Annotated[Vector | Number, BeforeValidator(_as_vector)]
"""Three numbers, or one."""


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    foreign_names: ClassVar[dict[str, str]] = {}
    """Keys of other programs, mapped to the corresponding key of this table."""

    def given(self) -> dict[str, Any]:
        """Return the keys present in the file, as constructor arguments."""
        return {name: value for name, value in self if name in self.model_fields_set}


def _require_one(schema: dict[str, Any], table: type[Choice]) -> None:
    schema["oneOf"] = [{"required": [name]} for name in table.variants()]


class Choice(Table):
    """A table with exactly one of several variants, `{ variant = ... }`, plus optional further keys."""

    model_config = ConfigDict(json_schema_extra=_require_one)
    extra_keys: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def variants(cls) -> list[str]:
        return [name for name in cls.model_fields if name not in cls.extra_keys]

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        named = [name for name in self.variants() if name in self.model_fields_set]
        if len(named) != 1:
            raise ValueError(
                f"must name exactly one of {', '.join(self.variants())}; it names "
                f"{', '.join(named) or 'none'}."
            )
        return self

    @property
    def chosen(self) -> tuple[str, Any]:
        """The named variant and its value."""
        return next((name, getattr(self, name)) for name in self.variants() if name in self.model_fields_set)
