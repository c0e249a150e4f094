"""Scene files: what they say, and every mistake provoked once."""

import json
import tomllib
from pathlib import Path
from typing import get_args, get_type_hints

import jsonschema
import meshio
import numpy as np
import pytest
import pyvista
from data import data
from fabrics import hylc

from supple.materials import MATERIALS, NeoHookean
from supple.meshes import block, save_mesh
from supple.scene import SceneFileError, build_model, load_scene, scene_schema
from supple.scene.motions import Compose, Keyframes, Rotate, Scale, Translate, Twist
from supple.solvers import SOLVERS

SCENES = sorted((Path(__file__).parents[2] / "scenes").glob("*.toml"))
SOLID = """
[[solid]]
name = "cube"
mesh = { block = { cells = [2, 2, 2] } }
material = { corotated = { young = 1e3, poisson = 0.3 } }
"""
PINNED = SOLID + '\n[[pin]]\nwhere = { side = "x-" }\n'


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "scene.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def cells_inside(surface, length, progress):
    """Tetrahedra of a grid that lie inside a surface, in place of fTetWild's, which take much longer."""
    cells = np.maximum(2, np.ceil(surface.size / length)).astype(int)
    grid = block(cells.tolist(), surface.size, surface.points.min(axis=0))
    centres = pyvista.PolyData(grid.points[grid.tets].mean(axis=1))
    shell = pyvista.PolyData.from_regular_faces(surface.points, surface.triangles)
    inside = centres.select_interior_points(shell, method="cell_locator", check_surface=False)
    return grid.points, grid.tets[inside["selected_points"].astype(bool)]


@pytest.mark.parametrize("path", SCENES, ids=lambda path: path.stem)
def test_the_scenes_of_the_gallery_load_and_fit_the_schema(path, monkeypatch, tmp_path):
    text = path.read_text(encoding="utf-8")
    jsonschema.Draft202012Validator(scene_schema()).validate(tomllib.loads(text))
    if "$SUPPLE_DATA" in text:
        monkeypatch.setenv("SUPPLE_DATA", str(data("armadillo.obj").parent))
        monkeypatch.setattr("supple.meshes.filling._fill", cells_inside)
        monkeypatch.setattr("supple.meshes.filling.cache_folder", lambda: tmp_path)
    if "\nfabric = " in text:
        monkeypatch.setenv("SUPPLE_DATA", str(hylc("materials/satin1.json").parents[2]))
    file = load_scene(path)
    assert file.title
    assert file.stop.tolerance == 1e-4


SURFACE = """
[[solid]]
mesh = { file = "$SHAPES/cube.stl", edge_length = 0.8, scale = 2, translate = [0, 0, 5] }
render = { file = "$SHAPES/cube.stl" }
material = { corotated = { young = 1e3, poisson = 0.3 } }
"""


def write_cube(folder):
    cube = block(1)
    meshio.Mesh(cube.points, [("triangle", cube.surface)]).write(folder / "cube.stl")


def test_surfaces_of_files_are_filled_and_shown(write, tmp_path, monkeypatch):
    pytest.importorskip("pytetwild")
    monkeypatch.setenv("SHAPES", str(tmp_path))
    write_cube(tmp_path)
    (body,) = load_scene(write("quasistatic = false\n" + SURFACE)).scene.bodies
    np.testing.assert_allclose(body.mesh.bounds, [(0, 0, 5), (2, 2, 7)], atol=0.1)
    assert body.mesh.volume == pytest.approx(8, rel=0.05)
    assert body.mesh.n_tets > 40
    assert body.skin.surface.n_triangles == 12
    np.testing.assert_allclose(body.skin.surface.points.min(axis=0), (0, 0, 5))
    np.testing.assert_allclose(body.skin.deform(body.points).max(axis=0), (2, 2, 7), atol=1e-12)


def test_a_render_surface_may_have_its_own_size_and_place(write, tmp_path):
    write_cube(tmp_path)
    text = SOLID + 'render = { file = "cube.stl", scale = [1, 2, 3], translate = [1, 0, 0] }\n'
    (body,) = load_scene(write("quasistatic = false\n" + text)).scene.bodies
    np.testing.assert_allclose(body.skin.surface.points.max(axis=0), (2, 2, 3))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            SURFACE,
            "solid[0].mesh: the environment variable SHAPES is not set; for '$SHAPES/cube.stl' set it to",
        ),
        (SURFACE, "solid[0].render: the environment variable SHAPES is not set"),
        (
            SOLID.replace("} }", "}, edge_length = 0.1 }", 1),
            "solid[0].mesh: edge_length is for a surface file",
        ),
        (SOLID + 'render = { file = "ball.mesh" }', "solid[0].render: "),
        (SOLID + 'render = { file = "nowhere.obj" }', "solid[0].render: There is no surface file"),
    ],
)
def test_mistakes_about_surfaces(write, text, sentence):
    with pytest.raises(SceneFileError) as caught:
        load_scene(write(text))
    assert sentence in str(caught.value)


