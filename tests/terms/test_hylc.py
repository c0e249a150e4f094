"""Fabrics from data against their authors' values, differences and other solvers, and refusals."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from fabrics import hylc_file, invented_fabric
from lanewise import lanewise_problem
from problems import model_of, perturbed, rotations, sheet
from test_elements import free, stepped
from test_terms import check_forces, net_forces

import supple
from supple.linear.assembly.hessian import Assembly
from supple.problem import Problem
from supple.solvers import SOLVERS
from supple.terms import FabricElasticity
from supple.terms.hylc.energy import densities
from supple.terms.hylc.fabric import FabricError, fabric_of
from supple.terms.hylc.strains import HINGES, regularize_angles, strain_derivatives, strains
from supple.terms.shells.dihedral import angles

FABRICS = ("basket1", "honey1", "rib1", "satin1", "stock1")
DENSITY = 0.3


def fabric(name="invented", **options):
    return (
        fabric_of(invented_fabric(**options), name)
        if name == "invented"
        else supple.load_fabric(hylc_file(f"materials/{name}.json"))
    )


def shirt(kind=None, cells=3, size=0.05, pinned=(0, 12)):
    """A square of a fabric with slight initial curvature."""
    points, triangles = sheet(cells)
    points = size * points
    term = FabricElasticity.from_mesh(points[triangles][:, :, :2], triangles, kind or fabric(), points)
    mass = DENSITY * size**2
    return model_of(points, term, pinned=pinned, gravity=(0, 0, -10 * mass))


@pytest.fixture(scope="module")
def reference():
    return json.loads(hylc_file("reference.json").read_text())


def scaled_error(values, expected, scale):
    error, size = np.abs(values - expected) * scale, np.abs(expected) * scale
    axes = tuple(range(1, expected.ndim))
    return (error.max(axis=axes) / size.max(axis=axes)).max()


@pytest.mark.parametrize("name", ["basket", "honey"])
def test_energies_equal_those_of_the_authors(reference, name):
    kind = fabric(f"{name}1")
    samples = [s for s in reference["materials"][name]["samples"] if s["group"] not in ("rest", "flat")]
    assert len(samples) == 40
    energies = densities(kind, np.array([s["strain"] for s in samples]))
    psi, slope, curve = (np.array([s[key] for s in samples]) for key in ("psi", "grad", "hess"))
    z = np.array([*kind.scale[:4], kind.scale[3], kind.scale[4]])
    np.testing.assert_allclose(energies[0], psi, rtol=1e-12)
    assert scaled_error(energies[1], slope, z) < 1e-12
    assert scaled_error(energies[2], curve, z[:, None] * z) < 1e-9


@pytest.mark.parametrize("name", ["basket", "honey"])
def test_flat_states_agree_for_exact_derivatives(reference, name):
    """The authors' derivatives by L are artifacts at flat states; ours are the limits from both sides."""
    samples = [s for s in reference["materials"][name]["samples"] if s["group"] in ("rest", "flat")]
    psi, slope, curve = densities(fabric(f"{name}1"), np.array([s["strain"] for s in samples]))
    np.testing.assert_allclose(psi, [s["psi"] for s in samples], atol=2e-9)
    np.testing.assert_allclose(slope[:, :3], [s["grad"][:3] for s in samples], atol=1e-8)
    inner = [np.array(s["hess"])[:3, :3] for s in samples]
    np.testing.assert_allclose(curve[:, :3, :3], inner, atol=2e-7)


def test_strains_equal_those_of_the_authors(reference):
    for s in reference["strain"]["samples"]:
        x, uv, exists = np.array(s["x"])[None], np.array(s["uv"]), np.array(s["exists"], bool)[None]
        others = np.linalg.inv(uv[1:] - uv[:1]).T
        G = np.concatenate([-others.sum(axis=0, keepdims=True), others])[None]
        raw = strains(x, G, exists)[0] + [1, 0, 1, 0, 0, 0]
        np.testing.assert_allclose(raw, s["strain"], rtol=2e-12, atol=5e-12)
        first, second = strain_derivatives(x, G, exists)
        expected = np.array(s["jacobian"])
        np.testing.assert_allclose(
            first[0].reshape(6, 18) / np.abs(expected).max(axis=1, keepdims=True),
            expected / np.abs(expected).max(axis=1, keepdims=True), atol=1e-12,
        )  # fmt: skip
        if "hessian" in s:
            derivatives = second[0].transpose(0, 1, 3, 2, 4).reshape(6, 18, 18)
            np.testing.assert_allclose(derivatives, s["hessian"], atol=1e-12 * np.abs(s["hessian"]).max())


