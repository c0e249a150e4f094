"""Solvers with options as text: pbng:acceleration=sor:omega=1.7."""

from __future__ import annotations

from types import NoneType
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from supple.solvers import Solver, find_solver
from supple.solvers.base import idle_options
from supple.solvers.options import kind_of, option_names, part_with
from supple.support.arguments import suggest_name


def split_names(text: str) -> list[str]:
    """Split solvers at commas."""
    names = [word.strip() for word in text.split(",")]
    if not all(names):
        raise ValueError(f"solvers are names separated by commas, such as 'pbng,newton'; got {text!r}")
    return names


def parse_solver(text: str, idle: bool = False) -> Solver:
    """Parse a solver name followed by options as `:option=value`.

    Options of a component, such as the acceleration, follow in the same way.

    Args:
        text: Solver as text.
        idle: Accept options without effect.

    Returns:
        The solver.

    Raises:
        ValueError: A name, option or value is unknown or invalid.
    """
    name, *settings = text.split(":")
    kind, chosen = find_solver(name)
    given = {option: str(value) for option, value in chosen.items()} | dict(
        _setting(kind, setting) for setting in settings
    )
    own = {name: value for name, value in given.items() if name in option_names(kind)}
    foreign = {name: value for name, value in given.items() if name not in own}
    try:
        own = {name: v if name in kind.parts else _read(kind, name, v) for name, v in own.items()}
        solver = kind(**own | _parts(kind(**own), foreign, idle))
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from None
    without_effect = {} if idle else idle_options(kind, own)
    for option, sentence in without_effect.items():
        raise ValueError(f"{text}: {option} {sentence}.")
    return solver


def _setting(kind: type[Solver], setting: str) -> tuple[str, str]:
    """Split an option, such as omega=1.7, into name and value; reject unknown names."""
    name, equals, value = setting.partition("=")
    if name not in option_names(kind) and part_with(kind, name) is None:
        known = [*option_names(kind), *_options_of_parts(kind)]
        raise ValueError(f"{kind.name} has no option {name!r}; {suggest_name(name, known)}")
    if not equals:
        raise ValueError(f"{kind.name}:{name} needs a value, as in {kind.name}:{name}=…")
    return name, value


def _options_of_parts(kind: type[Solver]) -> list[str]:
    """Option names of all solver components."""
    every = (one for names in kind.parts.values() for one in names.values())
    return [name for one in every for name in option_names(one)]


def _parts(solver: Solver, foreign: dict[str, str], idle: bool) -> dict[str, dict[str, Any]]:
    """Tables of a solver's components with their given options; `idle` accepts options without effect."""
    tables: dict[str, dict[str, Any]] = {}
    for option, value in foreign.items():
        part, having = part_with(type(solver), option) or ("", [])
        chosen = kind_of(getattr(solver, part))
        if chosen in having:
            table = tables.setdefault(part, {"kind": chosen})
            table[option] = _read(solver.parts[part][chosen], option, value)
        elif not idle:
            right = " or ".join(f'{part} = "{name}"' for name in having)
            raise ValueError(f'{option} does nothing with {part} = "{chosen}"; it is for {right}.')
    return tables


def _read(kind: type, name: str, text: str) -> Any:
    """Convert option text to a typed value."""
    hint = get_type_hints(kind)[name]
    if text == "none" and NoneType in get_args(hint):
        return None
    try:
        return TypeAdapter(hint).validate_python(text)
    except ValidationError as error:
        details = error.errors()[0]
        should = details["msg"].replace("Input should", "should").split(", unable")[0]
        raise ValueError(f"{name} {should}, got {text!r}") from None
