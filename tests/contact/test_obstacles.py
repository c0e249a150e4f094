"""Bodies on, between and next to obstacles, against known solutions."""

from collections import defaultdict

import numpy as np
import pytest

import supple
from supple.solvers import SOLVERS

YOUNG, DENSITY = 1e5, 1000.0
OBSTACLE_SOLVERS = [name for name in SOLVERS if name not in ("pbd", "xpbd", "block_xpbd")]
"""Solvers that find equilibria with obstacles to a small relative residual."""


def block_on_plane(cells=2, poisson=0.0, young=YOUNG, **options):
    scene = supple.Scene(gravity=(0, -9.81, 0), **options)
    mesh = supple.block(cells=(cells, cells, cells), size=(1, 1, 1))
    body = scene.add_solid(mesh, supple.Corotated(young=young, poisson=poisson), density=DENSITY)
    return scene, body


def total_force(report):
    contact = report.contact
    on_obstacles = np.sum([each.force for each in contact.obstacles.each], axis=0)
    return on_obstacles, np.sum(list(contact.obstacles.forces.values()), axis=0)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_floor_reaction_equals_the_weight(precision):
    scene, _ = block_on_plane(3)
    scene.add_obstacle(supple.Plane(), name="floor")
    tolerance = 1e-6 if precision == "float64" else 1e-4
    result = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=tolerance, precision=precision)
    (floor,) = result.report.contact.obstacles.each
    weight = result.model.mass.sum() * 9.81
    assert result.report.ok
    assert floor.name == "floor"
    assert floor.count == 16
    assert floor.max_penetration == 0
    np.testing.assert_allclose(
        floor.force, (0, -weight, 0), rtol=20 * tolerance, atol=20 * tolerance * weight
    )
    sinks = DENSITY * 9.81 / (2 * YOUNG)
    assert 1 - result.positions[:, 1].max() == pytest.approx(sinks, rel=0.05), "for small strains"


