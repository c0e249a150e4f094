"""Solver options as plain data and as text, for reports, scene files, labels and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from supple.solvers.base import Solver, idle_options


def option_names(kind: type) -> list[str]:
    """Option names of a solver class or of a part class, such as an acceleration."""
    return [option.name for option in fields(kind)]


def plain_options(solver: Any) -> dict[str, Any]:
    """Return all options of a solver in JSON form, which its constructor and scene files accept."""
    return {name: _plain(getattr(solver, name), name in solver.parts) for name in option_names(type(solver))}


def changed_options(solver: Solver) -> dict[str, Any]:
    """Return the non-default options of a solver in scene file form, excluding those without effect."""
    changed = {
        name: _brief(value) if name in solver.parts else value
        for name, value in _iter_changed(solver)
        if value is not None or name in solver.parts
    }
    idle = idle_options(type(solver), changed)
    return {name: value for name, value in changed.items() if name not in idle}


def typed_options(solver: Solver) -> dict[str, Any]:
    """Return the non-default options of a solver and its parts as one flat dictionary.

    Example: {"omega": 1.5} for `PBNG(acceleration=SOR(omega=1.5))`; the class of the part is not included.
    """
    typed: dict[str, Any] = {}
    for name in solver.parts:
        typed |= dict(_iter_changed(getattr(solver, name)))
    return typed | {name: v for name, v in changed_options(solver).items() if name not in solver.parts}


def solver_label(solver: Solver) -> str:
    """Return the solver name with its non-default options.

    Examples are "pbng", "pbng chebyshev", "pbng sor omega=1.5" and "bpxpbd zeta=0.9".
    """
    words = [solver.name]
    for name, value in _iter_changed(solver):
        if name in solver.parts:
            words += [kind_of(value), *_words(_iter_changed(value))]
        else:
            words += _words([(name, value)])
    return " ".join(words)


def part_with(kind: type[Solver], option: str) -> tuple[str, list[str]] | None:
    """Find the solver part that accepts an option: "acceleration" for "omega", for example.

    Returns:
        Name of the part and the names of its classes that have the option; None if there is no such part.
    """
    for part, classes in kind.parts.items():
        names = [name for name, one in classes.items() if option in option_names(one)]
        if names:
            return part, names
    return None


def _iter_changed(component: Any) -> Iterator[tuple[str, Any]]:
    """Yield non-default options of a solver or part; None yields nothing."""
    for option in () if component is None else fields(component):
        value = getattr(component, option.name)
        if value != option.default:
            yield option.name, value


def kind_of(part: Any) -> str:
    """Name of a solver part; None is called "none"."""
    return "none" if part is None else part.kind


def _plain(value: Any, is_part: bool) -> Any:
    if not is_part:
        return value
    options = {} if value is None else {name: getattr(value, name) for name in option_names(type(value))}
    return {"kind": kind_of(value), **options}


def _brief(part: Any) -> Any:
    """Return the name of a part with default options, otherwise a table."""
    changed = dict(_iter_changed(part))
    return {"kind": kind_of(part), **changed} if changed else kind_of(part)


def _words(options: Any) -> list[str]:
    return [value if isinstance(value, str) else f"{name}={value}" for name, value in options]
