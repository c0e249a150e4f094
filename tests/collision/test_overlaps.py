"""Overlaps of triangles: areas and centroids that add up exactly for any meshes."""

import itertools

import numpy as np
import pytest

import supple
from supple.collision.broad_phase.search import near
from supple.collision.ccd.intersections import any_pair_crosses
from supple.collision.geometry.normals import areas
from supple.collision.narrow_phase.contact_pairs import Surfaces
from supple.collision.narrow_phase.face_face import MAX_CORNERS, overlap


def square(cells, seed, height, up):
    """Unit square with randomly moved inner vertices, whose triangles are counter-clockwise from above or
    below."""
    mesh, rng = supple.sheet(cells, size=(1, 1), plane="xz"), np.random.default_rng(seed)
    x = np.array(mesh.points)
    x -= x.min(axis=0)
    inner = (x[:, [0, 2]] > 1e-9).all(axis=1) & (x[:, [0, 2]] < 1 - 1e-9).all(axis=1)
    x[inner] += 0.2 / cells * rng.uniform(-1, 1, (int(inner.sum()), 3)) * (1, 0, 1)
    x[:, 1] = height
    a, b, c = np.moveaxis(x[mesh.triangles], 1, 0)
    wrong = (np.cross(b - a, c - a)[:, 1] > 0) != up
    triangles = np.array(mesh.triangles)
    triangles[wrong] = triangles[wrong][:, ::-1]
    return x, triangles


def two_squares(gap=0.01, flat=(False, False)):
    low, high = square(3, 0, 0.0, True), square(5, 1, gap, False)
    n = len(low[0])
    x, triangles = np.concatenate([low[0], high[0]]), np.concatenate([low[1], high[1] + n])
    body = np.repeat([0, 1], [n, len(high[0])])
    return Surfaces(triangles, body, x, 0.0, np.array(flat)), x, n


@pytest.mark.parametrize("flat", [(False, False), (True, False), (True, True)])
def test_uniform_pressure_reaches_every_vertex_of_both_meshes(flat):
    """Σ A w equals ∫ N over each of the two meshes; vertices and edges contribute nothing."""
    surfaces, x, n = two_squares(flat=flat)
    pairs = surfaces.contact_pairs(x, 0.012, 0.1)
    assert np.allclose(pairs.distance, 0.01)
    size = 1.6 * np.sqrt(np.minimum(*(areas(x, surfaces.triangles[pairs.keys[:, k]]) for k in range(2))))
    area = pairs.strength * surfaces.edge * size
    assert area.sum() == pytest.approx(1, rel=1e-12)
    forces = np.zeros(len(x))
    np.add.at(forces, pairs.vertices, area[:, None] * pairs.weights)
    expected = np.zeros(len(x))
    np.add.at(expected, surfaces.triangles, areas(x, surfaces.triangles)[:, None] / 3)
    sign = np.where(np.arange(len(x)) < n, 1.0, -1.0)
    np.testing.assert_allclose(sign * forces, expected, atol=1e-13)
    first = pairs.normal[:, 1]
    np.testing.assert_allclose(np.abs(first), 1)


def test_surfaces_with_opposite_backs_do_not_overlap():
    surfaces, x, _ = two_squares()
    of_low = surfaces.body[surfaces.triangles] == 0
    triangles = np.where(of_low, surfaces.triangles[:, ::-1], surfaces.triangles)
    turned = Surfaces(triangles, surfaces.body, x, 0.0, surfaces.flat)
    pairs = turned.contact_pairs(x, 0.012, 0.1)
    assert not (pairs.keys < len(triangles)).all(axis=1).any()


def test_overlap_of_two_triangles_matches_samples():
    rng = np.random.default_rng(3)
    for _ in range(20):
        x = np.zeros((6, 3))
        x[:, :2] = rng.uniform(0, 1, (6, 2))
        weights = np.zeros(6)
        area = overlap(np.ascontiguousarray(x[:, :2]), np.zeros((2, MAX_CORNERS, 2)), weights)
        points = rng.uniform(0, 1, (40_000, 2))
        inside = inside_of(points, x[:3]) & inside_of(points, x[3:])
        assert area == pytest.approx(inside.mean(), abs=0.01)
        if area > 0.02:
            middle = weights[:3] @ x[:3, :2]
            np.testing.assert_allclose(middle, points[inside].mean(axis=0), atol=0.03)
            np.testing.assert_allclose(middle, -weights[3:] @ x[3:, :2], atol=1e-12)


