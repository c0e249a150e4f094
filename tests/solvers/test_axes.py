"""Vertices constrained along some directions (rollers, planes of symmetry, rails) in every solver."""

import family
import numpy as np
import pytest
from closed_forms import uniaxial
from problems import HAND_WRITTEN, NEWTONS, PBNGS, PRECISIONS, affine, face, material, rotations, tied_blocks

import supple
from supple import Newton, Outcome
from supple.problem import Problem
from supple.solve.batch_solve import StopCriteria, solve

ELEMENTWISE = {name: method for name, (method, _) in family.METHODS.items()} | {
    "gpbd jacobi": supple.GPBD(sweep="jacobi"),
}
SOLVERS = {"newton": Newton(), "pbng": supple.PBNG()} | ELEMENTWISE
SOLVERS["xpbd clusters"] = supple.XPBD(ordering="clusters")
OBLIQUE = np.array([1.0, 2.0, -3.0]) / np.sqrt(14)

EACH_SOLVER = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
IN_PRECISION = pytest.mark.parametrize("precision", PRECISIONS)


def kind_for(solver):
    """A material that the solver supports."""
    return material("neo_hookean" if solver.name == "block_xpbd" else "corotated")


def mirrored(mesh, axis):
    """The mesh joined with its mirror image at its least coordinate."""
    points, n = np.array(mesh.points), mesh.n_vertices
    plane = points[:, axis].min()
    image = points.copy()
    image[:, axis] = 2 * plane - points[:, axis]
    outside = np.flatnonzero(points[:, axis] > plane + 1e-9)
    number = np.arange(n)
    number[outside] = n + np.arange(len(outside))
    tets = np.concatenate([mesh.tets, number[np.asarray(mesh.tets)][:, [0, 2, 1, 3]]])
    return supple.TetMesh(np.concatenate([points, image[outside]]), tets)


def pulled(kind, planes, dynamic=False, **changes):
    """The part of a block beyond planes of symmetry at 0, clamped at x = 1 and pulled outwards at z = 1; (its
    scene, its body, (m,) mask of its vertices in the whole)."""
    mesh = supple.block(2)
    for axis in range(3):
        if axis not in planes:
            mesh = mirrored(mesh, axis)
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=not dynamic, dt=0.01)
    body = scene.add_solid(mesh, kind, density=10)
    for axis in planes:
        scene.pin(body.where(face(axis, 0)), axes="xyz"[axis])
    for end in (1,) if 0 in planes else (1, -1):
        scene.pin(body.where(face(0, end)), motion=supple.Scale((1.1, 1, 1), duration=0.01))
    for end in (1,) if 2 in planes else (1, -1):
        scene.add_traction(body.where(face(2, end)), (0, 0, 100 * end))
    return scene


def common(full, part):
    """For each vertex of a part, the index of the coincident vertex of the whole."""
    gap = np.abs(full.rest[None] - part.rest[:, None]).max(axis=2)
    assert gap.min(axis=1).max() < 1e-12
    return gap.argmin(axis=1)


@pytest.mark.parametrize("planes", [(0,), (0, 2), (0, 1, 2)], ids=["half", "quarter", "eighth"])
@pytest.mark.parametrize("name", ["corotated", "stable_neo_hookean"])
def test_part_with_planes_of_symmetry_equals_the_full_body(planes, name):
    full, part = (
        supple.equilibrium(pulled(material(name), p), solver=Newton(), tolerance=1e-11) for p in ((), planes)
    )
    assert full.report.ok
    assert part.report.ok
    assert np.abs(part.positions - part.model.rest).max() > 0.05
    np.testing.assert_allclose(part.positions, full.positions[common(full.model, part.model)], atol=1e-10)


@pytest.fixture(scope="module")
def eighth():
    return supple.equilibrium(
        pulled(material("corotated"), (0, 1, 2)), solver=Newton(), tolerance=1e-11
    ).positions


