"""Paths of files that a scene file names."""

from __future__ import annotations

import os
import re
from pathlib import Path

from supple.scene.errors import SceneError


def resolve_path(folder: Path, text: str) -> Path:
    """Resolve a path against a folder.

    `~` and environment variables, $NAME, are expanded.

    Raises:
        SceneError: An environment variable is not set.
    """
    for name in re.findall(r"\$\{?(\w+)\}?", text):
        if name not in os.environ:
            raise SceneError(
                f"the environment variable {name} is not set; for {text!r}, set it to the folder "
                f"that contains {Path(text).name}, for example: export {name}=~/meshes"
            )
    return folder / Path(os.path.expandvars(text)).expanduser()
