"""Backward Euler: free fall, momentum, and PBNG against Newton."""

import numpy as np
import pytest
from problems import HAND_WRITTEN, PBNGS, cantilever, face, material

import supple
from supple import PBNG, Newton, Outcome
from supple.problem import Problem
from supple.solvers import SOLVERS as METHODS

DT = 0.01
GRAVITY = np.array([0, -9.81, 0])


def flying(name="corotated", gravity=GRAVITY, cells=2):
    scene = supple.Scene(gravity=gravity, quasistatic=False)
    scene.add_solid(supple.block(cells), material(name), density=10)
    return scene


SOLVERS = {"pbng": PBNG(), "chebyshev": PBNGS["chebyshev"], "newton": Newton()}


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_free_fall(solver):
    """x_k = x_0 + Δt² g k (k + 1)/2 and v_k = k Δt g, without strain."""
    scene = flying()
    rest = scene.bodies[0].points
    for frame in supple.simulate(scene, solver=solver, dt=DT, frames=5, tolerance=1e-9):
        k = frame.index
        assert frame.report.ok
        assert frame.time == pytest.approx(k * DT)
        np.testing.assert_allclose(frame.positions, rest + DT**2 * GRAVITY * k * (k + 1) / 2, atol=1e-10)
        np.testing.assert_allclose(frame.velocities, np.tile(k * DT * GRAVITY, (len(rest), 1)), atol=1e-8)


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_momentum_is_conserved(name):
    """A body thrown with a random velocity and no load."""
    scene = flying(name, gravity=(0, 0, 0))
    rest = scene.bodies[0].points
    v = np.random.default_rng(0).normal(size=rest.shape) * 0.5 + [1, 2, 3]
    mass = scene.bodies[0].mesh.masses(10)
    for frame in supple.simulate(scene, solver=Newton(), dt=DT, frames=3, tolerance=1e-9, velocities=v):
        assert frame.report.ok
        np.testing.assert_allclose(mass @ frame.velocities, mass @ v, rtol=1e-7)
        assert np.abs(frame.velocities - v).max() > 0.01


def test_backward_euler_never_gains_energy():
    """The oscillation of an initially inflated body decays."""
    scene = flying(gravity=(0, 0, 0))
    problem = Problem(supple.scene.build_model(scene), "float64")
    start = 1.2 * problem.model.rest
    problem.positions = start
    energy = [problem.energy()]
    for frame in supple.simulate(scene, solver=Newton(), dt=DT, frames=15, tolerance=1e-9, initial=start):
        problem.positions = frame.positions
        energy.append(problem.energy() + 0.5 * problem.model.mass @ np.sum(frame.velocities**2, axis=1))
    assert np.all(np.diff(energy) < 0)
    assert energy[-1] < 0.8 * energy[0]


@pytest.mark.parametrize("solver", PBNGS.values(), ids=PBNGS)
def test_pbng_agrees_with_newton_in_dynamics(solver):
    scene = cantilever(material("corotated"), gravity=20)
    pairs = zip(
        supple.simulate(scene, solver=solver, dt=DT, frames=6, quasistatic=False, tolerance=1e-8),
        supple.simulate(scene, solver=Newton(), dt=DT, frames=6, quasistatic=False, tolerance=1e-10),
        strict=True,
    )
    for actual, reference in pairs:
        assert actual.report.ok
        np.testing.assert_allclose(actual.positions, reference.positions, atol=1e-6)
        np.testing.assert_allclose(actual.velocities, reference.velocities, atol=1e-4)
    assert np.abs(reference.positions - reference.model.rest).max() > 1e-3


def test_dynamics_converge_to_the_static_equilibrium():
    """With long time steps backward Euler is so damped that one step is enough."""
    scene = cantilever(material("corotated"))
    *_, last = supple.simulate(scene, solver=Newton(), dt=1.0, frames=20, quasistatic=False, tolerance=1e-9)
    static = supple.equilibrium(scene, solver=Newton(), tolerance=1e-10)
    np.testing.assert_allclose(last.positions, static.positions, atol=1e-4)


def test_substeps_equal_shorter_steps():
    coarse = list(
        supple.simulate(cantilever(material("corotated")), solver=PBNG(), dt=DT, frames=2, substeps=3,
                        quasistatic=False, tolerance=1e-8)
    )  # fmt: skip
    fine = list(
        supple.simulate(cantilever(material("corotated")), solver=PBNG(), dt=DT / 3, frames=6,
                        quasistatic=False, tolerance=1e-8)
    )  # fmt: skip
    for k, frame in enumerate(coarse):
        np.testing.assert_allclose(frame.positions, fine[3 * k + 2].positions, atol=1e-12)
        assert frame.report.iterations == sum(f.report.iterations for f in fine[3 * k : 3 * k + 3])


