"""supple list, schema, bench and help."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import typer
from cli_scenes import SAG, supple, supple_json, write_scene
from rich.text import Text

import supple as library
from supple.cli import app
from supple.cli.commands.list import SECTIONS
from supple.materials import MATERIALS
from supple.meshes import load_mesh
from supple.scene.contact_settings import Method
from supple.solve.integrators import INTEGRATORS
from supple.solvers import SOLVERS

REPOSITORY = Path(__file__).resolve().parents[2]


def test_list_describes_every_name(tmp_path):
    (tmp_path / "scenes").mkdir()
    write_scene(tmp_path / "scenes", SAG, "sag.toml")
    listing = supple_json("list")
    names = {section: [entry["name"] for entry in entries] for section, entries in listing.items()}
    assert re.findall("[a-z]+", SECTIONS.replace(" or ", " ")) == list(listing), "help names every section"
    assert names["materials"] == list(MATERIALS)
    assert names["solvers"] == list(SOLVERS)
    assert {"translate", "rotate", "twist", "scale", "keyframes"} == set(names["motions"])
    assert {"block", "ball", "torus"} == set(names["meshes"])
    assert names["contact"] == list(get_args(Method))
    assert names["integrators"] == list(INTEGRATORS)
    assert {".mesh", ".msh", ".vtk", ".vtu", ".node", ".ele", ".obj", ".stl", ".ply", ".off"} == set(
        names["files"]
    )
    assert {"usd", "glb", "ply", "obj", "pc2", "npz", "zarr", "vtu"} == set(names["exports"])
    assert listing["scenes"] == [{"name": "scenes/sag.toml", "description": "Sagging block"}]
    assert all(entry["description"] for entries in listing.values() for entry in entries)


def test_list_shows_solver_options_with_defaults():
    (pbng,) = (entry for entry in supple_json("list", "solvers")["solvers"] if entry["name"] == "pbng")
    options = {option["name"]: option for option in pbng["options"]}
    acceleration = options["acceleration"]
    assert (acceleration["type"], acceleration["default"]) == (
        "none | sor | chebyshev | anderson | paper_sor | paper_chebyshev",
        library.PBNG().acceleration.kind,
    )
    by_name = {kind["name"]: kind["options"] for kind in acceleration["kinds"]}
    assert [(o["name"], o["default"]) for o in by_name["sor"]] == [("omega", library.solvers.SOR().omega)]
    assert [o["name"] for o in by_name["chebyshev"]] == ["rho", "gamma", "first_iteration"]
    printed = supple("list", "solvers").stdout
    assert "acceleration" in printed
    assert "chebyshev" in printed


def test_list_descriptions_are_full_sentences():
    listing = supple_json("list")
    for entry in listing["materials"] + listing["solvers"]:
        assert entry["description"].endswith("."), entry["description"]
        options = list(entry.get("options", []))
        for kind in [kind for option in options for kind in option.get("kinds", [])]:
            options += [kind, *kind["options"]]
        for option in options:
            assert option["description"].endswith("."), option


def test_published_schema_is_up_to_date():
    published = (REPOSITORY / "docs" / "scene.schema.json").read_text(encoding="utf-8")
    printed = supple("schema")
    assert printed.exit_code == 0
    assert published == printed.stdout, "run: supple schema > docs/scene.schema.json"
    assert json.loads(published)["title"] == "supple scene"


@pytest.mark.parametrize("solver", SOLVERS)
def test_bench_sweep_covers_every_solver(solver):
    rows = supple_json(
        "bench", "sweep", "--cells", "4", "--solver", solver, "--precision", "float64", "--repeats", "2"
    )
    assert (rows["solver"], rows["material"], rows["precision"]) == (solver, "corotated", "float64")
    assert (rows["vertices"], rows["tets"]) == (125, 320)
    colors = {"pbng": 5, "mpbng": 5, "hybrid": 5, "newton": 0}.get(solver)
    assert rows["colors"] == colors if colors is not None else 30 < rows["colors"] < 50
    assert 0 < rows["relative_residual"] < 1
    free_updates = 4 * 320 - 2 * updates_of_a_face(4)
    assert rows["visits"] == free_updates
    assert rows["threads"] >= 1
    assert 0 < rows["ms_min"] <= rows["ms_per_sweep"]
    assert rows["setup_seconds"] > 0
    assert rows["compile_seconds"] >= 0
    assert rows["machine"]["cores"] >= 1


def test_bench_sweep_takes_solver_options():
    small = ("--cells", "4", "--precision", "float64", "--repeats", "1")
    clusters = supple_json("bench", "sweep", *small, "--solver", "xpbd:ordering=clusters")
    assert clusters["options"]["ordering"] == "clusters"
    assert clusters["colors"] < supple_json("bench", "sweep", *small, "--solver", "xpbd")["colors"]
    assert "ms per sweep" in supple("bench", "sweep", *small).stdout


def updates_of_a_face(cells: int) -> int:
    mesh = library.block(cells)
    return int((mesh.points[mesh.tets][..., 0] == 0).sum())


def test_version():
    assert supple("--version").stdout == f"supple {library.__version__}\n"


def help_texts(command) -> list[str]:
    """Help texts of a command, its subcommands and their options."""
    texts = [command.help, *(getattr(option, "help", None) for option in command.params)]
    below = getattr(command, "commands", {}).values()
    return [text for text in texts if text] + [text for other in below for text in help_texts(other)]


def test_help_escapes_rich_markup():
    """Rich would parse text in square brackets as markup."""
    texts = help_texts(typer.main.get_command(app))
    assert len(texts) > 60
    for text in texts:
        printed = Text.from_markup(text).plain
        assert printed == text.replace("\\[", "[")
        assert not any("  " in line.strip() for line in printed.splitlines())
    message = " ".join(supple("mesh", "--help").stdout.replace("│", " ").split())
    assert "Edge length of the tetrahedra [m]" in message


def test_help_imports_no_drawing_library():
    drawing = {"pyvista", "vtkmodules", "matplotlib"}
    code = f"import sys, supple.cli; print([name for name in {drawing} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_written_frame_loads_as_mesh(tmp_path):
    supple_json("run", write_scene(tmp_path, SAG), "--no-picture")
    assert load_mesh(tmp_path / "results" / "scene" / "frame_0001.vtu").n_tets == 135


def test_help_imports_no_numerical_library():
    code = "import sys, supple.cli; print([m for m in ('numba', 'numpy', 'pydantic') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_public_names_resolve_in_any_import_order():
    """A loaded module of the same name does not hide a public function."""
    code = """
from supple.api.compare import Trial
import supple, types
found = {name: getattr(supple, name) for name in supple.__all__}
assert not any(isinstance(thing, types.ModuleType) for thing in found.values()), found
assert set(supple.__all__) <= set(dir(supple))
assert supple.materials.MATERIALS
try:
    supple.blok
except AttributeError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "module 'supple' has no attribute 'blok'\n"


@pytest.mark.parametrize("command", ["run", "dataset run", "papers"])
def test_help_is_wrapped_at_the_terminal_width(command, monkeypatch):
    """Line breaks of the source do not show."""
    monkeypatch.setenv("COLUMNS", "80")
    printed = Text.from_ansi(supple(*command.split(), "--help").stdout).plain
    for paragraph in re.split(r"\n\s*\n", printed.split("╭")[0].split("Usage:")[1].strip()):
        assert all(len(line.rstrip()) > 60 for line in paragraph.splitlines()[:-1]), paragraph