def area2(x):
    (ax, ay), (bx, by), (cx, cy) = x[:, :2]
    return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)


def inside_of(points, x):
    sides = []
    for k in range(3):
        a, b = x[k, :2], x[(k + 1) % 3, :2]
        sides.append((b[0] - a[0]) * (points[:, 1] - a[1]) - (b[1] - a[1]) * (points[:, 0] - a[0]))
    return (np.array(sides) * np.sign(area2(x)) > 0).all(axis=0)


def test_triangle_pairs_with_near_boxes_equal_brute_force():
    rng = np.random.default_rng(4)
    x = (rng.uniform(-1, 1, (30, 1, 3)) + 0.2 * rng.normal(size=(30, 3, 3))).reshape(-1, 3)
    triangles = np.arange(90).reshape(-1, 3)
    start, pair_array = near(x, triangles, triangles, 0.1)
    low, high = x[triangles].min(axis=1), x[triangles].max(axis=1)
    expected = [
        (i, k)
        for i, k in itertools.combinations(range(30), 2)
        if np.linalg.norm(np.maximum(np.maximum(low[i] - high[k], low[k] - high[i]), 0)) < 0.1
    ]
    pairs = np.column_stack([np.repeat(np.arange(30), np.diff(start)), pair_array])
    np.testing.assert_array_equal(pairs, expected)


def pressed(nu, gap, displacement, cells=(2, 3), material=supple.Corotated):
    scene = supple.Scene(gravity=(0, 0, 0), contact="weak")
    elastic = material(young=1e5, poisson=nu)
    low = scene.add_solid(supple.block(cells[0]), elastic, name="low")
    high = scene.add_solid(supple.block(cells[1]).translated((0, 1 + gap, 0)), elastic, name="high")
    scene.pin(low.where(lambda X: X[:, 1] <= 0))
    scene.pin(high.where(lambda X: X[:, 1] > 2), supple.Translate((0, -displacement, 0)), name="top")
    return scene


def test_non_matching_blocks_pass_the_patch_test():
    """With ν = 0 the stress is uniform [El-Abbasi and Bathe 2001]."""
    scene = pressed(0.0, 0.003, 0.05, (3, 4), supple.materials.LinearElastic)
    result = supple.equilibrium(scene, tolerance=1e-9, position_tolerance=None)
    stress = result.evaluate().cauchy[:, 1, 1]
    assert result.report.ok
    assert result.report.contact.bodies.max_penetration == 0
    np.testing.assert_allclose(stress, stress.mean(), rtol=1e-6)
    assert -stress.mean() == pytest.approx(1e5 * 0.05 / 2, rel=0.05)


@pytest.mark.parametrize("solver", ["pbng", "hybrid"])
def test_closing_gap_converges_to_newtons_equilibrium(solver):
    reference = supple.equilibrium(
        pressed(0.3, 0.06, 0.16), solver="newton", tolerance=1e-7, position_tolerance=None
    )
    result = supple.equilibrium(
        pressed(0.3, 0.06, 0.16), solver=solver, tolerance=1e-5, position_tolerance=None
    )
    assert reference.report.ok, reference.report
    assert result.report.ok, result.report
    np.testing.assert_allclose(result.positions, reference.positions, atol=1e-3)


def test_only_the_given_pairs_of_bodies_are_searched_for_crossings():
    """Cubes 0 and 1 intersect; 2 is inside the bounding box of both, but touches neither."""
    origins = (0, 0, 0), (0.5, 0.4, 0.3), (0.52, 0.42, 0.32)
    sides = 1.0, 1.0, 0.02
    cubes = [supple.block(2, size=(s, s, s), origin=o) for o, s in zip(origins, sides, strict=True)]
    n = [len(cube.points) for cube in cubes]
    x = np.concatenate([cube.points for cube in cubes])
    triangles = np.concatenate(
        [cube.surface + start for cube, start in zip(cubes, np.cumsum([0, *n[:-1]]), strict=True)]
    )
    surfaces = Surfaces(triangles, np.repeat([0, 1, 2], n), x, 0.0, np.zeros(3, bool))
    for pairs, crosses in (([[0, 1]], True), ([[1, 0]], True), ([[0, 2], [1, 2]], False)):
        assert any_pair_crosses(surfaces, x, np.array(pairs)) == crosses
    assert not any_pair_crosses(surfaces, x, np.zeros((0, 2), int))
