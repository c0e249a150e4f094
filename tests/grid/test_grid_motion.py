"""Motions of bodies on a background grid [PXPBD section 5.5]."""

import numpy as np
import pytest
from typer.testing import CliRunner

import supple
from supple.cli import app
from supple.live.simulation import Simulation

SOFT = supple.Corotated(young=1e4, poisson=0.3)
BLENDED = supple.BPXPBD(zeta=0.5, iterations=20)


def falling(gap=0.1, contact=None, count=1, **options):
    """Stacked blocks above a plane."""
    scene = supple.Scene(quasistatic=False, dt=0.01, contact=contact or supple.Contact("grid"), **options)
    for k in range(count):
        mesh = supple.block(cells=(2, 2, 2), size=(1, 1, 1)).translated((0.1 * k, gap + 1.2 * k, 0.07 * k))
        scene.add_solid(mesh, SOFT, density=100)
    return scene


def free(velocities, **options):
    scene = falling(gravity=(0, 0, 0), **options)
    return scene, velocities(scene.bodies[0].points)


def test_free_fall_follows_backward_euler():
    scene = falling()
    frames = list(supple.simulate(scene, solver=BLENDED, frames=3))
    v = -9.81 * 0.01 * np.arange(1, 4)
    for frame, speed in zip(frames, v, strict=True):
        np.testing.assert_allclose(frame.velocities, np.broadcast_to([0, speed, 0], (27, 3)), atol=1e-9)
    np.testing.assert_allclose(
        frames[-1].positions - scene.bodies[0].points, [[0, 0.01 * v.sum(), 0]] * 27, atol=1e-9
    )
    assert "on a grid of" in frames[-1].report.notes[-1]


@pytest.mark.parametrize("solver", [BLENDED, supple.Newton()], ids=lambda s: s.name)
def test_momentum_is_conserved(solver):
    """Linear momentum is exact to rounding for balanced methods, and always for blending, whose displacements
    come from cancelling forces; angular momentum decreases by backward Euler's damping."""
    scene, v = free(lambda x: (x - 0.5) @ np.array([[0, -3.0, 0.5], [3, 0.4, 0], [-0.5, 0, 0]]).T + (1, 0, 0))
    mass = supple.scene.build_model(scene).mass
    began = mass @ v, mass @ np.cross(scene.bodies[0].points, v)
    options = {"tolerance": 1e-10} if isinstance(solver, supple.Newton) else {}
    for frame in supple.simulate(scene, solver=solver, frames=5, velocities=v, **options):
        np.testing.assert_allclose(mass @ frame.velocities, began[0], atol=1e-8 * mass.sum())
        rotation = mass @ np.cross(frame.positions, frame.velocities)
    assert np.linalg.norm(rotation - began[1]) < 0.15 * np.linalg.norm(began[1])


def test_displacement_of_a_step_is_limited_by_the_cell_size():
    scene, v = free(lambda x: np.tile([20.0, 0, 0], (len(x), 1)), contact=supple.Contact("grid", spacing=0.4))
    (frame,) = supple.simulate(scene, solver=BLENDED, frames=1, velocities=v)
    assert frame.report.notes[-1].startswith("2 steps"), "20 m/s for 10 ms are half a cell"
    np.testing.assert_allclose(frame.positions[:, 0] - scene.bodies[0].points[:, 0], 0.2, atol=1e-9)


@pytest.mark.parametrize(
    "solver", [BLENDED, supple.Newton(), supple.PBNG(iterations=20)], ids=lambda s: s.name
)
def test_body_lands_on_a_plane(solver):
    """No vertex penetrates the plane, which finally carries the weight."""
    scene = falling(gap=0.05, damping=0.2)
    scene.add_obstacle(supple.Plane(), name="floor")
    options = {"tolerance": 1e-5} if isinstance(solver, supple.Newton) else {}
    for frame in supple.simulate(scene, solver=solver, frames=40, **options):
        assert frame.positions[:, 1].min() > -1e-9
        assert frame.report.contact.obstacles.max_penetration < 1e-9
    assert frame.positions[:, 1].min() < 0.01
    (obstacle,) = frame.report.contact.obstacles.each
    assert obstacle.force[1] == pytest.approx(-981, rel=0.3)
    np.testing.assert_allclose(
        frame.report.contact.obstacles.forces["solid0"], -np.array(obstacle.force), atol=1e-9
    )
    assert not frame.report.inverted


