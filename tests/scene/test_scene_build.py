"""Models built from scenes."""

import math

import numpy as np
import pytest

from supple.materials import Corotated, StVK
from supple.meshes import TetMesh, ball, block
from supple.scene import Rotate, Scene, SceneError, Translate, build_model
from supple.scene.selections import side
from supple.terms import TetElasticity, WeakConstraints

SOFT, HARD = Corotated(young=1e3, poisson=0.3), Corotated(young=1e5, poisson=0.4)


def test_vertices_of_bodies_are_consecutive():
    scene = Scene(gravity=(0, 0, 0))
    a = scene.add_solid(block((2, 1, 1)), SOFT, density=10)
    b = scene.add_solid(ball(1.0, 2), SOFT, density=20)
    model = build_model(scene)
    np.testing.assert_array_equal(model.rest[b.vertices], b.points)
    np.testing.assert_array_equal(model.tets[len(a.mesh.tets) :] - b.first, b.mesh.tets)
    assert model.mass.sum() == pytest.approx(10 * a.mesh.volume + 20 * b.mesh.volume)
    assert len(model.pinned) == 0
    assert model.prescribed(1.0).shape == (0, 3)
    assert not model.force.any()


def test_bodies_of_one_material_class_share_a_term():
    scene = Scene(gravity=(0, 0, 0))
    for material in (SOFT, StVK(young=1e3, poisson=0.3), SOFT):
        scene.add_solid(block((1, 1, 1)), material)
    corotated, stvk = build_model(scene).terms
    assert isinstance(corotated, TetElasticity)
    assert corotated.material == SOFT
    assert stvk.material == StVK(young=1e3, poisson=0.3)
    np.testing.assert_array_equal(np.unique(corotated.vertices), [*range(8), *range(16, 24)])
    np.testing.assert_array_equal(np.unique(stvk.vertices), range(8, 16))


def test_different_parameters_become_arrays():
    varied = Corotated(young=np.linspace(1e3, 2e3, 5), poisson=0.3)
    scene = Scene(gravity=(0, 0, 0))
    for material in (SOFT, HARD, varied):
        scene.add_solid(block((1, 1, 1)), material)
    (term,) = build_model(scene).terms
    assert isinstance(term.material, Corotated)
    for parameter in ("mu", "lam"):
        of = lambda material, name=parameter: getattr(material, name)  # noqa: E731
        expected = [*[of(SOFT)] * 5, *[of(HARD)] * 5, *of(varied)]
        np.testing.assert_array_equal(of(term.material), expected)


def test_gravity_forces_and_tractions_add_up():
    scene = Scene(gravity=(0, -10, 0), quasistatic=False)
    body = scene.add_solid(block((3, 3, 3), size=(2, 1, 1)), SOFT, density=5)
    right = body.where(side("x+"))
    scene.add_force(right, (3, 0, 0))
    scene.add_force(body.where([0, 1]), [(0, 0, 1), (0, 0, 2)])
    scene.add_traction(right, (0, 0, 7))
    force = build_model(scene).force
    np.testing.assert_allclose(force.sum(axis=0), [3, -100, 3 + 7 * 1], atol=1e-12)
    np.testing.assert_allclose(force[right.indices, 0], 3 / 16)
    np.testing.assert_allclose(force[[0, 1], 2], [1, 2])
    loaded = np.flatnonzero(force[:, 2])
    np.testing.assert_array_equal(loaded, np.union1d([0, 1], right.indices))


def test_traction_on_a_closed_surface_acts_on_its_area():
    scene = Scene(gravity=(0, 0, 0), quasistatic=False)
    scene.add_traction(scene.add_solid(block((2, 3, 2), size=(1, 2, 3)), SOFT), (1, 0, 0))
    assert build_model(scene).force[:, 0].sum() == pytest.approx(2 * (2 + 3 + 6))


def test_traction_is_limited_to_the_selected_surface():
    scene = Scene(gravity=(0, 0, 0), quasistatic=False)
    body = scene.add_solid(block((4, 4, 4)), SOFT)
    scene.add_traction(body.where(lambda X: (X[:, 0] == 0) & (X[:, 1] <= 0.5)), (0, 6, 0))
    force = build_model(scene).force
    assert force[:, 1].sum() == pytest.approx(3)
    assert np.all(body.points[force[:, 1] > 0, 0] == 0)


