"""Signed distances of closed surfaces against brute force, with the winding number as independent sign."""

import numpy as np
import pytest

import supple
from supple.collision import distances_to
from supple.scene.shapes.obstacle import obstacles_of


def closest_by_brute_force(points, corners):
    """(n,) [m] the least distance of points (n, 3) from triangles (t, 3, 3), by sections and edges."""
    distances = np.full(len(points), np.inf)
    for a, b, c in corners:
        for p, q in ((a, b), (b, c), (c, a)):
            way = q - p
            part = np.clip((points - p) @ way / max(way @ way, 1e-300), 0, 1)
            distances = np.minimum(distances, np.linalg.norm(points - p - part[:, None] * way, axis=1))
        normal = np.cross(b - a, c - a)
        if not normal.any():
            continue
        normal /= np.linalg.norm(normal)
        height = (points - a) @ normal
        closest_point = points - height[:, None] * normal
        inside = np.ones(len(points), bool)
        for p, q in ((a, b), (b, c), (c, a)):
            inside &= np.cross(q - p, closest_point - p) @ normal >= 0
        distances = np.where(inside, np.minimum(distances, np.abs(height)), distances)
    return distances


def winding(points, corners):
    """Winding numbers (n,) of a surface around points, by solid angles [Van Oosterom and Strackee 1983]."""
    total = np.zeros(len(points))
    for triangle in corners:
        a, b, c = (corner - points for corner in triangle)
        la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
        top = (a * np.cross(b, c)).sum(axis=1)
        dots = [(u * v).sum(axis=1) for u, v in ((a, b), (b, c), (c, a))]
        total += 2 * np.arctan2(top, la * lb * lc + dots[0] * lc + dots[1] * la + dots[2] * lb)
    return total / (4 * np.pi)


def signed_by_brute_force(points, corners):
    d = closest_by_brute_force(points, corners)
    return np.where(winding(points, corners) > 0.5, -d, d)


def extruded(profile, half=1.0):
    """The closed surface of a profile (n, 2), counter-clockwise, along z."""
    P = np.array(profile, float)
    n, left, ears = len(P), list(range(len(P))), []

    def area(i, j, k):
        (ax, ay), (bx, by) = P[j] - P[i], P[k] - P[i]
        return ax * by - ay * bx

    while len(left) > 3:
        for at in range(len(left)):
            i, j, k = left[at - 1], left[at], left[(at + 1) % len(left)]
            others = [m for m in left if m not in (i, j, k)]
            blocked = any(min(area(i, j, m), area(j, k, m), area(k, i, m)) >= 0 for m in others)
            if area(i, j, k) > 0 and not blocked:
                ears.append((i, j, k))
                left.remove(j)
                break
        else:
            raise AssertionError("the profile crosses itself")
    cap = np.array([*ears, left])
    sides = [t for i in range(n) for j in [(i + 1) % n] for t in ((i, j, j + n), (i, j + n, i + n))]
    points = np.concatenate([np.column_stack([P, np.full(n, z)]) for z in (-half, half)])
    return supple.TriMesh(points, np.concatenate([sides, cap[:, ::-1], cap + n]))


VALLEY = [(-1, -1), (1, -1), (1, 0.1), (0, 0), (-1, 0.1)]
FIN = [(-0.75, -1), (0.75, -1), (0.75, 0), (0.001, 0), (0.001, 0.4), (-0.001, 0.4), (-0.001, 0), (-0.75, 0)]
"""A fin 2 mm thick on a body 1.5 m wide."""


def bumpy(resolution=5):
    ball = supple.meshes.sphere(radius=0.5, resolution=resolution)
    x, y, z = ball.points.T
    return supple.TriMesh(
        ball.points * (1 + 0.2 * np.sin(9 * x) * np.cos(7 * y + 3 * z))[:, None], ball.triangles
    )


def with_slivers():
    """A box whose top has a triangle without area and one that is 1e-7 high."""
    corners = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    points = np.concatenate([corners, [(0.5, 0.5, 1), (0.25, 0.25, 1), (0.75, 0.75 + 1e-7, 1)]])
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4)]
    triangles = [t for p, q, r, s in sides for t in ((p, q, r), (p, r, s))]
    # the top 1, 5, 7, 3 with its diagonal 1 to 7 in three parts on one side, and straight on the other
    triangles += [(1, 5, 7), (1, 7, 9), (9, 7, 8), (8, 7, 10), (1, 9, 3), (9, 8, 3), (8, 10, 3), (10, 7, 3)]
    return supple.TriMesh(points, triangles)


MESHES = {
    "bumpy": bumpy,
    "valley": lambda: extruded(VALLEY),
    "fin": lambda: extruded(FIN),
    "slivers": with_slivers,
    "tetrahedron": lambda: supple.TriMesh(
        [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 0.01)], [(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)]
    ),
}


