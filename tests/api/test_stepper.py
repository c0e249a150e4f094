"""Stepper: equal to `simulate` but with a loop outside of the library, alone and in batches."""

import numpy as np
import pytest
from problems import cantilever, face, material

import supple
from supple import PBD, PBNG, XPBD, Newton, Outcome, Report
from supple.solve.time_loop import merge_reports
from supple.solvers import Solver

DT = 0.02
LIMITS = {"max_iterations": 8, "tolerance": None}


def swinging(gravity=20.0):
    scene = cantilever(material("neo_hookean"), cells=2, gravity=gravity)
    scene.quasistatic, scene.dt = False, DT
    return scene


def pushes(scene, seed=0, shape=()):
    """Random forces on all vertices [N]."""
    n = scene.bodies[-1].vertices.stop
    return np.random.default_rng(seed).normal(size=(*shape, n, 3))


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("solver", [PBNG("anderson"), XPBD(), PBD(damping=0.1)], ids=lambda s: s.name)
def test_steps_equal_frames_of_simulate(solver, precision):
    scene, options = swinging(), {"substeps": 3, "precision": precision, **LIMITS}
    sim = supple.Stepper(scene, DT, solver=solver, **options)
    for frame in supple.simulate(scene, solver=solver, frames=3, **options):
        step = sim.step()
        assert np.array_equal(step.positions, frame.positions)
        assert np.array_equal(step.velocities, frame.velocities)
        assert (step.index, step.time) == (frame.index, frame.time) == (sim.index, sim.time)
        assert step.report.iterations == frame.report.iterations
        assert np.array_equal(sim.positions, step.positions)
        assert np.array_equal(sim.velocities, step.velocities)


def test_advance_differs_from_step_by_rounding_of_velocities():
    one, two, read = (
        supple.Stepper(swinging(), DT, solver=PBNG(), precision="float32", **LIMITS) for _ in range(3)
    )
    for _ in range(3):
        one.step()
        two.advance()
        read.advance()
        assert read.velocities.any()
    np.testing.assert_allclose(two.positions, one.positions, atol=1e-5)
    assert np.array_equal(read.positions, one.positions), "which reading does too"


def test_quasistatic_steps_are_equilibria():
    scene = cantilever(material("corotated"), cells=2)
    sim = supple.Stepper(scene, 0.5, solver=Newton(), tolerance=1e-10)
    load = pushes(scene)
    scene.add_force(scene.bodies[0], load)
    truth = supple.equilibrium(scene, solver=Newton(), tolerance=1e-10)
    frame = sim.step(forces=load)
    np.testing.assert_allclose(frame.positions, truth.positions, atol=1e-9)
    np.testing.assert_allclose(frame.velocities, (truth.positions - truth.model.rest) / 0.5, atol=1e-7)


def test_step_forces_add_to_forces_of_the_scene():
    scene, loaded = swinging(), swinging()
    load = pushes(scene)
    loaded.add_force(loaded.bodies[0], load)
    sim, other = (supple.Stepper(s, DT, solver=PBNG(), **LIMITS) for s in (scene, loaded))
    for forces, others in ((load, None), (-load, -2 * load), (None, -load)):
        positions = sim.step(forces=forces).positions
        np.testing.assert_allclose(positions, other.step(forces=others).positions, atol=1e-12)


def test_forces_may_be_given_by_body():
    scene = swinging(gravity=0.0)
    tip = scene.bodies[0].where(face(0, 1))
    each = np.zeros_like(scene.bodies[0].points)
    each[tip.vertices] = np.array([0, 9.0, 0]) / len(tip)
    one, two = (supple.Stepper(scene, DT, solver=PBNG(), **LIMITS) for _ in range(2))
    assert np.array_equal(one.step(forces={tip: (0, 9.0, 0)}).positions, two.step(forces=each).positions)


def test_reused_force_arrays_are_read_again():
    """`step` reads its forces at each call, also from the same array as before."""
    scene = swinging()
    load = pushes(scene)
    one, two = (supple.Stepper(scene, DT, solver=PBNG(), **LIMITS) for _ in range(2))
    one.step(forces=load)
    two.step(forces=load.copy())
    load *= 5
    assert np.array_equal(one.step(forces=load).positions, two.step(forces=load.copy()).positions)


