"""CUDA runs the same kernels: every solver agrees with the CPU to rounding."""

import itertools

import numpy as np
import pytest
from batch_scenes import batch_and_single_solves, check_batch
from cuda_device import cuda_device_name, needs_cuda_device
from lanewise import lanewise_problem
from problems import HAND_WRITTEN, membrane, net, plate

import supple
from supple.problem import Problem
from supple.solve.batch_solve import make_problem
from supple.solvers import SOLVERS


def falling_block(material: str) -> supple.Scene:
    scene = supple.Scene(gravity=(0, -9.8, 0), quasistatic=False, dt=0.01, frames=2)
    body = scene.add_solid(supple.block(4), HAND_WRITTEN[material](young=1e3, poisson=0.3), density=10)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    return scene


def rolling_block(material: str) -> supple.Scene:
    """A block with a face that moves only in an oblique plane, and an edge on a rail."""
    scene = falling_block(material)
    body = scene.bodies[0]
    scene.pin(body.where(lambda X: X[:, 1] <= 0), normal=(1, 2, -3))
    scene.pin(body.where(lambda X: (X[:, 1] >= 1) & (X[:, 2] <= 0)), along=(3, 1, 1))
    return scene


def after_sweeps(problem: Problem, solver, sweeps: int) -> tuple[np.ndarray, float, float]:
    """Positions, reduction of the residual, and energy."""
    problem.set_inertia(0.01, problem.positions)
    first = problem.balance().residual
    run = solver.begin(problem)
    run.advance(sweeps)
    return problem.positions, problem.balance().residual / first, problem.energy()


METHODS = [SOLVERS[name]() for name in SOLVERS if name != "newton"]
ACCELERATED = [supple.PBNG(supple.solvers.Chebyshev(first_iteration=2)), supple.PBNG("anderson")]


@pytest.mark.parametrize("solver", METHODS + ACCELERATED, ids=str)
@pytest.mark.parametrize("block", [falling_block, rolling_block])
def test_solvers_agree_lane_by_lane(solver, block):
    """Kernels run one lane at a time, as in a CUDA thread, without a device."""
    model = supple.scene.build_model(block("corotated"))
    x, reduction, energy = after_sweeps(Problem(model, "float64"), solver, 6)
    y, device_reduction, device_energy = after_sweeps(lanewise_problem(model, "float64"), solver, 6)
    assert np.abs(x - model.rest).max() > 1e-4
    assert np.abs(x - y).max() < 1e-12
    assert device_reduction == pytest.approx(reduction, rel=1e-3, abs=1e-11)
    assert device_energy == pytest.approx(energy, rel=1e-6)


def test_shared_incidences_add_up():
    """Several lanes that share a vertex have together the sum over all incidences."""
    model = supple.scene.build_model(falling_block("corotated"))
    shared, single = (
        lanewise_problem(model, "float64", concurrent_batches=200),
        lanewise_problem(model, "float64"),
    )
    assert shared.loads.rows.width.max() < 32 == single.loads.rows.width.min()
    incidences = [sorted(incidences_of(problem)) for problem in (shared, single)]
    assert incidences[0] == incidences[1]
    assert len(incidences[0]) == np.isin(model.terms[0].vertices, np.flatnonzero(model.free)).sum()


def incidences_of(problem):
    """(vertex, element) of every incidence with the first term."""
    own, rows, element = (
        problem.loads.rows.own,
        problem.layout.terms[0],
        problem.layout.vertices.element[0],
    )
    for batch, (first, last) in enumerate(itertools.pairwise(rows.start)):
        for row, lane in itertools.product(range(first, last), range(own.shape[2])):
            if element[row, lane] >= 0:
                yield int(own[batch, 0, lane]), int(element[row, lane])


