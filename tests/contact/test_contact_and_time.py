"""Contact and what else there is: precisions, evaluation, steppers that go back, motions that go on."""

import numpy as np
import pytest

import supple

SOFT = supple.Corotated(young=1e5, poisson=0.3)


def pressed(contact, gap=0.002):
    """Two blocks that are pushed into each other."""
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


def test_bodies_touch_in_single_precision():
    result = supple.equilibrium(pressed("weak"), supple.PBNG(), tolerance=1e-3, precision="float32")
    assert result.report.ok
    assert result.report.met.contacts > 0


def test_pressure_in_single_precision():
    scene = supple.Scene(gravity=(0, 0, 0))
    ball = scene.add_cloth(
        supple.sphere(1.0, 2), supple.PlaneStressNeoHookean(young=1e5, poisson=0.3), density=1
    )
    scene.add_pressure(ball, 5.0)
    result = supple.equilibrium(scene, tolerance=1e-3, precision="float32", distance=None)
    assert np.linalg.norm(result.positions, axis=1).mean() > 1


@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_contacts_are_found_where_bodies_are(friction):
    """The same forces, whether a solve has found them or somebody asks for them at its positions."""
    scene = pressed(supple.Contact("weak", friction=friction))
    result = supple.equilibrium(scene, supple.PBNG(), tolerance=1e-6, distance=None)
    known, found = result.evaluate(), supple.evaluate(scene, result.positions)
    free, most = result.model.free, np.abs(known.internal_force).max()
    assert np.abs(known.net_force[free]).max() < 1e-3 * most
    assert np.abs(found.net_force[free]).max() < 0.1 * most


def test_forces_of_a_barrier_are_those_of_a_result():
    scene = pressed("barrier", gap=0.06)
    result = supple.equilibrium(scene)
    with pytest.raises(ValueError, match=r"results have them: result.evaluate\(\)"):
        supple.evaluate(scene, result.positions)
    known = result.evaluate()
    assert np.abs(known.net_force[result.model.free]).max() < 1e-2 * np.abs(known.internal_force).max()


@pytest.mark.parametrize("copies", [None, 2])
def test_obstacles_go_back_with_a_stepper(copies):
    sim = supple.Stepper(on_belt(), copies=copies)
    first = [np.array(sim.step().positions) for _ in range(4)]
    sim.reset()
    again = [np.array(sim.step().positions) for _ in range(4)]
    np.testing.assert_allclose(first, again, atol=1e-12)
    if copies:
        np.testing.assert_allclose(first[-1][0], first[-1][1], atol=1e-12)


def test_obstacles_go_on_with_a_motion():
    whole = list(supple.simulate(on_belt(), frames=6, tolerance=1e-6))
    rest = list(supple.simulate(on_belt(), frames=6, tolerance=1e-6, start=whole[2].state, first_frame=4))
    for a, b in zip(whole[3:], rest, strict=True):
        np.testing.assert_allclose(a.positions, b.positions, atol=1e-12)
    assert whole[-1].positions[:, 0].mean() > whole[0].positions[:, 0].mean()