def test_friction_on_a_slope():
    """Sufficient friction at nodes holds a block; without it, the block slides."""
    tilt = np.radians(20)
    away = {}
    for mu in (0.0, 0.6):
        scene = falling(gap=0.0, gravity=(9.81 * np.sin(tilt), -9.81 * np.cos(tilt), 0), damping=0.05)
        scene.add_obstacle(supple.Plane(), friction=mu)
        *_, frame = supple.simulate(scene, solver=BLENDED, frames=15)
        moved = frame.positions - scene.bodies[0].points
        away[mu] = moved[scene.bodies[0].points[:, 1] <= 0, 0].mean()
    assert away[0.6] < 0.1 * away[0.0]


def test_bodies_on_one_grid_do_not_pass_each_other():
    """No vertex of a falling body ends inside the other."""
    scene = falling(gap=0.02, count=2, damping=0.01)
    scene.add_obstacle(supple.Plane())
    low, high = scene.bodies
    for frame in supple.simulate(scene, solver=BLENDED, frames=50):
        for one, other in ((low, high), (high, low)):
            assert not inside(frame.positions_of(one), frame.positions_of(other), other.mesh.cells)
    assert frame.positions_of(high)[:, 1].min() < frame.positions_of(low)[:, 1].max() + 1.0, "they have met"


def inside(points, corners, cells):
    """True if any point is in one of the tetrahedra."""
    a = corners[cells]
    edges = np.swapaxes(a[:, 1:] - a[:, :1], 1, 2)
    part = np.linalg.solve(edges[None], (points[:, None] - a[None, :, 0])[..., None])[..., 0]
    return bool(((part > 1e-9).all(axis=2) & (part.sum(axis=2) < 1 - 1e-9)).any())


def test_pins_reach_their_targets():
    scene = falling(gravity=(0, 0, 0), contact=supple.Contact("grid", spacing=0.3))
    (body,) = scene.bodies
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    turn = supple.Rotate(axis=(1, 0, 0), center=(1, 0.6, 0.5), angle=0.5, duration=0.1)
    ends = body.where(lambda X: X[:, 0] >= 1)
    scene.pin(ends, motion=turn)
    *_, frame = supple.simulate(scene, solver=BLENDED, frames=10)
    np.testing.assert_allclose(frame.positions[ends.vertices], turn(ends.points, 0.1), atol=1e-12)
    assert np.abs(frame.positions - body.points).max() > 0.2


def test_motion_resumed_from_state_is_identical():
    scene = falling(gap=0.02)
    scene.add_obstacle(supple.Plane())
    uninterrupted = list(supple.simulate(scene, solver=BLENDED, frames=6))
    rest = list(
        supple.simulate(scene, solver=BLENDED, frames=6, initial=uninterrupted[2].state, first_frame=4)
    )
    for one, other in zip(uninterrupted[3:], rest, strict=True):
        np.testing.assert_array_equal(one.positions, other.positions)
        np.testing.assert_array_equal(one.velocities, other.velocities)


def test_unsupported_scenes_are_refused():
    scene = falling()
    with pytest.raises(supple.SceneError, match="needs a motion"):
        supple.equilibrium(scene)
    cloth = supple.Scene(quasistatic=False, contact="grid")
    cloth.add_cloth(supple.sheet(2), supple.materials.PlaneStressStVK(young=1e5, poisson=0.3))
    with pytest.raises(
        supple.SceneError,
        match=r"supports only solids without further features, and the scene has .*triangles",
    ):
        list(supple.simulate(cloth, frames=1))
    scene.pin(scene.bodies[0].where(lambda X: X[:, 1] < 0.2), axes="y")
    with pytest.raises(supple.SceneError, match="pins along some directions"):
        list(supple.simulate(scene, frames=1))
    slowed = supple.Scene(quasistatic=False, contact="grid")
    kind = supple.Corotated(young=1e4, poisson=0.3)
    slowed.add_solid(supple.block(1), kind, viscosity=[supple.Rayleigh(mass_factor=2.0)])
    with pytest.raises(supple.SceneError, match="damping proportional to the mass"):
        list(supple.simulate(slowed, frames=1))
    with pytest.raises(supple.SceneError, match="cfl of contact must be greater than 0"):
        supple.Contact("grid", cfl=0)


FILE = """
quasistatic = false
dt = 0.01
frames = 3

[[solid]]
mesh = { block = { cells = [2, 2, 2], size = [1, 1, 1] } }
material = { corotated = { young = 1e4, poisson = 0.3 } }
density = 100

[[obstacle]]
shape = { plane = {} }

[contact]
method = "grid"
spacing = 0.4

[solver]
method = "bpxpbd"
zeta = 0.5
iterations = 10
"""


