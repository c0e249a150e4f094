"""Rigid bodies with mass: two-way coupling with deformable bodies."""

import numpy as np
import pytest

import supple
from supple.collision.obstacles.rigid_body import RigidBody, RigidMotion
from supple.problem.history_variables import RIGID

MASS = 20.0


def collision(gravity=(0, 0, 0), velocity=(0.3, -2, 0), spin=(0, 0, 0), **options):
    """A ball that flies onto a soft block; both are free."""
    scene = supple.Scene(gravity=gravity, quasistatic=False, dt=0.01)
    block = supple.block(cells=(3, 2, 3), size=(1, 0.5, 1))
    scene.add_solid(block, supple.NeoHookean(young=2e4, poisson=0.3), density=100)
    ball = supple.Sphere(radius=0.3, center=(0.45, 0.83, 0.5))
    scene.add_obstacle(ball, mass=MASS, velocity=velocity, angular_velocity=spin, name="ball", **options)
    return scene


def test_free_fall_follows_backward_euler():
    scene = collision(gravity=(0, -9.81, 0), velocity=(0.1, 5, 0), spin=(0, 0, 2))
    scene.pin(scene.bodies[0].where(lambda X: X[:, 1] < 1e-9))
    frames = list(supple.simulate(scene, solver=supple.PBNG(iterations=5), frames=3))
    (numbers,) = frames[-1].state.history[RIGID]
    v = np.array([0.1, 5 - 9.81 * 0.03, 0])
    x = np.array([0.45, 0.83, 0.5]) + 0.03 * np.array([0.1, 5, 0]) - [0, 9.81 * 1e-4 * (1 + 2 + 3), 0]
    np.testing.assert_allclose(numbers[:3], x, atol=1e-12)
    np.testing.assert_allclose(numbers[12:15], v, atol=1e-12)
    np.testing.assert_allclose(numbers[15:], (0, 0, 2), atol=1e-12)
    turned = np.arctan2(numbers[4], numbers[3])  # of its own x axis
    assert turned == pytest.approx(0.06, abs=1e-9)


@pytest.mark.parametrize("friction", [0.0, 0.4])
def test_collision_conserves_momentum(friction):
    """Total linear momentum is conserved, and angular momentum about the origin."""
    scene = collision(friction=friction)
    mass = supple.scene.build_model(scene).mass
    moment = 0.4 * MASS * 0.3**2
    everything, exchanged = [], 0.0
    for frame in supple.simulate(scene, solver=supple.PBNG(), frames=12, tolerance=1e-7):
        (numbers,) = frame.state.history[RIGID]
        x, v, spin = numbers[:3], numbers[12:15], numbers[15:]
        linear = mass @ frame.velocities + MASS * v
        angular = (mass[:, None] * np.cross(frame.positions, frame.velocities)).sum(axis=0)
        angular += MASS * np.cross(x, v) + moment * spin
        everything.append(np.concatenate([linear, angular]))
        exchanged = max(exchanged, float(np.abs(mass @ frame.velocities).max()))
    drift = np.abs(np.array(everything) - [MASS * 0.3, -2 * MASS, 0, *everything[0][3:]])
    assert exchanged > 0.3 * 2 * MASS, "the block has got a good part of it"
    assert drift[:, :3].max() < 1e-4 * MASS
    assert drift[:, 3:].max() < 2e-2 * MASS, "backward Euler loses some"
    assert frame.report.contact.obstacles.each[0].max_penetration < 1e-6


def test_motion_resumed_from_state_is_identical():
    scene = collision(friction=0.3)
    uninterrupted = list(supple.simulate(scene, solver=supple.PBNG(iterations=20), frames=4))
    rest = supple.simulate(
        scene, solver=supple.PBNG(iterations=20), frames=4, initial=uninterrupted[1].state, first_frame=3
    )
    for one, other in zip(uninterrupted[2:], rest, strict=True):
        np.testing.assert_array_equal(one.positions, other.positions)
        np.testing.assert_array_equal(one.state.history[RIGID], other.state.history[RIGID])


def test_evaluations_and_pictures_have_the_rigid_body_pose():
    *_, frame = supple.simulate(collision(), solver=supple.PBNG(), frames=6, tolerance=1e-6)
    center = frame.state.history[RIGID][0, :3]
    assert center[1] < 0.8
    np.testing.assert_allclose(frame.model.obstacles.poses(0.0)[0, 9:], center)
    evaluation = frame.evaluate()
    on_block = evaluation.obstacle_reactions["ball"].force
    np.testing.assert_allclose(on_block, frame.report.contact.obstacles.forces["solid0"], rtol=0.01, atol=0.1)


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        (supple.Plane(), {"mass": 1.0}, "Only a Sphere or a Box"),
        (supple.Sphere(radius=1, hollow=True), {"mass": 1.0}, "not hollow"),
        (supple.Sphere(radius=1), {"mass": 0.0}, r"mass \[kg\]"),
        (
            supple.Sphere(radius=1),
            {"mass": 1.0, "motion": supple.Translate((1, 0, 0))},
            "cannot have a prescribed motion",
        ),
    ],
)
def test_bad_masses_are_refused(shape, options, message):
    with pytest.raises(supple.SceneError, match=message):
        supple.Scene().add_obstacle(shape, **options)


