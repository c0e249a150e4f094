"""Barrier contact without intersections, checked by ipctk after every step."""

import numpy as np
import pytest
from surface_cases import intersects

import supple
from supple.collision.narrow_phase.contact_pairs import Surfaces
from supple.collision.narrow_phase.proximity_bounds import SAFE_FRACTION, displacement_bounds, proximity_pairs
from supple.scene.build import assemble_model

RUBBER = supple.Corotated(young=1e5, poisson=0.3)


def pressed(displacement=0.3, cells=(3, 2), gap=0.02, contact="barrier", **options):
    """Two blocks with different cells, one above the other, pressed together from above."""
    scene = supple.Scene(gravity=(0, 0, 0), contact=supple.Contact(contact, **options))
    low = scene.add_solid(supple.block(cells=(cells[0],) * 3, size=(1, 1, 1)), RUBBER, name="low")
    above = supple.block(cells=(cells[1],) * 3, size=(0.8, 1, 0.8)).translated((0.12, 1 + gap, 0.07))
    high = scene.add_solid(above, RUBBER, name="high")
    scene.pin(low.where(lambda X: X[:, 1] <= 0))
    scene.pin(high.where(lambda X: X[:, 1] > 1.9 + gap), supple.Translate((0, -displacement, 0)))
    return scene


def mat(cells=8, **options):
    """A mat of cloth whose ends are twisted in opposite directions."""
    scene = supple.Scene(gravity=(0, 0, 0), contact=supple.Contact("barrier", **options))
    cloth = scene.add_cloth(
        supple.sheet(cells, size=(1, 0.5), plane="xz"),
        supple.materials.PlaneStressStVK(young=1e5, poisson=0.3),
        supple.HingeBending(rigidity=1e-4),
        density=0.1,
        thickness=1e-3,
    )
    x = cloth.points[:, 0]
    scene.pin(cloth.where(lambda X: X[:, 0] <= x.min() + 1e-9), supple.Rotate((1, 0, 0), (0, 0, 0.25), 3.5))
    scene.pin(cloth.where(lambda X: X[:, 0] >= x.max() - 1e-9), supple.Rotate((1, 0, 0), (0, 0, 0.25), -3.5))
    return scene


def test_pressed_blocks_come_to_rest_and_do_not_intersect():
    scene = pressed()
    result = supple.equilibrium(scene, tolerance=1e-6)
    report = result.report
    assert report.ok, report
    assert not intersects(scene, result.positions)
    assert 0 < report.contact.bodies.min_gap < 0.05
    assert report.contact.bodies.count > 4
    assert report.contact.bodies.max_penetration == 0
    forces = np.array([report.contact.bodies.forces["low"], report.contact.bodies.forces["high"]])
    assert np.abs(forces.sum(axis=0)).max() < 1e-9 * np.abs(forces).max()
    assert forces[1, 1] > 1e3
    assert report.error_estimate.position_error < 1e-4


@pytest.mark.parametrize("solver", ["pbng", "newton"])
def test_every_solver_finds_the_same_equilibrium(solver):
    scene = pressed(displacement=0.15)
    reference = supple.equilibrium(scene, tolerance=1e-8, precision="float64")
    other = supple.equilibrium(
        scene, solver=solver, tolerance=1e-6, precision="float64", position_tolerance=None
    )
    assert reference.report.ok
    assert other.report.ok, other.report
    assert not intersects(scene, other.positions)
    np.testing.assert_allclose(other.positions, reference.positions, atol=2e-4)


def test_contact_forces_equal_pin_reactions():
    scene = pressed(displacement=0.15)
    result = supple.equilibrium(scene, tolerance=1e-7, precision="float64")
    reactions = result.evaluate().reactions
    on_low = np.array(result.report.contact.bodies.forces["low"])
    np.testing.assert_allclose(reactions["pin0"].force, -on_low, atol=1e-4 * np.abs(on_low).max())


def patch(strain, cells=4, gap=None):
    """Two blocks with different cells and no lateral strain, strained from an initial gap."""
    scene = supple.Scene(gravity=(0, 0, 0), contact="barrier")
    material = supple.Corotated(young=1e5, poisson=0.0)
    low = scene.add_solid(supple.block(cells), material, name="low")
    high = scene.add_solid(supple.block(cells + 1, origin=(0, 1.5, 0)), material, name="high")
    scene.pin(low.where(lambda X: X[:, 1] <= 0), name="base")
    thickness = assemble_model(scene).dynamic_terms[0][1].thickness
    gap = thickness if gap is None else gap
    scene = supple.Scene(gravity=(0, 0, 0), contact="barrier")
    low = scene.add_solid(low.mesh, material, name="low")
    high = scene.add_solid(supple.block(cells + 1, origin=(0, 1 + gap, 0)), material, name="high")
    scene.pin(low.where(lambda X: X[:, 1] <= 0), name="base")
    top = high.where(lambda X: X[:, 1] >= 2 + gap - 1e-9)
    scene.pin(top, motion=supple.Translate((0, -2 * strain, 0)))
    return scene, 1e5 * strain


