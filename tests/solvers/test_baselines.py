"""Baselines of the papers: hard constraints, distances, shape matching, vertex block descent, slower linear
solvers, unmodified exact Hessians, fixed budgets; and the papers' residuals."""

import family
import numpy as np
import pytest
from problems import affine, material, perturbed, twisted

import supple
from supple import BPXPBD, PBD, PBNG, XPBD, Newton
from supple.config.stop_criteria import StopCriteria
from supple.problem import Problem
from supple.solve.batch_solve import solve


def bar(young=1e4, kind=supple.Corotated, **options):
    return family.clamped(supple.block((6, 2, 2), (2, 0.5, 0.5)), kind(young=young, poisson=0.3), **options)


# Constraints


def test_xpbd_without_compliance_ignores_the_stiffness():
    """PBNG section 6.1: as α → 0 a vertex update is PBD's; whatever the modulus, the same positions."""
    positions = []
    for young in (1e2, 1e6):
        problem = family.placed(bar(young))
        family.swept(problem, XPBD(compliant=False), 3)
        positions.append(problem.positions)
    np.testing.assert_allclose(positions[0], positions[1], atol=1e-12)
    stiff = family.placed(bar(1e10))
    family.swept(stiff, XPBD(), 3)
    moved = np.abs(positions[0] - stiff.model.rest).max()
    np.testing.assert_allclose(stiff.positions, positions[0], atol=0.02 * moved)


def test_hard_constraints_with_rest_stress_are_refused():
    problem = family.placed(bar(kind=supple.NeoHookean))
    with pytest.raises(
        ValueError, match="those of NeoHookean are not zero at rest, so the body would collapse"
    ):
        XPBD(compliant=False).begin(problem)


@pytest.mark.parametrize("constraints", ["distance", "shape"])
def test_geometric_constraints_restore_the_shape_and_conserve_momentum(constraints):
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.01)
    scene.add_solid(supple.block(3), material("corotated"), density=10)
    model = supple.scene.build_model(scene)
    start = 1.1 * model.rest @ np.array([[1, 0.2, 0], [0, 1, 0.1], [0, 0, 0.9]])
    problem = family.placed(scene, start)
    family.swept(problem, PBD(constraints=constraints), 60)
    np.testing.assert_allclose(family.jacobians(model, problem.positions), 1, atol=0.02)
    np.testing.assert_allclose(model.mass @ problem.positions, model.mass @ start, atol=1e-9)


