"""Points of faces that are inside obstacles: where they are deepest, and those that are kept of earlier
looks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from supple.contact.faces import DEPTHS, PLACES, bounded, deepest
from supple.contact.shapes import STEP, Shapes, distances_to
from supple.kernels import HOST, Runner, count_up, do, each_item, kernel, number, physics, strides

BLOCK = 64
"""Triangles that make a good item of work."""

DOUBLINGS, HALVINGS = 8, 32
"""Of the depth of a point, to find where one leaves a shape: far enough for what is flat, and to rounding."""

FAR = 1e300
"""A distance [m] that nothing has: finite, since a card's kernels need not know infinity."""

SAME = 0.2
"""Difference of weights up to which two points of a face are the same."""

SHARE = 0.5
"""The part of the way to the deepest point by which points follow it."""


class Inside(NamedTuple):
    """found (room, 4) gets the number of each of triangles (t, 3) that is inside a shape, with vertices at x
    (n, 3), that of the shape and the weights of the second and the third corner where it is deepest, in any
    order; small (r,): 1 for shapes that count; count (1,): how many there are."""

    x: Any
    triangles: Any
    shapes: Any
    small: Any
    found: Any
    count: Any


@physics
def _vertex(work, m, j):
    v = work.triangles[m, j]
    return work.x[v, 0], work.x[v, 1], work.x[v, 2]


@do.of(Inside)
def _find(work, item):
    first, step = strides(item)
    start = number(item) * BLOCK
    for m in range(start + first, min(len(work.triangles), start + BLOCK), step):
        a, b, c = _vertex(work, m, 0), _vertex(work, m, 1), _vertex(work, m, 2)
        for k in range(len(work.small)):
            if work.small[k] != 0:
                _, least = bounded(work.shapes, k, a, b, c)
                if least < 0.0:
                    _enter(work, m, k, deepest(work.shapes, k, a, b, c, 0.0, PLACES))


@physics
def _enter(work, m, k, at):
    if at.distance < 0.0:
        row = count_up(work.count, 0, 1)
        if row < len(work.found):
            work.found[row, 0], work.found[row, 1] = 1.0 * m, 1.0 * k
            work.found[row, 2], work.found[row, 3] = at.second, at.third


