"""The order of the layers: each package imports only packages to its left."""

import ast
from pathlib import Path

import pytest

import supple

ROOT = Path(supple.__file__).parent

LAYERS = [
    {"support"},
    {"kernels"},
    {"config"},
    {"algebra"},
    {"collision"},
    {"materials"},
    {"terms"},
    {"ordering"},
    {"model"},
    {"meshes"},
    {"problem", "contact.state"},
    {"linear"},
    {"solvers"},
    {"contact"},
    {"postprocess.evaluation", "postprocess.cell_quantities"},
    {"grid"},
    {"scene"},
    {"loads", "motions", "shapes"},
    {"solve"},
    {"postprocess"},
    {"api"},
    {"gradients"},
    {"jax", "torch"},
    {"io"},
    {"view"},
    {"runs"},
    {"datasets"},
    {"data"},
    {"live"},
    {"cli"},
]
"""Packages and modules from left to right; the longest matching name counts. Members of one set may import
each other: a problem owns its contact state."""

TYPE_IMPORTS = {
    ("model.model", "meshes.skinning"),
    ("meshes.skinning", "scene"),
    ("config.stop_criteria", "solvers"),
    ("config.backend", "solvers"),
    ("io", "runs.present"),
    ("view", "runs.present"),
}
"""Imports under `if TYPE_CHECKING` that go to the right."""

EXCEPTIONS = {("api.bench", "io.machine")}
"""Imports to the right: `io.machine` describes the machine and imports `kernels.devices` only."""

FRONT_ENDS = {
    "view": {"runs", "datasets", "live", "cli"},
    "runs": {"datasets", "live", "cli"},
}
"""Packages that may import a front end, besides the front end itself."""

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}
MAPS = {"__init__", "_public"}
"""Modules of public names, which import everything."""


def imported_modules(path):
    """Names of the imported modules of supple without the leading `supple.`, anywhere in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and f"{node.module}.".startswith("supple."):
            for name in node.names:
                full = f"{node.module}.{name.name}".removeprefix("supple.")
                yield full if full in MODULES else node.module.removeprefix("supple").lstrip(".")
        elif isinstance(node, ast.Import):
            yield from (n.name.removeprefix("supple.") for n in node.names if n.name.startswith("supple."))


def layer_of(module):
    """Index of the layer of a module; None for the maps of public names."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        for index, members in enumerate(LAYERS):
            if name in members:
                return index
    return None


def test_every_module_belongs_to_a_layer():
    assert {module for module in MODULES if layer_of(module) is None} == MAPS


def test_every_layer_exists():
    for members in LAYERS:
        for name in members:
            assert name in MODULES, name


@pytest.mark.parametrize("package", sorted({module.split(".")[0] for module in MODULES} - MAPS))
def test_packages_import_only_to_their_left(package):
    wrong, seen = [], 0
    for module, path in MODULES.items():
        if module.split(".")[0] != package:
            continue
        seen += 1
        for target in imported_modules(path):
            allowed = any(
                module == source and f"{target}.".startswith(f"{end}.")
                for source, end in TYPE_IMPORTS | EXCEPTIONS
            )
            if (layer_of(target) or 0) > layer_of(module) and not allowed:
                wrong.append(f"{module} imports {target}")
    assert seen
    assert not wrong, "; ".join(wrong)


def test_type_imports_are_for_types():
    for source, target in TYPE_IMPORTS:
        tree = ast.parse(MODULES[source].read_text(encoding="utf-8"))
        at_import = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
        assert f"supple.{target}" not in at_import


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_front_ends_are_imported_by_front_ends(front_end):
    for module, path in MODULES.items():
        if module.split(".")[0] not in {front_end, *FRONT_ENDS[front_end], *MAPS}:
            wrong = [
                name
                for name in imported_modules(path)
                if name.split(".")[0] == front_end and (module, name) not in TYPE_IMPORTS
            ]
            assert not wrong, f"{module} imports {', '.join(wrong)}"


def test_library_does_not_import_the_experiments_of_the_papers():
    for module, path in MODULES.items():
        assert "supple_papers" not in path.read_text(encoding="utf-8"), module


def test_imports_are_acyclic():
    """Imports at the top of modules form a directed acyclic graph."""
    graph = {}
    for module, path in MODULES.items():
        edges = set()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module and f"{node.module}.".startswith("supple."):
                for name in node.names:
                    full = f"{node.module}.{name.name}".removeprefix("supple.")
                    edges.add(full if full in MODULES else node.module.removeprefix("supple").lstrip("."))
        graph[module] = (edges & set(MODULES)) - {module}
    done = set()

    def visit_module(module, above):
        assert module not in above, " → ".join([*above[above.index(module) :], module])
        if module not in done:
            for target in sorted(graph[module]):
                visit_module(target, [*above, module])
            done.add(module)

    for module in graph:
        visit_module(module, [])
    assert len(done) > 300