@needs_cuda_device
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "newton"])
@pytest.mark.parametrize("block", [falling_block, rolling_block])
def test_solvers_agree_with_the_cpu(name, precision, block):
    """PBD amplifies rounding tenfold in each sweep."""
    model = supple.scene.build_model(block("corotated"))
    x, reduction, energy = after_sweeps(Problem(model, precision), SOLVERS[name](), 12)
    device_problem = make_problem(model, True, supple.Backend("cuda", precision))
    y, device_reduction, device_energy = after_sweeps(device_problem, SOLVERS[name](), 12)
    close = (1e-12 if precision == "float64" else 2e-5) * (10 if name == "pbd" else 1)
    assert np.abs(x - model.rest).max() > 1e-4
    assert np.abs(x - y).max() < close
    assert device_reduction == pytest.approx(
        reduction, rel=1e-2 if name == "pbd" else 1e-3, abs=1e-11 if precision == "float64" else 3e-5
    )
    assert device_energy == pytest.approx(energy, rel=1e-6 if precision == "float64" else 1e-2)


@needs_cuda_device
@pytest.mark.parametrize("block", [falling_block, rolling_block])
@pytest.mark.parametrize("solver", [supple.Hybrid(max_predicted_sweeps=0), supple.Newton()], ids=str)
def test_newton_steps_agree_with_the_cpu(solver, block):
    """Equal states and error estimates, and bitwise equal repetitions."""
    results = [
        supple.equilibrium(block("neo_hookean"), solver=solver, tolerance=1e-9, device=device)
        for device in ("cpu", "cuda", "cuda")
    ]
    assert all(result.report.ok for result in results)
    np.testing.assert_allclose(results[1].positions, results[0].positions, atol=1e-8)
    np.testing.assert_array_equal(results[1].positions, results[2].positions)
    assert all(result.report.error_estimate.stable for result in results)


@needs_cuda_device
@pytest.mark.parametrize("material", HAND_WRITTEN)
def test_newton_steps_of_materials_agree_with_the_cpu(material):
    results = [
        supple.equilibrium(
            falling_block(material),
            solver=supple.Hybrid(max_predicted_sweeps=0),
            tolerance=1e-8,
            device=device,
        )
        for device in ("cpu", "cuda")
    ]
    assert all(result.report.ok for result in results)
    np.testing.assert_allclose(results[1].positions, results[0].positions, atol=1e-7)


@needs_cuda_device
@pytest.mark.parametrize("make", [net, membrane], ids=["springs", "membrane"])
def test_newton_steps_of_other_elements_agree_with_the_cpu(make):
    results = [
        supple.equilibrium(
            make(), solver=supple.Hybrid(max_predicted_sweeps=0), tolerance=1e-8, device=device
        )
        for device in ("cpu", "cuda")
    ]
    assert all(result.report.ok for result in results)
    np.testing.assert_allclose(results[1].positions, results[0].positions, atol=1e-7)


@needs_cuda_device
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_slender_bodies_converge_on_a_gpu(precision):
    scene = supple.Scene(gravity=(0, -9.8, 0))
    kind = supple.Corotated(young=1e6, poisson=0.4)
    body = scene.add_solid(supple.block((60, 3, 3), (2, 0.1, 0.1)), kind, density=1000)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    on_host = supple.equilibrium(scene)
    on_device = supple.equilibrium(scene, device="cuda", precision=precision)
    assert on_device.report.ok
    assert any("Newton step" in note for note in on_device.report.notes)
    assert on_device.report.error_estimate.position_error <= 1e-4
    assert np.abs(on_host.positions - on_device.positions).max() < 1e-3


@needs_cuda_device
@pytest.mark.parametrize("material", HAND_WRITTEN)
def test_materials_agree_with_the_cpu(material):
    scene = falling_block(material)
    frames = {
        device: list(supple.simulate(scene, solver=supple.PBNG(iterations=20), device=device))[-1]
        for device in ("cpu", "cuda")
    }
    assert np.abs(frames["cpu"].positions - frames["cuda"].positions).max() < 1e-12


