"""Generalized PBD: its local problem, its invariant, and the stress tests of the paper."""

import family
import numpy as np
import pytest
from problems import POISSON, YOUNG, face, flattened, rotations, scrambled
from test_xpbd_family import spring_step, springs

import supple
from supple import GPBD, XPBD, Newton
from supple.config.stop_criteria import StopCriteria
from supple.solve.batch_solve import solve

TET = supple.TetMesh(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]), np.array([[0, 1, 2, 3]]))


def displacements(run):
    """(elements, 4, 3): d."""
    return family.by_element(run, 0, run.projections[0].memory[0]).reshape(-1, 4, 3)


@pytest.mark.parametrize("pins", [0, 1, 3])
def test_vertex_update_minimizes_the_local_energy(pins):
    """At the minimum of ½|d|²_{W⁻¹} + U over d + W Sᵀ Δλ, S (W⁻¹ d + ∇U) = 0 with S, the derivative of the
    Green strain, taken before the update [GPBD eq. 19]; 20 updates, each from the end of the last one."""
    scene = supple.Scene(gravity=(0, -9.8, 0), quasistatic=False, dt=0.1)
    body = scene.add_solid(TET, supple.materials.LogNeoHookean(young=YOUNG, poisson=POISSON), density=10)
    if pins:
        scene.pin(body.where(list(range(pins))))
    scene.attach(body.where([3]), stiffness=1.0)
    x = TET.points @ rotations(1)[0].T @ np.diag([1.3, 0.8, 1.1])
    problem = family.placed(scene, x)
    run = GPBD(newton_steps=60).begin(problem)
    term, W = problem.model.terms[0], run.weights[:-1][TET.tets[0]]
    free, before = W > 0, np.zeros((4, 3))
    for _ in range(20):
        x = problem.positions
        run.advance(1)
        d = displacements(run)[0]
        F, new = (family.deformation(problem.model, y)[0] for y in (x, x + d - before))
        before = d
        P = family.stresses(term.material, new[None])[0]
        r = term.volume[0] * term.gradients[0] @ P.T
        r[free] += d[free] / W[free, None]
        slope = F.T @ r[free].T @ term.gradients[0][free]
        slope = 0.5 * (slope + slope.T)
        assert np.abs(slope).max() < 1e-6 * YOUNG * term.volume[0]


@pytest.mark.parametrize(
    ("solver", "precision", "error"),
    [(GPBD(newton_steps=2), "float64", 1e-13), (GPBD(sweep="jacobi"), "float32", 1e-5)],
    ids=["gauss_seidel", "jacobi"],
)
def test_positions_are_the_sum_of_all_displacements(solver, precision, error):
    """x = x̃ + Σ d [GPBD eq. 6]."""
    scene = family.tied(supple.materials.LogNeoHookean(young=YOUNG, poisson=POISSON))
    v = np.sin(3 * supple.scene.build_model(scene).rest[:, [1, 2, 0]])
    problem = family.placed(scene, v=v, precision=precision)
    run = solver.begin(problem)
    for _ in range(3):
        run.advance(2)
        moved = family.scattered(problem.model, 0, displacements(run))
        expected = family.predicted(problem, run) + moved + family.weak_displacement(run)
        np.testing.assert_allclose(problem.positions, expected, atol=error)


@pytest.mark.parametrize("solver", [GPBD(), XPBD()], ids=["gpbd", "xpbd"])
def test_gpbd_with_linear_compliance_is_xpbd(solver):
    """GPBD appendix A: XPBD's sweeps minimize ½|d + Δd|²_{W⁻¹} + ½ Cᵀ K C over all Δd, one constraint after
    the other, here by a dense solve."""
    model, K = springs()
    v = np.random.default_rng(1).normal(size=model.rest.shape)
    v[-1] = 0
    problem = spring_step(model, 0.02, v)
    run = solver.begin(problem)
    element = run._element_batches(0).element
    term, x, W = model.terms[0], family.predicted(problem, run), run.weights[:-1]
    d = np.zeros((len(term.vertices), 2, 3))
    for _ in range(3):
        run.advance(1)
        for e in element[element >= 0]:
            ids, w = term.vertices[e], term.weights[e]
            used = np.flatnonzero((w != 0) & (W[ids] > 0))
            if len(used):
                C = w @ x[ids] - term.target[e]
                inertia = np.kron(np.diag(1 / W[ids[used]]), np.eye(3))
                A = inertia + np.kron(np.outer(w[used], w[used]), K[e])
                b = -inertia @ d[e, used].ravel() - np.kron(w[used], K[e] @ C)
                step = np.linalg.solve(A, b).reshape(-1, 3)
                d[e, used] += step
                x[ids[used]] += step
        np.testing.assert_allclose(problem.positions, x, atol=1e-12)