@pytest.mark.parametrize("strain", [0.025, 0.005, 0.001])
def test_default_barrier_transmits_small_strains(strain):
    """The stress is within 3 % of E ε, and the report estimates the missing part."""
    scene, expected = patch(strain)
    result = supple.equilibrium(scene, tolerance=1e-6)
    assert result.report.ok, result.report
    ratio = result.evaluate().reactions["base"].force[1] / expected
    assert ratio == pytest.approx(1, abs=0.03)
    contacts = result.report.contact.bodies
    assert contacts.approach_share == pytest.approx(1 - ratio, rel=0.12)
    assert contacts.mean_gap + contacts.mean_approach == pytest.approx(
        result.model.dynamic_terms[0][1].thickness
    )
    smaller = f"the contact force is {100 * contacts.approach_share:.2g} % smaller because surfaces approach"
    assert smaller in str(result.report)


def test_report_has_the_force_share_of_separated_pairs():
    """Blocks start a tenth of the barrier thickness apart, without a force at the start."""
    gap, strain = 0.002, 0.02
    scene, _ = patch(strain, gap=gap)
    result = supple.equilibrium(scene, tolerance=1e-6)
    evaluation = result.evaluate().reactions["base"].force[1]
    closed = 1e5 * (2 * strain - gap) / 2
    assert result.report.contact.bodies.mean_gap == pytest.approx(gap, rel=0.2)
    assert result.report.contact.bodies.gap_share == pytest.approx(1 - closed / evaluation, rel=0.1)


def test_bodies_pass_through_each_other_without_barrier():
    scene = pressed(contact="none")
    result = supple.equilibrium(scene, tolerance=1e-4)
    assert intersects(scene, result.positions)


def test_twisted_mat_never_intersects_itself():
    scene = mat()
    *_, last = frames = list(supple.simulate(scene, frames=6, dt=1 / 6, tolerance=1e-3, max_iterations=300))
    assert not any(intersects(scene, frame.positions) for frame in frames)
    assert last.report.contact.bodies.count > 0


@pytest.mark.parametrize("seed", range(3))
def test_thrown_bodies_never_pass(seed):
    """Few sweeps, far from equilibrium, leave no intersection."""
    rng = np.random.default_rng(seed)
    scene = supple.Scene(gravity=(0, -9.81, 0), quasistatic=False, dt=0.02, contact="barrier")
    floor = scene.add_cloth(
        supple.sheet(4, size=(2, 2), plane="xz").translated((-1, -0.3, -1)),
        supple.materials.PlaneStressStVK(young=1e5, poisson=0.3),
        density=0.5,
        thickness=1e-3,
    )
    scene.pin(floor.where(lambda X: np.abs(X[:, [0, 2]]).max(axis=1) > 0.99))
    for k in range(3):
        mesh = supple.block(cells=2, size=(0.4, 0.4, 0.4)).translated((-0.2, -0.2, -0.2))
        mesh = mesh.rotated((1, 0.2, 0), rng.uniform(0, 3))
        where = (*rng.uniform(-0.1, 0.1, 1), 0.3 + 0.75 * k, *rng.uniform(-0.1, 0.1, 1))
        spin = rng.normal(size=3)
        scene.add_solid(
            mesh.translated(where), supple.NeoHookean(young=5e3, poisson=0.3), density=200,
            velocity=(0, -5, 0), angular_velocity=spin,
        )  # fmt: skip
    contact_count = 0
    for frame in supple.simulate(scene, solver=supple.PBNG(iterations=15), frames=15):
        assert not intersects(scene, frame.positions)
        contact_count = max(contact_count, frame.report.contact.bodies.count)
    assert contact_count > 0


def test_late_pins_are_named():
    """Two plates with only pinned vertices have targets on each other's far side."""
    scene = supple.Scene(gravity=(0, 0, 0), contact="barrier")
    low = scene.add_solid(supple.block(cells=2), RUBBER, name="low")
    high = scene.add_solid(supple.block(cells=2).translated((0.1, 1.1, 0.05)), RUBBER, name="high")
    scene.pin(low.where(lambda X: X[:, 1] >= 1), None)
    scene.pin(high.where(lambda X: X[:, 1] < 1.2), supple.Translate((0, -0.5, 0)))
    result = supple.equilibrium(scene, tolerance=1e-4)
    assert not result.report.ok
    assert any("a contact blocks them" in note for note in result.report.notes)
    assert result.report.contact.bodies.pin_lag > 0.3
    assert not intersects(scene, result.positions)