def test_the_gallery_is_there():
    assert len(SCENES) >= 8


def test_all_tables_reach_the_scene(write, tmp_path):
    save_mesh(block((1, 1, 1)), tmp_path / "cube.vtu")
    file = load_scene(
        write("""
title = "Everything"
gravity = [0, 0, -1]
quasistatic = false
dt = 0.25
frames = 3
[[solid]]
name = "a"
mesh = { file = "cube.vtu", scale = 2, translate = [0, 0, 1] }
material = { neo_hookean = { mu = 3, lam = 4 } }
density = 7
[[solid]]
mesh = { torus = { major = 2.0, minor = 0.5, resolution = 1 }, scale = [1, 1, 2] }
material = { linear_elastic = { young = 1, poisson = 0 } }
[[pin]]
solid = "a"
where = { box = { min = [-inf, -inf, 1], max = [inf, inf, 1] } }
[[pin]]
solid = "solid1"
where = { vertices = [2, 1] }
motion = [
  { translate = { offset = [1, 0, 0], start = 1 } },
  { rotate = { axis = [0, 0, 2], centre = [0, 0, 0], angle = 3 } },
  { twist = { axis = [0, 0, 1], centre = [0, 0, 0], angle = 3, duration = 4 } },
  { scale = { factor = 2 } },
  { keyframes = { times = [0, 1], motion = [{ scale = { factor = [1, 2, 3] } }], fractions = [0, 1] } },
  { keyframes = { times = [0, 1], offsets = [[0, 0, 0], [1, 2, 3]] } },
]
[[force]]
solid = "a"
where = { sphere = { centre = [0, 0, 3], radius = 0.1 } }
force = [1, 2, 3]
[[traction]]
solid = "a"
where = { side = "x+" }
traction = [0, 0, 5]
[[attach]]
solid = "a"
where = { vertices = [0] }
stiffness = 10
[[attach]]
solid = "a"
to = { solid = "solid1" }
stiffness = 10
normal = [0, 0, 1]
tangent_stiffness = 2
[[attach]]
solid = "a"
where = { vertices = [0, 1] }
to = { solid = "solid1", where = { vertices = [0, 1] } }
stiffness = 10
keep_offset = true
[[attach]]
solid = "a"
where = { all = true }
to = { points = [[1, 2, 3]] }
stiffness = 10
[solver]
method = "pbng"
acceleration = { kind = "sor", omega = 1.5 }
[stop]
max_iterations = 7
time_budget = 2
""")
    )
    scene = file.scene
    assert (file.title, scene.gravity, scene.quasistatic) == ("Everything", (0, 0, -1), False)
    assert (scene.dt, scene.frames) == (0.25, 3)
    a, ring = scene.bodies
    assert (a.name, a.density, a.material) == ("a", 7, NeoHookean.from_lame(3, 4))
    np.testing.assert_allclose(a.mesh.bounds, [(0, 0, 1), (2, 2, 3)])
    assert ring.density == 1000
    assert ring.mesh.size[2] > 1
    still, moving = scene.pins
    assert still.motion is None
    assert len(still.on) == 4
    zero = (0, 0, 0)
    assert moving.motion == Compose(
        (
            Translate((1, 0, 0), start=1),
            Rotate((0, 0, 2), zero, 3),
            Twist((0, 0, 1), zero, 3, duration=4),
            Scale(2),
            Keyframes(Compose((Scale((1, 2, 3)),)), (0, 1), (0, 1)),
            Keyframes.path((0, 1), [zero, (1, 2, 3)]),
        )
    )
    force, traction = scene.loads
    np.testing.assert_array_equal(force.force, [(1, 2, 3)])
    assert traction.force[:, 2].sum() == pytest.approx(5 * 4)
    at_rest, closest, pairs, points = scene.attachments
    np.testing.assert_array_equal(at_rest.target, a.points[:1])
    np.testing.assert_array_equal(closest.stiffness[0], [2, 2, 10, 0, 0, 0])
    np.testing.assert_allclose(pairs.target, a.points[:2] - ring.points[:2])
    np.testing.assert_array_equal(points.target, [(1, 2, 3)] * 8)
    assert (file.solver.method, file.solver.options) == (
        "pbng",
        {"acceleration": {"kind": "sor", "omega": 1.5}},
    )
    assert file.stop.model_dump(exclude_none=True) == {"max_iterations": 7, "time_budget": 2}
    assert file.start_positions(build_model(scene)) is None