@pytest.mark.parametrize("substeps", [1, 4])
def test_pins_reach_their_targets_at_constant_velocity(substeps):
    """Pins move between their targets as with a motion of the scene."""
    scene, moved = swinging(), swinging()
    pin, offset = scene.pins[0].on, np.array([0, 0.1, 0])
    moved.pins[0] = type(moved.pins[0])(moved.pins[0].on, supple.Translate(offset, duration=2 * DT))
    options = {"substeps": substeps, **LIMITS}
    sim, other = (supple.Stepper(s, DT, solver=PBNG(), **options) for s in (scene, moved))
    for part in (0.5, 1.0):
        target = pin.points + part * offset
        given = target if part < 1 else {pin: target}
        frame = sim.step(pins=given)
        np.testing.assert_allclose(frame.positions[sim.pinned], target, atol=1e-12)
        np.testing.assert_allclose(frame.positions, other.step().positions, atol=1e-9)


@pytest.mark.parametrize("solver", [PBNG("anderson"), XPBD(), Newton()], ids=lambda s: s.name)
def test_batch_members_equal_single_steppers(solver):
    scene, limits = swinging(), {"max_iterations": 3}
    loads = pushes(scene, shape=(3,))
    batched = supple.Stepper(scene, DT, solver=solver, batch_size=3, **limits)
    for k in range(2):
        frames = batched.step(forces=(k + 1) * loads)
    assert frames.positions.shape == (3, *loads.shape[1:])
    assert len(frames) == len(frames.reports) == 3
    for copy in range(3):
        single = supple.Stepper(scene, DT, solver=solver, **limits)
        for k in range(2):
            frame = single.step(forces=(k + 1) * loads[copy])
        np.testing.assert_allclose(frames.positions[copy], frame.positions, atol=1e-12)
        np.testing.assert_allclose(frames[copy].velocities, frame.velocities, atol=1e-10)
        assert frames[copy].report.iterations == frame.report.iterations
    assert np.ptp(frames.positions, axis=0).max() > 1e-3


@pytest.mark.parametrize("quasistatic", [False, True])
def test_frame_of_a_batch_member_is_complete(quasistatic):
    """It has the state and the last step, as the frame of a single stepper."""
    scene, options = swinging(), {"quasistatic": quasistatic, **LIMITS}
    loads = pushes(scene, shape=(3,))
    frames = supple.Stepper(scene, DT, solver=PBNG(), batch_size=3, **options).step(forces=loads)
    for copy, load in enumerate(loads):
        frame = supple.Stepper(scene, DT, solver=PBNG(), **options).step(forces=load)
        assert np.array_equal(frames[copy].state.displacements, frame.state.displacements)
        assert np.array_equal(frames[copy].state.velocities, frame.state.velocities)
        assert frames[copy].step.dt == frame.step.dt
        assert np.array_equal(frames[copy].step.anchor, frame.step.anchor)
        assert np.array_equal(frames[copy].step.force, frame.step.force)
    batch_frames = frames[1:]
    assert isinstance(batch_frames, list)
    assert [f.report for f in batch_frames] == frames.reports[1:]


def test_repr_of_steppers_and_frames_is_one_line():
    sim = supple.Stepper(swinging(), DT, solver=PBNG(), batch_size=2, **LIMITS)
    assert repr(sim.step()) == "<BatchFrame 1 at 0.02 s: 2 batch members of 27 vertices, 2 fixed_iterations>"
    assert repr(sim) == "<Stepper at 0.02 s after 1 step: 2 batch members of 27 vertices, pbng>"
    assert repr(supple.Stepper(swinging())) == "<Stepper at 0 s after 0 steps: 27 vertices, hybrid>"


