"""Obstacles smaller than faces do not penetrate them."""

import numpy as np
import pytest
from fake_device import fake_device  # noqa: F401
from test_obstacle_faces import PLACEMENTS, block, bowl, obstacle_shapes

import supple
from supple.collision.obstacles.face_contacts import FacePoints, distances_of, exit_points
from supple.collision.obstacles.signed_distance import Shapes
from supple.problem import Problem
from supple.problem.history_variables import RIGID
from supple.scene.shapes.surface_shapes import SurfaceShape

GRAVITY = np.array([0, -9.81, 0])


def pressed(shape, placement="here", depth=0.03, **options):
    """A block into whose face an obstacle is pushed by `depth` times its size."""
    size, origin = PLACEMENTS[placement]
    scene = block(obstacle_shapes(size, origin)[shape], supple.Translate((0, -depth * size, 0)), size, origin)
    return supple.equilibrium(scene, tolerance=1e-6, **options)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("shape", obstacle_shapes(1.0, (0, 0, 0)))
def test_small_obstacles_do_not_enter_faces(shape, placement):
    size, _ = PLACEMENTS[placement]
    result, reference = pressed(shape, placement), pressed(shape)
    (each,) = result.report.contact.obstacles.each
    assert result.report.outcome is supple.Outcome.CONVERGED
    assert result.report.contact.faces.each == ()
    assert result.report.contact.faces.max_penetration == 0
    assert each.count > 0
    on_bodies = np.sum(list(result.report.contact.obstacles.forces.values()), axis=0)
    np.testing.assert_allclose(on_bodies, -np.array(each.force), rtol=1e-12)
    np.testing.assert_allclose(
        np.array(each.force) / size**2, reference.report.contact.obstacles.each[0].force, atol=1.0
    )
    assert each.force[1] > 1000 * size**2, "it is pressed into the block from above"
    evaluated = result.evaluate()
    for force in (evaluated.reactions["pin0"].force, -evaluated.contact_force.sum(axis=0)):
        np.testing.assert_allclose(force, each.force, atol=1e-3 * each.force[1])
    assert np.abs(evaluated.net_force[result.model.free]).max() < 2e-3 * each.force[1]


@pytest.mark.parametrize("depth", [0.06, 0.1])
@pytest.mark.parametrize("shape", ["ball", "standing rod"])
def test_faces_leave_obstacles_on_their_original_side(shape, depth):
    """The side is kept also if more than half of the obstacle passes through at once."""
    result = pressed(shape, depth=depth)
    assert result.report.outcome is supple.Outcome.CONVERGED
    x = result.positions - result.model.rest
    assert x[:, 1].min() < -0.9 * depth, "the face is pressed down"
    assert result.report.contact.obstacles.each[0].force[1] > 0


@pytest.mark.parametrize("solver", [supple.Newton(), supple.PBNG(acceleration=None), supple.Hybrid()])
def test_solvers_agree(solver):
    reference, result = pressed("ball", solver=supple.PBNG()), pressed("ball", solver=solver)
    assert result.report.ok
    assert np.abs(result.positions - reference.positions).max() < 1e-5


def test_threads_and_precisions_agree():
    one, two = pressed("rod", threads=1), pressed("rod", threads=2)
    np.testing.assert_array_equal(one.positions, two.positions)
    single = pressed("rod", precision="float32")
    assert np.abs(single.positions - one.positions).max() < 1e-4


def test_sharp_rim_of_a_closed_surface_does_not_enter_faces():
    """The obstacle is an inverted bowl, much smaller than a face, with a sharp rim."""
    mesh = bowl().scaled(0.08)
    points = mesh.points * np.array([1, -1, -1])
    points = points[:, [0, 2, 1]] * np.array([1, 1, 1])
    turned = supple.TriMesh(points - [0, points[:, 1].min(), 0] + [0.35, 1.0, 0.2], mesh.triangles)
    turned = turned if turned.enclosed_volume > 0 else supple.TriMesh(turned.points, mesh.triangles[:, ::-1])
    scene = block(SurfaceShape(turned), supple.Translate((0, -0.03, 0)))
    report = supple.equilibrium(scene, tolerance=1e-4).report
    (each,) = report.contact.obstacles.each
    assert each.count > 0
    assert not report.contact.faces.is_intersecting
    assert each.force[1] > 1000


def trampoline(cells, radius, friction=0.0):
    scene = supple.Scene(quasistatic=False, dt=0.01, gravity=tuple(GRAVITY))
    mesh = supple.sheet(cells=cells, size=(1, 1), plane="zx", origin=(-0.5, 0, -0.5))
    cloth = scene.add_cloth(
        mesh,
        supple.materials.PlaneStressStVK(young=1e5, poisson=0.3),
        supple.HingeBending(rigidity=1e-4),
        thickness=1e-3,
        density=0.5,
    )
    scene.pin(cloth.where(lambda X: np.abs(X[:, [0, 2]]).max(axis=1) > 0.499))
    ball = supple.Sphere(radius, (0.03, radius + 0.02, 0.11))
    scene.add_obstacle(ball, mass=0.2, name="ball", friction=friction)
    return scene


