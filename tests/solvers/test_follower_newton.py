"""Large follower tractions: equilibria, error estimates, and the load stiffness."""

import numpy as np
import pytest
from problems import face
from scipy.integrate import solve_ivp

import supple
from supple.linear import Assembly, FollowerSystem
from supple.linear.follower import gmres, load_stiffness
from supple.problem import Problem
from supple.scene import build_model
from supple.solvers.newton_methods.error_estimate import estimate_error

YOUNG, POISSON = 1e5, 0.3


def cantilever(q, cells=(30, 3, 3), length=10.0, kind=None, both_sides=False, ramp=None):
    """A bar of unit cross-section pinned at x = 0 under a normal traction with q = t L³/EI on its upper side,
    or half of that on the upper and half on the lower one."""
    scene = supple.Scene(gravity=(0, 0, 0))
    kind = kind or supple.Corotated(young=YOUNG, poisson=POISSON)
    bar = scene.add_solid(supple.block(cells, size=(length, 1, 1)), kind, density=1.0)
    scene.pin(bar.where(face(0, 0)))
    traction = q * YOUNG / 12 / length**3
    share = 0.5 if both_sides else 1.0
    scene.add_traction(bar.where(face(1, 1)), -share * traction, ramp, following=True)
    if both_sides:
        scene.add_traction(bar.where(face(1, 0)), share * traction, ramp, following=True)
    return scene, bar


def tip_of(bar, result, length=10.0):
    return result.positions[bar.where(face(0, length)).indices].mean(axis=0)


def elastica(q):
    """Tip (x, y) of an inextensible cantilever with L = EI = 1 under a load q per length that stays normal:
    an initial value problem from the force-free tip."""

    def rates(_, state):
        angle, moment, fx, fy = state[2:]
        t, n = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
        return [*t, -moment, -(t[0] * fy - t[1] * fx), *(q * n)]

    root = solve_ivp(rates, (0, 1), np.zeros(6), rtol=1e-10, atol=1e-12).y[:, -1]
    turn = np.pi - root[2]  # the tangent at the root points to the tip along +x
    Q = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    return Q @ -root[:2]


def test_slender_bar_bends_as_the_elastica():
    """The bending stiffness is that of the mesh under a small load, w = q L⁴/8EI."""
    length, cells = 20.0, (60, 2, 2)
    mild = supple.equilibrium(cantilever(0.01, cells, length, both_sides=True)[0], tolerance=1e-9)
    scene, bar = cantilever(0.01, cells, length, both_sides=True)
    softness = -(tip_of(bar, mild, length)[1] - 0.5) / length / (0.01 / 8)
    assert 0.5 < softness < 1.1
    for q in (6.0, 18.0, 30.0):
        scene, bar = cantilever(q / softness, cells, length, both_sides=True)
        result = supple.equilibrium(scene)
        assert result.report.outcome is supple.Outcome.CONVERGED
        assert result.report.iterations < 200
        np.testing.assert_allclose(
            tip_of(bar, result, length)[:2] / length - (0, 0.025), elastica(q), atol=0.02
        )


def test_elastica_under_a_small_load_is_a_linear_beam():
    np.testing.assert_allclose(elastica(1e-3), (1.0, -1e-3 / 8), atol=1e-7)


class Independent:
    """StVK bar under pressure on its upper side, with forces by NumPy and a tangent by differences."""

    def __init__(self, scene, bar, pressure):
        self.X, self.cells = bar.points, bar.mesh.cells
        upper = face(1, 1)(self.X)
        surface = bar.mesh.surface
        self.top, self.pressure = surface[upper[surface].all(axis=1)], pressure
        self.free = np.repeat(~face(0, 0)(self.X), 3)
        self.inverse = np.linalg.inv(self.edges(self.X))
        self.volume = 1 / 6 / np.abs(np.linalg.det(self.inverse))
        self.mu = YOUNG / 2 / (1 + POISSON)
        self.lam = YOUNG * POISSON / (1 + POISSON) / (1 - 2 * POISSON)

    def edges(self, x):
        corners = x[self.cells]
        return (corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1)

    def residual(self, x, part):
        F = self.edges(x) @ self.inverse
        E = 0.5 * (F.transpose(0, 2, 1) @ F - np.eye(3))
        S = 2 * self.mu * E + self.lam * np.trace(E, axis1=1, axis2=2)[:, None, None] * np.eye(3)
        H = -self.volume[:, None, None] * (F @ S @ self.inverse.transpose(0, 2, 1))
        f = np.zeros_like(x)
        for k in range(3):
            np.add.at(f, self.cells[:, k + 1], H[:, :, k])
        np.add.at(f, self.cells[:, 0], -H.sum(axis=2))
        a, b, c = (x[self.top[:, k]] for k in range(3))
        force = -part * self.pressure * np.cross(b - a, c - a) / 6
        for k in range(3):
            np.add.at(f, self.top[:, k], force)
        return f.ravel()[self.free]

    def equilibrium(self, steps=24, h=1e-6):
        x, n = self.X.copy(), int(self.free.sum())
        free_indices = np.flatnonzero(self.free)
        for part in np.linspace(0, 1, steps + 1)[1:]:
            for _ in range(12):
                r, J = self.residual(x, part), np.empty((n, n))
                for column, k in enumerate(free_indices):
                    forward, back = x.copy(), x.copy()
                    forward.ravel()[k] += h
                    back.ravel()[k] -= h
                    J[:, column] = (self.residual(forward, part) - self.residual(back, part)) / (2 * h)
                d = np.linalg.solve(J, -r)
                x.ravel()[free_indices] += d
                if np.abs(d).max() < 1e-7:
                    break
            else:
                raise AssertionError(f"no equilibrium at {part} of the load")
        return x


@pytest.mark.parametrize("solver", ["hybrid", "newton"])
def test_equilibrium_equals_an_independent_load_stepping(solver):
    kind = supple.StVK(young=YOUNG, poisson=POISSON)
    scene, bar = cantilever(30.0, (8, 1, 1), kind=kind)
    x = Independent(scene, bar, 30.0 * YOUNG / 12 / 10**3).equilibrium()
    assert np.abs(x - bar.points).max() > 5
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-8)
    assert result.report.outcome is supple.Outcome.CONVERGED
    np.testing.assert_allclose(result.positions, x, atol=1e-4)


@pytest.mark.parametrize("q", [2.4, 12.0, 18.0, 40.0])
def test_error_estimates_are_within_a_factor_of_two(q):
    scene, _ = cantilever(q)
    strict = supple.equilibrium(scene, tolerance=1e-10, position_tolerance=1e-9)
    assert strict.report.outcome is supple.Outcome.CONVERGED
    cases = [
        (None, {}),
        ("newton", {}),
        (None, {"precision": "float32"}),
        (None, {"precision": "float32", "tolerance": 1e-3, "position_tolerance": 0.9}),
        ("newton", {"tolerance": 1e-2, "position_tolerance": 0.9}),
    ]
    for solver, options in cases:
        result = supple.equilibrium(scene, solver=solver, **options)
        assert result.report.outcome is supple.Outcome.CONVERGED
        true = np.linalg.norm(result.positions - strict.positions, axis=1).max()
        assert 0.5 < result.report.error_estimate.worst.position_error_m / true < 2


def test_sweeps_far_from_the_equilibrium_report_their_distance():
    scene, _ = cantilever(12.0)
    strict = supple.equilibrium(scene, tolerance=1e-8)
    report = (swept := supple.equilibrium(scene, solver="pbng", tolerance=1e-3, max_iterations=500)).report
    true = np.linalg.norm(swept.positions - strict.positions, axis=1).max()
    assert true > 1
    assert report.outcome is not supple.Outcome.CONVERGED
    assert report.error_estimate.worst.position_error_m > 0.3 * true


def turned_problem(axes=False):
    """A problem at random positions, optionally with a vertex or face that moves in a plane of symmetry."""
    scene = supple.Scene(gravity=(0, 0, 0))
    block = scene.add_solid(supple.block(2), supple.Corotated(young=YOUNG, poisson=POISSON))
    scene.pin(block.where(face(0, 0)), axes="x") if axes else scene.pin(block.where(face(0, 0)))
    scene.add_traction(block.where(face(1, 1)), (300.0, -200.0, 100.0), following=True)
    problem = Problem(build_model(scene), "float64")
    problem.begin_step(np.inf)
    noise = 0.1 * np.random.default_rng(0).normal(size=problem.positions.shape)
    problem.positions = problem.model.rest + problem.model.unconstrained(noise) * problem.model.free[:, None]
    problem.follower_loads.sync()
    return problem


@pytest.mark.parametrize("axes", [False, True])
def test_tangent_is_the_derivative_of_all_forces(axes):
    problem, h = turned_problem(axes), 1e-6
    assembly = Assembly(problem)
    T = (assembly.hessian("exact") - load_stiffness(assembly)).toarray()
    x, free = problem.positions.copy(), problem.model.free
    rng = np.random.default_rng(1)
    for _ in range(5):
        way = problem.model.unconstrained(rng.normal(size=x.shape)) * free[:, None]
        forces = []
        for sign in (1, -1):
            problem.positions = x + sign * h * way
            problem.follower_loads.sync()
            problem.balance()
            forces.append(assembly.unconstrained(assembly.restrict(problem.states.net)))
        change = -(forces[0] - forces[1]) / (2 * h)
        np.testing.assert_allclose(T @ way[assembly.free].ravel(), change, atol=1e-5 * np.abs(change).max())


def test_partial_load_has_partial_forces_and_stiffness():
    problem = turned_problem()
    assembly, force = Assembly(problem), problem.model.terms[-1].force
    K = load_stiffness(assembly).toarray()
    problem.follower_loads.fraction = 0.25
    problem.follower_loads.sync()
    np.testing.assert_allclose(problem.model.terms[-1].force, 0.25 * force)
    np.testing.assert_allclose(load_stiffness(assembly).toarray(), 0.25 * K)


def test_gmres_and_factorization_agree():
    problem = turned_problem()
    problem.balance()
    assembly = Assembly(problem)
    system, b = FollowerSystem(assembly), assembly.restrict(problem.states.net)
    exact = np.linalg.solve(system.matrix.toarray(), b)
    np.testing.assert_allclose(system.solve(b, 1e-10, 1000).x, exact, rtol=1e-6, atol=1e-8)
    solution = system.solve(b, 1e-30, 5)  # GMRES fails within 5 iterations
    np.testing.assert_allclose(solution.x, exact, rtol=1e-9, atol=1e-12)


def test_gmres_stops_at_its_iteration_limit():
    rng = np.random.default_rng(0)
    T, b = rng.normal(size=(200, 200)), rng.normal(size=200)
    _, iterations, left = gmres(T, b, lambda v: v, 1e-8, 7)
    assert iterations == 7
    assert 0 < left <= 1


@pytest.mark.parametrize("solver", ["hybrid", "newton"])
def test_load_without_equilibrium_ends(solver):
    """The pressure exceeds the maximum that the block resists, (2 μ + 3 λ) ln(l)/l³."""
    scene = supple.Scene(gravity=(0, 0, 0))
    block = scene.add_solid(supple.block(2), supple.materials.Hencky(young=YOUNG, poisson=POISSON))
    for axis in range(3):
        scene.pin(block.where(face(axis, 0)), axes="xyz"[axis])
    scene.add_traction(block, 3 * YOUNG, following=True)
    report = supple.equilibrium(scene, solver=solver).report
    assert report.outcome is not supple.Outcome.CONVERGED
    assert report.iterations < 10_000


@pytest.mark.parametrize("pressure", [-3e4, -3e5])
@pytest.mark.parametrize("solver", ["hybrid", "newton"])
def test_large_external_pressure(pressure, solver):
    """Also where sweeps under fixed forces invert elements."""
    scene, _ = pressed(pressure)
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-6)
    assert result.report.outcome is supple.Outcome.CONVERGED
    np.testing.assert_allclose(np.ptp(result.positions, axis=0), stretch_under(pressure), rtol=1e-4)


def pressed(pressure, constrained=True, cells=4):
    scene = supple.Scene(gravity=(0, 0, 0))
    block = scene.add_solid(supple.block(cells), supple.StVK(young=YOUNG, poisson=POISSON))
    for axis in range(3) if constrained else ():
        scene.pin(block.where(face(axis, 0)), axes="xyz"[axis])
    scene.add_traction(block, pressure, following=True)
    return scene, block


def stretch_under(pressure):
    """l with (3 λ + 2 μ) (l² - 1)/2 = p l."""
    bulk = YOUNG / (1 - 2 * POISSON)
    return (pressure + np.sqrt(pressure**2 + bulk**2)) / bulk


@pytest.mark.parametrize("constrained", [False, True])
def test_pressure_on_a_closed_surface_of_a_free_body(constrained):
    scene, _ = pressed(2e4, constrained, cells=2)
    for solver in ("hybrid", "newton"):
        result = supple.equilibrium(scene, solver=solver, tolerance=1e-6)
        assert result.report.outcome is supple.Outcome.CONVERGED
        np.testing.assert_allclose(np.ptp(result.positions, axis=0), stretch_under(2e4), rtol=1e-4)


def test_motions_are_independent_of_the_load_stiffness():
    positions = []
    for solver in ("hybrid", "newton", "pbng"):
        scene, _ = cantilever(20.0, (12, 1, 1))
        scene.quasistatic, scene.dt, scene.frames = False, 0.05, 8
        frames = list(supple.simulate(scene, solver=solver, tolerance=1e-7, max_iterations=5000))
        assert all(frame.report.ok for frame in frames)
        positions.append(frames[-1].positions)
    assert np.abs(positions[0] - build_model(scene).rest).max() > 1
    np.testing.assert_allclose(positions[1], positions[0], atol=1e-4)
    np.testing.assert_allclose(positions[2], positions[0], atol=1e-4)


def test_frames_under_a_growing_load_reach_the_same_equilibrium():
    scene, _ = cantilever(18.0, (12, 2, 2), ramp=supple.loads.Ramp(times=(0, 1), fractions=(0, 1)))
    scene.quasistatic, scene.dt, scene.frames = True, 0.25, 4
    frames = list(supple.simulate(scene, tolerance=1e-7))
    full = supple.equilibrium(cantilever(18.0, (12, 2, 2))[0], tolerance=1e-7)
    np.testing.assert_allclose(frames[-1].positions, full.positions, atol=1e-4)


def test_error_estimate_next_to_an_obstacle_includes_the_load_stiffness():
    scene, _ = cantilever(6.0, (8, 1, 1))
    scene.add_obstacle(supple.Plane((0, -1.0, 0), (0, 1, 0)))
    problem = Problem(build_model(scene), "float64")
    problem.begin_step(np.inf)
    rest = estimate_error(problem).worst.position_error_m
    scene, _ = cantilever(6.0, (8, 1, 1))
    reference = Problem(build_model(scene), "float64")
    reference.begin_step(np.inf)
    assert rest == pytest.approx(estimate_error(reference).worst.position_error_m, rel=0.05)