def test_error_vanishes_with_the_displacement():
    """d is not kept in the subspace that rotates with the element, which prevents convergence to the exact
    solution [GPBD section 3.2]."""
    error = []
    for gravity in (-1e-2, -1.0, -100.0):
        kind = supple.materials.LogNeoHookean(young=1e4, poisson=0.3)
        scene = family.clamped(supple.block((4, 2, 2), (1, 0.5, 0.5)), kind, gravity)
        truth = family.placed(scene)
        assert solve(truth, Newton(), StopCriteria(1e-9, 20, None)).ok
        problem = family.placed(scene)
        family.swept(problem, GPBD(), 200)
        moved = np.linalg.norm(truth.positions - truth.model.rest)
        error.append(np.linalg.norm(problem.positions - truth.positions) / moved)
    assert error[0] < 1e-6
    assert error[0] < error[1] < error[2]
    assert 1e-6 < error[2] < 1e-2


def test_float32_is_not_limited_by_rounding_of_the_energy():
    """Near rest, differences of ψ are rounding; a line search that relies on them would stop there."""
    kind = supple.materials.LogNeoHookean(young=1e4, poisson=0.3)
    scene = family.clamped(supple.block((4, 2, 2), (1, 0.5, 0.5)), kind, -1.0)
    truth, problem = family.placed(scene), family.placed(scene, precision="float32")
    assert solve(truth, Newton(), StopCriteria(1e-9, 20, None)).ok
    family.swept(problem, GPBD(sweep="jacobi"), 1000)
    moved = np.linalg.norm(truth.positions - truth.model.rest)
    assert np.linalg.norm(problem.positions - truth.positions) < 1e-3 * moved


@pytest.mark.parametrize("jacobi_weights", ["mass", "element"])
def test_jacobi_sweeps_conserve_momentum(jacobi_weights):
    """Each element step is that of a force: weighted by shares of the masses, or one factor for all
    corners."""
    scene = cube(supple.materials.LogNeoHookean, None, POISSON)
    model = supple.scene.build_model(scene)
    v = np.sin(3 * model.rest[:, [1, 2, 0]])
    problem = family.placed(scene, v=v, precision="float32")
    family.swept(problem, GPBD(sweep="jacobi", jacobi_weights=jacobi_weights), 20)
    moved = model.mass @ (problem.positions - model.rest) / scene.dt
    np.testing.assert_allclose(moved, model.mass @ v, rtol=1e-4)


def test_split_masses_solve_a_step_in_a_few_sweeps():
    """After three sweeps the average at each vertex, which distributes soft forces too, has done half of the
    step and one factor per element almost nothing."""
    scene = cube(supple.NeoHookean, None, 0.45, cells=6)
    model = supple.scene.build_model(scene)
    x = model.rest @ np.array([[1.1, 0.1, 0], [0, 0.95, 0], [0, 0.1, 1.0]])
    truth = family.placed(scene, x)
    family.swept(truth, GPBD(newton_steps=3), 200)
    way = np.linalg.norm(truth.positions - x)
    left = {}
    for jacobi_weights in ("mass", "vertex", "element"):
        problem = family.placed(scene, x)
        family.swept(problem, GPBD(sweep="jacobi", jacobi_weights=jacobi_weights), 3)
        left[jacobi_weights] = np.linalg.norm(problem.positions - truth.positions) / way
    assert left["mass"] < 0.2 < 0.5 < left["vertex"] < left["element"]
    assert left["element"] > 0.7


