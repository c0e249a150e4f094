"""supple schema: JSON schema of scene files, for editors."""

from __future__ import annotations

from supple.cli.console import handle_errors, print_json
from supple.cli.shared_options import Json


def schema(json: Json = False) -> None:
    """Print the JSON schema of scene files."""
    with handle_errors(json):
        from supple.scene import scene_schema

        print_json(scene_schema())
