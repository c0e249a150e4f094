"""Batches of equilibria that need Newton steps after sweeps, on a fake device."""

import numpy as np
import pytest
from fake_device import fake_device  # noqa: F401

import supple
from supple import Outcome, StopCriteria
from supple.api.equilibria import make_problem_under
from supple.config.backend import Backend
from supple.scene import build_model
from supple.scene.variations import conditions
from supple.solve.batch_solve import solve_batch
from supple.solvers import Hybrid
from supple.solvers.newton_methods.batched_newton import BatchedNewton
from supple.solvers.newton_methods.block_diagonal import block_capacity
from supple.solvers.newton_methods.error_estimate import estimate_error, estimate_errors

pytestmark = pytest.mark.usefixtures("fake_device")


def slender():
    """A bar of 30:1:1 bent by its weight: long waves, on which sweeps hardly converge."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    bar = supple.block((30, 1, 1), size=(3, 0.1, 0.1))
    body = scene.add_solid(bar, supple.StableNeoHookean(young=3e6, poisson=0.3), density=1000)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    return scene, body


def stiffer(body, factors):
    young = 3e6 * np.asarray(factors)
    return supple.Variation(materials={body: supple.StableNeoHookean(young=young, poisson=0.3)})


def uneven(body):
    return np.linspace(1, 3, len(body.mesh.tets))


VARIATIONS = {
    "loads": lambda body: [supple.Variation(gravity=(0, -g, 0)) for g in (9.8, 4.0, 0.1)],
    "materials": lambda body: [stiffer(body, 1.0), stiffer(body, 5.0), stiffer(body, 0.5)],
    "fields": lambda body: [supple.Variation(), stiffer(body, uneven(body)), stiffer(body, 2.0)],
}


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("varied", VARIATIONS)
def test_batches_equal_single_solves(varied, precision):
    scene, body = slender()
    chosen = VARIATIONS[varied](body)
    batch, single = (
        list(supple.equilibria(scene, chosen, device=device, precision=precision))
        for device in ("cuda", "cpu")
    )
    assert np.ptp([r.positions for r in single], axis=0).max() > 0.1
    assert any("with others" in note for r in batch for note in r.report.notes)
    for batched_result, single_result in zip(batch, single, strict=True):
        assert batched_result.report.outcome is single_result.report.outcome is Outcome.CONVERGED
        assert batched_result.report.relative_residual <= 1e-4
        np.testing.assert_allclose(batched_result.positions, single_result.positions, atol=1e-3)
        if precision == "float64":
            assert batched_result.report.energy == pytest.approx(single_result.report.energy, rel=1e-4)
        assert batched_result.report.error_estimate.position_error <= 1e-4
        assert batched_result.report.error_estimate.stable


def test_batch_members_have_separate_newton_step_lengths(monkeypatch):
    """Bars with large and small bending; no energy ever rises."""
    seen = []

    def watched(newton):
        seen.append([newton._energies()[0]])
        while newton.steps < 30 and newton._step():
            newton.steps += 1
            seen[-1].append(newton._energies()[0])
        newton._write_back()

    monkeypatch.setattr("supple.solvers.newton_methods.batched_newton.BatchedNewton.run", watched)
    scene, body = slender()
    chosen = [stiffer(body, factor) for factor in (0.02, 1.0, 30.0)]
    batch, single = (list(supple.equilibria(scene, chosen, device=device)) for device in ("cuda", "cpu"))
    (energies,) = seen
    rise = np.diff(energies, axis=0)
    assert (rise <= 1e-9 * np.abs(energies[0])).all()
    assert (np.ptp(energies, axis=0) > 0).all()
    assert sum("with others" in note for result in batch for note in result.report.notes) >= 2
    for batched_result, single_result in zip(batch, single, strict=True):
        assert batched_result.report.ok
        assert batched_result.report.energy == pytest.approx(single_result.report.energy, rel=1e-5)
        assert batched_result.report.error_estimate.position_error <= 1e-4


@pytest.mark.parametrize("inertia", [False, True])
def test_energies_of_a_batch_add_up(inertia):
    """Their sum is that of one problem of all bodies, with inertia too."""
    scene, _ = slender()
    problem = problem_of(scene, [supple.Variation(gravity=(0, -g, 0)) for g in (9.8, 4.0, 0.1)])
    if inertia:
        problem.set_inertia(0.01, problem.model.rest)
    newton = BatchedNewton(problem, [0, 1, 2], 1e-6, None, 1.0)
    model, changes = newton.block_problem.model, []
    noise = np.random.default_rng(0).normal(size=model.rest.shape) * model.free[:, None]
    for energy in (newton.block_problem.energy, lambda: newton._energies()[0].sum()):
        energies = []
        for amount in (1e-3, 3e-3):
            newton.block_problem.positions = model.rest + amount * noise
            energies.append(energy())
        changes.append(energies[1] - energies[0])
    assert changes[1] == pytest.approx(changes[0], rel=1e-9)
    assert (newton.block_problem.loads.inertia.max() > 0) == inertia


def test_converged_members_are_untouched():
    """Only the bar with a load needs further iterations."""
    scene, _ = slender()
    chosen = [supple.Variation(gravity=g) for g in ((0, -9.8, 0), (0, 0, 0))]
    bent, straight = supple.equilibria(scene, chosen, device="cuda")
    assert "then alone" in bent.report.notes
    assert "then alone" not in straight.report.notes
    assert straight.report.iterations < bent.report.iterations


@pytest.mark.parametrize("limit", [{"max_iterations": 40}, {"time_limit": 0.5}])
def test_limits_hold_in_batches(limit):
    scene, _ = slender()
    chosen = [supple.Variation(gravity=(0, -g, 0)) for g in (9.8, 4.0)]
    for result in supple.equilibria(scene, chosen, device="cuda", tolerance=1e-4, **limit):
        assert result.report.outcome in (Outcome.MAX_ITERATIONS, Outcome.TIME_LIMIT)
        assert "then alone" not in result.report.notes


def problem_of(scene, chosen, precision="float64"):
    """Batch of a scene's state under variations on the device."""
    model = build_model(scene, quasistatic=True)
    every = [conditions(scene, model, variation) for variation in chosen]
    return make_problem_under(model, every, Backend("cuda", precision))


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("varied", VARIATIONS)
def test_error_estimates_of_a_batch_equal_single_ones(varied, precision):
    """One linear solve gives all of them, with forces of different orders of magnitude."""
    scene, body = slender()
    problem = problem_of(scene, VARIATIONS[varied](body), precision)
    assert block_capacity(problem) == 3
    solve_batch(problem, supple.PBNG(), StopCriteria(max_iterations=30))
    estimates = estimate_errors(problem, problem.diagnostics.balances())
    for copy, estimate in estimates.items():
        expected = estimate_error(problem, copy)
        assert estimate.stable is expected.stable is True
        assert estimate.worst.position_error_m == pytest.approx(expected.worst.position_error_m, rel=0.1)
        assert estimate.worst.displacement == pytest.approx(expected.worst.displacement)
        assert estimate.energy_error == pytest.approx(expected.energy_error, rel=0.1)
    assert np.ptp([estimate.worst.position_error_m for estimate in estimates.values()]) > 1e-3


