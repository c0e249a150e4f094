"""Docstrings of public names: every parameter and every result is described."""

import enum
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import pytest

import supple
from supple.solvers import SOLVERS
from supple.solvers.elementwise.element_run import ElementOptions

SPACES = (*supple.NAMESPACES, "data")
"""Namespaces with public names; `jax` and `torch` need libraries that may be absent."""

PROPERTIES = property | cached_property
"""Members that are described like values, without sections."""

DEFINITIONS = ("psi",)
"""Methods that define a law whose formula is the docstring of its class; callers use `materials.psi`."""

BUILTIN = {inspect.getdoc(kind) for kind in (bool, dict, float, int, list, str, tuple)}
"""Docstrings that properties inherit from the default values of class attributes."""


def public_values() -> dict[str, Any]:
    """Public names of `supple` and of its namespaces, each value once, without constants."""
    names = {name: getattr(supple, name) for name in (*supple.__all__, *supple.NAMES_OUTSIDE_STAR_IMPORT)}
    for space in SPACES:
        module = getattr(supple, space)
        names |= {f"{space}.{name}": getattr(module, name) for name in module.__all__}
    first = {id(value): name for name, value in reversed(names.items()) if is_described(value)}
    return {name: names[name] for name in sorted(first.values())}


def is_described(value: Any) -> bool:
    return inspect.isclass(value) or inspect.isroutine(value)


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class, including those of its base classes in supple."""
    seen = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("supple"):
            continue
        for name, value in vars(base).items():
            described = isinstance(value, PROPERTIES | classmethod | staticmethod) or inspect.isfunction(
                value
            )
            if not name.startswith("_") and name not in (*seen, *DEFINITIONS) and described:
                seen.add(name)
                yield name, value


def documented() -> dict[str, Any]:
    """Public functions, classes, methods and properties; inherited members appear under their base class."""
    found: dict[str, Any] = {}
    owned: set[int] = set()
    for name, value in public_values().items():
        found[name] = value
        for member, raw in members(value) if inspect.isclass(value) else ():
            if id(raw) not in owned:
                owned.add(id(raw))
                found[f"{name}.{member}"] = raw if isinstance(raw, PROPERTIES) else getattr(value, member)
    return found


NAMES = documented()


def test_there_are_public_names():
    assert len(NAMES) > 400
    assert {"equilibrium", "Corotated.example", "scene.Body.masses", "Outcome"} <= NAMES.keys()


def docstring(value: Any) -> str:
    """Own docstring of a class; of other members also the inherited one."""
    text = value.__doc__ if inspect.isclass(value) else inspect.getdoc(value)
    return "" if text is None or text in BUILTIN else text


def sections(text: str) -> dict[str, str]:
    """Sections of a Google-style docstring by title."""
    parts = re.split(r"^(Args|Attributes|Returns|Yields|Raises):\n", text, flags=re.M)
    bodies = [re.split(r"^(?=\S)", part, maxsplit=1, flags=re.M)[0] for part in parts[2::2]]
    return dict(zip(parts[1::2], bodies, strict=True))


def parameters(value: Callable) -> list[str]:
    """Names of the parameters that callers pass; members of an enumeration; none for plain exceptions."""
    if inspect.isclass(value):
        if issubclass(value, enum.Enum):
            return [member.name for member in value]
        if issubclass(value, BaseException) and "__init__" not in vars(value):
            return []
    declared = inspect.isclass(value) and "__signature__" not in vars(value) and vars(value).get("__init__")
    signature = inspect.signature(inspect.unwrap(declared or value))
    return [name for name in signature.parameters if name not in ("self", "cls") and name[0] != "_"]


def returns(value: Callable) -> bool:
    """True for functions and methods with a result."""
    if inspect.isclass(value):
        return False
    annotation = inspect.signature(value).return_annotation
    return annotation not in (None, "None", inspect.Signature.empty)


@pytest.mark.parametrize("name", NAMES)
def test_docstring_is_complete(name):
    value = NAMES[name]
    text = docstring(value)
    assert text, "no docstring"
    if isinstance(value, PROPERTIES):
        return
    found = sections(inspect.cleandoc(text))
    described = found.get("Args", "") + found.get("Attributes", "")
    missing = [
        parameter
        for parameter in parameters(value)
        if not re.search(rf"^    [^:]*\b{parameter}\b[^:]*:", described, re.M)
    ]
    assert not missing, f"parameters without a description: {', '.join(missing)}"
    assert not returns(value) or found.keys() & {"Returns", "Yields"}, "no description of the result"


ELEMENTWISE = [kind for kind in SOLVERS.values() if issubclass(kind, ElementOptions)]


@pytest.mark.parametrize("kind", ELEMENTWISE, ids=lambda kind: kind.name)
def test_shared_options_have_one_description(kind):
    shared = sections(inspect.cleandoc(ElementOptions.__doc__))["Args"].strip()
    assert shared in sections(inspect.cleandoc(kind.__doc__))["Args"]