def test_motion_resumed_from_frame_is_identical():
    scene = cantilever(material("corotated"))
    options = {"dt": DT, "frames": 4, "quasistatic": False, "max_iterations": 15}
    uninterrupted = list(supple.simulate(scene, solver=PBNG(), **options))
    middle = uninterrupted[1]
    rest = list(
        supple.simulate(
            scene,
            solver=PBNG(),
            initial=middle.positions,
            velocities=middle.velocities,
            first_frame=3,
            **options,
        )
    )
    assert [frame.index for frame in rest] == [3, 4]
    np.testing.assert_allclose(rest[-1].positions, uninterrupted[-1].positions, atol=1e-12)


def test_quasistatic_frames_follow_the_motion():
    scene = supple.Scene(gravity=(0, 0, 0), dt=0.5, frames=2)
    body = scene.add_solid(supple.block(2), material("corotated"))
    scene.pin(body.where(face(0, 0)))
    scene.pin(body.where(face(0, 1)), motion=supple.Translate((0.2, 0, 0)))
    frames = list(supple.simulate(scene, solver=Newton(), tolerance=1e-9))
    assert [frame.time for frame in frames] == [0.5, 1.0]
    for frame, gravity in zip(frames, (0.1, 0.2), strict=True):
        assert frame.report.outcome is Outcome.CONVERGED
        np.testing.assert_allclose(frame.positions[frame.model.rest[:, 0] >= 1, 0], 1 + gravity)
    static = supple.equilibrium(scene, solver=Newton(), tolerance=1e-9)
    np.testing.assert_allclose(frames[-1].positions, static.positions, atol=1e-8)


def test_frames_are_warm_started():
    """The second frame after the end of a motion needs no iteration."""
    scene = supple.Scene(gravity=(0, 0, 0), dt=1.0, frames=2)
    body = scene.add_solid(supple.block(2), material("corotated"))
    scene.pin(body.where(face(0, 0)))
    scene.pin(body.where(face(0, 1)), motion=supple.Translate((0.2, 0, 0)))
    first, second = supple.simulate(scene, solver=Newton(), tolerance=1e-8)
    assert first.report.iterations > 0
    assert second.report.iterations == 0


def test_quasistatic_argument_overrides_the_scene():
    """A flying body needs no pins in a dynamic call."""
    scene = supple.Scene(gravity=GRAVITY)
    scene.add_solid(supple.block(1), material("corotated"))
    (frame,) = supple.simulate(scene, solver=PBNG(), dt=DT, frames=1, quasistatic=False, tolerance=1e-8)
    np.testing.assert_allclose(
        frame.positions - frame.model.rest, np.tile(DT**2 * GRAVITY, (8, 1)), atol=1e-10
    )
    with pytest.raises(supple.SceneError, match="it would fall forever"):
        supple.equilibrium(flying())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dt": 0.0}, "dt must be positive"),
        ({"dt": -1.0}, "dt must be positive"),
        ({"frames": 0}, "frames must be a whole number of at least 1"),
        ({"substeps": 0}, "substeps must be a whole number of at least 1"),
        ({"tolerance": None}, "no termination criterion"),
    ],
)
def test_wrong_calls_are_refused_immediately(options, message):
    """Before the first frame is requested."""
    with pytest.raises(ValueError, match=message):
        supple.simulate(flying(), solver=PBNG(), **{"dt": DT, "frames": 1, "tolerance": 1e-4, **options})


def test_wrong_velocities_are_refused():
    with pytest.raises(ValueError, match="one row of three numbers per vertex"):
        next(
            supple.simulate(
                flying(), solver=PBNG(), dt=DT, frames=1, tolerance=1e-4, velocities=np.zeros((2, 3))
            )
        )


def test_failed_unobserved_substeps_keep_the_last_good_frame():
    """The frame reports the failure with finite positions and velocities, from which the motion continues."""
    scene = cantilever(material("neo_hookean"), gravity=20)
    scene.quasistatic, scene.dt = False, 1e10  # so far that float32 has no number for it
    start = supple.scene.build_model(scene, False).rest
    fast = np.zeros_like(start)
    fast[-1] = 1e30
    options = {"frames": 2, "substeps": 3, "velocities": fast, "precision": "float32"}
    frames = list(supple.simulate(scene, solver=PBNG(iterations=2), **options))
    for frame in frames:
        assert np.isfinite(frame.positions).all()
        assert np.isfinite(frame.velocities).all()