@pytest.mark.parametrize("name", ["invented", *FABRICS])
def test_derivatives_of_densities(name):
    """At strains within and beyond the knots, but at none of them."""
    kind = fabric(name)
    z = np.array([*kind.scale[:4], kind.scale[3], kind.scale[4]])
    e = np.random.default_rng(0).uniform(-0.5, 1.2, (40, 6)) * z * [1, 1, 1, 0.3, 0.3, 0.3]
    psi, slope, curve = densities(kind, e)
    size, h = np.abs(psi).max(), 1e-6
    for k in range(6):
        step = np.zeros(6)
        step[k] = h * z[k]
        (high, up, _), (low, down, _) = densities(kind, e + step), densities(kind, e - step)
        np.testing.assert_allclose((high - low) / (2 * h), slope[:, k] * z[k], atol=1e-7 * size)
        differences = (up - down) / (2 * h) * z
        smooth = np.abs(differences - curve[:, k] * z[k] * z).max(axis=1) < 1e-4 * np.abs(curve * z).max()
        assert smooth.mean() > 0.9, "but where a step crosses a knot"


def test_cylinder_is_bent_along_one_direction():
    points, triangles = sheet(12)
    term = FabricElasticity.from_mesh(points[triangles][:, :, :2], triangles, fabric(), points)
    x, y, _ = points.T
    k = 0.2
    towards = np.stack([np.sin(k * x) / k, y, (1 - np.cos(k * x)) / k], axis=1)
    strains = term.strains(towards)[term.exists.all(axis=1)]
    np.testing.assert_allclose(strains, np.tile([0, 0, 0, k, 0, 0], (len(strains), 1)), atol=2e-3)


def test_forces_are_the_derivative_of_the_energy():
    check_forces(Problem(shirt(), "float64"), amount=0.002, h=1e-8)


@pytest.mark.parametrize("kind", ["exact", "projected", "bound"])
def test_hessians(kind):
    problem = perturbed(Problem(free(shirt()), "float64"), 0.001)
    assembly = Assembly(problem)
    H = assembly.hessian(kind).toarray()
    np.testing.assert_allclose(H, H.T, atol=1e-9 * np.abs(H).max())
    if kind != "exact":
        assert np.linalg.eigvalsh(H)[0] > -1e-9 * np.abs(H).max()
        return
    direction, u = np.random.default_rng(2).normal(size=(problem.model.vertices, 3)), problem.u.copy()
    forces = []
    for h in (1e-8, -1e-8):
        problem.u[:-1, :3] = u[:-1, :3] + h * direction
        forces.append(net_forces(problem))
    slope = -(forces[0] - forces[1])[assembly.free].ravel() / 2e-8
    np.testing.assert_allclose(H @ direction[assembly.free].ravel(), slope, atol=1e-6 * np.abs(slope).max())


def folded(degrees, cells=3, size=0.05):
    """A slightly uneven square whose last third is folded over by an angle [°]."""
    model = free(shirt(cells=cells, size=size))
    x, y, z = model.rest.T
    over, turn = np.maximum(x - 2 * size / 3, 0), np.radians(degrees)
    points = np.stack([np.minimum(x, 2 * size / 3) + over * np.cos(turn), y, z + over * np.sin(turn)], axis=1)
    return model, points + 1e-5 * np.random.default_rng(1).normal(size=points.shape)