@pytest.mark.parametrize("batch_size", [None, 2])
def test_restored_snapshot_repeats_the_motion(batch_size):
    scene = swinging()
    sim = supple.Stepper(scene, DT, solver=PBNG(), precision="float32", batch_size=batch_size, **LIMITS)
    load = pushes(scene) if batch_size is None else pushes(scene, shape=(batch_size,))
    sim.step(forces=load)
    snapshot = sim.state
    after = [sim.step(forces=-load).positions for _ in range(2)]
    sim.state = snapshot
    again = [sim.step(forces=-load).positions for _ in range(2)]
    assert np.array_equal(after, again)
    assert not np.array_equal(after[0], after[1])


@pytest.mark.parametrize("batch_size", [None, 2])
def test_reset_restarts_the_motion(batch_size):
    scene = swinging()
    sim = supple.Stepper(scene, DT, solver=PBNG(), batch_size=batch_size, **LIMITS)
    first = [sim.step().positions for _ in range(2)]
    sim.reset()
    assert (sim.time, sim.index) == (0.0, 0)
    assert np.array_equal([sim.step().positions for _ in range(2)], first)
    x, v = sim.model.rest * 1.1, np.full_like(sim.model.rest, 0.5)
    sim.reset(x, v)
    np.testing.assert_allclose(sim.positions, np.broadcast_to(x, sim.positions.shape), atol=1e-15)
    np.testing.assert_allclose(sim.velocities, np.broadcast_to(v, sim.positions.shape))


def test_single_batch_member_can_be_reset():
    scene = swinging()
    sim = supple.Stepper(scene, DT, solver=PBNG(), batch_size=2, **LIMITS)
    first, second = sim.step().positions, sim.step().positions
    sim.reset(members=[1])
    assert np.array_equal(sim.positions[0], second[0])
    assert sim.index == 2
    third = sim.step().positions
    assert np.array_equal(third[1], first[1])
    assert not np.array_equal(third[0], first[0])


@pytest.mark.parametrize("batch_size", [None, 2])
def test_step_after_a_failure_is_refused_until_reset(batch_size):
    scene = swinging()
    limits = {"substeps": 3, "max_iterations": 2, "tolerance": None}
    sim = supple.Stepper(scene, DT, solver=PBNG(), batch_size=batch_size, precision="float32", **limits)
    before = sim.state
    fast = np.zeros_like(sim.positions)
    fast[..., -1, :] = 1e30
    if batch_size is not None:
        fast[0] = 0
    sim.reset(velocities=fast)
    frame = sim.step()
    reports = [frame.report] if batch_size is None else frame.reports
    assert reports[-1].outcome is Outcome.FAILED
    assert np.isfinite(frame.positions).all()
    with pytest.raises(RuntimeError, match=r"failed: the forces became infinite or NaN. Call reset"):
        sim.step()
    if batch_size is None:
        sim.state = before
    else:
        assert reports[0].outcome is not Outcome.FAILED
        sim.reset(members=[1])
    frame = sim.step()
    assert all(
        r.outcome is Outcome.FIXED_ITERATIONS
        for r in ([frame.report] if batch_size is None else frame.reports)
    )


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda sim, x: sim.step(forces=x[:-1]), r"forces .* shape \(27, 3\), one row .* per vertex; got"),
        (lambda sim, x: sim.step(forces=np.full_like(x, np.nan)), "forces .* NaN .* for 27 of 27 vertices"),
        (lambda sim, x: sim.step(forces="up"), "forces .* numbers per vertex; got 'up'"),
        (lambda sim, x: sim.step(forces=x.astype(str)), "forces .* numbers per vertex; got"),
        (lambda sim, x: sim.step(forces=x > 0.5), "forces .* numbers per vertex; got"),
        (lambda sim, x: sim.step(forces=np.full_like(x, 1e300)), "up to 1e[+]300; the limit is 1e[+]30"),
        (lambda sim, x: sim.step(pins=np.full((9, 3), 1e300)), "up to 1e[+]300; the limit is 1e[+]12"),
        (lambda sim, x: sim.step(forces={"body": (1, 0, 0)}), "needs vertices of a body of the scene"),
        (lambda sim, x: sim.step(pins=x), r"pins .* shape \(9, 3\), .* per pinned vertex; got"),
        (lambda sim, x: sim.step(pins={sim.scene.bodies[0]: x}), "not pinned in the scene"),
        (lambda sim, x: sim.reset(positions=x[1:]), "positions .* one row .* per vertex"),
        (lambda sim, x: sim.reset(positions=np.full_like(x, 1e300)), "positions .* the limit is 1e[+]12"),
        (lambda sim, x: sim.reset(velocities=x * np.inf), "velocities .* NaN or infinite"),
        (lambda sim, x: sim.reset(velocities=np.full_like(x, 1e300)), "velocities .* the limit is 1e[+]30"),
        (lambda sim, x: sim.reset(members=[0]), "has no batch_size"),
        (lambda sim, x: setattr(sim, "state", [sim.state] * 2), "must be a supple.State, .*; got 2 states"),
        (lambda sim, x: setattr(sim, "state", supple.State(x * np.nan, x)), "displacements .* NaN"),
        (
            lambda sim, x: setattr(sim, "state", supple.State(x, x * np.nan)),
            "velocities of the state has NaN",
        ),
        (lambda sim, x: setattr(sim, "state", supple.State(x, x[:1])), r"velocities .* shape \(27, 3\)"),
        (lambda sim, x: setattr(sim, "state", supple.State(None, x)), "displacements .*; got None"),
    ],
)
def test_wrong_calls_are_refused(call, sentence):
    sim = supple.Stepper(swinging(), DT, solver=PBNG(), **LIMITS)
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=sentence):
        call(sim, sim.model.rest)
    assert sim.index == 0


