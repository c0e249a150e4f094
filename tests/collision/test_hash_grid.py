"""Broad-phase pairs of the hash grid against brute force, and against ipctk if it is installed."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from surface_cases import CASES, crumpled, edges_of

from supple.collision.broad_phase.search import near
from supple.collision.geometry.closest_point import between, on_edges, on_triangle
from supple.kernels import Host


def pair_list(start, pairs):
    return np.column_stack([np.repeat(np.arange(len(start) - 1), np.diff(start)), pairs])


def vertex_distance(x, v, t):
    weights = np.array(on_triangle(*map(tuple, x[[v, *t]])))
    return np.linalg.norm(x[v] - weights @ x[t])


def edge_distance(x, e, f):
    a, b, c, d = map(tuple, x[[*e, *f]])
    s, t = on_edges(a, b, c, d)
    return np.linalg.norm(np.subtract(between(s, a, b), between(t, c, d)))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("radius", [0.02, 0.2])
def test_vertex_triangle_pairs_equal_brute_force(name, radius):
    x, triangles = CASES[name]
    vertices = np.unique(triangles)[:, None]
    pairs = pair_list(*near(x, vertices, triangles, radius))
    expected = [
        (i, k)
        for i, k in itertools.product(range(len(vertices)), range(len(triangles)))
        if vertices[i, 0] not in triangles[k] and vertex_distance(x, vertices[i, 0], triangles[k]) < radius
    ]
    assert_array_equal(pairs, np.array(expected, int).reshape(-1, 2))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("radius", [0.02, 0.2])
def test_edge_edge_pairs_equal_brute_force(name, radius):
    x, triangles = CASES[name]
    edges = edges_of(triangles)
    pairs = pair_list(*near(x, edges, edges, radius))
    expected = [
        (i, k)
        for i, k in itertools.combinations(range(len(edges)), 2)
        if not set(edges[i]) & set(edges[k]) and edge_distance(x, edges[i], edges[k]) < radius
    ]
    assert_array_equal(pairs, np.array(expected, int).reshape(-1, 2))


def test_closest_points_are_optimal():
    rng = np.random.default_rng(5)
    grid = np.linspace(0, 1, 40)
    for _ in range(30):
        p, a, b, c, d = rng.normal(size=(5, 3))
        weights = np.array(on_triangle(tuple(p), tuple(a), tuple(b), tuple(c)))
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(1)
        distance = np.linalg.norm(p - weights @ np.stack([a, b, c]))
        others = [p - a - s * (b - a) - t * (c - a) for s in grid for t in grid if s + t <= 1]
        assert distance <= np.linalg.norm(others, axis=1).min() + 1e-12
        s, t = on_edges(tuple(a), tuple(b), tuple(c), tuple(d))
        distance = np.linalg.norm(a + s * (b - a) - c - t * (d - c))
        others = [a + s * (b - a) - c - t * (d - c) for s in grid for t in grid]
        assert distance <= np.linalg.norm(others, axis=1).min() + 1e-12


def test_pairs_do_not_depend_on_threads():
    x, triangles = crumpled(2)
    edges = edges_of(triangles)
    one, two = (near(x, edges, edges, 0.1, Host(threads)) for threads in (1, 2))
    assert_array_equal(one[0], two[0])
    assert_array_equal(one[1], two[1])


@pytest.mark.parametrize("threads", [1, 3])
def test_large_triangles_find_all_triangles_above(threads):
    """Two large triangles below 512 small ones give sorted rows of hundreds of pairs."""
    k = np.arange(17)
    sheet = np.stack([*np.meshgrid(k / 16, [1e-3], k / 16, indexing="ij")], axis=-1).reshape(-1, 3)
    at = np.arange(17 * 17).reshape(17, 17) + 4
    a, b, c, d = (corner.ravel() for corner in (at[:-1, :-1], at[1:, :-1], at[1:, 1:], at[:-1, 1:]))
    floor = np.array([[0, 0, 0], [1, 0, 0], [1, 0, 1], [0, 0, 1]])
    small = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    triangles = np.concatenate([[[0, 1, 2], [0, 2, 3]], np.random.default_rng(0).permutation(small)])
    start, pairs = near(np.concatenate([floor, sheet]), triangles, triangles, 2e-3, Host(threads))
    assert_array_equal(pairs[start[0] : start[1]], np.arange(2, 514))
    assert_array_equal(pairs[start[1] : start[2]], np.arange(2, 514))
    assert all(np.all(np.diff(row) > 0) for row in np.split(pairs, start[1:-1]))


def test_empty_input_gives_no_pairs():
    none = np.empty((0, 3), int)
    start, pairs = near(np.zeros((4, 3)), np.zeros((2, 1), int), none, 0.1)
    assert (start.tolist(), len(pairs)) == ([0, 0, 0], 0)


@pytest.mark.parametrize("radius", [0.1, 0.15])
def test_pairs_equal_those_of_ipctk(radius):
    ipctk = pytest.importorskip("ipctk")
    x, triangles = crumpled(3)
    edges = np.asarray(ipctk.edges(triangles))
    candidates = ipctk.Candidates()
    candidates.build(ipctk.CollisionMesh(x, edges, triangles), x, inflation_radius=radius)
    faces = {
        (c.vertex_id, c.face_id)
        for c in candidates.fv_candidates
        if ipctk.point_triangle_distance(x[c.vertex_id], *x[triangles[c.face_id]]) < radius**2
    }
    vertices = np.arange(len(x))[:, None]
    assert set(map(tuple, pair_list(*near(x, vertices, triangles, radius)).tolist())) == faces
    crossing = {
        tuple(sorted((c.edge0_id, c.edge1_id)))
        for c in candidates.ee_candidates
        if ipctk.edge_edge_distance(*x[edges[c.edge0_id]], *x[edges[c.edge1_id]]) < radius**2
    }
    assert set(map(tuple, pair_list(*near(x, edges, edges, radius)).tolist())) == crossing
    assert faces
    assert crossing
