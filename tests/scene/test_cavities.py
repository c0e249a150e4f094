"""Chambers with gas or pressure, and cables."""

import numpy as np
import pytest
from problems import face, material

import supple
from supple.problem import Problem
from supple.scene import SceneError, build_model, load_scene
from supple.scene.loads.cavities import volume_within

KIND = supple.StVK(young=2e5, poisson=0.3)


def hollow(cells=3):
    """A unit cube with a cubic cavity in its middle."""
    mesh = supple.block((cells,) * 3)
    centers = mesh.points[mesh.tets].mean(axis=1)
    return mesh.extract_cells(~(np.abs(centers - 0.5) < 1 / 6).all(axis=1))


def inside(X):
    return (np.abs(X - 0.5) < 0.2).all(axis=1)


def chamber(**options):
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(hollow(), KIND, density=1.0)
    for axis in range(3):
        scene.pin(body.where(face(axis, 0)), axes="xyz"[axis])
    scene.add_cavity(body.where(inside), **options)
    return scene


def volume_of(scene, positions):
    return volume_within(positions, scene.inflations[0].triangles)


@pytest.mark.parametrize("solver", ["newton", "pbng"])
@pytest.mark.parametrize("ambient", [1e5, 0.0])
def test_gas_keeps_p_times_v_and_acts_as_its_pressure(solver, ambient):
    scene = chamber(pressure=6e4, sealed=True, ambient=ambient)
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-6, max_iterations=4000)
    assert result.report.ok
    V, p = volume_of(scene, result.positions), float(result.model.terms[-1].pressure[0])
    assert V > 1.02 / 27
    assert (p + ambient) * V == pytest.approx((6e4 + ambient) / 27, rel=1e-5)
    reference = supple.equilibrium(chamber(pressure=p), solver=solver, tolerance=1e-6, max_iterations=4000)
    np.testing.assert_allclose(reference.positions, result.positions, atol=1e-5)


def test_chamber_pressure_acts_on_the_walls():
    scene = chamber(pressure=100.0)
    evaluation = supple.evaluate(scene, scene.bodies[0].points)
    walls = scene.bodies[0].where(inside)
    outwards = np.sign(walls.points - 0.5)
    forces = evaluation.internal_force[walls.vertices]
    assert ((forces * outwards).sum(axis=1) > 0).all()
    np.testing.assert_allclose(np.abs(forces).sum(axis=0), 2 * 100 / 9, rtol=1e-9)


def test_frames_have_the_pressure_of_their_time():
    scene = chamber(pressure=1e3, ramp=supple.loads.Ramp(times=(0, 1), fractions=(0, 1)))
    scene.dt, scene.frames = 0.5, 2
    pressures = [
        f.model.terms[-1].pressure[0] for f in supple.simulate(scene, solver="newton", tolerance=1e-6)
    ]
    assert pressures == [500.0, 1000.0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"pressure": np.nan}, "pressure"),
        ({"sealed": 1}, "sealed"),
        ({"sealed": True, "pressure": -2e5}, "absolute pressure"),
        ({"exponent": 0.0, "sealed": True}, "exponent"),
        ({"ambient": -1.0}, "ambient"),
    ],
)
def test_bad_chambers_are_refused(options, sentence):
    with pytest.raises(SceneError, match=sentence):
        chamber(**options)


def test_open_walls_are_refused():
    scene = supple.Scene()
    body = scene.add_solid(supple.block(2), KIND)
    with pytest.raises(SceneError, match=r"must be closed, and \d+ edges are open"):
        scene.add_cavity(body.where(face(0, 0)), 1e3)


@pytest.mark.parametrize("mesh", [hollow(), supple.block(2)], ids=["both surfaces", "no chamber"])
def test_outer_surface_is_refused_as_chamber(mesh):
    scene = supple.Scene()
    body = scene.add_solid(mesh, KIND)
    with pytest.raises(SceneError, match="encloses the body itself, not a chamber"):
        scene.add_cavity(body, 1e3)


