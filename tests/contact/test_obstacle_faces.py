"""Contact of obstacles with the interior of faces, between vertices."""

import numpy as np
import pytest
from fake_device import fake_device  # noqa: F401

import supple
from supple.collision.obstacles.face_distance import DEPTH_STEPS, deepest, thicknesses
from supple.collision.obstacles.signed_distance import POSE, SIZE, Shapes, distances_to
from supple.contact.state.obstacle_report import report_obstacle_contact
from supple.kernels import kernel
from supple.problem import Problem
from supple.scene.shapes.surface_shapes import SurfaceShape
from supple.solve.batch_solve import make_problem

SAMPLE_WEIGHTS = np.array([(i, j) for i in range(101) for j in range(101 - i)]) / 100
"""Weights of the second and the third corner at sample points of a triangle."""


@kernel
def deepest_of_all(shapes, triangles, by_triangle):
    for m in range(len(triangles)):
        a = triangles[m, 0, 0], triangles[m, 0, 1], triangles[m, 0, 2]
        b = triangles[m, 1, 0], triangles[m, 1, 1], triangles[m, 1, 2]
        c = triangles[m, 2, 0], triangles[m, 2, 1], triangles[m, 2, 2]
        at = deepest(shapes, 0, a, b, c, 1e9, DEPTH_STEPS)
        by_triangle[m, 0], by_triangle[m, 1], by_triangle[m, 2] = at.distance, at.second, at.third


def spread(triangle, weights):
    """Points of a triangle with weights (k, 2) of its second and third corners."""
    return triangle[0] + weights @ (triangle[1:] - triangle[0])


def bowl():
    """A closed non-convex surface: the thick half of a hollow ball."""
    angle = np.linspace(0, np.pi / 2, 7)
    profile = [(np.sin(t), -np.cos(t)) for t in angle] + [
        (0.6 * np.sin(t), -0.6 * np.cos(t)) for t in angle[::-1]
    ]
    rings = 16
    turns = 2 * np.pi * np.arange(rings) / rings
    points, first = [], []
    for r, z in profile:
        first.append(len(points))
        points += [(0.0, 0.0, z)] if r < 1e-9 else [(r * np.cos(t), r * np.sin(t), z) for t in turns]
    triangles = []
    for (k, (r, _)), (s, _) in zip(enumerate(profile), profile[1:], strict=False):
        for i in range(rings):
            j, a, b = (i + 1) % rings, first[k], first[k + 1]
            if r < 1e-9:
                triangles.append((a, b + j, b + i))
            elif s < 1e-9:
                triangles.append((a + i, a + j, b))
            else:
                triangles += [(a + i, a + j, b + i), (a + j, b + j, b + i)]
    mesh = supple.TriMesh(np.array(points), np.array(triangles))
    flipped = mesh.enclosed_volume < 0
    return supple.TriMesh(mesh.points, mesh.triangles[:, ::-1]) if flipped else mesh


SHAPES = {
    "ball": supple.Sphere(0.3),
    "capsule": supple.Capsule((-0.4, 0, 0), (0.4, 0.1, 0.2), 0.1),
    "cylinder": supple.Cylinder((-0.4, 0, 0), (0.4, 0.1, 0.2), 0.1),
    "plate": supple.Box((0.5, 0.04, 0.8), (0, 0, 0)),
    "bowl": SurfaceShape(bowl()),
}


@pytest.mark.parametrize(
    ("name", "size"), [(n, s) for n in SHAPES for s in (1e-3, 1.0, 1e3) if n != "bowl" or s == 1]
)
def test_deepest_point_of_a_triangle(name, size):
    """No sampled point is deeper, for triangles of all sizes around a shape."""
    rows, values = SHAPES[name].rows.copy(), np.append(SHAPES[name].values, 0.0)
    if name != "bowl":  # a grid has numbers of cells there
        rows[:, SIZE : SIZE + 3] *= size
        rows[:, POSE + 9 : POSE + 12] *= size
    shapes, rng = Shapes(rows, values), np.random.default_rng(1)
    triangles = size * rng.normal(size=(60, 1, 3)) * 0.5 + size * rng.normal(size=(60, 3, 3)) * np.array(
        [[[0.1]], [[0.5]], [[1.0]]]
    ).repeat(20, axis=0)
    points = np.zeros((60, 3))
    deepest_of_all(shapes, triangles, points)
    for triangle, (d, second, third) in zip(triangles, points, strict=True):
        edge = np.linalg.norm(triangle - np.roll(triangle, 1, axis=0), axis=1).max()
        assert min(second, third, 1 - second - third) > -1e-12, "it is a point of the triangle"
        weights = spread(triangle, np.array([[second, third]]))
        assert d == pytest.approx(distances_to(shapes, weights)[0][0], abs=1e-12 * size)
        least = distances_to(shapes, spread(triangle, SAMPLE_WEIGHTS))[0].min()
        assert d < least + 1e-3 * edge or (name == "bowl" and least > 0), "a grid knows its inside"


