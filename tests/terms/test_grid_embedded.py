"""Elements embedded in a grid: forces, Hessians, colors, and one step of all supporting methods."""

import numpy as np
import pytest
from problems import perturbed
from test_terms import check_forces

import supple
from supple.config.stop_criteria import StopCriteria
from supple.grid.grid_model import Forces, make_grid_model
from supple.linear.assembly.hessian import Assembly
from supple.ordering.element_batches import color_elements
from supple.problem import Problem
from supple.solve.batch_solve import solve

MATERIALS = {
    "corotated": supple.Corotated(young=1e4, poisson=0.3),
    "stable_neo_hookean": supple.StableNeoHookean(young=1e4, poisson=0.4),
    "gent": supple.materials.Gent(shear_modulus=4e3, limit=30, bulk_modulus=1e4),
}
DT = 5e-3


def embedded_problem(material, precision="float64", spacing=0.35, speed=1.0):
    """Problem of the nodes of a slightly compressed block that moves, turns and stretches."""
    scene = supple.Scene(quasistatic=False)
    scene.add_solid(supple.block(cells=(2, 2, 2), size=(1, 1, 1)), material, density=100)
    mesh = supple.scene.build_model(scene)
    gradient = np.array([[0.3, -2, 0], [2, -0.5, 0.2], [0, 0.4, 0.1]]) * speed
    x = mesh.rest * (1, 0.98, 1.01)
    v = x @ gradient.T + (0.1, -1, 0.3)
    forces = Forces(mesh.force, np.empty((0, 3)), {})
    return make_grid_model(
        mesh, spacing, (x, v, np.broadcast_to(gradient, (len(x), 3, 3))), forces, DT, precision
    )


def step_of(material, precision="float64", **options):
    """One time step of these nodes."""
    actual = embedded_problem(material, precision, **options)
    problem = Problem(actual.model, precision)
    problem.loads.set_time_step(DT)
    problem.states.set_velocities(actual.velocities)
    problem.begin_step(DT, DT, 0.0, None, actual.prescribed)
    return problem


@pytest.mark.parametrize("name", MATERIALS)
def test_forces_are_the_derivative_of_the_energy(name):
    check_forces(Problem(embedded_problem(MATERIALS[name]).model, "float64"), amount=0.02)


def test_hessians_are_derivatives_of_forces():
    problem = perturbed(Problem(embedded_problem(MATERIALS["stable_neo_hookean"]).model, "float64"), 0.02)
    assembly, u = Assembly(problem), problem.u.copy()
    H = assembly.hessian("exact").toarray()
    np.testing.assert_allclose(H, H.T, atol=1e-8 * np.abs(H).max())
    direction = np.random.default_rng(2).normal(size=(problem.model.vertices, 3))

    def force(t):
        problem.u[:] = u
        problem.u[:-1, :3] += t * direction
        problem.balance()
        return assembly.restrict(problem.states.net).copy()

    slope = (force(1e-5) - force(-1e-5)) / 2e-5
    np.testing.assert_allclose(-slope, H @ direction[assembly.free].ravel(), atol=1e-5 * np.abs(slope).max())
    for kind in ("projected", "bound"):
        K = assembly.hessian(kind).toarray()
        assert np.linalg.eigvalsh(0.5 * (K + K.T))[0] > -1e-8 * np.abs(K).max()