def test_a_short_file_has_the_defaults_of_the_scene(write):
    file = load_scene(write(PINNED))
    assert (file.title, file.scene.gravity, file.scene.quasistatic) == ("scene", (0, -9.81, 0), True)
    assert (file.scene.dt, file.scene.frames, file.solver.method) == (1 / 30, 1, "descent")


def test_scrambled_and_flattened_starts_move_free_vertices_only(write):
    for start in ("scramble = { seed = 3 }", 'flatten = { axis = "y", at = 0.5 }'):
        path = write(f"{PINNED}\n[start]\n{start}")
        file = load_scene(path)
        model = build_model(file.scene)
        positions = file.start_positions(model)
        np.testing.assert_array_equal(positions[model.pinned], model.rest[model.pinned])
        np.testing.assert_array_equal(load_scene(path).start_positions(model), positions)
        free = positions[model.free]
        if "scramble" in start:
            assert np.all((free >= 0) & (free <= 1))
            assert np.linalg.norm(free - model.rest[model.free], axis=1).min() > 1e-3
        else:
            expected = model.rest[model.free]
            expected[:, 1] = 0.5
            np.testing.assert_array_equal(free, expected)


def pinned(**replacements):
    text = PINNED
    for old, new in replacements.items():
        assert old in text
        text = text.replace(old, new)
    return text