def sample_points(mesh, seed=0):
    """Points (n, 3) [m] on and near faces, edges and vertices of a mesh, and all around it."""
    rng = np.random.default_rng(seed)
    corners = mesh.points[mesh.triangles]
    on = np.concatenate(
        [np.einsum("tk,tki->ti", rng.dirichlet([a] * 3, len(corners)), corners) for a in (0.05, 1)]
    )
    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    near = [on + s * rng.normal(size=on.shape) for s in (1e-9, 1e-4, 1e-2)]
    return np.concatenate(
        [*near, mesh.points + 1e-3 * rng.normal(size=mesh.points.shape), rng.uniform(low, high, (200, 3))]
    )


def distances_of(shape, points, time=0.0, motion=None):
    scene = supple.Scene()
    scene.add_obstacle(shape, motion)
    d, n, _ = distances_to(obstacles_of(scene).shapes(time), points)
    return d, n


@pytest.mark.parametrize("name", MESHES)
def test_distances_equal_those_to_the_triangles(name):
    mesh = MESHES[name]()
    points, corners = sample_points(mesh), mesh.points[mesh.triangles]
    d, n = distances_of(supple.SurfaceShape(mesh), points)
    truth = signed_by_brute_force(points, corners)
    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    if name == "slivers":  # which solid angles do not know from nothing
        inside = ((points > low) & (points < high)).all(axis=1)
        truth = np.where(inside, -np.abs(truth), np.abs(truth))
    outside = np.linalg.norm(np.maximum(np.maximum(low - points, points - high), 0), axis=1)
    np.testing.assert_allclose(d[outside == 0], truth[outside == 0], atol=1e-12)
    assert (d >= truth - 1e-12).all(), "outside the bounding box, distances are never too small"
    assert (d <= truth + 0.1 * outside + 1e-12).all()
    np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1, atol=1e-12)
    clear = np.abs(truth) > 1e-5
    closest_point = points[clear] - d[clear, None] * n[clear]
    assert closest_by_brute_force(closest_point, corners).max() < 1e-9, "gradients lead to the closest point"


def test_far_distances_are_within_a_tenth_of_the_bounding_box_distance():
    mesh = bumpy()
    points = np.random.default_rng(1).uniform(-30, 30, (300, 3))
    d, _ = distances_of(supple.SurfaceShape(mesh), points)
    truth = closest_by_brute_force(points, mesh.points[mesh.triangles])
    assert (d >= truth - 1e-12).all()
    assert (d <= 1.1 * truth).all()


def test_distances_are_accurate_far_from_the_origin_and_for_turning_obstacles():
    mesh = extruded(FIN)
    points, offset = sample_points(mesh), np.array([2e3, -1e3, 5e3])
    distances_near, _ = distances_of(supple.SurfaceShape(mesh), points)
    distant, _ = distances_of(supple.SurfaceShape(mesh.translated(offset)), points + offset)
    np.testing.assert_allclose(distant, distances_near, atol=1e-11)
    motion = supple.Rotate(axis=(0, 1, 1), center=(1, 0, 0), angle=2.0)
    moved = motion(points, 0.7)
    turned, _ = distances_of(supple.SurfaceShape(mesh), moved, 0.7, motion)
    inside = distances_near < 0
    np.testing.assert_allclose(turned[inside], distances_near[inside], atol=1e-12)


def test_deforming_surface_interpolates_its_triangles():
    """A fin swings by its width, many times its thickness, between two meshes."""
    first = extruded(FIN)
    points = first.points.copy()
    points[points[:, 1] > 0.3, 0] += 0.3
    last = supple.TriMesh(points, first.triangles)
    sequence = supple.SurfaceSequence([first, last, first], times=[0, 1, 1.5])
    for time, part in ((-1, 0), (0, 0), (0.3, 0.3), (1, 1), (1.25, 0.5), (9, 0)):
        mesh = supple.TriMesh((1 - part) * first.points + part * last.points, first.triangles)
        samples = sample_points(mesh)
        low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
        samples = samples[((samples >= low) & (samples <= high)).all(axis=1)]
        d, _ = distances_of(sequence, samples, time)
        np.testing.assert_allclose(d, signed_by_brute_force(samples, mesh.points[mesh.triangles]), atol=1e-12)


def test_meshes_with_different_triangles_are_blended():
    first, last = (
        supple.meshes.sphere(radius=0.3, resolution=4),
        supple.meshes.sphere(radius=0.4, resolution=3),
    )
    sequence = supple.SurfaceSequence([first, last], times=[0, 1])
    points = np.random.default_rng(0).uniform(-0.25, 0.25, (100, 3))
    ends = [signed_by_brute_force(points, m.points[m.triangles]) for m in (first, last)]
    for time in (0.0, 0.25, 1.0):
        d, n = distances_of(sequence, points, time)
        np.testing.assert_allclose(d, (1 - time) * ends[0] + time * ends[1], atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(n, axis=1), 1, atol=1e-12)


