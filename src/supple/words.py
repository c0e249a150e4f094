"""Words of sentences."""

from __future__ import annotations

import re


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """1 iteration, 1,234 iterations; plural: where it is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def shorten_words(text: str, most: int = 300) -> str:
    """Cut words that are longer than most letters in the middle, such as a key of a damaged file."""
    kept = (most - 1) // 2
    return re.sub(rf"\S{{{most + 1},}}", lambda word: f"{word[0][: most - 1 - kept]}…{word[0][-kept:]}", text)


def say_seconds(seconds: float) -> str:
    """0.037 s, 42 s, 3 min, 2.5 h"""
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def say_cells(scene: dict[str, int]) -> str:
    """1,140 tetrahedra, 512 triangles: of counts with the keys tets and, in newer files, triangles"""
    tets, triangles = scene["tets"], scene.get("triangles", 0)
    parts = [counted(tets, "tetrahedron", "tetrahedra")] if tets or not triangles else []
    return ", ".join(parts + ([counted(triangles, "triangle")] if triangles else []))
