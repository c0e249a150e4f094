"""Who imports whom."""

import ast
from pathlib import Path

import pytest

import supple

ROOT = Path(supple.__file__).parent


IMPORTERS = {
    "view": {"runs", "datasets", "papers", "live", "cli", "showing.py"},
    "runs": {"datasets", "live", "cli", "showing.py"},
    "live": {"cli"},
    "cli": set(),
}
"""Who may import what faces the user, beside itself: only what is to the right of it, and `showing`, which is
the door to pictures and saved runs from Python."""


def imported(path):
    """The modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "supple":
            yield from (f"supple.{name.name}" for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


@pytest.mark.parametrize("layer", ["solvers", "scene", "io"])
def test_linear_algebra_knows_nothing_to_its_right(layer):
    """But for the types of what it is given."""
    for path in (ROOT / "linear").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        at_import = [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
        wrong = [name for name in at_import if f"{name}.".startswith(f"supple.{layer}.")]
        assert not wrong, f"{path.name} imports {', '.join(wrong)}"


@pytest.mark.parametrize("layer", IMPORTERS)
def test_what_faces_the_user_is_imported_by_no_layer_to_its_left(layer):
    assert (ROOT / layer).is_dir()
    for path in ROOT.rglob("*.py"):
        where = path.relative_to(ROOT)
        if where.parts[0] not in {layer, *IMPORTERS[layer]}:
            wrong = [name for name in imported(path) if f"{name}.".startswith(f"supple.{layer}.")]
            assert not wrong, f"{where} imports {', '.join(wrong)}"


ORDER = [
    {"kernels", "checks", "words", "naming", "memory", "input_files", "compute"},
    {"algebra"},
    {"contact"},
    {"materials"},
    {"terms"},
    {"ordering"},
    {
        "meshes",
        "model",
        "state",
        "evaluation",
        "cloth_figures",
        "cell_figures",
        "fibre_figures",
        "holding",
        "grip",
        "barrier_grip",
        "barrier_start",
        "reactions",
    },
    {"problem"},
    {"linear"},
    {"solvers"},
    {
        "scene",
        "embedding",
        "springs",
        "solver_text",
        "weak_contact",
        "face_contact",
        "barrier_contact",
        "apart_report",
        "standing",
        "pushing_apart",
        "grid",
    },
    {
        "ending",
        "finishing",
        "solving",
        "progress",
        "certifying",
        "stop",
        "continuation",
        "stepping",
        "pace",
        "integrating",
        "grid_stepping",
        "asking",
        "report",
        "apart_report",
        "magnitudes",
    },
    {
        "simulate",
        "evaluating",
        "modes",
        "keeping",
        "equilibria",
        "precompile",
        "copies",
        "driving",
        "stepper",
        "compare",
        "bench",
        "inspection",
        "interop",
    },
    {"gradients"},
    {"jax", "torch"},
    {"io"},
    {"view"},
    {"runs"},
    {"datasets", "data"},
    {"showing"},
    {"papers"},
    {"live"},
    {"cli"},
]
"""From left to right: what stands together may import each other and what is to the left."""


def room(name):
    """The place in the order of a module such as supple.kernels.pack; None for what is not in it."""
    part = name.split(".")[1] if name.startswith("supple.") else None
    return next((k for k, rooms in enumerate(ORDER) if part in rooms), None)


def test_everything_has_its_place():
    parts = {path.relative_to(ROOT).with_suffix("").parts[0] for path in ROOT.rglob("*.py")}
    without = {part for part in parts if room(f"supple.{part}") is None}
    assert without == {"__init__", "public"}, "which have all that is public"


def test_nothing_imports_what_is_to_its_right():
    seen = 0
    for path in ROOT.rglob("*.py"):
        where = path.relative_to(ROOT)
        here = room(f"supple.{where.with_suffix('').parts[0]}")
        if here is None:
            continue
        found = [name for name in imported(path) if (room(name) or 0) > here]
        wrong = [name for name in found if (where.name, name) not in EXCEPTIONS]
        assert not wrong, f"{where} imports {', '.join(wrong)}"
        seen += 1
    assert seen > 150


EXCEPTIONS = {
    ("model.py", "supple.embedding"),  # for types
    ("compute.py", "supple.solvers"),  # for types
    ("bench.py", "supple.io.machine"),  # which names the machine and knows nothing of files
}