def test_trust_region_bounds_prevent_collisions():
    """By ipctk's continuous detection, any motion within the per-vertex bounds is collision-free."""
    ipctk = pytest.importorskip("ipctk")
    ball = supple.ball(1.0, 3)
    used, triangles = np.unique(ball.surface, return_inverse=True)
    points, triangles = ball.points[used], triangles.reshape(-1, 3)
    inner = 0.97 * points
    x = np.concatenate([points, inner])
    faces = np.concatenate([triangles, triangles + len(points)])
    body = np.repeat([0, 1], len(points))
    surfaces = Surfaces(faces, body, x, 0.0, np.zeros(2, bool))
    radius = 0.2
    bounds = displacement_bounds(surfaces, proximity_pairs(surfaces, x, radius), radius)
    assert bounds.max() <= SAFE_FRACTION * radius
    mesh = ipctk.CollisionMesh(x, np.asarray(ipctk.edges(faces)), faces)
    rng = np.random.default_rng(0)
    for _ in range(5):
        way = rng.normal(size=x.shape)
        way *= bounds[:, None] / np.linalg.norm(way, axis=1)[:, None]
        assert ipctk.is_step_collision_free(mesh, x, x + way)
    toward = np.where(body[:, None] == 0, -1, 1) * x / np.linalg.norm(x, axis=1)[:, None]
    assert ipctk.is_step_collision_free(mesh, x, x + bounds[:, None] * toward)
    assert not ipctk.is_step_collision_free(mesh, x, x + 3 * bounds[:, None] * toward)


def test_proximity_pairs_equal_those_of_ipctk():
    ipctk = pytest.importorskip("ipctk")
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, (60, 3))
    faces = np.arange(60).reshape(-1, 3)
    surfaces = Surfaces(faces, np.arange(60) // 3, x, 0.0, np.ones(20, bool))
    pairs = proximity_pairs(surfaces, x, 0.4)
    for stencil, crossing, distance in zip(pairs.vertices, pairs.crossing, pairs.distance, strict=True):
        measure = ipctk.edge_edge_distance if crossing else ipctk.point_triangle_distance
        assert distance == pytest.approx(np.sqrt(measure(*x[stencil])), rel=1e-9, abs=1e-12)
    assert pairs.crossing.any()
    assert not pairs.crossing.all()


def test_initial_intersections_are_named():
    scene = pressed(gap=-0.25, contact="barrier")
    with pytest.raises(supple.SceneError, match=r"'low' and 'high' intersect: .* m deep"):
        supple.equilibrium(scene)
    scene.contact = "weak"
    (sentence,) = supple.inspect(scene)["intersections"]
    assert "'low' and 'high' intersect" in sentence
    assert supple.inspect(pressed())["intersections"] == []


def test_intersecting_start_is_refused():
    scene = pressed()
    start = np.concatenate([body.points for body in scene.bodies])
    start[len(scene.bodies[0].points) :, 1] -= 0.5
    with pytest.raises(ValueError, match="'low' and 'high' intersect"):
        supple.equilibrium(scene, initial=start)


def test_element_wise_methods_refuse_barriers():
    with pytest.raises(ValueError, match="xpbd does not support barrier contacts"):
        supple.equilibrium(pressed(), solver="xpbd", max_iterations=1)


def test_bad_options_are_refused():
    with pytest.raises(supple.SceneError, match="must be smaller than the edges"):
        assemble_model(pressed(thickness=0.6))
    with pytest.raises(supple.SceneError, match="contact must be"):
        supple.Contact("barriers")


@pytest.mark.parametrize(("size", "away"), [(1e-3, 0.0), (1e3, 0.0), (1.0, 1e4)])
def test_result_is_independent_of_size_and_position(size, away):
    scene = supple.Scene(gravity=(0, 0, 0), contact="barrier")
    at = np.array([away, -away, away])
    low = supple.block(cells=2, size=(size, size, size)).translated(at)
    high = supple.block(cells=1, size=(size, size, size)).translated(at + size * np.array([0.1, 1.03, 0.2]))
    one, two = (scene.add_solid(mesh, RUBBER) for mesh in (low, high))
    scene.pin(one.where(lambda X: X[:, 1] < at[1] + 0.01 * size))
    scene.pin(two.where(lambda X: X[:, 1] > at[1] + 1.9 * size), supple.Translate((0, -0.15 * size, 0)))
    result = supple.equilibrium(scene, tolerance=1e-4)
    assert result.report.ok, result.report
    assert not intersects(scene, result.positions - at)
    assert result.report.contact.bodies.min_gap / size == pytest.approx(0.027, abs=0.005)
