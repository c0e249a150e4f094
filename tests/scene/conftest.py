"""A fixture that writes scene files."""

import pytest


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "scene.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write