@pytest.mark.parametrize("name", OBSTACLE_SOLVERS)
def test_all_solvers_agree_on_contact_with_a_floor(name):
    """One time step with friction and a second obstacle."""
    scene, _ = block_on_plane(2, 0.3, quasistatic=False, dt=0.01)
    scene.add_obstacle(supple.Plane(), friction=0.3)
    scene.add_obstacle(supple.Sphere(radius=0.2, center=(0.5, -0.19, 0.5)), name="bump")
    with pytest.raises(supple.SceneError, match=r"'solid0' begins inside obstacle 'bump'.* 0.01 m deep"):
        supple.scene.build_model(scene)
    scene.obstacles[1] = supple.scene.Obstacle(
        supple.Sphere(radius=0.2, center=(0.5, -0.2, 0.5)), None, 0.0, "bump"
    )
    limits = {"tolerance": 1e-5, "max_iterations": 400, "frames": 2}
    *_, frame = supple.simulate(scene, solver=SOLVERS[name](), **limits)
    *_, reference = supple.simulate(
        scene, solver=supple.PBNG(acceleration=None), **limits | {"tolerance": 1e-8}
    )
    assert frame.report.ok
    assert np.abs(frame.positions - reference.positions).max() < 1e-5
    on_obstacles, on_bodies = total_force(frame.report)
    np.testing.assert_allclose(on_obstacles, -on_bodies, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("solver", [supple.Newton(), supple.Hybrid(max_predicted_sweeps=0), supple.Hybrid()])
@pytest.mark.parametrize("friction", [0.0, 0.4])
def test_newton_and_sweeps_find_the_same_contact(solver, friction):
    """The contact area of a ball between two plates grows during the solve."""
    scene = supple.Scene(gravity=(0, -9.81, 0))
    ball = scene.add_solid(supple.ball(0.5, 3), supple.NeoHookean(young=1e5, poisson=0.3), density=1000)
    scene.pin(ball.where(lambda X: np.abs(X[:, [0, 2]]).max(axis=1) < 1e-6), axes="xz")
    scene.add_obstacle(supple.Plane(point=(0, -0.5, 0)), friction=friction, name="floor")
    above = supple.Plane(normal=(0, -1, 0), point=(0, 0.5, 0))
    scene.add_obstacle(above, supple.Translate((0, -0.15, 0)), friction=friction, name="lid")
    given = {"tolerance": 1e-7, "precision": "float64", "position_tolerance": None}
    result = supple.equilibrium(scene, solver=solver, **given)
    swept = supple.equilibrium(scene, solver=supple.PBNG(), **given)
    assert result.report.ok, result.report
    assert swept.report.ok, swept.report
    assert result.report.contact.obstacles.count == swept.report.contact.obstacles.count
    assert result.report.contact.obstacles.max_penetration < 1e-9
    if friction == 0:  # but for how it slides and rolls as a whole
        np.testing.assert_allclose(result.positions[:, 1], swept.positions[:, 1], atol=1e-5)


def test_dropped_ball_conserves_momentum_with_the_floor():
    """In every step the impulse equals the change of momentum."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.005)
    ball = supple.ball(radius=0.5, resolution=3).translated((0, 0.55, 0))
    body = scene.add_solid(ball, supple.NeoHookean(young=1e4, poisson=0.3), velocity=(0.3, -2, 0))
    scene.add_obstacle(supple.Plane(), friction=0.2)
    mass, before, in_contact = supple.scene.build_model(scene).mass, None, 0
    for frame in supple.simulate(scene, solver=supple.PBNG(), frames=20, tolerance=1e-7):
        momentum = mass @ frame.velocities
        if before is not None:
            impulse = np.array(frame.report.contact.obstacles.forces[body.name]) * 0.005
            np.testing.assert_allclose(momentum - before, impulse, atol=1e-5 * np.abs(before).max())
        before, in_contact = momentum, in_contact + frame.report.contact.obstacles.count
        assert frame.positions[:, 1].min() >= 0
    assert in_contact > 20
    assert before[1] > -0.95 * 2 * mass.sum(), "some of it is gone"


CRITICAL = 0.5
"""Critical friction coefficient, tan 26.565° to rounding."""


def sliding(mu, frames, precision="float64", **obstacle):
    """Displacement of a block down a slope of 26.565° at every frame, from its frictionless contact
    equilibrium."""
    angle = np.radians(26.565)
    gravity = 9.81 * np.array([np.sin(angle), -np.cos(angle), 0])
    mesh = supple.block(cells=(2, 1, 2), size=(1, 0.5, 1))
    scene = supple.Scene(gravity=tuple(gravity), quasistatic=False, dt=0.02)
    scene.add_solid(mesh, supple.Corotated(young=1e6, poisson=0.3), density=1000)
    scene.add_obstacle(supple.Plane(), friction=mu if mu >= CRITICAL else 0.7)
    start = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-8).state
    scene.obstacles.clear()
    scene.add_obstacle(supple.Plane(), friction=mu, **obstacle)
    motion = supple.simulate(
        scene, solver=supple.PBNG(), initial=start, frames=frames, tolerance=1e-7, precision=precision
    )
    return (
        np.array([frame.positions[:, 0].mean() for frame in motion]) - 0.5 - start.displacements[:, 0].mean()
    )


def test_block_sticks_on_a_slope_at_critical_friction():
    assert np.abs(sliding(0.5, 100)[-1]) < 2e-4, "elastic shear: its weight comes to rest on other vertices"
    for mu in (0.51, 0.6, 2.0):
        displacement = sliding(mu, 60)
        assert np.ptp(displacement[20:]) < 1e-6


@pytest.mark.parametrize("mu", [0.0, 0.3, 0.49])
def test_sliding_acceleration_follows_coulomb(mu):
    angle, times = np.radians(26.565), 0.02 * np.arange(1, 101)
    displacement = sliding(mu, 100)
    acceleration = 2 * np.polyfit(times[40:], displacement[40:], 2)[0]
    expected = 9.81 * (np.sin(angle) - mu * np.cos(angle))
    assert acceleration == pytest.approx(expected, rel=1e-3)


def test_kinetic_friction_of_sliding_and_static_friction_of_resting_blocks():
    """On a moving floor, sticking vertices move along with it."""
    for speed in (0.0, 0.7):
        scene, _ = block_on_plane(2, 0.3, 1e7, quasistatic=False, dt=0.02)
        scene.add_obstacle(supple.Plane(), friction=0.8, kinetic_friction=0.3)
        start = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-8).state
        scene.obstacles.clear()
        belt = supple.Translate((10 * speed, 0, 0), duration=10) if speed else None
        scene.add_obstacle(supple.Plane(), belt, friction=0.8, kinetic_friction=0.3)
        moving = supple.State(start.displacements, start.velocities + np.array([1 + speed, 0, 0]))
        motion = supple.simulate(scene, solver=supple.PBNG(), initial=moving, frames=40, tolerance=1e-7)
        displacement = np.array([frame.positions[:, 0].mean() for frame in motion])
        times = 0.02 * np.arange(1, 41)
        slowed = 2 * np.polyfit(times[:15], displacement[:15], 2)[0]
        assert slowed == pytest.approx(-9.81 * 0.3, rel=1e-3)
        rests = displacement[-10:] - speed * times[-10:]
        assert np.ptp(rests) < 1e-6, "it has come to rest after 0.34 s"


def test_static_friction_holds_on_a_slope_beyond_kinetic_friction():
    displacement = sliding(0.55, 60, kinetic_friction=0.2)
    assert np.ptp(displacement[20:]) < 1e-6


def test_conveyor_drags_a_body_by_friction():
    """The anchor of sticking friction moves with the obstacle."""
    scene, _ = block_on_plane(2, 0.3)
    scene.add_obstacle(supple.Plane(), supple.Translate((0.4, 0, 0.2)), friction=0.5)
    result = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-7)
    bottom = result.positions[np.abs(result.model.rest[:, 1]) < 1e-9]
    np.testing.assert_allclose(bottom.mean(axis=0), (0.9, 0, 0.7), atol=1e-6)


def test_frictionless_conveyor_drags_nothing():
    scene, _ = block_on_plane(2, 0.3)
    scene.add_obstacle(supple.Plane(), supple.Translate((0.4, 0, 0.2)))
    result = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-7)
    np.testing.assert_allclose(result.positions.mean(axis=0)[[0, 2]], 0.5, atol=1e-6)


def test_corner_of_a_box_holds_along_three_directions():
    """Each wall carries its component of a force into the corner."""
    scene = supple.Scene(gravity=(-1, -2, -3))
    mesh = supple.block(cells=(2, 2, 2), size=(1, 1, 1))
    scene.add_solid(mesh, supple.Corotated(young=YOUNG, poisson=0.3), density=DENSITY)
    scene.add_obstacle(supple.Box(size=(4, 4, 4), center=(2, 2, 2), hollow=True), name="box")
    result = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-6)
    (box,) = result.report.contact.obstacles.each
    assert result.report.ok
    mass = result.model.mass.sum()
    np.testing.assert_allclose(box.force, mass * np.array([-1, -2, -3]), rtol=1e-4)
    assert result.positions.min() == pytest.approx(0, abs=1e-15)


def test_closing_plates_squeeze_a_block():
    """The plates' opposite forces equal stress times area."""
    scene = supple.Scene(gravity=(0, 0, 0))
    mesh = supple.block(cells=(2, 2, 2), size=(1, 1, 1))
    scene.add_solid(mesh, supple.materials.LinearElastic(young=YOUNG, poisson=0.0), density=DENSITY)
    scene.add_obstacle(supple.Plane(), name="below")
    top = supple.Plane(normal=(0, -1, 0), point=(0, 1, 0))
    scene.add_obstacle(top, supple.Translate((0, -0.1, 0)), name="above")
    result = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-7)
    forces = {each.name: each.force for each in result.report.contact.obstacles.each}
    np.testing.assert_allclose(forces["above"], (0, 0.1 * YOUNG, 0), rtol=1e-5, atol=1)
    np.testing.assert_allclose(forces["below"], (0, -0.1 * YOUNG, 0), rtol=1e-5, atol=1)