def test_last_corrected_edge_has_its_rest_length():
    """The last edge of a vertex update is as long as at rest [PBCM section 3.2]."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.01)
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    scene.add_solid(supple.TetMesh(points, [[0, 1, 2, 3]]), material("corotated"), density=1)
    problem = family.placed(scene, points + np.random.default_rng(0).uniform(-0.3, 0.3, (4, 3)))
    run = family.swept(problem, PBD(constraints="distance"), 1)
    corners = run.projections[0].elements
    ids = [int(corners.own[0, 0, 0]), *corners.rows.others[0, :, 0].tolist()]
    now, then = (np.linalg.norm(x[ids[3]] - x[ids[1]]) for x in (problem.positions, points))
    assert now == pytest.approx(then, rel=1e-12)


def test_geometric_constraints_are_for_tetrahedra():
    scene = supple.Scene(quasistatic=False)
    membrane = supple.materials.PlaneStressStVK(young=1e4, poisson=0.3)
    scene.add_cloth(supple.sheet(2, size=(1, 1)), membrane, density=0.1, thickness=1e-3)
    with pytest.raises(ValueError, match="supports tetrahedra, not"):
        PBD(constraints="shape").begin(family.placed(scene))


# Vertex block descent


@pytest.mark.parametrize("name", ["corotated", "stable_neo_hookean", "log_neo_hookean"])
def test_exact_block_gives_newtons_step_of_one_vertex(name):
    scene = supple.Scene(gravity=(0, -5, 0))
    body = scene.add_solid(supple.block(2), material(name), density=10)
    middle = np.linalg.norm(body.points - 0.5, axis=1) < 1e-9
    scene.pin(body.where(np.flatnonzero(~middle)))
    positions = []
    for solver in (
        PBNG(acceleration=None, hessian="exact"),
        Newton(linear_solver="direct", line_search=False),
    ):
        problem = perturbed(Problem(supple.scene.build_model(scene), "float64"), 0.05)
        solve(problem, solver, StopCriteria(max_iterations=1))
        positions.append(problem.positions)
    np.testing.assert_allclose(positions[0], positions[1], atol=1e-10)


def test_vertex_block_descent_converges():
    scene = twisted(material("corotated"), cells=3)
    result = [
        supple.equilibrium(scene, solver=solver, tolerance=1e-7, position_tolerance=None)
        for solver in (PBNG(acceleration=None, hessian="exact"), Newton())
    ]
    assert result[0].report.ok
    np.testing.assert_allclose(result[0].positions, result[1].positions, atol=1e-5)


# Newton


@pytest.mark.parametrize("name", ["gauss_seidel", "bicgstab", "qr"])
def test_linear_solvers_of_the_papers_find_newtons_solution(name):
    scene = twisted(material("corotated"), cells=2)
    result = [
        supple.equilibrium(scene, solver=Newton(hessian="projected", linear_solver=solver), tolerance=1e-9)
        for solver in (name, "direct")
    ]
    np.testing.assert_allclose(result[0].positions, result[1].positions, atol=1e-7)


def test_fixed_number_of_linear_iterations_is_done():
    """One conjugate gradient iteration from 0 with diagonal blocks is a step along D⁻¹ f; each further one
    continues from there."""
    problem = Problem(supple.scene.build_model(twisted(material("corotated"), cells=2)), "float64")
    problem.begin_step(np.inf)
    run = Newton(hessian="projected", linear_solver="cg", linear_iterations=1).begin(problem)
    problem.balance()
    b = run.assembly.restrict(problem.states.net)
    H = run.assembly.hessian("projected").toarray()
    D = np.zeros_like(H)
    for i in range(0, len(H), 3):
        D[i : i + 3, i : i + 3] = H[i : i + 3, i : i + 3]
    z = np.linalg.solve(D, b)
    expected = (b @ z) / (z @ H @ z) * z
    step = run._solve("projected", 0.0)
    np.testing.assert_allclose(run.assembly.restrict(step), expected, rtol=1e-9, atol=1e-12)
    exact = Newton(hessian="projected", linear_solver="cg", linear_iterations=len(b)).begin(problem)
    direction = exact.assembly.restrict(exact._solve("projected", 0.0))
    np.testing.assert_allclose(direction, np.linalg.solve(H, b), rtol=1e-6, atol=1e-9)


def test_iterations_of_direct_solvers_are_refused():
    with pytest.raises(ValueError, match="linear_iterations needs linear_solver 'multilevel', 'cg'"):
        Newton(linear_solver="direct", linear_iterations=5)


def test_qr_of_a_large_system_is_refused():
    scene = twisted(material("corotated"), cells=13)
    with pytest.raises(ValueError, match="use 'direct' for larger systems"):
        supple.equilibrium(scene, solver=Newton(linear_solver="qr"), tolerance=1e-3)


def test_unmodified_exact_hessian_may_raise_the_energy():
    """In St. Venant-Kirchhoff's material compressed to 0.4 the energy is concave in every vertex: Newton's
    step leads to its maximum; rescued, away from it."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(2), material("stvk"), density=10)
    middle = np.linalg.norm(body.points - 0.5, axis=1) < 1e-9
    scene.pin(body.where(np.flatnonzero(~middle)), motion=affine(0.4 * np.eye(3)))
    changes, notes = {}, {}
    for rescue in (True, False):
        problem = Problem(supple.scene.build_model(scene), "float64")
        problem.begin_step(np.inf)
        problem.positions = np.where(middle[:, None], 0.2 + np.array([0.03, 0.02, 0.01]), problem.positions)
        before = problem.energy()
        solver = Newton(rescue=rescue, linear_solver="direct", line_search=rescue)
        notes[rescue] = " ".join(solve(problem, solver, StopCriteria(max_iterations=1)).notes)
        changes[rescue] = problem.energy() - before
    assert changes[False] > 0 >= changes[True]
    assert "gave 1 step in directions of rising energy" in notes[False]
    assert "the exact Hessian did not reduce the energy 1 time" in notes[True]