def test_thickness_is_twice_the_depth_of_the_deepest_point():
    for name, thick in (("ball", 0.6), ("capsule", 0.2), ("cylinder", 0.2), ("plate", 0.04)):
        assert thicknesses(Shapes(SHAPES[name].rows, np.zeros(1)))[0] == pytest.approx(thick)
    assert thicknesses(Shapes(SHAPES["bowl"].rows, SHAPES["bowl"].values))[0] == pytest.approx(0.4, rel=0.15)
    for hollow in (supple.Plane(), supple.Sphere(1.0, hollow=True)):
        assert np.isinf(thicknesses(Shapes(hollow.rows, np.zeros(1)))).all()


def block(obstacle, motion, size=1.0, origin=(0, 0, 0), cells=2, **options):
    """A block on a pinned base, and an obstacle that comes from above."""
    scene = supple.Scene(gravity=(0, 0, 0), **options)
    mesh = supple.block(cells=(cells,) * 3, size=(size,) * 3)
    mesh = supple.TetMesh(mesh.points + np.array(origin, float), mesh.tets)
    body = scene.add_solid(mesh, supple.NeoHookean(young=1e5, poisson=0.3), density=1000)
    scene.pin(body.where(lambda X: X[:, 1] < origin[1] + 1e-6 * size))
    scene.add_obstacle(obstacle, motion, name="thing")
    return scene


def obstacle_shapes(size, origin):
    """Obstacles of a third of a cell of such a block, above the middle of one of its faces."""
    s, (x, y, z) = size, np.array(origin, float) + size * np.array([0.35, 1.0, 0.2])
    return {
        "ball": supple.Sphere(s / 12, (x, y + s / 12, z)),
        "rod": supple.Capsule((x - 0.2 * s, y + 0.04 * s, z), (x + 0.1 * s, y + 0.04 * s, z), 0.04 * s),
        "standing rod": supple.Cylinder((x, y, z), (x, y + 0.5 * s, z), 0.05 * s),
        "plate on edge": supple.Box((0.2 * s, 0.4 * s, 0.04 * s), (x, y + 0.2 * s, z)),
    }


PLACEMENTS = {
    "here": (1.0, (0, 0, 0)),
    "tiny": (1e-3, (0, 0, 0)),
    "huge": (1e3, (0, 0, 0)),
    "far": (1.0, (1e4, 0, -1e4)),
}


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("obstacle_shape", obstacle_shapes(1.0, (0, 0, 0)))
def test_inspect_lists_small_obstacles(obstacle_shape, placement):
    size, origin = PLACEMENTS[placement]
    scene = block(obstacle_shapes(size, origin)[obstacle_shape], None, size, origin)
    (finding,) = supple.inspect(scene)["small_obstacles"]
    assert "'thing'" in finding
    assert "'solid0'" in finding
    large = supple.Sphere(size, tuple(np.array(origin, float) + size * np.array([0.5, 2.0, 0.5])))
    assert not supple.inspect(block(large, None, size, origin))["small_obstacles"]