@pytest.mark.parametrize("degrees", [120, 171, 176, 179, -176])
def test_derivatives_near_closing_folds(degrees):
    model, points = folded(degrees)
    problem = Problem(model, "float64")
    (term,) = model.terms
    problem.positions = points
    assert (np.degrees(np.abs(hinge_angles(term, points))).max() > 170) == (abs(degrees) > 170)
    direction, h = np.random.default_rng(2).normal(size=points.shape), 1e-9
    assembly = Assembly(problem)
    H = assembly.hessian("exact").toarray()
    force = net_forces(problem)
    product = []
    for step in (h, -h):
        problem.positions = points + step * direction
        product.append((problem.energy(), net_forces(problem)))
    (high, up), (low, down) = product
    work = float((force * direction).sum())
    assert (low - high) / (2 * h) == pytest.approx(work, rel=1e-4)
    slope = -(up - down)[assembly.free].ravel() / (2 * h)
    product = H @ direction[assembly.free].ravel()
    np.testing.assert_allclose(product, slope, atol=2e-4 * np.abs(slope).max())


def hinge_angles(term, points):
    """Angles of all edges with two triangles [rad]."""
    hinge_values = np.stack([angles(points[term.vertices][:, list(hinge)]) for hinge in HINGES], axis=1)
    return hinge_values[term.exists]


def test_angles_are_regularized_near_closing_folds():
    """With two continuous derivatives, and without bound towards contact of the triangles."""
    ordinary = np.radians(np.linspace(-170, 170, 41))
    assert (regularize_angles(ordinary)[0] == ordinary).all()
    near = np.radians([170 - 1e-6, 170 + 1e-6])
    np.testing.assert_allclose([np.diff(part) for part in regularize_angles(near)], 0, atol=1e-4)
    shut = regularize_angles(np.radians([175.0, 179.0, 179.9, 179.99, 180.0]))[0]
    assert (np.diff(shut) > 0).all()
    assert 1e4 < shut[-1] < np.inf
    np.testing.assert_array_equal(
        regularize_angles(-near),
        [-regularize_angles(near)[0], regularize_angles(near)[1], -regularize_angles(near)[2]],
    )


@pytest.mark.parametrize("curl", [-2.5, 1.2])
def test_strongly_curling_fabrics_have_an_equilibrium(curl):
    """They fold shut and stay on their side; with angles that jump at 180° no solve would converge."""
    model = curling_sheet(fabric(curl=curl), size=0.15)
    result = supple.equilibrium(model, precision="float64", max_iterations=400)
    assert result.report.ok
    (term,) = model.terms
    degrees = np.degrees(np.abs(hinge_angles(term, result.positions)))
    assert 170 < degrees.max() < 180


def test_rigid_motions_cost_no_energy():
    model = free(shirt())
    problem = Problem(model, "float64")
    problem.positions = model.rest @ rotations(1)[0].T + [1, -2, 3]
    moved = perturbed(Problem(model, "float64"), 0.001).energy()
    assert abs(problem.energy()) < 1e-9 * moved
    assert np.abs(net_forces(problem)).max() < 1e-9


def test_pbng_finds_newtons_step():
    model = shirt()
    truth = stepped(model, SOLVERS["newton"](), 50, dt=0.005)
    moved = np.abs(truth - model.rest).max()
    assert moved > 1e-3
    positions = stepped(model, SOLVERS["pbng"](), 400, dt=0.005)
    assert np.abs(positions - truth).max() < 1e-4 * moved


@pytest.mark.parametrize("name", ["invented", *FABRICS])
@pytest.mark.parametrize("solver", ["hybrid", "pbng"])
def test_fabrics_hang_from_two_corners(name, solver):
    """The start is flat; some fabrics curl."""
    result = supple.equilibrium(
        shirt(fabric(name)), solver=solver, precision="float64", tolerance=1e-3, max_iterations=20_000
    )
    assert result.report.ok
    assert -0.09 < result.positions[:, 2].min() < -0.04


def test_curling_fabric_is_not_flat_at_rest():
    flat, curled = (
        supple.equilibrium(curling_sheet(fabric(curl=c)), precision="float64").positions[:, 2]
        for c in (0.0, 5.0)
    )
    assert np.ptp(flat) < 1e-9
    assert np.ptp(curled) > 1e-4


def curling_sheet(kind, size=0.05):
    model = shirt(kind, size=size, pinned=(0, 1, 4))
    return replace(model, force=0 * model.force)