ALL_SOLVERS = {name: kind(iterations=2 if name == "newton" else 20) for name, kind in METHODS.items()}


@pytest.mark.parametrize("solver", ALL_SOLVERS.values(), ids=ALL_SOLVERS)
def test_every_solver_applies_the_damping_of_the_scene(solver):
    """A flying body without loads: v is multiplied by (1 - damping)ᵏ after k steps."""
    scene = flying(gravity=(0, 0, 0))
    scene.damping, scene.substeps = 0.1, 2
    object.__setattr__(scene.bodies[0], "velocity", (1.0, 2.0, 3.0))
    *_, last = supple.simulate(scene, solver=solver, dt=DT, frames=3)
    np.testing.assert_allclose(last.velocities.mean(axis=0), 0.9**6 * np.array([1, 2, 3]), rtol=1e-6)


def test_damping_of_solver_and_scene_multiply():
    scene = flying(gravity=(0, 0, 0))
    v = np.ones_like(scene.bodies[0].points)
    options = {"dt": DT, "frames": 1, "velocities": v}
    (both,) = supple.simulate(scene, solver=supple.PBD(damping=0.5, iterations=1), damping=0.5, **options)
    (own,) = supple.simulate(scene, solver=supple.PBD(damping=0.5, iterations=1), **options)
    np.testing.assert_allclose(both.velocities, 0.25, rtol=1e-9)
    np.testing.assert_allclose(own.velocities, 0.5, rtol=1e-9)


@pytest.mark.parametrize("options", [{"damping": 1.0}, {"damping": -0.1}, {"damping": np.nan}])
def test_impossible_damping_is_refused(options):
    with pytest.raises(ValueError, match="damping must lie between 0 and 1"):
        supple.simulate(flying(), solver=PBNG(iterations=1), **options)


def test_substeps_and_damping_of_a_call_replace_those_of_the_scene():
    scene = flying()
    scene.substeps, scene.damping = 3, 0.2
    plain = flying()
    given = {"dt": DT, "frames": 2, "max_iterations": 5}
    for scene_says, call_says in (({}, {"substeps": 3, "damping": 0.2}), ({"substeps": 1, "damping": 0}, {})):
        a = list(supple.simulate(scene, solver=PBNG(), **given, **scene_says))
        b = list(supple.simulate(plain, solver=PBNG(), **given, **call_says))
        assert np.array_equal(a[-1].positions, b[-1].positions)


@pytest.mark.parametrize("solver", [PBNG("anderson"), supple.XPBD(iterations=40)], ids=lambda s: s.name)
def test_ramped_loads_act_at_the_end_of_each_step(solver):
    """The momentum of a free body is the sum of Δt f over the steps."""
    scene = flying(gravity=(0, 0, 0))
    ramp = supple.loads.Ramp((0, 2 * DT, 3 * DT), (0, 1, -2))
    scene.add_force(scene.bodies[0], (3.0, 0, 0), ramp=ramp)
    scene.substeps = 2
    mass, momentum = scene.bodies[0].mesh.masses(10), 0.0
    for frame in supple.simulate(scene, solver=solver, dt=DT, frames=4, max_iterations=40):
        times = [frame.time - DT / 2, frame.time]
        momentum += sum(DT / 2 * 3.0 * ramp(t) for t in times)
        assert (mass @ frame.velocities)[0] == pytest.approx(momentum, rel=1e-5)
    assert momentum < 0


def test_resumed_motion_keeps_the_velocities_of_the_state():
    """Initial velocities of the scene are not used."""
    scene = flying(gravity=(0, 0, 0))
    object.__setattr__(scene.bodies[0], "velocity", (1.0, 0.0, 0.0))
    scene.damping = 0.5
    options = {"dt": DT, "max_iterations": 3}
    uninterrupted = list(supple.simulate(scene, solver=PBNG(), frames=3, **options))
    (last,) = supple.simulate(
        scene, solver=PBNG(), frames=3, initial=uninterrupted[1].state, first_frame=3, **options
    )
    assert np.array_equal(last.positions, uninterrupted[2].positions)
    assert last.velocities.mean(axis=0)[0] == pytest.approx(0.125)
