"""Rigid bodies in contact with obstacles and with each other."""

import numpy as np
import pytest

import supple
from supple.problem.history_variables import RIGID

G = 9.81
PLANE = (supple.Plane(),)


def scene_of(*rigid, obstacles=PLANE, friction=0.0, dt=0.01, gravity=(0, -G, 0), away=(30, 30, 0)):
    """Rigid shapes among obstacles, far from an unrelated soft body."""
    scene = supple.Scene(gravity=gravity, quasistatic=False, dt=dt)
    mesh = supple.block(cells=(1, 1, 1), size=(0.1, 0.1, 0.1)).translated(away)
    body = scene.add_solid(mesh, supple.NeoHookean(young=1e4, poisson=0.3), density=100)
    scene.pin(body.where(lambda X: X[:, 0] < away[0] + 0.05))
    for obstacle in obstacles:
        scene.add_obstacle(obstacle, friction=friction)
    for k, (shape, options) in enumerate(rigid):
        scene.add_obstacle(shape, name=f"rigid{k}", friction=friction, **{"mass": 2.0, **options})
    return scene


def numbers_of(scene, frames):
    """State (frames, bodies, 18) of all rigid bodies."""
    moved = supple.simulate(scene, solver=supple.PBNG(iterations=1), frames=frames)
    return np.array([frame.state.history[RIGID] for frame in moved])


SHAPES = {
    "ball": supple.Sphere(radius=0.2, center=(0, 0.5, 0)),
    "box": supple.Box(size=(0.4, 0.3, 0.6), center=(0, 0.5, 0)),
}
HEIGHT = {"ball": 0.2, "box": 0.15}


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_fallen_bodies_rest_on_a_plane(kind, friction):
    moved = numbers_of(scene_of((SHAPES[kind], {}), friction=friction), 45)[:, 0]
    assert moved[:, 1].min() > HEIGHT[kind] - 1e-3, "a step goes in by no more than its turn is nonlinear"
    assert moved[-1, 1] == pytest.approx(HEIGHT[kind], abs=1e-7)
    np.testing.assert_allclose(moved[-1, 12:], 0, atol=1e-6)
    np.testing.assert_allclose(moved[-1, [0, 2]], 0, atol=1e-6)


def test_momentum_matches_weight_and_contact_impulse():
    """In the air the ball gains g Δt per step; at rest on the plane it has none."""
    moved = numbers_of(scene_of((SHAPES["ball"], {})), 40)[:, 0]
    flying = moved[:, 1] > 0.2 + 1e-9
    np.testing.assert_allclose(np.diff(moved[flying, 13]), -G * 0.01, atol=1e-9)
    assert abs(moved[-1, 13]) < 1e-9


@pytest.mark.parametrize(("friction", "part"), [(0.0, 1.0), (1.0, 5 / 7)])
def test_ball_slides_or_rolls_down_a_slope(friction, part):
    """The acceleration is g sin α for sliding and 5/7 of it for rolling."""
    tilt = np.radians(20)
    gravity = G * np.sin(tilt), -G * np.cos(tilt), 0
    ball = supple.Sphere(radius=0.2, center=(0, 0.2, 0))
    moved = numbers_of(scene_of((ball, {}), friction=friction, gravity=gravity, dt=0.002), 50)[:, 0]
    acceleration = np.diff(moved[:, 12]) / 0.002
    np.testing.assert_allclose(acceleration[5:], part * G * np.sin(tilt), rtol=2e-3)
    if friction:
        np.testing.assert_allclose(-moved[5:, 17] * 0.2, moved[5:, 12], rtol=2e-2)


@pytest.mark.parametrize(("mu", "stays"), [(0.37, True), (0.35, False)])
def test_box_sticks_on_a_shallow_slope(mu, stays):
    """tan 20° = 0.364."""
    tilt = np.radians(20)
    gravity = G * np.sin(tilt), -G * np.cos(tilt), 0
    box = supple.Box(size=(0.4, 0.2, 0.4), center=(0, 0.1, 0))
    moved = numbers_of(scene_of((box, {}), friction=mu, gravity=gravity), 30)[:, 0]
    fraction = max(0.0, np.sin(tilt) - mu * np.cos(tilt))
    assert moved[-1, 12] == pytest.approx(0 if stays else G * fraction * 0.3, abs=1e-6 if stays else 2e-3)


