"""Bodies, selections and refusals of scenes."""

import numpy as np
import pytest

from supple.materials import Corotated
from supple.meshes import block
from supple.scene import Scene, SceneError, Translate
from supple.scene.selections import box, side, sphere

MATERIAL = Corotated(young=1e3, poisson=0.3)


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def body(scene):
    return scene.add_solid(block((2, 2, 2)), MATERIAL, name="cube")


def test_where_takes_predicates_masks_and_indices(body):
    left = body.where(lambda X: X[:, 0] <= 0)
    assert len(left) == 9
    assert np.all(left.points[:, 0] == 0)
    np.testing.assert_array_equal(body.where(body.points[:, 0] <= 0).indices, left.indices)
    np.testing.assert_array_equal(body.where([5, 2]).indices, [5, 2])
    assert len(body.all) == 27


def test_sets_unite_and_intersect(body):
    left, top = body.where(side("x-")), body.where(side("y+"))
    assert len(left | top) == 15
    edge = left & top
    assert len(edge) == 3
    np.testing.assert_array_equal(edge.points[:, :2], [[0, 1]] * 3)


def test_vertex_rows_count_through_all_bodies(scene, body):
    other = scene.add_solid(block((1, 1, 1)), MATERIAL)
    assert other.name == "solid1"
    assert (other.vertices.start, other.vertices.stop) == (27, 35)
    np.testing.assert_array_equal(other.where([3, 1]).vertices, [30, 28])


def test_box_sphere_and_side_select_points(body):
    X = body.points
    np.testing.assert_array_equal(box((-np.inf, 0.5, -np.inf), (np.inf, 0.5, np.inf))(X), X[:, 1] == 0.5)
    np.testing.assert_array_equal(sphere((0, 0, 0), 0.5)(X), np.linalg.norm(X, axis=1) <= 0.5)
    for axis, name in enumerate("xyz"):
        np.testing.assert_array_equal(side(name + "-")(X), X[:, axis] == 0)
        np.testing.assert_array_equal(side(name + "+")(X), X[:, axis] == 1)


def test_selections_tolerate_rounding(body):
    X = body.points + np.random.default_rng(0).uniform(-1e-8, 1e-8, body.points.shape)
    assert side("z+")(X).sum() == 9
    assert box((0, 0, 0), (0, 1, 1))(X).sum() == 9


@pytest.mark.parametrize(
    ("selection", "sentence"),
    [
        (lambda X: X[:, 0] > 2, "'cube' is empty; the body spans x from 0 to 1, y from 0 to 1"),
        (lambda X: X > 0, r"for each of its 27 vertices, shape \(27,\); got shape \(27, 3\)"),
        (lambda X: X[:, 0], "must be a function of the points that returns a mask"),
        ([0, 1, 27, 30], r"vertices 0 to 26; the selection names \[27, 30\]"),
        ([-1], "vertices 0 to 26"),
        ([4, 5, 4], r"it repeats \[4\]"),
        ("left", "'cube' must be a function .* got 'left'"),
        ([], "is empty"),
    ],
)
def test_wrong_selections_are_refused(body, selection, sentence):
    with pytest.raises(SceneError, match=sentence):
        body.where(selection)


def test_sets_of_different_bodies_cannot_be_combined(scene, body):
    other = scene.add_solid(block((1, 1, 1)), MATERIAL, name="other")
    with pytest.raises(SceneError, match=r"same body .* 'cube' and 'other'"):
        body.all | other.all


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"gravity": (0, -9.81)}, "gravity .* three numbers"),
        ({"gravity": (0, np.inf, 0)}, "gravity .* finite"),
        ({"dt": 0}, "dt .* greater than 0, got 0"),
        ({"dt": np.nan}, "dt .* finite"),
        ({"frames": 0}, "frames must be a whole number of at least 1, got 0"),
        ({"frames": 2.5}, "frames must be a whole number"),
        ({"quasistatic": "no"}, "True or False, got 'no'"),
    ],
)
def test_wrong_clocks_and_gravity_are_refused(options, sentence):
    with pytest.raises(SceneError, match=sentence):
        Scene(**options)


@pytest.mark.parametrize(
    ("mesh", "material", "options", "sentence"),
    [
        ("bunny.mesh", MATERIAL, {}, "needs a TetMesh"),
        (block((1, 1, 1)), Corotated, {}, r"a material with its parameters, for example"),
        (block((1, 1, 1)), MATERIAL, {"density": -1}, "density .* greater than 0, got -1"),
        (block((1, 1, 1)), MATERIAL, {"density": np.inf}, "density .* finite"),
        (block((1, 1, 1)), MATERIAL, {"name": "cube"}, "already a body named 'cube'"),
        (block((1, 1, 1)), Corotated(young=[1.0, 2.0], poisson=0.3), {}, r"each of its 5 tetrahedra; mu has"),
    ],
)
def test_wrong_solids_are_refused(scene, body, mesh, material, options, sentence):
    with pytest.raises(SceneError, match=sentence):
        scene.add_solid(mesh, material, **options)


def test_vertex_has_only_one_pin_motion(scene, body):
    scene.pin(body.where(side("x-")))
    scene.pin(body.where(side("y-")))
    with pytest.raises(SceneError, match=r"9 vertices of 'cube' are already pinned .* vertex 0 at \[0.0"):
        scene.pin(body.where(side("x-")), Translate((1, 0, 0)))
    assert len(scene.pins) == 2


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda scene, body: scene.pin([0, 1]), r"a body or a selection such as body.where"),
        (lambda scene, body: scene.pin(body, (1, 0, 0)), r"for example Translate"),
        (lambda scene, body: Scene().pin(body), "'cube' belongs to another scene; this one has none"),
        (lambda scene, body: scene.add_force(body, (1, 0)), r"total \(3,\) or one for each of the 27"),
        (lambda scene, body: scene.add_force(body, (1, 0, np.nan)), "force .* finite"),
        (lambda scene, body: scene.add_traction(body, (1, 0)), "traction .* three numbers"),
        (
            lambda scene, body: scene.add_traction(body.where([0, 1]), (1, 0, 0)),
            "No surface triangle of 'cube'",
        ),
    ],
)
def test_wrong_pins_and_loads_are_refused(scene, body, act, sentence):
    with pytest.raises(SceneError, match=sentence):
        act(scene, body)
