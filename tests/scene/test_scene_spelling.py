"""Spellings of names and keys in scene files: case, aliases, and suggestions."""

import pytest
from scene_texts import PINNED

import supple
from supple.materials import MATERIALS
from supple.scene import SceneFileError, load_scene
from supple.solvers import SOLVERS, find_solver

OBSTACLE = '[[obstacle]]\nname = "ball"\nshape = {{ sphere = {{ radius = 1, {} = [0, -9, 0] }} }}\n'
MOTION = (
    '[[pin]]\nwhere = {{ side = "x+" }}\n'
    "motion = [{{ rotate = {{ axis = [1, 0, 0], angle = 1, {} = [0, 0, 0] }} }}]\n"
)
SELECTION = "[[pin]]\nwhere = {{ sphere = {{ {} = [0, 0, 0], radius = 0.5 }} }}\n"

SPELLED = {
    "obstacle": (PINNED + OBSTACLE.format("centre"), "center"),
    "motion": (PINNED + MOTION.format("centre"), "center"),
    "selection": (PINNED + SELECTION.format("centre"), "center"),
    "material": (
        PINNED.replace(
            "corotated = { young = 1e3,", "muscle = { young = 1e3, strength = 1, fibre = [1, 0, 0],"
        ),
        "fiber",
    ),
    "preset": (
        PINNED.replace("corotated = { young = 1e3, poisson = 0.3 }", "measured = { name = 'fat' }"),
        "preset",
    ),
    "view": (PINNED + "[view]\ncammera = 'front'\n", "camera"),
    "solver": (PINNED + '[solver]\nmethod = "pbng"\nhesian = "exact"\n', "hessian"),
}


@pytest.mark.parametrize("case", SPELLED)
def test_unknown_keys_are_refused_with_a_suggestion(case, tmp_path):
    text, known = SPELLED[case]
    path = tmp_path / "scene.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SceneFileError, match=rf"unknown key; did you mean '{known}'\?"):
        load_scene(path)
    for wrong in ("centre", "fibre", "cammera", "hesian"):
        text = text.replace(wrong, known)
    path.write_text(text.replace("measured", "preset"), encoding="utf-8")
    load_scene(path)


@pytest.mark.parametrize("name", SOLVERS)
def test_solver_names_are_case_insensitive(name):
    for spelled in (name, name.upper(), name.replace("_", ""), SOLVERS[name].__name__):
        assert find_solver(spelled) == (SOLVERS[name], {})


def test_vbd_is_an_alias_in_calls_and_files(tmp_path):
    path = tmp_path / "scene.toml"
    for name in ("vbd", "VBD"):
        assert find_solver(name) == (supple.PBNG, {"hessian": "exact"})
        path.write_text(PINNED + f'[solver]\nmethod = "{name}"\n', encoding="utf-8")
        solver = load_scene(path).solver
        assert (solver.method, solver.options) == ("pbng", {"hessian": "exact"})
    with pytest.raises(ValueError, match=r"no solver 'vdb'; did you mean 'vbd'\?"):
        find_solver("vdb")


@pytest.mark.parametrize(
    "name", ["corotated", "neo_hookean", "stable_neo_hookean", "log_neo_hookean", "stvk"]
)
def test_material_names_are_case_insensitive(name, tmp_path):
    path = tmp_path / "scene.toml"
    for spelled in (name, name.upper(), MATERIALS[name].__name__):
        path.write_text(PINNED.replace("corotated", spelled), encoding="utf-8")
        assert type(load_scene(path).scene.bodies[0].material) is MATERIALS[name]
