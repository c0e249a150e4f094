"""Friction between bodies: static friction without creep, and Coulomb's law for sliding."""

import numpy as np
import pytest

import supple
from supple.model.model import Model
from supple.problem import Problem
from supple.solvers import SOLVERS
from supple.terms import PenaltyContacts

ANGLE = np.radians(26.565)
"""Slope angle with a tangent of 0.5 to rounding."""

FRICTION_SOLVERS = [name for name in SOLVERS if name not in ("newton", "pbd", "xpbd", "block_xpbd", "gpbd")]
"""Solvers that reach a small relative residual with contacts this stiff in some hundred sweeps."""


def on_slope(mu, kinetic_friction=None, angle=ANGLE, velocity=(0, 0, 0), **options):
    """A block on a pinned one, on a slope."""
    gravity = 9.81 * np.array([np.sin(angle), -np.cos(angle), 0])
    scene = supple.Scene(
        gravity=tuple(gravity),
        quasistatic=False,
        dt=0.02,
        contact=supple.Contact("weak", friction=mu, kinetic_friction=kinetic_friction, **options),
    )
    base = supple.block(cells=(3, 1, 2), size=(3, 0.5, 2)).translated((-0.5, -0.5, -0.5))
    elastic = supple.Corotated(young=1e6, poisson=0.3)
    below = scene.add_solid(base, elastic, density=1000, name="base")
    scene.pin(below.where(lambda X: X[:, 1] < 1))
    block = supple.block(cells=(2, 1, 2), size=(1, 0.5, 1)).translated((0, 0.0083, 0))
    scene.add_solid(block, elastic, density=1000, name="block", velocity=velocity)
    return scene


def positions_along(scene, frames, tolerance=1e-6, **options):
    """Displacement of the block at every frame."""
    motion = supple.simulate(scene, solver=supple.PBNG(), frames=frames, tolerance=tolerance, **options)
    return np.array([frame.positions_of(scene.bodies[1])[:, 0].mean() for frame in motion])


def test_block_sticks_below_the_critical_angle():
    """The block settles elastically and then does not creep."""
    displacement = positions_along(on_slope(0.6), 60)
    assert np.ptp(displacement[30:]) < 1e-6


def test_sliding_acceleration_follows_coulomb():
    displacement, times = positions_along(on_slope(0.3), 40), 0.02 * np.arange(1, 41)
    acceleration = 2 * np.polyfit(times[10:], displacement[10:], 2)[0]
    assert acceleration == pytest.approx(9.81 * (np.sin(ANGLE) - 0.3 * np.cos(ANGLE)), rel=0.01)


def test_kinetic_friction_of_sliding_and_static_friction_of_resting_blocks():
    scene = on_slope(0.8, kinetic_friction=0.3, angle=0.0, velocity=(1, 0, 0))
    displacement, times = positions_along(scene, 25), 0.02 * np.arange(1, 26)
    assert 2 * np.polyfit(times[4:15], displacement[4:15], 2)[0] == pytest.approx(-9.81 * 0.3, rel=0.05)
    sliding_scene = on_slope(0.7, kinetic_friction=0.2)
    start = supple.equilibrium(
        sliding_scene, solver=supple.PBNG(), tolerance=1e-7, position_tolerance=None
    ).state
    assert np.ptp(positions_along(sliding_scene, 20, initial=start)[10:]) < 1e-6, "from rest"


def test_friction_pairs_override_friction():
    pair = supple.scene.FrictionPair(("block", "base"), 2.0)
    assert np.ptp(positions_along(on_slope(0.0, friction_pairs=(pair,)), 40)[25:]) < 1e-6
    with pytest.raises(supple.SceneError, match="no body 'floor'"):
        supple.scene.build_model(
            on_slope(0.0, friction_pairs=(supple.scene.FrictionPair(("block", "floor"), 2.0),))
        )


def test_friction_forces_between_bodies_are_opposite():
    for frame in supple.simulate(on_slope(0.3), solver=supple.PBNG(), frames=12, tolerance=1e-6):
        forces = np.array(list(frame.report.contact.bodies.forces.values()))
        assert np.abs(forces.sum(axis=0)).max() <= 1e-12 * np.abs(forces).max()
    normal_force, friction_force = forces[1, 1], forces[1, 0]
    assert abs(friction_force) == pytest.approx(0.3 * normal_force, rel=1e-2), (
        "it slides, so friction is all there is of it"
    )


