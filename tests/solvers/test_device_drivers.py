"""The host code of devices, on a fake device: results, reports and refusals equal those of the CPU."""

import numpy as np
import pytest
from batch_scenes import batch_and_single_solves, check_batch, hanging_pair, variations
from fake_device import fake_device  # noqa: F401
from problems import cantilever, material

import supple
from supple import Outcome
from supple.config.backend import Backend
from supple.problem import Problem
from supple.problem.vertex_kernels import Displace, apply_to_vectors
from supple.solve.batch_solve import make_problem
from supple.solvers import SOLVERS

pytestmark = pytest.mark.usefixtures("fake_device")

ACCELERATIONS = pytest.mark.parametrize("acceleration", ["none", "chebyshev", "anderson"])


@pytest.mark.parametrize("at_once", [None, 2])
@pytest.mark.parametrize("acceleration", ["chebyshev", "anderson"])
def test_batches_equal_single_solves(acceleration, at_once):
    solver = supple.PBNG(acceleration)
    batch, single = check_batch("cuda", solver, batch_size=at_once), check_batch("cpu", solver)
    for a, b in zip(batch, single, strict=True):
        assert a.report.iterations == b.report.iterations
        assert a.report.energy == pytest.approx(b.report.energy, rel=1e-9)
        assert a.report.relative_residual == pytest.approx(b.report.relative_residual, rel=1e-3)
        assert any("solved in a batch" in note for note in a.report.notes)


@pytest.mark.parametrize("name", [name for name, kind in SOLVERS.items() if kind.batches and name != "pbng"])
def test_all_batch_solvers_equal_single_solves(name):
    """Each batch member has separate loads, pins and materials."""
    batch, single = batch_and_single_solves(SOLVERS[name]())
    assert any("solved in a batch" in note for note in batch[0].report.notes)
    for a, b in zip(batch, single, strict=True):
        assert np.abs(b.positions - b.model.rest).max() > 1e-4
        np.testing.assert_allclose(a.positions, b.positions, atol=1e-9)
        assert a.report.energy == pytest.approx(b.report.energy, rel=1e-6)
    assert np.ptp([r.positions for r in single], axis=0).max() > 1e-4


@ACCELERATIONS
def test_limits_apply_to_each_batch_member(acceleration):
    pair = hanging_pair()
    batch, single = (
        list(
            supple.equilibria(
                pair[0],
                variations(*pair),
                solver=supple.PBNG(acceleration),
                tolerance=1e-12,
                max_iterations=25,
                device=device,
            )
        )
        for device in ("cuda", "cpu")
    )
    for a, b in zip(batch, single, strict=True):
        assert a.report.outcome is b.report.outcome is Outcome.MAX_ITERATIONS
        assert a.report.iterations == 25
        assert a.report.residual == pytest.approx(b.report.residual, rel=1e-6)
        np.testing.assert_allclose(a.positions, b.positions, atol=1e-9)