@pytest.mark.parametrize("batch_size", [None, 2])
@pytest.mark.parametrize("wrong", [None, 3, "rest", np.zeros((27, 3)), [None, None]], ids=repr)
def test_invalid_states_are_refused(wrong, batch_size):
    sim = supple.Stepper(swinging(), DT, solver=PBNG(), batch_size=batch_size, **LIMITS)
    with pytest.raises(
        TypeError, match=r"must be a (supple.State|list of 2 states), such as stepper.state; got"
    ):
        sim.state = wrong


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"dt": 0.0}, "dt must be positive"),
        ({"dt": np.inf}, "dt must be positive and finite"),
        ({"substeps": 0}, "substeps must be a whole number of at least 1"),
        ({"damping": 1.0}, "damping must lie between 0 and 1"),
        ({"batch_size": 0}, "batch_size must be a whole number from 1"),
        ({"batch_size": 1.5}, "batch_size must be a whole number from 1"),
        ({"precision": "half"}, "precision"),
        ({"device": "tpu"}, "device"),
    ],
)
def test_impossible_steppers_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        supple.Stepper(swinging(), **options)


def test_batch_members_are_selected_by_index():
    sim = supple.Stepper(swinging(), DT, solver=PBNG(), batch_size=2, **LIMITS)
    with pytest.raises(ValueError, match="numbers from 0 to 1, got"):
        sim.reset(members=[2])
    with pytest.raises(ValueError, match=r"a list of 2 states, .*; got 1 state"):
        sim.state = sim.state[:1]
    with pytest.raises(ValueError, match=r"shape \(27, 3\) or \(2, 27, 3\), .*; got shape \(3, 27, 3\)"):
        sim.step(forces=np.zeros((3, 27, 3)))


@pytest.mark.parametrize("quasistatic", [False, True])
def test_pins_of_a_reset_batch_member_follow_the_clock(quasistatic):
    """Pins are at their positions at the present time, not at time 0."""
    scene, way = swinging(), np.array([0, 0.1, 0])
    pin = scene.pins[0].on
    scene.pins[0] = type(scene.pins[0])(pin, supple.Translate(way, duration=4 * DT))
    sim = supple.Stepper(scene, DT, solver=PBNG(), batch_size=2, quasistatic=quasistatic, **LIMITS)
    for _ in range(2):
        sim.step()
    sim.reset(members=[1])
    np.testing.assert_allclose(sim.positions[1, sim.pinned], pin.points + way / 2, atol=1e-15)
    free = sim.model.free
    np.testing.assert_array_equal(sim.positions[1, free], sim.model.rest[free])
    frame = sim.step()
    np.testing.assert_allclose(frame.positions[:, sim.pinned], [pin.points + 0.75 * way] * 2, atol=1e-15)
    sim.reset()
    np.testing.assert_allclose(sim.positions[:, sim.pinned], [pin.points] * 2, atol=1e-15)


