"""Valid and distinct names of bodies in files and USD prims."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable


def file_name(name: str) -> str:
    """Replace characters other than letters, digits, '-', '_' and '.'; no leading dot."""
    return re.sub(r"[^\w.-]", "_", name).lstrip(".") or "body"


def distinct(names: Iterable[str], valid: Callable[[str], str]) -> list[str]:
    """Valid names in the same order, with suffixes '_2', '_3', ... for duplicates.

    Names that differ only in case count as duplicates, as on some file systems.
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