def test_failed_batch_member_does_not_affect_the_others():
    """It returns the last state with finite forces, or its start."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(supple.block(2), supple.materials.LogNeoHookean(young=1e4, poisson=0.3), 10)
    scene.pin(body.where(lambda X: X[:, 1] >= 1))
    inverted = body.points * [1, 1, -1]
    inverted[scene.pins[0].on.indices] = scene.pins[0].on.points
    chosen = [supple.Variation(), supple.Variation(initial=inverted), supple.Variation(gravity=(0, -5, 0))]
    results = list(supple.equilibria(scene, chosen, solver=supple.PBNG(), device="cuda"))
    outcomes = [result.report.outcome for result in results]
    assert outcomes == [Outcome.CONVERGED, Outcome.FAILED, Outcome.CONVERGED]
    np.testing.assert_allclose(results[1].positions, inverted, atol=1e-12)
    single = supple.equilibrium(scene, solver=supple.PBNG())
    np.testing.assert_allclose(results[0].positions, single.positions, atol=1e-12)


def test_batches_beyond_memory_are_split(fake_device, monkeypatch):  # noqa: F811
    pair = hanging_pair()
    results = list(
        supple.equilibria(pair[0], variations(*pair), solver="pbng", position_tolerance=None, device="cuda")
    )
    assert any("in a batch with 4 others" in note for note in results[0].report.notes)
    monkeypatch.setattr("supple.kernels.cuda.free_memory", lambda: 1)
    split = list(
        supple.equilibria(pair[0], variations(*pair), solver="pbng", position_tolerance=None, device="cuda")
    )
    for a, b in zip(results, split, strict=True):
        assert any("in a batch with 0 others" in note for note in b.report.notes)
        assert np.array_equal(a.positions, b.positions)


@pytest.mark.parametrize(
    "solver", [supple.PBNG("anderson"), supple.BlockXPBD(), supple.FPXPBD(), supple.PBD(damping=0.1)], ids=str
)
@pytest.mark.parametrize("limits", [{"max_iterations": 6}, {"tolerance": 1e-6, "max_iterations": 40}])
def test_motions_equal_those_of_the_cpu(solver, limits):
    """Several frames and substeps, some of them observed, with a moving pin."""
    scene = cantilever(material("neo_hookean"), gravity=20)
    motion = supple.Translate((0.0, 0.3, 0.0), duration=0.05)
    scene.pins[0] = type(scene.pins[0])(scene.pins[0].on, motion)
    scene.quasistatic, scene.dt = False, 0.02
    on_device, on_host = (
        list(supple.simulate(scene, solver=solver, frames=3, substeps=3, device=device, **limits))
        for device in ("cuda", "cpu")
    )
    for a, b in zip(on_device, on_host, strict=True):
        np.testing.assert_allclose(a.positions, b.positions, atol=1e-10)
        np.testing.assert_allclose(a.velocities, b.velocities, atol=1e-7)
        assert a.report.energy == pytest.approx(b.report.energy, rel=1e-6)
        assert a.report.iterations == b.report.iterations
        assert a.report.notes == b.report.notes
    assert np.ptp(on_host[-1].velocities) > 1e-2


@pytest.mark.parametrize(
    "solver", [supple.PBNG(acceleration="none"), supple.BlockXPBD(), supple.GPBD(sweep="jacobi")], ids=str
)
def test_unobserved_steps_share_launches(solver, fake_device):  # noqa: F811
    """The motion is unchanged, step by step and frame by frame."""
    scene = cantilever(material("neo_hookean"), gravity=20)
    scene.quasistatic, scene.dt = False, 0.02
    limits = {"tolerance": None, "max_iterations": 2}
    on_device, on_host = (
        list(supple.simulate(scene, solver=solver, frames=2, substeps=12, device=device, **limits))
        for device in ("cuda", "cpu")
    )
    kernels = [name for name in fake_device.launched if name == "run_iterations"]
    assert 2 <= len(kernels) <= 14
    for a, b in zip(on_device, on_host, strict=True):
        np.testing.assert_allclose(a.positions, b.positions, atol=1e-9)
        np.testing.assert_allclose(a.velocities, b.velocities, atol=1e-6)
        assert a.report.iterations == b.report.iterations == 24
    assert np.ptp(on_host[-1].velocities) > 1e-2


def test_rejected_steps_of_unobserved_substeps_are_counted_once():
    """Vertices of inverted elements without a finite force stay in place in every step."""
    reports = {}
    for device in ("cpu", "cuda"):
        scene = supple.Scene(gravity=(0, -9.8, 0), quasistatic=False, dt=0.01)
        body = scene.add_solid(supple.block(2), supple.materials.LogNeoHookean(young=1e4, poisson=0.3), 10)
        scene.pin(body.where(lambda X: X[:, 1] >= 1))
        inverted = body.points * [1, 1, -1]
        inverted[scene.pins[0].on.indices] = scene.pins[0].on.points
        limits = {"tolerance": None, "max_iterations": 2}
        frames = supple.simulate(
            scene, solver=supple.PBNG(), frames=2, substeps=4, initial=inverted, device=device, **limits
        )
        reports[device] = [frame.report.rejected for frame in frames]
    assert reports["cpu"] == reports["cuda"]
    assert reports["cpu"][0] > 0


def test_deferred_operations_use_their_original_arguments(fake_device):  # noqa: F811
    """Operations on records are deferred on a device until their result is needed; later ones with other
    targets and velocities must not change them."""
    scene = supple.Scene(gravity=(0, -9.8, 0), quasistatic=False)
    body = scene.add_solid(supple.block(2), supple.Corotated(young=1e3, poisson=0.3), density=10)
    scene.pin(body.where(lambda X: X[:, 0] <= 0), motion=supple.Translate((0, 0, 1), duration=1.0))
    model = supple.scene.build_model(scene)
    problems = Problem(model, "float64"), make_problem(model, True, supple.Backend("cuda", "float64"))
    for problem in problems:
        problem.loads.set_time_step(0.1)
        problem.states.set_velocities(np.ones((model.vertices, 3)))
        problem.begin_step(0.5)
        problem.begin_step(0.5)
        problem.states.predict(0.1, 0.0, model.prescribed(0.6))
        problem.states.set_velocities(np.full((model.vertices, 3), 2.0))
        problem.states.predict(0.1, 0.0, model.prescribed(0.7))
        for array in (problem.u, problem.states.last, problem.states.velocity, problem.states.anchor):
            problem.device.download(array)
    on_host, on_device = problems
    assert on_host.states.last[model.pinned, 2].max() == pytest.approx(0.6)
    for name in ("u", "last", "velocity", "anchor"):
        np.testing.assert_array_equal(getattr(on_host.states, name), getattr(on_device.states, name))


def swinging() -> supple.Scene:
    scene = cantilever(material("neo_hookean"), cells=2, gravity=20)
    scene.quasistatic, scene.dt, scene.substeps, scene.damping = False, 0.02, 2, 0.05
    scene.add_force(scene.bodies[0], (0, 0, 30.0), ramp=supple.loads.Ramp((0, 0.03, 0.06), (0, 1, -1)))
    return scene


@pytest.mark.parametrize("solver", [supple.PBNG("anderson"), supple.XPBD()], ids=str)
def test_varying_loads_equal_those_of_the_cpu(solver):
    on_device, on_host = (
        list(supple.simulate(swinging(), solver=solver, frames=3, device=device, max_iterations=6))
        for device in ("cuda", "cpu")
    )
    for a, b in zip(on_device, on_host, strict=True):
        np.testing.assert_allclose(a.positions, b.positions, atol=1e-10)
        np.testing.assert_allclose(a.step.anchor, b.step.anchor, atol=1e-10)
        np.testing.assert_allclose(a.step.force, b.step.force)


@pytest.mark.parametrize("limits", [{"max_iterations": 6}, {"tolerance": 1e-6, "max_iterations": 40}])
@pytest.mark.parametrize(
    "solver", [supple.PBNG("none"), supple.PBNG("anderson"), supple.BPXPBD(), supple.FPXPBD()], ids=str
)
def test_batched_steppers_equal_single_steppers(solver, limits, fake_device):  # noqa: F811
    """Each member has separate forces and pins, over several substeps, some of them observed."""
    scene = swinging()
    rest, random = scene.bodies[0].points, np.random.default_rng(0)
    forces = random.normal(size=(2, 3, *rest.shape))
    pins = scene.pins[0].on.points + 0.02 * random.normal(size=(2, 3, 1, 3))
    batched = supple.Stepper(scene, 0.02, solver=solver, batch_size=3, device="cuda", **limits)
    singles = [supple.Stepper(scene, 0.02, solver=solver, **limits) for _ in range(3)]
    for k in range(2):
        frames = batched.step(forces[k], pins[k])
        for copy, sim in enumerate(singles):
            frame = sim.step(forces[k, copy], pins[k, copy])
            np.testing.assert_allclose(frames.positions[copy], frame.positions, atol=1e-9)
            np.testing.assert_allclose(frames.velocities[copy], frame.velocities, atol=1e-6)
            assert frames.reports[copy].iterations == frame.report.iterations
            assert frames.reports[copy].energy == pytest.approx(frame.report.energy, rel=1e-6)
            np.testing.assert_allclose(frames[copy].step.anchor, frame.step.anchor, atol=1e-9)
            np.testing.assert_allclose(frames[copy].step.force, frame.step.force, atol=1e-12)
            np.testing.assert_array_equal(frames[copy].state.velocities, frames.velocities[copy])
    frames = batched.step()
    for copy, sim in enumerate(singles):
        np.testing.assert_allclose(frames.positions[copy], sim.step().positions, atol=1e-9)
    assert np.ptp(frames.positions, axis=0).max() > 1e-3


def test_batch_members_on_a_device_share_launches(fake_device):  # noqa: F811
    counts = []
    for batch_size in (1, 4):
        sim = supple.Stepper(
            swinging(), 0.02, solver=supple.PBNG(), batch_size=batch_size, device="cuda", max_iterations=3
        )
        sim.advance()
        fake_device.launched.clear()
        sim.advance(forces=np.ones_like(sim.model.rest))
        counts.append(len(fake_device.launched))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("batch_size", [None, 2])
@pytest.mark.parametrize("solver", [supple.PBNG("anderson"), supple.XPBD()], ids=str)
def test_steppers_on_a_device_restore_snapshots(solver, batch_size):
    sim = supple.Stepper(
        swinging(), 0.02, solver=solver, batch_size=batch_size, device="cuda", max_iterations=4
    )
    first = sim.step().positions
    snapshot = sim.state
    after = sim.step().velocities
    sim.state = snapshot
    sim._time_loop.index = 1
    assert np.array_equal(sim.step().velocities, after)
    sim.reset()
    assert np.array_equal(sim.step().positions, first)


def test_failed_stepper_member_does_not_affect_the_others():
    how = {"precision": "float32", "tolerance": None, "max_iterations": 2, "substeps": 3}
    sim = supple.Stepper(swinging(), 0.02, solver=supple.PBNG(), batch_size=2, device="cuda", **how)
    calm = sim.step().positions
    fast = np.zeros_like(calm)
    fast[1, -1] = 1e30
    sim.reset(velocities=fast)
    frames = sim.step()
    assert [report.outcome for report in frames.reports] == [Outcome.FIXED_ITERATIONS, Outcome.FAILED]
    np.testing.assert_allclose(frames.positions[0], calm[0], atol=1e-12)
    assert np.isfinite(frames.positions).all()
    with pytest.raises(RuntimeError, match="batch members 1 failed"):
        sim.step()
    sim.reset(members=[1])
    sim.step()


def test_batched_steppers_beyond_memory_are_refused(fake_device, monkeypatch):  # noqa: F811
    monkeypatch.setattr("supple.kernels.cuda.free_memory", lambda: 1)
    with pytest.raises(
        ValueError, match=r"batch_size=4 needs about .* GB on the device, which has 0.0 GB free"
    ):
        supple.Stepper(swinging(), 0.02, batch_size=4, device="cuda")


def test_batched_steppers_with_attachments_equal_single_ones():
    """Loads of links differ between members."""
    scene = hanging_pair()[0]
    scene.quasistatic = False
    forces = np.random.default_rng(1).normal(size=(2, scene.bodies[-1].vertices.stop, 3))
    batched = supple.Stepper(scene, 0.02, solver=supple.PBNG(), batch_size=2, device="cuda", max_iterations=4)
    singles = [supple.Stepper(scene, 0.02, solver=supple.PBNG(), max_iterations=4) for _ in range(2)]
    for given in (None, forces, -forces):
        frames = batched.step(given)
        for copy, sim in enumerate(singles):
            frame = sim.step(None if given is None else given[copy])
            np.testing.assert_allclose(frames.positions[copy], frame.positions, atol=1e-9)


@pytest.mark.parametrize("batch_size", [None, 2])
@pytest.mark.parametrize("solver", ["pbng", "xpbd", "bpxpbd"])
def test_exchanged_springs_on_a_device_equal_those_of_the_cpu(solver, batch_size):
    """Every changed array is uploaded, and incidences are moved in place."""
    scene = cantilever(material("neo_hookean"), cells=2)
    positions = []
    for device in ("cpu", "cuda"):
        options = {"device": device, "max_iterations": 10, "batch_size": batch_size, "springs": 4}
        sim = supple.Stepper(scene, 0.02, solver=solver, quasistatic=False, **options)
        for count in (3, 12, 0, 5):
            pairs = np.random.default_rng(count).permutation(27)[: 2 * count].reshape(-1, 2)
            sim.set_springs(pairs, 40.0, 0.3)
            sim.step()
        positions.append(sim.positions)
    np.testing.assert_allclose(*positions, atol=1e-9)


def test_downloads_are_cached_until_a_kernel_runs(fake_device):  # noqa: F811
    problem = make_problem(cantilever(material("corotated")), True, Backend(device="cuda"))
    device, u = problem.device, problem.u
    device.apply_to_vectors(Displace(u, np.ones_like(u), 0))
    first, moved = problem.positions, fake_device.moved
    assert np.array_equal(problem.positions, first)
    assert fake_device.moved == moved, "no kernel ran since"
    device.apply_to_vectors(Displace(u, np.ones_like(u), 0))
    np.testing.assert_allclose(problem.positions, first + 1)
    array = problem.zeros(u.shape)
    device.assign(u, array)
    assert np.array_equal(problem.positions, problem.model.rest)
    problem.positions = first
    moved = fake_device.moved
    np.testing.assert_allclose(problem.positions, first, rtol=1e-6)
    assert fake_device.moved == moved, "the host has said so itself"
    for _ in range(20):  # arrays that are gone may leave their place to others
        records = problem.zeros((3, 4))
        device.download(records)
        device.run(apply_to_vectors, 1, (3,), (Displace(records, np.full((3, 4), 2.0, u.dtype), 0),))
        device.download(records)
        assert (records[:, :3] == 2).all()
        del records


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_velocities_of_frames_are_rounded_once(device, precision):
    problem = make_problem(
        cantilever(material("corotated")), False, Backend(device=device, precision=precision)
    )
    rng, states = np.random.default_rng(0), problem.states
    last = rng.normal(size=problem.model.rest.shape)
    problem.positions = problem.model.rest + last
    states.set_velocities(rng.normal(size=last.shape))
    states.predict(0.003, 0.1, problem.model.rest[problem.model.pinned])
    u, last = (states.vectors(records).astype(float) for records in (states.u, states.last))
    states.update_velocity(states.last, 0.003, 0.1)
    expected = ((1 - 0.1) * (u - last) / 0.003).astype(precision)
    assert np.array_equal(states.vectors(states.velocity), expected)
    assert np.array_equal(problem.state.velocities, expected[0])
