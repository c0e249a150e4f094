"""Quasistatics as the end of a damped motion, and reports of motions that have not ended."""

import family
import numpy as np
import pytest

import supple
from supple import FPXPBD, PBNG, XPBD
from supple.problem import Problem
from supple.solve.report import Outcome
from supple.solvers.elementwise.pseudo_time import SNAPSHOT_INTERVAL, SNAPSHOTS


def bar():
    mesh = supple.block((8, 2, 2), (2, 0.5, 0.5))
    return family.clamped(mesh, supple.Corotated(young=1e5, poisson=0.3), density=20, quasistatic=True)


def sag(model, x):
    tip = np.abs(model.rest[:, 0] - 2) < 1e-9
    return -float(np.mean((x - model.rest)[tip, 1]))


def run_to_rest(solver, most=40):
    """(sag [m], steps)."""
    problem = Problem(supple.scene.build_model(bar()), "float64")
    problem.begin_step(np.inf)
    run = solver.begin(problem)
    for hundreds in range(1, most):
        run.advance(100 * solver.sweeps_per_step)
        if run.rest.at_rest():
            return sag(problem.model, problem.positions), 100 * hundreds
    raise AssertionError("does not come to rest")


@pytest.fixture(scope="module")
def truth():
    result = supple.equilibrium(bar(), solver=PBNG(), tolerance=1e-8)
    return sag(result.model, result.positions)


def test_more_sweeps_per_step_are_closer_to_the_equilibrium(truth):
    """PBNG Fig. 18 at rest; an interrupted pseudo-time shows the opposite order."""
    errors = [abs(run_to_rest(XPBD(sweeps_per_step=k))[0] - truth) / truth for k in (1, 5, 20)]
    assert errors[0] > 2 * errors[1] > 2 * errors[2]
    assert errors[2] < 0.2


@pytest.mark.parametrize("solver", [XPBD, FPXPBD], ids=lambda s: s.name)
def test_dynamics_and_flow_have_the_same_rest(solver):
    flow, _ = run_to_rest(solver(sweeps_per_step=5))
    dynamics, _ = run_to_rest(solver(sweeps_per_step=5, pseudo_time="dynamics", pseudo_damping=0.05))
    assert dynamics == pytest.approx(flow, rel=0.02)


def test_first_piola_dynamics_rest_in_equilibrium(truth):
    solver = FPXPBD(sweeps_per_step=5, pseudo_time="dynamics", pseudo_damping=0.05)
    assert run_to_rest(solver)[0] == pytest.approx(truth, rel=0.01)


def test_dynamics_keep_the_velocity_of_a_free_body():
    """Without forces and pins all steps have the same displacement."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(2), supple.Corotated(young=1e3, poisson=0.3), density=10)
    scene.add_force(body.where([0]), (0, 0, 1e-3))
    problem = Problem(supple.scene.build_model(scene, False), "float64")
    problem.begin_step(np.inf)
    run = XPBD(sweeps_per_step=1, pseudo_time="dynamics").begin(problem)
    run.advance(1)
    displacement = problem.positions - problem.model.rest
    center = problem.model.mass @ displacement
    for step in range(2, 5):
        run.advance(1)
        moved = problem.model.mass @ (problem.positions - problem.model.rest)
        np.testing.assert_allclose(moved, center * step * (step + 1) / 2, atol=1e-8 * np.linalg.norm(center))


def test_unfinished_pseudo_time_is_reported():
    few = supple.equilibrium(bar(), solver=XPBD(), tolerance=None, max_iterations=300)
    assert any("pseudo-time has not come to rest: in the last 29 of 29 steps" in n for n in few.report.notes)
    many = supple.equilibrium(bar(), solver=XPBD(), tolerance=None, max_iterations=20_000)
    assert any(n.startswith("pseudo-time has come to rest") for n in many.report.notes)


def test_stagnation_is_reported_only_at_rest():
    """XPBD rests near the equilibrium, and only there more iterations do not help."""
    result = supple.equilibrium(bar(), solver=XPBD(sweeps_per_step=2), tolerance=1e-8, max_iterations=None)
    assert result.report.outcome in (Outcome.STAGNATED, Outcome.MAX_ITERATIONS)
    if result.report.outcome is Outcome.STAGNATED:
        assert any(n.startswith("pseudo-time has come to rest") for n in result.report.notes)
        assert result.report.iterations >= 2 * SNAPSHOT_INTERVAL * SNAPSHOTS


def test_damping_of_pseudo_time_needs_dynamics():
    from supple.api.solver_syntax import parse_solver

    with pytest.raises(ValueError, match="pseudo_damping has no effect with pseudo_time"):
        parse_solver("xpbd:pseudo_damping=0.1")
    assert parse_solver("xpbd:pseudo_time=dynamics:pseudo_damping=0.1").pseudo_damping == 0.1
