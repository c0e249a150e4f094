"""Who imports whom."""

import ast
from pathlib import Path

import pytest

import supple

ROOT = Path(supple.__file__).parent


def imported(path):
    """The modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


@pytest.mark.parametrize("top", ["cli", "live"])
def test_what_faces_the_user_is_imported_by_no_other_layer(top):
    """The command line may import all, and nothing imports it; the live page is imported by it alone."""
    within = {"cli": ["cli"], "live": ["cli", "live"]}[top]
    inside = [ROOT / name for name in within]
    for path in ROOT.rglob("*.py"):
        if not any(folder in path.parents for folder in inside) and path.name != "__main__.py":
            wrong = [name for name in imported(path) if f"{name}.".startswith(f"supple.{top}.")]
            assert not wrong, f"{path.relative_to(ROOT)} imports {', '.join(wrong)}"
