"""`compare` gives every solver the same start and the same residual, and excludes measuring from its
times."""

import time

import numpy as np
import pytest

import supple
from supple.api.compare import Comparison, solver_label
from supple.problem import Problem
from supple.solvers import SOLVERS


def falling_block(material: str = "Corotated") -> supple.Scene:
    scene = supple.Scene(quasistatic=False, dt=0.02)
    body = scene.add_solid(
        supple.block(4), getattr(supple.materials, material)(young=1e4, poisson=0.3), density=100
    )
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    return scene


@pytest.fixture(scope="module")
def fallen() -> Comparison:
    return supple.compare(falling_block(), max_iterations=25)


def test_all_solvers_are_compared_by_default(fallen):
    assert [trial.label for trial in fallen.trials] == list(SOLVERS)
    assert all(trial.error is None for trial in fallen.trials)


@pytest.mark.parametrize("name", SOLVERS)
def test_curves_have_an_entry_for_the_start_and_every_iteration(fallen, name):
    report = fallen[name].report
    history = report.history
    assert history.iterations == list(range(report.iterations + 1))
    for curve in (history.seconds, history.residual, history.relative_residual, history.energy):
        assert len(curve) == report.iterations + 1
    assert history.seconds[0] == 0
    assert np.all(np.diff(history.seconds) > 0)
    assert history.seconds[-1] == report.seconds
    assert history.residual[-1] == report.residual
    assert report.reduction == pytest.approx(report.residual / history.residual[0])


def test_comparisons_and_trials_print_one_line(fallen):
    assert repr(fallen).startswith(f"<Comparison: {', '.join(SOLVERS)} on <Model: 125 vertices, ")
    assert str(fallen["newton"]).startswith("<Trial 'newton': fixed iterations, relative residual ")
    (refused,) = supple.compare(falling_block("StVK"), "block_xpbd", max_iterations=1).trials
    assert repr(refused).startswith("<Trial 'block_xpbd': not run, block_xpbd needs a material")
    for results in (fallen, *fallen.trials, refused):
        assert "\n" not in str(results)
        assert len(str(results)) < 300


@pytest.mark.parametrize("quasistatic", [False, True])
def test_all_solvers_start_from_the_same_state(quasistatic):
    scene = falling_block()
    scene.quasistatic = quasistatic
    histories = [t.report.history for t in supple.compare(scene, max_iterations=1).trials]
    for name in ("residual", "relative_residual"):
        first = [getattr(history, name)[0] for history in histories]
        np.testing.assert_allclose(first, first[0], rtol=1e-14)


def test_reported_quantities_match_the_positions(fallen):
    """Residual and energy of a new problem at the returned positions equal the reported ones."""
    scene = falling_block()
    for trial in fallen.trials:
        problem = Problem(supple.scene.build_model(scene), "float64")
        problem.set_inertia(scene.dt, problem.model.rest)
        problem.positions = trial.positions
        problem.begin_step(scene.dt)
        assert problem.balance().residual == pytest.approx(trial.report.residual, rel=1e-6, abs=1e-9)
        assert problem.energy() == pytest.approx(trial.report.energy, rel=1e-9)


def test_newton_is_the_most_accurate_and_stops_at_rounding(fallen):
    newton = fallen["newton"].report
    assert all(newton.relative_residual <= trial.report.relative_residual for trial in fallen.trials)
    assert newton.outcome is supple.Outcome.FIXED_ITERATIONS
    assert newton.tolerance is None
    assert newton.relative_residual < 1e-12
    assert newton.iterations < 25


def test_trial_equals_a_step_of_simulate():
    scene = falling_block()
    *_, before, after = supple.simulate(scene, solver=supple.Newton(), frames=4, tolerance=1e-10)
    stepped = supple.compare(
        scene, ["newton"], initial=before.positions, velocities=before.velocities, frame=4, tolerance=1e-10
    )
    np.testing.assert_allclose(stepped["newton"].positions, after.positions, atol=1e-9)


def test_motions_are_evaluated_at_the_compared_frame():
    scene = falling_block()
    (body,) = scene.bodies
    tip = body.where(lambda X: X[:, 0] >= 1)
    scene.pin(tip, motion=supple.Translate((0.1, 0, 0), duration=0.2))
    for frame, offset in ((1, 0.01), (5, 0.05)):
        positions = supple.compare(scene, ["pbng"], max_iterations=1, frame=frame)["pbng"].positions
        np.testing.assert_allclose(positions[tip.vertices, 0], 1 + offset)


