"""Classes of the same name, told apart."""

from __future__ import annotations

_owners: dict[str, type] = {}


def name_apart(cls: type) -> None:
    """Give a class whose name another one has already the name with a number: Gent_2 after Gent.

    When a kernel is called, Numba knows a named tuple by the name of its class and the types of its members.
    Without this, a material called as one of ours, or one that was edited and defined again in a notebook,
    would compute what the first of its name does.
    """
    name, number = cls.__name__, 2
    while _owners.setdefault(cls.__name__, cls) is not cls:
        cls.__name__ = f"{name}_{number}"
        number += 1
