"""Forces and Hessians of every term against differences of the energy, and sums of terms."""

from dataclasses import replace

import numpy as np
import pytest
from problems import HAND_WRITTEN, cantilever, deformations, face, material, perturbed, tied_blocks

import supple
from supple.kernels import default_threads
from supple.linear.assembly.hessian import Assembly
from supple.model.model import Model
from supple.problem import Problem
from supple.scene import build_model
from supple.terms import TetElasticity, WeakConstraints

EACH_MATERIAL = pytest.mark.parametrize("name", HAND_WRITTEN)


def free_block(name, cells=2):
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_solid(supple.block(cells), material(name))
    return build_model(scene)


def composed():
    """Two bodies of different materials and the weak constraints between them: three terms."""
    return build_model(tied_blocks(material("corotated"), material("neo_hookean", young=2e3)))


def weak_model(stiffness, slots=5):
    """Weak constraints alone: interpolated points, a fixed point, and an unused slot."""
    mesh = supple.block(2)
    random = np.random.default_rng(0)
    vertices = np.array([random.permutation(len(mesh.points))[:slots] for _ in range(6)], np.int32)
    weights = random.uniform(-1, 1, (6, slots))
    weights[0, 1:] = 0
    vertices[0, 1:] = vertices[0, 0]
    target = random.normal(size=(6, 3))
    term = WeakConstraints(vertices, weights, target, np.tile(stiffness, (6, 1)), mesh.points)
    n = len(mesh.points)
    nothing = np.empty((0, 3))
    return Model(
        mesh.points, np.ones(n), np.zeros((n, 3)), np.empty(0, int), lambda t: nothing, (term,), mesh.tets
    )


def symmetric(k):
    return np.array([[k[0], k[3], k[4]], [k[3], k[1], k[5]], [k[4], k[5], k[2]]])


def net_forces(problem):
    problem.balance()
    return problem.states.net[:-1, :3].astype(float)


def slope(problem, direction, h=1e-5):
    """Directional derivative of the energy by central differences."""
    u = problem.u.copy()
    energies = []
    for step in (h, -h):
        problem.u[:-1, :3] = u[:-1, :3] + step * direction
        energies.append(problem.energy())
    problem.u[:] = u
    return (energies[0] - energies[1]) / (2 * h)


def check_forces(problem, amount=0.02, h=1e-5):
    """Net forces are minus the derivative of the energy, over the free vertices."""
    perturbed(problem, amount)
    forces = net_forces(problem)
    np.testing.assert_array_equal(forces[problem.model.pinned], 0)
    scale = np.abs(forces).max()
    for seed in range(3):
        direction = np.random.default_rng(seed).normal(size=forces.shape)
        direction[problem.model.pinned] = 0
        assert -np.sum(forces * direction) == pytest.approx(
            slope(problem, direction, h), rel=1e-6, abs=1e-6 * scale
        )


@EACH_MATERIAL
def test_elastic_forces_are_the_derivative_of_the_energy(name):
    check_forces(Problem(build_model(cantilever(material(name))), "float64"))


@pytest.mark.parametrize(
    "stiffness", [(7, 7, 7, 0, 0, 0), (3, 5, 4, 1, -0.5, 0.2)], ids=["isotropic", "anisotropic"]
)
def test_weak_forces_are_the_derivative_of_the_energy(stiffness):
    check_forces(Problem(weak_model(np.array(stiffness, float)), "float64"), amount=0.5)


def test_composed_forces_are_the_derivative_of_the_energy():
    check_forces(Problem(composed(), "float64"))


def test_inertial_forces_are_the_derivative_of_the_energy():
    problem = Problem(build_model(cantilever(material("corotated"))), "float64")
    problem.set_inertia(
        0.01, problem.model.rest + np.random.default_rng(1).normal(size=problem.model.rest.shape)
    )
    check_forces(problem)


