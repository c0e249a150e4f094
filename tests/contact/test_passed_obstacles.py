"""Vertices do not pass through thin obstacles within a step; passages that remain are reported."""

import numpy as np
import pytest
from fake_device import fake_device  # noqa: F401

import supple
from supple.collision.obstacles.passage import passage_fraction
from supple.collision.obstacles.signed_distance import Shapes
from supple.contact.rigid_passage import crossed_triangles
from supple.contact.state.obstacle_report import report_obstacle_contact
from supple.kernels import kernel
from supple.problem import Problem
from supple.scene.shapes.surface_shapes import SurfaceShape
from supple.solve.batch_solve import make_problem

CLOTH = supple.materials.PlaneStressStVK(young=5e5, poisson=0.3)

PLATE = np.array([(-1.5, -1), (1.5, -1), (1.5, 1), (-1.5, 1)]), [(0, 1, 2), (0, 2, 3)]
FIN = (
    np.array(
        [(-0.75, -1), (0.75, -1), (0.75, 0), (0.001, 0), (0.001, 0.4), (-0.001, 0.4), (-0.001, 0), (-0.75, 0)]
    ),
    [(0, 1, 2), (0, 2, 3), (0, 3, 6), (0, 6, 7), (3, 4, 5), (3, 5, 6)],
)
"""Profiles (n, 2) [m] and their triangles: a plate 2 m thick, and a fin 2 mm thick on a body 1.5 m wide."""


def extruded(profile, triangles, half=1.0):
    """Closed surface of a profile, counterclockwise, along z."""
    n, corners = len(profile), np.array(triangles)
    points = np.concatenate([np.column_stack([profile, np.full(n, z)]) for z in (-half, half)])
    first, second = np.arange(n), np.roll(np.arange(n), -1)
    sides = [np.column_stack([first, second, second + n]), np.column_stack([first, second + n, first + n])]
    return SurfaceShape(supple.TriMesh(points, np.concatenate([corners[:, ::-1], corners + n, *sides])))


def falling(kind, obstacle, motion=None, velocity=None, height=0.05, cells=4, **options):
    """A scene with a body that falls on an obstacle."""
    scene = supple.Scene(**({"quasistatic": False} | options))
    moves = {} if velocity is None else {"velocity": velocity}
    if kind == "cloth":
        mesh = supple.sheet(cells=cells, size=(0.8, 0.8), plane="zx", origin=(-0.4, height, -0.4))
        material = CLOTH
        scene.add_cloth(mesh, material, thickness=4e-4, density=0.15, **moves)
    else:
        mesh = supple.block(2, size=(0.3, 0.3, 0.3), origin=(-0.15, height, -0.15))
        scene.add_solid(mesh, supple.materials.NeoHookean(young=1e5, poisson=0.4), density=1000.0, **moves)
    scene.add_obstacle(obstacle, motion, name="plate")
    return scene


def plate(thickness):
    return supple.Box(size=(3, thickness, 3), center=(0, 0, 0))


def plate_mesh(thickness):
    return extruded(PLATE[0] * (1, thickness / 2), PLATE[1], 1.5)


@pytest.mark.parametrize("velocity", [None, (0, -5, 0)])
@pytest.mark.parametrize(
    ("obstacle", "top"),
    [(plate(0.004), 0.002), (plate(0.04), 0.02), (plate_mesh(0.004), 0.002)],
    ids=["4mm", "40mm", "mesh"],
)
@pytest.mark.parametrize("kind", ["cloth", "solid"])
def test_a_body_rests_on_a_thin_plate(kind, obstacle, top, velocity):
    scene = falling(kind, obstacle, velocity=velocity)
    for frame in supple.simulate(scene, dt=1 / 48, frames=7):
        assert frame.positions[:, 1].min() > top - 1e-9
        assert frame.report.ok, frame.report


@pytest.mark.parametrize("solver", ["pbng", "newton", "xpbd"])
def test_every_method_keeps_vertices_on_their_side(solver):
    scene = falling("cloth", plate(0.004), velocity=(0, -5, 0))
    for frame in supple.simulate(scene, solver=solver, dt=1 / 48, frames=3):
        assert frame.positions[:, 1].min() > 0.002 - 1e-9


def test_a_fast_plate_takes_a_falling_cloth_along():
    """Plate and cloth fall at the same velocity, by many thicknesses per step."""
    plate_at_rest, move = plate(0.004), supple.Translate((0, -4, 0), duration=0.8)
    scene = falling("cloth", plate_at_rest, move, velocity=(0, -5, 0), height=0.01, gravity=(0, 0, 0))
    for frame in supple.simulate(scene, dt=1 / 48, frames=3):
        assert frame.positions[:, 1].min() > -5 * frame.time + 0.002 - 1e-9
        assert frame.report.ok, frame.report


