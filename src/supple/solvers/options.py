"""Options of solvers as plain data, and in words: for reports, scene files, labels and what is typed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from supple.solvers.solver import Solver, idle_options


def option_names(kind: type) -> list[str]:
    """The options of a kind of solver, or of a part of one."""
    return [option.name for option in fields(kind)]


def plain_options(solver: Any) -> dict[str, Any]:
    """All options of a solver, as JSON and scene files have them and as its class takes them back."""
    return {name: _plain(getattr(solver, name), name in solver.parts) for name in option_names(type(solver))}


def changed_options(solver: Solver) -> dict[str, Any]:
    """The options of a solver that are not the default, as scene files have them, without those that do
    nothing beside the others."""
    changed = {
        name: _brief(value) if name in solver.parts else value
        for name, value in _changed(solver)
        if value is not None or name in solver.parts
    }
    idle = idle_options(type(solver), changed)
    return {name: value for name, value in changed.items() if name not in idle}


def typed_options(solver: Solver) -> dict[str, Any]:
    """The changed options of a solver and of its parts, as they are typed one after the other; which parts
    these are is not among them."""
    typed: dict[str, Any] = {}
    for name in solver.parts:
        typed |= dict(_changed(getattr(solver, name)))
    return typed | {name: v for name, v in changed_options(solver).items() if name not in solver.parts}


def solver_label(solver: Solver) -> str:
    """pbng, pbng chebyshev, pbng sor omega=1.5, bpxpbd zeta=0.9: the name, and the options that are not the
    default."""
    words = [solver.name]
    for name, value in _changed(solver):
        if name in solver.parts:
            words += [kind_of(value), *_words(_changed(value))]
        else:
            words += _words([(name, value)])
    return " ".join(words)


def part_with(kind: type[Solver], option: str) -> tuple[str, list[str]] | None:
    """The option of a solver whose kinds have another option, and these kinds: where "omega" belongs, for
    example; None where nowhere."""
    for part, kinds in kind.parts.items():
        having = [name for name, one in kinds.items() if option in option_names(one)]
        if having:
            return part, having
    return None


def _changed(thing: Any) -> Iterator[tuple[str, Any]]:
    """Options that are not the default; none of no part."""
    for option in () if thing is None else fields(thing):
        value = getattr(thing, option.name)
        if value != option.default:
            yield option.name, value


def kind_of(part: Any) -> str:
    """The name of a part of a solver; "none" where there is none."""
    return "none" if part is None else part.kind


def _plain(value: Any, is_part: bool) -> Any:
    if not is_part:
        return value
    options = {} if value is None else {name: getattr(value, name) for name in option_names(type(value))}
    return {"kind": kind_of(value), **options}


def _brief(part: Any) -> Any:
    """The name of a part that is as it is by default, else a table."""
    changed = dict(_changed(part))
    return {"kind": kind_of(part), **changed} if changed else kind_of(part)


def _words(options: Any) -> list[str]:
    return [value if isinstance(value, str) else f"{name}={value}" for name, value in options]