def test_pins_are_sorted_and_move():
    scene = Scene()
    a = scene.add_solid(block((1, 1, 1)), SOFT)
    b = scene.add_solid(block((1, 1, 1), origin=(2, 0, 0)), SOFT)
    turn = Rotate((1, 0, 0), (0, 0, 0), 1.0)
    scene.pin(b.where([6, 3]), turn)
    scene.pin(a.where([7, 1]))
    scene.pin(a.where([1, 0]))
    scene.pin(a.where([4]), lambda X, t: X + np.array([0, min(t, 9), 0]))
    model = build_model(scene)
    np.testing.assert_array_equal(model.pinned, [0, 1, 4, 7, 11, 14])
    np.testing.assert_allclose(model.prescribed(0.0), model.rest[model.pinned])
    end = model.rest[model.pinned]
    end[4:] = turn(end[4:], math.inf)
    end[2] += [0, 9, 0]
    np.testing.assert_allclose(model.prescribed(math.inf), end)
    np.testing.assert_array_equal(np.flatnonzero(~model.free), model.pinned)


@pytest.mark.parametrize("motion", [lambda X, t: X[0], lambda X, t: X + t])
def test_custom_motions_must_give_finite_positions(motion):
    scene = Scene()
    scene.pin(scene.add_solid(block((1, 1, 1)), SOFT, name="cube").where([0, 1]), motion)
    with pytest.raises(
        SceneError, match=r"'cube' must give finite positions of shape \(2, 3\); at t = inf s"
    ):
        build_model(scene).prescribed(math.inf)


def test_attachments_become_one_term():
    scene = Scene()
    a = scene.add_solid(block((2, 2, 2)), SOFT)
    b = scene.add_solid(block((3, 3, 3), origin=(0, 1.1, 0)), SOFT)
    scene.pin(b.where(side("y+")))
    scene.attach(a.where(side("y+")), b, stiffness=5)  # closest points are corners and middles of edges
    scene.attach(a.where([0]), (0, 0, 9), stiffness=2)
    model = build_model(scene)
    term = model.terms[-1]
    assert isinstance(term, WeakConstraints)
    assert term.vertices.shape == term.weights.shape == (10, 3)
    np.testing.assert_array_equal(term.vertices[-1], [0] * 3)
    np.testing.assert_array_equal(term.weights[-1], [1, 0, 0])
    C = np.einsum("ks,ksi->ki", term.weights, model.rest[term.vertices]) - term.target
    np.testing.assert_allclose(C, [(0, -0.1, 0)] * 9 + [(0, 0, -9)], atol=1e-12)


def test_scene_needs_bodies_and_free_vertices():
    scene = Scene()
    with pytest.raises(SceneError, match=r"no bodies; add one with add_solid.* or add_cloth"):
        build_model(scene)
    scene.pin(scene.add_solid(block((1, 1, 1)), SOFT))
    with pytest.raises(SceneError, match="All vertices are pinned"):
        build_model(scene)


def two_blocks(**options):
    scene = Scene(**options)
    upper = scene.add_solid(block((1, 1, 1), origin=(0, 1, 0)), SOFT, name="upper")
    lower = scene.add_solid(block((1, 1, 1)), SOFT, name="lower")
    return scene, upper, lower


def test_loaded_unsupported_body_is_refused():
    scene, upper, _ = two_blocks()
    scene.pin(upper.where([0]))
    with pytest.raises(SceneError, match=r"Nothing holds 'lower' .* would fall forever .* quasistatic=False"):
        build_model(scene)


def test_attachments_support_bodies_along_a_path():
    scene, upper, lower = two_blocks()
    scene.attach(lower.where(side("y+")), upper, stiffness=1)
    with pytest.raises(SceneError, match="'upper' and 'lower'"):
        build_model(scene)
    scene.attach(upper.where([0]), stiffness=1)
    build_model(scene)


def test_bodies_fall_in_dynamic_scenes_and_float_without_load():
    falling = build_model(two_blocks(quasistatic=False)[0])
    assert (falling.force[:, 1] < 0).all()
    floating = build_model(two_blocks(gravity=(0, 0, 0))[0])
    assert not floating.force.any()
    assert len(falling.pinned) == len(floating.pinned) == 0


def test_balanced_forces_need_no_support():
    scene, _, lower = two_blocks(gravity=(0, 0, 0))
    scene.add_force(lower.where(side("x-")), (-1, 0, 0))
    scene.add_force(lower.where(side("x+")), (1, 0, 0))
    build_model(scene)
    scene.add_force(lower, (0, 1e-3, 0))
    with pytest.raises(SceneError, match="Nothing holds 'lower'"):
        build_model(scene)


def test_every_component_of_a_mesh_must_be_pinned():
    one = block((1, 1, 1))
    both = TetMesh(np.concatenate([one.points, one.points + 3]), np.concatenate([one.tets, one.tets + 8]))
    scene = Scene()
    body = scene.add_solid(both, SOFT, name="pair")
    scene.pin(body.where([0, 1]), Translate((1, 0, 0)))
    with pytest.raises(SceneError, match="Nothing holds 'pair'"):
        build_model(scene)
