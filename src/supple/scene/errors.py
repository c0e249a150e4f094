"""The errors of scenes: sentences a user can act on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class SceneError(ValueError):
    """The description of a scene is wrong or incomplete. at: the entry of a scene file that it is about,
    where it is about one."""

    def __init__(self, sentence: str, at: str | None = None) -> None:
        super().__init__(sentence)
        self.at = at


@contextmanager
def about(at: str) -> Iterator[None]:
    """Whatever is refused inside is about this entry of a scene file."""
    try:
        yield
    except SceneError as error:
        error.at = error.at or at
        raise


class SceneFileError(SceneError):
    """All mistakes of one scene file, one per line: file, field, what was given, what would be right."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes
