"""Meshes outside of the package: in $SUPPLE_DATA, or in ../shared/meshes next to the repository."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


def real_mesh(name: str) -> Path:
    """Path of a mesh file; skips the calling test if it is missing."""
    path = Path(os.environ.get("SUPPLE_DATA", REPOSITORY.parent / "shared" / "meshes")) / name
    if not path.is_file():
        pytest.skip(f"needs {path}; set SUPPLE_DATA to the folder that has {name}")
    return path
