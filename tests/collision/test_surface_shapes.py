"""Closed surfaces as obstacles."""

import numpy as np
import pytest

import supple
from supple.collision import distances_to
from supple.scene.shapes.obstacle import obstacles_of


def surface_of_ball(resolution=6, radius=0.5):
    ball = supple.ball(radius, resolution)
    return supple.TriMesh(ball.points, ball.surface)


def test_distance_to_a_ball_mesh_is_that_to_a_sphere():
    scene = supple.Scene()
    scene.add_obstacle(supple.SurfaceShape(surface_of_ball(8)))
    points = np.random.default_rng(0).uniform(-0.8, 0.8, (500, 3))
    d, n, _ = distances_to(obstacles_of(scene).shapes(0.0), points)
    radius = np.linalg.norm(points, axis=1)
    near = np.abs(radius - 0.5) < 0.1
    np.testing.assert_allclose(d[near], (radius - 0.5)[near], atol=0.01)
    assert ((n * points).sum(axis=1)[near] / radius[near]).min() > 0.95
    assert np.abs(d - (radius - 0.5)).max() < 0.08, "beyond the grid the distance is roughly right"


def test_block_comes_to_rest_on_a_mesh():
    scene = supple.Scene(gravity=(0, -9.81, 0), quasistatic=False, dt=0.01, damping=0.3)
    mesh = supple.block(cells=(2, 2, 2), size=(0.5, 0.5, 0.5)).translated((-0.25, 0.51, -0.25))
    scene.add_solid(mesh, supple.Corotated(young=1e5, poisson=0.3), density=100)
    scene.add_obstacle(supple.SurfaceShape(surface_of_ball()), friction=1.0, name="ball")
    *_, frame = supple.simulate(scene, solver=supple.PBNG(iterations=20), frames=30)
    (ball,) = frame.report.contact.obstacles.each
    assert ball.max_penetration < 1e-6
    assert ball.count >= 1
    assert frame.positions[:, 1].min() > 0.4


def test_open_and_inverted_surfaces_are_refused():
    closed = surface_of_ball(2)
    scene = supple.Scene()
    with pytest.raises(
        supple.SceneError, match=r"surface of an obstacle must be closed.*edges have a triangle on one side"
    ):
        scene.add_obstacle(supple.TriMesh(closed.points, closed.triangles[1:]))
    with pytest.raises(supple.SceneError, match="inside out"):
        scene.add_obstacle(supple.TriMesh(closed.points, closed.triangles[:, ::-1]))


FILE = """
gravity = [0, -9.81, 0]
quasistatic = false
dt = 0.01

[contact]
method = "weak"

[[solid]]
mesh = { block = { cells = [1, 1, 1], size = [1, 1, 1] } }
material = { corotated = { young = 1000, poisson = 0.3 } }

[[obstacle]]
name = "floor"
shape = { plane = { point = [0, -0.1, 0] } }
friction = 0.4
motion = [{ translate = { offset = [0, 0.1, 0] } }]

[[obstacle]]
shape = { box = { size = [4, 4, 4], hollow = true } }
"""


def test_scene_files_have_obstacles(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(FILE, encoding="utf-8")
    scene = supple.load_scene(path).scene
    floor, box = scene.obstacles
    assert (floor.name, floor.friction, box.name) == ("floor", 0.4, "obstacle1")
    assert floor.shape == supple.Plane(point=(0, -0.1, 0))
    assert box.shape == supple.Box(size=(4, 4, 4), hollow=True)
    assert scene.contact == supple.Contact("weak")
    assert supple.scene.build_model(scene).obstacles.names == ("floor", "obstacle1")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("friction = 0.4", "friction = -1", "friction"),
        ('name = "floor"', 'name = "obstacle1"', "already an obstacle"),
        ("plane = { point = [0, -0.1, 0] }", "plane = {}, box = { size = [1, 1, 1] }", "exactly one"),
        ("point = [0, -0.1, 0]", "point = [0, 0.5, 0]", "begins inside obstacle 'floor'"),
        ("translate = { offset = [0, 0.1, 0] }", "scale = { factor = 2 }", "must be rigid"),
        ('method = "weak"', 'method = "sticky"', "contact.method"),
    ],
)
def test_mistakes_in_scene_files_are_named(tmp_path, old, new, message):
    path = tmp_path / "scene.toml"
    path.write_text(FILE.replace(old, new), encoding="utf-8")
    with pytest.raises(supple.scene.SceneFileError, match=message):
        supple.load_scene(path)
