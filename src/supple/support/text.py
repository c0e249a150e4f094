"""Text formatting: plurals, durations and long words."""

from __future__ import annotations

import re


def pluralize(count: int, noun: str, plural: str | None = None) -> str:
    """Format a count with its noun, such as 1 iteration or 1,234 iterations; `plural` replaces noun + s."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def shorten_words(text: str, limit: int = 300) -> str:
    """Cut words longer than `limit` characters in the middle, such as a key of a damaged file."""
    remaining = (limit - 1) // 2
    return re.sub(
        rf"\S{{{limit + 1},}}",
        lambda word: f"{word[0][: limit - 1 - remaining]}…{word[0][-remaining:]}",
        text,
    )


def format_duration(seconds: float) -> str:
    """Format a duration [s], such as 0.037 s, 42 s, 3 min or 2.5 h."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def format_cell_counts(scene: dict[str, int]) -> str:
    """Format cell counts, such as 1,140 tetrahedra, 512 triangles; older files lack the key triangles."""
    tets, triangles = scene["tets"], scene.get("triangles", 0)
    parts = [pluralize(tets, "tetrahedron", "tetrahedra")] if tets or not triangles else []
    return ", ".join(parts + ([pluralize(triangles, "triangle")] if triangles else []))
