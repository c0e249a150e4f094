"""The scenes that come with supple."""

from __future__ import annotations

from pathlib import Path


def shipped_scenes() -> dict[str, Path]:
    """Files by name: in an installed package they are within it, in a repository beside the sources."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "scenes", package.parents[1] / "scenes"):
        found = {path.stem: path for path in sorted(folder.glob("*.toml"))}
        if found:
            return found
    return {}
