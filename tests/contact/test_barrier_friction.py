"""Friction between bodies with barrier contact."""

import numpy as np
import pytest

import supple
from supple.model.model import Model
from supple.problem import Problem
from supple.terms import Barriers
from supple.terms.contact.barrier_friction import FrictionData

ANGLE = np.radians(26.565)


def on_slope(mu, angle=ANGLE, quasistatic=False, **options):
    """A block on a pinned one under tilted gravity, starting at the equilibrium gap of the barrier."""
    gravity = (9.81 * float(np.sin(angle)), -9.81 * float(np.cos(angle)), 0.0)
    contact = supple.Contact("barrier", friction=mu, **options)
    scene = supple.Scene(gravity=gravity, quasistatic=quasistatic, dt=0.02, contact=contact)
    elastic = supple.Corotated(young=1e6, poisson=0.3)
    base = supple.block(cells=(3, 1, 2), size=(3, 0.5, 2)).translated((-0.5, -0.5, -0.5))
    below = scene.add_solid(base, elastic, density=1000, name="base")
    scene.pin(below.where(lambda X: X[:, 1] < 1))
    block = supple.block(cells=(2, 1, 2), size=(1, 0.5, 1)).translated((0.03, 0.03, 0.04))
    scene.add_solid(block, elastic, density=1000, name="block")
    return scene


def along(scene, frames, **options):
    """Displacement of the block along the slope at every frame."""
    motion = supple.simulate(scene, solver=supple.PBNG(), frames=frames, tolerance=1e-5, **options)
    return np.array([frame.positions_of(scene.bodies[1])[:, 0].mean() for frame in motion])


def test_block_sticks_below_the_critical_angle_and_slides_above_it():
    displacement = along(on_slope(0.6), 60)
    assert np.ptp(displacement[48:]) < 1e-6, "it settles and then does not creep"
    displacement, times = along(on_slope(0.3), 25), 0.02 * np.arange(1, 26)
    expected = 9.81 * (np.sin(ANGLE) - 0.3 * np.cos(ANGLE))
    assert 2 * np.polyfit(times[8:], displacement[8:], 2)[0] == pytest.approx(expected, rel=0.02)


def sliding_box(gap, friction=0.4):
    """A box that slides at 2 m/s above a slab; physics.md D6 starts it 4 mm above, with a thickness of 10.7
    mm."""
    scene = supple.Scene(quasistatic=False, contact=supple.Contact("barrier", friction=friction))
    slab = supple.block((10, 1, 2), size=(2.4, 0.2, 0.6), origin=(-0.1, -0.2, -0.1))
    floor = scene.add_solid(slab, supple.Corotated(young=1e7, poisson=0.3), name="floor")
    scene.pin(floor.where(lambda X: X[:, 1] <= -0.2))
    box = supple.block((3, 2, 3), size=(0.3, 0.1, 0.3), origin=(0, gap, 0))
    scene.add_solid(box, supple.Corotated(young=1e6, poisson=0.3), velocity=(2, 0, 0), name="box")
    return scene


@pytest.mark.parametrize(
    ("gap", "friction", "dt"),
    [(0.004, 0.4, 0.005), (0.004, 0.4, 0.001), (0.004, 0.0, 0.001), (0.001, 0.4, 0.005)],
)
def test_start_within_the_thickness_does_not_throw_a_sliding_box_up(gap, friction, dt):
    scene = sliding_box(gap, friction)
    box = scene.bodies[1]
    frames = list(supple.simulate(scene, dt=dt, frames=round(0.06 / dt)))
    assert all(frame.report.ok for frame in frames)
    moved = np.array([(frame.positions_of(box) - box.points).mean(axis=0) for frame in frames])
    assert moved[-1, 0] == pytest.approx(0.12 - 0.5 * friction * 9.81 * 0.06**2, abs=1e-3)
    assert moved[:, 1].max() < 2e-4, "no energy from the start"
    noted = any("apart, which is less" in note for note in frames[0].report.notes)
    assert noted == (gap < 0.00107), "where the gap is less than a tenth of the thickness"


def test_start_far_within_the_thickness_is_reported():
    """With less than a tenth of the thickness the box moves up, and the report of the first frame has a
    note."""
    first, second = supple.simulate(sliding_box(1e-4), dt=0.005, frames=2)
    (note,) = (note for note in first.report.notes if "apart, which is less" in note)
    assert (
        "'floor' and 'box' start 0.0001 m apart, which is less than the thickness of their contact, 0.0011 m"
        in note
    )
    assert first.report.ok
    assert second.report.ok
    assert not any("apart, which is less" in note for note in second.report.notes)


def test_sliding_contact_has_kinetic_friction():
    scene = on_slope(0.8, kinetic_friction=0.3, angle=0.0)
    rest = supple.equilibrium(
        on_slope(0.8, angle=0.0, quasistatic=True), tolerance=1e-5, position_tolerance=None
    )
    velocity = np.zeros_like(rest.positions)
    velocity[scene.bodies[1].vertices] = 1, 0, 0
    start = supple.State(rest.state.displacements, velocity)
    displacement, times = along(scene, 16, initial=start), 0.02 * np.arange(1, 17)
    assert 2 * np.polyfit(times[2:], displacement[2:], 2)[0] == pytest.approx(-9.81 * 0.3, rel=0.05)


def test_friction_pairs_override_friction_and_forces_are_opposite():
    scene = on_slope(0.0, friction_pairs=(supple.scene.FrictionPair(("block", "base"), 0.4),))
    for frame in supple.simulate(scene, solver=supple.PBNG(), frames=12, tolerance=1e-5):
        forces = np.array(list(frame.report.contact.bodies.forces.values()))
        assert np.abs(forces.sum(axis=0)).max() <= 1e-12 * np.abs(forces).max()
        each = frame.model.terms[-1].forces(frame.positions)
        assert np.abs(np.cross(frame.positions, each).sum(axis=0)).max() <= 1e-12 * np.abs(forces).max()
    assert abs(forces[1, 0]) == pytest.approx(0.4 * forces[1, 1], rel=0.02), "it slides"


