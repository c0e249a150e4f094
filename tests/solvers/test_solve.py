"""The common solve loop: termination, reports, and honest outcomes."""

import json
import math

import numpy as np
import pytest
from problems import HAND_WRITTEN, NEWTONS, PBNGS, cantilever, material, scrambled, tied_blocks, twisted

import supple
from supple import PBNG, Newton, Outcome
from supple.problem import Balance, Balances, Problem
from supple.scene import build_model
from supple.solve.termination import Progress

SOLVERS = {**PBNGS, "newton": NEWTONS["projected-direct"]}
EACH_SOLVER = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


def bar_scene(**changes):
    return cantilever(material("corotated"), **changes)


@EACH_SOLVER
def test_solve_stops_at_its_tolerance(solver):
    report = supple.equilibrium(bar_scene(), solver=solver, tolerance=1e-3).report
    assert report.outcome is Outcome.CONVERGED
    assert report.ok
    assert 0 < report.relative_residual <= 1e-3
    tighter = supple.equilibrium(bar_scene(), solver=solver, tolerance=1e-6).report
    assert tighter.relative_residual <= 1e-6
    assert tighter.iterations > report.iterations


@EACH_SOLVER
def test_solve_stops_at_its_iteration_limit(solver):
    report = supple.equilibrium(bar_scene(), solver=solver, tolerance=1e-12, max_iterations=1).report
    assert (report.outcome, report.iterations, report.ok) == (Outcome.MAX_ITERATIONS, 1, False)
    report = supple.equilibrium(bar_scene(), solver=solver, tolerance=None, max_iterations=2).report
    assert (report.outcome, report.iterations) == (Outcome.FIXED_ITERATIONS, 2)
    assert report.ok == (
        report.relative_residual <= 1e-2
    )  # two steps of Newton's method are enough, two sweeps are not


def test_solver_iterations_are_the_default_limit():
    solver = PBNG(iterations=7)
    assert supple.equilibrium(bar_scene(), solver=solver, tolerance=None).report.iterations == 7
    assert supple.equilibrium(bar_scene(), solver=solver, tolerance=1e-12).report.iterations == 7
    assert (
        supple.equilibrium(bar_scene(), solver=solver, tolerance=None, max_iterations=3).report.iterations
        == 3
    )


@EACH_SOLVER
def test_solve_stops_at_its_time_limit(solver):
    scene = bar_scene(cells=10)
    supple.equilibrium(scene, solver=solver, tolerance=None, max_iterations=1)
    report = supple.equilibrium(scene, solver=solver, tolerance=1e-14, time_limit=0.05).report
    assert report.outcome in (Outcome.TIME_LIMIT, Outcome.STAGNATED)
    assert report.seconds < 2
    report = supple.equilibrium(scene, solver=PBNG(), tolerance=None, time_limit=0.05).report
    assert report.outcome is Outcome.FIXED_ITERATIONS
    assert 0.05 <= report.seconds < 2
    assert report.iterations > 1


