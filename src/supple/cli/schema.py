"""supple schema: the format of scene files, for editors."""

from __future__ import annotations

import typer

from supple.cli.speech import Json


def schema(json: Json = False) -> None:
    """Print the JSON schema of scene files."""
    from supple.io.results import to_json
    from supple.scene import scene_schema

    typer.echo(to_json(scene_schema()))
