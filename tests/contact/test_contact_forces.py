"""Contact forces in evaluations: force balance and reactions."""

from itertools import pairwise

import numpy as np
import pytest

import supple


def pressed_block(**obstacle):
    """A block that is held below, and pressed and sheared by a plate from above."""
    scene = supple.Scene(gravity=(0, -9.81, 0))
    mesh = supple.block(cells=(3, 3, 3), size=(1, 1, 1))
    body = scene.add_solid(mesh, supple.Corotated(young=1e5, poisson=0.3), density=1000)
    scene.pin(body.where(lambda X: X[:, 1] <= 0), name="below")
    plate = supple.Plane(normal=(0, -1, 0), point=(0, 1, 0))
    scene.add_obstacle(plate, supple.Translate((0.05, -0.1, 0)), name="plate", **obstacle)
    return scene


@pytest.mark.parametrize("mu", [0.0, 0.1, 2.0])
def test_obstacle_forces_balance_reactions(mu):
    scene = pressed_block(friction=mu)
    result = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-7, position_tolerance=None)
    (plate,) = result.report.contact.obstacles.each
    for evaluation in (result.evaluate(), supple.evaluate(scene, result.positions)):
        scale = np.abs(evaluation.internal_force).max()
        free = result.model.free
        on_bodies = evaluation.obstacle_reactions["plate"]
        assert np.abs(evaluation.net_force[free]).max() < 1e-5 * scale
        np.testing.assert_allclose(on_bodies.force, -np.array(plate.force), atol=1e-4 * scale)
        weight = evaluation.external_force.sum(axis=0)
        reaction = evaluation.reactions["below"]
        np.testing.assert_allclose(reaction.force + on_bodies.force + weight, 0, atol=1e-4 * scale)
        forces = evaluation.contact_force + evaluation.external_force + evaluation.reaction_force
        torque = np.cross(evaluation.positions, forces).sum(axis=0)
        np.testing.assert_allclose(torque, 0, atol=1e-4 * scale)
        assert (on_bodies.force[0] > 1) == (mu > 0), "friction drags along"


def test_obstacles_have_the_time_of_the_evaluation():
    scene = pressed_block()
    half = next(
        supple.simulate(
            scene, solver=supple.PBNG(), dt=0.5, frames=1, tolerance=1e-7, position_tolerance=None
        )
    )
    evaluation = half.evaluate()
    assert evaluation.obstacle_reactions["plate"].force[1] < -500
    assert (
        np.abs(evaluation.net_force[half.model.free]).max() < 1e-5 * np.abs(evaluation.internal_force).max()
    )
    at_end = supple.evaluate(scene, half.positions).obstacle_reactions["plate"].force[1]
    assert at_end < 10 * evaluation.obstacle_reactions["plate"].force[1], "deep inside"


def test_momentum_change_of_a_step_matches_its_evaluation():
    scene = supple.Scene(gravity=(0, -9.81, 0), quasistatic=False, dt=0.01)
    ball = supple.ball(radius=0.5, resolution=3).translated((0, 0.51, 0))
    scene.add_solid(ball, supple.NeoHookean(young=1e4, poisson=0.3), density=100, velocity=(0.5, -2, 0))
    scene.add_obstacle(supple.Plane(), friction=0.3, name="floor")
    frames = list(supple.simulate(scene, solver=supple.PBNG(), frames=6, tolerance=1e-7))
    for before, frame in pairwise(frames):
        evaluation = frame.evaluate()
        change = frame.model.mass @ (frame.velocities - before.velocities) / 0.01
        applied = (evaluation.external_force + evaluation.contact_force).sum(axis=0)
        np.testing.assert_allclose(change, applied, atol=1e-4 * np.abs(evaluation.external_force.sum()))
    assert evaluation.obstacle_reactions["floor"].force[1] > 0


@pytest.mark.parametrize("friction", [0.0, 0.4])
@pytest.mark.parametrize("method", ["weak", "barrier"])
def test_body_contact_forces_are_evaluated(method, friction):
    """Contact forces balance each body, and act on vertices in contact only."""
    scene = supple.Scene(contact=supple.Contact(method, friction=friction))
    elastic = supple.Corotated(young=1e5, poisson=0.3)
    low = scene.add_solid(supple.block(2), elastic, density=100, name="low")
    high = supple.block(2, size=(0.5, 0.5, 0.5), origin=(0.23, 1.02, 0.27))
    high = scene.add_solid(high, elastic, density=100, name="high")
    scene.pin(low.where(lambda X: X[:, 1] <= 0), name="low")
    scene.pin(high.where(lambda X: X[:, 1] > 1.51), supple.Translate((0.03, -0.1, 0)), name="high")
    scene.add_obstacle(supple.Sphere(0.3, (1.35, 0.5, 0.5)), supple.Translate((-0.1, 0, 0)), name="knob")
    result = supple.equilibrium(scene, tolerance=1e-7, position_tolerance=None)
    evaluation = result.evaluate()
    scale = np.abs(evaluation.reactions["low"].force).max()
    for body in (low, high):
        own = body.vertices
        outer = evaluation.contact_force[own] + evaluation.external_force[own]
        reaction = outer.sum(axis=0) + evaluation.reactions[body.name].force
        np.testing.assert_allclose(reaction, 0, atol=1e-4 * scale)
    assert evaluation.obstacle_reactions["knob"].force[0] < -0.01 * scale
    on_high = evaluation.contact_force[high.vertices]
    assert on_high[:, 1].sum() > 0.5 * scale
    assert (np.hypot(*on_high[:, [0, 2]].sum(axis=0)) > 0.05 * scale) == bool(friction)
    assert not on_high[high.points[:, 1] > 1.51].any()
    assert np.abs(evaluation.net_force[result.model.free]).max() < 1e-5 * scale


def test_weak_constraint_forces_balance():
    """Forces of weak contact constraints at the end of the solve are among the internal forces."""
    scene = supple.Scene(gravity=(0, 0, 0), contact="weak")
    elastic = supple.Corotated(young=1e5, poisson=0.0)
    low = scene.add_solid(supple.block(2), elastic, name="low")
    high = scene.add_solid(supple.block(3).translated((0, 1.002, 0)), elastic, name="high")
    scene.pin(low.where(lambda X: X[:, 1] <= 0))
    scene.pin(high.where(lambda X: X[:, 1] > 2), supple.Translate((0, -0.1, 0)))
    result = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-7, position_tolerance=None)
    evaluated = supple.evaluate(scene, result.positions)
    for evaluation, error in ((result.evaluate(), 1e-4), (evaluated, 0.02)):  # contacts are detected again
        scale = np.abs(evaluation.internal_force).max()
        assert np.abs(evaluation.net_force[result.model.free]).max() < error * scale
        reaction = evaluation.reactions["pin0"].force + evaluation.reactions["pin1"].force
        np.testing.assert_allclose(reaction, 0, atol=1e-4 * scale)
        assert evaluation.reactions["pin0"].force[1] == pytest.approx(
            -result.report.contact.bodies.forces["low"][1], rel=1e-3
        )