@EACH_SOLVER
def test_balanced_start_needs_no_iterations(solver):
    result = supple.equilibrium(bar_scene(gravity=0), solver=solver, tolerance=1e-9)
    assert (result.report.outcome, result.report.iterations) == (Outcome.CONVERGED, 0)
    assert (result.report.relative_residual, result.report.energy) == (0, 0)
    np.testing.assert_array_equal(result.positions, result.model.rest)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_rest_is_recognized_after_a_rigid_motion(precision):
    """Forces that are rounding never balance, and count as zero."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(4), material("corotated"))
    turn = supple.Rotate(axis=(0, 1, 1), center=(0, 0, 0), angle=1.0) + supple.Translate((3, 2, 1))
    scene.pin(body.where(lambda X: X[:, 0] <= 0), motion=turn)
    result = supple.equilibrium(scene, initial=turn(body.points, np.inf), precision=precision)
    assert (result.report.outcome, result.report.iterations) == (Outcome.CONVERGED, 0)


@pytest.mark.parametrize(("precision", "gravity"), [("float32", 1e-4), ("float64", 1e-13)])
def test_small_motions_are_not_taken_for_rest(precision, gravity):
    """Their forces are a few hundred times larger than rounding."""
    scene = twisted(material("corotated"), angle=0.0, stretch=gravity)
    result = supple.equilibrium(scene, precision=precision, tolerance=0.05)
    assert result.report.ok
    assert result.report.iterations > 0
    middle = np.abs(result.model.rest[:, 0] - 0.5) < 1e-9
    moved = (result.positions - result.model.rest)[middle, 0].mean()
    assert moved == pytest.approx(0.5 * gravity, rel=0.1)


def nearly_rigid(young):
    """A bar too stiff for float32: its sag under gravity is lost in the rounding of F."""
    scene = supple.Scene()
    body = scene.add_solid(supple.block(6), material("corotated", young=young), density=1000)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    return scene


@pytest.mark.parametrize("young", [1e7, 1e9, 2e11])
def test_single_precision_reports_its_rounding_limit(young):
    """The bar is not taken for one at rest."""
    single = supple.equilibrium(nearly_rigid(young), precision="float32", tolerance=1e-5).report
    assert single.outcome is Outcome.ROUNDING_LIMIT
    assert not single.ok
    assert single.relative_residual > 1e-5
    assert any("float64" in note for note in single.notes)
    assert supple.equilibrium(nearly_rigid(young), precision="float64", tolerance=1e-5).report.ok


def test_double_precision_reports_its_rounding_limit():
    """No other solver is recommended, since none could get below rounding."""
    report = supple.equilibrium(bar_scene(), solver=Newton(), tolerance=1e-30).report
    assert report.outcome is Outcome.ROUNDING_LIMIT
    assert not any("solver" in sentence for sentence in (report.outcome.value, *report.notes[1:]))


def heavy_bar(gravity):
    """A soft bar with a large sag: the residual rises for long while the energy falls."""
    scene = supple.Scene(gravity=gravity)
    kind = supple.StableNeoHookean(young=1e5, poisson=0.45)
    body = scene.add_solid(supple.block(cells=(12, 4, 4), size=(3, 1, 1)), kind, density=1000)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    return scene


SLOW_GRAVITY = (-8.9826572, 1.63177386, -3.58960773)
"""Gravity for which Newton's residual does not fall for 14 steps, and Anderson's for 500 sweeps."""


@pytest.mark.parametrize("solver", [Newton(), PBNG()], ids=["newton", "pbng"])
def test_falling_energy_counts_as_progress(solver):
    report = supple.equilibrium(heavy_bar(SLOW_GRAVITY), solver=solver, tolerance=1e-8).report
    assert report.outcome is Outcome.CONVERGED


@pytest.mark.parametrize("seed", range(8))
def test_heavy_bars_converge_in_any_direction_of_gravity(seed):
    direction = np.random.default_rng(seed).normal(size=3)
    scene = heavy_bar(9.81 * direction / np.linalg.norm(direction))
    assert supple.equilibrium(scene).report.outcome is Outcome.CONVERGED


def test_requested_iterations_are_all_done():
    """XPBD's residual stagnates, but a requested number of iterations is not cut."""
    scene, solver = cantilever(material("corotated"), cells=2), supple.XPBD(pseudo_dt=0.1)
    free = supple.equilibrium(scene, solver=solver, tolerance=1e-8).report
    assert free.outcome is Outcome.STAGNATED
    more = free.iterations + 2000
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-8, max_iterations=more).report
    assert (result.outcome, result.iterations) == (Outcome.MAX_ITERATIONS, more)
    assert f"{more:,} allowed" in str(result)


def test_time_limit_alone_is_used_up():
    """The iteration limit of a tolerance does not apply."""
    scene = cantilever(material("corotated"), cells=1)
    supple.equilibrium(scene, tolerance=None, max_iterations=1)
    report = supple.equilibrium(scene, solver="xpbd", tolerance=None, time_limit=1.0).report
    assert report.outcome is Outcome.FIXED_ITERATIONS
    assert report.seconds >= 1.0
    assert report.max_iterations is None


