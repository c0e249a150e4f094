"""Triangles, springs and other elements besides tetrahedra, in every solver that supports them."""

import numpy as np
import pytest
from lanewise import lanewise_problem
from problems import (
    BIAS_WEAVE,
    HAND_WRITTEN,
    THICKNESS,
    deformations,
    flat,
    hinged,
    hung_net,
    isometric,
    material,
    matrix,
    membrane,
    model_of,
    net,
    perturbed,
    plate,
    rotations,
)
from test_terms import check_forces, net_forces

import supple
from supple.config.stop_criteria import StopCriteria
from supple.linear.assembly.hessian import Assembly
from supple.materials import MEMBRANES, membrane_materials, psi, stress
from supple.model.model import Model
from supple.problem import Problem
from supple.solve.batch_solve import solve
from supple.solvers import SOLVERS
from supple.terms import TriangleElasticity

OBJECTIVE = [name for name in membrane_materials() if name in HAND_WRITTEN | MEMBRANES]


def free(model):
    nothing = np.empty((0, 3))
    n = model.vertices
    return Model(
        model.rest, model.mass, np.zeros((n, 3)), np.empty(0, int), lambda t: nothing, model.terms, model.tets
    )


MODELS = {
    "springs": net,
    "point springs": hung_net,
    **{name: lambda name=name: membrane(name) for name in OBJECTIVE},
    "weave on the bias": lambda: membrane(BIAS_WEAVE),
    "hinges": hinged,
    "isometric hinges": isometric,
    "plate": plate,
}
EACH_MODEL = pytest.mark.parametrize("name", MODELS)
ELEMENTS = pytest.mark.parametrize("make", [net, membrane, plate], ids=["springs", "membrane", "plate"])


@EACH_MODEL
def test_forces_are_the_derivative_of_the_energy(name):
    check_forces(Problem(MODELS[name](), "float64"), amount=0.03)


@EACH_MODEL
@pytest.mark.parametrize("kind", ["exact", "projected", "bound"])
def test_hessians_are_derivatives_of_forces(name, kind):
    """The exact one also for triangles out of their plane; the others are positive semi-definite."""
    problem = perturbed(Problem(free(MODELS[name]()), "float64"), 0.05)
    assembly = Assembly(problem)
    H = assembly.hessian(kind).toarray()
    np.testing.assert_allclose(H, H.T, atol=1e-8 * np.abs(H).max())
    if kind != "exact":
        assert np.linalg.eigvalsh(H)[0] > -1e-8 * np.abs(H).max()
        return
    direction, u = np.random.default_rng(2).normal(size=(problem.model.vertices, 3)), problem.u.copy()
    forces = []
    for h in (1e-6, -1e-6):
        problem.u[:-1, :3] = u[:-1, :3] + h * direction
        forces.append(net_forces(problem))
    slope = -(forces[0] - forces[1]) / 2e-6
    free_ones = assembly.free
    np.testing.assert_allclose(
        H @ direction[free_ones].ravel(), slope[free_ones].ravel(), atol=1e-6 * np.abs(slope).max()
    )


@pytest.mark.parametrize("name", [name for name in MODELS if name != "point springs"])
def test_rigid_motions_cost_no_energy(name):
    model = free(MODELS[name]())
    problem = Problem(model, "float64")
    Q = rotations(1)[0]
    problem.positions = model.rest @ Q.T + [1, -2, 3]
    perturbed_energy = perturbed(Problem(model, "float64"), 0.05).energy()
    assert abs(problem.energy()) < 1e-12 * perturbed_energy
    assert np.abs(net_forces(problem)).max() < 1e-9


def test_materials_for_small_rotations_are_refused():
    with pytest.raises(ValueError, match="LinearElastic is not rotation-invariant"):
        membrane("linear_elastic")


@pytest.mark.parametrize("name", OBJECTIVE)
def test_membrane_is_a_slice_of_the_solid(name):
    """In the plane, its energy per volume is ψ of the 3×3 gradient of constant thickness."""
    model = free(membrane(name))
    (term,) = model.terms
    problem = Problem(model, "float64")
    stretched = np.diag([1.3, 0.8, 1.0])
    problem.positions = model.rest @ stretched.T
    expected = term.volume.sum() * psi(term.material, flat(stretched))
    assert problem.energy() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", OBJECTIVE)