@pytest.mark.parametrize(
    "stiffness", [(7, 7, 7, 0, 0, 0), (3, 5, 4, 1, -0.5, 0.2)], ids=["isotropic", "anisotropic"]
)
@pytest.mark.parametrize("slots", [1, 2, 5])
def test_weak_constraints_are_springs_between_interpolated_points(stiffness, slots):
    """E = ½ Σ Cᵀ K C and f_j = -w_j K C with C = Σ w x - target."""
    model = weak_model(np.array(stiffness, float), slots)
    problem = perturbed(Problem(model, "float64"), 0.5)
    (term,) = model.terms
    K = symmetric(stiffness)
    C = np.einsum("ek,eki->ei", term.weights, problem.positions[term.vertices]) - term.target
    assert problem.energy() == pytest.approx(0.5 * np.einsum("ei,ij,ej->", C, K, C))
    expected = np.zeros_like(model.rest)
    np.add.at(expected, term.vertices, -term.weights[:, :, None] * (C @ K)[:, None, :])
    np.testing.assert_allclose(net_forces(problem), expected, atol=1e-12)


def test_elastic_energy_of_a_homogeneous_deformation():
    """V ψ(F), from the closed form of the neo-Hookean model for a stretch along x."""
    model = free_block("neo_hookean")
    problem, kind, s = Problem(model, "float64"), material("neo_hookean"), 1.3
    problem.positions = model.rest * [s, 1, 1]
    expected = 0.5 * kind.mu * (s * s - 1) + 0.5 * (kind.lam + kind.mu) * (s - 1) ** 2 - kind.mu * (s - 1)
    assert problem.energy() == pytest.approx(expected, rel=1e-12)


@EACH_MATERIAL
def test_elastic_forces_conserve_momentum_and_angular_momentum(name):
    """Forces and torques sum to zero; for linear elasticity torques are about rest positions."""
    model = free_block(name)
    problem = perturbed(Problem(model, "float64"), 0.05)
    forces = net_forces(problem)
    scale = np.abs(forces).sum()
    arms = model.rest if name == "linear_elastic" else problem.positions
    np.testing.assert_allclose(forces.sum(axis=0), 0, atol=1e-13 * scale)
    np.testing.assert_allclose(np.cross(arms, forces).sum(axis=0), 0, atol=1e-13 * scale)
    assert np.abs(forces).max() > 1


def test_weak_constraints_between_bodies_conserve_momentum():
    model = composed()
    weak = replace(model, terms=model.terms[-1:], force=0 * model.force, pinned=np.empty(0, int))
    forces = net_forces(perturbed(Problem(weak, "float64"), 0.1))
    np.testing.assert_allclose(forces.sum(axis=0), 0, atol=1e-10 * np.abs(forces).sum())
    assert np.abs(forces).max() > 1


def test_terms_are_additive():
    """Forces and energy of three terms equal the sums of each alone."""
    model = replace(composed(), pinned=np.empty(0, int))
    assert [type(term) for term in model.terms] == [TetElasticity, TetElasticity, WeakConstraints]
    problem = perturbed(Problem(model, "float64"), 0.05)
    forces, energy = net_forces(problem), problem.energy()
    for i, term in enumerate(model.terms):
        loads = model.force if i == 0 else 0 * model.force
        expected_problem = perturbed(Problem(replace(model, terms=(term,), force=loads), "float64"), 0.05)
        forces = forces - net_forces(expected_problem)
        energy = energy - expected_problem.energy()
    np.testing.assert_allclose(forces, 0, atol=1e-9)
    assert energy == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "precision"), [*((name, "float64") for name in HAND_WRITTEN), ("stable_neo_hookean", "float32")]
)
def test_parameters_by_element_act_on_their_elements(name, precision):
    """Elements with separate values equal two terms of one value each; padding from uneven numbers of visits
    per vertex has no effect."""
    model = free_block(name, cells=3)
    (term,) = model.terms
    soft = np.arange(len(term.vertices)) % 3 > 0
    young = np.where(soft, 1e3, 5e3)
    mixed = replace(model, terms=(replace(term, material=material(name, young=young)),))
    forces = net_forces(perturbed(Problem(mixed, precision), 0.02))
    for part, E in ((soft, 1e3), (~soft, 5e3)):
        expected_problem = TetElasticity(
            term.vertices[part], term.gradients[part], term.volume[part], material(name, young=E)
        )
        forces = forces - net_forces(
            perturbed(Problem(replace(model, terms=(expected_problem,)), precision), 0.02)
        )
    np.testing.assert_allclose(forces, 0, atol=1e-11 if precision == "float64" else 1e-3)


