"""Contact points of faces inside obstacles: points of deepest penetration, tracked between searches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.collision.obstacles.face_distance import DEPTH_STEPS, POINT_STEPS, bound_distance, deepest
from supple.collision.obstacles.signed_distance import STEP, Shapes, distances_to
from supple.kernels import (
    HOST,
    Runner,
    atomic_add,
    device_function,
    do,
    item_number,
    kernel,
    lane_stride,
    parallel_for,
)

TRIANGLES_PER_ITEM = 64
"""Triangles per work item."""

DOUBLINGS, BISECTIONS = 8, 32
"""Numbers of bracket doublings and bisection steps of the search for the exit from a shape; their sum is the
iteration count. The bracket starts at the depth of the point. Doublings cover flat shapes, bisection
converges to rounding error."""

MAX_DISTANCE = 1e300
"""Upper bound of all distances [m]; finite, since GPU kernels may assume finite math."""

SAME_POINT_TOLERANCE = 0.2
"""Difference of barycentric weights below which two points of a face are identified."""

TRACKING_RATE = 0.5
"""Largest fraction of the way to the deepest point by which a tracked point moves per search."""

RATE_REDUCTION, RATE_GROWTH = 0.5, 1.1
"""Factors of the tracking rate after a step back and after a step on.

Where two corners of an obstacle support a face, the deepest point jumps from one to the other. Smaller
steps find the point between them.
"""


class DeepestPoints(NamedTuple):
    """Work: deepest points of triangles inside shapes.

    Attributes:
        x: (n, 3) positions [m].
        triangles: (t, 3) vertices.
        shapes: Obstacle shapes.
        small: (r,) 1 for the shapes that count.
        points: (capacity, 4) output in any order: triangle, shape, second and third weight of the deepest
            point.
        count: (1,) output: number of points, which may exceed the capacity.
    """

    x: Any
    triangles: Any
    shapes: Any
    small: Any
    points: Any
    count: Any


@device_function
def _vertex(work, m, j):
    v = work.triangles[m, j]
    return work.x[v, 0], work.x[v, 1], work.x[v, 2]


@do.of(DeepestPoints)
def _find_deepest(work, item):
    first, step = lane_stride(item)
    start = item_number(item) * TRIANGLES_PER_ITEM
    for m in range(start + first, min(len(work.triangles), start + TRIANGLES_PER_ITEM), step):
        a, b, c = _vertex(work, m, 0), _vertex(work, m, 1), _vertex(work, m, 2)
        for k in range(len(work.small)):
            if work.small[k] != 0:
                _, least = bound_distance(work.shapes, k, a, b, c)
                if least < 0.0:
                    _append_point(work, m, k, deepest(work.shapes, k, a, b, c, 0.0, POINT_STEPS))


@device_function
def _append_point(work, m, k, at):
    if at.distance < 0.0:
        row = atomic_add(work.count, 0, 1)
        if row < len(work.points):
            work.points[row, 0], work.points[row, 1] = 1.0 * m, 1.0 * k
            work.points[row, 2], work.points[row, 3] = at.second, at.third


@kernel
def find_inside(team, work):
    """Find the deepest points of all triangles."""
    parallel_for(team, 0, 0, -(-len(work.triangles) // TRIANGLES_PER_ITEM), work)


class PairPoints(NamedTuple):
    """Work: closest or deepest points of triangle-shape pairs.

    Attributes:
        x: (n, 3) positions [m].
        triangles: (t, 3) vertices.
        shapes: Obstacle shapes.
        triangle, shape: (m,) pairs.
        weights: (m, 3) output: weights of the corners.
    """

    x: Any
    triangles: Any
    shapes: Any
    triangle: Any
    shape: Any
    weights: Any


@do.of(PairPoints)
def _find_pair_points(work, item):
    first, step = lane_stride(item)
    start = item_number(item) * TRIANGLES_PER_ITEM
    for p in range(start + first, min(len(work.triangle), start + TRIANGLES_PER_ITEM), step):
        m = work.triangle[p]
        a, b, c = _vertex(work, m, 0), _vertex(work, m, 1), _vertex(work, m, 2)
        at = deepest(work.shapes, work.shape[p], a, b, c, MAX_DISTANCE, DEPTH_STEPS)
        work.weights[p, 0], work.weights[p, 1] = 1.0 - at.second - at.third, at.second
        work.weights[p, 2] = at.third


@kernel
def find_between(team, work):
    """Find the closest or deepest points of all pairs."""
    parallel_for(team, 0, 0, -(-len(work.triangle) // TRIANGLES_PER_ITEM), work)


class FacePoints(NamedTuple):
    """Contact points of faces with obstacles.

    Distance and normal of a contact are those of the deepest point near by. With normals of their own,
    contact points would slide off round obstacles.

    Attributes:
        triangle: (m,) triangles.
        shape: (m,) shapes.
        weights: (m, 3) barycentric weights of the contact points.
        deepest: (m, 3) barycentric weights of the deepest points near by.
        step: (m, 3) last change of the weights.
        rate: (m,) fraction of the way to the deepest point of the next step.
    """

    triangle: np.ndarray
    shape: np.ndarray
    weights: np.ndarray
    deepest: np.ndarray
    step: np.ndarray
    rate: np.ndarray

    @staticmethod
    def at(triangle: np.ndarray, shape: np.ndarray, weights: np.ndarray) -> FacePoints:
        """Contact points at their deepest points."""
        rate = np.full(len(weights), TRACKING_RATE)
        return FacePoints(
            triangle.astype(np.int64), shape.astype(np.int64), weights, weights, np.zeros_like(weights), rate
        )

    @staticmethod
    def none() -> FacePoints:
        """Return an empty set of contact points."""
        return FacePoints.at(np.empty(0), np.empty(0), np.empty((0, 3)))

    def where(self, chosen: np.ndarray) -> FacePoints:
        """Select contact points."""
        return FacePoints(*(values[chosen] for values in self))

    def merge(self, new_points: FacePoints) -> FacePoints:
        """Merge these points with newly found deepest points.

        A tracked point near a new deepest point of its face moves a fraction `rate` of the way to it. Faces
        yield at contact points, so an undamped update would oscillate.
        """
        same = (self.triangle[:, None] == new_points.triangle) & (self.shape[:, None] == new_points.shape)
        off = np.abs(self.weights[:, None] - new_points.weights).max(axis=2, initial=0.0)
        off = np.where(same, off, np.inf)
        new = off.min(axis=0, initial=np.inf) >= SAME_POINT_TOLERANCE
        old = off.min(axis=1, initial=np.inf) < SAME_POINT_TOLERANCE
        unmatched = self.where(~old)._replace(deepest=self.weights[~old])
        tracked = self.where(old)
        if len(tracked.triangle):
            targets = new_points.weights[off[old].argmin(axis=1)]
            away = targets - tracked.weights
            turned = (away * tracked.step).sum(axis=1) < 0
            rate = tracked.rate * np.where(turned, RATE_REDUCTION, RATE_GROWTH)
            rate = np.minimum(rate, TRACKING_RATE)
            step = rate[:, None] * away
            tracked = tracked._replace(weights=tracked.weights + step, deepest=targets, step=step, rate=rate)
        merged = FacePoints(*map(np.concatenate, zip(unmatched, tracked, new_points.where(new), strict=True)))
        return merged.where(np.lexsort((*merged.weights.T, merged.shape, merged.triangle)))


def points_inside(
    x: np.ndarray, triangles: np.ndarray, shapes: Shapes, small: np.ndarray, runner: Runner
) -> FacePoints:
    """Find the deepest point of each triangle in each shape.

    Args:
        x: (n, 3) positions in device memory [m].
        triangles: (t, 3) vertices.
        shapes: Obstacle shapes.
        small: (r,) nonzero for the shapes that count.
        runner: Device of the search.

    Returns:
        Points with a negative distance.
    """
    capacity = 64
    while True:
        points, count = runner.zeros((capacity, 4), np.float64), runner.zeros((1,), np.int64)
        runner.run(find_inside, 1, DeepestPoints(x, triangles, shapes, small, points, count))
        runner.download(count)
        if count[0] <= capacity:
            break
        capacity = int(count[0])
    runner.download(points)
    triangle, shape, second, third = points[: count[0]].T
    weights = np.stack([1 - second - third, second, third], axis=1)
    return FacePoints.none().merge(FacePoints.at(triangle, shape, weights))


def distances_of(shapes: Shapes, shape_ids: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Signed distance of each point from its own shape.

    Args:
        shapes: Obstacle shapes.
        shape_ids: (m,) shape of each point.
        points: (m, 3) points [m].

    Returns:
        Distances (m,) [m] and their gradients (m, 3).
    """
    d, n = np.empty(len(points)), np.empty((len(points), 3))
    for k in np.unique(shape_ids):
        own = shape_ids == k
        d[own], n[own], _ = distances_to(Shapes(shapes.rows[k : k + 1], shapes.values), points[own])
    return d, n


