"""Limits extend the default tolerance in every call, and `ok` states whether a shape is usable."""

from __future__ import annotations

import numpy as np
import pytest

import supple
from supple.config.stop_criteria import DEFAULT_TOLERANCE
from supple.runs.result_text import outcome
from supple.solve.report import FAR_RELATIVE_RESIDUAL, Outcome, Report

FILE = """
quasistatic = {quasistatic}
dt = 0.02
frames = 2

[[solid]]
mesh = {{ block = {{ cells = [2, 2, 2] }} }}
material = {{ corotated = {{ young = 1e4, poisson = 0.3 }} }}
density = 100

[[pin]]
where = {{ side = "x-" }}

[solver]
method = "pbng"
{solver}
[stop]
{stop}
"""


def loaded(tmp_path, stop="", quasistatic="true", solver=""):
    path = tmp_path / "bar.toml"
    path.write_text(FILE.format(stop=stop, quasistatic=quasistatic, solver=solver))
    return supple.load_scene(path)


SINGLE_VARIATION = [supple.Variation()]
CALLS = {
    "equilibrium": lambda scene, **limits: supple.equilibrium(scene, **limits).report,
    "equilibria": lambda scene, **limits: next(supple.equilibria(scene, SINGLE_VARIATION, **limits)).report,
    "simulate": lambda scene, **limits: next(supple.simulate(scene, **limits)).report,
    "Stepper": lambda scene, **limits: supple.Stepper(scene, **limits).step().report,
}  # fmt: skip


@pytest.mark.parametrize("limit", [{"max_iterations": 3}, {"time_limit": 60.0}], ids=["count", "time"])
@pytest.mark.parametrize("call", CALLS)
def test_limit_keeps_the_default_tolerance_of_scenes_and_files(call, limit, tmp_path):
    file = loaded(tmp_path)
    for scene in (file, file.scene):
        report = CALLS[call](scene, **limit)
        assert report.tolerance == DEFAULT_TOLERANCE
        expected = Outcome.MAX_ITERATIONS if "max_iterations" in limit else Outcome.CONVERGED
        assert (report.outcome, report.ok) == (expected, expected is Outcome.CONVERGED)


@pytest.mark.parametrize("call", CALLS)
def test_limit_of_a_file_keeps_the_tolerance_unless_disabled(call, tmp_path):
    assert CALLS[call](loaded(tmp_path, "max_iterations = 3")).tolerance == DEFAULT_TOLERANCE
    off = loaded(tmp_path, "max_iterations = 3\ntolerance = false")
    report = CALLS[call](off)
    assert (report.tolerance, report.outcome, report.iterations) == (None, Outcome.FIXED_ITERATIONS, 3)
    assert CALLS[call](off, tolerance=1e-2).tolerance == 1e-2
    assert CALLS[call](loaded(tmp_path), max_iterations=3, tolerance=None).outcome is Outcome.FIXED_ITERATIONS


def test_disabled_tolerance_needs_another_limit(tmp_path):
    with pytest.raises(ValueError, match="no termination criterion"):
        supple.equilibrium(loaded(tmp_path, "tolerance = false"))


def test_solver_iterations_are_a_fixed_number_per_step(tmp_path):
    file = loaded(tmp_path, quasistatic="false", solver="iterations = 4")
    report = next(supple.simulate(file)).report
    assert (report.tolerance, report.iterations, report.outcome) == (None, 4, Outcome.FIXED_ITERATIONS)
    assert next(supple.simulate(file, time_limit=60.0)).report.tolerance == DEFAULT_TOLERANCE


def test_fixed_iterations_with_a_large_residual_are_not_ok(tmp_path):
    scene = loaded(tmp_path).scene
    result = supple.equilibrium(scene, solver="pbng", max_iterations=1, tolerance=None).report
    near = supple.equilibrium(scene, solver="pbng", max_iterations=200, tolerance=None).report
    assert result.relative_residual > FAR_RELATIVE_RESIDUAL > near.relative_residual
    assert (result.outcome, result.ok, near.outcome, near.ok) == (
        Outcome.FIXED_ITERATIONS,
        False,
        Outcome.FIXED_ITERATIONS,
        True,
    )
    assert str(result).startswith("Completed the requested iterations, far from balance;")


def test_time_limit_covers_all_steps_together(tmp_path):
    scene = loaded(tmp_path).scene
    options = {"solver": "pbng", "tolerance": 1e-15, "position_tolerance": None, "max_iterations": 10**9}
    supple.equilibrium(scene, load_steps=2, **options | {"max_iterations": 1})  # compiles
    report = supple.equilibrium(
        scene, solver=supple.XPBD(), load_steps=3, time_limit=0.3, tolerance=None
    ).report
    assert 0.1 < report.seconds < 0.45


def report_with(**figures):
    values = {"outcome": Outcome.CONVERGED, "solver": "pbng", "iterations": 5, "relative_residual": 1e-5}
    rest = dict.fromkeys(("reduction", "residual", "energy", "seconds"), 0.0)
    return Report(**values | rest | figures)


def test_inverted_elements_are_in_the_outcome_line_and_not_ok():
    report = report_with(inverted=15)
    assert not report.ok
    assert report.short_outcome == "converged, 15 inverted elements"
    assert str(report).splitlines()[0] == (
        "Converged, 15 inverted elements: the relative residual is below the tolerance."
    )
    assert not report.to_dict()["ok"]
    assert report_with(inverted=15, inverted_before=20).ok
    frames = [report_with(inverted=n).to_dict() for n in (0, 3, 15)]
    assert outcome(frames).splitlines() == [
        "2 frames: Converged, up to 15 inverted elements: the relative residual is below the tolerance.",
        "1 frame: Converged: the relative residual is below the tolerance.",
    ]


def test_motion_may_keep_initially_inverted_elements_only():
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=1e-6, frames=1)
    body = scene.add_solid(supple.block(1), supple.Corotated(young=1e3, poisson=0.3), density=1e3)
    turned = body.mesh.points.copy()
    turned[np.argmax(turned.sum(axis=1))] = (-1.0, -1.0, -1.0)
    options = {"solver": supple.PBNG(iterations=2)}
    begun = next(supple.simulate(scene, initial=turned, **options))
    assert begun.report.inverted > 0
    assert begun.report.inverted_before == begun.report.inverted
    assert "inverted" in begun.report.short_outcome
    later = next(supple.simulate(scene, initial=begun.state, **options)).report
    assert (later.inverted > 0, later.ok) == (True, False)


def test_motion_with_a_large_residual_reports_its_lag(tmp_path):
    scene = loaded(tmp_path, quasistatic="false").scene
    scene.dt = 1.0
    one, guessed, many = (
        next(supple.simulate(scene, solver=supple.PBNG(iterations=n), initial_guess=guess)).report
        for n, guess in ((1, "coast"), (1, "inertial"), (200, "coast"))
    )
    assert one.is_far_from_balance
    assert (
        f"far from balance (relative residual {one.relative_residual:.2g}): bodies move slower"
        in one.notes[-1]
    )
    assert "use more iterations, initial_guess='inertial' or a tolerance" in one.notes[-1]
    assert "use more iterations or a tolerance" in guessed.notes[-1]
    assert many.ok
    assert not any("slower" in note for note in many.notes)
    stepped = supple.Stepper(scene, solver=supple.XPBD(iterations=1)).step().report
    assert stepped.is_far_from_balance
    assert "use more iterations or a tolerance" in stepped.notes[-1]