def test_alternating_residuals_are_no_progress():
    """Each of the two has a separate minimum."""
    progress, members = Progress(1), np.arange(1)
    residuals = ((1.0, 1.0 / 2), (2.0, 2.0))
    states = [
        Balances(np.array([[[r * r, s * s, 0, 0, 1]]]), np.array([[True]]), 0.0, 1e-16, members)
        for r, s in residuals
    ]
    assert [state[0] for state in states] == [Balance(r, s, 0.0, False) for r, s in residuals]
    for iteration in range(10):
        progress.record(states[iteration % 2], members, iteration)
    assert progress.at[0] <= 1


def test_default_solver_is_the_same_everywhere():
    """Default solver and acceleration are equal in Python, scene files and the command line."""
    from supple.api.solver_syntax import parse_solver
    from supple.scene.files.scene_table import SceneTable
    from supple.solvers import SOLVERS as BY_NAME
    from supple.solvers import default_solver

    file = SceneTable().solver
    assert default_solver() == supple.Hybrid() == BY_NAME[file.method](**file.options)
    assert PBNG() == parse_solver("pbng")
    assert PBNG().acceleration == supple.solvers.Anderson()


def test_stiff_ties_in_single_precision_are_not_taken_for_rest():
    """Rounding in constraints of 1e8 N/m exceeds the bodies' weight (PBNG 11.3 has such constraints)."""
    scene = tied_blocks(material("corotated"), material("corotated"), stiffness=1e8)
    single = supple.equilibrium(scene, precision="float32", tolerance=1e-4).report
    assert single.iterations > 0
    assert single.outcome is Outcome.ROUNDING_LIMIT
    double = supple.equilibrium(scene, precision="float64", tolerance=1e-4).report
    assert double.outcome is Outcome.CONVERGED


def test_soft_bodies_next_to_stiff_ties_are_not_taken_for_rest():
    """There are no loads, only a moved end."""
    scene = supple.Scene(gravity=(0, 0, 0))
    a = scene.add_solid(supple.block(2, origin=(0, 1, 0)), material("corotated"))
    b = scene.add_solid(supple.block(2), material("corotated"))
    scene.attach(b.where(lambda X: X[:, 1] >= 1), a.where(lambda X: X[:, 1] <= 1), stiffness=1e8)
    scene.pin(a.where(lambda X: X[:, 1] >= 2), motion=supple.Translate((0, 0.01, 0)))
    scene.pin(b.where(lambda X: X[:, 1] <= 0))
    report = supple.equilibrium(scene, precision="float32", tolerance=1e-4, max_iterations=2000).report
    assert report.iterations > 0
    assert report.relative_residual > 0


@pytest.mark.parametrize("name", HAND_WRITTEN)
@EACH_SOLVER
def test_relative_residual_lies_between_0_and_1(name, solver):
    history = supple.equilibrium(
        twisted(material(name), cells=2),
        solver=solver,
        tolerance=None,
        max_iterations=12,
        record_history=True,
    ).report.history
    relative_residual = np.array(history.relative_residual)
    assert np.all((relative_residual >= 0) & (relative_residual <= 1 + 1e-12))


def test_relative_residual_is_scale_free():
    """A body ten times as large and a thousand times as stiff under the corresponding load has the same
    value."""
    residuals = []
    for size, young, gravity in ((1, 1e3, 10), (10, 1e6, 1e3)):
        scene = supple.Scene(gravity=(0, -gravity, 0))
        body = scene.add_solid(
            supple.block(3, size=(size,) * 3), material("corotated", young=young), density=2
        )
        scene.pin(body.where(lambda X: X[:, 0] <= 0))
        report = supple.equilibrium(scene, solver=PBNG(), tolerance=None, max_iterations=10).report
        residuals.append((report.relative_residual, report.reduction))
    np.testing.assert_allclose(residuals[0], residuals[1], rtol=1e-9)