@pytest.mark.parametrize("spacing", [0.2, 0.35, 1.5])
@pytest.mark.parametrize("kind", ["exact", "projected", "bound"])
def test_hessians_equal_those_of_interpolated_corners(spacing, kind):
    """The reference sums, element by element, corner pairs interpolated to all pairs of nodes."""
    problem = perturbed(
        Problem(embedded_problem(MATERIALS["corotated"], spacing=spacing).model, "float64"), 0.02
    )
    assembly, (term,) = Assembly(problem), problem.model.terms
    K = term.hessian_blocks(problem.layout.elements[0], problem.u, kind, 1)
    weight = np.zeros((len(term.vertices), 4, problem.model.vertices))
    for corner in range(4):
        points = term.node_interpolation.corners[:, corner]
        np.put_along_axis(
            weight[:, corner],
            term.node_interpolation.nodes[points],
            term.node_interpolation.weights[points],
            1,
        )
    hessian = np.einsum("eap,eabij,ebq->piqj", weight, K, weight, optimize=True)
    hessian = hessian[assembly.free][:, :, assembly.free].reshape(assembly.size, -1)
    H = assembly.hessian(kind).toarray()
    np.testing.assert_allclose(H, hessian, atol=1e-10 * np.abs(hessian).max())


def test_vertex_updates_visit_each_node_once():
    """Elements with fewer nodes than others repeat one of them, without another visit."""
    problem = Problem(embedded_problem(MATERIALS["corotated"], spacing=0.4).model, "float64")
    (term,), (rows,) = problem.model.terms, problem.layout.terms
    different = sum(len(np.unique(nodes)) for nodes in term.vertices)
    assert term.vertices.size > different == int((rows.rest[:, 3] > 0).sum())


@pytest.mark.parametrize("spacing", [0.2, 0.35, 1.5])
def test_elements_of_a_color_share_no_node(spacing):
    """[PXPBD Fig. 6]: an element gets a color that none of its nodes has."""
    (term,) = embedded_problem(MATERIALS["corotated"], spacing=spacing).model.terms
    colors = color_elements(term.vertices, int(term.vertices.max()) + 1)
    for color in range(colors.max() + 1):
        nodes = [np.unique(stencil) for stencil in term.vertices[colors == color]]
        assert len(np.unique(np.concatenate(nodes))) == sum(map(len, nodes))
    if spacing > 1:
        assert colors.max() + 1 > 0.5 * len(term.vertices), "in one cell nearly all share nodes"


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(
    "solver",
    [supple.BPXPBD(zeta=0.5), supple.FPXPBD(), supple.PBNG(), supple.Hybrid()],
    ids=lambda s: s.name,
)
def test_methods_find_newtons_step(solver, precision):
    material = MATERIALS["corotated"]
    exact = step_of(material)
    assert solve(exact, supple.Newton(), StopCriteria(tolerance=1e-9)).ok
    problem = step_of(material, precision)
    tolerance = 1e-6 if precision == "float64" else 1e-4
    report = solve(problem, solver, StopCriteria(tolerance=tolerance, max_iterations=500))
    assert report.ok
    weight = exact.model.mass / exact.model.mass.max()
    away = np.linalg.norm(problem.positions - exact.positions, axis=1) * weight
    step = np.linalg.norm(exact.positions - exact.model.rest, axis=1)
    assert away.max() < 100 * tolerance * step.max()


def test_xpbd_stagnates_and_blending_converges():
    """[PXPBD Fig. 9]."""
    left = {}
    for name, solver in {"xpbd": supple.XPBD(), "blended": supple.BPXPBD(zeta=0.5)}.items():
        problem = step_of(MATERIALS["corotated"], speed=10)
        report = solve(problem, solver, StopCriteria(max_iterations=150))
        left[name] = report.reduction
    assert left["xpbd"] > 1e-4
    assert left["blended"] < 1e-2 * left["xpbd"]


def test_zeta_one_equals_xpbd():
    ends = []
    for solver in (supple.XPBD(), supple.BPXPBD(zeta=1.0)):
        problem = step_of(MATERIALS["corotated"])
        solver.begin(problem).advance(5)
        ends.append(problem.positions)
    np.testing.assert_array_equal(*ends)


def test_methods_without_grid_support_are_refused():
    with pytest.raises(ValueError, match=r"gpbd does not support tetrahedra in grid contact.*bpxpbd"):
        supple.GPBD().begin(step_of(MATERIALS["corotated"]))