def test_large_meshes_are_set_up_quickly():
    """80,000 triangles take little time, and 0.35 kB of memory each."""
    mesh = supple.meshes.sphere(radius=0.5, resolution=64)
    assert mesh.n_triangles > 5e4
    shape = supple.SurfaceShape(mesh)
    assert shape.values.nbytes < 350 * mesh.n_triangles
    points = np.random.default_rng(0).normal(size=(100, 3))
    points *= 0.49 / np.linalg.norm(points, axis=1)[:, None]
    np.testing.assert_allclose(distances_of(shape, points)[0], -0.01, atol=1e-3)


def test_thickness_is_that_of_the_deepest_ball_and_of_thin_parts():
    plate = extruded([(-0.1, 0), (0.1, 0), (0.1, 0.002), (-0.1, 0.002)], 0.1)
    (row,) = supple.SurfaceShape(plate).rows
    from supple.collision.obstacles.signed_distance import CREASES, THICKNESS, THIN

    assert row[THICKNESS] == pytest.approx(0.002, rel=1e-4)
    assert row[THIN] == pytest.approx(0.002, rel=1e-4)
    assert row[CREASES] == 0
    (row,) = supple.SurfaceShape(extruded(FIN)).rows
    assert row[THICKNESS] > 0.5
    assert row[CREASES] == 1


def test_surfaces_with_turned_triangles_are_refused():
    ball = supple.meshes.sphere(radius=0.5, resolution=3)
    turned = ball.triangles.copy()
    turned[7] = turned[7, ::-1]
    with pytest.raises(supple.SceneError, match="face opposite ways: 3 of"):
        supple.SurfaceShape(supple.TriMesh(ball.points, turned))


def draped(shape, y, motion=None, friction=0.0, cells=8, size=0.6):
    scene = supple.Scene(gravity=(0, -9.81, 0), quasistatic=False, dt=0.01, damping=0.03)
    sheet = supple.sheet(
        cells=(cells, cells), size=(size, size), plane="zx", origin=(-size / 2, y, -size / 2)
    )
    scene.add_cloth(
        sheet,
        supple.materials.PlaneStressStVK(young=2e3, poisson=0.3),
        supple.HingeBending(rigidity=1e-6),
        thickness=1e-3,
        density=200,
    )
    scene.add_obstacle(shape, motion, friction=friction, name="thing")
    return scene


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", ["bumpy", "valley"])
def test_reports_have_the_depth_in_the_given_mesh(name, precision):
    """Cloth falls on a round shape, and into a valley whose both sides its middle touches."""
    mesh = MESHES[name]()
    scene = draped(supple.SurfaceShape(mesh), mesh.points[:, 1].max() + 0.02 if name == "bumpy" else 0.04)
    corners, deep = mesh.points[mesh.triangles], {"float32": 2e-6, "float64": 1e-9}[precision]
    for frame in supple.simulate(scene, solver=supple.PBNG(), frames=30, tolerance=1e-4, precision=precision):
        truth = -signed_by_brute_force(frame.positions, corners).min()
        (obstacle,) = frame.report.contact.obstacles.each
        assert obstacle.max_penetration == pytest.approx(max(truth, 0), abs=1e-2 * deep)
        assert truth < deep
    assert obstacle.count > 3
    assert frame.report.relative_residual < 1e-4, "it rests"


def test_cloth_that_starts_inside_a_thin_part_is_refused_with_its_depth():
    scene = draped(supple.SurfaceShape(extruded(FIN)), 0.2)
    points = scene.bodies[0].points
    assert np.abs(points[:, 0]).min() < 1e-12
    with pytest.raises(
        supple.SceneError, match=r"begins inside obstacle 'thing': 9 of .*at most 0.001 m deep"
    ):
        supple.scene.build_model(scene)


@pytest.mark.parametrize("solver", [None, supple.PBNG(iterations=40)])
def test_cloth_that_passes_a_thin_part_is_reported(solver):
    """A 2 mm part passes through 9 cm cells between their vertices."""
    scene = supple.Scene(gravity=(0, -9.81, 0), quasistatic=False)
    sheet = supple.sheet(cells=(8, 8), size=(0.7, 0.7), plane="zx", origin=(-0.4, 0.42, -0.35))
    scene.add_cloth(
        sheet, supple.materials.PlaneStressStVK(young=5e4, poisson=0.3), thickness=5e-4, density=400
    )
    scene.add_obstacle(supple.SurfaceShape(extruded(FIN)))
    *_, before, last = supple.simulate(scene, solver=solver, dt=1 / 48, frames=7)
    for frame in (before, last):
        assert 0.1 < frame.positions[:, 1].max() < 0.4
        assert frame.report.contact.faces.max_penetration == pytest.approx(1e-3, rel=1e-3)
        assert not frame.report.ok
        assert any("deep in a face of 'cloth0'" in note for note in frame.report.notes)