def test_variations_have_obstacles_at_their_times():
    scene = supple.Scene(gravity=(0, 0, 0))
    mesh = supple.block(cells=(2, 2, 2), size=(1, 1, 1))
    body = scene.add_solid(mesh, supple.Corotated(young=YOUNG, poisson=0.0), density=DENSITY)
    scene.pin(body.where(lambda X: X[:, 1] <= 0))
    top = supple.Plane(normal=(0, -1, 0), point=(0, 1, 0))
    scene.add_obstacle(top, supple.Translate((0, -0.2, 0)))
    variations = [supple.Variation(time=time) for time in (0.5, 1.0, 0.0)]
    heights = [r.positions[:, 1].max() for r in supple.equilibria(scene, variations, solver=supple.PBNG())]
    np.testing.assert_allclose(heights, [0.9, 0.8, 1.0], atol=1e-12)


def test_recording_changes_nothing():
    """The scene has friction and a curved obstacle."""
    scene, _ = block_on_plane(2, 0.3, quasistatic=False, dt=0.01)
    scene.add_obstacle(supple.Sphere(radius=1, center=(0.4, -1, 0.5)), friction=0.3)
    plain, recorded = (
        list(
            supple.simulate(
                scene,
                solver=supple.PBNG(),
                frames=3,
                max_iterations=25,
                tolerance=1e-9,
                record_history=history,
            )
        )
        for history in (False, True)
    )
    for one, other in zip(plain, recorded, strict=True):
        np.testing.assert_array_equal(one.positions, other.positions)


def test_results_are_independent_of_threads():
    scene, _ = block_on_plane(6, 0.3, quasistatic=False, dt=0.01)
    scene.add_obstacle(supple.Plane(), friction=0.3)
    scene.add_obstacle(supple.Sphere(radius=1, center=(0.5, -1, 0.5)))
    positions = defaultdict(list)
    for threads in (1, 2):
        for frame in supple.simulate(scene, solver=supple.PBNG(iterations=10), frames=3, threads=threads):
            positions[frame.index].append(frame.positions)
    for one, two in positions.values():
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda scene: scene.add_obstacle("floor"), "needs a shape"),
        (lambda scene: scene.add_obstacle(supple.Plane(), friction=-1), "friction of an obstacle"),
        (lambda scene: scene.add_obstacle(supple.Plane(), 3), "A motion must be"),
        (lambda scene: [scene.add_obstacle(supple.Plane(), name="a") for _ in "ab"], "already an obstacle"),
    ],
)
def test_bad_obstacles_are_refused(add, message):
    scene, _ = block_on_plane()
    with pytest.raises(supple.SceneError, match=message):
        add(scene)


def test_start_inside_an_obstacle_is_named_with_its_depth():
    scene, _ = block_on_plane()
    scene.add_obstacle(supple.Plane(point=(0, 0.25, 0)), name="floor")
    with pytest.raises(
        supple.SceneError, match=r"'solid0' begins inside obstacle 'floor': 9 of .* 0.25 m deep"
    ):
        supple.equilibrium(scene)
