"""Springs of a scene: between vertices, and between vertices and fixed points."""

from dataclasses import replace

import numpy as np
import pytest
from problems import face, material

import supple
from supple import SceneError, block
from supple.api.inspect import inspect
from supple.scene import build_model, load_scene
from supple.scene.constraints.rigid_support import rigid_motions_left
from supple.solvers import SOLVERS
from supple.terms import PointSprings, Springs
from supple.view.renderers.drawing import attachment_lines

STIFF = material("corotated", young=1e7)


def hanging(stiffness=50.0, rest_length=None, quasistatic=True):
    """A stiff block of 2 kg on springs between its upper corners and points above, and a second block on four
    springs below it."""
    scene = supple.Scene(gravity=(0, -10, 0), quasistatic=quasistatic, dt=0.02, frames=3)
    upper = scene.add_solid(block(2), STIFF, density=2, name="upper")
    lower = scene.add_solid(block(2, origin=(0, -1.5, 0)), STIFF, density=2, name="lower")
    top, bottom, below = (
        body.where(lambda X, y=y: (X[:, 1] == y) & ((X[:, ::2] == 0) | (X[:, ::2] == 1)).all(axis=1))
        for body, y in ((upper, 1), (upper, 0), (lower, -0.5))
    )
    scene.add_springs(top, top.points + np.array([0, 1, 0]), stiffness=stiffness, rest_length=rest_length)
    scene.add_springs(bottom, below, stiffness=stiffness, rest_length=rest_length)
    return scene


@pytest.mark.parametrize(("lengths", "drops"), [((None, None), (0.2, 0.3)), ((0.9, 0.4), (0.1, 0.1))])
def test_weights_stretch_springs_by_hookes_law(lengths, drops):
    """Four springs of 50 N/m each carry 40 N and 20 N: by 0.2 m and 0.1 m beyond their rest lengths."""
    scene = hanging()
    scene.springs = [
        springs if length is None else replace(springs, rest_length=np.full(4, length))
        for springs, length in zip(scene.springs, lengths, strict=True)
    ]
    result = supple.equilibrium(scene, tolerance=1e-8)
    assert result.report.ok
    for body, drop in zip(scene.bodies, drops, strict=True):
        moved = (result.positions - result.model.rest)[body.vertices, 1].mean()
        assert moved == pytest.approx(-drop, abs=3e-4)


