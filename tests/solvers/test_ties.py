"""Stiff ties between non-matching meshes: iterative methods agree with a direct one."""

import numpy as np
import pytest
from problems import FINITE, NON_MATCHING_TIES, hung, material, perturbed

import supple
from supple.linear import Assembly, Multilevel, pcg
from supple.problem import Problem
from supple.scene import build_model
from supple.solvers import PBNG, Hybrid, Newton

EACH_SCENE = pytest.mark.parametrize("name", NON_MATCHING_TIES)
DIRECT = Newton(hessian="exact", linear_solver="direct")


@EACH_SCENE
@pytest.mark.parametrize("stiffness", [1e2, 1e4, 1e6, 1e8])
@pytest.mark.parametrize("solver", [Hybrid(), Hybrid(max_predicted_sweeps=0)], ids=["default", "newton"])
def test_default_solver_agrees_with_a_factorization(name, stiffness, solver):
    scene = NON_MATCHING_TIES[name](stiffness)
    truth = supple.equilibrium(scene, solver=DIRECT, tolerance=1e-10)
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-8)
    assert result.report.ok
    np.testing.assert_allclose(result.positions, truth.positions, atol=1e-6)


@EACH_SCENE
def test_linear_iterations_do_not_grow_with_stiffness(name):
    counts = []
    for stiffness in (1e6, 1e8, 1e10):
        problem = Problem(build_model(NON_MATCHING_TIES[name](stiffness)), "float64")
        problem.begin_step(np.inf)
        assembly = Assembly(perturbed(problem, 1e-3))
        problem.balance()
        H, b = assembly.hessian("projected"), assembly.restrict(problem.states.net).astype(float)
        M = Multilevel(assembly).at(H, assembly.positions)
        solution = pcg(H, b, M, 1e-8)
        assert solution.negative is None
        counts.append(solution.iterations)
    assert max(counts) <= 60
    assert counts[-1] <= 1.5 * counts[0]


@pytest.mark.parametrize("name", ["hung", "chained"])
def test_sweep_counts_are_independent_of_tie_stiffness(name):
    """Those for k = 1e8 are within a factor of two of those for 1e4, and results agree."""
    counts = []
    for stiffness in (1e4, 1e8):
        scene = NON_MATCHING_TIES[name](stiffness)
        truth = supple.equilibrium(scene, solver=DIRECT, tolerance=1e-10)
        result = supple.equilibrium(
            scene, solver=PBNG(acceleration="none"), tolerance=1e-8, max_iterations=20000
        )
        assert result.report.ok
        np.testing.assert_allclose(result.positions, truth.positions, atol=1e-6)
        counts.append(result.report.iterations)
    assert counts[1] <= 2 * counts[0]


@EACH_SCENE
@pytest.mark.parametrize("stiffness", [1e2, 1e8])
def test_energy_never_rises(name, stiffness):
    """Each group's step minimizes an upper bound of the energy along its directions."""
    model = build_model(NON_MATCHING_TIES[name](stiffness))
    problem = Problem(model, "float64")
    problem.begin_step(np.inf)
    perturbed(problem, 0.05)
    check_descent(problem, 30)


@pytest.mark.parametrize("name", FINITE)
def test_energy_never_rises_with_any_material(name):
    problem = Problem(build_model(hung(1e6, kind=material(name))), "float64")
    problem.begin_step(np.inf)
    perturbed(problem, 0.02)
    check_descent(problem, 20)


def check_descent(problem, sweeps):
    """Check that the energy falls, and never rises from sweep to sweep."""
    run = PBNG(acceleration="none").begin(problem)
    energies = [problem.energy()]
    for _ in range(sweeps):
        run.advance(1)
        energies.append(problem.energy())
    assert np.all(np.diff(energies) <= 1e-12 * energies[0])
    assert energies[-1] < energies[0]


def test_float32_sweeps_converge():
    scene = hung(1e6)
    truth = supple.equilibrium(scene, solver=DIRECT, tolerance=1e-10)
    result = supple.equilibrium(scene, solver=PBNG(), tolerance=1e-3, precision="float32")
    assert result.report.ok
    np.testing.assert_allclose(result.positions, truth.positions, atol=1e-3)


def test_time_steps_equal_those_of_newton():
    """Groups have the inertia of their members."""
    scene = hung(1e8)
    scene.quasistatic, scene.dt = False, 0.05
    ends = [
        [frame.positions for frame in supple.simulate(scene, solver=solver, frames=3, tolerance=1e-9)]
        for solver in (PBNG(), DIRECT)
    ]
    np.testing.assert_allclose(ends[0][-1], ends[1][-1], atol=1e-6)
    assert np.abs(ends[0][-1] - build_model(scene).rest).max() > 1e-3


def test_ties_to_points_and_pinned_bodies():
    """Vertices tied to constants only are in no aggregate."""
    counts = []
    for stiffness in (1e3, 1e8):
        scene = supple.Scene(gravity=(0, -1, 0))
        body = scene.add_solid(supple.block((9, 2, 2), size=(3, 1, 1)), material("corotated"), density=5)
        scene.attach(body.where(lambda X: X[:, 0] < 0.1), stiffness=stiffness)
        result = supple.equilibrium(scene, solver=Hybrid(max_predicted_sweeps=0), tolerance=1e-8)
        truth = supple.equilibrium(scene, solver=DIRECT, tolerance=1e-10)
        assert result.report.ok
        np.testing.assert_allclose(result.positions, truth.positions, atol=1e-6)
        counts.append(int(result.report.notes[0].split("with ")[1].split()[0]))
    assert counts[1] <= 1.5 * counts[0]