def test_a_fast_plate_pushes_a_cloth_in_its_way():
    scene = falling(
        "cloth", plate(0.004), supple.Translate((0, 4, 0), duration=0.2), height=0.05, gravity=(0, 0, 0)
    )
    for frame in supple.simulate(scene, dt=0.02, frames=3):
        assert frame.positions[:, 1].min() > 20 * frame.time + 0.002 - 1e-9


def test_cloth_lands_on_the_ridge_of_a_fin():
    """Vertices above a fin 2 mm thick fall by a multiple of its height in one step."""
    scene = falling("cloth", extruded(*FIN), velocity=(0, -20, 0), height=0.45)
    (frame,) = supple.simulate(scene, dt=1 / 48, frames=1)
    middle = np.abs(frame.positions[:, 0]) < 1e-3
    assert middle.sum() == 5
    assert frame.positions[middle, 1].min() > 0.4 - 1e-6
    assert not frame.report.contact.is_intersecting


def squeezed():
    """Cloth between two thin plates that pass through each other."""
    scene = falling("cloth", plate(0.004), gravity=(0, 0, 0), height=0.01)
    scene.add_obstacle(
        supple.Box(size=(3, 0.004, 3), center=(0, 0.02, 0)),
        supple.Translate((0, -0.06, 0), duration=0.1),
        name="press",
    )
    return scene


@pytest.mark.parametrize("dt", [0.1, 0.02])
def test_vertices_that_pass_nevertheless_are_reported_from_then_on(dt):
    frames = list(supple.simulate(squeezed(), dt=dt, frames=round(0.1 / dt) + 2))
    reports = [frame.report for frame in frames]
    first = next(k for k, report in enumerate(reports) if report.contact.has_passed)
    (passage,) = reports[first].contact.obstacles.passages
    assert passage.body == "cloth0"
    assert 0 < passage.count <= 25
    assert any(passage.obstacle in note and "'cloth0'" in note for note in reports[first].notes)
    assert not any(report.ok for report in reports[first:])
    assert all(report.outcome is not supple.Outcome.CONVERGED for report in reports[first:])
    assert {report.passed_since for report in reports[-2:]} == {frames[first].time}
    assert not reports[-1].contact.has_passed


def ball_through_cloth(radius=0.02):
    """A heavy ball that falls through a face of a cloth."""
    scene = supple.Scene(quasistatic=False)
    mesh = supple.sheet(6, (0.6, 0.6), plane="zx", origin=(-0.3, 0, -0.3))
    cloth = scene.add_cloth(
        mesh, supple.materials.PlaneStressStVK(young=1e6, poisson=0.3), thickness=1e-3, density=0.2
    )
    scene.pin(cloth.where(lambda X: (np.abs(X[:, 0]) > 0.29) | (np.abs(X[:, 2]) > 0.29)))
    scene.add_obstacle(supple.Sphere(radius, center=(0.03, 0.03, 0.04)), mass=0.5, name="ball")
    return scene


def test_frames_after_a_passage_are_not_ok_until_the_state_is_set():
    """The ball passes in a step that ends early; it is in no face at the end of any frame."""
    stepper = supple.Stepper(ball_through_cloth(), dt=0.02, max_iterations=40)
    start, frames = stepper.state, [stepper.step() for _ in range(12)]
    first = next(k for k, frame in enumerate(frames) if frame.report.passed_since is not None)
    since, last = frames[first].time, frames[-1]
    assert last.state.history["rigid"][0, 1] < last.positions[:, 1].min() - 0.02, "the ball is below"
    assert not any(frame.report.ok for frame in frames[first:])
    assert supple.Outcome.CONVERGED not in {frame.report.outcome for frame in frames[first:]}
    assert last.report.passed_since == since
    assert any(f"{since:.6g} s" in note for note in last.report.notes)
    assert last.report.to_dict()["passed_since"] == since
    stepper.state = last.state
    assert not stepper.step().report.ok, "it is part of the state"
    stepper.state = start
    assert stepper.step().report.passed_since is None
    stepper.reset(positions=last.positions)
    assert stepper.step().report.passed_since is None


def test_a_center_that_crosses_a_moving_triangle():
    triangle = np.array([[[-1.0, 0, -1], [1, 0, -1], [0, 0, 2]]])
    above, below, aside = np.array([0, 1.0, 0]), np.array([0, -1.0, 0]), np.array([3.0, 0, 0])
    assert crossed_triangles(triangle + above, triangle + below).tolist() == [0]
    assert crossed_triangles(triangle + below, triangle + above).tolist() == [0]
    for first, last in (
        (above, 0.1 * above),
        (above + aside, below + aside),
        (above, above),
        (above, below + 2 * aside),
    ):
        assert not len(crossed_triangles(triangle + first, triangle + last))


