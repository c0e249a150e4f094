"""A custom material, term and solver: one class and one registration each make them available in scenes,
scene files and commands."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from problems import YOUNG, border, cantilever, edges_of, face, material, model_of, sheet
from typer.testing import CliRunner

import supple
from supple.algebra.isotropic_functions import Quadratic
from supple.algebra.matrix3 import contract, det, dot, scale
from supple.cli import app
from supple.config.stop_criteria import StopCriteria
from supple.kernels import load
from supple.materials import (
    MATERIALS,
    NeoHookean,
    bound_coefficients,
    psi,
    stress,
    stress_coefficients,
)
from supple.problem import Problem
from supple.solve.batch_solve import solve
from supple.solvers import SOLVERS
from supple.solvers.elementwise.element_run import ElementOptions
from supple.solvers.elementwise.gather import load_element, matvec_each, scatter_corners, shift_corners
from supple.solvers.elementwise.projection import Projection, project, projects
from supple.terms.base.constraint import Constraint, ConstraintRows, constraint
from supple.terms.base.elastic import ElasticRows, measure


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


def test_custom_material():
    """Twice the energy under twice the load has the same equilibrium."""
    single = supple.equilibrium(cantilever(material("neo_hookean")), tolerance=1e-8)
    double = supple.equilibrium(cantilever(Twofold(young=YOUNG, poisson=0.3), density=4.0), tolerance=1e-8)
    assert double.report.ok
    np.testing.assert_allclose(double.positions, single.positions, atol=1e-6)
    assert double.report.energy == pytest.approx(2 * single.report.energy, rel=1e-6)


@pytest.fixture
def registered():
    """Register this file's names for the duration of a test."""
    before = dict(MATERIALS), dict(SOLVERS)
    supple.materials.register_material("twofold", Twofold)
    supple.solvers.register_solver(Gradient)
    yield
    for table, was in zip((MATERIALS, SOLVERS), before, strict=True):
        table.clear()
        table.update(was)


FILE = """
gravity = [0, -1, 0]
[[solid]]
mesh = { block = { cells = [2, 2, 2] } }
material = { twofold = { young = 1e3, poisson = 0.3 } }
density = 2
[[pin]]
where = { side = "x-" }
[solver]
method = "gradient"
length = 0.02
[stop]
max_iterations = 3
"""


