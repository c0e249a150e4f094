"""Unique names for NamedTuple classes."""

from __future__ import annotations

_owners: dict[str, type] = {}


def name_apart(cls: type) -> None:
    """Append a number to a class name already used by another class: Gent_2 after Gent.

    Numba identifies the types of kernel arguments by class name and member types. Without unique names, a
    user's material with the name of a built-in one, or a class redefined in a notebook, would run the code of
    the first class of that name.
    """
    name, number = cls.__name__, 2
    while _owners.setdefault(cls.__name__, cls) is not cls:
        cls.__name__ = f"{name}_{number}"
        number += 1
