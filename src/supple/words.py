"""Words of sentences."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """1 iteration, 1,234 iterations; plural: where it is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