def test_uniform_parameter_array_has_the_energy_of_a_scalar():
    model = free_block("stable_neo_hookean", cells=3)
    (term,) = model.terms
    young = np.full(len(term.vertices), 1e3)
    mixed = replace(model, terms=(replace(term, material=material("stable_neo_hookean", young=young)),))
    energies = [perturbed(Problem(m, "float64"), 0.02).energy() for m in (model, mixed)]
    assert energies[0] == pytest.approx(energies[1], rel=1e-12)


@EACH_MATERIAL
def test_forces_in_single_precision(name):
    model = build_model(cantilever(material(name)))
    double, single = (net_forces(perturbed(Problem(model, p), 0.02)) for p in ("float64", "float32"))
    np.testing.assert_allclose(single, double, atol=1e-5 * np.abs(double).max())


def test_single_precision_is_as_accurate_far_from_the_origin():
    """Kernels use displacements: a body at 1000 m has the same forces."""
    nets = []
    for origin in (0.0, 1000.0):
        scene = supple.Scene(gravity=(0, 0, 0))
        scene.add_solid(supple.block(2, origin=(origin, 0, 0)), material("corotated"))
        nets.append(net_forces(perturbed(Problem(build_model(scene), "float32"), 0.02)))
    np.testing.assert_allclose(nets[0], nets[1], atol=1e-4 * np.abs(nets[0]).max())


HESSIANS = [(name, build_model(cantilever(material(name), cells=2))) for name in HAND_WRITTEN] + [
    ("composed", composed())
]


