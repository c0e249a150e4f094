"""Distances to the shapes of obstacles against independent closest points."""

import numpy as np
import pytest

import supple
from supple.collision import distances_to
from supple.scene.shapes.obstacle import obstacles_of

TURNED = {"axis": (1, 2, -0.5), "angle": 0.7}

SHAPES = {
    "plane": supple.Plane(normal=(1, 2, 3), point=(0.1, 0.2, -0.1)),
    "box": supple.Box(size=(0.8, 0.5, 0.3), center=(0.1, 0, 0.2), **TURNED),
    "sphere": supple.Sphere(radius=0.4, center=(0.1, -0.2, 0)),
    "capsule": supple.Capsule(point0=(-0.3, 0, 0.1), point1=(0.2, 0.4, 0), radius=0.25),
    "cylinder": supple.Cylinder(point0=(-0.3, 0, 0.1), point1=(0.2, 0.4, 0), radius=0.25),
    "hollow sphere": supple.Sphere(radius=0.9, hollow=True),
    "hollow cylinder": supple.Cylinder(point0=(0, -1, 0), point1=(0, 1, 0.2), radius=0.8, hollow=True),
    "hollow box": supple.Box(size=(1.6, 1.8, 1.2), hollow=True, **TURNED),
}


def shapes_of(shape, motion=None, time=0.0):
    scene = supple.Scene()
    scene.add_obstacle(shape, motion)
    return obstacles_of(scene).shapes(time)


def distance(shape, points):
    return distances_to(shapes_of(shape), points)[:2]


def random_points(count=400):
    return np.random.default_rng(3).uniform(-1, 1, (count, 3))


@pytest.mark.parametrize("name", SHAPES)
def test_closest_points_are_on_the_surface_and_optimal(name):
    points = random_points()
    d, n = distance(SHAPES[name], points)
    feet = points - d[:, None] * n
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1)
    if name != "hollow box":  # whose walls are planes
        np.testing.assert_allclose(distance(SHAPES[name], feet)[0], 0, atol=1e-12)
        outside = d > 0
        distances = np.linalg.norm(points[outside, None] - feet[None], axis=2)
        assert np.all(distances.min(axis=1) > d[outside] - 1e-12)


@pytest.mark.parametrize("name", SHAPES)
def test_normals_are_gradients(name):
    points, h = random_points(), 1e-6
    _, n = distance(SHAPES[name], points)
    slopes = [
        (distance(SHAPES[name], points + h * e)[0] - distance(SHAPES[name], points - h * e)[0]) / (2 * h)
        for e in np.eye(3)
    ]
    right = np.abs(np.stack(slopes, axis=1) - n).max(axis=1) < 1e-4
    assert right.mean() > 0.99, "but for points on a crease"


@pytest.mark.parametrize("name", SHAPES)
def test_moved_shape_follows_its_motion(name):
    turn = supple.Rotate(axis=(0, 1, 2), center=(0.3, 0, 0), angle=0.8) + supple.Translate((0.1, -0.2, 0.3))
    points = random_points()
    still, _ = distance(SHAPES[name], points)
    moved, _, _ = distances_to(shapes_of(SHAPES[name], turn, np.inf), turn(points, np.inf))
    np.testing.assert_allclose(moved, still, atol=1e-12)


def test_deforming_motion_is_refused():
    with pytest.raises(supple.SceneError, match="must be rigid"):
        shapes_of(supple.Sphere(radius=1), supple.Scale(2.0), 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: supple.Plane(normal=(0, 0, 0)), "normal of Plane"),
        (lambda: supple.Sphere(radius=0), "radius"),
        (lambda: supple.Sphere(radius=1, hollow=1), "hollow of Sphere"),
        (lambda: supple.Box(size=(1, -1, 1)), "three positive numbers"),
        (lambda: supple.Capsule((0, 0, 0), (0, 0, 0), 1), "different points"),
        (lambda: supple.Cylinder((0, 0, 0), (0, 0, np.nan), 1), "point1"),
    ],
)
def test_invalid_shapes_are_refused(make, message):
    with pytest.raises(supple.SceneError, match=message):
        make()
