"""Scene files: all tables reach the scene."""

import re
import tomllib

import jsonschema
import numpy as np
import pytest
from fabrics import hylc_file
from real_meshes import real_mesh
from scene_texts import PINNED, SCENES, cells_inside

from supple.materials import NeoHookean
from supple.meshes import block, save_mesh
from supple.scene import build_model, load_scene, scene_schema
from supple.scene.constraints.motions import Compose, Keyframes, Rotate, Scale, Translate, Twist


@pytest.mark.parametrize("path", SCENES, ids=lambda path: path.stem)
def test_gallery_scenes_load_and_fit_the_schema(path, monkeypatch, tmp_path):
    text = path.read_text(encoding="utf-8")
    jsonschema.Draft202012Validator(scene_schema()).validate(tomllib.loads(text))
    if "$SUPPLE_DATA" in text:
        monkeypatch.setenv("SUPPLE_DATA", str(real_mesh("armadillo.obj").parent))
        monkeypatch.setattr("supple.meshes.generators.tetrahedralize._fill", cells_inside)
        monkeypatch.setattr("supple.meshes.generators.tetrahedralize.cache_folder", lambda: tmp_path)
    if "\nfabric = " in text:
        monkeypatch.setenv("SUPPLE_DATA", str(hylc_file("materials/satin1.json").parents[2]))
    file = load_scene(path)
    assert file.title
    assert file.stop.tolerance == 1e-4


def test_durations_of_the_gallery_are_plain_numbers():
    page = (SCENES[0].parents[1] / "docs" / "gallery" / "README.md").read_text(encoding="utf-8")
    seconds = re.findall(r"relative residual \S+, (?:below )?(\S+) s\b", page)
    assert len(seconds) == page.count("<img ")
    assert [text for text in seconds if not re.fullmatch(r"[\d,]+(\.\d+)?", text)] == []


def test_gallery_exists():
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
  { translate = { offset = [1, 0, 0], start_time = 1 } },
  { rotate = { axis = [0, 0, 2], center = [0, 0, 0], angle = 3 } },
  { twist = { axis = [0, 0, 1], center = [0, 0, 0], rate = 3, duration = 4 } },
  { scale = { factor = 2 } },
  { keyframes = { times = [0, 1], motion = [{ scale = { factor = [1, 2, 3] } }], fractions = [0, 1] } },
  { keyframes = { times = [0, 1], offsets = [[0, 0, 0], [1, 2, 3]] } },
]
[[force]]
solid = "a"
where = { sphere = { center = [0, 0, 3], radius = 0.1 } }
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
time_limit = 2
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
            Translate((1, 0, 0), start_time=1),
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
    assert file.stop.model_dump(exclude_none=True) == {"max_iterations": 7, "time_limit": 2}
    assert file.initial_positions(build_model(scene)) is None


def test_short_file_has_the_defaults_of_the_scene(write):
    file = load_scene(write(PINNED))
    assert (file.title, file.scene.gravity, file.scene.quasistatic) == ("scene", (0, -9.81, 0), True)
    assert (file.scene.dt, file.scene.frames, file.solver.method) == (1 / 30, 1, "hybrid")


def test_scrambled_and_flattened_starts_move_only_free_vertices(write):
    for start in ("scramble = { seed = 3 }", 'flatten = { axis = "y", at = 0.5 }'):
        path = write(f"{PINNED}\n[initial]\n{start}")
        file = load_scene(path)
        model = build_model(file.scene)
        positions = file.initial_positions(model)
        np.testing.assert_array_equal(positions[model.pinned], model.rest[model.pinned])
        np.testing.assert_array_equal(load_scene(path).initial_positions(model), positions)
        free = positions[model.free]
        if "scramble" in start:
            assert np.all((free >= 0) & (free <= 1))
            assert np.linalg.norm(free - model.rest[model.free], axis=1).min() > 1e-3
        else:
            expected = model.rest[model.free]
            expected[:, 1] = 0.5
            np.testing.assert_array_equal(free, expected)
