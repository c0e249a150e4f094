"""The camera sees everything."""

import numpy as np
import pytest

from supple.view.camera import FILLED, fitted_camera

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


@pytest.mark.parametrize("aspect", [0.5, 1.3, 3.0])
@pytest.mark.parametrize("name", CLOUDS)
def test_all_points_are_in_the_picture_and_fill_it(name, aspect):
    places, distance = fitted_camera(CLOUDS[name], aspect).project(CLOUDS[name])
    assert (distance > 0).all()
    assert np.abs(places).max() <= FILLED * (1 + 1e-6)
    if name != "one point":
        assert np.ptp(places, axis=0).max() > 1.9 * FILLED


def test_up_is_up_and_x_goes_right():
    camera = fitted_camera(CLOUDS["cube"], 1.3)
    (origin, right, up), _ = camera.project(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], float))
    assert right[0] > origin[0]
    assert up[1] > origin[1]
    assert up[0] == pytest.approx(origin[0], abs=0.05)


def test_points_that_are_not_finite_are_left_out():
    points = np.vstack([CLOUDS["cube"], [[np.nan, 0, 0]]])
    np.testing.assert_array_equal(
        fitted_camera(points, 1.0).position, fitted_camera(CLOUDS["cube"], 1.0).position
    )