def test_unsupported_material_is_reported_with_the_reason():
    comparison = supple.compare(falling_block("StVK"), ["block_xpbd", "fpxpbd"], max_iterations=2)
    refused = comparison["block_xpbd"]
    assert (refused.report, refused.positions) == (None, None)
    assert "got StVK" in refused.error
    assert comparison["fpxpbd"].report.iterations == 2


@pytest.mark.parametrize("name", ["pbng", "xpbd"])
def test_limits_are_respected(name):
    scene = falling_block()
    assert supple.compare(scene, [name])[name].report.iterations == 40
    assert supple.compare(scene, [name], max_iterations=7)[name].report.iterations == 7
    own = SOLVERS[name](iterations=3)
    assert supple.compare(scene, [own])[name].report.iterations == 3
    timed = supple.compare(scene, [name], time_limit=0.01)[name].report
    assert timed.history.seconds[-11:][0] < 0.01 <= timed.seconds  # the clock is read every 10 iterations
    close = supple.compare(scene, ["pbng"], tolerance=1e-3)["pbng"].report
    assert close.outcome is supple.Outcome.CONVERGED
    assert close.relative_residual <= 1e-3


def test_times_exclude_measuring(monkeypatch):
    measure = Problem.energy

    def slow(self):
        time.sleep(0.05)
        return measure(self)

    supple.compare(falling_block(), ["pbng"], max_iterations=1)
    monkeypatch.setattr(Problem, "energy", slow)
    assert supple.compare(falling_block(), ["pbng"], max_iterations=10)["pbng"].report.seconds < 0.25


def test_newton_stays_in_float64():
    comparison = supple.compare(falling_block(), ["newton", "pbng"], precision="float32", max_iterations=3)
    assert [t.report.precision for t in comparison.trials] == ["float64", "float32"]


def test_labels_show_options_that_differ_from_defaults():
    assert solver_label(supple.PBNG()) == "pbng"
    assert solver_label(supple.PBNG(acceleration=supple.solvers.SOR(omega=1.5))) == "pbng sor omega=1.5"
    solvers = [supple.PBNG(), supple.PBNG(), supple.PBNG(acceleration="sor"), supple.BPXPBD(zeta=0.9)]
    comparison = supple.compare(falling_block(), solvers, max_iterations=1)
    assert [t.label for t in comparison.trials] == ["pbng", "pbng (2)", "pbng sor", "bpxpbd zeta=0.9"]
    assert comparison["bpxpbd"] is comparison.trials[3]
    with pytest.raises(KeyError, match="there are pbng, pbng \\(2\\)"):
        comparison["sor"]


def test_progress_counts_trials_and_callbacks_have_their_labels():
    done, seen = [], []
    supple.compare(
        falling_block(), ["pbng", "pbng"], max_iterations=1, callback=seen.append,
        progress=lambda *counts: done.append(counts),
    )  # fmt: skip
    assert done == [(0, 2), (1, 2), (2, 2)]
    assert [(info.solver, info.iteration) for info in seen] == [
        ("pbng", 0), ("pbng", 1), ("pbng (2)", 0), ("pbng (2)", 1)
    ]  # fmt: skip
    assert {info.frame for info in seen} == {None}


@pytest.mark.parametrize(
    ("solvers", "options", "sentence"),
    [
        (["pbgn"], {}, "did you mean 'pbng'?"),
        ([], {}, "at least one solver"),
        (["pbng"], {"precision": "float16"}, "'float32' or 'float64'"),
        (["newton"], {"precision": "float16"}, "'float32' or 'float64'"),
        (["pbng"], {"tolerance": 2}, "between 0 and 1"),
        (["pbng"], {"frame": 0}, "frame must be a whole number of at least 1"),
        (["pbng"], {"initial": np.zeros((3, 3))}, r"initial must have .* \(125, 3\)"),
        (["pbng"], {"velocities": np.full((125, 3), np.nan)}, "velocities has NaN or infinite .* 125"),
    ],
)
def test_bad_input_is_refused(solvers, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        supple.compare(falling_block(), solvers, **options)