def test_stacked_rigid_bodies_rest():
    """A ball on a box on a plane: neither sinks in."""
    box = supple.Box(size=(0.6, 0.2, 0.6), center=(0, 0.1, 0))
    ball = supple.Sphere(radius=0.15, center=(0, 0.45, 0))
    moved = numbers_of(scene_of((box, {"mass": 4.0}), (ball, {}), friction=0.3), 45)
    assert moved[-1, 0, 1] == pytest.approx(0.1, abs=1e-6)
    assert moved[-1, 1, 1] == pytest.approx(0.35, abs=1e-6)
    np.testing.assert_allclose(moved[-1, :, 12:], 0, atol=1e-5)


def test_collision_in_the_air_conserves_momentum():
    left = supple.Sphere(radius=0.2, center=(-0.5, 5, 0)), {"velocity": (3, 0, 0), "mass": 1.0}
    right = supple.Sphere(radius=0.2, center=(0.5, 5.1, 0)), {"velocity": (-1, 0, 0), "mass": 3.0}
    moved = numbers_of(scene_of(left, right, friction=0.2, gravity=(0, 0, 0)), 40)
    linear = moved[:, 0, 12:15] + 3 * moved[:, 1, 12:15]
    np.testing.assert_allclose(linear, np.broadcast_to([0, 0, 0], linear.shape), atol=1e-9)
    assert abs(moved[-1, 0, 12] - 3) > 1, "they have met"
    distances = np.linalg.norm(moved[:, 0, :3] - moved[:, 1, :3], axis=1)
    assert distances.min() > 0.4 - 1e-3


def test_hollow_box_contains_a_ball():
    hollow_box = supple.Box(size=(1, 1, 1), center=(0, 0.5, 0), hollow=True)
    ball = supple.Sphere(radius=0.1, center=(0.2, 0.5, 0.1)), {"velocity": (4, 0, 3)}
    moved = numbers_of(scene_of(ball, obstacles=(hollow_box,), away=(-0.45, 0.8, -0.45)), 60)[:, 0]
    assert np.abs(moved[:, [0, 2]]).max() < 0.4 + 1e-6
    assert moved[:, 1].min() > 0.1 - 1e-6


def inside_box(points, numbers, size):
    """Depth [m] of the deepest of some points in a box with such a state; negative outside."""
    local = (points - numbers[:3]) @ numbers[3:12].reshape(3, 3).T
    return float((np.array(size) / 2 - np.abs(local)).min(axis=1).max())


def edge_points(numbers, size, count=41):
    """Sample points on the edges of a box with such a state."""
    ends = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.array(size) / 2
    pairs = [(p, q) for p in ends for q in ends if (p != q).sum() == 1]
    local = np.concatenate([p + np.linspace(0, 1, count)[:, None] * (q - p) for p, q in pairs])
    return numbers[:3] + local @ numbers[3:12].reshape(3, 3)


@pytest.mark.parametrize("friction", [0.0, 0.4])
def test_crossed_planks_rest_on_their_edges(friction):
    """No corner of one is over the other: contact is between crossing edges."""
    sizes = (1.0, 0.1, 0.2), (0.2, 0.1, 1.0)
    low = supple.Box(size=sizes[0], center=(0, 0.05, 0)), {"mass": 4.0}
    high = supple.Box(size=sizes[1], center=(0.03, 0.25, 0.02)), {}
    moved = numbers_of(scene_of(low, high, friction=friction), 45)
    assert moved[-1, 1, 1] == pytest.approx(0.15, abs=1e-5)
    np.testing.assert_allclose(moved[-1, :, 12:], 0, atol=1e-4)
    for frame in moved:
        assert inside_box(edge_points(frame[1], sizes[1]), frame[0], sizes[0]) < 1e-3


