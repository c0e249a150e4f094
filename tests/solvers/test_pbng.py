"""PBNG against Newton from good and bad starts, with any number of threads."""

import numpy as np
import pytest
from problems import (
    BARRIERS,
    HAND_WRITTEN,
    PBNGS,
    SELF_RECOVERING,
    cantilever,
    flattened,
    material,
    scrambled,
    tied_blocks,
    twisted,
)

import supple
from supple import PBNG, Newton, Outcome
from supple.problem import Problem
from supple.scene import build_model
from supple.solvers import SOR, Anderson, Chebyshev

EACH_MATERIAL = pytest.mark.parametrize("name", HAND_WRITTEN)
ACCELERATIONS = pytest.mark.parametrize("solver", PBNGS.values(), ids=PBNGS)


@EACH_MATERIAL
def test_pbng_agrees_with_newton(name):
    """To 1e-6 of the block's size when both have converged."""
    scene = twisted(material(name), cells=3)
    result = supple.equilibrium(scene, solver=PBNGS["chebyshev"], tolerance=1e-8)
    reference = supple.equilibrium(scene, solver=Newton(), tolerance=1e-10)
    assert result.report.outcome is reference.report.outcome is Outcome.CONVERGED
    assert np.abs(reference.positions - reference.model.rest).max() > 0.1
    np.testing.assert_allclose(result.positions, reference.positions, atol=1e-6)
    assert result.report.energy == pytest.approx(reference.report.energy, rel=1e-9)


@ACCELERATIONS
def test_every_acceleration_converges_to_the_same_equilibrium(solver):
    scene = cantilever(material("corotated"), gravity=20)
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-8)
    reference = supple.equilibrium(scene, solver=Newton(), tolerance=1e-10)
    assert result.report.outcome is Outcome.CONVERGED
    np.testing.assert_allclose(result.positions, reference.positions, atol=1e-6)


def test_accelerations_accelerate():
    scene = twisted(material("corotated"), cells=5)
    counts = {
        name: supple.equilibrium(scene, solver=solver, tolerance=1e-6).report.iterations
        for name, solver in PBNGS.items()
    }
    assert counts["sor"] < 0.6 * counts["none"]
    assert counts["chebyshev"] < 0.6 * counts["none"]
    assert counts["anderson"] < 0.3 * counts["none"]


def test_anderson_solves_the_least_squares_problem():
    """x = g - ΔG c with the c of least |f - ΔF c|, from the same sweeps."""
    model, window = build_model(twisted(material("corotated"))), 3
    problem, plain = (Problem(model, "float64") for _ in range(2))
    for each in (problem, plain):
        each.begin_step(np.inf)
    run, sweep = (
        PBNG(acceleration=Anderson(window=window)).begin(problem),
        PBNG(acceleration="none").begin(plain),
    )
    x, xs, gs = plain.u.copy(), [], []
    for _ in range(7):
        plain.u[:] = x
        sweep.advance(1)
        xs, gs = [*xs, x], [*gs, plain.u.copy()]
        F = [(g - x)[:, :3].ravel() for g, x in zip(gs, xs, strict=True)]
        dF = np.diff(F[-window - 1 :], axis=0).T
        dG = np.diff([g.ravel() for g in gs[-window - 1 :]], axis=0).T
        x = gs[-1].copy()
        if dF.size:
            x -= (dG @ np.linalg.lstsq(dF, F[-1], rcond=None)[0]).reshape(x.shape)
        run.advance(1)
        np.testing.assert_allclose(problem.u, x, atol=1e-6)
    assert np.abs(x - gs[-1]).max() > 1e-4


def test_anderson_is_stable_in_float32_beyond_convergence():
    """Products of differences that are all rounding still have a factorization."""
    result = supple.equilibrium(
        twisted(material("corotated"), cells=2),
        solver=PBNGS["anderson"],
        tolerance=None,
        max_iterations=300,
        precision="float32",
    )
    assert result.report.rejected == 0
    assert result.report.notes == []


def test_anderson_discards_a_non_finite_history():
    problem = Problem(build_model(twisted(material("corotated"))), "float64")
    problem.begin_step(np.inf)
    run = PBNGS["anderson"].begin(problem)
    run.advance(10)
    run.observe(problem.balance())
    problem.u[problem.loads.rows.own[0, 0, 0], 0] = np.nan
    run.advance(10)
    assert run.observe(problem.balance())
    run.advance(10)
    assert np.isfinite(problem.u).all()
    again = PBNGS["anderson"].begin(problem)
    again.advance(10)
    assert np.isfinite(problem.u).all()


