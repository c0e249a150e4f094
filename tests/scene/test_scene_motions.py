"""Motions: identity before the start, complete at the end, isometries, and composition."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from scipy.spatial.transform import Rotation

from supple.scene import Keyframes, Rotate, Scale, SceneError, Translate, Twist

numbers = st.floats(-3, 3)
vectors = st.tuples(numbers, numbers, numbers)
axes = vectors.filter(lambda v: np.linalg.norm(v) > 0.1)
POINTS = np.random.default_rng(0).uniform(-1, 1, (20, 3))

RAMPS = [
    Translate((1, 2, 3), duration=2, start_time=1),
    Rotate((1, 1, 0), (0, 0.5, 0), 1.2, duration=2, start_time=1),
    Twist((0, 0, 2), (0, 0, 0.3), -0.7, duration=2, start_time=1),
    Scale((2, 1, 0.5), (1, 0, 0), duration=2, start_time=1),
]


@pytest.mark.parametrize("motion", RAMPS, ids=lambda m: type(m).__name__)
def test_motion_is_identity_before_its_start_and_complete_after_its_end(motion):
    end = motion(POINTS, math.inf)
    assert np.abs(end - POINTS).max() > 0.1
    for t in (-math.inf, 0.0, 1.0):
        np.testing.assert_allclose(motion(POINTS, t), POINTS, atol=1e-15)
    for t in (3.0, 100.0):
        np.testing.assert_array_equal(motion(POINTS, t), end)
    np.testing.assert_allclose(motion(POINTS, 2.0), motion.part(POINTS, 0.5))
    assert np.abs(motion(POINTS, 2.9) - end).max() > 1e-3


def test_motion_without_duration_jumps_at_its_start():
    jump = Translate((1, 0, 0), duration=0, start_time=2)
    np.testing.assert_array_equal(jump(POINTS, 1.999), POINTS)
    np.testing.assert_array_equal(jump(POINTS, 2), POINTS + np.array([1, 0, 0]))


@settings(max_examples=50, deadline=None)
@given(axes, vectors, st.floats(-7, 7))
def test_rotation_preserves_distances_and_orientation(axis, center, angle):
    moved = Rotate(axis, center, angle)(POINTS, math.inf)
    np.testing.assert_allclose(pdist(moved), pdist(POINTS), atol=1e-12)
    R = Rotation.from_rotvec(angle * np.array(axis) / np.linalg.norm(axis))
    np.testing.assert_allclose(moved, center + R.apply(POINTS - center), atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(axes, vectors, numbers)
def test_twist_angle_is_proportional_to_the_distance_along_the_axis(axis, center, angle):
    moved = Twist(axis, center, angle)(POINTS, math.inf)
    unit = np.array(axis) / np.linalg.norm(axis)
    h = (POINTS - center) @ unit
    for point, height, x in zip(POINTS, h, moved, strict=True):
        expected = Rotate(axis, center, angle * height)(point[None], math.inf)[0]
        np.testing.assert_allclose(x, expected, atol=1e-12)
    np.testing.assert_allclose((moved - center) @ unit, h, atol=1e-12)


def test_scale_takes_one_factor_or_three():
    np.testing.assert_allclose(Scale(2.0)(POINTS, math.inf), 2 * POINTS)
    np.testing.assert_allclose(Scale(3.0, (1, 0, 0))(np.array([[2.0, 1, 0]]), math.inf), [[4, 3, 0]])
    np.testing.assert_allclose(Scale((3, 1, 1))(POINTS, 0.5), POINTS * [2, 1, 1])


def test_plus_composes_from_left_to_right_and_is_associative():
    turn, move, twist = Rotate((0, 0, 1), (0, 0, 0), math.pi / 2), Translate((1, 0, 0)), RAMPS[2]
    X = np.array([[1.0, 0, 0]])
    np.testing.assert_allclose((turn + move)(X, math.inf), [[1, 1, 0]], atol=1e-15)
    np.testing.assert_allclose((move + turn)(X, math.inf), [[0, 2, 0]], atol=1e-15)
    assert (turn + move) + twist == turn + (move + twist)
    np.testing.assert_allclose(
        (turn + move + twist)(POINTS, 1.7), twist(move(turn(POINTS, 1.7), 1.7), 1.7), atol=1e-15
    )


def test_keyframes_drive_any_motion_there_and_back():
    stretch = Keyframes(Scale((2, 1, 1)) + Translate((0, 1, 0)), times=(1, 2, 4), fractions=(0, 1, -0.5))
    expected = {0: 0, 1: 0, 1.5: 0.5, 2: 1, 3: 0.25, 4: -0.5, math.inf: -0.5}
    for t, s in expected.items():
        np.testing.assert_allclose(stretch(POINTS, t), POINTS * [1 + s, 1, 1] + [0, s, 0], atol=1e-12)


def test_path_is_linear_between_offsets():
    path = Keyframes.path((0, 1, 2), [(0, 0, 0), (1, 0, 2), (1, 1, 0)])
    np.testing.assert_allclose(path(POINTS, 0.5), POINTS + np.array([0.5, 0, 1]))
    np.testing.assert_allclose(path(POINTS, 1.5), POINTS + np.array([1, 0.5, 1]))
    np.testing.assert_allclose(path(POINTS, math.inf), POINTS + np.array([1, 1, 0]))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: Translate((1, 2)), "offset .* three numbers"),
        (lambda: Translate((1, 2, math.nan)), "offset .* finite numbers, got"),
        (lambda: Translate("up"), "finite numbers, got 'up'"),
        (lambda: Translate((1, 0, 0), duration=-1), "duration .* at least 0, got -1"),
        (lambda: Translate((1, 0, 0), start_time=math.inf), "start_time .* finite"),
        (lambda: Rotate((0, 0, 0), (0, 0, 0), 1), "axis of Rotate must not be the zero vector"),
        (lambda: Twist((0, 0, 1), (0, 0, 0), (1, 2)), "rate of Twist must be one number"),
        (lambda: Scale(0), "factor of Scale must be one positive number or three, got 0"),
        (lambda: Keyframes(Scale(2), (0, 1, 1), (0, 1, 2)), "times .* must increase"),
        (lambda: Keyframes(Scale(2), (0, 1), (0, 1, 2)), "one fraction for each time"),
        (lambda: Keyframes(Keyframes(Scale(2), (0,), (1,)), (0,), (1,)), "not other Keyframes"),
        (lambda: Keyframes.path((0, 1), [(0, 0), (1, 1)]), "rows of three numbers"),
    ],
)
def test_wrong_motions_are_refused(wrong, sentence):
    with pytest.raises(SceneError, match=sentence):
        wrong()


def test_only_motions_can_be_added():
    with pytest.raises(TypeError):
        Translate((1, 0, 0)) + (lambda X, t: X)