@pytest.mark.parametrize(("name", "model"), HESSIANS, ids=[name for name, _ in HESSIANS])
def test_exact_hessian_is_the_derivative_of_the_forces(name, model):
    problem = perturbed(Problem(model, "float64"), 0.03)
    problem.set_inertia(0.1, model.rest)
    assembly = Assembly(problem)
    H = assembly.hessian("exact").toarray()
    np.testing.assert_allclose(H, H.T, atol=1e-9 * np.abs(H).max())
    u, h = problem.u.copy(), 1e-6
    for seed in range(3):
        direction = np.random.default_rng(seed).normal(size=(len(assembly.free), 3))
        forces = []
        for step in (h, -h):
            problem.u[:] = u
            problem.u[assembly.free, :3] += step * direction
            problem.balance()
            forces.append(assembly.restrict(problem.states.net))
        expected = -(forces[0] - forces[1]) / (2 * h)
        np.testing.assert_allclose(H @ direction.ravel(), expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize(("name", "model"), HESSIANS, ids=[name for name, _ in HESSIANS])
@pytest.mark.parametrize("kind", ["projected", "bound"])
def test_other_hessians_are_positive_definite(name, model, kind):
    problem = perturbed(Problem(model, "float64"), 0.08 if name in ("log_neo_hookean", "composed") else 0.2)
    H = Assembly(problem).hessian(kind).toarray()
    np.testing.assert_allclose(H, H.T, atol=1e-9 * np.abs(H).max())
    values = np.linalg.eigvalsh(H)
    assert values[0] > -1e-10 * values[-1]


def test_projected_hessian_is_the_positive_part_of_each_element():
    """One tet, whose tensor is projected with NumPy here."""
    mesh = supple.TetMesh(np.vstack([np.zeros(3), np.eye(3)]), [[0, 1, 2, 3]])
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_solid(mesh, material("neo_hookean"))
    problem = Problem(build_model(scene), "float64")
    problem.positions = mesh.points @ deformations(1, seed=3, inverted=True)[0].T
    assembly = Assembly(problem)
    exact, projected = (assembly.hessian(kind).toarray() for kind in ("exact", "projected"))
    (term,) = problem.model.terms
    B = np.kron(term.gradients[0], np.eye(3))  # vertex displacement to F, column by column
    back = np.linalg.pinv(B)
    C = back @ exact @ back.T / term.volume[0]
    values, vectors = np.linalg.eigh(C)
    assert values[0] < 0
    positive = (vectors * np.maximum(values, 0)) @ vectors.T
    np.testing.assert_allclose(
        projected, term.volume[0] * B @ positive @ B.T, atol=1e-9 * np.abs(exact).max()
    )


@pytest.mark.parametrize("kind", ["projected", "exact"])
def test_hessians_agree_where_the_exact_one_is_positive(kind):
    problem = Problem(build_model(cantilever(material("corotated"), cells=2)), "float64")
    H = Assembly(problem).hessian(kind).toarray()
    assert np.linalg.eigvalsh(H)[0] > 0
    reference = Assembly(problem).hessian("exact").toarray()
    np.testing.assert_allclose(H, reference, atol=1e-9 * np.abs(reference).max())


@EACH_MATERIAL
def test_vertex_update_is_a_newton_step_of_one_vertex(name):
    """With one free vertex a sweep equals a Newton step with the bound."""
    scene = supple.Scene(gravity=(3, -50, 2))
    body = scene.add_solid(supple.block(2), material(name), density=20)
    scene.pin(body.where(lambda X: np.abs(X - 0.5).max(axis=1) > 0.1))
    steps = []
    newton = supple.Newton(hessian="bound", linear_solver="direct", line_search=False)
    for solver in (supple.PBNG(acceleration="none"), newton):
        result = supple.equilibrium(scene, solver=solver, tolerance=None, max_iterations=1)
        steps.append((result.positions - result.model.rest)[~np.isin(np.arange(27), result.model.pinned)])
    assert np.abs(steps[0]).max() > 1e-3
    np.testing.assert_allclose(steps[0], steps[1], rtol=1e-9)


def test_inverted_tets_are_counted():
    model = free_block("corotated")
    problem = Problem(model, "float64")
    assert problem.diagnostics.inversions()[0] == 0
    problem.positions = model.rest * [-1, 1, 1]
    assert problem.diagnostics.inversions()[0] == len(model.tets)


def test_number_of_threads_is_capped_for_small_problems():
    problem = Problem(free_block("corotated"), "float64", threads=8)
    assert problem.device.threads == 1
    assert default_threads() >= 1


def test_unknown_precisions_are_refused():
    with pytest.raises(ValueError, match="precision must be 'float32' or 'float64', got 'float16'"):
        Problem(free_block("corotated"), "float16")


def test_scene_attachments_pull_as_declared():
    """A vertex bound to a fixed point along a normal: K = k n nᵀ."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(1), material("corotated"))
    corner = body.where(lambda X: (face(0, 1)(X)) & (face(1, 1)(X)) & (face(2, 1)(X)))
    scene.attach(corner, (1, 3, 5), stiffness=2.0, normal=(0, 1, 0))
    model = build_model(scene)
    forces = net_forces(Problem(model, "float64"))
    np.testing.assert_allclose(forces[corner.vertices], [[0, 4, 0]], atol=1e-12)
    np.testing.assert_allclose(np.delete(forces, corner.vertices, axis=0), 0, atol=1e-12)