@pytest.mark.parametrize(("jacobi_weights", "error"), [("mass", 2e-3), ("element", 2e-3), ("vertex", 0.03)])
def test_jacobi_sweeps_converge_to_gauss_seidel(jacobi_weights, error):
    """Except for the average at each vertex, whose displacements are not those of forces, so that some
    remain."""
    scene = family.clamped(
        supple.block((4, 2, 2), (1, 0.5, 0.5)), supple.NeoHookean(young=1e4, poisson=0.3), -1.0
    )
    one, other = family.placed(scene), family.placed(scene)
    family.swept(one, GPBD(newton_steps=2), 100)
    family.swept(other, GPBD(sweep="jacobi", jacobi_weights=jacobi_weights), 1500)
    moved = np.linalg.norm(one.positions - one.model.rest)
    assert np.linalg.norm(other.positions - one.positions) < error * moved


def test_jacobi_sweeps_keep_tied_blocks_coupled():
    scene = family.tied(supple.materials.LogNeoHookean(young=YOUNG, poisson=POISSON), stiffness=1e5)
    model = supple.scene.build_model(scene)
    solver = GPBD(sweep="jacobi", iterations=20)
    *_, last = supple.simulate(scene, solver=solver, frames=10, precision="float32")
    assert family.gaps(model, last.positions).max() < 0.01
    assert family.jacobians(model, last.positions).min() > 0.5


# GPBD Table 5


def cube(kind, motion, poisson, cells=4, dt=0.001):
    """A cube of E = 1e5 whose ends are moved apart, together, or rotated by π in total, within 300 steps."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=dt)
    body = scene.add_solid(family.cube_of_six(cells), kind(young=1e5, poisson=poisson), density=1000)
    for end, sign in ((0.0, -1.0), (1.0, 1.0)):
        chosen = body.where(face(0, end))
        moves = {
            "stretch": supple.Translate((0.5 * sign, 0, 0), duration=300 * dt),
            "compress": supple.Translate((-0.25 * sign, 0, 0), duration=300 * dt),
            "twist": supple.Rotate((1, 0, 0), (0, 0.5, 0.5), sign * np.pi / 2, duration=300 * dt),
        }
        if motion is not None:
            scene.pin(chosen, motion=moves[motion])
        scene.attach(chosen, stiffness=1e-6)
    return scene


TABLE_5 = [
    ("stretch", 0.45, 3, 3, 600),
    ("stretch", 0.4995, 3, 5, 600),
    ("compress", 0.45, 2, 5, 600),
    ("compress", 0.4995, 20, 10, 360),
    ("twist", 0.45, 2, 2, 600),
    ("twist", 0.4995, 2, 5, 600),
]
"""Motion, Poisson's ratio, GPBD iterations and Newton steps of the log-barrier rows; steps to look at."""


@pytest.mark.parametrize(("motion", "poisson", "sweeps", "newton", "steps"), TABLE_5)
def test_cubes_are_stable_with_the_papers_iterations(motion, poisson, sweeps, newton, steps):
    """After the end of the motion, the sum of elastic and kinetic energy rises by no more than unfinished
    steps leave in them, and is lower in the end."""
    scene = cube(supple.materials.LogNeoHookean, motion, poisson, cells=6)
    model = supple.scene.build_model(scene)
    elastic, energies = family.elastic_energy(model), []
    for frame in supple.simulate(scene, solver=GPBD(newton_steps=newton, iterations=sweeps), frames=steps):
        if frame.index >= 300 and frame.index % 20 == 0:
            kinetic = 0.5 * float(np.sum(model.mass[:, None] * frame.velocities**2))
            energies.append(elastic(frame.positions) + kinetic)
    assert max(energies) <= 1.1 * energies[0]
    assert energies[-1] < energies[0]
    assert frame.report.inverted == 0
    if poisson > 0.49:
        assert family.volume(model, frame.positions) == pytest.approx(1, abs=0.03)


STARTS = pytest.mark.parametrize("start", [flattened, scrambled], ids=["flattened", "randomised"])