def test_scene_springs_equal_stepper_springs():
    """Results agree to rounding, since colors differ."""
    scene = hanging(quasistatic=False)
    (pairs,) = (springs for springs in scene.springs if springs.points is None)
    bare = hanging(quasistatic=False)
    bare.springs = [springs for springs in bare.springs if springs.points is not None]
    sim = supple.Stepper(bare, solver="pbng", springs=4, max_iterations=5)
    sim.set_springs(pairs.vertices, pairs.stiffness, pairs.rest_length)
    for frame in supple.simulate(scene, solver="pbng", max_iterations=5):
        np.testing.assert_allclose(frame.positions, sim.step().positions, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_supports_springs_or_names_others(name):
    scene = hanging(quasistatic=False)
    if name == "fpxpbd":
        with pytest.raises(
            ValueError, match=r"fpxpbd does not support springs; use pbng, mpbng, hybrid, newton"
        ):
            next(iter(supple.simulate(scene, solver=name, max_iterations=1)))
        return
    last = [*supple.simulate(scene, solver=name, max_iterations=30)][-1].positions
    bare = hanging(quasistatic=False)
    bare.springs = []
    fallen = [*supple.simulate(bare, solver=name, max_iterations=30)][-1].positions
    assert (last - fallen)[:, 1].mean() > 1e-4


def test_spring_energies_and_forces_follow_hookes_law():
    scene = hanging(rest_length=0.25)
    evaluation = supple.evaluate(scene, build_model(scene).rest)
    stiff, springs, points = evaluation.terms
    np.testing.assert_allclose(points.element_energy, 0.5 * 50 * 0.75**2)
    np.testing.assert_allclose(springs.element_energy, 0.5 * 50 * 0.25**2)
    np.testing.assert_allclose(points.force, [(0, 50 * 0.75, 0)] * 4, atol=1e-9)
    assert stiff.element_energy.sum() == pytest.approx(0, abs=1e-9)
    assert evaluation.body_energies == pytest.approx({"upper": 0, "lower": 0}, abs=1e-9)


def test_pictures_show_springs():
    model = build_model(hanging())
    _, springs, points = model.terms
    assert isinstance(springs, Springs)
    assert isinstance(points, PointSprings)
    moved = model.rest + np.array([1, 0, 0])
    links = attachment_lines(model, moved)
    np.testing.assert_array_equal(links[:4], moved[springs.vertices])
    np.testing.assert_array_equal(links[4:, 0], moved[points.vertices[:, 0]])
    np.testing.assert_array_equal(links[4:, 1], points.points)


def test_springs_support_bodies():
    scene = hanging()
    assert rigid_motions_left(scene, np.empty(0, int), None) == 0
    loose = hanging()
    loose.springs[1:] = []
    with pytest.raises(SceneError, match="Nothing holds 'lower'"):
        build_model(loose)


def test_inspect_counts_springs():
    summary = inspect(hanging())
    assert (summary["springs"], summary["weak_constraints"]) == (8, 0)
    assert summary["orderings"]["spring_colors"] == 2
    assert summary["orderings"]["weak_constraint_colors"] == 0


FILE = """
[[solid]]
name = "upper"
mesh = { block = { cells = [2, 2, 2] } }
material = { corotated = { young = 1e4, poisson = 0.3 } }
[[solid]]
name = "lower"
mesh = { block = { cells = [1, 1, 1], origin = [0, -2, 0] } }
material = { corotated = { young = 1e4, poisson = 0.3 } }
[[spring]]
solid = "upper"
where = { vertices = [2, 8] }
to = { points = [[0, 3, 0]] }
stiffness = 20
[[spring]]
solid = "upper"
where = { vertices = [0, 1] }
to = { solid = "lower", where = { vertices = [2, 3] } }
stiffness = 30
rest_length = 0.5
"""


def test_scene_files_with_springs(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(FILE)
    points, pairs = load_scene(path).scene.springs
    np.testing.assert_array_equal(points.points, [(0, 3, 0)] * 2)
    np.testing.assert_array_equal(points.stiffness, [20, 20])
    np.testing.assert_array_equal(pairs.vertices, [(0, 27 + 2), (1, 27 + 3)])
    np.testing.assert_array_equal(pairs.rest_length, [0.5, 0.5])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("rest_length = 0.5", "rest_length = -1"), r"spring\[1\].rest_length"),
        (("stiffness = 30\n", ""), r"spring\[1\].stiffness.*missing"),
        (
            ('solid = "lower", where', 'solid = "low", where'),
            r"spring\[1\].to.solid: there is no (solid|body) 'low'",
        ),
        (("[2, 3] }", "[2, 3, 4] }"), r"spring\[1\]: .*2 of 'upper' and 3 of 'lower'"),
        (("points = [[0, 3, 0]]", "points = []"), r"spring\[0\]: .*one point"),
        (("to = { points = [[0, 3, 0]] }\n", ""), r"spring\[0\].to.*missing"),
    ],
)
def test_mistakes_in_files_are_named(tmp_path, change, sentence):
    path = tmp_path / "scene.toml"
    path.write_text(FILE.replace(*change))
    with pytest.raises(SceneError, match=sentence):
        load_scene(path)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda s, a, b: s.add_springs(a, b, stiffness=0), r"stiffness \[N/m\] of springs must be at least"),
        (lambda s, a, b: s.add_springs(a, b, stiffness=[1, 2]), "one for each of the 27"),
        (lambda s, a, b: s.add_springs(a, b, stiffness=np.nan), "must be finite"),
        (lambda s, a, b: s.add_springs(a, b, stiffness=1, rest_length=-1), "rest_length .* at least 0"),
        (lambda s, a, b: s.add_springs(a, a, stiffness=1), "Both ends of a spring are vertex 0 of 'upper'"),
        (lambda s, a, b: s.add_springs(a.where([0]), b, stiffness=1), "1 of 'upper' and 27 of 'lower'"),
        (lambda s, a, b: s.add_springs(a, None, stiffness=1), "got None"),
        (lambda s, a, b: s.add_springs(a, [(0, 0, 0)] * 5, stiffness=1), r"\(27, 3\)"),
        (
            lambda s, a, b: s.add_springs(a.where([3]), a.points[3], stiffness=1, rest_length=1),
            "vertex 3 of 'upper' coincide",
        ),
        (lambda s, a, b: s.add_springs(a, hanging().bodies[0], stiffness=1), "another scene"),
    ],
)
def test_wrong_springs_are_refused(wrong, sentence):
    scene = hanging()
    with pytest.raises((SceneError, ValueError), match=sentence):
        wrong(scene, *scene.bodies)


def test_spring_of_zero_length_equals_an_attachment():
    """½ k |x - p|² both ways."""
    results = []
    for tie in ("attach", "add_springs"):
        scene = supple.Scene(gravity=(0, -1, 0))
        body = scene.add_solid(block(2), material("corotated"), density=10)
        given = {"rest_length": 0.0} if tie == "add_springs" else {}
        getattr(scene, tie)(body.where(face(1, 1)), (0.5, 2, 0.5), stiffness=30.0, **given)
        results.append(supple.equilibrium(scene, tolerance=1e-8).positions)
    np.testing.assert_allclose(results[0], results[1], atol=1e-5)