def test_scene_files_select_grid_contact(tmp_path):
    path = tmp_path / "fall.toml"
    path.write_text(FILE)
    file = supple.load_scene(path)
    assert file.scene.contact == supple.Contact("grid", spacing=0.4)
    *_, frame = supple.simulate(file)
    assert "on a grid" in frame.report.notes[-1]


def test_saved_frames_evaluate_as_the_motion(tmp_path):
    """Forces are those of the mesh, and inertia is that of nodes."""
    path = tmp_path / "fall.toml"
    path.write_text(FILE)
    arguments = ["run", str(path), "--output", str(tmp_path / "out"), "--no-picture", "--quiet"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    saved = supple.load_run(tmp_path / "out")
    for frame in supple.simulate(supple.load_scene(path)):
        one, other = saved.evaluate(frame.index), frame.evaluate()
        np.testing.assert_allclose(one.net_force, other.net_force, atol=1e-9 * np.abs(other.net_force).max())
        assert one.energy == pytest.approx(other.energy)


def stiff(floor):
    """A bar on which sweeps alone do not converge, pinned at one end or on the floor."""
    scene = supple.Scene(quasistatic=False, dt=0.02, contact=supple.Contact("grid", spacing=0.1))
    steel = supple.StableNeoHookean(young=1e7, poisson=0.3)
    body = scene.add_solid(supple.block((4, 1, 1), size=(1, 0.2, 0.2)), steel, density=1000)
    if floor:
        scene.add_obstacle(supple.Plane(point=(0, -0.001, 0)))
    else:
        scene.pin(body.where(lambda X: X[:, 0] <= 0))
    return scene


@pytest.mark.parametrize(("floor", "precision"), [(False, "float64"), (False, "float32"), (True, "float64")])
def test_default_solver_converges_to_newtons_motion(floor, precision):
    tolerance = {"float64": 1e-10, "float32": 1e-3}[precision]
    begin = supple.Hybrid(max_predicted_sweeps=0 if precision == "float32" else 250)
    (frame,) = supple.simulate(stiff(floor), solver=begin, frames=1, tolerance=tolerance, precision=precision)
    assert frame.report.ok
    assert any("Newton step" in note for note in frame.report.notes)
    (exact,) = supple.simulate(stiff(floor), solver="newton", frames=1, tolerance=1e-10)
    moved = np.abs(exact.positions - supple.scene.build_model(stiff(floor)).rest).max()
    np.testing.assert_allclose(frame.positions, exact.positions, atol=max(1e-9, 0.1 * tolerance) * moved)


def test_vertex_only_features_are_refused(tmp_path):
    """Rules of second order, comparisons, gradients and the live page."""
    for rule in ("bdf2", "trapezoidal"):
        with pytest.raises(ValueError, match=f"integrator='{rule}' does not support contact='grid'"):
            list(supple.simulate(falling(integrator=rule), solver=BLENDED, frames=1))
    with pytest.raises(ValueError, match="compare does not support contact="):
        supple.compare(falling(), ["newton"])
    (frame,) = supple.simulate(falling(), solver=BLENDED, frames=1)
    with pytest.raises(supple.gradients.NoGradientError, match="not support contact="):
        supple.gradient(frame, frame.positions)
    with pytest.raises(supple.gradients.NoGradientError, match="not support contact="):
        supple.gradients.motion_gradient(falling(), lambda k, x: x, solver=BLENDED, frames=1)
    path = tmp_path / "fall.toml"
    path.write_text(FILE)
    with pytest.raises(supple.SceneError, match="the live page does not support contact="):
        Simulation(supple.load_scene(path))


def test_mesh_coarser_than_its_grid_is_reported(caplog, tmp_path):
    def of(cells, **options):
        scene = falling(count=1, contact=supple.Contact("grid", **options))
        mesh = supple.block(cells=cells, size=(1, 1, 1)).translated((0.1, 1.2, 0.07))
        scene.add_solid(mesh, SOFT, density=100, name="fine")
        return scene

    scene = of(8)
    next(supple.simulate(scene, solver=BLENDED, frames=1))
    (message,) = caplog.messages
    assert "'solid0' has edges of 0.569 m, and the cells of the grid are" in message
    assert supple.inspect(scene)["open_on_grid"] == [message.removesuffix(".")]
    caplog.clear()
    for similar_scene in (of(2), of(8, spacing=0.57), falling(contact=supple.Contact("grid", spacing=0.1))):
        assert not supple.inspect(similar_scene)["open_on_grid"], (
            "nobody else is there, or cells are as wide as edges"
        )
        next(supple.simulate(similar_scene, solver=BLENDED, frames=1))
    assert not caplog.messages