def placed(scene, **backend):
    """Contact report of a scene at the end of all motions, with vertices at rest."""
    problem = make_problem(scene, True, supple.Backend(**backend))
    problem.contacts.find(np.inf)
    return report_obstacle_contact(problem)[0]


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("obstacle_shape", obstacle_shapes(1.0, (0, 0, 0)))
def test_obstacles_through_faces_are_reported(obstacle_shape, placement, precision):
    size, origin = PLACEMENTS[placement]
    shape = obstacle_shapes(size, origin)[obstacle_shape]
    for depth, passes in ((0.0, False), (0.03, True)):
        scene = block(shape, supple.Translate((0, -depth * size, 0)), size, origin)
        report = placed(scene, precision=precision)
        (obstacle,), faces = report.obstacles.each, report.faces
        assert report.is_intersecting == faces.is_intersecting == passes
        assert obstacle.max_penetration == 0, "no vertex is inside"
        if passes:
            (each,) = faces.each
            penetration = each.max_penetration
            assert penetration == pytest.approx(
                depth * size if obstacle_shape == "ball" else penetration, rel=1e-2
            )
            assert 0.019 * size < penetration < 0.031 * size
            assert faces.max_penetration == penetration
            assert faces.count == each.count > 0
            (message,) = faces.sentences
            assert "'thing'" in message
            assert "'solid0'" in message
            assert each.intersection.resolving_edge < size / 8


def test_discretization_of_round_contact_is_no_intersection():
    """On a ball of 1.5 edges all cloth vertices are on the ball, and triangles cut into it."""
    scene = supple.Scene()
    cloth = scene.add_cloth(
        supple.sheet(cells=6, size=(1, 1), plane="zx", origin=(-0.5, 0.0, -0.5), pattern="equilateral"),
        supple.materials.PlaneStressStVK(young=1e5, poisson=0.3),
        thickness=1e-3,
        density=1.0,
    )
    edge = float(np.linalg.norm(np.diff(cloth.points[cloth.mesh.triangles[0]], axis=0), axis=1).max())
    radius = 1.5 * edge
    scene.pin(cloth.where([0]))
    scene.add_obstacle(supple.Sphere(radius, (0, -1.01 * radius, 0)), name="ball")
    problem = make_problem(scene, True, supple.Backend())
    x = problem.positions - np.array([0, -1.01 * radius, 0])
    problem.positions = problem.model.rest + (radius / np.linalg.norm(x, axis=1) - 1)[:, None] * x
    problem.contacts.find(np.inf)
    report = report_obstacle_contact(problem)[0]
    assert 0.03 * edge < report.faces.max_penetration < 0.2 * edge, "it is cut"
    assert not report.is_intersecting


@pytest.mark.parametrize("threads", [1, 2])
def test_equilibrium_with_a_corner_in_a_face_has_not_converged(threads):
    """No vertex touches the large box, which stands on its corner."""
    tip = (0.35, 1.0, 0.2)
    corner = supple.Box((3, 3, 3), (0.35, 1 + 1.5 * np.sqrt(3), 0.2), (-1, 0, 1), np.arccos(1 / np.sqrt(3)))
    assert distances_to(Shapes(corner.rows, np.zeros(1)), np.array([tip]))[0] == pytest.approx(0, abs=1e-9)
    scene = block(corner, supple.Translate((0, -0.1, 0)))
    report = supple.equilibrium(scene, tolerance=1e-6, threads=threads).report
    assert report.outcome is supple.Outcome.INTERSECTING
    assert not report.ok
    assert any("'thing'" in note for note in report.notes)
    assert "face" in report.outcome.value


def test_faces_with_pinned_vertices_inside_are_ignored():
    """Pinned vertices may be inside an obstacle on purpose."""
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(
        supple.block(cells=(2, 2, 2), size=(1, 1, 1)), supple.Corotated(young=1e5, poisson=0.3)
    )
    scene.pin(body.where(lambda X: X[:, 1] < 1e-6))
    scene.add_obstacle(supple.Box((3, 0.2, 3), (0.5, 0.0, 0.5)), name="floor")
    assert placed(scene).faces.max_penetration == 0


def test_device_finds_the_faces_of_the_host(fake_device):  # noqa: F811
    """One of the two batch members has moved away from the obstacle."""
    from supple.problem.cuda import Cuda

    scene = block(obstacle_shapes(1.0, (0, 0, 0))["ball"], supple.Translate((0, -0.03, 0)))
    model = supple.scene.build_model(scene)
    problem = Problem(model, "float64", 1, Cuda(model.vertices + 1))
    problem.set_batch_size(2)
    problem.states.positions = np.stack([model.rest, model.rest - np.array([0, 0.1, 0])])
    problem.contacts.find(np.inf)
    near, away = (report.faces for report in report_obstacle_contact(problem))
    assert near == placed(scene).faces
    assert near.is_intersecting
    assert near.max_penetration > 0
    assert away.each == ()
    assert away.max_penetration == 0
