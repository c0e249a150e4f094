"""Directional pins: directions, combinations, and refusals."""

import pickle

import numpy as np
import pytest
from problems import face, material
from scipy.spatial.transform import Rotation

import supple
from supple.api.inspect import inspect
from supple.model.dirichlet import DirichletConditions, PinConstraint
from supple.scene import SceneError
from supple.scene.constraints.pins import constrained_directions

OBLIQUE_NORMAL = np.array([1.0, 2.0, 2.0]) / 3
TURNS = np.array([[0.7, -1.1, 0.4], [2.0, 0.3, -0.9], [0, 0, 0.5]])


def scene_of_block(gravity=(0, 0, 0), **changes):
    scene = supple.Scene(gravity=gravity, **changes)
    return scene, scene.add_solid(supple.block(2), material("corotated"))


def constrained_model(*pins):
    """Model with such pins on N vertices of a block's face x = 0, and the constrained directions."""
    scene, body = scene_of_block()
    for options in pins:
        scene.pin(body.where(face(0, 0)), **options)
    model = supple.scene.build_model(scene)
    np.testing.assert_array_equal(model.pinned, body.where(face(0, 0)).vertices)
    return model, model.constraint_projection


@pytest.mark.parametrize(
    ("pins", "N"),
    [
        ([{"axes": "x"}], np.diag([1, 0, 0])),
        ([{"axes": ("z", "x")}], np.diag([1, 0, 1])),
        ([{"normal": (0, 0, -2)}], np.diag([0, 0, 1])),
        ([{"along": (0, 5, 0)}], np.diag([1, 0, 1])),
        ([{"normal": 7 * OBLIQUE_NORMAL}], np.outer(OBLIQUE_NORMAL, OBLIQUE_NORMAL)),
        ([{"along": -OBLIQUE_NORMAL}], np.eye(3) - np.outer(OBLIQUE_NORMAL, OBLIQUE_NORMAL)),
        ([{"axes": "x"}, {"axes": "y"}], np.diag([1, 1, 0])),
        ([{"axes": "xy"}, {"axes": "y"}], np.diag([1, 1, 0])),
        ([{"normal": (1, 0, 0)}, {"normal": (1, 1, 0)}], np.diag([1, 1, 0])),
    ],
)
def test_directions(pins, N):
    model, directions = constrained_model(*pins)
    np.testing.assert_allclose(directions, np.broadcast_to(N, directions.shape), atol=1e-15)
    assert len(model.rollers) == len(model.pinned)
    assert model.free.all()


@pytest.mark.parametrize(
    "pins",
    [
        [{}],
        [{"axes": "zyx"}],
        [{"axes": "x"}, {"axes": "y"}, {"axes": "z"}],
        [{"along": OBLIQUE_NORMAL}, {"normal": OBLIQUE_NORMAL}],
        [{"along": (1, 1, 0)}, {"along": (1, -1, 0)}],
        [{"normal": (1, 0, 0)}, {"normal": (1, 1, 0)}, {"normal": (1, 1, 1)}],
        [{"axes": "y"}, {}],
    ],
)
def test_constraints_in_three_directions_pin_a_vertex(pins):
    model, directions = constrained_model(*pins)
    assert directions is None
    assert len(model.rollers) == 0
    assert not model.free[model.pinned].any()