@pytest.mark.parametrize(
    "solver", [*PBNGS.values(), *NEWTONS.values(), supple.Hybrid(), supple.FPXPBD()], ids=str
)
@IN_PRECISION
def test_solvers_find_the_equilibrium(solver, precision, eighth):
    if solver.name == "newton" and (precision == "float32" or solver.linear_solver == "amg"):
        pytest.importorskip("pyamg")
    if solver.name == "newton" and precision == "float32":
        return
    scene = pulled(material("corotated"), (0, 1, 2))
    tolerance, error = (1e-9, 1e-7) if precision == "float64" else (2e-5, 1e-4)
    result = supple.equilibrium(scene, solver=solver, tolerance=tolerance, precision=precision)
    assert result.report.outcome is Outcome.CONVERGED
    np.testing.assert_allclose(result.positions, eighth, atol=error)
    for axis in range(3):  # exactly, since the directions are axes
        assert np.all(result.positions[face(axis, 0)(result.model.rest), axis] == 0)


@pytest.mark.parametrize("name", [name for name in ELEMENTWISE if name != "pbd"])
@IN_PRECISION
def test_element_wise_steps_of_a_part_equal_those_of_the_full_body(name, precision):
    """XPBD depends on the order of elements, which differs; the others converge, at their own rates. (PBD
    stiffens with every sweep and does not converge.)"""
    method, near = ELEMENTWISE[name], {"fpxpbd": 1e-5, "gpbd": 1e-4, "gpbd jacobi": 5e-3}
    kind = kind_for(method)
    first = []
    for planes in ((), (0, 2)):
        (frame,) = supple.simulate(
            pulled(kind, planes, True), solver=method, max_iterations=300, precision=precision
        )
        first.append(frame)
    full, part = first
    moved = np.abs(part.positions - part.model.rest).max()
    error = np.abs(part.positions - full.positions[common(full.model, part.model)]).max()
    assert moved > 1e-3
    assert error < near.get(name, 0.02) * moved