def test_anderson_restores_its_state_when_the_energy_rises():
    problem = Problem(build_model(twisted(material("corotated"))), "float64")
    problem.begin_step(np.inf)
    run = PBNGS["anderson"].begin(problem)
    run.advance(10)
    assert not run.observe(problem.balance())
    good = problem.u.copy()
    problem.u[problem.loads.rows.own[0, 0, 0], 0] += 0.5
    assert run.observe(problem.balance())
    np.testing.assert_array_equal(problem.u, good)
    assert run.notes() == ["Anderson acceleration restarted 1 time because the energy rose"]
    run.advance(10)
    assert not run.observe(problem.balance())


@EACH_MATERIAL
def test_energy_never_rises_without_acceleration(name):
    """Each visit minimizes an upper bound of the energy, since the Hessian bound is above the exact
    Hessian."""
    history = supple.equilibrium(
        twisted(material(name)),
        solver=PBNG(acceleration="none"),
        tolerance=None,
        max_iterations=40,
        record_history=True,
    ).report.history
    energy = np.array(history.energy)
    assert energy[-1] < energy[0]
    assert np.all(np.diff(energy) <= 1e-10 * energy[0])


@pytest.mark.parametrize("stiffness", [1e3, 1e8])
@ACCELERATIONS
def test_tied_bodies_converge(solver, stiffness):
    """Weak constraints 1e5 times stiffer than the bodies do not slow the solve down (PBNG 11.3)."""
    scene = tied_blocks(material("corotated"), material("corotated"), stiffness)
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-7)
    reference = supple.equilibrium(scene, solver=Newton(), tolerance=1e-10)
    assert result.report.outcome is Outcome.CONVERGED
    assert result.report.iterations < 2000
    np.testing.assert_allclose(result.positions, reference.positions, atol=1e-6)


def test_stiff_ties_converge_slowly_without_links():
    """The method of the paper without links needs far more sweeps here."""
    scene = tied_blocks(material("corotated"), material("corotated"), 1e6)
    with_links = supple.equilibrium(scene, solver=PBNG(acceleration="none"), tolerance=1e-5)
    without = supple.equilibrium(
        scene, solver=PBNG(acceleration="none", tied_groups=False), tolerance=1e-5, max_iterations=1000
    )
    assert with_links.report.ok
    assert not without.report.ok


@pytest.mark.parametrize("name", SELF_RECOVERING)
@pytest.mark.parametrize("start", [scrambled, flattened], ids=["scrambled", "flattened"])
@ACCELERATIONS
def test_bad_starts_return_to_rest(name, start, solver):
    scene = cantilever(material(name), gravity=0)
    rest = scene.bodies[0].points
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-6, initial=start(build_model(scene)))
    assert result.report.outcome is Outcome.CONVERGED
    assert result.report.inverted == 0
    np.testing.assert_allclose(result.positions, rest, atol=1e-6)


def test_inverted_start_returns_to_rest_with_a_rising_residual():
    """Acceleration stops when the residual rises repeatedly, and must not prevent convergence."""
    scene = cantilever(material("stable_neo_hookean"), gravity=0)
    start = scene.bodies[0].points * [-1, 1, 1]
    result = supple.equilibrium(scene, solver=PBNGS["chebyshev"], tolerance=1e-6, initial=start)
    assert result.report.outcome is Outcome.CONVERGED
    np.testing.assert_allclose(result.positions, scene.bodies[0].points, atol=1e-6)


@EACH_MATERIAL
@ACCELERATIONS
@pytest.mark.parametrize("precision", ["float64"])
def test_any_number_of_sweeps_gives_a_usable_state(name, solver, precision):
    scene = cantilever(material(name), cells=2)
    start = scrambled(build_model(scene))
    for sweeps in (1, 2, 3, 5, 8, 13, 20):
        result = supple.equilibrium(
            scene, solver=solver, tolerance=None, max_iterations=sweeps, initial=start, precision=precision
        )
        assert np.isfinite(result.positions).all()
        assert np.abs(result.positions).max() < 1e3