@pytest.mark.usefixtures("registered")
def test_files_and_commands_find_registered_names(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(FILE)
    file = supple.load_scene(path)
    assert file.scene.bodies[0].material == Twofold(young=1e3, poisson=0.3)
    result = supple.equilibrium(file, tolerance=None)
    assert (result.report.solver, result.report.iterations) == ("gradient", 3)
    assert "twofold" in supple.scene.scene_schema()["$defs"]["Material"]["properties"]
    assert {"gradient", "pbng"} <= supple.inspect(file)["memory_megabytes"].keys()
    listing = CliRunner().invoke(app, ["list", "--json"]).stdout
    assert "twofold" in listing
    assert "gradient" in listing
    run = CliRunner().invoke(
        app, ["run", str(path), "--output", str(tmp_path / "out"), "--no-picture", "--json"]
    )
    assert '"gradient"' in run.stdout, run.output
    path.write_text(FILE.replace("length = 0.02", "lenght = 0.02"))
    with pytest.raises(supple.SceneError, match=r"solver\.lenght: unknown key; .*length"):
        supple.load_scene(path)


def test_registered_names_must_be_unique_words():
    class Pbng(Gradient):
        name = "pbng"

    class Unnamed(Gradient):
        name = "two words"

    with pytest.raises(ValueError, match="the name 'pbng' belongs to the solver PBNG"):
        supple.solvers.register_solver(Pbng)
    with pytest.raises(ValueError, match="must be a plain word such as 'pbng', got 'two words'"):
        supple.solvers.register_solver(Unnamed)
    with pytest.raises(TypeError, match="a solver must be a subclass"):
        supple.solvers.register_solver(Gradient())
    with pytest.raises(ValueError, match="the name 'corotated' belongs to the material Corotated"):
        supple.materials.register_material("corotated", Twofold)


class TetherRows(ConstraintRows):
    """rest (rows, 1, lanes): the length L [m]."""

    __slots__ = ()
    corners: ClassVar[int] = 2


class Tethers(Constraint):
    """C = max(|x₁ - x₀| - L, 0): strings with tension only."""

    kind = TetherRows
    name: ClassVar[str] = "tethers"


@constraint.of(TetherRows)
def _constraint(rows, row, r):
    length = math.sqrt(dot(r[0], r[0]) + 1e-20)
    beyond = max(length - load(rows.rest, row, 0), 0.0 * length)
    return beyond, (scale(1.0 / length, r[0]),), 1.0 / length


@pytest.mark.parametrize("solver", ["pbng", "xpbd"])
def test_custom_term(solver):
    """A net of strings, pinned at its border at nine tenths of its size, hangs until they are taut."""
    points, triangles = sheet()
    pairs = edges_of(triangles)
    length = np.linalg.norm(np.diff(points[pairs], axis=1)[:, 0], axis=1, keepdims=True)
    strings = Tethers(pairs.astype(np.int32), np.full(len(pairs), 1e4), length, points)
    model = model_of(points, strings, pinned=border(points), stretch=0.9)
    result = supple.equilibrium(model, solver=solver, tolerance=None, max_iterations=2000)
    now = np.linalg.norm(np.diff(result.positions[pairs], axis=1)[:, 0], axis=1, keepdims=True)
    assert result.positions[:, 2].min() < -0.1
    assert (now / length).max() < 1.01


def test_custom_term_in_a_scene():
    """A block hangs by strings from a pinned one."""
    scene = supple.Scene(gravity=(0, -10, 0))
    top = scene.add_solid(supple.block(2, origin=(0, 2, 0)), material("corotated", young=1e4), density=1)
    hung = scene.add_solid(supple.block(2, origin=(0, 0.5, 0)), material("corotated", young=1e4), density=1)
    scene.pin(top)
    lower, upper = top.where(face(1, 2)), hung.where(face(1, 1.5))
    pairs = np.column_stack([lower.vertices, upper.vertices]).astype(np.int32)

    def strings(rest):
        return Tethers(pairs, np.full(len(pairs), 1e4), np.full((len(pairs), 1), 0.5), rest)

    with pytest.raises(supple.SceneError, match="Nothing holds 'solid1'"):
        supple.scene.build_model(scene)
    scene.add_term(strings)
    result = supple.equilibrium(scene, solver="pbng", tolerance=1e-6, position_tolerance=None)
    assert result.report.ok
    lengths = np.linalg.norm(np.diff(result.positions[pairs], axis=1)[:, 0], axis=1)
    np.testing.assert_allclose(lengths, 0.5, atol=1e-3)
    assert result.evaluate().terms[1].element_energy.sum() > 0
    scene.user_terms[:] = [lambda rest: Tethers(pairs + 27, np.ones(9), np.ones((9, 1)), rest)]
    with pytest.raises(supple.SceneError, match="tethers must lie between 0 and 53"):
        supple.scene.build_model(scene)
    with pytest.raises(supple.SceneError, match="needs a function of the rest positions"):
        scene.add_term(3)


class GradientProjection(Projection):
    """options: step length along the forces of each element."""

    __slots__ = ()


@project.of(GradientProjection)
def _descend(projection, row, u):
    elements, (length,) = projection.elements, projection.options
    x, W, g, V, material = load_element(elements, row, u)
    P = stress(material, measure(elements.rows, x, g))
    scatter_corners(elements, row, u, shift_corners(x, -length * V, W, matvec_each(P, g)))


@dataclass(frozen=True)
class Gradient(ElementOptions):
    """Every element moves its corners along the gradient of its energy."""

    name: ClassVar[str] = "gradient"

    length: float = 0.01


@projects(Gradient, ElasticRows)
def _elastic(method, term, elements):
    return [GradientProjection(elements, options=(method.length,))]


def test_custom_solver():
    problem = Problem(supple.scene.build_model(cantilever(material("corotated"), gravity=0)), "float64")
    problem.set_inertia(0.02, problem.model.rest)
    problem.positions = problem.model.rest * [1.1, 1, 1]
    before = problem.diagnostics.stored_energies().sum()
    report = solve(problem, Gradient(), StopCriteria(None, 300))
    assert report.solver == "gradient"
    assert problem.diagnostics.stored_energies().sum() < 0.1 * before


def test_unsupported_term_error_names_supporting_solvers():
    points, _ = sheet()
    strings = Tethers(np.array([[0, 1]], np.int32), np.ones(1), np.ones((1, 1)), points)
    with pytest.raises(
        ValueError, match=r"gradient does not support tethers; use pbng, mpbng, hybrid, newton, .*xpbd, .*pbd"
    ):
        supple.equilibrium(model_of(points, strings), solver=Gradient(), max_iterations=1)
