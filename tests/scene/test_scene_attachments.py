"""Attachments: closest points, pairs, fixed points and stiffness."""

import numpy as np
import pytest
from scipy.optimize import minimize

from supple.materials import Corotated
from supple.meshes import ball, block
from supple.meshes.proximity_queries import closest_in_body
from supple.scene import Scene, SceneError
from supple.scene.selections import side

MATERIAL = Corotated(young=1e3, poisson=0.3)


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def lower(scene):
    return scene.add_solid(block((2, 2, 2)), MATERIAL, name="lower")


@pytest.fixture
def upper(scene):
    return scene.add_solid(block((3, 3, 3), origin=(0.1, 1.5, 0.1)), MATERIAL, name="upper")


def gaps(attachment, positions):
    return np.einsum("ks,ksi->ki", attachment.weights, positions[attachment.vertices]) - attachment.target


def rest(scene):
    return np.concatenate([body.points for body in scene.bodies])


def test_points_inside_are_located_exactly():
    mesh = ball(1.0, 4)
    inside = np.random.default_rng(0).uniform(-0.5, 0.5, (50, 3))
    vertices, weights = closest_in_body(inside, mesh)
    np.testing.assert_allclose(np.einsum("ks,ksi->ki", weights, mesh.points[vertices]), inside, atol=1e-12)
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    sorted_tets = {tuple(sorted(tet)) for tet in mesh.tets.tolist()}
    assert all(tuple(sorted(v)) in sorted_tets for v in vertices.tolist())


def test_outside_points_attach_to_the_nearest_surface_point():
    mesh = block((3, 2, 2))
    outside = np.random.default_rng(1).uniform(-2, 3, (300, 3))
    outside = outside[np.any((outside < 0) | (outside > 1), axis=1)]
    vertices, weights = closest_in_body(outside, mesh)
    closest = np.einsum("ks,ksi->ki", weights, mesh.points[vertices])
    np.testing.assert_allclose(closest, np.clip(outside, 0, 1), atol=1e-12)
    assert weights.min() >= 0


def test_nearest_point_of_a_curved_surface_is_optimal_over_triangles():
    mesh = ball(1.0, 3)
    query = np.array([[1.3, 0.4, -0.2]])
    vertices, weights = closest_in_body(query, mesh)
    actual = np.linalg.norm(query - weights[0] @ mesh.points[vertices[0]])

    def distance(triangle):
        corners = mesh.points[triangle]
        to = lambda w: np.linalg.norm(query[0] - corners[0] - w @ (corners[1:] - corners[0]))  # noqa: E731
        simplex = {"type": "ineq", "fun": lambda w: 1 - w.sum()}
        return minimize(to, [0.3, 0.3], bounds=[(0, 1)] * 2, constraints=[simplex], tol=1e-12).fun

    near = np.argsort(np.linalg.norm(mesh.points[mesh.surface].mean(axis=1) - query, axis=1))[:12]
    assert actual == pytest.approx(min(map(distance, mesh.surface[near])), abs=1e-6)


def test_vertices_attach_to_closest_points_of_a_body(scene, lower, upper):
    top = lower.where(side("y+"))
    scene.attach(top, upper, stiffness=10)
    (made,) = scene.attachments
    np.testing.assert_array_equal(made.vertices[:, 0], top.vertices)
    np.testing.assert_allclose(made.weights.sum(axis=1), 0, atol=1e-12)
    nearest = np.clip(top.points, upper.mesh.bounds[0], upper.mesh.bounds[1])
    np.testing.assert_allclose(gaps(made, rest(scene)), top.points - nearest, atol=1e-12)
    unused = made.weights == 0
    np.testing.assert_array_equal(
        made.vertices[unused], np.broadcast_to(made.vertices[:, :1], unused.shape)[unused]
    )
    assert not unused.all(axis=0).any(), "slots that no constraint uses are left out"