EDGES = [((0, y, z), (1, y, z)) for y in (0, 1) for z in (0, 1)]


def pressed(cells=1, **options):
    """A unit cube with ν = 0 and a cable along each of its four edges in x."""
    scene = supple.Scene(gravity=(0, 0, 0), dt=0.5, frames=2)
    body = scene.add_solid(supple.block(cells), supple.StVK(young=1e3, poisson=0.0), density=1.0)
    for axis in range(3):
        scene.pin(body.where(face(axis, 0)), axes="xyz"[axis])
    for edge in EDGES:
        scene.add_cable(body, edge, **options)
    return scene


@pytest.mark.parametrize("solver", ["newton", "pbng", "xpbd"])
def test_cable_tension_compresses_a_cube(solver):
    """4 T = E λ (1 - λ²)/2 has its largest stable λ above 1/√3; each corner carries its own cable."""
    result = supple.equilibrium(pressed(tension=20.0), solver=solver, tolerance=1e-6, max_iterations=20000)
    stretch = max(z.real for z in np.roots([500, 0, -500, 80]) if abs(z.imag) < 1e-9)
    end = result.positions[:, 0] > 0.5
    np.testing.assert_allclose(result.positions[end, 0].mean(), stretch, rtol=0.02)
    if solver != "xpbd":
        np.testing.assert_allclose(result.evaluate().net_force[end, 0], 0, atol=1e-3)


@pytest.mark.parametrize("solver", ["newton", "pbd"])
def test_cable_length_limits_a_cube(solver):
    scene = pressed(length=0.9, stiffness=1e7)
    result = supple.equilibrium(scene, solver=solver, tolerance=1e-7, max_iterations=3000)
    np.testing.assert_allclose(result.positions[result.positions[:, 0] > 0.5, 0], 0.9, atol=1e-3)
    slack = supple.equilibrium(pressed(length=1.5, stiffness=1e7), solver=solver, max_iterations=100)
    np.testing.assert_allclose(slack.positions, scene.bodies[0].points, atol=1e-9)


def test_ramp_shortens_a_cable():
    scene = pressed(length=0.8, stiffness=1e7, ramp=supple.loads.Ramp(times=(0, 1), fractions=(0, 1)))
    lengths = [f.positions[:, 0].max() for f in supple.simulate(scene, solver="newton", tolerance=1e-7)]
    np.testing.assert_allclose(lengths, [0.9, 0.8], atol=1e-3)


@pytest.mark.parametrize("options", [{"tension": 3.0}, {"length": 1.5, "stiffness": 200.0}])
def test_cable_forces_and_hessian_are_derivatives_of_the_energy(options):
    random = np.random.default_rng(0)
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(2), material("stvk", young=1.0), density=1.0)
    scene.pin(body.where([0]))
    scene.add_cable(body, [(0, 0, 1), (0.5, 1, 1), (1, 0.5, 0), (0, 0.5, 0.5)], **options)
    model = build_model(scene)
    problem = Problem(model, "float64")
    x = model.rest + 0.1 * random.uniform(-1, 1, model.rest.shape)
    way = random.standard_normal(x.shape) * model.free[:, None]

    def force(at):
        problem.positions = at
        problem.balance()
        return problem.states.vectors(problem.states.net)[0].astype(float)

    def energy(at):
        problem.positions = at
        return problem.energy()

    h = 1e-5
    slope = (energy(x + h * way) - energy(x - h * way)) / (2 * h)
    assert slope == pytest.approx(-(force(x) * way).sum(), rel=1e-7)
    term = model.terms[-1]
    change = (force(x + h * way) - force(x - h * way)) / (2 * h)
    problem.positions = x
    forces = np.zeros_like(x)
    for each, elements in zip(model.terms, problem.layout.elements, strict=True):
        blocks = each.hessian_blocks(elements, problem.u, "exact", 1)
        moved = np.einsum("eabij,ebj->eai", blocks, way[each.vertices])
        np.add.at(forces, each.vertices.ravel(), moved.reshape(-1, 3))
    free = model.free
    np.testing.assert_allclose(forces[free], -change[free], atol=1e-5 * np.abs(change).max())
    assert term.ends(x).shape == (3, 2, 3)