@needs_cuda_device
@pytest.mark.parametrize("make", [net, membrane, plate], ids=["springs", "membrane", "plate"])
@pytest.mark.parametrize("solver", METHODS, ids=str)
def test_elements_of_other_kinds_agree_with_the_cpu(solver, make):
    if solver.name == "fpxpbd" and make in (net, plate):
        pytest.skip("fpxpbd has no springs")
    results = []
    for device in ("cpu", "cuda"):
        problem = make_problem(make(), False, supple.Backend(device))
        results.append(after_sweeps(problem, solver, 6)[0])
    assert np.abs(results[0] - problem.model.rest).max() > 1e-6
    np.testing.assert_allclose(results[0], results[1], atol=1e-11)


@needs_cuda_device
def test_equilibria_with_attachments_agree_and_repeat_bitwise():
    scene = supple.Scene(gravity=(0, -9.8, 0))
    upper = scene.add_solid(
        supple.block(4, origin=(0, 1.2, 0)), supple.NeoHookean(young=1e3, poisson=0.3), 10
    )
    lower = scene.add_solid(supple.block(4), supple.NeoHookean(young=1e3, poisson=0.3), 10)
    scene.pin(upper.where(lambda X: X[:, 1] >= 2.2))
    scene.attach(lower.where(lambda X: X[:, 1] >= 1), upper, stiffness=1e8)
    on_host = supple.equilibrium(scene, tolerance=1e-8)
    on_device = supple.equilibrium(scene, tolerance=1e-8, device="cuda")
    again = supple.equilibrium(scene, tolerance=1e-8, device="cuda")
    assert on_host.report.ok
    assert on_device.report.ok
    assert np.abs(on_host.positions - on_device.positions).max() < 1e-6
    assert np.array_equal(on_device.positions, again.positions)


@needs_cuda_device
@pytest.mark.parametrize("at_once", [None, 2])
@pytest.mark.parametrize("acceleration", ["chebyshev", "anderson"])
def test_batches_agree_with_single_equilibria_and_repeat_bitwise(acceleration, at_once):
    solver = supple.PBNG(acceleration)
    first, again = (check_batch("cuda", solver, batch_size=at_once) for _ in range(2))
    single = check_batch("cpu", solver)
    for a, b, c in zip(first, again, single, strict=True):
        assert np.array_equal(a.positions, b.positions)
        assert abs(a.report.iterations - c.report.iterations) <= 10
        assert a.report.energy == pytest.approx(c.report.energy, rel=1e-9)


@needs_cuda_device
@pytest.mark.parametrize("name", [name for name, kind in SOLVERS.items() if kind.batches and name != "pbng"])
def test_batches_of_every_solver_agree_with_single_solves(name):
    for a, b in zip(*batch_and_single_solves(SOLVERS[name]()), strict=True):
        np.testing.assert_allclose(a.positions, b.positions, atol=1e-6 if name == "pbd" else 1e-9)
        assert a.report.energy == pytest.approx(b.report.energy, rel=1e-6)


@needs_cuda_device
@pytest.mark.parametrize("at_once", [None, 2])
def test_batches_move_partially_constrained_vertices(at_once):
    scene = rolling_block("corotated")
    face = scene.pins[1].on
    shifts = [0.05 * np.array(shift) for shift in ((0, 0, 0), (1, 0, 0), (0, 1, -1), (1, 1, 1))]
    variations = [supple.Variation(pins={face: face.points + shift}) for shift in shifts]
    results = {
        device: list(supple.equilibria(scene, variations, tolerance=1e-9, device=device, batch_size=at_once))
        for device in ("cpu", "cuda")
    }
    free = face.points[:, 0] > 0  # the others are pinned at the wall
    for on_host, on_device, shift in zip(results["cpu"], results["cuda"], shifts, strict=True):
        assert on_device.report.ok
        np.testing.assert_allclose(on_device.positions, on_host.positions, atol=1e-7)
        moved = (on_device.positions[face.vertices] - face.points)[free]
        np.testing.assert_allclose(moved @ (1, 2, -3), shift @ (1, 2, -3), atol=1e-14)


@needs_cuda_device
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_positions_reach_torch_on_the_device(precision):
    pytest.importorskip("torch")
    frames = list(
        supple.simulate(
            falling_block("corotated"), solver=supple.PBNG(iterations=5), device="cuda", precision=precision
        )
    )
    for frame in frames:
        tensor = frame.positions_as("torch")
        assert tensor.is_cuda
        assert np.abs(tensor.cpu().numpy() - frame.positions).max() < 1e-6