def test_force_of_a_triangle_is_the_stress_of_its_gradient(name):
    """-V P g exactly, though F depends on the corners through the normal as well."""
    points = rotations(1, seed=3)[0]
    term = TriangleElasticity.from_mesh(points, np.array([[0, 1, 2]]), material(name), THICKNESS)
    model = free(model_of(points, term))
    for D in deformations(4):
        problem = Problem(model, "float64")
        problem.positions = points @ D.T
        rest, now = (np.cross(x[1] - x[0], x[2] - x[0]) for x in (points, problem.positions))
        n0, n = rest / np.linalg.norm(rest), now / np.linalg.norm(now)
        F = np.einsum("ai,aj->ij", problem.positions, term.gradients[0]) + np.outer(n, n0)
        P = matrix(stress(term.material, flat(F)))
        expected = -term.volume[0] * term.gradients[0] @ P.T
        np.testing.assert_allclose(net_forces(problem), expected, atol=1e-9 * np.abs(expected).max())


@ELEMENTS
def test_equilibria_of_pbng_and_newton_agree(make):
    """The start is taut, since a slack sheet has no transverse stiffness and Newton no direction."""
    model, solvers = make(), ("pbng", "newton")
    taut = model.rest * [1.1, 1.1, 1]
    equilibria = [
        supple.equilibrium(model, solver=solver, tolerance=1e-8, initial=taut) for solver in solvers
    ]
    assert all(result.report.ok for result in equilibria)
    sag = equilibria[0].positions[:, 2].min()
    assert sag < -1e-3
    np.testing.assert_allclose(equilibria[0].positions, equilibria[1].positions, atol=1e-5 * abs(sag))


def test_newton_survives_a_collapsed_membrane():
    model = membrane()
    report = supple.equilibrium(
        model, solver="newton", initial=model.rest * [1, 0, 1], max_iterations=3
    ).report
    assert report.iterations > 0


def stepped(model, solver, sweeps=400, dt=0.02):
    """Positions after one backward Euler step from rest with some velocity."""
    problem = Problem(model, "float64")
    v = 0.5 * np.sin(3 * model.rest[:, [1, 0, 1]] + [0, 1, 2])
    problem.set_inertia(dt, model.rest + dt * v)
    problem.positions = model.rest + dt * v
    problem.begin_step(0.0)
    solve(problem, solver, StopCriteria(1e-10, sweeps))
    return problem.positions


ERRORS = {"pbng": 1e-6, "bpxpbd": 1e-3, "fpxpbd": 1e-3, "gpbd": 0.1, "xpbd": 0.2, "block_xpbd": 0.2}
"""Maximum distance from Newton's step relative to its displacement; XPBD neglects the rotation of
gradients."""


@ELEMENTS
@pytest.mark.parametrize("name", ERRORS)
def test_every_method_finds_newtons_step(name, make):
    model, solver = make(), SOLVERS[name]()
    if name == "fpxpbd" and make in (net, hung_net, plate):
        refusal = r"fpxpbd does not support (springs|hinges); use pbng, mpbng, hybrid, newton, .*gpbd"
        with pytest.raises(ValueError, match=refusal):
            stepped(model, solver, 1)
        return
    truth = stepped(model, SOLVERS["newton"](), 50)
    moved = np.abs(truth - model.rest).max()
    assert np.abs(stepped(model, solver) - truth).max() < ERRORS[name] * moved


@ELEMENTS
def test_pbd_restores_elements_to_rest(make):
    model = make(stretch=1.0, gravity=(0, 0, 0))
    problem = perturbed(Problem(model, "float64"), 0.02)
    problem.set_inertia(0.01, problem.positions)
    before = problem.diagnostics.stored_energies().sum()
    solve(problem, supple.PBD(), StopCriteria(None, 100))
    assert problem.diagnostics.stored_energies().sum() < 1e-3 * before


@ELEMENTS
@pytest.mark.parametrize("name", ["pbng", "xpbd", "gpbd"])
def test_lanewise_device_equals_packs(name, make):
    """Lane by lane, as in a CUDA thread."""
    model = make()
    solver = supple.PBNG(acceleration="none") if name == "pbng" else SOLVERS[name]()
    results = []
    for problem in (Problem(model, "float32"), lanewise_problem(model, "float32")):
        problem.set_inertia(0.02, model.rest)
        problem.positions = model.rest
        problem.begin_step(0.0)
        solver.begin(problem).advance(5)
        results.append(problem.positions)
    np.testing.assert_allclose(results[0], results[1], atol=5e-6)
