"""Solvers with options in one word: pbng:acceleration=chebyshev:omega=1.7."""

from __future__ import annotations

from dataclasses import fields
from types import NoneType
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from supple.checks import closest
from supple.solvers import SOLVERS, Solver


def parse_solvers(text: str) -> list[Solver]:
    """Solvers separated by commas."""
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise ValueError(f"solvers are names separated by commas, such as 'pbng,newton'; got {text!r}")
    return [parse_solver(word) for word in words]


def parse_solver(text: str) -> Solver:
    """A solver from its name, and from options that follow it as :option=value."""
    name, *settings = text.split(":")
    if name not in SOLVERS:
        raise ValueError(f"there is no solver {name!r}; {closest(name, SOLVERS)}")
    kind: Any = SOLVERS[name]
    options = dict(_option(kind, setting) for setting in settings)
    try:
        return TypeAdapter(kind).validate_python(options)
    except ValidationError as error:
        raise ValueError(f"{text}: {_sentence(error)}") from None


def _option(kind: Any, setting: str) -> tuple[str, str | None]:
    name, equals, value = setting.partition("=")
    known = [field.name for field in fields(kind)]
    if name not in known:
        raise ValueError(f"{kind.name} has no option {name!r}; {closest(name, known)}")
    if not equals:
        raise ValueError(f"{kind.name}:{name} needs a value, as in {kind.name}:{name}=…")
    may_be_none = NoneType in get_args(get_type_hints(kind)[name])
    return name, None if may_be_none and value == "none" else value


def _sentence(error: ValidationError) -> str:
    details = error.errors()[0]
    if details["type"] == "value_error":
        return str(details["ctx"]["error"])
    should = details["msg"].replace("Input should", "should").split(", unable")[0]
    return f"{details['loc'][-1]} {should}, got {details['input']!r}"
