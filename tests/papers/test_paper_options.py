"""Every option of the papers can be set as text, in scene files and in Python, and docs/papers/options.md
describes its purpose."""

import re
import tomllib
from pathlib import Path

import pytest

import supple
from supple.api.solver_syntax import parse_solver
from supple.solve.call_options import resolve_solver
from supple.solvers import SOLVERS

PAGE = Path(supple.__file__).parents[2] / "docs" / "papers" / "options.md"

if not PAGE.is_file():
    pytest.skip("no sources here", allow_module_level=True)

ROW = re.compile(r"^\| `([a-z_]+(?::[^`]*)?)` \| `(method = [^`]*)` \| `([^`]*)` \| (.+) \|$")
ROWS = [
    match.groups() for line in PAGE.read_text(encoding="utf-8").splitlines() if (match := ROW.match(line))
]

OF_THE_PAPERS = {
    "pbng": {"acceleration", "tied_groups", "hessian"},
    "mpbng": {"coupling"},
    "newton": {"hessian", "rescue", "linear_solver", "linear_iterations", "line_search"},
    "xpbd": {
        "constraints",
        "compliant",
        "primal_residual",
        "attachments_first",
        "pseudo_time",
        "pseudo_damping",
    },
    "block_xpbd": {"ordering", "cluster_size", "vertex_order"},
    "bpxpbd": {"zeta"},
    "fpxpbd": {"newton_steps"},
    "gpbd": {"sweep", "jacobi_weights", "omega"},
    "pbd": {"constraints", "stiffness", "damping"},
}


def scene_file(tmp_path, table):
    file = tmp_path / "scene.toml"
    lines = "\n".join(table.split(", "))
    file.write_text(
        f"""
[[solid]]
mesh = {{ block = {{ cells = [1, 1, 1] }} }}
material = {{ corotated = {{ young = 1e5, poisson = 0.3 }} }}

[[pin]]
where = {{ side = "x-" }}

[solver]
{lines}
"""
    )
    return supple.load_scene(file)


@pytest.mark.parametrize(("typed", "table", "python", "purpose"), ROWS, ids=[row[0] for row in ROWS])
def test_options_as_text_table_and_python_are_equal(typed, table, python, purpose, tmp_path):
    made = eval(python, vars(supple.solvers) | vars(supple))
    assert parse_solver(typed) == made
    assert resolve_solver(None, scene_file(tmp_path, table)) == made
    assert len(purpose) > 20


def test_table_has_every_option_of_the_papers():
    documented_options = {}
    for typed, *_ in ROWS:
        name, *settings = typed.split(":")
        documented_options.setdefault(name, set()).update(setting.split("=")[0] for setting in settings)
    assert documented_options.keys() >= OF_THE_PAPERS.keys() <= SOLVERS.keys()
    for name, options in OF_THE_PAPERS.items():
        assert options <= documented_options[name], name


def test_every_value_of_the_table_is_toml():
    assert len(ROWS) >= 20
    for _, table, *_ in ROWS:
        assert tomllib.loads("\n".join(table.split(", ")))["method"] in SOLVERS


@pytest.mark.parametrize("typed", ["xpbd:primal_residual=kept", "xpbd:compliant=false", "pbng:hessian=exact"])
def test_compare_accepts_every_option(typed):
    scene = supple.Scene(quasistatic=False, dt=0.01)
    body = scene.add_solid(supple.block(1), supple.Corotated(young=1e5, poisson=0.3))
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    (trial,) = supple.compare(scene, parse_solver(typed), max_iterations=3).trials
    assert trial.error is None
    assert trial.report.iterations == 3
