"""A material, a term and a solver from outside the package: one class each, and nothing else to change."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from problems import YOUNG, border, cantilever, edges_of, material, model_of, sheet

import supple
from supple.algebra.isotropic import Quadratic
from supple.algebra.matrix3 import contract, det, dot, scale
from supple.kernels import load
from supple.materials import NeoHookean, bound_coefficients, psi, stress, stress_coefficients
from supple.problem import Problem
from supple.solvers.corners import element, put_corners, shifted, spread
from supple.solvers.elementwise import ElementOptions
from supple.solvers.projection import Projection, project, projects
from supple.solving import solve
from supple.stop import Stop
from supple.terms.constraint import Constraint, ConstraintRows, constraint
from supple.terms.elastic import ElasticRows, measure


class Twofold(NeoHookean):
    """Two neo-Hookean bodies in one place: 2 ψ."""

    __slots__ = ()


@psi.of(Twofold)
def _psi(material, F):
    volume = det(F) - 1.0
    shear = contract(F, F) - 3.0
    return material.mu * (shear - 2.0 * volume) + (material.lam + material.mu) * volume * volume


@stress_coefficients.of(Twofold)
def _stress_coefficients(material, F):
    return Quadratic(2.0 * material.mu, 2.0 * ((material.lam + material.mu) * (det(F) - 1.0) - material.mu))


@bound_coefficients.of(Twofold)
def _bound_coefficients(material, F):
    return 2.0 * material.mu, 2.0 * (material.lam + material.mu)


def test_a_material_of_ones_own():
    """Twice the energy under twice the load hangs the same way."""
    single = supple.equilibrium(cantilever(material("neo_hookean")), tolerance=1e-8)
    double = supple.equilibrium(cantilever(Twofold(young=YOUNG, poisson=0.3), density=4.0), tolerance=1e-8)
    assert double.report.ok
    np.testing.assert_allclose(double.positions, single.positions, atol=1e-6)
    assert double.report.energy == pytest.approx(2 * single.report.energy, rel=1e-6)


class TetherRows(ConstraintRows):
    """rest (rows, 1, lanes): the length L [m]."""

    __slots__ = ()
    corners: ClassVar[int] = 2


class Tethers(Constraint):
    """C = max(|x₁ - x₀| - L, 0): strings, which can be pulled but not pushed."""

    kind = TetherRows
    name: ClassVar[str] = "tethers"


@constraint.of(TetherRows)
def _constraint(rows, row, r):
    length = math.sqrt(dot(r[0], r[0]) + 1e-20)
    beyond = max(length - load(rows.rest, row, 0), 0.0 * length)
    return beyond, (scale(1.0 / length, r[0]),), 1.0 / length


@pytest.mark.parametrize("solver", ["pbng", "xpbd"])
def test_a_term_of_ones_own(solver):
    """A net of strings, held at its border at nine tenths of its size, hangs until they are taut."""
    points, triangles = sheet()
    pairs = edges_of(triangles)
    length = np.linalg.norm(np.diff(points[pairs], axis=1)[:, 0], axis=1, keepdims=True)
    strings = Tethers(pairs.astype(np.int32), np.full(len(pairs), 1e4), length, points)
    model = model_of(points, strings, pinned=border(points), stretch=0.9)
    result = supple.equilibrium(model, solver, tolerance=None, max_iterations=2000)
    now = np.linalg.norm(np.diff(result.positions[pairs], axis=1)[:, 0], axis=1, keepdims=True)
    assert result.positions[:, 2].min() < -0.1
    assert (now / length).max() < 1.01


class GradientProjection(Projection):
    """options: how far along the forces of each element."""

    __slots__ = ()


@project.of(GradientProjection)
def _descend(projection, row, u):
    places, (length,) = projection.places, projection.options
    x, W, g, V, material = element(places, row, u)
    P = stress(material, measure(places.rows, x, g))
    put_corners(places, row, u, shifted(x, -length * V, W, spread(P, g)))


@dataclass(frozen=True)
class Gradient(ElementOptions):
    """Every element moves its corners down the gradient of its energy."""

    name: ClassVar[str] = "gradient"

    length: float = 0.01


@projects(Gradient, ElasticRows)
def _elastic(method, term, places):
    return [GradientProjection(places, options=(method.length,))]


def test_a_solver_of_ones_own():
    problem = Problem(supple.build_model(cantilever(material("corotated"), gravity=0)), "float64")
    problem.set_inertia(0.02, problem.model.rest)
    problem.positions = problem.model.rest * [1.1, 1, 1]
    before = problem.measures.stored_energies().sum()
    report = solve(problem, Gradient(), Stop(None, 300))
    assert report.solver == "gradient"
    assert problem.measures.stored_energies().sum() < 0.1 * before


def test_what_a_solver_cannot_treat_is_said_with_who_can():
    points, _ = sheet()
    strings = Tethers(np.array([[0, 1]], np.int32), np.ones(1), np.ones((1, 1)), points)
    with pytest.raises(
        ValueError, match=r"gradient cannot treat tethers: .* pbng, descent, newton, .*xpbd, .*pbd can"
    ):
        supple.equilibrium(model_of(points, strings), Gradient(), max_iterations=1)