def test_friction_balances_an_equilibrium():
    """Without friction the scene has no equilibrium."""
    result = supple.equilibrium(on_slope(0.7, quasistatic=True), tolerance=1e-5, position_tolerance=None)
    assert result.report.ok, result.report
    friction_force, normal_force, _ = result.report.contact.bodies.forces["block"]
    assert -friction_force / normal_force == pytest.approx(np.tan(ANGLE), rel=1e-3)
    evaluation = supple.evaluate(on_slope(0.7, quasistatic=True), result.positions)
    assert np.isfinite(evaluation.energy)


@pytest.mark.parametrize("solver", ["hybrid", "pbng", "mpbng"])
def test_equilibrium_with_friction_has_an_error_estimate(solver):
    """The estimate is within a factor of two of the distance to the positions at a far tighter tolerance."""
    scene = on_slope(0.7, quasistatic=True)
    result = supple.equilibrium(scene, solver=solver)
    assert result.report.ok, result.report
    assert result.report.error_estimate.position_error < 1e-4
    rest = supple.equilibrium(scene, tolerance=1e-9, position_tolerance=None)
    off = np.abs(result.positions - rest.positions).max()
    assert off < 2 * result.report.error_estimate.worst.position_error_m


def test_resumed_motion_is_bitwise_identical_and_its_state_has_forces():
    scene, solver = on_slope(0.45), supple.PBNG(iterations=15)
    uninterrupted = list(supple.simulate(scene, solver=solver, frames=5))
    rest = list(
        supple.simulate(scene, solver=solver, frames=5, initial=uninterrupted[2].state, first_frame=4)
    )
    for one, other in zip(uninterrupted[3:], rest, strict=True):
        np.testing.assert_array_equal(one.positions, other.positions)
        np.testing.assert_array_equal(one.state.history["contacts"], other.state.history["contacts"])
    bad = supple.State(
        uninterrupted[2].state.displacements, uninterrupted[2].state.velocities, {"contacts": [[1.0]]}
    )
    with pytest.raises(ValueError, match="'contacts' of the state must be"):
        next(supple.simulate(scene, solver=solver, frames=5, initial=bad, first_frame=4))


def test_saved_frames_have_the_friction_of_the_run():
    from supple.contact.state.dynamic_term_updates import evaluate_dynamic_terms

    scene = on_slope(0.45)
    *_, frame = supple.simulate(scene, solver=supple.PBNG(), frames=6, tolerance=1e-5)
    term = evaluate_dynamic_terms(
        supple.scene.build_model(scene), frame.positions, frame.time, frame.state.history
    ).terms[-1]
    force = term.forces(frame.positions)[scene.bodies[1].vertices].sum(axis=0)
    np.testing.assert_allclose(force, frame.report.contact.bodies.forces["block"], rtol=1e-6)


def friction_contacts_only(mu, crossing, seed=0, count=8):
    """Barriers without shared vertices, some of them stretched."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(400, 4, 3))
    from supple.terms.contact.barrier_hessian import closest

    d = closest(x, np.full(len(x), crossing))[1]
    x = x[(d < 0.4) & (d > 0.1)][:count]
    m = len(x)
    vertices = np.arange(4 * m, dtype=np.int32).reshape(-1, 4)
    rubs = FrictionData(
        x + 0.05 * rng.normal(size=x.shape), 0.1 * rng.normal(size=(m, 3)), np.full(m, mu), np.full(m, 30.0)
    )
    flags, k, h = np.full(m, crossing), np.full(m, 3.0), np.full(m, 0.5)
    term = Barriers(vertices, flags, k, h, np.arange(m), x.reshape(-1, 3), m, rubs)
    n, nothing = 4 * m, np.empty((0, 3))
    return Model(
        x.reshape(-1, 3), np.ones(n), np.zeros((n, 3)), np.empty(0, int), lambda t: nothing, (term,),
        np.empty((0, 4), np.int32),
    )  # fmt: skip


@pytest.mark.parametrize("crossing", [False, True], ids=["faces", "edges"])
@pytest.mark.parametrize("mu", [0.3, 1e6], ids=["sliding", "sticking"])
def test_kernels_and_host_agree_and_forces_are_inside_the_cone(crossing, mu):
    model = friction_contacts_only(mu, crossing)
    (term,), problem = model.terms, Problem(model, "float64")
    problem.positions = model.rest + 0.01 * np.random.default_rng(5).normal(size=model.rest.shape)
    problem.balance()
    forces = problem.states.vectors(problem.states.net)[0]
    expected = term.forces(problem.positions)
    np.testing.assert_allclose(forces, expected, atol=1e-10 * np.abs(expected).max())
    contacts = term.active_contacts(problem.positions)
    friction_response = term.friction_response(problem.positions, contacts)
    tangential_forces = friction_response.tangential_stiffness * np.linalg.norm(
        friction_response.slip, axis=1
    )
    assert (tangential_forces <= mu * contacts.normal_force * (1 + 1e-12)).all()
    assert friction_response.slides.any() == (mu < 1)
    four = forces.reshape(-1, 4, 3).sum(axis=1)
    np.testing.assert_allclose(four, 0, atol=1e-10 * np.abs(forces).max())
    torques = np.cross(problem.positions, forces).reshape(-1, 4, 3).sum(axis=1)
    np.testing.assert_allclose(torques, 0, atol=1e-10 * np.abs(forces).max())
