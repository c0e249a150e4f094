"""The multilevel preconditioner: symmetric, positive definite, and effective for long, thin and stiff
bodies."""

import numpy as np
import pytest
from problems import cantilever, face, material, membrane, net, perturbed, tied_blocks, twisted
from scipy.sparse import bsr_matrix, eye
from scipy.sparse.linalg import spsolve

import supple
from supple.linear import Assembly, Multilevel, NotPositive, pcg, solve_per_body
from supple.linear.multilevel.preconditioner import as_matrix, as_records
from supple.problem import Problem
from supple.scene import build_model


def bar(across, contrast=1.0, size=(2.0, 0.1, 0.1), cells=None):
    """A cantilever of aspect ratio 20 with one half of its cross-section stiffer by the contrast."""
    mesh = supple.block(cells or (20 * across, across, across), size)
    middle = mesh.points[mesh.tets].mean(axis=1)[:, 1] > 0.5 * size[1]
    scene = supple.Scene(gravity=(0, -9.8, 0))
    kind = material("corotated", young=np.where(middle, contrast, 1.0) * 1e6, poisson=0.4)
    body = scene.add_solid(mesh, kind, density=1000)
    scene.pin(body.where(face(0, 0)))
    return build_model(scene)


def plate():
    return bar(1, size=(1.0, 0.02, 1.0), cells=(25, 1, 25))


def loose():
    """Two free blocks, one of them a single tetrahedron."""
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_solid(supple.block(3), material("corotated"))
    tet = supple.TetMesh(np.vstack([np.zeros(3), np.eye(3)]) + 5, np.array([[0, 1, 2, 3]]))
    scene.add_solid(tet, material("neo_hookean"))
    return build_model(scene)


MODELS = {
    "bar": lambda: bar(2),
    "contrast": lambda: bar(3, contrast=1e4),
    "plate": plate,
    "twisted": lambda: build_model(twisted(material("stable_neo_hookean"))),
    "tied": lambda: build_model(tied_blocks(material("corotated"), material("neo_hookean"), 1e8)),
    "membrane": membrane,
    "net": net,
    "loose": loose,
}

EACH_MODEL = pytest.mark.parametrize("name", MODELS)


def system(model, precision="float64", noise=0.0, inertia=None):
    problem = Problem(model, precision)
    problem.begin_step(np.inf)
    if inertia:
        problem.loads.set_time_step(inertia)
    if noise:
        perturbed(problem, noise)
    assembly = Assembly(problem)
    problem.balance()
    return assembly, assembly.restrict(problem.states.net).astype(float)


@EACH_MODEL
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_preconditioner_is_symmetric_and_positive_definite(name, precision):
    assembly, _ = system(MODELS[name](), noise=1e-3)
    M = Multilevel(assembly, precision).at(assembly.hessian("projected"), assembly.positions)
    vectors = np.random.default_rng(0).standard_normal((8, assembly.size))
    images = np.array([M(v) for v in vectors])
    products = images @ vectors.T
    size = np.sqrt(np.outer(products.diagonal(), products.diagonal()))
    assert np.all(products.diagonal() > 0)
    np.testing.assert_allclose(
        products / size, products.T / size, atol=1e-3 if precision == "float32" else 1e-9
    )


@EACH_MODEL
def test_preconditioned_cg_equals_a_factorization(name):
    assembly, b = system(MODELS[name](), noise=1e-3, inertia=1.0 if name == "loose" else None)
    H = assembly.hessian("projected")
    solution = pcg(H, b, Multilevel(assembly).at(H, assembly.positions), 1e-12)
    x, iterations, negative, ritz = solution.x, solution.iterations, solution.negative, solution.ritz
    assert negative is None
    assert 0 < iterations < 200
    expected = spsolve(H.tocsc(), b)
    np.testing.assert_allclose(x, expected, atol=1e-4 * np.abs(expected).max())
    assert 0 < ritz[0] < ritz[-1] < 4


