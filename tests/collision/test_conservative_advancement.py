"""Barrier contact of bodies that move by several edge lengths in a step."""

from itertools import pairwise

import numpy as np
import pytest
from surface_cases import crowded_bodies, intersects

import supple
from supple.collision.broad_phase.cached_broad_phase import max_approach, stretch
from supple.collision.ccd.conservative_advancement import advance_to_contact, stop_at_obstacles
from supple.collision.narrow_phase.proximity_bounds import proximity_pairs
from supple.collision.obstacles.signed_distance import POSE, STEP


def thrown(speed, constrained=True, material=supple.NeoHookean, dt=1 / 60, spin=0.0):
    """A block that flies towards another one, pinned or free, 1 m away."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=dt, contact="barrier")
    flying = supple.block(cells=2, size=(0.5, 0.5, 0.5)).rotated((1, 0.3, 0.2), 0.5)
    elastic = material(young=1e6, poisson=0.3)
    scene.add_solid(
        flying, elastic, density=1000, velocity=(speed, 0, 0), angular_velocity=(spin, 0, 0), name="flying"
    )
    wall = supple.block(cells=2, size=(0.5, 1.5, 1.5)).translated((1.5, -0.5, -0.5))
    body = scene.add_solid(wall, elastic, density=1000, name="wall")
    if constrained:
        scene.pin(body.where(lambda X: X[:, 0] > 1.9))
    return scene


@pytest.mark.parametrize("speed", [20.0, 200.0, 500.0])
def test_body_in_free_flight_arrives_at_once(speed):
    scene = thrown(-speed)
    start = scene.bodies[0].points
    for frame in supple.simulate(scene, frames=3, tolerance=1e-6):
        assert frame.report.ok, frame.report
        assert frame.report.iterations <= 10
        expected = start - (speed * frame.time, 0, 0)
        np.testing.assert_allclose(frame.positions_of(scene.bodies[0]), expected, atol=1e-9 * speed)


@pytest.mark.parametrize("speed", [20.0, 200.0])
@pytest.mark.parametrize("constrained", [True, False])
def test_thrown_body_does_not_pass_another(speed, constrained):
    scene = thrown(speed, constrained, dt=1 / 120, spin=3.0)
    mass, in_contact = supple.scene.build_model(scene, quasistatic=False).mass, 0
    for frame in supple.simulate(scene, frames=int(1 / speed * 120) + 3, tolerance=1e-4, max_iterations=100):
        assert frame.report.outcome.name != "FAILED"
        assert np.isfinite(frame.positions).all()
        assert not intersects(scene, frame.positions)
        in_contact += frame.report.contact.bodies.count
        if not constrained and frame.report.ok:
            momentum = mass @ frame.velocities
            assert momentum[0] == pytest.approx(speed * mass[scene.bodies[0].vertices].sum(), rel=1e-2)
    assert in_contact > 0


@pytest.mark.parametrize("moving", [False, True], ids=["wall", "moving"])
def test_thrown_body_stops_at_a_thin_obstacle(moving):
    """Without contact, body or obstacle would be on the other side at the end of the step."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, contact="barrier")
    block, elastic = supple.block(1, (1, 1, 1)), supple.NeoHookean(young=1e6, poisson=0.3)
    speed = 80.0 if moving else 150.0
    body = scene.add_solid(block, elastic, density=1000, velocity=(speed, 0, 0))
    scene.add_solid(block.translated((-15, 0, 0)), elastic, density=1000)
    way = (speed - 150) * 0.02
    motion = supple.Translate((way, 0, 0), duration=0.02) if moving else None
    scene.add_obstacle(supple.Box((0.2, 4, 4), (2.5, 0.5, 0.5)), motion=motion)
    (frame,) = supple.simulate(scene, dt=0.02, frames=1, tolerance=1e-3, max_iterations=200)
    assert frame.positions_of(body)[:, 0].max() <= 2.4 + way + 1e-6
    assert (frame.model.mass @ frame.velocities)[0] < 0.9 * 1000 * speed, "the wall takes momentum"