def test_edge_collisions_of_boxes_conserve_momentum():
    """Two boxes on perpendicular edges exchange momentum without passing each other."""
    size = (0.4, 0.4, 0.4)
    low = supple.Box(size=size, center=(0, 5, 0), axis=(0, 0, 1), angle=np.pi / 4), {"mass": 3.0}
    high = supple.Box(size=size, center=(0.02, 5.7, 0.03), axis=(1, 0, 0), angle=np.pi / 4)
    flying = high, {"velocity": (0, -3, 0), "mass": 1.0}
    moved = numbers_of(scene_of(low, flying, gravity=(0, 0, 0), dt=0.005), 60)
    linear = 3 * moved[:, 0, 12:15] + moved[:, 1, 12:15]
    np.testing.assert_allclose(linear, np.broadcast_to([0, -3, 0], linear.shape), atol=1e-9)
    assert moved[-1, 0, 13] < -0.5, "they have met"
    for frame in moved:
        assert inside_box(edge_points(frame[1], size), frame[0], size) < 2e-3


@pytest.mark.parametrize("friction", [0.0, 0.4])
@pytest.mark.parametrize("kind", ["ball", "box"])
def test_collisions_conserve_angular_momentum(kind, friction):
    """Off-center collisions of two equal bodies conserve it about the origin to rounding."""
    moment = {"ball": 0.4 * 0.1**2, "box": 0.2**2 / 6}[kind] * 2.0

    def flying(side):
        center = (-0.3 * side, 0.5 - 0.025 * side, 0.01 * side)
        ball, box = supple.Sphere(radius=0.1, center=center), supple.Box(size=(0.2, 0.2, 0.2), center=center)
        return (ball if kind == "ball" else box), {"velocity": (2 * side, 0, 0)}

    moved = numbers_of(
        scene_of(flying(1), flying(-1), obstacles=(), friction=friction, gravity=(0, 0, 0)), 30
    )
    x, v, spin = moved[..., :3], moved[..., 12:15], moved[..., 15:]
    angular = (2.0 * np.cross(x, v) + moment * spin).sum(axis=1)
    assert moved[-1, 0, 12] < 1.0, "they have met"
    np.testing.assert_allclose(angular, np.broadcast_to(angular[0], angular.shape), atol=1e-12)
    if kind == "ball" and friction == 0:
        np.testing.assert_allclose(spin, 0, atol=1e-12)


def test_stack_of_equal_boxes_stays_at_rest():
    """Coinciding corners do not push neighbors aside."""
    boxes = [(supple.Box(size=(0.2, 0.2, 0.2), center=(0, 0.1 + 0.2 * k, 0)), {}) for k in range(3)]
    moved = numbers_of(scene_of(*boxes, friction=0.5), 25)
    np.testing.assert_allclose(moved[-1, :, :3], [(0, 0.1, 0), (0, 0.3, 0), (0, 0.5, 0)], atol=1e-12)
    np.testing.assert_allclose(moved[:, :, 12:], 0, atol=1e-11)


def test_box_does_not_creep_just_below_the_critical_angle():
    """26.55° of 26.565°; it once crept with 4e-5 m/s in half a second."""
    tilt = np.radians(26.55)
    gravity = G * np.sin(tilt), -G * np.cos(tilt), 0
    box = supple.Box(size=(0.1, 0.1, 0.1), center=(0, 0.05, 0))
    moved = numbers_of(scene_of((box, {}), friction=0.5, gravity=gravity), 20)[:, 0]
    np.testing.assert_allclose(moved[:, 12:], 0, atol=1e-9)


@pytest.mark.parametrize(
    "shape", [supple.Sphere(0.1, (0, 0.12, 0)), supple.Box((0.2, 0.2, 0.2), (0, 0.12, 0))]
)
def test_rigid_body_in_a_pinned_block_is_reported(shape):
    """Pinned vertices do not push it, so no step that ends inside the block has converged."""
    scene = supple.Scene(quasistatic=False)
    rubber = supple.NeoHookean(young=1e5, poisson=0.3)
    block = scene.add_solid(supple.block(3, (0.4, 0.4, 0.4)).translated((-0.2, -0.4, -0.2)), rubber)
    scene.pin(block)
    other = scene.add_solid(supple.block(1, (0.1, 0.1, 0.1)).translated((5, 0, 5)), rubber)
    scene.pin(other.where(lambda X: X[:, 1] < 0.01))
    scene.add_obstacle(shape, mass=1.0, name="weight")
    for frame in supple.simulate(scene, dt=0.02, frames=12):
        height = frame.state.history["rigid"][0, 1]
        noted = any("pinned part of 'solid0'" in note for note in frame.report.notes)
        assert frame.report.ok == (height > 0.1)
        assert noted == (height <= 0.1)
    assert -0.3 < height < 0