@EACH_SOLVER
def test_report_describes_the_returned_positions(solver):
    """Also when an acceleration has just restored an earlier state."""
    model = build_model(cantilever(material("stable_neo_hookean"), cells=3))
    for sweeps in (5, 20, 30, 40):
        result = supple.equilibrium(
            model, solver=solver, tolerance=None, max_iterations=sweeps, initial=scrambled(model, seed=3)
        )
        problem = Problem(model, "float64")
        problem.positions = result.positions
        balance = problem.balance()
        assert result.report.residual == pytest.approx(balance.residual, rel=1e-6, abs=1e-12)
        assert result.report.relative_residual == pytest.approx(
            balance.relative_residual, rel=1e-6, abs=1e-12
        )
        assert result.report.energy == pytest.approx(problem.energy(), rel=1e-9)
        assert result.report.inverted == problem.diagnostics.inversions()[0]


def test_harmful_acceleration_restarts():
    """Weights assume a rate that the sweep does not have; a note reports it, and the solve converges."""
    wild = PBNG(acceleration=supple.solvers.Chebyshev(rho=0.9999, gamma=1.9, first_iteration=0))
    report = supple.equilibrium(bar_scene(), solver=wild, tolerance=1e-7).report
    assert report.outcome is Outcome.CONVERGED
    assert any("restarted" in note for note in report.notes)


@EACH_SOLVER
def test_history_has_an_entry_for_the_start_and_every_iteration(solver):
    report = supple.equilibrium(bar_scene(), solver=solver, tolerance=1e-5, record_history=True).report
    history = report.history
    assert history.iterations == list(range(report.iterations + 1))
    for columns in (history.seconds, history.residual, history.relative_residual, history.energy):
        assert len(columns) == report.iterations + 1
    assert history.seconds[0] == 0
    assert np.all(np.diff(history.seconds) >= 0)
    assert history.seconds[-1] == pytest.approx(report.seconds)
    assert history.relative_residual[-1] == report.relative_residual
    assert history.residual[-1] / history.residual[0] == pytest.approx(report.reduction)
    assert history.energy[-1] == pytest.approx(report.energy)
    assert supple.equilibrium(bar_scene(), solver=solver, tolerance=1e-5).report.history is None


@EACH_SOLVER
def test_recording_a_history_does_not_change_the_solve(solver):
    """Including restarts of the acceleration and the stop of the solve."""
    model = build_model(cantilever(material("neo_hookean"), gravity=0))
    recorded, plain = (
        supple.equilibrium(
            model, solver=solver, tolerance=1e-5, initial=scrambled(model), record_history=history
        )
        for history in (True, False)
    )
    assert recorded.report.ok
    assert recorded.report.iterations == plain.report.iterations
    assert recorded.report.notes == plain.report.notes
    np.testing.assert_array_equal(recorded.positions, plain.positions)


def test_callbacks_of_motions_get_the_frame():
    scene, seen = bar_scene(), []
    scene.quasistatic = False
    options = {"frames": 4, "first_frame": 3, "max_iterations": 2, "tolerance": None}
    for frame in supple.simulate(scene, solver=PBNG(), callback=seen.append, **options):
        assert {info.frame for info in seen} == {frame.index}
        seen.clear()
    assert frame.index == 4


def test_callback_gets_falling_residuals():
    seen = []
    report = supple.equilibrium(bar_scene(), solver=PBNG(), tolerance=1e-5, callback=seen.append).report
    iterations = [info.iteration for info in seen]
    relative_residual = [info.relative_residual for info in seen]
    seconds = [info.seconds for info in seen]
    assert {(info.stage, info.solver, info.frame) for info in seen} == {("solve", "pbng", None)}
    assert iterations[0] == 0
    assert iterations[-1] == report.iterations
    assert relative_residual[-1] == report.relative_residual < relative_residual[0]
    assert seconds == sorted(seconds)


