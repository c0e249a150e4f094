"""Obstacles that move fast, or deform; and where they are in files, pictures and on the live page."""

import numpy as np
import pytest

import supple
from supple.contact.outlines import obstacle_triangles
from supple.view.contacts import contact_points


def swept(thickness=0.02):
    """A thin plate that goes through where a block is, in one step."""
    scene = supple.Scene(gravity=(0, 0, 0))
    mesh = supple.block(cells=(2, 2, 2), size=(0.4, 0.4, 0.4))
    body = scene.add_solid(mesh, supple.Corotated(young=1e4, poisson=0.3), density=100)
    scene.pin(body.where(lambda X: X[:, 0] >= 0.4 - 1e-9))
    plate = supple.Box(size=(thickness, 1, 1), centre=(-0.1, 0.2, 0.2))
    scene.add_obstacle(plate, supple.Translate((0.2, 0, 0)), name="plate")
    return scene


def test_a_thin_plate_that_moves_fast_leaves_nothing_behind():
    result = supple.equilibrium(swept(), supple.PBNG(), tolerance=1e-6, distance=None)
    assert result.report.ok
    assert result.positions[:, 0].min() == pytest.approx(0.11, abs=1e-6)
    assert result.report.contact.obstacles[0].contacts == 9


def test_a_surface_that_grows_pushes_away_what_is_around_it():
    scene = supple.Scene(gravity=(0, 0, 0))
    mesh = supple.block(cells=(2, 2, 2), size=(0.4, 0.4, 0.4)).translated((0.31, -0.2, -0.2))
    body = scene.add_solid(mesh, supple.Corotated(young=1e4, poisson=0.3), density=100)
    scene.pin(body.where(lambda X: X[:, 0] >= 0.7))
    ball = supple.sphere(radius=0.3, resolution=8)
    larger = supple.TriMesh(1.2 * ball.points, ball.triangles)
    growing = supple.SurfaceSequence([ball, larger], times=[0, 1], cells=24)
    scene.add_obstacle(growing, name="ball")
    middle = int(np.linalg.norm(mesh.points - (0.31, 0, 0), axis=1).argmin())
    depths = {}
    for frame in supple.simulate(scene, supple.PBNG(), dt=0.5, frames=2, tolerance=1e-6, distance=None):
        depths[frame.time] = frame.positions[middle, 0]
        assert frame.report.contact.obstacles[0].depth < 1e-6
    cell = 0.72 / 24
    assert depths[0.5] == pytest.approx(0.33, abs=cell)
    assert depths[1.0] == pytest.approx(0.36, abs=cell)
    assert depths[1.0] - depths[0.5] > 0.02
    with pytest.raises(supple.SceneError, match="each later than the last"):
        supple.SurfaceSequence([ball, larger], times=[1, 0])
    with pytest.raises(supple.SceneError, match="Friction does not know"):
        scene.add_obstacle(growing, friction=0.1)


def test_pictures_have_obstacles_and_points_of_contact():
    scene = swept()
    result = supple.equilibrium(scene, supple.PBNG(), tolerance=1e-6, distance=None)
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


def test_files_have_obstacles_beside_bodies(tmp_path):
    scene = swept()
    frames = list(supple.simulate(scene, supple.PBNG(iterations=20), dt=0.5, frames=2))
    supple.save_frames(scene, frames, "vtu,glb,obj,npz", tmp_path)
    import pyvista

    for index, x in enumerate((-0.1, 0.0, 0.1)):
        found = pyvista.read(tmp_path / "vtu" / f"frame_{index:04d}.vtu")
        np.testing.assert_allclose(np.asarray(found.points)[27:].mean(axis=0), (x, 0.2, 0.2), atol=1e-6)
    assert (tmp_path / "obj" / "plate_0002.obj").exists()
    with np.load(tmp_path / "positions.npz") as saved:
        assert saved["positions"].shape[1] == 27, "arrays for training have bodies only"
    assert b"plate" in (tmp_path / "animation.glb").read_bytes()