@pytest.mark.parametrize(("cells", "friction"), [(4, 0.0), (4, 0.4), (8, 0.0), (16, 0.0)])
def test_ball_does_not_fall_through_the_cells_of_a_trampoline(cells, friction):
    """Cells are larger than the ball [GPBD Fig. 9]; its momentum is the impulse of cloth and weight."""
    scene = trampoline(cells, 0.4 / cells, friction)
    heights, before, pushed, arrived = [], np.zeros(3), 0, 0
    for frame in supple.simulate(scene, solver=supple.PBNG(), tolerance=1e-5, max_iterations=2000, frames=60):
        ball = frame.state.history[RIGID][0]
        (each,) = frame.report.contact.obstacles.each
        arrived += frame.report.ok
        assert not frame.report.contact.faces.is_intersecting
        if frame.report.ok:
            gained, near = 0.2 * (ball[12:15] - before) / 0.01, 1e-3 * max(1.0, each.force[1])
            np.testing.assert_allclose(gained, np.array(each.force) + 0.2 * GRAVITY, atol=near)
        before, pushed = ball[12:15], max(pushed, each.count)
        heights.append(ball[1])
    lowest = int(np.argmin(heights))
    assert pushed > 0
    assert arrived >= 59, "of 60; points may come and go for ever where a ball leaves a face"
    assert -0.4 < heights[lowest] < 0.4 / cells
    assert max(heights[lowest:]) > heights[lowest] + 0.02, "it is thrown back"


def test_resumed_motion_is_identical():
    scene = trampoline(4, 0.1, 0.3)
    limits = {"tolerance": 1e-5, "max_iterations": 500}
    uninterrupted = list(supple.simulate(scene, solver=supple.PBNG(), frames=26, **limits))
    *_, half = supple.simulate(scene, solver=supple.PBNG(), frames=20, **limits)
    *_, end = supple.simulate(scene, solver=supple.PBNG(), frames=6, initial=half.state, **limits)
    np.testing.assert_array_equal(end.positions, uninterrupted[-1].positions)
    assert end.report.contact.obstacles.count > 0


def test_only_scenes_with_small_obstacles_have_face_terms():
    assert not supple.scene.build_model(
        block(supple.Plane(point=(0, 1, 0), normal=(0, -1, 0)), None)
    ).dynamic_terms
    assert not supple.scene.build_model(block(supple.Sphere(1.0, (0.5, 2.0, 0.5)), None)).dynamic_terms
    assert supple.scene.build_model(block(obstacle_shapes(1.0, (0, 0, 0))["ball"], None)).dynamic_terms


def test_device_points_equal_host_points(fake_device):  # noqa: F811
    from supple.problem.cuda import Cuda

    model = supple.scene.build_model(
        block(obstacle_shapes(1.0, (0, 0, 0))["rod"], supple.Translate((0, -0.03, 0)))
    )
    points = []
    for device in (Cuda(model.vertices + 1), None):
        problem = Problem(model, "float64", 1, device)
        problem.begin_step(np.inf)
        points.append(problem.model.terms[-1])
    assert len(points[0].vertices) > 0
    for name in ("vertices", "keys", "weights", "numbers"):
        np.testing.assert_allclose(getattr(points[0], name), getattr(points[1], name), rtol=1e-12, atol=1e-12)


def test_contact_points_follow_the_deepest_point_by_half():
    """Points in the same face and shape move half the way; a point stays if another one is deepest."""
    known = FacePoints.at(np.array([3, 3]), np.array([0, 1]), np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]))
    now = FacePoints.at(np.array([3, 3]), np.array([0, 1]), np.array([[0.4, 0.4, 0.2], [0.0, 0.1, 0.9]]))
    points = known.merge(now)
    assert points.shape.tolist() == [0, 1, 1]
    np.testing.assert_allclose(points.weights, [[0.45, 0.35, 0.2], [0.5, 0.3, 0.2], [0.0, 0.1, 0.9]])
    np.testing.assert_allclose(points.deepest[0], [0.4, 0.4, 0.2])


@pytest.mark.parametrize("shape", [supple.Sphere(0.3), supple.Box((0.2, 3.0, 0.4)), bowl()])
def test_exit_points_are_on_the_surface(shape):
    shape = SurfaceShape(shape) if isinstance(shape, supple.TriMesh) else shape
    shapes, rng = Shapes(shape.rows, np.append(shape.values, 0.0)), np.random.default_rng(3)
    points = rng.uniform(-0.5, 0.5, (400, 3)) + np.array([0, 0, -0.3])
    which = np.zeros(400, int)
    inside = points[distances_of(shapes, which, points)[0] < 0]
    assert len(inside) > 3
    directions = rng.normal(size=inside.shape)
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    foot = exit_points(shapes, which[: len(inside)], inside, directions)
    assert np.abs(distances_of(shapes, which[: len(inside)], foot)[0]).max() < 1e-7
    assert (((foot - inside) * directions).sum(axis=1) > 0).all()
