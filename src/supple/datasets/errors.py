"""Errors of data sets and their specs."""

from __future__ import annotations


class DatasetError(ValueError):
    """A store of samples cannot be used as requested."""


class DamagedError(DatasetError):
    """A store is damaged and cannot be opened."""


class SpecError(DatasetError):
    """All mistakes of a spec, one per line: file, field, value and accepted values.

    Attributes:
        mistakes: One sentence per mistake.
    """

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes
