"""Barrier contacts between vertices, triangles and edges: derivatives, sums and limits."""

import numpy as np
import pytest

from supple.linear.assembly.hessian import Assembly
from supple.model.model import Model
from supple.problem import Problem
from supple.terms import Barriers

REACH = 0.5


def separated(x, crossing):
    from supple.terms.contact.barrier_hessian import closest

    return closest(x, crossing)[1]


def random_stencils(count, seed, crossing):
    """Corners of pairs closer than the barrier distance, with closest points in all places."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(40 * count, 4, 3))
    edges = np.full(len(x), crossing)
    d = separated(x, edges)
    return x[(d < 0.9 * REACH) & (d > 0.1 * REACH)][:count]


def nearly_parallel(count, seed, sine=0.01):
    rng = np.random.default_rng(seed)
    a, p = rng.normal(size=(2, count, 3))
    across = np.cross(p, rng.normal(size=(count, 3)))
    across /= np.linalg.norm(across, axis=1)[:, None]
    q = p + sine * rng.normal(size=(count, 3))
    c = a + 0.3 * REACH * across + 0.1 * p
    return np.stack([a, a + p, c, c + q], axis=1)


CASES = {
    "faces": (random_stencils(40, 0, False), False),
    "edges": (random_stencils(40, 1, True), True),
    "nearly parallel": (nearly_parallel(20, 2), True),
}
ALL = pytest.mark.parametrize("name", CASES)


def problem_of(x, crossing, precision="float64", stiffness=3.0):
    """Stencils without shared vertices, at rest at x."""
    m = len(x)
    points = x.reshape(-1, 3)
    vertices = np.arange(4 * m, dtype=np.int32).reshape(-1, 4)
    flags, k, h = np.full(m, crossing), np.full(m, stiffness), np.full(m, REACH)
    term = Barriers(vertices, flags, k, h, np.arange(m), points, m)
    n, none = len(points), np.empty((0, 3))
    no_vertices = np.empty(0, int)
    tets = np.empty((0, 4), np.int32)
    model = Model(points, np.ones(n), np.zeros((n, 3)), no_vertices, lambda t: none, (term,), tets)
    return Problem(model, precision), term


def forces_of(problem):
    problem.balance()
    return problem.states.net[:-1, :3].astype(float)


@ALL
def test_forces_equal_differences_of_the_energy(name):
    problem, _ = problem_of(*CASES[name])
    force = forces_of(problem)
    h = 1e-6
    for seed in range(4):
        d = np.random.default_rng(seed).normal(size=force.shape)
        energies = []
        for step in (h, -h):
            problem.u[:-1, :3] = step * d
            energies.append(problem.energy())
        slope = (energies[0] - energies[1]) / (2 * h)
        assert -np.sum(force * d) == pytest.approx(slope, rel=1e-5, abs=1e-6 * np.abs(force).sum())
        problem.u[:] = 0


@ALL
def test_hessian_equals_differences_of_the_forces(name):
    problem, term = problem_of(*CASES[name])
    blocks = term.hessian_blocks(problem.layout.elements[0], problem.u, "exact", 1)
    H = blocks.transpose(0, 1, 3, 2, 4).reshape(-1, 12, 12)
    h = 1e-6
    d = np.random.default_rng(3).normal(size=(len(H), 12))
    ends = []
    for step in (h, -h):
        problem.u[:-1, :3] = step * d.reshape(-1, 3)
        ends.append(forces_of(problem).reshape(-1, 12))
    change = -(ends[0] - ends[1]) / (2 * h)
    scale = np.abs(H).max(axis=(1, 2))[:, None]
    off = np.abs(np.einsum("eij,ej->ei", H, d) - change) / scale
    assert np.median(off) < 1e-7
    assert np.mean(off.max(axis=1) < 1e-4) > 0.9, "but where closest points change sides in between"


@ALL
def test_projected_and_bound_hessians_are_semidefinite(name):
    problem, term = problem_of(*CASES[name])
    for kind in ("projected", "bound"):
        blocks = term.hessian_blocks(problem.layout.elements[0], problem.u, kind, 1)
        H = blocks.transpose(0, 1, 3, 2, 4).reshape(-1, 12, 12)
        values = np.linalg.eigvalsh(H)
        assert (values[:, 0] > -1e-9 * values[:, -1]).all()


@ALL
def test_vertex_update_bounds_the_diagonal_block(name):
    """A of the kernel is at least the diagonal block of the Hessian, up to a small tolerance."""
    problem, term = problem_of(*CASES[name])
    exact = term.hessian_blocks(problem.layout.elements[0], problem.u, "exact", 1)
    problem.balance()
    trace = problem.diagnostics._sizes[:-1, 1].reshape(-1, 4)
    for k in range(4):
        top = np.linalg.eigvalsh(exact[:, k, k])[:, -1]
        assert (trace[:, k] >= 0.99 * top - 1e-9).all()


@ALL
def test_contact_forces_have_no_sum_and_no_moment(name):
    problem, term = problem_of(*CASES[name])
    force = forces_of(problem).reshape(-1, 4, 3)
    size = np.abs(force).max()
    assert np.abs(force.sum(axis=1)).max() < 1e-12 * size
    x = term.positions[term.vertices]
    assert np.abs(np.cross(x, force).sum(axis=1)).max() < 1e-9 * size
    np.testing.assert_allclose(term.forces(problem.positions).reshape(force.shape), force, atol=1e-9 * size)


def test_barrier_is_zero_and_smooth_at_its_distance():
    """b, b' and b'' vanish there."""
    x = np.array([[[0.2, 0, 0.2], [0, 0, 0], [1, 0, 0], [0, 0, 1.0]]])
    seen = []
    for d in (REACH * 1.001, REACH * 0.999, REACH * 0.99):
        x[0, 0, 1] = d
        problem, _ = problem_of(x, False)
        seen.append(
            (problem.energy(), abs(forces_of(problem)).max(), abs(Assembly(problem).hessian("exact")).max())
        )
    assert seen[0] == (0, 0, 0)
    for power, (little, more) in enumerate(zip(seen[1], seen[2], strict=True)):
        assert 0 < little < 1.1 * more * 0.1 ** (3 - power)


def test_energy_increases_monotonically_and_diverges_at_contact():
    x = np.array([[[0.2, 0, 0.2], [0, 0, 0], [1, 0, 0], [0, 0, 1.0]]])
    energies = []
    for d in (0.4, 0.1, 1e-2, 1e-4, 1e-8):
        x[0, 0, 1] = d
        energies.append(problem_of(x, False)[0].energy())
    assert np.all(np.diff(energies) > 0)


def test_parallel_edges_have_no_edge_contact():
    x = np.array([[[0.0, 0, 0], [1, 0, 0], [0, 0.1, 0], [1, 0.1, 0]]])
    problem, _ = problem_of(x, True)
    assert problem.energy() == 0
    assert np.abs(forces_of(problem)).max() == 0


def test_unused_lanes_contribute_nothing():
    """Three contacts in a pack of more lanes."""
    problem, _ = problem_of(CASES["edges"][0][:3], True)
    assert np.isfinite(problem.diagnostics._sizes).all()
    assert problem.balance().finite
    assert np.isfinite(problem.diagnostics._sizes).all()


@ALL
def test_single_precision_agrees(name):
    double, single = (
        forces_of(problem_of(*CASES[name], precision)[0]) for precision in ("float64", "float32")
    )
    each = np.linalg.norm(double - single, axis=1) / np.linalg.norm(double, axis=1).max()
    assert np.median(each) < 1e-6
    assert each.max() < 1e-2
