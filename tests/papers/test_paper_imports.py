"""The reproduction of the papers uses supple's public API, and internals from one module only."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import supple
import supple_papers
from supple_papers import internals

FOLDER = Path(supple_papers.__file__).parent
TREES = {
    path.stem: ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(FOLDER.glob("*.py"))
    if path.stem != "internals"
}

TOP_LEVEL = {
    *supple.__all__,
    *supple.NAMES_OUTSIDE_STAR_IMPORT,
    *supple.NAMESPACES,
    *supple.OPTIONAL_SUBMODULES,
    "__version__",
}
"""Public names of `supple` itself."""

NAMESPACES = {"supple", *(f"supple.{name}" for name in (*supple.NAMESPACES, *supple.OPTIONAL_SUBMODULES))}
"""Public modules."""

MAX_INTERNALS = 27
"""Number of internals. It may only decrease: a new experiment uses public names."""


def public_names(module):
    """Public names of `supple` or of one of its namespaces; empty for internal modules."""
    if module == "supple":
        return TOP_LEVEL
    return {*import_module(module).__all__} if module in NAMESPACES else set()


def used_names(tree):
    """Pairs of module and name of supple that a module imports, or reads as attributes of `supple`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("supple."):
            yield from ((node.module, name.name) for name in node.names)
        elif isinstance(node, ast.Import):
            for name in node.names:
                if name.name.startswith("supple."):
                    yield name.name.rpartition(".")[::2]
        elif isinstance(node, ast.Attribute):
            module, _, name = ast.unparse(node).rpartition(".")
            if module in NAMESPACES:
                yield module, name


def internal_uses(tree):
    return {f"{module}.{name}" for module, name in used_names(tree) if name not in public_names(module)}


@pytest.mark.parametrize("module", TREES)
def test_experiments_use_public_names_only(module):
    assert not internal_uses(TREES[module]), "not public; supple_papers/internals.py has the exceptions"


@pytest.mark.parametrize(
    "code",
    [
        "from supple.problem import Problem",
        "from supple.materials import findings",
        "from supple import Problem",
        "from supple import problem",
        "import supple.problem",
        "def f():\n    from supple.kernels.devices import DEVICES",
        "import supple\nsupple.problem.Problem()",
        "import supple\nsupple.materials.findings",
    ],
)
def test_internals_are_recognized(code):
    assert len(internal_uses(ast.parse(code))) == 1


def test_internals_are_imported_for_types_as_at_run_time():
    tree = ast.parse((FOLDER / "internals.py").read_text(encoding="utf-8"))
    names = [pair for pair in used_names(tree) if pair[0].startswith("supple.")]
    typed = {name: module for module, name in names}
    assert len(typed) == len(names)
    assert typed == internals.MODULES
    assert internals.Problem.__module__ == "supple.problem.problem"
    with pytest.raises(AttributeError, match="no attribute 'Scene'"):
        _ = internals.Scene


def test_internals_are_few_used_and_explained():
    used = {
        name.name
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "supple_papers.internals"
        for name in node.names
    }
    assert used == {*internals.MODULES}
    assert len(used) <= MAX_INTERNALS
    public = {name for space in supple.NAMESPACES for name in getattr(supple, space).__all__} | TOP_LEVEL
    assert not used & public
    assert [name for name in used if f"`{name}`" not in internals.__doc__] == []
