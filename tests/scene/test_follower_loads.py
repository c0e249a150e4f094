"""Follower tractions, which rotate with their surface."""

import numpy as np
import pytest
from problems import face, rotations

import supple
from supple.scene import SceneError, build_model, load_scene
from supple.scene.loads.follower_tractions import FollowingTraction, frames
from supple.solvers import SOLVERS

KIND = supple.StVK(young=1e5, poisson=0.3)


def plate(traction, cells=(8, 1, 2), following=True, ramp=None, kind=KIND):
    """A strip pinned at one end with a traction on its upper side."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(cells, size=(2, 0.2, 0.5)), kind, density=1.0)
    scene.pin(body.where(face(0, 0)))
    scene.add_traction(body.where(lambda X: X[:, 1] >= 0.2), traction, ramp, following=following)
    return scene, body


def test_follower_forces_rotate_with_the_body_and_scale_with_its_area():
    scene, body = plate((300.0, -200.0, 100.0))
    load = scene.follower_tractions[0]
    for Q in rotations(4):
        turned = load.forces(1.5 * body.points @ Q.T)
        np.testing.assert_allclose(turned, 1.5**2 * load.forces(body.points) @ Q.T, atol=1e-9)
    total_force = load.forces(body.points).sum(axis=0)
    np.testing.assert_allclose(total_force, 2 * 0.5 * np.array([300.0, -200.0, 100.0]), rtol=1e-12)


def test_surface_frames_are_closest_rotations():
    X = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    shear = np.array([[1.0, 0.4, 0], [0, 1, 0], [0, 0, 1]])
    (R,) = frames(X @ shear.T, np.array([[0, 1, 2]]), like=X)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
    angle = np.arctan2(-0.4, 2.0)  # of the polar decomposition
    np.testing.assert_allclose(R[:2, 0], [np.cos(angle), np.sin(angle)], atol=1e-14)


def test_load_stiffness_is_the_derivative_of_the_forces():
    scene, body = plate((300.0, -200.0, 100.0), cells=(2, 1, 1))
    load, h, rng = scene.follower_tractions[0], 1e-6, np.random.default_rng(3)
    x = (1.3 * body.points + 0.05 * rng.normal(size=body.points.shape)) @ rotations(2)[1].T
    blocks = load.stiffness(x)
    for _ in range(5):
        way, change = rng.normal(size=x.shape), np.zeros_like(x)
        for a in range(3):
            np.add.at(change, load.triangles[:, a], np.einsum("kbij,kbj->ki", blocks, way[load.triangles]))
        expected = (load.forces(x + h * way) - load.forces(x - h * way)) / (2 * h)
        np.testing.assert_allclose(change[load.vertices], expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("solver", ["newton", "hybrid", "pbng"])
def test_equilibrium_has_the_forces_of_the_deformed_surface(solver):
    scene, body = plate(-150.0)
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-6, max_iterations=20_000)
    assert result.report.ok
    expected, term = scene.follower_tractions[0].forces(result.positions), result.model.terms[-1]
    np.testing.assert_allclose(term.force, expected, atol=1e-4 * np.abs(expected).max())
    tip = result.positions[body.where(face(0, 2)).indices]
    assert tip[:, 1].min() < -0.5
    dead = supple.equilibrium(plate(-150.0, following=False)[0], solver="newton", tolerance=1e-6)
    assert np.abs(dead.positions - result.positions).max() > 0.02
    evaluation = result.evaluate()
    free = result.model.free
    assert np.abs(evaluation.net_force[free]).max() < 1e-4 * np.abs(evaluation.internal_force).max()
    again = supple.evaluate(scene, result.positions)
    np.testing.assert_allclose(again.net_force, evaluation.net_force, atol=1e-4 * np.abs(expected).max())


def test_follower_traction_on_a_closed_surface_is_a_pressure():
    def block(add):
        scene = supple.Scene(gravity=(0, 0, 0))
        body = scene.add_solid(supple.block(2), KIND, density=1.0)
        for axis in range(3):
            scene.pin(body.where(face(axis, 0)), axes="xyz"[axis])
        add(scene, body)
        return supple.equilibrium(scene, solver="newton", tolerance=1e-8).positions

    rotation = block(lambda scene, body: scene.add_traction(body, 2e4, following=True))
    energy = block(lambda scene, body: scene.add_pressure(body, 2e4))
    np.testing.assert_allclose(rotation, energy, atol=2e-6)


def test_frames_of_a_motion_have_the_ramped_traction():
    scene, _ = plate((0, -1.0, 0), ramp=supple.loads.Ramp(times=(0, 1), fractions=(0, 1)))
    scene.quasistatic, scene.dt, scene.frames = False, 0.5, 2
    totals = [
        f.model.terms[-1].force.sum(axis=0)[1]
        for f in supple.simulate(scene, solver="newton", tolerance=1e-5)
    ]
    np.testing.assert_allclose(totals, [-0.5, -1.0], rtol=1e-2)


def test_scalar_dead_traction_is_along_the_rest_normals():
    scene, _ = plate(-3.0, following=False)
    np.testing.assert_allclose(scene.loads[0].force.sum(axis=0), (0, -3.0, 0), atol=1e-12)
    assert not scene.follower_tractions


def test_mistakes_are_reported():
    with pytest.raises(SceneError, match="following must be True or False"):
        plate(1.0, following=1)
    with pytest.raises(SceneError, match="traction"):
        plate(np.nan)
    scene, body = plate(1.0)
    scene.add_pressure(body.where(lambda X: X[:, 1] >= 0.2), 5.0)
    with pytest.raises(SceneError, match="following=True"):
        build_model(scene)
    result = supple.equilibrium(plate(-1.0)[0], solver="newton", tolerance=1e-6)
    with pytest.raises(supple.gradients.NoGradientError, match="tractions that follow their surface"):
        supple.gradient(result, result.positions)


SCENE = """
[[solid]]
mesh = { block = { cells = [1, 1, 1] } }
material = { stvk = { young = 1e5, poisson = 0.3 } }
[[pin]]
where = { side = "x-" }
[[traction]]
where = { side = "y+" }
traction = -20
following = true
"""


def test_follower_traction_in_a_scene_file(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(SCENE, encoding="utf-8")
    (load,) = load_scene(path).scene.follower_tractions
    assert isinstance(load, FollowingTraction)
    np.testing.assert_allclose(load.traction, np.tile([0, -20.0, 0], (2, 1)), atol=1e-12)


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_supports_follower_tractions_or_names_others(name):
    scene, _ = plate(-1.0, cells=(2, 1, 1), kind=supple.Corotated(young=1e5, poisson=0.3))
    able = {"hybrid", "pbng", "newton", "mpbng"}
    if name in able:
        supple.equilibrium(scene, solver=name, max_iterations=2)
        return
    with pytest.raises(ValueError, match=f"{name} does not support follower tractions; use pbng, "):
        supple.equilibrium(scene, solver=name, max_iterations=2)


def test_comparison_continues_with_supporting_solvers():
    scene, _ = plate(-1.0, cells=(2, 1, 1))
    trials = supple.compare(scene, ["xpbd", "gpbd", "pbng"], max_iterations=2).trials
    assert [trial.report is not None for trial in trials] == [False, False, True]
    assert trials[0].error.startswith("xpbd does not support follower tractions")


def test_reports_note_unknown_stability_under_follower_tractions():
    def noted(following):
        scene = supple.Scene(gravity=(0, 0, 0))
        bar = scene.add_solid(
            supple.block((4, 1, 1), size=(4, 1, 1)), supple.Corotated(young=1e5, poisson=0.3)
        )
        scene.pin(bar.where(lambda X: X[:, 0] <= 0))
        traction = -50.0 if following else (0, -50.0, 0)
        scene.add_traction(bar.where(lambda X: X[:, 1] >= 1), traction, following=following)
        return any(
            "the stability of the equilibrium is unknown" in n for n in supple.equilibrium(scene).report.notes
        )

    assert noted(True)
    assert not noted(False)