def made_of(body, young, poisson):
    return supple.Variation(materials={body: supple.StableNeoHookean(young=young, poisson=poisson)})


@pytest.mark.parametrize("others", [[(3e9, 0.4999)], [(3e9, 0.49999), (3e11, 0.49999)]])
def test_hard_members_are_not_hidden_by_soft_ones(others):
    """Stiff batch members have little of the energy, and nearly incompressible ones converge slowly."""
    scene, body = slender()
    problem = problem_of(scene, [made_of(body, 3e6, 0.3), *(made_of(body, *other) for other in others)])
    solve_batch(problem, supple.PBNG(), StopCriteria(max_iterations=30))
    for copy, estimate in estimate_errors(problem, problem.diagnostics.balances()).items():
        expected = estimate_error(problem, copy)
        assert estimate.stable is expected.stable is True
        assert estimate.worst.position_error_m == pytest.approx(expected.worst.position_error_m, rel=0.03)
        assert estimate.energy_error == pytest.approx(expected.energy_error, rel=0.03)


@pytest.mark.parametrize("stretch", [1.02, 0.98])
def test_drift_of_batch_members_is_excluded_from_their_error(stretch, monkeypatch):
    """Unsupported blocks, initially stretched or compressed, alone and in a batch."""
    monkeypatch.setattr("supple.solvers.newton_methods.error_estimate.estimate_error", pytest.fail)
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(
        supple.block((3, 2, 2)), supple.StableNeoHookean(young=1e3, poisson=0.3), density=1
    )
    start = body.points * [stretch, 1, 1]
    materials = [supple.StableNeoHookean(young=young, poisson=0.3) for young in (1e3, 1e9, 3e4)]
    problem = problem_of(
        scene, [supple.Variation(materials={body: kind}, initial=start) for kind in materials]
    )
    estimates = estimate_errors(problem, problem.diagnostics.balances())
    truth = np.linalg.norm((start - start.mean(axis=0)) * [1 - 1 / stretch, 0, 0], axis=1).max()
    for copy, estimate in estimates.items():
        expected = estimate_error(problem, copy)
        assert estimate.stable is expected.stable is True
        assert estimate.worst.position_error_m == pytest.approx(expected.worst.position_error_m, rel=0.1)
        assert estimate.worst.position_error_m == pytest.approx(truth, rel=0.5)


