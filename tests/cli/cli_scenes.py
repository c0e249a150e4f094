"""Small scene files, and calls of the command line on them."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from supple.cli import app

_BLOCK = """
[[solid]]
name = "block"
mesh = { block = { cells = [3, 3, 3] } }
material = { corotated = { young = 1e4, poisson = 0.3 } }
density = 100

[[pin]]
where = { side = "x-" }
"""

SAG = "title = 'Sagging block'\n" + _BLOCK + "[stop]\ntolerance = 1e-6\n"

SWING = "quasistatic = false\ndt = 0.02\nframes = 6\n" + _BLOCK + "[stop]\ntolerance = 1e-8\n"

STIFFENS = SWING.replace(
    "[stop]", "[[vary]]\nparameter = 'young'\nramp = { times = [0, 0.12], fractions = [1, 4] }\n[stop]"
)

STRETCH = (
    "gravity = [0, 0, 0]\ndt = 0.25\nframes = 4\n"
    + _BLOCK
    + """
[[pin]]
where = { side = "x+" }
motion = [{ translate = { offset = [0.5, 0, 0] } }]

[solver]
method = "pbng"
acceleration = "chebyshev"

[stop]
tolerance = 1e-8
"""
)


def write_scene(folder: Path, text: str, name: str = "scene.toml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def supple(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def supple_json(*arguments: str, exit_code: int = 0) -> dict[str, Any]:
    result = supple(*arguments, "--json")
    assert result.exit_code == exit_code, result.output
    return json.loads(result.stdout)