def test_exact_hessian_without_line_search_is_unstable():
    """Its positive part is stable. PBNG Fig. 11, far from the equilibrium."""
    scene = twisted(material("corotated"), cells=4, angle=1.5, stretch=-0.5)
    energies = {}
    for hessian in ("exact", "projected"):
        problem = Problem(supple.scene.build_model(scene), "float64")
        problem.begin_step(np.inf)
        solver = Newton(hessian, rescue=False, linear_solver="direct", line_search=False)
        energies[hessian] = solve(perturbed(problem, 0.2), solver, StopCriteria(max_iterations=8)).energy
    assert energies["exact"] > 100 * energies["projected"]


# Residuals


def numpy_residuals(run):
    """|g| and |h| of PXPBD eq. 11, 12 for corotated tetrahedra [PXPBD eq. 5]."""
    p, model = run.problem, run.problem.model
    elastic, _ = family.terms(run)
    term, x = model.terms[elastic], p.positions
    lam = family.by_element(run, elastic, run.projections[0].memory[0])
    F = family.deformation(model, x, elastic)
    U, _, Vt = np.linalg.svd(F)
    assert np.all(np.linalg.det(F) > 0)
    R = U @ Vt
    C1 = np.sqrt(((F - R) ** 2).sum(axis=(1, 2)) + 1e-12)
    J = np.linalg.det(F)
    D1, D2 = (F - R) / C1[:, None, None], J[:, None, None] * np.linalg.inv(F).transpose(0, 2, 1)
    k = term.volume[:, None] * [2 * term.material.mu, term.material.lam]
    h = np.column_stack([C1, J - 1]) + lam / k
    D = lam[:, :1, None] * D1 + lam[:, 1:, None] * D2
    forces = family.scattered(model, elastic, np.einsum("eij,evj->evi", D, term.gradients))
    start = family.predicted(p, run)
    g = p.loads.inertia[:, None] * (x - start) - forces
    free = model.free & (np.bincount(model.terms[1 - elastic].vertices.ravel(), minlength=len(x)) == 0)
    return np.linalg.norm(g[model.free]), np.linalg.norm(h), free


@pytest.mark.parametrize("solver", [XPBD(), BPXPBD(zeta=0.9)], ids=lambda s: s.name)
def test_primary_and_secondary_residuals_match_the_paper(solver):
    problem = family.placed(bar())
    run = family.swept(problem, solver, 3)
    primary, secondary, _ = numpy_residuals(run)
    residuals = run.residuals()
    assert residuals[0] == pytest.approx(primary, rel=1e-6)
    assert residuals[1] == pytest.approx(secondary, rel=1e-6)


def test_xpbd_reduces_only_the_secondary_residual():
    """PXPBD Fig. 3a; the blended form reduces both."""
    histories = {}
    for solver in (XPBD(), BPXPBD()):
        report = solve(family.placed(bar()), solver, StopCriteria(max_iterations=60), record_history=True)
        histories[solver.name] = report.history
        assert len(report.history.primal_residual) == len(report.history.iterations) == 61
    xpbd, blended = histories["xpbd"], histories["bpxpbd"]
    assert xpbd.dual_residual[-1] < 1e-6 * xpbd.dual_residual[1]
    assert xpbd.primal_residual[-1] > 0.1 * max(xpbd.primal_residual)
    assert blended.primal_residual[-1] < 1e-2 * xpbd.primal_residual[-1]