@needs_cuda_device
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("block", [falling_block, rolling_block])
def test_batched_steppers_agree_with_single_ones(precision, block):
    """Each member has separate forces and pins, also as a tensor on the device."""
    scene = block("neo_hookean")
    scene.add_force(scene.bodies[0], (0, 0, 3.0), ramp=supple.loads.Ramp((0, 0.02), (0, 1)))
    random, rest = np.random.default_rng(0), scene.bodies[0].points
    forces = random.normal(size=(3, *rest.shape))
    pins = rest[supple.scene.build_model(scene).pinned] + 0.01 * random.normal(size=(3, 1, 3))
    options = {"substeps": 2, "precision": precision, "max_iterations": 8}
    batched = supple.Stepper(
        scene, 0.01, solver=supple.PBNG("anderson"), batch_size=3, device="cuda", **options
    )
    singles = [supple.Stepper(scene, 0.01, solver=supple.PBNG("anderson"), **options) for _ in range(3)]
    near = 1e-9 if precision == "float64" else 1e-4
    for _ in range(3):
        frames = batched.step(forces, pins)
        for copy, sim in enumerate(singles):
            frame = sim.step(forces[copy], pins[copy])
            np.testing.assert_allclose(frames.positions[copy], frame.positions, atol=near)
    torch = pytest.importorskip("torch")
    tensor = batched.positions_as("torch")
    assert tensor.is_cuda
    assert torch.is_tensor(tensor)
    np.testing.assert_allclose(tensor.cpu().numpy(), frames.positions, atol=1e-6)


@needs_cuda_device
@pytest.mark.parametrize("block", [falling_block, rolling_block])
@pytest.mark.parametrize("solver", [supple.PBNG("none"), supple.PBNG("anderson"), supple.XPBD()], ids=str)
def test_springs_are_exchanged_on_a_gpu(solver, block):
    """Their number exceeds the initial capacity."""
    options = {"max_iterations": 8, "springs": 10}
    sims = [
        supple.Stepper(block("neo_hookean"), 0.01, solver=solver, device=device, **options)
        for device in ("cpu", "cuda")
    ]
    for count in (6, 40, 0, 25):
        pairs = np.random.default_rng(count).permutation(125)[: 2 * count].reshape(-1, 2)
        positions = []
        for sim in sims:
            sim.set_springs(pairs, 40.0, 0.3)
            positions.append(sim.step().positions)
        np.testing.assert_allclose(*positions, atol=1e-9)


@pytest.mark.skipif(cuda_device_name() is not None, reason="there is a CUDA device")
def test_missing_device_is_refused():
    with pytest.raises(ValueError, match="device='cpu'"):
        supple.equilibrium(falling_block("corotated"), device="cuda")


def test_unknown_device_is_refused():
    with pytest.raises(ValueError, match="'cpu' or 'cuda'"):
        supple.equilibrium(falling_block("corotated"), device="gpu")


@needs_cuda_device
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_evaluations_agree(precision):
    """A frame of a motion with inertia, and positions, on both devices."""
    frame = list(supple.simulate(falling_block("corotated"), tolerance=1e-3))[-1]
    evaluation = [
        supple.evaluate(frame.model, frame.positions, precision=precision, device=device)
        for device in ("cpu", "cuda")
    ]
    near = 1e-11 if precision == "float64" else 1e-3
    for name in ("net_force", "reaction_force", "piola", "cauchy", "von_mises", "volume_ratio"):
        a, b = (getattr(one, name) for one in evaluation)
        np.testing.assert_allclose(a, b, atol=near * max(1.0, np.abs(a).max()))
    assert evaluation[0].reactions.keys() == evaluation[1].reactions.keys()
    np.testing.assert_allclose(
        frame.evaluate().piola, evaluation[0].piola, atol=near * np.abs(evaluation[0].piola).max()
    )
