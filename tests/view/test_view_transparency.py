"""Obstacles in pictures: framing of small near obstacles, and transparency."""

from dataclasses import replace

import numpy as np
import pytest
from view_models import RENDERERS

import supple
from supple.collision.obstacles.render_meshes import obstacle_triangles
from supple.scene import build_model
from supple.view import FIELDS
from supple.view.camera import fit_camera
from supple.view.picture import Shape, shared_view
from supple.view.renderers.drawing import make_drawing
from supple.view.renderers.transparency import CLEAR, RIM, transparent_obstacles
from supple.view.style import LIGHT


def model_with(*shapes, motion=None):
    scene = supple.Scene(gravity=(0, 0, 0))
    scene.add_solid(supple.block(2), supple.Corotated(young=1e4, poisson=0.3))
    for shape in shapes:
        scene.add_obstacle(shape, motion=motion)
    return build_model(scene)


def seen_from(model, *times):
    return shared_view(model, [Shape(model.rest, time=time) for time in times or (np.inf,)]).camera


def test_small_obstacles_near_bodies_are_in_the_picture_at_all_times():
    rise = supple.Translate((0, 0.4, 0))
    model = model_with(supple.Sphere(0.3, (0.5, 1.4, 0.5)), motion=rise)
    camera, plain = seen_from(model, 0.0, 1.0), seen_from(model_with())
    for time in (0.0, 1.0):
        points, _ = obstacle_triangles(model.obstacles, time, model.rest)
        assert np.abs(camera.project(points)[0]).max() < 1
    assert np.abs(plain.project(points)[0]).max() > 1, "it was cut off by a camera that sees the body alone"


@pytest.mark.parametrize(
    "shape",
    [
        supple.Plane((0, 1, 0), (0, -0.1, 0)),
        supple.Box((9, 0.1, 9), (0.5, -0.5, 0.5)),
        supple.Sphere(0.2, (0.5, 9, 0.5)),
    ],
    ids=["plane", "wall", "far away"],
)
def test_large_and_distant_obstacles_do_not_change_the_camera(shape):
    assert np.array_equal(seen_from(model_with(shape)).position, seen_from(model_with()).position)


def test_balls_are_clear_in_the_middle_and_have_a_rim():
    model = model_with(supple.Sphere(0.5, (3, 3, 3)))
    points, triangles = obstacle_triangles(model.obstacles, 0.0, model.rest)
    camera = fit_camera(points, 1.0)
    corners, colors = transparent_obstacles(points, triangles, (0.4, 0.4, 0.4), camera)
    assert 0.3 * len(triangles) < len(corners) < 0.6 * len(triangles), "what faces away is left out"
    off_center = np.linalg.norm(camera.project(corners.mean(axis=1))[0], axis=1)
    opacity = colors[:, 3]
    assert CLEAR <= opacity.min() < 1.1 * CLEAR
    assert opacity.max() > CLEAR + 0.7 * RIM
    assert opacity[off_center < 0.3].max() < opacity[off_center > 0.85].min()
    assert np.ptp(colors[:, 0]) > 0.1, "light falls on it"


def test_no_obstacles_give_no_triangles():
    corners, colors = transparent_obstacles(
        np.empty((0, 3)), np.empty((0, 3), int), (0, 0, 0), seen_from(model_with())
    )
    assert corners.shape == (0, 3, 3)
    assert colors.shape == (0, 4)


@pytest.mark.parametrize("kind", RENDERERS)
def test_renderers_show_transparent_obstacles(kind):
    model = model_with(supple.Sphere(0.3, (0.5, 1.4, 0.5)))
    drawing, camera = make_drawing(model, model.rest, FIELDS["displacement"], (0.0, 1.0)), seen_from(model)
    bare = replace(drawing, obstacles=(np.empty((0, 3)), np.empty((0, 3), int)))
    images = []
    for each in (drawing, bare):
        renderer = kind((320, 240), LIGHT)
        images.append(renderer.render(each, camera).astype(int))
        renderer.close()
    change = np.abs(images[0] - images[1]).max(axis=-1)
    assert 0.01 < (change > 5).mean() < 0.3
    assert change.max() < 150, "they are clear"


def ball():
    mesh = supple.ball(0.5, 4)
    return supple.TriMesh(np.add(mesh.points, 3), mesh.surface)


SHAPES = {
    "sphere": lambda: supple.Sphere(0.5, (3, 3, 3)),
    "box": lambda: supple.Box((1, 0.5, 0.7), (3, 3, 3)),
    "capsule": lambda: supple.Capsule((3, 2.5, 3), (3, 3.5, 3), 0.2),
    "cylinder": lambda: supple.Cylinder((3, 2.5, 3), (3, 3.5, 3), 0.3),
    "surface": ball,
}


@pytest.mark.parametrize("name", SHAPES)
def test_triangles_of_obstacles_are_turned_outwards(name):
    """The triangles that face the camera are the near ones."""
    model = model_with(SHAPES[name]())
    points, triangles = obstacle_triangles(model.obstacles, 0.0, model.rest)
    a, b, c = np.moveaxis(points[triangles], 1, 0)
    normal = np.cross(b - a, c - a)
    outward = np.einsum("ij,ij->i", normal, (a + b + c) / 3 - points.mean(axis=0))
    sizes = np.linalg.norm(normal, axis=1)
    assert (outward >= -1e-9)[sizes > 1e-9].all()
