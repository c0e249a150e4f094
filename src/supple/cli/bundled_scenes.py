"""Scene files that are installed with supple."""

from __future__ import annotations

from pathlib import Path


def list_scene_files() -> dict[str, Path]:
    """Paths of the bundled scenes by name, in the installed package or in a repository."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "scenes", package.parents[1] / "scenes"):
        scenes = {path.stem: path for path in sorted(folder.glob("*.toml"))}
        if scenes:
            return scenes
    return {}
