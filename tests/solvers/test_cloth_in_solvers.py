"""Cloth in every solver, both precisions, alone and in batches."""

import numpy as np
import pytest
from problems import PRECISIONS, membrane, plate

import supple
from supple.config.stop_criteria import StopCriteria
from supple.problem import Problem
from supple.solve.batch_solve import solve
from supple.solvers import SOLVERS

ERRORS = {
    "pbng": 1e-6,
    "mpbng": 1e-6,
    "hybrid": 1e-6,
    "newton": 1e-6,
    "bpxpbd": 1e-3,
    "fpxpbd": 1e-3,
    "gpbd": 0.1,
    "xpbd": 0.2,
    "block_xpbd": 0.2,
    "pbd": 2.0,
}
"""Maximum distance from Newton's step relative to its displacement; XPBD neglects the rotation of gradients,
and PBD ignores stiffness."""

SOLVER_PRECISIONS = [(name, p) for name, kind in SOLVERS.items() for p in PRECISIONS if p in kind.precisions]


def stepped(model, solver, precision, sweeps=400, dt=0.02):
    """Positions after one backward Euler step from rest with some velocity."""
    problem = Problem(model, precision)
    v = 0.5 * np.sin(3 * model.rest[:, [1, 0, 1]] + [0, 1, 2])
    problem.set_inertia(dt, model.rest + dt * v)
    problem.positions = model.rest + dt * v
    problem.begin_step(0.0)
    solve(problem, solver, StopCriteria(1e-10 if precision == "float64" else 1e-6, sweeps))
    return problem.positions


def test_every_solver_has_an_error_bound():
    assert ERRORS.keys() == SOLVERS.keys()


@pytest.mark.parametrize(("name", "precision"), SOLVER_PRECISIONS)
def test_every_solver_approximates_newtons_step_of_cloth(name, precision):
    """Membranes with hinges, or membranes alone for methods without hinges."""
    model = membrane() if name == "fpxpbd" else plate()
    truth = stepped(model, SOLVERS["newton"](), "float64", 50)
    moved = np.abs(truth - model.rest).max()
    off = np.abs(stepped(model, SOLVERS[name](), precision) - truth).max()
    assert off < max(ERRORS[name], 1e-4 if precision == "float32" else 0) * moved


def drum(gravity=(0, 0, -10.0)):
    scene = supple.Scene(gravity=gravity)
    cloth = scene.add_cloth(
        supple.sheet(4), supple.Corotated(young=1e5, poisson=0.3), supple.HingeBending(0.05), density=0.2
    )
    edge = cloth.where(lambda X: (X[:, :2] == 0).any(axis=1) | (X[:, :2] == 1).any(axis=1))
    scene.pin(edge, motion=supple.Scale((1.1, 1.1, 1), center=(0.5, 0.5, 0)))
    return scene


@pytest.mark.parametrize(("name", "precision"), SOLVER_PRECISIONS)
def test_variations_equal_separate_scenes(name, precision):
    """Every solver, after a fixed number of iterations."""
    if name == "fpxpbd":
        pytest.skip("hinges are refused, as test_elements says")
    options = {"precision": precision, "max_iterations": 30, "position_tolerance": None}
    pulls = [(0, 0, -10.0), (3.0, 0, -5.0)]
    results = supple.equilibria(drum(), [supple.Variation(gravity=g) for g in pulls], solver=name, **options)
    for g, result in zip(pulls, results, strict=True):
        reference = supple.equilibrium(drum(g), solver=name, **options)
        np.testing.assert_allclose(result.positions, reference.positions, atol=1e-6)
        assert result.report.iterations == reference.report.iterations
        assert result.report.outcome is reference.report.outcome
