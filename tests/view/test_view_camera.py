"""Cameras that fit all points into the picture."""

import numpy as np
import pytest

from supple.view.camera import CAMERAS, MAX_FILL, fit_camera, outline, parse_camera

RANDOM = np.random.default_rng(0)
CLOUDS = {
    "cube": RANDOM.uniform(0, 1, (200, 3)),
    "bar in x": RANDOM.uniform(0, 1, (200, 3)) * [30, 1, 1],
    "bar in y": RANDOM.uniform(0, 1, (200, 3)) * [1, 30, 1],
    "bar in z": RANDOM.uniform(0, 1, (200, 3)) * [1, 1, 30],
    "plate": RANDOM.uniform(0, 1, (200, 3)) * [5, 0, 5],
    "tiny and far away": 1e-3 * RANDOM.normal(size=(200, 3)) + 100,
    "huge": 1e6 * RANDOM.normal(size=(200, 3)),
    "one point": np.zeros((1, 3)),
}


@pytest.mark.parametrize("angles", CAMERAS.values(), ids=CAMERAS)
@pytest.mark.parametrize("aspect", [0.5, 1.3, 3.0])
@pytest.mark.parametrize("name", CLOUDS)
def test_all_points_are_in_the_picture_and_fill_it(name, aspect, angles):
    image_points, distance = fit_camera(CLOUDS[name], aspect, angles).project(CLOUDS[name])
    assert (distance > 0).all()
    assert np.abs(image_points).max() <= MAX_FILL * (1 + 1e-6)
    if name != "one point" and angles == CAMERAS["corner"]:
        assert np.ptp(image_points, axis=0).max() > 1.9 * MAX_FILL


def test_y_points_up_and_x_to_the_right():
    camera = fit_camera(CLOUDS["cube"], 1.3)
    (origin, right, up), _ = camera.project(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], float))
    assert right[0] > origin[0]
    assert up[1] > origin[1]
    assert up[0] == pytest.approx(origin[0], abs=0.05)


def test_non_finite_points_are_ignored():
    points = np.vstack([CLOUDS["cube"], [[np.nan, 0, 0]]])
    np.testing.assert_array_equal(fit_camera(points, 1.0).position, fit_camera(CLOUDS["cube"], 1.0).position)


@pytest.mark.parametrize("name", CLOUDS)
def test_outline_has_the_same_camera(name):
    cloud = CLOUDS[name]
    halves = [cloud[::2], cloud[1::2]] if len(cloud) > 1 else [cloud]
    expected, actual = fit_camera(cloud, 1.3), fit_camera(outline(halves), 1.3)
    np.testing.assert_allclose(actual.position, expected.position, rtol=1e-9, atol=1e-9)
    assert len(outline(halves)) <= len(cloud)


def test_cameras_have_names_or_angles():
    assert parse_camera("front") == CAMERAS["front"]
    assert parse_camera(" -45, 30.5") == (-45.0, 30.5)
    for text in ("above", "45", "1,2,3", "0,90", "0,-91", "x,y", "1.2.3,4", ""):
        with pytest.raises(ValueError, match="camera must be one of corner, front"):
            parse_camera(text)


def test_front_camera_is_along_z_and_side_camera_along_x():
    cube = CLOUDS["cube"]
    assert fit_camera(cube, 1.0, (0, 0)).axes[2] == pytest.approx([0, 0, 1])
    assert fit_camera(cube, 1.0, (90, 0)).axes[2] == pytest.approx([1, 0, 0])
