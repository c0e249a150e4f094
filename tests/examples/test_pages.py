"""Python code on the pages of docs/ runs."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from problems import face, material

import supple
from supple.linear import Assembly, Multilevel, pcg
from supple.materials import Parameter
from supple.solve.batch_solve import make_problem

DOCS = Path(__file__).resolve().parents[2] / "docs"


def code_of(page: str) -> str:
    text = (DOCS / page).read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))


def run(code: str, **names):
    exec(code, names)
    return names


def motions(folder: Path) -> None:
    names = run(code_of("motions.md"))
    assert names["frame"].report.ok
    assert names["sim"].time == 0


def live(folder: Path) -> None:
    path = folder / "scene.toml"
    path.write_text(
        "[[solid]]\nmesh = { block = { cells = [4, 4, 4] } }\n"
        "material = { corotated = { young = 1e4, poisson = 0.3 } }\n"
        "[[pin]]\nwhere = { side = 'x-' }\n"
    )
    code = code_of("live.md")
    assert "scenes/twist.toml" in code
    session = run(code.replace("scenes/twist.toml", path.as_posix()))["session"]
    assert session.snapshot.shapes[0].positions.shape == (125, 3)
    assert not session._thread.is_alive()


def datasets(folder: Path) -> None:
    spec = (DOCS.parent / "examples" / "bar_dataset.toml").read_text(encoding="utf-8")
    scene = (DOCS.parent / "scenes" / "bar_gravity.toml").read_text(encoding="utf-8")
    small = scene.replace("[20, 10, 10]", "[3, 2, 2]")
    (folder / "bar.toml").write_text(small, encoding="utf-8")
    spec = spec.replace("../scenes/bar_gravity.toml", "bar.toml").replace("count = 1000", "count = 4")
    (folder / "small.toml").write_text(spec, encoding="utf-8")
    code, before = code_of("datasets.md"), Path.cwd()
    assert "examples/bar_dataset.toml" in code
    os.chdir(folder)
    try:
        names = run(code.replace("examples/bar_dataset.toml", "small.toml"), __name__="__main__")
    finally:
        os.chdir(before)
    assert len(names["data"].ids) == 4
    assert names["data"]["positions"].shape == (4, 36, 3)


def linear(folder: Path) -> None:
    scene = supple.Scene()
    body = scene.add_solid(supple.block(3), material("corotated"))
    scene.pin(body.where(face(0, 0)))
    problem = make_problem(scene, True, supple.Backend())
    known = {"Assembly": Assembly, "Multilevel": Multilevel, "pcg": pcg, "problem": problem}
    names = run(code_of("design/linear.md"), b=np.ones(Assembly(problem).size), **known)
    solution = names["solution"]
    assert np.linalg.norm(names["H"] @ solution.x - names["b"]) < 0.5 * np.linalg.norm(names["b"])
    assert solution.negative is None
    assert solution.ritz.min() > 0


def parameters(folder: Path) -> None:
    muscle = run(code_of("design/parameters.md"), supple=supple, Parameter=Parameter)["Muscle"].example()
    assert muscle.shear == 1e3
    assert muscle.activation == 0


def cloth(folder: Path) -> None:
    names = run(code_of("cloth.md"))
    assert names["result"].report.ok


def materials(folder: Path) -> None:
    names = run(code_of("materials.md"))
    assert supple.scene.build_model(names["scene"]).terms
    assert len(names["robot"].cables) == 2


def psi_only(folder: Path) -> None:
    gent = run(code_of("design/psi_only.md"))["MyGent"](mu=4e4, kappa=1e6)
    assert gent.barrier
    assert gent.Jm == 30


def gradients(folder: Path) -> None:
    names = run(code_of("gradients.md"))
    assert names["height"].body(names["bar"]).young > 0
    assert names["swing"].parameters[names["arm"], "density"] != 0


PAGES = {
    "cloth.md": cloth,
    "datasets.md": datasets,
    "materials.md": materials,
    "design/psi_only.md": psi_only,
    "gradients.md": gradients,
    "motions.md": motions,
    "live.md": live,
    "design/linear.md": linear,
    "design/parameters.md": parameters,
}


@pytest.mark.parametrize("page", PAGES)
def test_page(page, tmp_path):
    PAGES[page](tmp_path)


def test_every_page_with_python_is_tested():
    with_python = {p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md") if "```python" in p.read_text()}
    assert with_python == set(PAGES)