MISTAKES = {
    "unknown key": ("grvity = [0, 0, 0]\n" + PINNED, "grvity: unknown key; did you mean 'gravity'?"),
    "unknown deep key": (
        pinned(poisson="poison"),
        "solid[0].material.corotated.poison: unknown key; did you mean 'poisson'?",
    ),
    "unknown material": (
        pinned(corotated="rubber"),
        "solid[0].material.rubber: unknown key; known here: 'corot",
    ),
    "wrong type": (
        'gravity = "down"\n' + PINNED,
        "gravity: got 'down'; it should be a list. Acceleration [m/s²], three numbers.",
    ),
    "wrong number": ("gravity = [0, true, 0]\n" + PINNED, "gravity[1]: got True; it should be a number"),
    "wrong count": ("gravity = [0, 1]\n" + PINNED, "gravity: got [0, 1]; it should have 3 items, and has 2"),
    "not a whole number": ("frames = 1.5\n" + PINNED, "frames: got 1.5; it should be a whole number"),
    "not a table": (
        SOLID.replace("{ block = { cells = [2, 2, 2] } }", '"block"'),
        "solid[0].mesh: got 'block'; it should be a table",
    ),
    "not finite": ("dt = nan\n" + PINNED, "dt: got nan; it should be a finite number"),
    "missing key": (
        SOLID.replace("mesh =", "# mesh ="),
        "solid[0].mesh: is missing. Its rest shape, e.g. { block",
    ),
    "single brackets": (
        PINNED.replace("[[pin]]", "[pin]"),
        "pin: got {'where': {'side': 'x-'}}; it should be a list. Write [[pin]]",
    ),
    "incompressible": (
        pinned(**{"0.3": "0.5"}),
        "solid[0].material.corotated.poisson: got 0.5; it should be less than 0.5. Poisson's ratio",
    ),
    "half of the parameters": (
        pinned(**{", poisson = 0.3": ""}),
        "solid[0].material.corotated: must have either young and poisson, or mu and lam; it has young",
    ),
    "impossible Lamé": (
        pinned(**{"young = 1e3, poisson = 0.3": "mu = 1, lam = -1"}),
        "solid[0].material: Lamé parameters must satisfy",
    ),
    "negative density": (
        SOLID + "density = -10",
        "solid[0].density: got -10; it should be greater than 0. Mass",
    ),
    "zero dt": ("dt = 0\n" + PINNED, "dt: got 0; it should be greater than 0. Time from frame to frame [s]"),
    "two meshes": (
        pinned(**{"[2, 2, 2] }": "[2, 2, 2] }, ball = {}"}),
        "solid[0].mesh: must name exactly one of block, bar, ball, torus, file; it names block, ball",
    ),
    "missing mesh": (
        pinned(**{"block = { cells = [2, 2, 2] }": 'file = "no.mesh"'}),
        "solid[0].mesh: There is no mesh",
    ),
    "impossible mesh": (
        pinned(**{"block = { cells = [2, 2, 2] }": "torus = { major = 1.0, minor = 2.0 }"}),
        "solid[0].mesh: minor must be smaller",
    ),
    "wrong scale": (
        pinned(**{"[2, 2, 2] }": "[2, 2, 2] }, scale = [1, 0, 1]"}),
        "solid[0].mesh.scale: must be one positive number, or three for x, y, z; got [1, 0, 1]",
    ),
    "same name": (PINNED + SOLID, "solid[1].name: There is already a body named 'cube'"),
    "entry that is no table": ("pin = [1]\n" + SOLID, "pin[0]: got 1; it should be a table"),
    "empty list of solids": ("solid = []", "solid: is missing."),
    "no solids": ("gravity = [0, 0, 0]", "solid: is missing. A scene needs at least one [[solid]]"),
    "unknown solid": (
        pinned(where='solid = "cub"\nwhere'),
        "pin[0].solid: there is no solid 'cub'; the scene has 'cube'",
    ),
    "which solid": (
        PINNED + SOLID.replace("cube", "other"),
        "pin[0].solid: is missing. Name one of 'cube', 'other'",
    ),
    "empty selection": (
        pinned(**{'side = "x-"': "sphere = { centre = [5, 5, 5], radius = 1 }"}),
        "pin[0].where: The selection on body 'cube' is empty; the body spans x from 0 to 1",
    ),
    "wrong side": (pinned(**{"x-": "left"}), "pin[0].where.side: got 'left'; it should be 'x-', 'x+'"),
    "wrong vertices": (
        pinned(**{'side = "x-"': "vertices = [99]"}),
        "pin[0].where: Body 'cube' has vertices 0 to 26",
    ),
    "wrong motion": (
        PINNED + "motion = [{ rotate = { axis = [0, 0, 0], centre = [0, 0, 0], angle = 1 } }]",
        "pin[0].motion[0]: axis of Rotate must not be the zero vector",
    ),
    "motion is no list": (
        PINNED + "motion = { translate = { offset = [1, 0, 0] } }",
        "pin[0].motion: got {'translate': {'offset': [1, 0, 0]}}; it should be a list. A list of motions",
    ),
    "wrong keyframes": (
        PINNED + "motion = [{ keyframes = { times = [0, 1], fractions = [0, 1] } }]",
        "pin[0].motion[0].keyframes: must have times and either offsets, or motion and fractions",
    ),
    "pinned twice": (
        PINNED + '[[pin]]\nwhere = { side = "y-" }\nmotion = [{ translate = { offset = [1, 0, 0] } }]',
        "pin[1]: 3 vertices of 'cube' are already pinned with another motion",
    ),
    "no surface": (
        PINNED + "[[traction]]\nwhere = { vertices = [13] }\ntraction = [1, 0, 0]",
        "traction[0]: No surface triangle of 'cube'",
    ),
    "wrong stiffness": (
        PINNED + "[[attach]]\nstiffness = 0",
        "attach[0].stiffness: got 0; it should be greater than 0",
    ),
    "wrong target": (
        PINNED + '[[attach]]\nstiffness = 1\nto = { solid = "wall" }',
        "attach[0].to.solid: there is no solid 'wall'; the scene has 'cube'",
    ),
    "falls": (SOLID, "pin: Nothing holds 'cube' against the forces on it: it would fall forever"),
    "unknown solver": (
        PINNED + '[solver]\nmethod = "pbgn"',
        "solver.method: there is no solver 'pbgn'; did you mean 'pbng'",
    ),
    "unknown option": (
        PINNED + "[solver]\nmethod = 'pbng'\nlinsk = 1",
        "solver.linsk: unknown key; did you mean 'links'?",
    ),
    "option of another solver": (
        PINNED + '[solver]\nacceleration = "sor"',
        'solver.acceleration: is no option of descent, but one of others: write method = "pbng" beside it',
    ),
    "option of a part": (
        PINNED + '[solver]\nmethod = "pbng"\nacceleration = "sor"\nomega = 1.5',
        'solver.omega: is an option of the acceleration: write acceleration = { kind = "sor", omega = 1.5 }',
    ),
    "wrong option type": (
        PINNED + '[solver]\nmethod = "pbng"\nacceleration = { kind = "sor", omega = "big" }',
        "solver.acceleration: omega must lie between 0 and 2, got 'big'",
    ),
    "wrong option": (
        PINNED + '[solver]\nmethod = "pbng"\nacceleration = { kind = "sor", omega = 3 }',
        "solver.acceleration: omega must lie between 0 and 2, got 3",
    ),
    "unknown acceleration": (
        PINNED + '[solver]\nmethod = "pbng"\nacceleration = "cheby"',
        "solver.acceleration: acceleration must be 'none', 'sor', 'chebyshev', 'anderson', 'paper_sor' or "
        "'paper_chebyshev', got 'cheby'",
    ),
    "option of another acceleration": (
        PINNED + '[solver]\nmethod = "pbng"\nacceleration = { kind = "anderson", gamma = 1.0 }',
        "solver.acceleration: the acceleration 'anderson' has no option 'gamma'; known here: 'window'",
    ),
    "acceleration without a kind": (
        PINNED + "[solver]\nmethod = 'pbng'\nacceleration = { window = 5 }",
        "solver.acceleration: acceleration names its kind, as in { kind = 'anderson' }; got {'window': 5}",
    ),
    "text for a flag": (
        PINNED + '[solver]\nmethod = "pbng"\nlinks = "no"',
        "solver.links: links must be True or False, got 'no'",
    ),
    "idle option of another solver": (
        PINNED + '[solver]\nmethod = "gpbd"\nomega = 1.2',
        'solver.omega: does nothing with sweep = "gauss_seidel"; it is for sweep = "jacobi"',
    ),
    "idle option of all elements": (
        PINNED + '[solver]\nmethod = "xpbd"\ncluster_size = 4',
        'solver.cluster_size: does nothing with ordering = "colours"; it is for ordering = "clusters"',
    ),
    "wrong tolerance": (
        PINNED + "[stop]\ntolerance = -1",
        "stop.tolerance: got -1; it should be greater than 0",
    ),
    "two starts": (
        PINNED + '[start]\nscramble = { seed = 1 }\nflatten = { axis = "x" }',
        "start: must name exactly one of scramble, flatten",
    ),
    "not TOML": ("gravity = [0, 0\n" + PINNED, "this is not TOML:"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_with_file_field_and_remedy(write, name):
    text, sentence = MISTAKES[name]
    path = write(text)
    with pytest.raises(SceneFileError) as caught:
        load_scene(path)
    assert caught.value.mistakes == [str(caught.value)], "one mistake, one line"
    assert str(caught.value).startswith(f"{path}: {sentence}")


def test_toml_errors_name_the_line(write):
    with pytest.raises(SceneFileError, match="line 3"):
        load_scene(write("title = 'x'\n\n[[solid]\n"))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SceneFileError, match=r"nowhere\.toml: there is no such scene file"):
        load_scene(tmp_path / "nowhere.toml")


def test_all_mistakes_are_reported_at_once_and_under_their_own_numbers(write):
    path = write(
        """
dt = -1
[[solid]]
name = "bad"
mesh = { file = "no.mesh" }
material = { stvk = { young = 1, poisson = 0.3 } }
density = "light"
[[solid]]
name = "gone"
mesh = { file = "no.mesh" }
material = { stvk = { young = 1, poisson = 0.3 } }
"""
        + SOLID
        + """
[[pin]]
solid = "bad"
[[pin]]
solid = "cube"
were = {}
[[pin]]
solid = "cube"
where = { vertices = [999] }
[[pin]]
solid = "gone"
[[force]]
solid = "unknown"
force = [1, 1, 1]
"""
    )
    with pytest.raises(SceneFileError) as caught:
        load_scene(path)
    fields = {line.removeprefix(f"{path}: ").split(": ")[0] for line in caught.value.mistakes}
    assert fields == {
        "dt",
        "solid[0].density",
        "solid[1].mesh",
        "pin[1].were",
        "pin[2].where",
        "force[0].solid",
    }


def test_the_schema_describes_every_field():
    schema = scene_schema()
    json.dumps(schema)
    jsonschema.Draft202012Validator.check_schema(schema)
    tables = {"scene": schema, **schema["$defs"]}
    undescribed = [
        f"{table}.{name}"
        for table, content in tables.items()
        for name, field in content["properties"].items()
        if not field.get("description")
    ]
    assert undescribed == []
    assert set(schema["$defs"]["Material"]["properties"]) == {*MATERIALS, "measured"}


@pytest.mark.parametrize(
    "name", ["unknown key", "two meshes", "incompressible", "wrong count", "zero dt", "no solids"]
)
def test_editors_see_the_same_mistakes(name):
    wrong = tomllib.loads(MISTAKES[name][0])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(scene_schema()).validate(wrong)
    jsonschema.Draft202012Validator(scene_schema()).validate(tomllib.loads(PINNED))


@pytest.mark.parametrize("kind", SOLVERS.values(), ids=SOLVERS)
def test_what_options_wait_for_is_an_option_that_can_have_that_value(kind):
    hints = get_type_hints(kind)
    for option, (other, value) in kind.only_with.items():
        assert option in hints
        assert value in get_args(hints[other])
