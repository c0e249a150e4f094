"""supple schema: JSON schema of scene files, for editors."""

from __future__ import annotations

from supple.cli.console import Json, answer, refusing


def schema(json: Json = False) -> None:
    """Print the JSON schema of scene files."""
    with refusing(json):
        from supple.scene import scene_schema

        answer(scene_schema())
