"""Stencils that are updated during a solve."""

from dataclasses import replace

import numpy as np
import pytest
from problems import PRECISIONS, cantilever, material

import supple
from supple.model.dynamic_term import DynamicTerm
from supple.problem import Problem
from supple.scene import build_model
from supple.solve.batch_solve import StopCriteria, make_problem, solve
from supple.solve.time_loop import TimeLoop
from supple.solve.time_step_options import StepSchedule
from supple.solvers import SOLVERS
from supple.terms import Springs

WITHIN_A_STEP = ["pbng", "newton", "hybrid"]
"""Methods that update stencils within a step; element-wise methods update them between steps."""


class Ropes(DynamicTerm):
    """Springs from a pinned vertex to all vertices farther from it than `slack` times their rest distance."""

    def __init__(self, every, slack=1.01, stiffness=40.0):
        self.every, self.slack, self.stiffness = every, slack, stiffness
        self.times = []

    def springs(self, x, rest):
        top = int(np.argmax(rest[:, 1] - rest[:, 0]))
        longest = self.slack * np.linalg.norm(rest - rest[top], axis=1)
        taut = np.flatnonzero(np.linalg.norm(x - x[top], axis=1) > longest)
        pairs = np.column_stack([np.full_like(taut, top), taut]).astype(np.int32)
        return Springs(pairs, np.full(len(taut), self.stiffness), longest[taut, None], rest)

    def update(self, problem, time):
        self.times.append(time)
        return self.springs(problem.positions, problem.model.rest)


def followed(model, dynamic_term):
    none = Springs(np.empty((0, 2), np.int32), np.empty(0), np.empty((0, 1)), model.rest, capacity=64)
    return replace(model, terms=(*model.terms, none), dynamic_terms=((len(model.terms), dynamic_term),))


def sagging():
    return build_model(cantilever(material("corotated"), cells=3))


@pytest.mark.parametrize("name", WITHIN_A_STEP)
@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_solve_ends_with_the_stencils_of_its_result(name, every, precision):
    """The result is an equilibrium of a model with these stencils from the beginning."""
    if precision not in SOLVERS[name].precisions:
        pytest.skip(f"{name} does not compute in {precision}")
    model, dynamic_term = sagging(), Ropes(every)
    tolerance = 1e-6 if precision == "float64" else 2e-4
    options = {
        "tolerance": tolerance,
        "position_tolerance": None,
        "max_iterations": 3000,
        "precision": precision,
    }
    result = supple.equilibrium(followed(model, dynamic_term), solver=name, **options)
    assert result.report.ok, result.report
    springs = dynamic_term.springs(result.positions, model.rest)
    assert 0 < len(springs.vertices) < model.vertices - 1
    still = replace(model, terms=(*model.terms, springs))
    problem = Problem(still, "float64")
    problem.begin_step(np.inf)
    problem.positions = result.positions
    assert problem.balance().relative_residual <= 1.5 * tolerance
    assert len(dynamic_term.times) > 2


def test_stencils_without_interval_stay_fixed():
    model, dynamic_term = sagging(), Ropes(None)
    result = supple.equilibrium(followed(model, dynamic_term), tolerance=1e-6)
    assert result.report.ok
    assert dynamic_term.times == [np.inf]
    reference = supple.equilibrium(model, tolerance=1e-6)
    np.testing.assert_allclose(result.positions, reference.positions, atol=1e-9)


def test_convergence_needs_stencils_of_the_present_positions():
    """At an equilibrium without springs, all forces balance until the first update."""
    model = sagging()
    reference = supple.equilibrium(model, tolerance=1e-8)
    dynamic_term = Ropes(1000)
    report = supple.equilibrium(
        followed(model, dynamic_term), initial=reference.positions, tolerance=1e-6
    ).report
    assert report.ok
    assert report.iterations > 0


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "fpxpbd"])  # which has no springs
@pytest.mark.parametrize("every", [None, 3])
def test_motions_update_stencils_in_every_step(name, every):
    """The motion does not depend on a callback that reads the residual."""
    model, schedule = sagging(), StepSchedule(0.04, 2, 0.0, False)
    iterations = []
    for watched in (False, True):
        dynamic_term = Ropes(every if name in WITHIN_A_STEP else None, slack=1.001)
        problem = make_problem(followed(model, dynamic_term), False, supple.Backend())
        watch = (lambda *_: None) if watched else None
        stepping = TimeLoop(
            problem, SOLVERS[name](), StopCriteria(max_iterations=6), schedule, callback=watch
        )
        for _ in range(4):
            stepping.advance()
        iterations.append(problem.positions)
        steps = sorted(set(dynamic_term.times))
        np.testing.assert_allclose(steps, 0.02 * np.arange(1, 9))
        assert len(dynamic_term.springs(problem.positions, model.rest).vertices) > 0
    np.testing.assert_allclose(*iterations, atol=1e-12)


def test_stagnation_check_restarts_with_new_stencils():
    """Springs that appear and disappear forever end at the iteration limit, not as stagnation."""

    class Fickle(Ropes):
        def update(self, problem, time):
            self.slack = 1.0 + 0.01 * (len(self.times) % 2)
            return super().update(problem, time)

    model = followed(sagging(), Fickle(5))
    problem = make_problem(model, True, supple.Backend())
    problem.begin_step(np.inf)
    report = solve(problem, supple.PBNG(), StopCriteria(1e-12, 700))
    assert report.outcome is supple.Outcome.MAX_ITERATIONS
    assert report.iterations == 700


def test_dynamic_stencils_refuse_batches():
    model = followed(sagging(), Ropes(None))
    problem = Problem(model, "float64")
    problem.device.batch_size = 2
    with pytest.raises(ValueError, match="cannot be solved as a batch"):
        problem.begin_step(np.inf)