def sides_of(points: FacePoints, x: np.ndarray, triangles: np.ndarray, shapes: Shapes) -> np.ndarray:
    """Directions from shapes to faces: distance gradients at the closest points.

    Args:
        points: Contact points.
        x: (n, 3) positions [m].
        triangles: (t, 3) vertices.
        shapes: Obstacle shapes.

    Returns:
        (m, 3) unit vectors.
    """
    pairs, of_pair = np.unique(np.stack([points.triangle, points.shape]), axis=1, return_inverse=True)
    triangle, shape = np.ascontiguousarray(pairs)
    weights = np.zeros((len(triangle), 3))
    if len(triangle):
        HOST.run(find_between, 1, PairPoints(x, triangles, shapes, triangle, shape, weights))
    closest_points = np.einsum("mk,mki->mi", weights, x[triangles[triangle]])
    return distances_of(shapes, shape, closest_points)[1][of_pair.ravel()]


def exit_points(
    shapes: Shapes, shape_ids: np.ndarray, points: np.ndarray, directions: np.ndarray
) -> np.ndarray:
    """Exit points from shapes along given directions.

    Args:
        shapes: Obstacle shapes.
        shape_ids: (m,) shape of each point.
        points: (m, 3) points inside [m].
        directions: (m, 3) unit directions.

    Returns:
        (m, 3) surface points [m].
    """
    low, high = np.zeros(len(points)), np.abs(distances_of(shapes, shape_ids, points)[0])
    for _ in range(DOUBLINGS + BISECTIONS):
        inside = distances_of(shapes, shape_ids, points + high[:, None] * directions)[0] < 0
        low, high = np.where(inside, high, low), np.where(inside, 2 * high, high)
        middle = 0.5 * (low + high)
        within = distances_of(shapes, shape_ids, points + middle[:, None] * directions)[0] < 0
        low, high = np.where(within & ~inside, middle, low), np.where(within | inside, high, middle)
    return points + high[:, None] * directions


def rotate_directions(shapes: Shapes, shape_ids: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """(m, 3) directions rotated with their shapes from start to end of the step."""
    turns = shapes.rows[shape_ids, STEP : STEP + 9].reshape(-1, 3, 3)
    return np.asarray(np.einsum("mij,mj->mi", turns, directions))


def advect_points(shapes: Shapes, shape_ids: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(m, 3) points advected by their shapes from start to end of the step [m]."""
    return rotate_directions(shapes, shape_ids, points) + shapes.rows[shape_ids, STEP + 9 : STEP + 12]