@pytest.mark.parametrize("name", ["corotated", "log_neo_hookean"])
def test_any_number_of_sweeps_gives_a_usable_state_in_single_precision(name):
    scene = cantilever(material(name), cells=2)
    start = scrambled(build_model(scene))
    for sweeps in range(1, 21):
        result = supple.equilibrium(
            scene,
            solver=PBNGS["chebyshev"],
            tolerance=None,
            max_iterations=sweeps,
            initial=start,
            precision="float32",
        )
        assert np.isfinite(result.positions).all()


@pytest.mark.parametrize("name", BARRIERS)
@ACCELERATIONS
def test_barriers_fail_from_inverted_starts(name, solver):
    scene = cantilever(material(name), gravity=0)
    start = scene.bodies[0].points * [-1, 1, 1]
    result = supple.equilibrium(scene, solver=solver, initial=start)
    assert result.report.outcome is Outcome.FAILED
    assert not result.report.ok
    np.testing.assert_allclose(result.positions, start, atol=1e-15)


@pytest.mark.parametrize("name", BARRIERS)
@ACCELERATIONS
def test_non_finite_steps_are_rejected_and_counted(name, solver):
    """Vertices around inverted elements stay in place."""
    scene = cantilever(material(name), gravity=0)
    problem = Problem(build_model(scene), "float64")
    problem.positions = scene.bodies[0].points * [-1, 1, 1]
    before = problem.positions
    run = solver.begin(problem)
    run.advance(5)
    assert run.collect_rejected() == [5 * problem.model.free.sum()]
    np.testing.assert_array_equal(problem.positions, before)


@pytest.mark.parametrize("name", BARRIERS)
def test_rejected_steps_of_ties_leave_positions_finite(name):
    problem = Problem(build_model(tied_blocks(material(name), material(name))), "float64")
    problem.positions = problem.model.rest * [1, -1, 1]
    run = PBNG(acceleration="none").begin(problem)
    run.advance(3)
    assert run.collect_rejected()[0] > 0
    assert np.isfinite(problem.positions).all()


@pytest.mark.parametrize("name", BARRIERS)
@ACCELERATIONS
def test_flattened_barriers_are_not_taken_for_rest(name, solver):
    """If J is zero to rounding, the barrier's stiffness is huge but forces do not balance."""
    scene = cantilever(material(name), gravity=0)
    result = supple.equilibrium(
        scene, solver=solver, tolerance=1e-6, max_iterations=600, initial=flattened(build_model(scene))
    )
    assert not result.report.ok
    assert result.report.rejected > 0
    assert np.isfinite(result.positions).all()


@pytest.mark.parametrize("name", BARRIERS)
@ACCELERATIONS
def test_barriers_are_never_crossed(name, solver):
    """A pull of three times the block's size in one step would invert elements without step limits."""
    scene = twisted(material(name, poisson=0.45), cells=2, angle=0.0, stretch=3.0)
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-5)
    assert result.report.outcome is Outcome.CONVERGED
    assert result.report.inverted == 0


@ACCELERATIONS
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_results_are_independent_of_the_number_of_threads(solver, precision):
    scene = twisted(material("corotated"), cells=17 if precision == "float32" else 14)
    results = {}
    for threads in (1, 2, 3):
        results[threads] = supple.equilibrium(
            scene, solver=solver, tolerance=None, max_iterations=25, threads=threads, precision=precision
        )
        assert results[threads].report.threads == threads
    for threads in (2, 3):
        np.testing.assert_array_equal(results[threads].positions, results[1].positions)
        assert results[threads].report.residual == results[1].report.residual
        assert results[threads].report.energy == results[1].report.energy


def test_ties_are_independent_of_the_number_of_threads():
    scene = tied_blocks(material("corotated"), material("corotated"), cells=9)
    one, three = (
        supple.equilibrium(
            scene, solver=PBNG(acceleration="none"), tolerance=None, max_iterations=20, threads=threads
        )
        for threads in (1, 3)
    )
    assert three.report.threads == 3
    np.testing.assert_array_equal(one.positions, three.positions)


