"""Solutions of Laplace problems against a dense solver."""

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array

import supple
from supple.problem import Cpu
from supple.solvers.newton_methods.laplace import Laplace


def graph(cells, constrained=True):
    """Laplacian of the edges of a block with weights of many magnitudes."""
    mesh = supple.block(cells)
    edges = np.concatenate([mesh.tets[:, [a, b]] for a in range(4) for b in range(a)])
    weight = 10 ** np.random.default_rng(0).uniform(-1, 1, len(edges))
    n = mesh.n_vertices
    i, j = edges.T
    A = csr_array((np.r_[weight, weight], (np.r_[i, j], np.r_[j, i])), shape=(n, n))
    held_at = (mesh.points[:, 0] == 0) * 100.0 if constrained else np.zeros(n)
    return csr_array(diags_array(A.sum(axis=1) + held_at) - A)


def laplace_of(L):
    return Laplace(L.copy(), Cpu(L.shape[0], np.dtype(float)))


def solved(laplace, B, accuracy, most=200):
    records = np.zeros((len(B), 4))
    records[:, :3] = B
    return laplace.solve(records, accuracy, most)[:, :3].copy()


@pytest.mark.parametrize("cells", [(2, 2, 2), (9, 9, 9), (60, 3, 3)])
def test_solutions(cells):
    L = graph(cells)
    B = np.random.default_rng(1).normal(size=(L.shape[0], 3))
    laplace, exact = laplace_of(L), np.linalg.solve(L.toarray(), B)
    Y = solved(laplace, B, 1e-11)
    np.testing.assert_allclose(Y, np.linalg.solve(laplace.L.toarray(), B), atol=1e-7)
    np.testing.assert_allclose(Y, exact, rtol=0, atol=1e-4 * np.abs(exact).max())


def test_iterations_hardly_grow_with_size():
    """At most three times as many for a hundred times the unknowns."""

    def iterations(cells):
        L = graph(cells)
        B = np.random.default_rng(1).normal(size=(L.shape[0], 3))
        laplace = laplace_of(L)
        enough = 1e-2 * np.linalg.norm(B)
        return next(k for k in range(1, 100) if np.linalg.norm(B - L @ solved(laplace, B, 0, k)) < enough)

    assert iterations((24, 24, 24)) <= 3 * iterations((5, 5, 5)) <= 40


def test_unconstrained_systems_and_zero_columns():
    """The null space of L is left out of the solution."""
    L = graph((4, 4, 4), constrained=False)
    B = np.random.default_rng(2).normal(size=(L.shape[0], 3))
    B -= B.mean(axis=0)
    B[:, 1] = 0
    Y = solved(laplace_of(L), B, 1e-9)
    assert not Y[:, 1].any()
    np.testing.assert_allclose(L @ Y, B, atol=1e-6)


def test_diagonal_systems_are_solved():
    """At any size."""
    L = csr_array(diags_array(np.arange(1.0, 2001)))
    B = np.ones((2000, 3))
    np.testing.assert_allclose(solved(laplace_of(L), B, 1e-12), B / np.arange(1.0, 2001)[:, None], rtol=1e-6)