def test_lanewise_device_equals_packs():
    """Lane by lane, as in a CUDA thread."""
    model, results = shirt(), []
    for problem in (Problem(model, "float64"), lanewise_problem(model, "float64")):
        problem.set_inertia(0.005, model.rest)
        problem.positions = model.rest + 0.002 * np.sin(300 * model.rest[:, [1, 0, 1]])
        problem.begin_step(0.0)
        supple.PBNG(acceleration="none").begin(problem).advance(5)
        results.append(problem.positions)
    np.testing.assert_allclose(results[0], results[1], atol=1e-12)


def test_element_wise_methods_refuse_fabrics():
    with pytest.raises(ValueError, match=r"xpbd does not support fabric triangles; use pbng, .*newton, gpbd"):
        stepped(shirt(), SOLVERS["xpbd"](), 1)
    with pytest.raises(ValueError, match=r"sweep='jacobi' does not support fabric triangles"):
        stepped(shirt(), supple.GPBD(sweep="jacobi"), 1)


@pytest.mark.parametrize("name", ["invented", *FABRICS])
@pytest.mark.parametrize("pinned", [(0, 12), (0, 4, 8, 12)], ids=["corners", "edge"])
def test_gpbd_finds_newtons_step(name, pinned):
    """Steps are as short as in the paper, so that element-wise methods converge."""
    model = shirt(fabric(name), pinned=pinned)
    positions = [swung(model, solver) for solver in (supple.GPBD(newton_steps=2), supple.Newton())]
    away = np.abs(positions[1] - model.rest).max()
    assert away > 1e-4
    np.testing.assert_allclose(positions[0], positions[1], atol=2e-3 * away)


def swung(model, solver, steps=3, dt=1e-3):
    """Positions after a few steps from a bent and stretched shape."""
    problem = Problem(model, "float64")
    x = model.rest + 0.001 * np.sin(200 * model.rest[:, [1, 0, 1]]) * model.free[:, None]
    v = np.zeros_like(x)
    for _ in range(steps):
        problem.positions = x + dt * v
        problem.set_inertia(dt, x + dt * v)
        run = solver.begin(problem)
        run.advance(60 if solver.name == "gpbd" else 8)
        x, v = problem.positions.copy(), (problem.positions - x) / dt
    return x


def test_gpbd_positions_are_the_sum_of_displacements():
    """x = x̃ + Σ d [GPBD eq. 6], also at borders, where a corner replaces a missing neighbor."""
    model, dt = shirt(), 1e-3
    problem = Problem(model, "float64")
    start = model.rest + 0.001 * np.sin(200 * model.rest[:, [1, 0, 1]]) * model.free[:, None]
    problem.positions = start
    problem.set_inertia(dt, start)
    run = supple.GPBD().begin(problem)
    drifted = problem.positions.copy()
    run.advance(5)
    (projection,) = run.projections
    (d,) = projection.memory
    elements = projection.elements
    ids = np.concatenate([elements.own, elements.rows.others], axis=1)
    moved = np.zeros((model.vertices + 1, 3))
    per_corner = d[0].reshape(len(ids), 6, 3, -1)
    np.add.at(moved, ids, np.moveaxis(per_corner, 2, 3))
    np.testing.assert_allclose(problem.positions - drifted, moved[:-1], atol=1e-15)
    assert np.abs(moved).max() > 1e-6


def test_gpbd_energy_never_rises():
    """½ |x - x̃|²_{W⁻¹} + E decreases in every sweep from a rough start."""
    model, dt = shirt(fabric("invented"), cells=4), 2e-3
    problem = Problem(model, "float64")
    coarse_steps = 0.002 * np.random.default_rng(0).standard_normal(model.rest.shape) * model.free[:, None]
    problem.positions = model.rest + coarse_steps
    problem.set_inertia(dt, model.rest + coarse_steps)
    run = supple.GPBD(newton_steps=3).begin(problem)
    energies = [problem.energy()]
    for _ in range(20):
        run.advance(1)
        energies.append(problem.energy())
    assert energies[-1] < energies[1] < energies[0]
    assert problem.balance().relative_residual < 0.05


def test_single_precision_is_refused():
    with pytest.raises(ValueError, match=r"fabrics need precision='float64'.*got 'float32'"):
        Problem(shirt(), "float32")


def test_flipped_uv_is_refused():
    points, triangles = sheet(2)
    with pytest.raises(ValueError, match="8 triangles have zero or negative area"):
        FabricElasticity.from_mesh(points[triangles][:, ::-1, :2], triangles, fabric(), points)