def test_unstable_stiff_members_are_detected_next_to_soft_ones():
    problem = problem_of(*columns(0.1, -0.1, youngs=(1e3, 1e9)))
    solve_batch(problem, supple.PBNG(), StopCriteria(max_iterations=60))
    estimates = estimate_errors(problem, problem.diagnostics.balances())
    assert [estimates[copy].stable for copy in range(2)] == [True, False]


def test_error_estimates_change_no_forces():
    """They scale the forces of batch members for one linear solve, in separate memory."""
    scene, body = slender()
    problem = problem_of(scene, VARIATIONS["loads"](body))
    solve_batch(problem, supple.PBNG(), StopCriteria(max_iterations=30))
    estimate_errors(problem, problem.diagnostics.balances())
    states = problem.get_shared("block-diagonal 3", pytest.fail).states
    net = problem.states.vectors(problem.states.net)
    np.testing.assert_allclose(states.vectors(states.net)[0].reshape(net.shape), net, atol=1e-9)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_partial_batches_have_a_smaller_problem(count, monkeypatch):
    """Repeated members in unused capacity, and other batch sizes, change nothing."""
    monkeypatch.setattr("supple.solvers.newton_methods.block_diagonal.SMALL_BATCH", 3)
    scene, body = slender()
    problem = problem_of(scene, [stiffer(body, 1 + k) for k in range(6)])
    solve_batch(problem, supple.PBNG(), StopCriteria(max_iterations=30))
    balances = dict(list(problem.diagnostics.balances().items())[:count])
    estimates = estimate_errors(problem, balances)
    assert list(estimates) == list(balances)
    assert ("block-diagonal 3" in problem._shared) == (count <= 3)
    for copy, error_estimate in estimates.items():
        assert error_estimate.worst.position_error_m == pytest.approx(
            estimate_error(problem, copy).worst.position_error_m, rel=0.1
        )


