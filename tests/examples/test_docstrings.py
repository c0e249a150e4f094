"""Code in the docstrings of public names runs."""

import ast
import doctest
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
import trimesh
from problems import face, material

import supple
from supple.meshes.skinning import VisibleSurface


def public_members() -> dict[str, object]:
    """Public names of `supple` and of its namespaces."""
    public = {name: getattr(supple, name) for name in supple.__all__}
    spaces = ("io", "loads", "materials", "meshes", "motions", "shapes", "solvers")
    for space in (getattr(supple, name) for name in spaces):
        public |= {name: getattr(space, name) for name in space.__all__}
    return public


def documented() -> Iterator[str]:
    """Docstrings of all public names and their members."""
    for public_value in public_members().values():
        members = vars(public_value).items() if inspect.isclass(public_value) else ()
        public = [value for key, value in members if not key.startswith("_")]
        yield from filter(None, (inspect.getdoc(one) for one in (public_value, *public)))


def snippets() -> list[str]:
    """Complete code in backquotes; plain names are excluded."""
    words = {" ".join(word.split()) for text in documented() for word in re.findall("`([^`]+)`", text)}
    return sorted(word for word in words if is_code(word))


def is_code(text: str) -> bool:
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    is_name = isinstance(tree.body, ast.Name)
    return not is_name and not any(
        isinstance(node, ast.Constant) and node.value is ... for node in ast.walk(tree)
    )


def test_examples_are_found():
    assert 'save_frames(scene, supple.simulate(scene), "usd", "animation")' in snippets()
    assert "Anderson(window=10)" in snippets()


@pytest.mark.parametrize("code", snippets())
def test_example(code, tmp_path, monkeypatch):
    if '"usd"' in code:
        pytest.importorskip("pxr")
    scene = supple.Scene(frames=2)
    body = scene.add_solid(supple.block(1), material("corotated"))
    scene.pin(body.where(face(0, 0)))
    trimesh.creation.box().export(tmp_path / "armadillo.obj")
    monkeypatch.chdir(tmp_path)
    known = public_members()
    known |= {"supple": supple, "np": np, "VisibleSurface": VisibleSurface, "tets": body.mesh.tets}
    known |= {"scene": scene, "body": body, "where": body.where, "top": body.where(face(1, 1))}
    known |= {"result": supple.equilibrium(scene), "point_data": {}, "a": supple.Translate((1, 0, 0))}
    known |= {"mesh": body.mesh.with_data(cell_data={"region": np.arange(5) % 3})}
    known |= {"b": supple.Scale(2.0), "results": [known["result"]]}
    assert eval(code, known) is not None


def passages() -> list[str]:
    """Indented code of several lines."""
    blocks = [dedent(part) for text in documented() for part in re.findall(r"\n\n((?: {4}.*\n?)+)", text)]
    return [part for part in blocks if "supple." in part]


def test_passages_are_found():
    assert len(passages()) >= 2


@pytest.mark.parametrize("code", passages())
def test_passage(code):
    scene = supple.Scene(quasistatic=False)
    body = scene.add_solid(supple.block(2), material("corotated"))
    scene.pin(body.where(face(0, 0)))
    names = {"supple": supple, "scene": scene, "body": body}
    exec(code, names)
    assert np.isfinite(names["sim"].positions).all()
    assert names["sim"].index > 0


ROOT = Path(supple.__file__).parent
PROMPTS = [path for path in ROOT.rglob("*.py") if ">>>" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", PROMPTS, ids=lambda path: path.stem)
def test_prompts(path):
    """Outputs after >>> must match; machine-dependent examples are only parsed."""
    module = import_module(".".join(("supple", *path.relative_to(ROOT).with_suffix("").parts)))
    examples = [example for test in doctest.DocTestFinder().find(module) for example in test.examples]
    assert examples
    assert doctest.testmod(module).failed == 0