def test_step_fractions_to_obstacles():
    """A body advances until its first vertex meets the obstacle, at rest or moving by 1 m."""
    x = np.array([(0.0, 0, 0), (-0.5, 0, 0), (0, 3, 0), (0, 4, 0), (1, 0, 2.3), (2, 0, 2.3)])
    body, goal = np.array([0, 0, 1, 1, 2, 2]), x + np.array([5.0, 0, 0])
    ball = supple.Scene()
    ball.add_solid(supple.block(1), supple.NeoHookean(young=1e5, poisson=0.3))
    ball.add_obstacle(supple.Sphere(0.5, (2.5, 0, 0)))
    obstacles = supple.scene.build_model(ball).obstacles
    advanced = stop_at_obstacles(obstacles, obstacles.shapes(0.0), x, goal, body, np.arange(6), 0.01)
    np.testing.assert_allclose(advanced[:2, 0], [2.0, 1.5], atol=0.011)
    np.testing.assert_array_equal(advanced[2:], goal[2:])
    shapes = obstacles.shapes(0.0)
    shapes.rows[:, POSE + 9] += 1.0
    shapes.rows[:, STEP + 9] = 1.0
    advanced = stop_at_obstacles(obstacles, shapes, x, goal, body, np.arange(6), 0.01)
    np.testing.assert_allclose(advanced[:2, 0], [3.0, 2.5], atol=0.011)
    touching = np.array([(2.5, 0.5, 0)])
    advanced = stop_at_obstacles(
        obstacles, obstacles.shapes(0.0), touching, touching + 1, np.zeros(1, int), np.arange(1), 0.01
    )
    np.testing.assert_array_equal(advanced, touching + 1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fast", [1.0, 2.0])
def test_advanced_bodies_pass_through_nothing(seed, fast):
    """ipctk's continuous detection finds no collision between successive positions."""
    ipctk = pytest.importorskip("ipctk")
    rng = np.random.default_rng(seed)
    surfaces, x = crowded_bodies(rng)
    goals = fast * np.array([(1, 0.5, 0.2)] * 4 + [(1, 1, 5), (3, 1, -4)])
    step = (goals - x[np.searchsorted(surfaces.body, range(6))])[surfaces.body]
    step = step + 0.02 * rng.normal(size=x.shape)
    part = advance_to_contact(surfaces, x, step, 0.01)
    assert (part > 0).all()
    mesh = ipctk.CollisionMesh(x, np.asarray(ipctk.edges(surfaces.triangles)), surfaces.triangles)
    stops = np.unique([0.0, *part])
    for begin, end in pairwise(stops):
        start_positions, end_positions = (
            x + np.minimum(part, t)[surfaces.body, None] * step for t in (begin, end)
        )
        assert ipctk.is_step_collision_free(mesh, start_positions, end_positions)
    assert (part[:4] < 1).any(), "they meet"
    assert part.max() > 1.2 * part[:4].min(), "and others fly on"


def test_stretch_bounds_the_approach_of_bodies():
    rng = np.random.default_rng(2)
    surfaces, x = crowded_bodies(rng)
    step = (0.1 * rng.normal(size=(6, 3)))[surfaces.body] + 0.01 * rng.normal(size=x.shape)
    most = max_approach(surfaces, x, step, 0.5)
    before = dict(zip(*(lambda g: (g.keys, g.distance))(proximity_pairs(surfaces, x, 0.5)), strict=True))
    after = proximity_pairs(surfaces, x + step, 0.5)
    lost = [before.get(key, 0.5) - distance for key, distance in zip(after.keys, after.distance, strict=True)]
    assert 0.02 < max(lost) <= most
    approached = max_approach(surfaces, x, np.broadcast_to((0.0, 7.0, 0.0), x.shape), 0.5)
    assert approached == pytest.approx(0, abs=1e-12)


def test_rigid_rotation_has_no_stretch():
    rng = np.random.default_rng(3)
    surfaces, x = crowded_bodies(rng)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    assert stretch(surfaces, x, x @ turn + 3.0).max() == pytest.approx(0, abs=1e-12)
    y = x @ turn + 0.01 * rng.normal(size=x.shape)
    before, after = proximity_pairs(surfaces, x, 0.3), proximity_pairs(surfaces, y, 0.25)
    own = surfaces.body[after.vertices[:, 0]] == surfaces.body[after.vertices[:, -1]]
    known = dict(zip(before.keys, before.distance, strict=True))
    lost = [known[k] - d for k, d in zip(after.keys[own], after.distance[own], strict=True)]
    assert 0.005 < max(lost) <= stretch(surfaces, x, y).max() < 0.1


def test_unsupported_body_has_no_equilibrium():
    """A block slips off another one without friction, and stays once it is pinned."""
    scene = supple.Scene(gravity=(0, -5, 0), contact="barrier")
    block, elastic = supple.block(1, (1, 1, 1)), supple.NeoHookean(young=1e4, poisson=0.3)
    low = scene.add_solid(block, elastic, density=10)
    up = scene.add_solid(block.translated((0.1, 1.02, 0.1)), elastic, density=10)
    scene.pin(low.where(lambda X: X[:, 1] <= 0))
    lost = supple.equilibrium(scene, tolerance=1e-4)
    assert lost.report.outcome.name == "UNBOUNDED"
    assert any("nothing holds them" in note for note in lost.report.notes)
    scene.pin(up.where(lambda X: X[:, 1] >= 2.01))
    assert supple.equilibrium(scene, tolerance=1e-4).report.ok