def test_vertex_update_of_pbd():
    """Δx = -E/(Σ W |P ∇E|²) W P ∇E for one element, with ∇E by differences."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.01)
    body = scene.add_solid(supple.TetMesh(corners, [[0, 1, 2, 3]]), material("stvk"))
    scene.pin(body.where([0, 1]), normal=OBLIQUE)
    scene.pin(body.where([1]), axes="z")
    model = supple.scene.build_model(scene)
    across, N = np.tile(np.eye(3), (4, 1, 1)), np.outer(OBLIQUE, OBLIQUE)
    across[0] -= N
    left = np.array([0, 0, 1.0]) - N[2]
    across[1] -= N + np.outer(left, left) / (left @ left)
    x = corners + np.einsum("kij,kj->ki", across, 0.1 * np.random.default_rng(2).normal(size=(4, 3)))
    problem = family.placed(scene, x)
    np.testing.assert_allclose(problem.positions, x, atol=1e-15)
    run = family.swept(problem, supple.PBD(), 1)
    energy, h = family.elastic_energy(model), 1e-6
    steps = h * np.eye(12).reshape(12, 4, 3)
    slope = np.array([energy(x + d) - energy(x - d) for d in steps]).reshape(4, 3) / (2 * h)
    slope = np.einsum("kij,kj->ki", across, slope)
    W = run.weights[:-1, None]
    expected = x - energy(x) / np.sum(W * slope**2) * W * slope
    assert np.abs(expected - x).max() > 1e-3
    np.testing.assert_allclose(problem.positions, expected, atol=1e-8)


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_uniaxial_stretch_by_pbng(name):
    """Between a plane of symmetry and a plate that pulls it without friction, a bar thins as it should."""
    kind, stretch = material(name), 1.25
    lateral, _ = uniaxial(name, stretch, kind.mu, kind.lam)
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(2), kind)
    for axis in range(3):
        scene.pin(body.where(face(axis, 0)), normal=np.eye(3)[axis])
    scene.pin(body.where(face(0, 1)), axes=("x",), motion=supple.Translate((stretch - 1, 5, 7)))
    result = supple.equilibrium(scene, tolerance=1e-11)
    assert result.report.ok
    np.testing.assert_allclose(result.positions, body.points * [stretch, lateral, lateral], atol=1e-9)


def turned(Q, gravity, kind, quasistatic=True):
    """A block on a plane, with an edge on a rail, in a frame rotated by Q."""
    mesh = supple.block(2)
    scene = supple.Scene(gravity=Q @ gravity, quasistatic=quasistatic, dt=0.01)
    body = scene.add_solid(supple.TetMesh(mesh.points @ Q.T, mesh.tets), kind, density=10)
    low, back = face(1, 0)(mesh.points), face(2, 0)(mesh.points)
    scene.pin(body.where(low), normal=Q @ [0, 1, 0])
    scene.pin(body.where(low & back), along=Q @ [1, 0, 0])
    scene.pin(body.where(low & back & face(0, 0)(mesh.points)))
    return scene


@EACH_SOLVER
def test_rotated_scene_rotates_the_solution(solver):
    """Holds after a few sweeps, not only at convergence."""
    Q, gravity, kind = rotations(1, seed=3)[0], np.array([3.0, -9.0, 2.0]), kind_for(solver)
    sweeps = 3 if solver.name == "newton" else 20
    frames = [
        next(supple.simulate(turned(R, gravity, kind, False), solver=solver, frames=1, max_iterations=sweeps))
        for R in (np.eye(3), Q)
    ]
    assert np.abs(frames[0].positions - frames[0].model.rest).max() > 1e-4
    np.testing.assert_allclose(frames[1].positions, frames[0].positions @ Q.T, atol=1e-10)


@EACH_SOLVER
def test_body_slides_down_an_incline(solver):
    """Its center of mass accelerates by g·t, independent of the normal force."""
    gravity, steps = np.array([2.0, -9.0, 4.0]), 3
    scene = supple.Scene(gravity=gravity, quasistatic=False, dt=0.01, frames=steps)
    body = scene.add_solid(supple.block(2), kind_for(solver), density=10)
    scene.pin(body.where(face(1, 0)), normal=OBLIQUE)
    limit = {"tolerance": 1e-10} if solver.name in ("newton", "pbng") else {"max_iterations": 30}
    *_, last = supple.simulate(scene, solver=solver, **limit)
    velocity = last.model.mass @ last.velocities / last.model.mass.sum()
    across = np.eye(3) - np.outer(OBLIQUE, OBLIQUE)
    np.testing.assert_allclose(across @ velocity, across @ gravity * steps * scene.dt, atol=1e-8)
    low = face(1, 0)(body.points)
    assert np.abs((last.positions - body.points)[low] @ OBLIQUE).max() < 1e-15
    assert np.ptp((last.positions - body.points)[low], axis=0).max() < 1  # it slides as a whole
    assert abs(velocity @ OBLIQUE) < abs(gravity @ OBLIQUE) * steps * scene.dt


@pytest.mark.parametrize(
    "solver",
    [*PBNGS.values(), supple.XPBD(), supple.FPXPBD(), supple.GPBD(sweep="jacobi")],
    ids=str,
)
def test_constrained_coordinates_do_not_drift_in_float32(solver):
    """Every one of thousands of sweeps rounds, and restores the constraint."""
    scene = supple.Scene(gravity=(3, -9, 2))
    body = scene.add_solid(supple.block(2), material("corotated"), density=10)
    scene.pin(body.where(face(1, 0)), normal=OBLIQUE, motion=supple.Translate((0.3, 0.1, 0.2)))
    scene.pin(body.where(face(1, 1)), motion=supple.Translate((0.3, 0.1, 0.2)))
    problem = Problem(supple.scene.build_model(scene), "float32")
    problem.begin_step(np.inf)
    solve(problem, solver, StopCriteria(max_iterations=3000))
    u = problem.u[:-1, :3].astype(float)
    constrained = u[problem.model.rollers] @ OBLIQUE
    eps = np.finfo(np.float32).eps
    assert np.abs(constrained - [0.3, 0.1, 0.2] @ OBLIQUE).max() < 4 * eps * np.abs(u).max()


@pytest.mark.parametrize("solver", [supple.PBNG(), supple.XPBD()], ids=str)
def test_recording_does_not_change_the_result(solver):
    scene = turned(rotations(1, seed=3)[0], np.array([3.0, -9.0, 2.0]), material("corotated"))
    plain, recorded = (
        supple.equilibrium(scene, solver=solver, tolerance=None, max_iterations=25, record_history=history)
        for history in (False, True)
    )
    np.testing.assert_array_equal(plain.positions, recorded.positions)


@pytest.mark.parametrize("links", [True, False])
def test_linked_vertices_stay_on_their_planes(links):
    """A block hangs from another by stiff springs, and both have a plane of symmetry."""
    scene = tied_blocks(material("corotated"), material("corotated"), stiffness=1e5)
    for body in scene.bodies:
        scene.pin(body.where(face(0, 0)), axes="x")
        scene.pin(body.where(face(2, 0)), normal=(0, 0, 1))
    reference = supple.equilibrium(scene, solver=Newton(), tolerance=1e-11)
    result = supple.equilibrium(scene, solver=supple.PBNG(tied_groups=links), tolerance=1e-9)
    assert result.report.ok
    np.testing.assert_allclose(result.positions, reference.positions, atol=1e-8)
    assert np.all(result.positions[result.model.rest[:, 0] == 0, 0] == 0)


@pytest.mark.parametrize("method", ELEMENTWISE.values(), ids=ELEMENTWISE)
def test_weak_constraints_move_vertices_on_their_planes_only(method):
    scene = supple.Scene(gravity=(0, -1, 0), quasistatic=False, dt=0.01)
    body = scene.add_solid(supple.block(2), kind_for(method), density=10)
    scene.pin(body.where(face(1, 0)), normal=OBLIQUE)
    scene.attach(body.where(face(1, 0)), (0.2, 0.3, 0.4), stiffness=1e3)
    (frame,) = supple.simulate(scene, solver=method, max_iterations=20)
    moved = (frame.positions - body.points)[face(1, 0)(body.points)]
    assert np.abs(moved).max() > 1e-4
    assert np.abs(moved @ OBLIQUE).max() < 1e-15


def test_hessian_of_newton_is_that_of_the_residual():
    """Reference: differences of the net forces of all free vertices, projected onto the free directions."""
    from supple.linear.assembly.hessian import Assembly

    scene = turned(rotations(1, seed=3)[0], np.array([3.0, -9.0, 2.0]), material("corotated"))
    problem = Problem(supple.scene.build_model(scene), "float64")
    problem.begin_step(np.inf)
    supple.solve.batch_solve.solve(problem, Newton(), StopCriteria(max_iterations=1))
    assembly = Assembly(problem)
    H, u, model = assembly.hessian("exact").toarray(), problem.u.copy(), problem.model
    random = np.random.default_rng(0)
    step = assembly.unconstrained(random.normal(size=assembly.size))
    h, forces = 1e-6, []
    for sign in (1, -1):
        problem.u[:] = u
        problem.u[assembly.free, :3] += sign * h * step.reshape(-1, 3)
        problem.balance()
        forces.append(assembly.restrict(problem.states.net).copy())
    slope = -(forces[0] - forces[1]) / (2 * h)
    np.testing.assert_allclose(H @ step, slope, atol=1e-5 * np.abs(slope).max())
    np.testing.assert_allclose(assembly.unconstrained(slope), slope, atol=1e-9 * np.abs(slope).max())
    assert np.linalg.eigvalsh(H).min() > 0
    assert len(model.rollers) > 3


@IN_PRECISION
def test_loads_on_constrained_directions_are_ignored(precision):
    """All weight is along constrained directions, so that no iteration is needed."""
    scene = supple.Scene(gravity=9.0 * OBLIQUE)
    body = scene.add_solid(supple.block(2), material("corotated"))
    scene.pin(body, normal=OBLIQUE)
    result = supple.equilibrium(scene, precision=precision)
    assert result.report.outcome is Outcome.CONVERGED
    assert result.report.iterations == 0
    np.testing.assert_allclose(result.positions, body.points, atol=1e-12)


def test_constrained_directions_follow_a_motion():
    """n·x = n·motion(X, t) in every frame, with constant directions."""
    turn = supple.Rotate(axis=(0, 0, 1), center=(0, 0.5, 0.5), angle=1.0)
    scene = supple.Scene(gravity=(0, 0, 0), dt=0.25, frames=4)
    body = scene.add_solid(supple.block(2), material("corotated"))
    end = body.where(face(0, 1))
    scene.pin(body.where(face(0, 0)))
    scene.pin(end, motion=turn, axes="y")
    for frame in supple.simulate(scene, tolerance=1e-6):
        x = frame.positions[end.vertices]
        np.testing.assert_allclose(x[:, 1], turn(end.points, frame.time)[:, 1], atol=1e-14)
    assert np.abs(x[:, 0] - turn(end.points, 1.0)[:, 0]).max() > 0.01


@pytest.mark.parametrize("quasistatic", [True, False])
def test_motion_resumed_from_state_is_bitwise_identical(quasistatic):
    scene = turned(rotations(1, seed=3)[0], np.array([3.0, -9.0, 2.0]), material("corotated"), quasistatic)
    options = {"solver": supple.PBNG(), "max_iterations": 7, "tolerance": None, "precision": "float32"}
    frames = list(supple.simulate(scene, frames=4, **options))
    again = list(supple.simulate(scene, frames=4, initial=frames[1].state, first_frame=3, **options))
    np.testing.assert_array_equal(again[-1].positions, frames[-1].positions)


def test_steppers_and_variations_move_constrained_vertices():
    scene = turned(np.eye(3), np.array([0.0, -1.0, 0.0]), material("corotated"), False)
    body = scene.bodies[0]
    low = body.where(face(1, 0))
    sim = supple.Stepper(scene, max_iterations=20)
    np.testing.assert_array_equal(sim.pinned, low.vertices)
    positions = sim.positions[sim.pinned] + [0, 0.02, 0]
    frame = sim.step(pins=positions)
    np.testing.assert_array_equal(frame.positions[low.vertices, 1], 0.02)
    assert np.abs(frame.positions[low.vertices] - positions).max() > 1e-5  # they are free across
    lifted = supple.Variation(pins={low: positions})
    (result,) = supple.equilibria(scene, [lifted], tolerance=1e-8)
    np.testing.assert_array_equal(result.positions[low.vertices, 1], 0.02)
    corner = body.where(np.all(body.points == 0, axis=1))
    np.testing.assert_array_equal(result.positions[corner.vertices], corner.points + np.array([0, 0.02, 0]))


def test_affine_field_on_rollers_all_around():
    """All faces follow an affine motion along their normals only: the patch test of a roller."""
    A = np.diag([1.2, 0.9, 1.05])
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(3), material("stable_neo_hookean"))
    for axis in range(3):
        for end in (0, 1):
            scene.pin(body.where(face(axis, end)), axes="xyz"[axis], motion=affine(A))
    result = supple.equilibrium(scene, tolerance=1e-12)
    assert result.report.ok
    np.testing.assert_allclose(result.positions, body.points @ A, atol=1e-9)