@kernel
def find_inside(team, work):
    each_item(team, 0, 0, -(-len(work.triangles) // BLOCK), work)


class Between(NamedTuple):
    """weights (m, 3) get where the triangles and the shapes of pairs (m,) are nearest to each other, or
    deepest; the other fields are those of `Inside`."""

    x: Any
    triangles: Any
    shapes: Any
    triangle: Any
    shape: Any
    weights: Any


@do.of(Between)
def _separate(work, item):
    first, step = strides(item)
    start = number(item) * BLOCK
    for p in range(start + first, min(len(work.triangle), start + BLOCK), step):
        m = work.triangle[p]
        a, b, c = _vertex(work, m, 0), _vertex(work, m, 1), _vertex(work, m, 2)
        at = deepest(work.shapes, work.shape[p], a, b, c, FAR, DEPTHS)
        work.weights[p, 0], work.weights[p, 1] = 1.0 - at.second - at.third, at.second
        work.weights[p, 2] = at.third


@kernel
def find_between(team, work):
    each_item(team, 0, 0, -(-len(work.triangle) // BLOCK), work)


class FacePoints(NamedTuple):
    """Points of faces that are pushed: the numbers of the triangles and of the shapes (m,), the weights (m,
    3) of the corners, and those of the points near by that are deepest. Distances and normals are those of
    the latter: what is pushed along normals of its own slides off what is round."""

    triangle: np.ndarray
    shape: np.ndarray
    weights: np.ndarray
    deepest: np.ndarray

    @staticmethod
    def at(triangle: np.ndarray, shape: np.ndarray, weights: np.ndarray) -> FacePoints:
        """Points that are new."""
        return FacePoints(triangle.astype(np.int64), shape.astype(np.int64), weights, weights)

    @staticmethod
    def none() -> FacePoints:
        return FacePoints.at(np.empty(0), np.empty(0), np.empty((0, 3)))

    def where(self, chosen: np.ndarray) -> FacePoints:
        return FacePoints(*(values[chosen] for values in self))

    def following(self, found: FacePoints) -> FacePoints:
        """Those that were found now, and these; a point that is near the deepest of its face follows it by a
        part of the way, since the face gives way where it is pushed and so leads it to and fro."""
        same = (self.triangle[:, None] == found.triangle) & (self.shape[:, None] == found.shape)
        off = np.abs(self.weights[:, None] - found.weights).max(axis=2, initial=0.0)
        off = np.where(same, off, np.inf)
        new = off.min(axis=0, initial=np.inf) >= SAME
        old = off.min(axis=1, initial=np.inf) < SAME
        left = self.where(~old)._replace(deepest=self.weights[~old])
        moved = self.where(old)
        if len(moved.triangle):
            aims = found.weights[off[old].argmin(axis=1)]
            moved = moved._replace(weights=moved.weights + SHARE * (aims - moved.weights), deepest=aims)
        together = FacePoints(*map(np.concatenate, zip(left, moved, found.where(new), strict=True)))
        return together.where(np.lexsort((*together.weights.T, together.shape, together.triangle)))


def points_inside(
    x: np.ndarray, triangles: np.ndarray, shapes: Shapes, small: np.ndarray, runner: Runner
) -> FacePoints:
    """The deepest point of each of triangles (t, 3) in each of the shapes of which small (r,) is not 0, with
    vertices at x (n, 3) where kernels see them."""
    room = 64
    while True:
        found, count = runner.zeros((room, 4), np.float64), runner.zeros((1,), np.int64)
        runner.run(find_inside, 1, Inside(x, triangles, shapes, small, found, count))
        runner.pull(count)
        if count[0] <= room:
            break
        room = int(count[0])
    runner.pull(found)
    triangle, shape, second, third = found[: count[0]].T
    weights = np.stack([1 - second - third, second, third], axis=1)
    return FacePoints.none().following(FacePoints.at(triangle, shape, weights))


def distances_of(shapes: Shapes, which: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of points (m, 3) [m]: the signed distance (m,) from the shapes with numbers (m,), and its gradient (m,
    3)."""
    d, n = np.empty(len(points)), np.empty((len(points), 3))
    for k in np.unique(which):
        own = which == k
        d[own], n[own], _ = distances_to(Shapes(shapes.rows[k : k + 1], shapes.values), points[own])
    return d, n


def sides_of(points: FacePoints, x: np.ndarray, triangles: np.ndarray, shapes: Shapes) -> np.ndarray:
    """(m, 3) the directions from shapes to the faces of points, with vertices at x (n, 3): gradients of the
    distance where they are nearest to each other."""
    pairs, of_pair = np.unique(np.stack([points.triangle, points.shape]), axis=1, return_inverse=True)
    triangle, shape = np.ascontiguousarray(pairs)
    weights = np.zeros((len(triangle), 3))
    if len(triangle):
        HOST.run(find_between, 1, Between(x, triangles, shapes, triangle, shape, weights))
    there = np.einsum("mk,mki->mi", weights, x[triangles[triangle]])
    return distances_of(shapes, shape, there)[1][of_pair.ravel()]


def foot_towards(shapes: Shapes, which: np.ndarray, points: np.ndarray, ways: np.ndarray) -> np.ndarray:
    """(m, 3) [m] where one leaves the shapes of numbers (m,) from points (m, 3) inside, along unit vectors
    (m, 3)."""
    low, high = np.zeros(len(points)), np.abs(distances_of(shapes, which, points)[0])
    for _ in range(DOUBLINGS + HALVINGS):
        inside = distances_of(shapes, which, points + high[:, None] * ways)[0] < 0
        low, high = np.where(inside, high, low), np.where(inside, 2 * high, high)
        middle = 0.5 * (low + high)
        within = distances_of(shapes, which, points + middle[:, None] * ways)[0] < 0
        low, high = np.where(within & ~inside, middle, low), np.where(within | inside, high, middle)
    return points + high[:, None] * ways


def carried_ways(shapes: Shapes, which: np.ndarray, ways: np.ndarray) -> np.ndarray:
    """(m, 3) what directions (m, 3) that turn with the shapes of numbers (m,) are at the end of the step."""
    turns = shapes.rows[which, STEP : STEP + 9].reshape(-1, 3, 3)
    return np.asarray(np.einsum("mij,mj->mi", turns, ways))


def carried_points(shapes: Shapes, which: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(m, 3) [m] where points (m, 3) that move with the shapes of numbers (m,) are at the end of the step."""
    return carried_ways(shapes, which, points) + shapes.rows[which, STEP + 9 : STEP + 12]
