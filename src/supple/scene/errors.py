"""Scene errors with actionable messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class SceneError(ValueError):
    """Invalid or incomplete scene description.

    Args:
        sentence: Message.
        at: Entry of the scene file with the error, if there is one.
    """

    def __init__(self, sentence: str, at: str | None = None) -> None:
        super().__init__(sentence)
        self.at = at


@contextmanager
def about(at: str) -> Iterator[None]:
    """Assign errors raised in this context to a scene file entry."""
    try:
        yield
    except SceneError as error:
        error.at = error.at or at
        raise


class SceneFileError(SceneError):
    """All errors of one scene file, one per line: file, field, given value and accepted values.

    Args:
        mistakes: Messages, one per error.

    Attributes:
        mistakes: Messages, one per error.
    """

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes
