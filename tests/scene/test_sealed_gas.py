"""Sealed gas as an energy of the volume: slack cushions, balloons, error estimates, motions."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.sparse import bsr_matrix

import supple
from supple.linear import Assembly, add_gas_stiffness
from supple.linear.gas_system import GasMatrix, with_gas
from supple.problem import Problem
from supple.scene import SceneError, build_model
from supple.terms import SealedGas, volume_within

AMBIENT = 101325.0


def cushion(cells=6, thickness=0.1, side=1.0):
    """Two square sheets joined at the rim, with a distance [m] in the middle."""
    mesh = supple.meshes.pillow(cells, (side, side))
    X = mesh.points.copy()
    x, z = X[:, 0] / side, X[:, 2] / side
    profile = np.sqrt(np.clip(16 * x * (1 - x) * z * (1 - z), 0, 1))
    X[:, 1] = 0.5 * thickness * np.sign(X[:, 1]) * profile
    return supple.TriMesh(X, mesh.triangles)


def sealed(mesh, amount, kind=None, thickness=1e-3, ambient=AMBIENT, **options):
    """A surface with `amount` times the gas that fills it at the ambient pressure."""
    scene = supple.Scene(gravity=(0, 0, 0))
    cloth = scene.add_cloth(
        mesh,
        kind or supple.materials.PlaneStressStVK(young=1e6, poisson=0.3),
        thickness=thickness,
        density=300.0,
    )
    scene.add_cavity(cloth, (amount - 1) * ambient, sealed=True, ambient=ambient, **options)
    return scene


def gas_of(result):
    return next(term for term in result.model.terms if isinstance(term, SealedGas))


def law(result, gamma=1.0):
    """P V^γ at the positions of a result, relative to P₀ V₀^γ."""
    gas = gas_of(result)
    V = volume_within(result.positions, gas.vertices)
    return (gas.pressure[0] + gas.ambient) * V**gamma / (gas.absolute * gas.volume**gamma)


@pytest.mark.parametrize("solver", ["hybrid", "newton", "pbng"])
@pytest.mark.parametrize(
    ("thickness", "amount"), [(0.01, 1.05), (0.01, 10.0), (0.1, 3.0), (0.5, 3.0), (0.5, 10.0)]
)
def test_slack_cushion_conserves_its_gas(solver, thickness, amount):
    """Slack sheets carry almost no pressure: the gas expands to ambient pressure."""
    scene = sealed(cushion(8, thickness), amount)
    result = supple.equilibrium(scene, solver=solver, max_iterations=2000)
    assert result.report.ok
    assert law(result) == pytest.approx(1, rel=1e-9)
    V = volume_within(result.positions, gas_of(result).vertices)
    full = amount * scene.inflations[0].volume
    if full < 0.19:  # of what two sheets of 1 m hold without being stretched
        assert full == pytest.approx(V, rel=1e-3)
    else:
        assert full > V
    evaluation = result.evaluate()
    walls = gas_of(result).pressure[0] * 2.0
    assert np.linalg.norm(evaluation.net_force, axis=1).max() < 1e-3 * max(walls, 1.0)


@pytest.mark.parametrize("side", [1e-3, 100.0])
def test_cushion_pressure_is_scale_invariant(side):
    small = supple.equilibrium(sealed(cushion(6, 0.3 * side, side), 3.0, thickness=1e-3 * side))
    one = supple.equilibrium(sealed(cushion(6, 0.3), 3.0))
    assert small.report.ok
    assert gas_of(small).pressure[0] == pytest.approx(gas_of(one).pressure[0], rel=1e-3)


@pytest.mark.parametrize("gamma", [1.0, 1.4, 0.7])
def test_work_is_the_integral_of_the_pressure(gamma):
    model = build_model(sealed(cushion(), 2.0, exponent=gamma))
    gas = model.terms[-1]
    assert gas.work_at(gas.volume) == 0
    for part in (3.0, 1.0, 0.01, 1e-3, 1e-4, -0.5):
        V, h = part * gas.volume, 1e-7 * gas.volume
        slope = (gas.work_at(V + h) - gas.work_at(V - h)) / (2 * h)
        bend = (gas.pressure_at(V + h) - gas.pressure_at(V - h)) / (2 * h)
        assert slope == pytest.approx(-gas.pressure_at(V), rel=1e-4)
        assert bend == pytest.approx(-gas.stiffness_at(V), rel=1e-3)
    V = 2 * gas.volume
    assert (gas.pressure_at(V) + AMBIENT) * V**gamma == pytest.approx(gas.absolute * gas.volume**gamma)


def test_forces_and_hessian_are_derivatives_of_the_energy():
    random = np.random.default_rng(0)
    model = build_model(sealed(cushion(4, 0.5), 2.0, exponent=1.4))
    problem = Problem(model, "float64")
    x = model.rest + 0.02 * random.standard_normal(model.rest.shape)
    way = random.standard_normal(x.shape)

    def force(at):
        problem.positions = at
        problem.balance()
        return problem.states.vectors(problem.states.net)[0].astype(float)

    def energy(at):
        problem.positions = at
        return problem.energy()

    h = 1e-6
    slope = (energy(x + h * way) - energy(x - h * way)) / (2 * h)
    assert slope == pytest.approx(-(force(x) * way).sum(), rel=1e-6)
    change = (force(x + h * way) - force(x - h * way)) / (2 * h)
    force(x)
    assembly = Assembly(problem)
    H = add_gas_stiffness(assembly, assembly.hessian("exact"))
    product = (H @ way[assembly.free].ravel()).reshape(-1, 3)
    np.testing.assert_allclose(product, -change[assembly.free], atol=1e-6 * np.abs(change).max())
    np.testing.assert_allclose(H.toarray() @ way[assembly.free].ravel(), product.ravel(), atol=1e-6)
    np.testing.assert_allclose(H.diagonal(), np.diag(H.toarray()))


@pytest.mark.parametrize("solver", ["hybrid", "newton"])
def test_balloon_balances_rubber_and_gas_law(solver):
    """p = 2 μ h/r (1/λ - 1/λ⁷) of an incompressible neo-Hookean sphere and (p + p₀) λ³ = P₀: beyond λ = 1.38
    a constant pressure would have no stable equilibrium."""
    young, radius, h, ambient, amount = 1e5, 0.5, 1e-2, 1e3, 10.0

    def rubber(s):
        return 2 * young / 3 * h / radius * (1 / s - 1 / s**7)

    stretch = brentq(lambda s: rubber(s) + ambient - amount * ambient / s**3, 1, 3)
    assert stretch > 1.5
    kind = supple.materials.PlaneStressNeoHookean(young=young, poisson=0.4999)
    result = supple.equilibrium(
        sealed(supple.meshes.sphere(radius, 6), amount, kind, h, ambient), solver=solver
    )
    assert result.report.ok
    assert result.report.error_estimate.stable
    gas = gas_of(result)
    V = volume_within(result.positions, gas.vertices)
    assert (V / gas.volume) ** (1 / 3) == pytest.approx(stretch, rel=0.005)
    assert gas.pressure[0] == pytest.approx(rubber(stretch), rel=0.02)
    assert result.lowest_modes(1)[0].eigenvalue > -1e-3  # nothing but motions of the whole


def test_airtight_cushion_has_the_volume_of_a_paper_pillow():
    """Two square sheets that hardly stretch and wrinkle freely enclose about 0.2 L³."""
    paper = supple.materials.PlaneStressStVK(young=1e9, poisson=0.3)
    result = supple.equilibrium(sealed(cushion(12, 0.02), 25.0, paper))
    assert result.report.ok
    V = volume_within(result.positions, gas_of(result).vertices)
    assert 0.18 < V < 0.25
    assert law(result) == pytest.approx(1, rel=1e-9)


def test_error_estimate_includes_the_stiffness_of_the_gas():
    def solve(**options):
        scene = sealed(cushion(6, 0.3), 2.0)
        scene.pin(scene.bodies[0].where(lambda X: X[:, 0] < 1e-9))
        return supple.equilibrium(scene, solver="pbng", **options)

    converged = solve(tolerance=1e-10)
    near = solve(max_iterations=25)
    distance = np.linalg.norm(near.positions - converged.positions, axis=1).max()
    assert distance > 1e-6
    assert near.report.error_estimate.worst.position_error_m == pytest.approx(distance, rel=0.1)


def test_error_estimate_is_accurate_where_the_gas_is_stiffest():
    """In a flat cushion the gas is far stiffer than the walls, whose error must not hide behind it."""
    scene = supple.Scene()
    wall = supple.materials.PlaneStressStVK(young=1e7, poisson=0.3)
    bending = supple.HingeBending(rigidity=1e-6)
    cloth = scene.add_cloth(supple.meshes.pillow(10, (1, 1)), wall, bending, thickness=1e-4, density=0.1)
    scene.add_cavity(cloth, 5e4, sealed=True)
    scene.pin(cloth.where(lambda X: X[:, 0] <= 0))
    result = supple.equilibrium(scene)
    limits = {"tolerance": 1e-9, "position_tolerance": 1e-9, "max_iterations": 300}
    exact = supple.equilibrium(scene, initial=result.positions, **limits)
    assert result.report.ok
    assert exact.report.ok
    error = np.linalg.norm(result.positions - exact.positions, axis=1).max()
    assert error == pytest.approx(result.report.error_estimate.position_error_m, rel=0.5)


def test_evacuated_chamber_adds_no_stiffness_to_the_preconditioner():
    """A chamber with k = 0 leaves the preconditioner as it is; the other one adds its stiffness."""
    rng = np.random.default_rng(0)
    inverse, gradients, b = rng.uniform(1, 2, 12), rng.normal(size=(2, 12)), rng.normal(size=12)
    k = np.array([0.0, 3.0])
    matrix = GasMatrix(bsr_matrix(np.diag(1 / inverse), blocksize=(3, 3)), gradients, k)
    preconditioned = with_gas(lambda r: inverse * r, matrix)(b)
    np.testing.assert_allclose(preconditioned, np.linalg.solve(matrix.toarray(), b), rtol=1e-10)


@pytest.mark.parametrize("solver", ["hybrid", "newton"])
def test_frames_of_a_motion_obey_the_gas_law(solver):
    scene = sealed(cushion(6, 0.2), 2.0)
    scene.quasistatic, scene.dt, scene.frames = False, 0.01, 4
    frames = list(supple.simulate(scene, solver=solver))
    for frame in frames:
        assert frame.report.ok
        assert law(frame) == pytest.approx(1, rel=1e-9)
    pressures = [gas_of(frame).pressure[0] for frame in frames]
    assert pressures[0] > pressures[-1]


def test_pressure_is_evaluated_from_positions():
    scene = sealed(cushion(6, 0.2), 2.0)
    x = 1.1 * scene.bodies[0].points
    evaluation = supple.evaluate(scene, x)
    assert gas_of(evaluation).pressure[0] == pytest.approx(2 * AMBIENT / 1.1**3 - AMBIENT)
    walls = scene.bodies[0].mesh.triangles
    work = (
        evaluation.internal_force - supple.evaluate(sealed(cushion(6, 0.2), 1.1**3), x).internal_force
    )  # of gas at the ambient pressure
    V = volume_within(x, walls)
    assert (work * x).sum() == pytest.approx(3 * gas_of(evaluation).pressure[0] * V, rel=1e-6)


def test_ramp_adds_gas():
    ramp = supple.loads.Ramp(times=(0, 1), fractions=(0, 1))
    scene = sealed(cushion(6, 0.5), 3.0, ramp=ramp)
    scene.dt, scene.frames = 0.5, 2
    half, full = supple.simulate(scene, solver="newton")
    assert gas_of(half).absolute == pytest.approx(2 * AMBIENT)
    assert gas_of(full).absolute == pytest.approx(3 * AMBIENT)
    for frame in (half, full):
        assert law(frame) == pytest.approx(1, rel=1e-9)


def test_gradients_are_refused():
    result = supple.equilibrium(sealed(cushion(6, 0.5), 2.0))
    with pytest.raises(Exception, match="Gradients do not support sealed chambers"):
        supple.gradient(result, np.ones_like(result.positions))


def test_chamber_without_volume_is_refused():
    flat = supple.meshes.pillow(4)
    flat = supple.TriMesh(flat.points * [1, 0, 1], flat.triangles)
    scene = supple.Scene(gravity=(0, 0, 0))
    cloth = scene.add_cloth(flat, supple.materials.PlaneStressStVK(young=1e6, poisson=0.3))
    with pytest.raises(
        SceneError, match=r"volume of \S+ m³ at rest, so the amount of gas cannot be computed"
    ):
        scene.add_cavity(cloth, 5000.0, sealed=True)
    scene.add_cavity(cloth, 5000.0)


@pytest.mark.parametrize("solver", ["hybrid", "newton", "mpbng"])
def test_gas_connects_the_walls_of_a_drum(solver):
    """Two sheets with a pinned rim share no element, but the same gas."""
    scene = sealed(cushion(6, 0.3), 2.0)
    cloth = scene.bodies[0]
    scene.pin(cloth.where(lambda X: np.abs(X[:, 1]) < 1e-9))
    upper = cloth.where(lambda X: X[:, 1] > 1e-9)
    scene.add_force(upper, (0.0, -500.0, 0.0))
    result = supple.equilibrium(scene, solver=solver, max_iterations=2000)
    assert result.report.ok
    assert law(result) == pytest.approx(1, rel=1e-9)
    rim = np.abs(cloth.points[:, 1]) < 1e-9
    assert result.evaluate().internal_force[rim, 1].sum() == pytest.approx(-500.0, rel=1e-3)
