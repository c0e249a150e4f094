"""Fast and deforming obstacles, and their positions in files, pictures and on the live page."""

from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import supple
from supple.cli import app
from supple.collision.obstacles.render_meshes import obstacle_meshes, obstacle_triangles
from supple.live.viewport import BodyView
from supple.scene import build_model
from supple.scene.shapes.obstacle import obstacles_of
from supple.view.renderers.drawing import contact_points
from supple.view.renderers.surface import surface_of


def swept(thickness=0.02):
    """A thin plate that sweeps through the place of a block in one step."""
    scene = supple.Scene(gravity=(0, 0, 0))
    mesh = supple.block(cells=(2, 2, 2), size=(0.4, 0.4, 0.4))
    body = scene.add_solid(mesh, supple.Corotated(young=1e4, poisson=0.3), density=100)
    scene.pin(body.where(lambda X: X[:, 0] >= 0.4 - 1e-9))
    plate = supple.Box(size=(thickness, 1, 1), center=(-0.1, 0.2, 0.2))
    scene.add_obstacle(plate, supple.Translate((0.2, 0, 0)), name="plate")
    return scene


def test_fast_thin_plate_takes_all_vertices_along():
    result = supple.equilibrium(swept(), solver=supple.PBNG(), tolerance=1e-6, position_tolerance=None)
    assert result.report.ok
    assert result.positions[:, 0].min() == pytest.approx(0.11, abs=1e-6)
    assert result.report.contact.obstacles.each[0].count == 9


def test_growing_surface_pushes_bodies_away():
    scene = supple.Scene(gravity=(0, 0, 0))
    mesh = supple.block(cells=(2, 2, 2), size=(0.4, 0.4, 0.4)).translated((0.31, -0.2, -0.2))
    body = scene.add_solid(mesh, supple.Corotated(young=1e4, poisson=0.3), density=100)
    scene.pin(body.where(lambda X: X[:, 0] >= 0.7))
    ball = supple.meshes.sphere(radius=0.3, resolution=8)
    larger = supple.TriMesh(1.2 * ball.points, ball.triangles)
    growing = supple.SurfaceSequence([ball, larger], times=[0, 1])
    scene.add_obstacle(growing, name="ball")
    middle = int(np.linalg.norm(mesh.points - (0.31, 0, 0), axis=1).argmin())
    depths = {}
    for frame in supple.simulate(
        scene, solver=supple.PBNG(), dt=0.5, frames=2, tolerance=1e-6, position_tolerance=None
    ):
        depths[frame.time] = frame.positions[middle, 0]
        assert frame.report.contact.obstacles.each[0].max_penetration < 1e-6
    cell = 0.72 / 24
    assert depths[0.5] == pytest.approx(0.33, abs=cell)
    assert depths[1.0] == pytest.approx(0.36, abs=cell)
    assert depths[1.0] - depths[0.5] > 0.02
    with pytest.raises(supple.SceneError, match="in increasing order"):
        supple.SurfaceSequence([ball, larger], times=[1, 0])
    with pytest.raises(supple.SceneError, match="SurfaceSequence does not support friction"):
        scene.add_obstacle(growing, friction=0.1)


def test_pictures_show_obstacles_and_contact_points():
    scene = swept()
    result = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=1e-6, position_tolerance=None)
    touching = contact_points(result.model, result.positions, np.inf)
    np.testing.assert_allclose(touching[:, 0], 0.11, atol=1e-4)
    assert len(touching) == 9
    points, triangles = obstacle_triangles(result.model.obstacles, np.inf, result.positions)
    assert len(triangles) == 12
    np.testing.assert_allclose(points.mean(axis=0), (0.1, 0.2, 0.2), atol=1e-12)
    corners = points[triangles]
    outward = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    away = corners.mean(axis=1) - points.mean(axis=0)
    assert ((outward * away).sum(axis=1) > 0).all(), "counter-clockwise seen from outside"


def test_files_contain_obstacles(tmp_path):
    scene = swept()
    frames = list(supple.simulate(scene, solver=supple.PBNG(iterations=20), dt=0.5, frames=2))
    supple.io.save_frames(scene, frames, "vtu,glb,obj,npz", tmp_path)
    import pyvista

    for index, x in enumerate((-0.1, 0.0, 0.1)):
        grid = pyvista.read(tmp_path / "vtu" / f"frame_{index:04d}.vtu")
        np.testing.assert_allclose(np.asarray(grid.points)[27:].mean(axis=0), (x, 0.2, 0.2), atol=1e-6)
    assert (tmp_path / "obj" / "plate_0002.obj").exists()
    with np.load(tmp_path / "positions.npz") as saved:
        assert saved["positions"].shape[1] == 27, "arrays for training have bodies only"
    assert b"plate" in (tmp_path / "animation.glb").read_bytes()


def shifted(tmp_path):
    """File of a scene with a rotating ball that moves from x = 0 to x = 0.5 m in 0.2 s, far from a block, and
    the vertices of the ball (p, 3) [m] at times [s]."""
    ball = supple.meshes.sphere(radius=0.2, resolution=6).translated((0, 0, -1))
    meshes = [ball, ball.rotated((0, 0, 1), 0.5).translated((0.5, 0, 0))]
    for k, mesh in enumerate(meshes):
        rows = [f"v {x!r} {y!r} {z!r}" for x, y, z in mesh.points.tolist()]
        rows += [f"f {a} {b} {c}" for a, b, c in (mesh.triangles + 1).tolist()]
        (tmp_path / f"ball{k}.obj").write_text("\n".join(rows) + "\n")
    (tmp_path / "scene.toml").write_text(
        """
gravity = [0, 0, 0]
quasistatic = false
dt = 0.1
frames = 3

[[solid]]
name = "far"
mesh = { block = { cells = [2, 2, 2] , size = [0.4, 0.4, 0.4] } }
material = { corotated = { young = 1e4, poisson = 0.3 } }
density = 100

[[obstacle]]
name = "mover"
shape = { sequence = { files = ["ball0.obj", "ball1.obj"], times = [0, 0.2] } }
"""
    )
    first = supple.meshes.load_surface(tmp_path / "ball0.obj")
    last = first.rotated((0, 0, 1), 0.5).translated((0.5, 0, 0))

    def points_at(time):
        part = min(time / 0.2, 1)
        return (1 - part) * first.points + part * last.points

    return tmp_path / "scene.toml", points_at


