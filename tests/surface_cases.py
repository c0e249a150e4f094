"""Surfaces for tests of collision detection, and their intersections by ipctk."""

import numpy as np
import pytest

import supple
from supple.collision.narrow_phase.contact_pairs import Surfaces


def edges_of(triangles):
    pairs = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    return np.unique(np.sort(pairs, axis=1), axis=0)


def soup(count, seed, size=0.3):
    """Separate triangles that intersect each other."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-1, 1, (count, 1, 3)) + size * rng.normal(size=(count, 3, 3))
    return corners.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3)


def crumpled(seed=1):
    """A surface with randomly moved vertices, so that it intersects itself."""
    ball = supple.ball(1.0, 3)
    used, triangles = np.unique(ball.surface, return_inverse=True)
    points = ball.points[used]
    rng = np.random.default_rng(seed)
    return points + 0.1 * rng.normal(size=points.shape), triangles.reshape(-1, 3)


CASES = {
    "soup": soup(40, 0),
    "crumpled": crumpled(),
    "one giant": (
        np.concatenate([soup(40, 2, 0.02)[0], 50 * np.array([[-1, 0, -1], [1, 0, -1], [0, 0, 2.0]])]),
        np.arange(123).reshape(-1, 3),
    ),
    "far away": (soup(30, 3)[0] + 1e4, soup(30, 3)[1]),
    "no area": (np.repeat(soup(20, 4)[0][::3], 3, axis=0), np.arange(60).reshape(-1, 3)),
}


def crowded_bodies(rng, count=6):
    """Surfaces of closely spaced bodies."""
    ball = supple.ball(0.3, 2)
    used, faces = np.unique(ball.surface, return_inverse=True)
    faces, points = faces.reshape(-1, 3), ball.points[used]
    positions = np.array([(k % 3, k // 3, 0.1 * k) for k in range(count)])
    x = np.concatenate([points @ np.linalg.qr(rng.normal(size=(3, 3)))[0] + p for p in positions])
    triangles = np.concatenate([faces + k * len(points) for k in range(count)])
    body = np.repeat(np.arange(count), len(points))
    return Surfaces(triangles, body, x, 0.0, np.zeros(count, bool)), x


def nearby_bodies():
    """Six bodies, some of which are inside others."""
    surfaces, x = crowded_bodies(np.random.default_rng(1))
    centers = np.array([x[surfaces.body == k].mean(axis=0) for k in range(6)])
    surfaces.clear = 0.05
    return surfaces, x - 0.45 * centers[surfaces.body]


def searches(name):
    """Searches between primitives of all types."""
    x, triangles = CASES[name]
    vertices, edges = np.unique(triangles)[:, None], edges_of(triangles)
    triangles = np.ascontiguousarray(triangles, np.int64)
    for seek, other in ((vertices, triangles), (edges, edges), (edges, triangles), (triangles, triangles)):
        yield np.ascontiguousarray(x, float), seek, other


def surface_of(scene):
    return np.concatenate([np.asarray(body.mesh.surface) + body.first for body in scene.bodies])


def intersects(scene, positions):
    """True if ipctk finds an intersection, by exact predicates."""
    ipctk = pytest.importorskip("ipctk")
    triangles = surface_of(scene)
    used, faces = np.unique(triangles, return_inverse=True)
    faces = faces.reshape(-1, 3)
    mesh = ipctk.CollisionMesh(positions[used], np.asarray(ipctk.edges(faces)), faces)
    return ipctk.has_intersections(mesh, positions[used])
