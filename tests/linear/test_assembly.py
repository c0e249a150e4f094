"""The assembled Hessian against differences of forces, and its projection against NumPy element by
element."""

import numpy as np
import pytest
from problems import (
    HAND_WRITTEN,
    cantilever,
    deformations,
    material,
    perturbed,
    rotations,
    stretches,
    tied_blocks,
    twisted,
)

import supple
from supple.linear import Assembly
from supple.linear.assembly.hessian import along_curve
from supple.linear.assembly.sparsity import make_pattern
from supple.materials import stress_differential
from supple.problem import Problem
from supple.scene import build_model
from supple.terms import TetElasticity

EACH_MATERIAL = pytest.mark.parametrize("name", HAND_WRITTEN)

UNIT = np.vstack([np.zeros(3), np.eye(3)])


def deformed(name):
    """Deformation gradients: random, inverted, with equal stretches, nearly flat, and rigid."""
    plain = [deformations(8), rotations(2), stretches((1.2, 1.2, 0.7), 4), stretches((1, 1, 1.3), 4)]
    if HAND_WRITTEN[name].barrier:
        return np.concatenate(plain)
    odd = [deformations(8, inverted=True), stretches((1.0, 0.6, 1e-4), 4), stretches((1.1, 0.5, -0.3), 4)]
    return np.concatenate(plain + odd)


def separate(name, gradients, precision="float64"):
    """A problem with one separate tetrahedron per deformation gradient."""
    points = np.concatenate([UNIT + np.array([3.0 * k, 0, 0]) for k in range(len(gradients))])
    tets = np.arange(len(points)).reshape(-1, 4)
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_solid(supple.TetMesh(points, tets), material(name))
    problem = Problem(build_model(scene), precision)
    x = np.einsum("eij,aj->eai", gradients, UNIT) + points[tets[:, :1]]
    problem.u[:-1, :3] = x.reshape(-1, 3) - points
    return problem


def second_derivatives(kind, F):
    """C (9, 9) of one material at one F, by `stress_differential` of scalars."""
    columns = [stress_differential(kind, tuple(F.ravel()), tuple(e)) for e in np.eye(9)]
    return np.array(columns).T


def expected_blocks(term, C):
    """V Bᵀ C B (12, 12) of a tetrahedron, with B the derivative of F by the corners."""
    B = np.einsum("aj,ik->ijak", term.gradients[0], np.eye(3)).reshape(9, 12)
    return term.volume[0] * B.T @ C @ B


@EACH_MATERIAL
@pytest.mark.parametrize("kind", ["exact", "projected"])
def test_element_blocks_equal_numpy(name, kind):
    """The positive part is the nearest positive semi-definite matrix: negative eigenvalues become 0."""
    gradients = deformed(name)
    problem = separate(name, gradients)
    assembly = Assembly(problem)
    order = np.argsort(assembly.free)
    H = assembly.hessian(kind).toarray().reshape(len(order), 3, len(order), 3)[order][:, :, order]
    term = TetElasticity.from_mesh(UNIT, np.arange(4)[None], material(name))
    for k, F in enumerate(gradients):
        C = second_derivatives(material(name), F)
        if kind == "projected":
            values, vectors = np.linalg.eigh(0.5 * (C + C.T))
            C = (vectors * np.maximum(values, 0)) @ vectors.T
        own = slice(4 * k, 4 * k + 4)
        product = H[own, :, own].reshape(12, 12)
        np.testing.assert_allclose(
            product, expected_blocks(term, C), atol=2e-7 * np.abs(C).max(), err_msg=str(F)
        )


@EACH_MATERIAL
def test_exact_hessian_is_the_derivative_of_the_forces(name):
    problem = perturbed(Problem(build_model(tied_blocks(material(name), material(name))), "float64"), 0.02)
    assembly = Assembly(problem)
    H = assembly.hessian("exact")
    start, direction = problem.u.copy(), np.random.default_rng(1).standard_normal(assembly.size)
    forces, h = [], 1e-6
    for t in (-h, h):
        problem.u[:] = start
        problem.u[assembly.free, :3] += t * direction.reshape(-1, 3)
        problem.balance()
        forces.append(assembly.restrict(problem.states.net))
    difference = (forces[0] - forces[1]) / (2 * h)
    np.testing.assert_allclose(H @ direction, difference, atol=1e-6 * np.abs(difference).max())


@pytest.mark.parametrize("kind", ["exact", "projected", "bound"])
def test_precisions_agree(kind):
    """Both the precision of the problem and that of the matrix."""
    model = build_model(twisted(material("stable_neo_hookean")))
    matrices = []
    for precision, of_matrix in (("float64", "float64"), ("float32", "float64"), ("float32", "float32")):
        assembly = Assembly(perturbed(Problem(model, precision), 0.02), of_matrix)
        H = assembly.hessian(kind)
        assert H.dtype == of_matrix
        matrices.append(H.toarray())
    size = np.abs(matrices[0]).max()
    np.testing.assert_allclose(matrices[1] / size, matrices[0] / size, atol=1e-5)
    np.testing.assert_allclose(matrices[2] / size, matrices[0] / size, atol=1e-5)


def test_matrix_is_independent_of_threads():
    problem = perturbed(Problem(build_model(cantilever(material("corotated"), cells=8)), "float64"), 0.01)
    matrices = []
    for threads in (1, 2, 3):
        problem.device.threads = threads
        matrices.append(Assembly(problem).hessian("projected").data.copy())
    np.testing.assert_array_equal(matrices[0], matrices[1])
    np.testing.assert_array_equal(matrices[0], matrices[2])


def test_sparsity_pattern_equals_that_of_the_stencils():
    """Stencils of different widths, with unused corners and one vertex without stencil."""
    random = np.random.default_rng(0)
    stencils = [random.permuted(np.tile(np.arange(-1, 29), (20, 1)), axis=1)[:, :k] for k in (2, 3, 4)]
    pattern = make_pattern(stencils, 30, threads=2)
    dense = np.eye(30, dtype=bool)
    for stencil in stencils:
        for corners in stencil:
            vertices = corners[corners >= 0]
            dense[np.ix_(vertices, vertices)] = True
    rows = np.repeat(np.arange(30), np.diff(pattern.indptr))
    np.testing.assert_array_equal(np.argwhere(dense), np.stack([rows, pattern.indices], axis=1))
    np.testing.assert_array_equal(pattern.indices[pattern.diagonal], np.arange(30))
    for stencil, slots in zip(stencils, pattern.slots, strict=True):
        present = (stencil[:, :, None] >= 0) & (stencil[:, None, :] >= 0)
        np.testing.assert_array_equal(slots >= 0, present)
        e, a, b = np.nonzero(present)
        np.testing.assert_array_equal(rows[slots[present]], stencil[e, a])
        np.testing.assert_array_equal(pattern.indices[slots[present]], stencil[e, b])


def test_space_filling_curve_visits_every_point_once_and_mostly_neighbors():
    line = np.arange(8.0)
    points = np.stack(np.meshgrid(line, line, line), axis=-1).reshape(-1, 3)[
        np.random.default_rng(0).permutation(512)
    ]
    order = along_curve(points)
    assert sorted(order) == list(range(512))
    steps = np.linalg.norm(np.diff(points[order], axis=0), axis=1)
    assert np.median(steps) < 1.5
    assert len(along_curve(points[:0])) == 0
    assert len(along_curve(np.ones((3, 3)))) == 3