def test_normals_may_differ_by_vertex():
    """A ring on rollers can rotate and slide along its axis."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.meshes.torus(resolution=2), material("corotated"))
    normals = np.array(body.points)
    normals[:, 2] = 0
    scene.pin(body, normal=normals)
    model = supple.scene.build_model(scene)
    np.testing.assert_allclose(
        np.einsum("kij,kj->ki", model.constraint_projection, normals), normals, atol=1e-12
    )
    assert inspect(scene)["rigid_motions"] == 2
    assert inspect(scene)["pins"][0]["holds"] == "1 of each vertex"


def test_pins_with_separate_motions_hold_separate_directions():
    scene, body = scene_of_block()
    end = body.where(face(0, 1))
    scene.pin(end, axes="x", motion=supple.Translate((0.1, 5, 5)))
    scene.pin(end, normal=(1, 1, 0), motion=supple.Translate((0.3, 0.1, 5)))
    model = supple.scene.build_model(scene)
    np.testing.assert_allclose(model.prescribed(np.inf), end.points + np.array([0.1, 0.3, 0]), atol=1e-15)
    np.testing.assert_allclose(model.prescribed(0.5), end.points + np.array([0.05, 0.15, 0]), atol=1e-15)


def test_compatible_pins_may_overlap():
    """A clamp that pulls in z shares an edge with a fixed plane of symmetry in x."""
    scene, body = scene_of_block()
    scene.pin(body.where(face(0, 0)), axes="x")
    scene.pin(body.where(face(2, 1)), motion=supple.Translate((0, 0, 0.2)))
    model = supple.scene.build_model(scene)
    edge = face(0, 0)(model.rest) & face(2, 1)(model.rest)
    assert not model.free[edge].any()
    x = model.rest.copy()
    model.apply_dirichlet(x, model.prescribed(np.inf))
    np.testing.assert_array_equal(x[edge], model.rest[edge] + [0, 0, 0.2])


@pytest.mark.parametrize("second", [{"along": (0, 0, 1)}, {"axes": "xy"}, {"normal": (1, 1, 0)}], ids=str)
def test_reaction_shares_rotate_with_the_frame(second):
    """A plane of symmetry shares vertices with a rail, two axes or an oblique plane: the first pin takes the
    force along its direction, for any representation of the second."""
    first = np.array([[1.0, 0, 0]])
    other = constrained_directions(*(second.get(name) for name in ("axes", "along", "normal")), 1)
    force = np.array([[3.0, 5.0, 0.0]])
    mine = [[-2.0, 0, 0], [5.0, 5.0, 0]] if "normal" in second else [[3.0, 0, 0], [0, 5.0, 0]]
    where, rest = np.array([0]), np.zeros((1, 3))
    for turn in (np.eye(3), *Rotation.from_rotvec(TURNS).as_matrix()):
        parts = [PinConstraint(where, rest, directions @ turn.T) for directions in (first, other)]
        if "along" in second:
            parts[1] = PinConstraint(where, rest, constrained_directions(None, turn[:, 2], None, 1))
        shares = DirichletConditions(parts).distribute_reactions(force @ turn.T)
        np.testing.assert_allclose(np.concatenate(shares) @ turn, mine, atol=1e-12)


def test_contradictory_pins_are_refused():
    scene, body = scene_of_block()
    scene.pin(body.where(face(0, 0)), axes="x")
    scene.pin(body.where(face(2, 1)), motion=supple.Translate((0.25, 0, 0.2)))
    sentence = (
        r"Pins of 'solid0' contradict each other: at t = .* s the vertex with rest position "
        r"\[0.0, 0.0, 1.0\] has two prescribed positions, 0.00208 m apart along \[1.0, 0.0, 0.0\]. "
        r"Remove one of the pins"
    )
    with pytest.raises(SceneError, match=sentence):
        supple.scene.build_model(scene)
    late, body = scene_of_block(dt=1.0, frames=8)
    late.pin(body.where(face(0, 0)), axes="x")
    late.pin(
        body.where(face(0, 0)),
        normal=(1, 0, 0),
        motion=supple.Translate((0.25, 0, 0), start_time=4, duration=9),
    )
    with pytest.raises(SceneError, match="at t = 6 s"):
        supple.scene.build_model(late)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"axes": ""}, "axes must name some of x, y and z, each once, for example 'xy'; got ''."),
        ({"axes": "xw"}, "axes must name some of x, y and z"),
        ({"axes": "xx"}, "axes must name some of x, y and z, each once"),
        ({"axes": 1}, "axes must name some of x, y and z"),
        ({"axes": ("xy",)}, "axes must name some of x, y and z"),
        ({"axes": ()}, "axes must name some of x, y and z"),
        ({"normal": (0, 0, 0)}, "normal must not be the zero vector"),
        ({"normal": (1, 0)}, "normal must be three numbers"),
        ({"normal": np.ones((4, 3))}, "normal must be three numbers .* or three for each of the 9 vertices"),
        ({"along": (np.nan, 0, 0)}, "along must be finite numbers"),
        ({"axes": "x", "normal": (1, 0, 0)}, "it has axes and normal"),
    ],
)
def test_bad_directions_are_refused(options, sentence):
    scene, body = scene_of_block()
    with pytest.raises(SceneError, match=sentence):
        scene.pin(body.where(face(0, 0)), **options)
    assert not scene.pins


def test_sliding_body_is_refused():
    """Constrained along x only, the body would fall; constrained along y as well, it does not."""
    scene, body = scene_of_block(gravity=(1, -9, 0))
    scene.pin(body.where(face(0, 0)), axes="x")
    with pytest.raises(
        SceneError, match=r"Nothing holds 'solid0' against the forces on it along \(0, -1, 0\)"
    ):
        supple.scene.build_model(scene)
    assert supple.scene.build_model(scene, quasistatic=False).free.all()
    scene.pin(body.where(face(1, 0)), axes="y")
    supple.scene.build_model(scene)
    incline, body = scene_of_block(gravity=(0, -9, 0))
    incline.pin(body, normal=OBLIQUE_NORMAL)
    with pytest.raises(SceneError, match="Nothing holds 'solid0'"):
        supple.scene.build_model(incline)
    with pytest.raises(SceneError, match="Nothing holds 'solid0'"):
        list(supple.equilibria(scene, [supple.Variation(gravity=(0, 0, 1))]))


@pytest.mark.parametrize(
    ("pins", "left"),
    [
        ([], 6),
        ([(0, {"axes": "x"})], 3),
        ([(0, {"axes": "x"}), (1, {"axes": "y"})], 1),
        ([(0, {"axes": "x"}), (1, {"axes": "y"}), (2, {"axes": "z"})], 0),
        ([(0, {"along": (0, 0, 1)})], 1),
        ([(0, {})], 0),
    ],
)
def test_inspect_counts_the_remaining_rigid_motions(pins, left):
    scene, body = scene_of_block()
    for axis, options in pins:
        scene.pin(body.where(face(axis, 0)), **options)
    summary = inspect(scene)
    assert summary["rigid_motions"] == left
    assert [pin["holds"] for pin in summary["pins"]] == [
        {"along": "xy", "axes": options.get("axes")}.get(next(iter(options), ""), "xyz")
        for _, options in pins
    ]


def test_all_vertices_may_be_rollers_but_not_pins():
    scene, body = scene_of_block()
    scene.pin(body, axes="xy")
    assert len(supple.scene.build_model(scene).rollers) == len(body.points)
    scene.pin(body, axes="z")
    with pytest.raises(SceneError, match="All vertices are pinned"):
        supple.scene.build_model(scene)


def test_scenes_with_axes_can_be_pickled():
    scene, body = scene_of_block()
    scene.pin(body.where(face(0, 0)), normal=OBLIQUE_NORMAL)
    again = supple.scene.build_model(pickle.loads(pickle.dumps(scene)))
    model = pickle.loads(pickle.dumps(supple.scene.build_model(scene)))
    np.testing.assert_array_equal(again.constraint_projection, model.constraint_projection)


FILE = """
gravity = [0, 0, 0]
[[solid]]
mesh = {{ block = {{ cells = [2, 2, 2] }} }}
material = {{ corotated = {{ young = 1000, poisson = 0.3 }} }}
[[pin]]
where = {{ side = "x-" }}
{pin}
"""


@pytest.mark.parametrize(
    ("pin", "N"),
    [
        ('axes = "x"', np.diag([1, 0, 0])),
        ('axes = ["x", "y"]', np.diag([1, 1, 0])),
        ("normal = [1, 2, 2]", np.outer(OBLIQUE_NORMAL, OBLIQUE_NORMAL)),
        ("along = [1, 2, 2]", np.eye(3) - np.outer(OBLIQUE_NORMAL, OBLIQUE_NORMAL)),
    ],
)
def test_scene_files_with_axes(tmp_path, pin, N):
    path = tmp_path / "scene.toml"
    path.write_text(FILE.format(pin=pin))
    model = supple.scene.build_model(supple.load_scene(path))
    np.testing.assert_allclose(
        model.constraint_projection, np.broadcast_to(N, model.constraint_projection.shape), atol=1e-15
    )


@pytest.mark.parametrize(
    ("pin", "sentence"),
    [
        ('axes = "q"', r"pin\[0\].axes: axes must name some of x, y and z"),
        ("axes = 3", r"pin\[0\].axes: axes must name some of x, y and z"),
        ("normal = [0, 0, 0]", r"pin\[0\]: normal must not be the zero vector"),
        ("normal = [0, 1]", r"pin\[0\].normal"),
        ('axes = "x"\nalong = [0, 1, 0]', r"pin\[0\]: .*it has axes and along"),
        ('axis = "x"', r"pin\[0\].axis: .*axes"),
    ],
)
def test_bad_scene_files_are_refused(tmp_path, pin, sentence):
    path = tmp_path / "scene.toml"
    path.write_text(FILE.format(pin=pin))
    with pytest.raises(supple.scene.SceneFileError, match=sentence):
        supple.load_scene(path)


def test_start_keeps_constrained_coordinates_at_rest(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(FILE.format(pin='axes = "x"') + "[initial]\nscramble = { seed = 1 }\n")
    file = supple.load_scene(path)
    model = supple.scene.build_model(file)
    start = file.initial_positions(model)
    np.testing.assert_array_equal(start[model.rollers, 0], 0)
    assert np.abs(start - model.rest)[model.rollers, 1:].max() > 0.1
