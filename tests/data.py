"""Real meshes, not part of the package: in $SUPPLE_DATA, or in ../shared/meshes next to the repository."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


def data(name: str) -> Path:
    """The path of a data file; skips the calling test when it is absent."""
    path = Path(os.environ.get("SUPPLE_DATA", REPOSITORY.parent / "shared" / "meshes")) / name
    if not path.is_file():
        pytest.skip(f"needs {path}; set SUPPLE_DATA to the folder that has {name}")
    return path