@STARTS
@pytest.mark.parametrize("poisson", [0.45, 0.4995])
@pytest.mark.parametrize("sweep", ["gauss_seidel", "jacobi"])
def test_inverted_cubes_with_a_barrier_recover(start, poisson, sweep):
    """GPBD Fig. 7, top: 2 iterations of 8 Newton steps with Δt = 0.01; the paper's form is Jacobi's."""
    scene = cube(supple.materials.LogNeoHookean, None, poisson, cells=6, dt=0.01)
    model = supple.scene.build_model(scene)
    x = start(model)
    assert np.mean(family.jacobians(model, x) <= 0) > 0.4
    solver = GPBD(newton_steps=8, sweep=sweep, iterations=2)
    *_, last = supple.simulate(scene, solver=solver, frames=900, initial=x, precision="float32")
    assert last.report.inverted == 0
    np.testing.assert_allclose(family.jacobians(model, last.positions), 1, atol=0.05)


@pytest.mark.parametrize("poisson", [0.3, 0.4995])
def test_flattened_cube_reaches_its_equilibrium(poisson):
    """Initial forces are infinite; the solve uses pseudo-time."""
    scene = cube(supple.materials.LogNeoHookean, None, poisson)
    scene.quasistatic = True
    model = supple.scene.build_model(scene)
    solver = GPBD(newton_steps=8, sweeps_per_step=2)
    result = supple.equilibrium(
        scene, solver=solver, initial=flattened(model), tolerance=None, max_iterations=2000
    )
    assert np.isfinite(result.report.residual)
    np.testing.assert_allclose(family.jacobians(model, result.positions), 1, atol=1e-4)


def test_other_methods_fail_from_infinite_forces():
    scene = cube(supple.materials.LogNeoHookean, None, 0.3)
    model = supple.scene.build_model(scene)
    frame = next(
        supple.simulate(scene, solver=supple.FPXPBD(iterations=2), frames=1, initial=flattened(model))
    )
    assert frame.report.outcome is supple.Outcome.FAILED


def test_inflated_elements_recover_in_one_update():
    """ψ of the log barrier is not convex beyond J = e; the local Newton must not overshoot by λ/μ there."""
    scene = supple.Scene(gravity=(0, 0, 0), quasistatic=False, dt=0.1)
    body = scene.add_solid(TET, supple.materials.LogNeoHookean(young=1e5, poisson=0.4995), density=1000)
    scene.attach(body.where([3]), stiffness=1e-6)
    for k, Q in enumerate(rotations(5)):
        x = TET.points @ (np.diag([3.0, 3.0 - 0.3 * k, 2.2]) @ Q).T
        problem = family.placed(scene, x, precision="float32")
        assert family.jacobians(problem.model, x)[0] > 10
        family.swept(problem, GPBD(newton_steps=8), 1)
        assert family.jacobians(problem.model, problem.positions)[0] == pytest.approx(1, abs=0.1)


def test_pinned_elements_next_to_inverted_ones_stay_finite():
    """Four pinned corners prevent unfolding, and must not affect other lanes of the pack."""
    scene = cube(supple.materials.LogNeoHookean, None, 0.3)
    scene.pin(scene.bodies[0].where(lambda X: X[:, 0] <= 0.5))
    model = supple.scene.build_model(scene)
    x = flattened(model)
    x[model.pinned] = model.rest[model.pinned]
    solver = GPBD(newton_steps=2, sweep="jacobi", iterations=2)
    (frame,) = supple.simulate(scene, solver=solver, frames=1, initial=x, precision="float32")
    assert np.isfinite(frame.positions).all()
    np.testing.assert_array_equal(frame.positions[model.pinned], model.rest[model.pinned])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GPBD(newton_steps=0), "newton_steps must be a whole number of at least 1, got 0"),
        (lambda: GPBD(sweep="sor"), "sweep must be 'gauss_seidel' or 'jacobi', got 'sor'"),
        (lambda: GPBD(omega=2.0), "omega must lie between 0 and 2, got 2.0"),
        (lambda: GPBD(omega=0.0), "omega must lie between 0 and 2, got 0.0"),
    ],
)
def test_options_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