def test_error_estimates_are_computed_in_batches(monkeypatch):
    """Bars converge one after the other; without waiting each would need a separate linear solve."""
    requests = []

    def record_call(problem, balances):
        requests.append(len(balances))
        return estimate_errors(problem, balances)

    monkeypatch.setattr("supple.solve.error_control.estimate_errors", record_call)
    scene = wrung(0)
    chosen = [supple.Variation(gravity=(0, -g, 0)) for g in (0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)]
    results = list(supple.equilibria(scene, chosen, device="cuda", tolerance=1e-5, position_tolerance=1e-2))
    assert all(result.report.outcome is Outcome.CONVERGED for result in results)
    assert all(result.report.error_estimate.position_error <= 1e-2 for result in results)
    assert len(requests) <= 4
    assert sum(requests) >= 8


def test_error_estimates_of_batches_in_contact():
    """Blocks of different stiffnesses and weights under a pressing plate, in one batch."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    kind = supple.Corotated(young=1e4, poisson=0.3)
    body = scene.add_solid(supple.block(2), kind, density=100)
    scene.pin(body.where(lambda X: X[:, 1] <= 0))
    plate = supple.Plane(point=(0, 1, 0), normal=(0, -1, 0))
    scene.add_obstacle(plate, supple.Translate((0.02, -0.1, 0)), friction=0.3)
    chosen = [supple.Variation(gravity=(0, -g, 0)) for g in (5.0, 15.0)]
    batch, single = (list(supple.equilibria(scene, chosen, device=device)) for device in ("cuda", "cpu"))
    for batched_result, single_result in zip(batch, single, strict=True):
        assert batched_result.report.outcome is single_result.report.outcome is Outcome.CONVERGED
        assert batched_result.report.error_estimate.position_error <= 1e-4
        assert batched_result.report.error_estimate.stable
        np.testing.assert_allclose(batched_result.positions, single_result.positions, atol=2e-4)
    assert np.ptp([result.positions for result in batch], axis=0).max() > 1e-3


def test_parameters_by_element_are_stored_on_a_device():
    """Kernels write them for all batch members: forces equal those of a new problem."""

    def bent(factors):
        mesh = supple.block((30, 1, 1), size=(3, 0.1, 0.1))
        young = 3e6 * factors * np.linspace(1, 3, len(mesh.tets))
        scene = supple.Scene(gravity=(0, -9.8, 0))
        body = scene.add_solid(mesh, supple.StableNeoHookean(young=young, poisson=0.3), density=1000)
        scene.pin(body.where(lambda X: X[:, 0] <= 0))
        return problem_of(scene, [supple.Variation(gravity=(0, -g, 0)) for g in (9.8, 4.0)])

    problem, other = bent(1.0), bent(2.0)
    solve_batch(problem, supple.PBNG(), StopCriteria(max_iterations=5))
    problem.set_parameters(0, other.model.terms[0].material)
    other.states.positions = problem.states.positions
    for one in (problem, other):
        one.diagnostics.balances()
    mine, its = (one.states.vectors(one.states.net) for one in (problem, other))
    assert np.abs(its[0] - its[1]).max() > 1e-3
    np.testing.assert_allclose(mine, its, atol=1e-9 * np.abs(its).max())


def wrung(gravity):
    """A bar with a rotated end: its residual stays below 1e-4 when a little gravity is added."""
    scene = supple.Scene(gravity=(0, -gravity, 0))
    kind = supple.Corotated(young=1e5, poisson=0.3)
    body = scene.add_solid(supple.block((10, 2, 2), (1, 0.2, 0.2)), kind, density=1000)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    turn = supple.Rotate(axis=(1, 0, 0), center=(1, 0.1, 0.1), angle=2.0)
    scene.pin(body.where(lambda X: X[:, 0] >= 1), motion=turn)
    return scene


def test_batches_use_the_position_tolerance_as_single_solves():
    start = supple.equilibrium(wrung(0), tolerance=1e-8).positions
    chosen = [supple.Variation(gravity=(0, -g, 0), initial=start) for g in (0.02, 0.01, 0.0)]
    batch, single = (
        list(supple.equilibria(wrung(0), chosen, device=device, position_tolerance=1e-5))
        for device in ("cuda", "cpu")
    )
    assert single[0].report.iterations > 0
    for batched_result, single_result in zip(batch, single, strict=True):
        assert batched_result.report.outcome is single_result.report.outcome is Outcome.CONVERGED
        assert batched_result.report.error_estimate.position_error <= 1e-5
        np.testing.assert_allclose(batched_result.positions, single_result.positions, atol=3e-5)
    moved = np.abs(batch[0].positions - batch[2].positions).max()
    assert moved > 1e-4, "which the relative residual alone would not have asked for"


def columns(*directions, youngs=None):
    """A column between plates, and variations that raise the upper plate."""
    scene = supple.Scene(gravity=(0, 0, 0))
    materials = [supple.Corotated(young=young, poisson=0.3) for young in youngs or [1e5] * len(directions)]
    body = scene.add_solid(supple.block((2, 20, 2), (0.1, 1, 0.1)), materials[0], density=1)
    scene.pin(body.where(lambda X: X[:, 1] <= 0))
    top = body.where(lambda X: X[:, 1] >= 1)
    scene.pin(top)
    return scene, [
        supple.Variation(
            pins={top: top.points + np.array([0, by, 0])}, materials={body: kind} if youngs else {}
        )
        for by, kind in zip(directions, materials, strict=True)
    ]


def test_only_unstable_members_get_sequential_error_estimates(monkeypatch):
    """Two of the unconverged straight columns differ by their negative curvature."""
    estimated = []

    def record_call(problem, copy):
        estimated.append(copy)
        return estimate_error(problem, copy)

    monkeypatch.setattr("supple.solvers.newton_methods.error_estimate.estimate_error", record_call)
    problem = problem_of(*columns(0.1, -0.1, 0.05, -0.12, 0.12))
    solve_batch(problem, supple.PBNG(), StopCriteria(max_iterations=60))
    estimates = estimate_errors(problem, problem.diagnostics.balances())
    assert sorted(estimated) == [1, 3]
    assert [estimates[copy].stable for copy in range(5)] == [True, False, True, False, True]


def test_unstable_members_are_left_as_in_single_solves():
    """A compressed straight column buckles, a pulled one is stable."""
    scene, chosen = columns(-0.1, 0.1, -0.12)
    batch, single = (list(supple.equilibria(scene, chosen, device=device)) for device in ("cuda", "cpu"))
    for batched_result, single_result in zip(batch, single, strict=True):
        assert batched_result.report.outcome is single_result.report.outcome is Outcome.CONVERGED
        assert batched_result.report.error_estimate.stable
        assert batched_result.report.energy == pytest.approx(single_result.report.energy, rel=1e-3)


def test_callback_continues_with_the_first_member():
    scene, _ = slender()
    problem, seen = problem_of(scene, [supple.Variation(), supple.Variation(gravity=(0, -4.0, 0))]), []
    stop = StopCriteria(tolerance=1e-4, position_tolerance=1e-4)
    first, _ = solve_batch(problem, Hybrid(), stop, record_history=True, callback=seen.append)
    assert "then alone" in first.notes
    iterations = [info.iteration for info in seen]
    relative_residuals = [info.relative_residual for info in seen]
    seconds = [info.seconds for info in seen]
    assert seen[-1].stage == "refinement"
    assert list(iterations) == sorted(iterations)
    assert list(seconds) == sorted(seconds)
    assert iterations[-1] == first.history.iterations[-1] == first.iterations
    assert relative_residuals[-1] == pytest.approx(first.relative_residual)
    assert first.history.energy[-1] == pytest.approx(first.energy)
    lengths = {len(getattr(first.history, name)) for name in ("iterations", "seconds", "residual", "energy")}
    assert len(lengths) == 1