def test_motion_resumed_from_state_is_bitwise_identical():
    scene = on_slope(0.45)
    uninterrupted = list(supple.simulate(scene, solver=supple.PBNG(iterations=20), frames=6))
    rest = supple.simulate(
        scene, solver=supple.PBNG(iterations=20), frames=6, initial=uninterrupted[2].state, first_frame=4
    )
    for one, other in zip(uninterrupted[3:], rest, strict=True):
        np.testing.assert_array_equal(one.positions, other.positions)
    bad = supple.State(
        uninterrupted[2].state.displacements, uninterrupted[2].state.velocities, {"contacts": [[1.0]]}
    )
    with pytest.raises(ValueError, match="'contacts' of the state must be"):
        next(supple.simulate(scene, solver=supple.PBNG(iterations=20), frames=6, initial=bad, first_frame=4))


@pytest.mark.parametrize("name", FRICTION_SOLVERS)
def test_all_solvers_agree_on_friction(name):
    limits = {"tolerance": 1e-6, "max_iterations": 600, "frames": 3}
    scene = on_slope(0.4)
    *_, frame = supple.simulate(scene, solver=SOLVERS[name](), **limits)
    *_, reference = supple.simulate(
        scene, solver=supple.PBNG(acceleration=None), **limits | {"tolerance": 1e-8}
    )
    assert frame.report.ok
    assert np.abs(frame.positions - reference.positions).max() < 1e-5


def test_newton_refuses_friction_between_bodies():
    with pytest.raises(ValueError, match="newton does not support friction between bodies"):
        next(supple.simulate(on_slope(0.4), solver="newton", frames=1))


def contacts_only(mu):
    """Contacts with random stencils, without bodies."""
    random, n = np.random.default_rng(0), 12
    rest = random.normal(size=(n, 3))
    vertices = np.array([random.permutation(n)[:4] for _ in range(6)], np.int32)
    weights = np.tile([1.0, -0.2, -0.3, -0.5], (6, 1))
    normal = random.normal(size=(6, 3))
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    slip = 0.1 * np.cross(normal, random.normal(size=(6, 3)))
    numbers = np.column_stack([normal, slip, random.uniform(-0.5, 0.5, 6), np.full(6, 7.0), np.full(6, mu)])
    term, nothing = PenaltyContacts(vertices, weights, numbers), np.empty((0, 3))
    none = np.zeros((n, 3))
    return Model(rest, np.ones(n), none, np.empty(0, int), lambda t: nothing, (term,), np.empty((0, 4), int))


@pytest.mark.parametrize("mu", [0.0, 1e9], ids=["smooth", "sticking"])
def test_sticking_forces_are_the_derivative_of_the_energy(mu):
    problem = Problem(contacts_only(mu), "float64")
    u, random = 0.2 * np.random.default_rng(1).normal(size=(12, 3)), np.random.default_rng(2)
    problem.positions = problem.model.rest + u
    problem.balance()
    forces = problem.states.vectors(problem.states.net)[0].copy()
    np.testing.assert_allclose(forces.sum(axis=0), 0, atol=1e-12)
    for _ in range(3):
        direction = random.normal(size=u.shape)
        energies = []
        for h in (1e-5, -1e-5):
            problem.positions = problem.model.rest + u + h * direction
            energies.append(problem.energy())
        slope = (energies[0] - energies[1]) / 2e-5
        assert -(forces * direction).sum() == pytest.approx(slope, rel=1e-6, abs=1e-7)


def test_kernels_and_host_agree_and_forces_are_inside_the_cone():
    model = contacts_only(0.3)
    problem, (term,) = Problem(model, "float64"), model.terms
    u = 0.3 * np.random.default_rng(3).normal(size=(12, 3))
    problem.positions = model.rest + u
    problem.balance()
    forces, expected = term.forces(u), np.zeros((12, 3))
    np.add.at(expected, term.vertices, term.weights[:, :, None] * forces[:, None])
    np.testing.assert_allclose(problem.states.vectors(problem.states.net)[0], expected, atol=1e-12)
    normal_forces = (forces * term.numbers[:, :3]).sum(axis=1)
    friction_force = np.linalg.norm(forces - normal_forces[:, None] * term.numbers[:, :3], axis=1)
    assert (normal_forces >= 0).all()
    assert (normal_forces > 0).any()
    assert (friction_force <= 0.3 * normal_forces * (1 + 1e-12)).all()
    assert term.response(u).slides[normal_forces > 0].any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: supple.Contact(friction=-0.1), "friction of contact"),
        (lambda: supple.Contact(friction=0.1, kinetic_friction=0.2), "must not exceed the static friction"),
        (lambda: supple.Contact(friction_pairs=("a", "b")), "must be FrictionPair"),
        (lambda: supple.scene.FrictionPair("ab", 0.2), "two names"),
    ],
)
def test_bad_friction_is_refused(make, message):
    with pytest.raises(supple.SceneError, match=message):
        make()