def test_separate_bodies_are_solved_as_single_bodies():
    """The residuals of bars with different stiffnesses are reported separately, whatever their energy."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    moduli = [(1e6, 0.3), (1e9, 0.4999), (1e11, 0.3), (1e3, 0.3)]
    for k, (young, poisson) in enumerate(moduli):
        mesh = supple.block((20, 1, 1), (2.0, 0.1, 0.1)).translated((0, 0, k))
        body = scene.add_solid(mesh, material("stable_neo_hookean", young=young, poisson=poisson))
        scene.pin(body.where(face(0, 0)))
    assembly, b = system(build_model(scene))
    H = assembly.hessian("exact")
    M, of = Multilevel(assembly).at(H, assembly.positions), assembly.rest[:, 2].astype(int)
    solution, left = solve_per_body(as_matrix(H), as_records(b), M, 1e-2, 1000, of)
    x = solution.x[:, :3].ravel()

    def sizes(r):
        return np.sqrt(np.bincount(of, (r * M(r)).reshape(-1, 3).sum(axis=1)))

    np.testing.assert_allclose(left, sizes(b - H @ x) / sizes(b), rtol=1e-3)
    assert np.sum(left <= 1e-2) >= 3
    error, expected = x - spsolve(H.tocsc(), b), spsolve(H.tocsc(), b)
    energies = [np.bincount(of, (v * (H @ v)).reshape(-1, 3).sum(axis=1)) for v in (error, expected)]
    assert np.all(np.sqrt(energies[0] / energies[1])[left <= 1e-2] <= 0.1)


def test_iterations_hardly_grow_with_the_mesh():
    """At most 1.5 times as many for ten times the vertices, on a bending bar."""
    counts = []
    for across in (3, 7):
        assembly, b = system(bar(across))
        H = assembly.hessian("exact")
        counts.append(pcg(H, b, Multilevel(assembly).at(H, assembly.positions), 1e-6).iterations)
    assert counts[1] <= 1.5 * counts[0]


def test_preconditioner_uses_present_positions():
    """A bar after a quarter turn takes as many iterations as before."""
    counts = []
    for turned in (False, True):
        assembly, b = system(bar(3))
        turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]])
        if turned:
            problem, rest = assembly.problem, assembly.problem.model.rest
            problem.u[:-1, :3] = rest @ turn.T - rest
            b = (b.reshape(-1, 3) @ turn.T).ravel()
        H = assembly.hessian("exact")
        counts.append(pcg(H, b, Multilevel(assembly).at(H, assembly.positions), 1e-6).iterations)
    assert abs(counts[0] - counts[1]) <= 1


def test_solution_is_independent_of_threads():
    assembly, b = system(bar(3))
    H, hierarchy = assembly.hessian("exact"), Multilevel(assembly)
    solutions = []
    for threads in (1, 2, 3):
        assembly.problem.device.threads = threads
        solutions.append(pcg(assembly.hessian("exact"), b, hierarchy.at(H, assembly.positions), 1e-6).x)
    np.testing.assert_array_equal(solutions[0], solutions[1])
    np.testing.assert_array_equal(solutions[0], solutions[2])


def shifted(H, part):
    """H minus a part of its mean diagonal."""
    return bsr_matrix(H - part * H.diagonal().mean() * eye(H.shape[0]), blocksize=(3, 3))


def test_indefinite_matrix_is_reported():
    assembly, _ = system(build_model(cantilever(material("corotated"), cells=4)))
    H = assembly.hessian("exact")
    hierarchy = Multilevel(assembly)
    with pytest.raises(NotPositive):
        hierarchy.at(shifted(H, 2.0), assembly.positions)


def test_direction_of_negative_curvature_is_detected():
    """The preconditioner is still positive definite."""
    assembly, b = system(build_model(cantilever(material("corotated"), cells=4)))
    H = assembly.hessian("exact")
    M = Multilevel(assembly).at(H, assembly.positions)
    lowest = np.linalg.eigvalsh(H.toarray())[0]
    indefinite = shifted(H, 2 * lowest / H.diagonal().mean())
    x, _, p, _ = pcg(indefinite, b, M, 1e-12)
    assert p is not None
    assert p @ (indefinite @ p) < 0
    assert np.isfinite(x).all()


def test_zero_right_hand_side_needs_no_iteration():
    assembly, b = system(build_model(cantilever(material("corotated"))))
    H = assembly.hessian("exact")
    M = Multilevel(assembly).at(H, assembly.positions)
    x, iterations, negative, _ = pcg(H, 0 * b, M, 0.1)
    assert iterations == 0
    assert negative is None
    assert not x.any()
    assert pcg(H, b, M, 0.0, floor=1e-3 * np.linalg.norm(b)).iterations > 0
