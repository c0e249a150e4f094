"""Conjugate gradients against a dense solve, and failures on other systems."""

import numpy as np
import pytest
from problems import cantilever, material
from scipy.sparse import bsr_matrix, eye

from supple.linear import linear_solvers
from supple.linear.assembly.hessian import Assembly
from supple.linear.block_jacobi_cg import BURST_ITERATIONS, conjugate_gradients
from supple.linear.linear_solvers import Automatic
from supple.linear.multilevel.preconditioner import as_matrix, as_records
from supple.problem import Problem
from supple.scene import build_model

LIMIT = 10_000


@pytest.fixture(scope="module")
def system():
    """Rest Hessian of a block that sticks out of a wall, and its weight."""
    problem = Problem(build_model(cantilever(material("corotated"), cells=5)), "float64")
    assembly = Assembly(problem)
    problem.balance()
    return assembly, assembly.hessian("projected"), assembly.restrict(problem.states.net)


@pytest.mark.parametrize("accuracy", np.logspace(-1, -10, 40))
def test_requested_accuracy_is_reached(system, accuracy):
    """The number of iterations may be a multiple of the burst length."""
    _, H, b = system
    x, reached = conjugate_gradients(H, b, accuracy, LIMIT, threads=2)
    assert reached
    assert np.linalg.norm(H @ x - b) <= 1.001 * accuracy * np.linalg.norm(b)


def test_more_than_one_burst_is_needed(system):
    _, H, b = system
    assert not conjugate_gradients(H, b, 1e-10, BURST_ITERATIONS, threads=1)[1]


def test_solution_is_independent_of_threads(system):
    _, H, b = system
    one, two = (conjugate_gradients(H, b, 1e-8, LIMIT, threads)[0] for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_indefinite_systems_are_detected(system):
    _, H, b = system
    shifted = bsr_matrix(H - 0.5 * H.diagonal().min() * eye(len(b)), blocksize=(3, 3))
    assert np.linalg.eigvalsh(shifted.toarray()).min() < 0
    assert not conjugate_gradients(shifted, b, 1e-8, LIMIT, threads=1)[1]


def test_automatic_choice_leaves_hard_systems_to_factorization(system, monkeypatch):
    assembly, H, b = system
    monkeypatch.setattr(linear_solvers, "FACTORIZATION_ITERATIONS", 5)
    automatic = Automatic(assembly)
    automatic.solve(as_matrix(H), as_records(b), 1e-1)
    assert automatic.name == "multilevel CG"
    x = automatic.solve(as_matrix(H), as_records(b), 1e-10)[:, :3].ravel()
    assert ", then " in automatic.name
    np.testing.assert_allclose(H @ x, b, atol=1e-9 * np.linalg.norm(b))
