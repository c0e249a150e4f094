"""What can be wrong with data sets and what describes them, in sentences."""

from __future__ import annotations


class DatasetError(ValueError):
    """A store of samples cannot be used as asked."""


class DamagedError(DatasetError):
    """A store cannot be opened, though it is one."""


class SpecError(DatasetError):
    """All mistakes of one spec, one per line: file, field, what was given, what would be right."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes
