"""Common properties of all element-wise methods: weak constraints, threads, pseudo-time, and reports."""

import family
import numpy as np
import pytest
from problems import POISSON, YOUNG, cantilever, face

import supple
from supple import FPXPBD, PBNG, XPBD, Newton, Outcome
from supple.config.stop_criteria import StopCriteria
from supple.problem import Problem
from supple.solve.batch_solve import solve

EACH_METHOD = pytest.mark.parametrize("name", family.METHODS)


def material(name):
    return family.METHODS[name][1](young=YOUNG, poisson=POISSON)


@EACH_METHOD
def test_results_are_independent_of_the_number_of_threads(name):
    """Bitwise, with several chunks of batches in every color."""
    solver, _ = family.METHODS[name]
    scene = family.tied(material(name), cells=8)
    v = np.sin(3 * np.concatenate([body.points for body in scene.bodies])[:, [1, 2, 0]])
    positions = []
    for threads in (1, 2, 3):
        problem = family.placed(scene, v=v, threads=threads)
        family.swept(problem, solver, 4)
        positions.append(problem.u.copy())
    assert np.isfinite(positions[0]).all()
    np.testing.assert_array_equal(positions[1], positions[0])
    np.testing.assert_array_equal(positions[2], positions[0])


@EACH_METHOD
def test_sweeps_in_one_or_several_calls_are_equal(name):
    """`advance(4)` is bitwise four times `advance(1)`: checks of the residual change nothing."""
    solver, _ = family.METHODS[name]
    problems = [family.placed(family.tied(material(name))) for _ in range(2)]
    runs = [solver.begin(problem) for problem in problems]
    runs[0].advance(4)
    for _ in range(4):
        runs[1].advance(1)
        problems[1].balance()
    np.testing.assert_array_equal(problems[0].u, problems[1].u)


@EACH_METHOD
def test_weak_constraints_close_a_gap(name):
    """Blocks 0.1 m apart with springs far stiffer than themselves."""
    solver, _ = family.METHODS[name]
    scene = family.tied(material(name), stiffness=1e6, gap=0.1)
    *_, last = supple.simulate(scene, solver=solver, frames=20, max_iterations=20)
    before, after = family.gaps(last.model, last.model.rest), family.gaps(last.model, last.positions)
    assert before.min() == pytest.approx(0.1)
    assert after.max() < 1e-3
    assert last.report.inverted == 0


@pytest.mark.parametrize(
    ("name", "error"),
    [("bpxpbd", 1e-4), ("fpxpbd", 1e-6), ("gpbd", 0.02), ("xpbd", 0.1), ("block_xpbd", 0.3)],
)
def test_tied_blocks_follow_newtons_motion(name, error):
    """Ten steps of backward Euler with attachments, without PBD, which ignores stiffness."""
    solver, _ = family.METHODS[name]
    scene = family.tied(material(name))
    *_, frames = supple.simulate(scene, solver=solver, frames=10, max_iterations=40)
    *_, truth = supple.simulate(scene, solver=Newton(), frames=10, tolerance=1e-9)
    moved = np.linalg.norm(truth.positions - truth.model.rest)
    assert np.linalg.norm(frames.positions - truth.positions) < error * moved


@EACH_METHOD
def test_step_starts_at_the_inertial_prediction(name):
    """Before the first sweep, x = x + Δt v + W f_ext, with W = 0 for pinned vertices."""
    solver, _ = family.METHODS[name]
    scene = family.tied(material(name))
    v = np.ones((len(supple.scene.build_model(scene).rest), 3))
    problem = family.placed(scene, v=v)
    solver.begin(problem)
    model = problem.model
    expected = model.rest + scene.dt * v + scene.dt**2 * np.array([0, -9.8, 0])
    expected[model.pinned] = model.rest[model.pinned]
    np.testing.assert_allclose(problem.positions, expected, atol=1e-12)


@EACH_METHOD
def test_pinned_vertices_stay_at_their_targets(name):
    solver, _ = family.METHODS[name]
    problem = family.placed(family.tied(material(name)))
    family.swept(problem, solver, 10)
    pinned = problem.model.pinned
    np.testing.assert_array_equal(problem.u[pinned], 0)


@EACH_METHOD
def test_reports_count_the_colors_of_elements(name):
    solver, _ = family.METHODS[name]
    report = solve(family.placed(family.tied(material(name))), solver, StopCriteria(None, 3, None))
    assert report.outcome is Outcome.FIXED_ITERATIONS
    assert report.iterations == 3
    assert report.colors > 10
    assert f"{report.colors} element colors" in report.notes


def test_clusters_have_fewer_colors():
    problems = [family.placed(family.tied(material("fpxpbd"), cells=4)) for _ in range(2)]
    plain, clustered = (
        FPXPBD(ordering=ordering).begin(problem).colors
        for ordering, problem in zip(("colors", "clusters"), problems, strict=True)
    )
    assert clustered < 0.5 * plain


def test_several_materials_are_updated_in_sequence():
    """Two types of material give two elastic terms, whose forces add up as in Newton."""
    scene = supple.Scene(gravity=(0, -9.8, 0), quasistatic=False, dt=0.01)
    soft = supple.Corotated(young=YOUNG, poisson=POISSON)
    stiff = supple.NeoHookean(young=4 * YOUNG, poisson=POISSON)
    upper = scene.add_solid(supple.block(2, origin=(0, 1, 0)), soft, density=10)
    lower = scene.add_solid(supple.block(2), stiff, density=10)
    scene.pin(upper.where(face(1, 2)))
    scene.attach(lower.where(face(1, 1)), upper.where(face(1, 1)), stiffness=1e4)
    assert solve(family.placed(scene), FPXPBD(), StopCriteria(1e-9, 1000, None)).ok


# Quasistatics by pseudo-time (XPBD-QS)


def hanging(cells=5):
    """PBNG section 11.3: springs of 1e8 N/m between soft blocks 0.2 m apart."""
    scene = family.tied(supple.Corotated(young=1000, poisson=0.3), stiffness=1e8, gap=0.2, cells=cells)
    scene.quasistatic = True
    return scene


def hang(solver, iterations=1000):
    result = supple.equilibrium(
        hanging(), solver=solver, tolerance=None, max_iterations=iterations, record_history=True
    )
    return result, np.array(result.report.history.relative_residual)


@pytest.mark.parametrize("sweeps", [1, 10])
def test_xpbd_stalls_on_stiff_attachments_and_pbng_converges(sweeps):
    """PBNG Fig. 17: with the springs last XPBD-QS keeps a large residual; with the springs first it leaves a
    gap, which their stiffness makes a huge force."""
    _, pbng = hang(PBNG(acceleration="chebyshev"))
    last, stalled = hang(XPBD(sweeps_per_step=sweeps))
    first, open_gap = hang(XPBD(sweeps_per_step=sweeps, attachments_first=True))
    assert pbng[-1] < 1e-4
    assert stalled[-1] > 1e-2
    assert stalled[-1] > 0.5 * stalled[-301]
    assert open_gap[-1] > 0.5
    assert (
        family.gaps(first.model, first.positions).max() > 100 * family.gaps(last.model, last.positions).max()
    )


def test_xpbd_in_pseudo_time_never_converges():
    result = supple.equilibrium(hanging(2), solver=XPBD(), tolerance=1e-4, max_iterations=3000)
    assert result.report.outcome in (Outcome.STAGNATED, Outcome.MAX_ITERATIONS)
    assert not result.report.ok


@pytest.mark.parametrize("sweeps", [1, 10])
def test_pseudo_time_of_fpxpbd_converges_to_the_equilibrium(sweeps):
    """The result is that of PBNG for any number of sweeps per step, and the report describes the
    pseudo-time."""
    mesh, kind = supple.block((3, 2, 2)), supple.Corotated(young=YOUNG, poisson=POISSON)
    scene = family.clamped(mesh, kind, gravity=-1.0, quasistatic=True)
    truth = supple.equilibrium(scene, solver=PBNG(), tolerance=1e-9)
    solver = FPXPBD(pseudo_dt=0.1, sweeps_per_step=sweeps)
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-4, max_iterations=500)
    assert result.report.ok
    assert np.abs(truth.positions - truth.model.rest).max() > 1e-2
    np.testing.assert_allclose(result.positions, truth.positions, atol=1e-4)
    assert any(note.startswith("run in pseudo-time, steps of 0.1 s with") for note in result.report.notes)


def test_fpxpbd_does_not_drift_in_single_precision():
    """Rounding of updates must not accumulate over thousands of steps of pseudo-time."""
    scene = cantilever(material("fpxpbd"))
    truth = supple.equilibrium(scene, solver=Newton(), tolerance=1e-10)
    sag = np.abs(truth.positions - truth.model.rest).max()
    result = supple.equilibrium(
        scene, solver=FPXPBD(), tolerance=None, max_iterations=2000, precision="float32"
    )
    assert np.abs(result.positions - truth.positions).max() < 1e-5 * sag


def test_fpxpbd_balances_stiff_attachments_in_pseudo_time():
    """Its stresses persist between steps, so it does not stall as XPBD does."""
    result = supple.equilibrium(hanging(), solver=FPXPBD(pseudo_dt=0.03), tolerance=1e-4, max_iterations=1000)
    assert result.report.ok


@EACH_METHOD
def test_step_starts_with_an_empty_history(name):
    """Runs on one problem share their arrays, but not their contents or the weights of another time step."""
    solver, _ = family.METHODS[name]
    scene = family.tied(material(name))
    unused, used = family.placed(scene), family.placed(scene)
    family.swept(used, solver, 3)
    family.begin_time_step(used, 0.5 * scene.dt, used.model.rest, 0.0)
    family.swept(used, solver, 3)
    family.begin_time_step(used, scene.dt, used.model.rest, 0.0)
    for problem in (unused, used):
        family.swept(problem, solver, 3)
    np.testing.assert_array_equal(used.u, unused.u)


def test_second_run_reuses_the_arrays():
    """Substeps are as short as a sweep or two, so a later run of the same method allocates nothing."""
    problem = family.placed(family.tied(material("fpxpbd")))
    first, second = FPXPBD().begin(problem), FPXPBD().begin(problem)
    assert second.projections is first.projections
    assert FPXPBD(ordering="clusters").begin(problem).projections is not first.projections


def test_massless_vertices_are_refused():
    model = supple.scene.build_model(family.tied(material("xpbd")))
    model.mass[3] = 0
    problem = Problem(model, "float64")
    family.begin_time_step(problem, 0.01, model.rest, 0.0)
    with pytest.raises(
        ValueError, match="xpbd divides by vertex masses, which must be positive for all free vertices"
    ):
        XPBD().begin(problem)