def test_reset_of_no_members_changes_nothing():
    sim = supple.Stepper(swinging(), DT, solver=PBNG(), batch_size=2, **LIMITS)
    moved = sim.step().positions
    sim.reset(members=[])
    assert np.array_equal(sim.positions, moved)
    assert sim.index == 1


def test_default_step_is_solved_to_a_tolerance():
    frame = supple.Stepper(swinging(), DT).step()
    assert frame.report.outcome is Outcome.CONVERGED
    assert frame.report.tolerance == 1e-4


def test_steps_reuse_model_problem_and_orderings(monkeypatch):
    """New forces and pin targets rebuild nothing."""
    scene = swinging()
    sim = supple.Stepper(scene, DT, solver=PBNG(), **LIMITS)
    sim.step(forces=pushes(scene, 1))
    for name in ("supple.scene.build.build_model", "supple.problem.layout.batch_vertices"):
        monkeypatch.setattr(name, lambda *args: pytest.fail("built again"))

    def arrays():
        problem = sim._problem
        return [id(a) for a in (problem.u, problem.loads.rows.force, problem.states.anchor)]

    known = arrays()
    sim.step(forces=pushes(scene, 2), pins=scene.pins[0].on.points)
    assert arrays() == known


def test_interrupted_step_must_be_undone():
    """After an interruption `step` is refused until the state is set or reset."""
    scene = cantilever(material("corotated"))
    scene.quasistatic = False
    sim = supple.Stepper(scene, 0.01, max_iterations=5)
    sim.step()
    state, solver = sim.state, sim._time_loop.solver

    class Interrupting(Solver):
        name = solver.name

        def begin(self, problem):
            raise KeyboardInterrupt

    sim._time_loop.solver = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        sim.step()
    sim._time_loop.solver = solver
    with pytest.raises(ValueError, match="interrupted"):
        sim.step()
    sim.state = state
    assert np.isfinite(sim.step().positions).all()


def test_frame_reports_a_failed_substep():
    outcomes = [Outcome.MAX_ITERATIONS, Outcome.FAILED, Outcome.MAX_ITERATIONS]
    reports = [Report(outcome, "pbng", 1, 1.0, 1.0, 1.0, 1.0, 1.0) for outcome in outcomes]
    assert merge_reports(reports).outcome is Outcome.FAILED


def test_late_change_of_gravity_is_reported(caplog):
    """Gravity set after the first step has no effect, so it is refused."""
    scene = supple.Scene(quasistatic=False, dt=0.01)
    scene.add_solid(supple.block(1), supple.Corotated(young=1e4, poisson=0.3))
    sim = supple.Stepper(scene)
    first = sim.step().velocities
    assert not caplog.text
    scene.gravity = (0, 0, 0)
    second = sim.step().velocities
    assert "scene.gravity is (0, 0, 0) now and was" in caplog.text
    np.testing.assert_allclose(second, 2 * first, rtol=1e-6, atol=1e-9)
    sim.step()
    assert caplog.text.count("scene.gravity is") == 1


@pytest.mark.parametrize("bodies", [0, 1])
def test_scenes_with_only_rigid_bodies_are_refused(bodies):
    scene = supple.Scene(quasistatic=False)
    if bodies:
        scene.pin(scene.add_solid(supple.block(1), supple.Corotated(young=1e4, poisson=0.3)))
    with pytest.raises(supple.SceneError) as plain:
        supple.scene.build_model(scene)
    assert "Obstacles with a mass" not in str(plain.value)
    scene.add_obstacle(supple.Sphere(radius=0.1, center=(0, 5, 0)), mass=1.0)
    with pytest.raises(supple.SceneError, match="add a small block without contact"):
        supple.scene.build_model(scene)
