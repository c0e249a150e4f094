"""Names of bodies that files and prims can have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable


def file_name(name: str) -> str:
    """Letters, digits, '-', '_' and '.' only, not beginning with a dot."""
    return re.sub(r"[^\w.-]", "_", name).lstrip(".") or "body"


def distinct(names: Iterable[str], valid: Callable[[str], str]) -> list[str]:
    """Valid names in the same order; where two would become the same, '_2', '_3', ... is added.

    Names that differ in capitals only count as the same, as they do for some file systems.
    """
    taken: set[str] = set()
    chosen = []
    for name in map(valid, names):
        candidate, number = name, 1
        while candidate.lower() in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.lower())
        chosen.append(candidate)
    return chosen