def test_reports_are_plain_json():
    for history in (False, True):
        report = supple.equilibrium(bar_scene(), solver=PBNG(), tolerance=1e-4, record_history=history).report
        values = json.loads(json.dumps(report.to_dict(), allow_nan=False))
        assert values["outcome"] == "converged"
        assert values["sentence"] == Outcome.CONVERGED.value
        assert values["ok"] is True
        assert values["iterations"] == report.iterations
        assert (values["history"] is not None) == history
        assert str(report).startswith("Converged")


def test_report_of_a_failure_is_plain_json():
    scene = cantilever(material("log_neo_hookean"))
    report = supple.equilibrium(scene, solver="pbng", initial=scene.bodies[0].points * [-1, 1, 1]).report
    assert report.outcome is Outcome.FAILED
    values = json.loads(json.dumps(report.to_dict()))
    assert values["outcome"] == "failed"
    assert str(report).startswith("Failed")
    assert math.isinf(report.relative_residual)
    assert math.isnan(report.reduction)


def test_counts_of_the_report():
    report = supple.equilibrium(bar_scene(), solver=PBNG(), tolerance=1e-4).report
    assert (report.vertices, report.elements, report.solver, report.precision) == (64, 135, "pbng", "float64")
    assert report.colors >= 4
    assert report.setup_seconds > 0
    assert report.tolerance == 1e-4


def test_second_solve_starts_at_the_end_of_the_first():
    first = supple.equilibrium(bar_scene(), solver=PBNG(), tolerance=1e-6)
    again = supple.equilibrium(bar_scene(), solver=PBNG(), tolerance=1e-6, initial=first.positions)
    assert again.report.iterations == 0
    np.testing.assert_allclose(again.positions, first.positions, atol=1e-15)


def test_results_have_positions_by_body():
    scene = tied_blocks(material("corotated"), material("corotated"))
    result = supple.equilibrium(scene, tolerance=1e-3)
    for body in scene.bodies:
        np.testing.assert_array_equal(result.positions_of(body), result.positions[body.vertices])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 0.0}, "tolerance must lie between 0 and 1"),
        ({"tolerance": 1.0}, "tolerance must lie between 0 and 1"),
        ({"tolerance": math.nan}, "tolerance must lie between 0 and 1"),
        ({"tolerance": None}, "no termination criterion"),
        ({"max_iterations": 0}, "max_iterations must be a whole number of at least 1"),
        ({"time_limit": 0.0}, "time_limit must be positive"),
        ({"time_limit": math.inf}, "time_limit must be positive and finite"),
        ({"precision": "float16"}, "precision must be 'float32' or 'float64'"),
        ({"device": "tpu"}, "device must be"),
        (
            {"initial": np.zeros((3, 3))},
            r"initial must have shape \(64, 3\), one row of three numbers per vertex; got shape \(3, 3\)",
        ),
        ({"initial": np.full((64, 3), np.nan)}, "initial has NaN or infinite values for 64 of 64 vertices"),
        ({"initial": np.full((64, 3), np.inf)}, "initial has NaN or infinite values for 64 of 64 vertices"),
    ],
)
def test_wrong_calls_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        supple.equilibrium(bar_scene(), solver=PBNG(), **options)


def test_bending_converges_to_the_timoshenko_beam():
    """Tip of a cantilever under its own weight: w L⁴/(8 E I) + w L²/(2 k G A), from below."""
    young, density, gravity, length = 1e6, 1.0, 0.01, 4.0
    load = density * gravity
    expected = load * length**4 / (8 * young / 12) + load * length**2 / (2 * 5 / 6 * young / 2)
    error = {}
    for n in (4, 8):
        scene = supple.Scene(gravity=(0, -gravity, 0))
        mesh = supple.block((4 * n, n, n), size=(length, 1, 1))
        body = scene.add_solid(mesh, material("corotated", young, 0.0), density=density)
        scene.pin(body.where(lambda X: X[:, 0] <= 0))
        result = supple.equilibrium(scene, solver=Newton(), tolerance=1e-7)
        tip = body.points[:, 0] >= length
        error[n] = 1 + (result.positions - body.points)[tip, 1].mean() / expected
    assert 0 < error[8] < 0.05
    assert error[4] / error[8] > 3