def fin_through_cloth(height, row=0.003):
    """The report of a cloth at a height of a fin, with a row of vertices beside the fin."""
    scene = supple.Scene(gravity=(0, 0, 0))
    mesh = supple.sheet(cells=8, size=(0.8, 0.8), plane="zx", origin=(-0.4 + row, height, -0.4))
    scene.add_cloth(mesh, CLOTH, thickness=4e-4, density=0.15)
    scene.add_obstacle(extruded(*FIN), name="fin")
    problem = make_problem(scene, True, supple.Backend())
    problem.contacts.find(np.inf)
    return report_obstacle_contact(problem)[0].faces


def test_a_fin_through_faces_is_found_however_thin_and_however_close_the_vertices():
    faces = fin_through_cloth(0.3)
    assert 0.0009 < faces.max_penetration <= 0.001 + 1e-9
    assert faces.is_intersecting
    assert "'fin'" in faces.sentences[0]
    low = fin_through_cloth(0.395)
    assert low.max_penetration > 0.0009
    assert not low.is_intersecting, "vertices resolve 5 mm of an edge of 14 cm"
    assert fin_through_cloth(0.401).max_penetration == 0


def test_faces_deeper_than_half_of_their_edges_are_intersected():
    """Vertices inside an obstacle that is much thicker than the edges."""
    for depth, passes in ((0.03, False), (0.09, True)):
        scene = supple.Scene(gravity=(0, 0, 0))
        mesh = supple.sheet(cells=8, size=(0.8, 0.8), plane="zx", origin=(-0.4, 1.2, -0.4))
        scene.add_cloth(mesh, CLOTH, thickness=4e-4, density=0.15)
        x, _, z = mesh.points[mesh.triangles[60]].mean(axis=0)
        scene.add_obstacle(supple.Sphere(1.0, center=(x, 0, z)), name="ball")
        problem = make_problem(scene, True, supple.Backend())
        problem.positions = problem.model.rest - np.array([0, 0.2 + depth, 0])
        problem.contacts.find(np.inf)
        assert report_obstacle_contact(problem)[0].faces.is_intersecting == passes


@kernel
def entries(shapes, p, q, half_thickness, result):
    for m in range(len(p)):
        a, b = (p[m, 0], p[m, 1], p[m, 2]), (q[m, 0], q[m, 1], q[m, 2])
        result[m] = passage_fraction(shapes, 0, a, b, half_thickness)


def test_paths_that_pass_through_a_plate():
    shapes, x = Shapes(plate(0.02).rows, np.zeros(1)), 0.0
    paths = {
        "through": ((x, 0.05, 0), (x, -0.05, 0), 0.4),
        "upward": ((x, -0.05, 0), (0.1, 0.05, 0), 0.4),
        "from contact": ((x, 0.01, 0), (x, -0.05, 0), 0.0),
        "beyond the middle": ((x, 0.05, 0), (x, -0.003, 0), 0.04 / 0.053),
        "above the middle": ((x, 0.05, 0), (x, 0.003, 0), 1.0),
        "along": ((x, 0.01, 0), (1.0, 0.01, 0), 1.0),
        "away": ((x, 0.01, 0), (0.2, 0.4, 0), 1.0),
        "beside": ((1.6, 0.05, 0), (1.6, -0.05, 0), 1.0),
        "from inside": ((x, 0.0, 0), (x, -0.05, 0), 1.0),
        "nowhere": ((x, 0.05, 0), (np.nan, 0.0, 0), 1.0),
    }
    p, q, expected = (np.array(column) for column in zip(*paths.values(), strict=True))
    result = np.zeros(len(paths))
    entries(shapes, p, q, 0.01, result)
    for name, t, at in zip(paths, result, expected, strict=True):
        assert t <= at + 1e-12 if at < 1 else t == 1, name
        assert at == 1 or (at - t) * np.linalg.norm(np.subtract(*paths[name][:2])) < 0.005, name


def test_a_device_keeps_vertices_on_their_side(fake_device):  # noqa: F811
    from supple.problem.cuda import Cuda

    scene = falling("cloth", plate(0.004), velocity=(0, -5, 0))
    model = supple.scene.build_model(scene)
    problem = Problem(model, "float64", 1, Cuda(model.vertices + 1))
    problem.set_batch_size(2)
    problem.states.set_velocities(
        np.stack([np.full((model.vertices, 3), v) for v in ((0, -5, 0), (0, 0, 0))])
    )
    problem.begin_step(0.1, 0.1)
    fast, slow = problem.states.positions
    assert 0.002 < fast[:, 1].min() < 0.003
    np.testing.assert_allclose(slow, model.rest)