def test_equilibria_refuse_falling_rigid_bodies():
    with pytest.raises(supple.SceneError, match="'ball' has a mass, so it moves in time"):
        supple.equilibrium(collision())


def padded_box(mass, dt=0.01, pressed=2e-4, cells=(1, 3, 2), **options):
    """Stepper of a box between two pads that press on it with friction, and the pads' pin targets."""
    scene = supple.Scene(quasistatic=False)
    for x0, back in ((-0.04, -0.04), (0.02, 0.04)):
        mesh = supple.block(cells, size=(0.02, 0.06, 0.03), origin=(x0, -0.03, -0.015))
        pad = scene.add_solid(mesh, supple.NeoHookean(young=1e5, poisson=0.3))
        scene.pin(pad.where(lambda X, back=back: abs(X[:, 0] - back) < 1e-9))
    box = supple.Box(size=(0.04, 0.04, 0.04), center=(0, 0, 0))
    scene.add_obstacle(box, mass=mass, friction=0.5, name="box")
    sim = supple.Stepper(scene, dt=dt, **options)
    pins = sim.positions[sim.pinned].copy()
    pins[:, 0] -= np.sign(pins[:, 0]) * pressed
    return sim, pins


@pytest.mark.parametrize("mass", [0.05, 0.5])
@pytest.mark.parametrize("solver", ["default", "few sweeps"])
def test_held_box_gains_its_contact_force_in_few_iterations(mass, solver):
    """50 g sticks, and once took 1,000 sweeps a step; with 20 it gained 1 % of the force. 500 g slides."""
    options = {} if solver == "default" else {"solver": supple.PBNG(iterations=20)}
    sim, pins = padded_box(mass, cells=(2, 6, 4), **options)
    before = 0.0
    for step in range(4):
        frame = sim.step(pins=pins)
        after = frame.state.history[RIGID][0, 13]
        gained = mass * (after - before) / 0.01 + mass * 9.81
        assert frame.report.ok
        assert frame.report.iterations <= (100 if step == 0 else 50)
        if step > 0:
            assert gained == pytest.approx(frame.report.contact.obstacles.each[0].force[1], rel=2e-3)
        before = after


def test_sticking_box_does_not_creep():
    """It once rose by 3.6 µm/s: the last correction of a step moved the box without the pads' vertices."""
    sim, pins = padded_box(0.05, dt=0.005)
    heights = [sim.step(pins=pins).state.history[RIGID][0, 1] for _ in range(80)]
    assert abs(heights[-1] - heights[40]) < 2e-9


def test_large_residual_of_rigid_bodies_is_reported():
    """One sweep finds almost nothing of the friction."""
    sim, pins = padded_box(0.05, solver=supple.PBNG(iterations=1))
    report = sim.step(pins=pins).report
    assert not report.ok
    assert report.relative_residual > 0.01


def test_non_finite_rigid_motion_is_refused():
    body = RigidBody(0, 1.0, np.ones(3), np.zeros(3), np.zeros(3), np.zeros(3))
    motion = RigidMotion(body, np.zeros(3), np.eye(3), np.zeros(3), np.array([np.nan, 0, 0]))
    with pytest.raises(ValueError, match="infinite or NaN"):
        motion.begin(0.01)


def test_box_between_pads_gains_the_reported_friction():
    mass, dt = 0.5, 0.01
    sim, pins = padded_box(mass, dt)
    before = 0.0
    for _ in range(3):
        frame = sim.step(pins=pins)
        after = frame.state.history[RIGID][0, 13]
        gained = mass * (after - before) / dt + mass * 9.81
        assert frame.report.ok
        assert gained == pytest.approx(frame.report.contact.obstacles.each[0].force[1], rel=1e-3)
        before = after


def test_spinning_box_keeps_its_angular_momentum_and_energy():
    size, spin = np.array([0.1, 0.2, 0.3]), np.array([15, 15, 0.5])
    moments = ((size**2).sum() - size**2) / 12
    body = RigidBody(0, 1.0, moments, np.zeros(3), np.zeros(3), spin)
    motion = RigidMotion(body, np.zeros(3), np.eye(3), np.zeros(3), spin.copy())
    for _ in range(300):
        motion.begin(0.01)
        motion.update_velocity(0.0)
    own = motion.axes @ motion.spin
    assert (moments * own**2).sum() == pytest.approx((moments * spin**2).sum(), rel=2e-3)
    assert motion.axes.T @ (moments * own) == pytest.approx(moments * spin, rel=1e-10)