def test_fabrics_are_loaded_by_name(tmp_path, monkeypatch):
    (tmp_path / "linen.json").write_text(json.dumps(invented_fabric()))
    monkeypatch.setenv("SUPPLE_DATA", str(tmp_path))
    assert supple.load_fabric("linen").name == "linen"
    assert supple.load_fabric(tmp_path / "linen.json").density == DENSITY
    with pytest.raises(FabricError, match=r"there is no fabric 'silk' in the folder .*silk\.json"):
        supple.load_fabric("silk")
    with pytest.raises(FabricError, match="there is no file"):
        supple.load_fabric(tmp_path / "silk.json")


def broken(change):
    data = copy.deepcopy(invented_fabric())
    change(data)
    return data


MISTAKES = {
    "'density' is missing": lambda d: d.pop("density"),
    "density must be positive": lambda d: d.update(density=-1),
    "strain scale must have 5 numbers, got 3": lambda d: d.update({"strain scale": [1, 1, 1]}),
    "strain scale must be positive": lambda d: d.update({"strain scale": [1, 1, 1, 0, 1]}),
    "'coeffs' must be a table": lambda d: d.update(coeffs=[1]),
    "the 2D splines must be .* but 24 missing": lambda d: d["coeffs"]["2D"].pop(),
    "p of 1D spline 1 must have 7 numbers, got 6": lambda d: d["coeffs"]["1D"][1]["p"].pop(),
    "t of 1D spline 0 must be at least two increasing knots": lambda d: d["coeffs"]["1D"][0]["t"].reverse(),
    "mu of 2D spline 01 must be finite": lambda d: d["coeffs"]["2D"][0].update(mu=[float("nan")] * 30),
    "ext of 1D spline 4 must be 0": lambda d: d["coeffs"]["1D"][4].update(ext=1),
    "const must be numbers": lambda d: d["coeffs"].update(const="soft"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_broken_files_are_refused(what, tmp_path):
    path = tmp_path / "torn.json"
    path.write_text(json.dumps(broken(MISTAKES[what])))
    with pytest.raises(FabricError, match=f"torn.json is not a fabric file: .*{what}"):
        supple.load_fabric(path)


def test_invalid_json_is_refused(tmp_path):
    path = tmp_path / "torn.json"
    path.write_text("{")
    with pytest.raises(FabricError, match="cannot be read as JSON"):
        supple.load_fabric(path)


def woven_scene(kind, **options):
    scene = supple.Scene(gravity=(0, 0, -9.81))
    points, triangles = sheet(3)
    cloth = scene.add_cloth(supple.TriMesh(0.05 * points, triangles), kind, **options)
    scene.pin(cloth.where(lambda X: (X[:, 0] == 0) & ((X[:, 1] == 0) | (X[:, 1] > 0.0499))))
    return scene


def test_scenes_with_cloth_of_fabrics():
    """Each with its own density; two fabrics in a scene are two terms."""
    scene = woven_scene(fabric())
    result = supple.equilibrium(scene, precision="float64", tolerance=1e-3)
    assert result.report.ok
    assert -0.09 < result.positions[:, 2].min() < -0.04
    assert scene.bodies[0].density == DENSITY
    points, triangles = sheet(2)
    other = scene.add_cloth(supple.TriMesh(0.05 * points + [1, 0, 0], triangles), fabric(curl=1.0))
    scene.pin(other.where(lambda X: X[:, 0] <= 1))
    assert [type(term) for term in supple.scene.build_model(scene).terms] == [FabricElasticity] * 2
    assert "FabricMembrane" in str(supple.inspect(scene))


def test_invalid_fabric_options_are_refused():
    with pytest.raises(supple.SceneError, match="omit bending"):
        woven_scene(fabric(), bending=supple.HingeBending(1e-5))
    points, triangles = sheet(2)
    scene = supple.Scene()
    with pytest.raises(supple.SceneError, match="flat at rest"):
        scene.add_cloth(supple.TriMesh(points[:, [0, 2, 1]], triangles), fabric())
    with pytest.raises(supple.SceneError, match="turn the mesh over"):
        scene.add_cloth(supple.TriMesh(points, triangles[:, ::-1]), fabric())
