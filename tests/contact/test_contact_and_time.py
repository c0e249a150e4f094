"""Contact combined with precisions, evaluation, steppers and resumed motions."""

import numpy as np
import pytest

import supple

SOFT = supple.Corotated(young=1e5, poisson=0.3)


def pressed(contact, gap=0.002):
    """Two blocks pushed into each other."""
    scene, soft = supple.Scene(gravity=(0, 0, 0), contact=contact), supple.Corotated(young=1e5, poisson=0.0)
    low = scene.add_solid(supple.block(2), soft, name="low")
    high = scene.add_solid(supple.block(3).translated((0, 1 + gap, 0)), soft, name="high")
    scene.pin(low.where(lambda X: X[:, 1] <= 0))
    scene.pin(high.where(lambda X: X[:, 1] > 2), supple.Translate((0, -0.1 - gap, 0)))
    return scene


def on_belt():
    scene = supple.Scene(gravity=(0, -9.81, 0), quasistatic=False, dt=0.02)
    scene.add_solid(supple.block(1), SOFT, density=1000)
    scene.add_obstacle(supple.Plane(), supple.Translate((2, 0, 0), duration=1), friction=0.6)
    return scene


def test_contact_in_single_precision():
    result = supple.equilibrium(pressed("weak"), solver=supple.PBNG(), tolerance=1e-3, precision="float32")
    assert result.report.ok
    assert result.report.contact.bodies.count > 0


def test_contact_pressure_in_single_precision():
    scene = supple.Scene(gravity=(0, 0, 0))
    ball = scene.add_cloth(
        supple.meshes.sphere(1.0, 2),
        supple.materials.PlaneStressNeoHookean(young=1e5, poisson=0.3),
        density=1,
    )
    scene.add_pressure(ball, 5.0)
    result = supple.equilibrium(scene, tolerance=1e-3, precision="float32", position_tolerance=None)
    assert np.linalg.norm(result.positions, axis=1).mean() > 1


@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_contacts_are_detected_at_evaluated_positions(friction):
    """A solve and an evaluation at its positions give equal forces."""
    scene = pressed(supple.Contact("weak", friction=friction))
    result = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-6, position_tolerance=None)
    known, evaluation = result.evaluate(), supple.evaluate(scene, result.positions)
    free, most = result.model.free, np.abs(known.internal_force).max()
    assert np.abs(known.net_force[free]).max() < 1e-3 * most
    assert np.abs(evaluation.net_force[free]).max() < 0.1 * most


def test_barrier_forces_are_evaluated_at_any_positions():
    """Result, positions and saved frame give the same forces."""
    scene = pressed("barrier", gap=0.06)
    result = supple.equilibrium(scene)
    known, evaluation = result.evaluate(), supple.evaluate(scene, result.positions)
    most = np.abs(known.internal_force).max()
    np.testing.assert_allclose(evaluation.internal_force, known.internal_force, atol=1e-9 * most)
    assert np.abs(evaluation.net_force[result.model.free]).max() < 1e-2 * most
    np.testing.assert_allclose(evaluation.reactions["pin0"].force, known.reactions["pin0"].force, rtol=1e-6)
    assert evaluation.energy == pytest.approx(known.energy)


def test_barrier_evaluation_refuses_intersections():
    scene = pressed("barrier", gap=0.06)
    x = np.concatenate([body.points for body in scene.bodies])
    x[scene.bodies[1].vertices] -= (0, 0.3, 0)
    with pytest.raises(ValueError, match="'low' and 'high' intersect"):
        supple.evaluate(scene, x)


def test_evaluations_of_many_frames_share_one_problem(monkeypatch):
    import supple.postprocess.evaluate as evaluating

    scene, made = pressed("weak"), []
    model = supple.scene.build_model(scene)
    make = evaluating.make_problem
    monkeypatch.setattr(evaluating, "make_problem", lambda *given: made.append(1) or make(*given))
    x = model.rest.copy()
    forces = []
    for _ in range(4):
        x[27:, 1] -= 0.002
        forces.append(np.abs(supple.evaluate(model, x).internal_force[:27]).max())
    assert len(made) == 1
    assert forces[0] < forces[1] < forces[2] < forces[3]
    force = supple.evaluate(scene, x).internal_force
    np.testing.assert_allclose(supple.evaluate(model, x).internal_force, force, atol=1e-9 * forces[-1])


@pytest.mark.parametrize("batch_size", [None, 2])
def test_reset_stepper_resets_obstacles(batch_size):
    sim = supple.Stepper(on_belt(), batch_size=batch_size)
    first = [np.array(sim.step().positions) for _ in range(4)]
    sim.reset()
    again = [np.array(sim.step().positions) for _ in range(4)]
    np.testing.assert_array_equal(first, again)
    if batch_size:
        np.testing.assert_array_equal(first[-1][0], first[-1][1])


def test_resumed_motion_resumes_obstacles():
    uninterrupted = list(supple.simulate(on_belt(), frames=6, tolerance=1e-6))
    rest = list(
        supple.simulate(on_belt(), frames=6, tolerance=1e-6, initial=uninterrupted[2].state, first_frame=4)
    )
    for a, b in zip(uninterrupted[3:], rest, strict=True):
        np.testing.assert_array_equal(a.positions, b.positions)
    assert uninterrupted[-1].positions[:, 0].mean() > uninterrupted[0].positions[:, 0].mean()