def test_exports_and_pictures_have_the_deforming_surface_at_its_time(tmp_path):
    usd, geometry = (pytest.importorskip(f"pxr.{name}") for name in ("Usd", "UsdGeom"))
    import pyvista

    path, points_at = shifted(tmp_path)
    done = CliRunner().invoke(app, ["run", str(path), "--output", str(tmp_path / "run"), "--no-picture"])
    assert done.exit_code == 0, done.output
    run = supple.load_run(tmp_path / "run")
    supple.io.save_frames(supple.load_scene(path), run.frames, "usd,obj,vtu", tmp_path / "given")
    supple.export(tmp_path / "run", "usd,obj,vtu", tmp_path / "reopened")
    model = run.model
    for folder in (tmp_path / "given", tmp_path / "reopened"):
        stage = usd.Stage.Open(str(next(folder.glob("*.usd*"))))
        mover = next(p for p in stage.Traverse() if p.IsA(geometry.Mesh) and p.GetName() == "mover")
        for code in range(4):
            expected = points_at(0.1 * code)
            assert expected[:, 0].mean() == pytest.approx((0, 0.25, 0.5, 0.5)[code], abs=1e-9)
            points = np.array(geometry.Mesh(mover).GetPointsAttr().Get(code))
            np.testing.assert_allclose(points, expected, atol=1e-6)
            grid = pyvista.read(folder / "vtu" / f"frame_{code:04d}.vtu")
            np.testing.assert_allclose(np.asarray(grid.points)[27:], expected, atol=1e-6)
            written = pyvista.read(folder / "obj" / f"mover_{code:04d}.obj")
            assert np.asarray(written.points)[:, 0].min() == pytest.approx(expected[:, 0].min(), abs=1e-5)
            drawn, _ = obstacle_triangles(model.obstacles, 0.1 * code, model.rest)
            np.testing.assert_allclose(drawn, expected, atol=1e-9)


def test_meshes_with_different_triangles_are_exported_in_sequence():
    fine, coarse = (
        supple.meshes.sphere(radius=0.2, resolution=6),
        supple.meshes.sphere(radius=0.3, resolution=4),
    )
    scene = supple.Scene()
    scene.add_solid(supple.block((1, 1, 1)), supple.Corotated(young=1e4, poisson=0.3), density=100)
    scene.add_obstacle(supple.SurfaceSequence([fine, coarse], times=[0, 1]))
    obstacles = obstacles_of(scene)
    for time, radius in ((0.0, 0.2), (0.5, 0.2), (1.0, 0.3), (2.0, 0.3)):
        points, triangles = obstacle_triangles(obstacles, time, np.zeros((1, 3)))
        assert len(triangles) == fine.n_triangles + coarse.n_triangles
        np.testing.assert_allclose(np.linalg.norm(points, axis=1), radius, rtol=1e-9)


class Scenery:
    """Stub of the part of viser's server that draws meshes."""

    def __init__(self):
        self.scene, self.drawn = self, {}

    def add_frame(self, *arguments, **style):
        return None

    add_label = add_frame

    def add_mesh_simple(self, name, vertices, triangles, **style):
        self.drawn[name] = SimpleNamespace(vertices=vertices)
        return self.drawn[name]


def test_live_page_shows_the_deforming_surface_at_its_time(tmp_path):
    path, points_at = shifted(tmp_path)
    model = build_model(supple.load_scene(path).scene)
    server = Scenery()
    shape = SimpleNamespace(positions=model.rest)
    figure = BodyView(server, 0, surface_of(model), shape, np.zeros(3))
    visible_outlines = obstacle_meshes(model.obstacles, model.rest)
    for time in (0.0, 0.1, 0.2, 1.0):
        figure.draw_obstacles(visible_outlines, model, time)
        vertices = server.drawn["/solver1/obstacle0"].vertices
        np.testing.assert_allclose(vertices, points_at(time), atol=1e-6)


def test_an_oscillating_obstacle_needs_a_time_step():
    """Its motion has no end, so that it has no equilibrium. A block floats beside the sphere, with corners
    1.1 cm before its turning point, and is pushed."""
    scene = supple.Scene(quasistatic=False, dt=0.05, frames=4, gravity=(0, 0, 0))
    block = supple.block(1, size=(0.1, 0.1, 0.1), origin=(0.11, -0.05, -0.05))
    scene.add_solid(block, supple.NeoHookean(young=1e5, poisson=0.3), density=1000)

    def shake(points, t):
        return points + np.array([0.05 * np.sin(10 * t), 0, 0])

    scene.add_obstacle(supple.Sphere(center=(0, 0, 0), radius=0.1), motion=shake)
    *_, frame = supple.simulate(scene)
    assert frame.report.ok
    assert (frame.positions - frame.model.rest)[:, 0].min() > 0.01
    np.testing.assert_allclose(frame.model.obstacles.poses(0.2)[0].ravel()[-3:], [0.05 * np.sin(2), 0, 0])
    with np.errstate(invalid="ignore"), pytest.raises(supple.SceneError, match="in the end"):
        supple.scene.build_model(scene, quasistatic=True)