@pytest.mark.parametrize(
    ("points", "options", "sentence"),
    [
        ([(0, 0, 0), (1, 0, 0)], {}, "either a tension"),
        ([(0, 0, 0), (1, 0, 0)], {"tension": 1.0, "length": 1.0}, "either a tension"),
        ([(0, 0, 0), (1, 0, 0)], {"tension": -1.0}, "tension"),
        ([(0, 0, 0), (1, 0, 0)], {"length": 1.0}, "needs a stiffness"),
        ([(0, 0, 0)], {"tension": 1.0}, "at least two"),
        ([(0, 0, 0), (0, 0, 0)], {"tension": 1.0}, "same nearest vertex"),
        ([(0, 0, 0), (9, 0, 0)], {"tension": 1.0}, "from the nearest vertex"),
    ],
)
def test_bad_cables_are_refused(points, options, sentence):
    scene = supple.Scene()
    body = scene.add_solid(supple.block(2), KIND)
    with pytest.raises(SceneError, match=sentence):
        scene.add_cable(body, points, **options)


def test_pbd_refuses_cable_tension():
    with pytest.raises(ValueError, match="pbd does not support cables under tension"):
        supple.equilibrium(pressed(tension=1.0), solver="pbd", max_iterations=2)


def test_scene_files_with_cavities_and_cables(tmp_path):
    path = tmp_path / "finger.toml"
    text = """
        gravity = [0, 0, 0]
        [[solid]]
        [solid.mesh]
        block = { cells = [3, 3, 3] }
        without = [{ min = [0.34, 0.34, 0.34], max = [0.66, 0.66, 0.66] }]
        [solid.material]
        stvk = { young = 2e5, poisson = 0.3 }
        [[pin]]
        where = { side = "x-" }
        [[cavity]]
        where = { box = { min = [0.3, 0.3, 0.3], max = [0.7, 0.7, 0.7] } }
        pressure = 5e4
        sealed = true
        [[cable]]
        points = [[0, 1, 0], [1, 1, 0]]
        tension = 5
        """
    path.write_text(text)
    scene = load_scene(path).scene
    assert scene.inflations[0].volume == pytest.approx(1 / 27)
    assert scene.cables[0].tension == 5
    for old, new, sentence in (
        ("[0.7, 0.7, 0.7]", "[1, 0.7, 0.7]", "must be closed"),
        ("tension = 5", "tension = 5\n length = 1", "either a tension"),
        ("0.34, 0.34, 0.34", "-1, -1, -1", "must be closed|No surface"),
    ):
        path.write_text(text.replace(old, new))
        with pytest.raises(ValueError, match=sentence):
            load_scene(path)


def test_bursting_chamber_is_reported():
    """Walls of neo-Hookean rubber have a limit pressure, beyond which they grow without bound."""

    def inflated(pressure):
        scene = supple.Scene(gravity=(0, 0, 0))
        body = scene.add_solid(hollow(), material("neo_hookean", young=1e4, poisson=0.45), density=1.0)
        for axis in range(3):
            scene.pin(body.where(face(axis, 0)), axes="xyz"[axis])
        scene.add_cavity(body.where(inside), pressure=pressure)
        return supple.equilibrium(scene)

    intact, burst = inflated(1e3), inflated(1e5)
    assert intact.report.outcome is supple.Outcome.CONVERGED
    assert burst.report.outcome is supple.Outcome.UNBOUNDED
    assert not burst.report.ok
    assert any("grown" in note for note in burst.report.notes)
    assert np.isfinite(burst.positions).all()
