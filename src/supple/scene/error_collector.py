"""Collection of scene file errors as sentences with file and field names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from supple.scene.errors import SceneFileError
from supple.support.arguments import MIN_LENGTH, format_value, suggest_name
from supple.support.text import shorten_words

T = TypeVar("T")
Location = tuple[int | str, ...]
Describe = Callable[[Location], tuple[Iterable[str], str]]
"""Maps a location in a file to the known keys there, and to a description of its last key.

For a key of another program, the description names the corresponding key.
"""


class Mistakes:
    """Errors found so far in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[str] = []

    def add(self, field: str, sentence: str) -> None:
        text = shorten_words(f"{field}: {sentence}" if field else sentence)
        self.lines.append(f"{self.path}: {text}")

    def attempt(self, field: str, make: Callable[[], T]) -> T | None:
        """Call `make`; on exceptions, record an error for this field and return None."""
        try:
            return make()
        except (ValueError, OSError) as error:
            self.add(field, str(error))
            return None

    def add_invalid(self, error: ValidationError, describe: Describe, at: Location = ()) -> None:
        """Record pydantic errors of a table at this location."""
        for details in error.errors():
            self.add(format_location((*at, *details["loc"])), _sentence(details, *describe(details["loc"])))

    def raise_any(self) -> None:
        if self.lines:
            raise SceneFileError(self.lines)


def format_location(location: Location) -> str:
    """Format a location: ("solid", 0, "mesh") -> solid[0].mesh"""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def _sentence(details: Any, known: Iterable[str], right: str) -> str:
    location = details["loc"]
    match details["type"]:
        case "extra_forbidden":
            return f"unknown key; {right or suggest_name(str(location[-1]), known)}"
        case "missing":
            return f"is missing. {right}"
        case "value_error":
            return str(details["ctx"]["error"])
        case "list_type" if len(location) == 1 and isinstance(details["input"], dict):
            right = f"Write [[{location[0]}]] with two brackets. {right}"
    return f"got {format_value(details['input'])}; it {_should(details)}. {right}".rstrip()


def _should(details: Any) -> str:
    """Translate pydantic messages to TOML terms."""
    match details["type"]:
        case "model_type":
            return "should be a table, { key = value }"
        case "greater_than_equal" if 0 < details["ctx"]["ge"] <= MIN_LENGTH and details["input"] <= 0:
            return "should be greater than 0"
        case "greater_than_equal":
            return f"should be at least {details['ctx']['ge']:g}"
        case "less_than_equal":
            return f"should be at most {details['ctx']['le']:g}"
        case "finite_number":
            return "should be a finite number"
        case "int_type":
            return "should be a whole number"
        case "bool_type":
            return "should be true or false"
        case "too_short" | "too_long":
            bounds = details["ctx"].get("min_length", 0), details["ctx"].get("max_length", 0)
            return f"should have {max(bounds)} items, but has {details['ctx']['actual_length']}"
        case _:
            return details["msg"].replace("Input should", "should").replace("a valid", "a")


def describe_in(table: type[BaseModel]) -> Describe:
    """Return a function that describes fields of a table, including nested tables."""

    def describe(location: Location) -> tuple[Iterable[str], str]:
        field, parent, meant = None, table, None
        for name in (part for part in location if isinstance(part, str)):
            parent = (_table_in(field.annotation) if field else table) or table
            field = parent.model_fields.get(name)
            meant = getattr(parent, "foreign_names", {}).get(name)
        if field is None:
            return parent.model_fields, f"did you mean {meant!r}?" if meant else ""
        return parent.model_fields, field.description or ""

    return describe


def _table_in(annotation: Any) -> Any:
    """Return the table class inside an annotation such as `list[Pin] | None`."""
    annotation = getattr(annotation, "table", annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_table_in, get_args(annotation))), None)