@ACCELERATIONS
def test_runs_repeat_bitwise(solver):
    scene = twisted(material("corotated"), cells=12)
    first, second = (
        supple.equilibrium(scene, solver=solver, tolerance=None, max_iterations=30, threads=2).positions
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", ["chebyshev", "anderson"])
def test_sweeps_in_one_or_several_calls_are_equal(name):
    """Chebyshev's weights and Anderson's history persist between calls."""
    problems = [Problem(build_model(twisted(material("corotated"))), "float64") for _ in range(2)]
    for problem, counts in zip(problems, ([30], [1, 4, 10, 15]), strict=True):
        problem.begin_step(np.inf)
        run = PBNGS[name].begin(problem)
        for count in counts:
            run.advance(count)
    np.testing.assert_array_equal(problems[0].u, problems[1].u)


def test_chebyshev_weights():
    """ω is 1 up to the start, then 2/(2 - ρ²), then 4/(4 - ρ² ω) [PBNG section 7.3]."""
    run = PBNG(acceleration=Chebyshev(rho=0.9, first_iteration=2)).begin(
        Problem(build_model(twisted(material("corotated"))), "float64")
    )
    weights = run.acceleration.prepare_sweeps(5).weights[0, :5]
    third = 2 / (2 - 0.81)
    np.testing.assert_allclose(weights, [1, 1, 1, third, 4 / (4 - 0.81 * third)])


def test_sor_of_the_paper():
    """xˡ⁺¹ = ω (x_PBNG - xˡ⁻¹) + xˡ⁻¹ [PBNG section 7.3], from plain sweeps."""
    model = build_model(twisted(material("corotated")))
    problem, plain = Problem(model, "float64"), Problem(model, "float64")
    for one in (problem, plain):
        one.begin_step(np.inf)
    run, sweep = PBNG(acceleration="paper_sor").begin(problem), PBNG(acceleration=None).begin(plain)
    before = positions = plain.positions
    for k in range(4):
        run.advance(1)
        sweep.advance(1)
        omega = 1.7 if k else 1.0
        positions, before = omega * (plain.positions - before) + before, positions
        np.testing.assert_allclose(problem.positions, positions, atol=1e-12)
        plain.positions = positions


def test_chebyshev_of_the_paper_by_name():
    assert PBNG("paper_chebyshev") == PBNG(
        supple.solvers.PaperChebyshev(rho=0.95, gamma=1.7, first_iteration=0)
    )
    run = PBNG("paper_chebyshev").begin(Problem(build_model(twisted(material("corotated"))), "float64"))
    memory = run.acceleration.prepare_sweeps(3)
    np.testing.assert_allclose(memory.weights[0, :2], [1, 2 / (2 - 0.95**2)])
    assert memory.gamma[0] == 1.7


def test_pinned_vertices_stay_at_their_targets():
    scene = twisted(material("corotated"))
    result = supple.equilibrium(scene, solver=PBNGS["chebyshev"], tolerance=None, max_iterations=50)
    pinned = result.model.pinned
    np.testing.assert_allclose(result.positions[pinned], result.model.prescribed(np.inf), atol=1e-15)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PBNG("cheby"), "acceleration must be 'none', 'sor', .* or 'paper_chebyshev', got 'cheby'"),
        (lambda: PBNG(3), "acceleration must be 'none', 'sor', .* or 'paper_chebyshev', got 3"),
        (lambda: PBNG({"kind": "sor", "window": 3}), "'sor' has no option 'window'; known here: 'omega'"),
        (lambda: PBNG({"window": 3}), "acceleration must contain its kind"),
        (lambda: PBNG({"kind": "none", "window": 3}), "'none' has no option 'window'"),
        (lambda: Anderson(window=0), "window must be a whole number from 1 to 30, got 0"),
        (lambda: SOR(omega=2.0), "omega must lie between 0 and 2"),
        (lambda: SOR(omega=0.0), "omega must lie between 0 and 2"),
        (lambda: Chebyshev(rho=1.0), "rho must lie between 0 and 1"),
        (lambda: Chebyshev(gamma=2.5), "gamma must lie between 0 and 2"),
        (lambda: Chebyshev(first_iteration=-1), "first_iteration must be a whole number of at least 0"),
        (lambda: PBNG(iterations=0), "iterations must be a whole number of at least 1"),
    ],
)
def test_wrong_options_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_acceleration_class_is_refused():
    with pytest.raises(TypeError, match=r"supple\.Anderson\(\)"):
        PBNG(Anderson)