def test_vertices_attach_in_pairs(scene, lower, upper):
    a, b = lower.where([3, 1]), upper.where([5, 7])
    scene.attach(a, b, stiffness=10)
    (made,) = scene.attachments
    np.testing.assert_array_equal(made.vertices, np.column_stack([a.vertices, b.vertices]))
    np.testing.assert_array_equal(made.weights, [[1, -1], [1, -1]])
    np.testing.assert_allclose(gaps(made, rest(scene)), a.points - b.points)


@pytest.mark.parametrize("target", ["pairs", "body", "points"])
def test_preserved_offsets_leave_no_gap_at_rest(scene, lower, upper, target):
    a = lower.where(side("y+"))
    b = {"pairs": upper.where(range(9)), "body": upper, "points": (5, 5, 5)}[target]
    scene.attach(a, b, stiffness=10)
    scene.attach(a, b, stiffness=10, keep_offset=True)
    closed, offset_attachment = scene.attachments
    assert np.abs(gaps(closed, rest(scene))).max() > 0.1
    np.testing.assert_allclose(gaps(offset_attachment, rest(scene)), 0, atol=1e-12)


def test_fixed_points_and_the_rest_position(scene, lower):
    a = lower.where([0, 5])
    scene.attach(a, stiffness=10)
    scene.attach(a, (1, 2, 3), stiffness=10)
    scene.attach(a, [(1, 2, 3), (4, 5, 6)], stiffness=10)
    at_rest, one, two = scene.attachments
    np.testing.assert_array_equal(at_rest.target, a.points)
    np.testing.assert_array_equal(one.target, [(1, 2, 3)] * 2)
    np.testing.assert_array_equal(two.target, [(1, 2, 3), (4, 5, 6)])
    assert at_rest.vertices.shape == (2, 1)


def test_stiffness_acts_along_and_across_the_normal(scene, lower):
    n = np.array([1.0, 2, 2])
    scene.attach(lower.where([0]), stiffness=7, normal=n, tangent_stiffness=3)
    scene.attach(lower.where([0]), stiffness=7, normal=n)
    scene.attach(lower.where([0]), stiffness=7)
    across = np.array([2.0, -2, 1])

    def K(attachment):
        xx, yy, zz, xy, xz, yz = attachment.stiffness[0]
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    for made, (k_n, k_t) in zip(scene.attachments, [(7, 3), (7, 0), (7, 7)], strict=True):
        np.testing.assert_allclose(K(made) @ n, k_n * n, atol=1e-12)
        np.testing.assert_allclose(K(made) @ across, k_t * across, atol=1e-12)


@pytest.mark.parametrize(
    ("attach", "sentence"),
    [
        (
            lambda s, a, b: s.attach(a.all, b.all, stiffness=1),
            "27 of 'lower' and 64 of 'upper'; .* give the body",
        ),
        (lambda s, a, b: s.attach(a.all, a, stiffness=1), "second set of its vertices, paired"),
        (
            lambda s, a, b: s.attach(a.where([1, 2]), a.where([3, 2]), stiffness=1),
            "Vertex 2 of 'lower' is att",
        ),
        (lambda s, a, b: s.attach(a, stiffness=0), "stiffness .* greater than 0, got 0"),
        (lambda s, a, b: s.attach(a, stiffness=1, tangent_stiffness=1), "needs a normal"),
        (lambda s, a, b: s.attach(a, stiffness=1, normal=(0, 0, 0)), "normal .* zero vector"),
        (lambda s, a, b: s.attach(a, stiffness=1, normal=(0, 1)), "normal .* one vector"),
        (lambda s, a, b: s.attach(a, [(0, 0, 0)] * 5, stiffness=1), r"each of the 27 vertices, \(27, 3\)"),
        (lambda s, a, b: s.attach(a, Scene().add_solid(block(1), MATERIAL), stiffness=1), "another scene"),
    ],
)
def test_wrong_attachments_are_refused(scene, lower, upper, attach, sentence):
    with pytest.raises(SceneError, match=sentence):
        attach(scene, lower, upper)