def test_full_residual_updates_solve_both_equations():
    """PXPBD eq. 13 with g: the first sweep, where g = 0, is XPBD's; for one element without rotation, a
    vertex update of each constraint solves W⁻¹ Δx - ∇Cᵀ Δλ = -g and ∇C Δx + Δλ/k = -h."""
    full_residual, omitted = family.placed(bar()), family.placed(bar())
    family.swept(full_residual, XPBD(primal_residual="kept"), 1)
    family.swept(omitted, XPBD(), 1)
    np.testing.assert_allclose(full_residual.positions, omitted.positions, atol=1e-12)
    run = XPBD(primal_residual="kept").begin(family.placed(bar()))
    run.advance(1)
    before = run.residuals()[0]
    assert before > 0
    run.advance(1)
    other = XPBD().begin(family.placed(bar()))
    other.advance(2)
    assert not np.allclose(run.problem.positions, other.problem.positions, atol=1e-9)


def test_update_of_a_single_element_removes_the_full_residual():
    """Without rotation of other constraints x goes to x̃ + W λ ∇C; XPBD's primal residual remains."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.01)
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    scene.add_solid(supple.TetMesh(points, [[0, 1, 2, 3]]), material("corotated"), density=1)
    start = points + np.random.default_rng(0).uniform(-0.1, 0.1, (4, 3))
    left = []
    for primary in ("omitted", "kept"):
        run = XPBD(primal_residual=primary).begin(family.placed(scene, start))
        run.advance(30)
        left.append(run.residuals())
    assert left[1][0] < 1e-2 * left[0][0]


def test_full_residual_is_unstable_for_whole_bodies():
    """PXPBD Fig. 3b."""
    reports = {
        primary: solve(
            family.placed(bar(1e6)),
            XPBD(primal_residual=primary),
            StopCriteria(max_iterations=40),
            record_history=True,
        )
        for primary in ("omitted", "kept")
    }
    largest = {name: max(report.history.residual) for name, report in reports.items()}
    assert largest["kept"] > 10 * largest["omitted"] or not np.isfinite(largest["kept"])


def test_full_residuals_need_a_time_step():
    problem = family.placed(bar())
    problem.loads.set_forces_and_inertia(problem.loads.force, 0 * problem.loads.inertia)
    with pytest.raises(ValueError, match="single time steps of dynamic scenes"):
        XPBD(primal_residual="kept").begin(problem)
    with pytest.raises(ValueError, match="needs compliant=True"):
        XPBD(primal_residual="kept", compliant=False)
    with pytest.raises(ValueError, match="primal_residual must be"):
        XPBD(primal_residual="whole")


def test_reports_have_the_residuals_of_the_last_iteration():
    report = solve(family.placed(bar()), XPBD(), StopCriteria(max_iterations=5), record_history=True)
    assert (report.primal_residual, report.dual_residual) == (
        report.history.primal_residual[-1],
        report.history.dual_residual[-1],
    )
    assert report.to_dict()["primal_residual"] == report.primal_residual
    assert "residuals of positions" in str(report)
    bare = solve(family.placed(bar()), XPBD(), StopCriteria(max_iterations=5))
    assert bare.primal_residual is bare.dual_residual is None


def test_methods_without_multipliers_have_no_residuals_of_the_paper():
    report = solve(family.placed(bar()), PBNG(), StopCriteria(max_iterations=3), record_history=True)
    assert report.history.primal_residual == report.history.dual_residual == []


def test_pair_with_rest_stress_is_noted():
    """A converged step with the neo-Hookean pair has the same error at any load."""
    errors = []
    for gravity in (-0.01, -1.0):
        truth = family.placed(bar(kind=supple.NeoHookean, gravity=gravity))
        solve(truth, Newton(), StopCriteria(1e-10, 20, None))
        problem = family.placed(bar(kind=supple.NeoHookean, gravity=gravity))
        report = solve(problem, XPBD(), StopCriteria(max_iterations=200))
        errors.append(np.abs(problem.positions - truth.positions).max())
        assert any("are not zero at rest" in note for note in report.notes)
    assert errors[0] == pytest.approx(errors[1], rel=0.5)
    few = solve(family.placed(bar(kind=supple.NeoHookean)), XPBD(), StopCriteria(max_iterations=1))
    other = solve(family.placed(bar()), XPBD(), StopCriteria(max_iterations=200))
    assert not any("are not zero at rest" in note for note in few.notes + other.notes)
