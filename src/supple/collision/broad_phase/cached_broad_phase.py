"""Broad phase with cached candidate pairs, which stay valid until bodies have approached each other.

The broad phase searches with an extra margin, so its pairs remain complete until bodies have approached each
other by that margin. Each query measures the distances of the cached candidates again, so results do not
depend on the cache. A GPU finds pairs faster than the host bounds the approach of bodies, so GPUs skip the
cache.

Upper bounds on the approach are computed per body. The mean displacement of a body leaves all distances
within the body unchanged. Between two bodies it reduces distances by at most the relative displacement. The
remainder is bounded by the largest deviation of vertex displacements from the mean.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.collision.broad_phase.broad_phase import NO_NEIGHBORS, BroadPhase, Pairs
from supple.collision.broad_phase.hash_grid import BOX_ENLARGEMENT
from supple.collision.broad_phase.pair_filter import BETWEEN, WITHIN, PairFilter, filter_pairs, merge_pairs
from supple.collision.broad_phase.positions import Points
from supple.collision.broad_phase.search import find_pairs
from supple.kernels import HOST, Runner, kernel

if TYPE_CHECKING:
    from supple.collision.narrow_phase.contact_pairs import Surfaces


@kernel
def _max_approach(x, step, own, body, margin, count, mean, away, lower, upper):
    """Bound the mutual approach of any two bodies whose swept boxes overlap [m].

    count, mean, away, lower and upper (bodies, ...) are scratch arrays; away (bodies,) returns the largest
    deviation from the mean displacement of each body [m].
    """
    for v in own:
        b = body[v]
        count[b] += 1
        for axis in range(3):
            mean[b, axis] += step[v, axis]
            first, last = x[v, axis], x[v, axis] + step[v, axis]
            lower[b, axis] = min(lower[b, axis], min(first, last) - 0.5 * margin)
            upper[b, axis] = max(upper[b, axis], max(first, last) + 0.5 * margin)
    for b in range(len(count)):
        for axis in range(3):
            mean[b, axis] /= max(count[b], 1)
    for v in own:
        b, square = body[v], 0.0
        for axis in range(3):
            square += (step[v, axis] - mean[b, axis]) ** 2
        away[b] = max(away[b], math.sqrt(square))
    between = 0.0
    for a in range(len(count)):
        for b in range(a + 1, len(count)):
            square, overlaps = 0.0, True
            for axis in range(3):
                square += (mean[a, axis] - mean[b, axis]) ** 2
                overlaps = overlaps and lower[a, axis] <= upper[b, axis] and lower[b, axis] <= upper[a, axis]
            if overlaps:
                between = max(between, math.sqrt(square) + away[a] + away[b])
    return between


def approach_bounds(
    surfaces: Surfaces, x: np.ndarray, step: np.ndarray, margin: float
) -> tuple[np.ndarray, float]:
    """Bound the approach of surfaces within each body, and between any two bodies.

    Args:
        surfaces: Surfaces of all bodies.
        x: (n, 3) positions [m].
        step: (n, 3) displacements from x [m].
        margin: Pairs of bodies count if their swept boxes are within this distance [m].

    Returns:
        Largest decrease of any distance [m]: within each body (b,), and between two bodies.
    """
    bodies = len(surfaces.flat)
    x, step = (np.ascontiguousarray(array, float) for array in (x, step))
    away = np.zeros(bodies)
    work = np.zeros(bodies, np.int64), np.zeros((bodies, 3)), away
    ends = np.full((bodies, 3), math.inf), np.full((bodies, 3), -math.inf)
    between = _max_approach(x, step, surfaces.own, surfaces.body, margin, *work, *ends)
    return 2 * away, float(between)


def max_approach(surfaces: Surfaces, x: np.ndarray, step: np.ndarray, margin: float) -> float:
    """Bound the approach of all surfaces, within and between bodies [m]; see `approach_bounds`."""
    within, between = approach_bounds(surfaces, x, step, margin)
    return max(float(within.max(initial=0)), between)


@kernel
def _moments(x, y, own, body, count, a, b, moments):
    """Compute centroids of bodies at x and y and their cross-covariance.

    a, b (bodies, 3) return the centroids, moments (bodies, 9) Σ (x - a) (y - b)ᵀ; count (bodies,) is scratch.
    """
    for v in own:
        count[body[v]] += 1
        for axis in range(3):
            a[body[v], axis] += x[v, axis]
            b[body[v], axis] += y[v, axis]
    for k in range(len(count)):
        for axis in range(3):
            a[k, axis] /= max(count[k], 1)
            b[k, axis] /= max(count[k], 1)
    for v in own:
        k = body[v]
        for i in range(3):
            for j in range(3):
                moments[k, 3 * i + j] += (x[v, i] - a[k, i]) * (y[v, j] - b[k, j])


@kernel
def _max_deviation(x, y, own, body, a, b, turn, radius):
    """Compute the largest distance of vertices from the rigidly moved body [m].

    most (bodies,) returns the distances for rotations `turn` (bodies, 3, 3) and centroids a and b.
    """
    for v in own:
        k, square = body[v], 0.0
        for j in range(3):
            off = y[v, j] - b[k, j]
            for i in range(3):
                off -= (x[v, i] - a[k, i]) * turn[k, i, j]
            square += off * off
        radius[k] = max(radius[k], math.sqrt(square))


def stretch(surfaces: Surfaces, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Bound the approach of surfaces within each body from x to y, independent of rotation.

    The bound is twice the largest deviation from the best-fit rigid motion [Kabsch 1976].

    Args:
        surfaces: Surfaces of all bodies.
        x: (n, 3) initial positions [m].
        y: (n, 3) final positions [m].

    Returns:
        (b,) bounds [m].
    """
    bodies, own, body = len(surfaces.flat), surfaces.own, surfaces.body
    x, y = (np.ascontiguousarray(points, float) for points in (x, y))
    a, b, moments = np.zeros((bodies, 3)), np.zeros((bodies, 3)), np.zeros((bodies, 9))
    _moments(x, y, own, body, np.zeros(bodies, np.int64), a, b, moments)
    U, _, Vt = np.linalg.svd(moments.reshape(-1, 3, 3))
    U[:, :, 2] *= np.sign(np.linalg.det(U @ Vt))[:, None]
    radius = np.zeros(bodies)
    _max_deviation(x, y, own, body, a, b, U @ Vt, radius)
    return 2 * radius


def bound_approach(
    surfaces: Surfaces, x: np.ndarray, y: np.ndarray, margin: float, threshold: float
) -> float:
    """Bound the approach of surfaces from x to y, with rotations removed if that helps.

    In contrast to `max_approach`, only the final positions count, not the path.

    Args:
        surfaces: Surfaces of all bodies.
        x: (n, 3) initial positions [m].
        y: (n, 3) final positions [m].
        margin: Pairs of bodies count if their swept boxes are within this distance [m].
        threshold: Threshold [m]: the tighter bound of `stretch` is computed only if it can fall below this
            value.

    Returns:
        Largest decrease of any distance [m].
    """
    within, between = approach_bounds(surfaces, x, y - x, margin)
    if within.max(initial=0) > threshold >= between:
        within = np.minimum(within, stretch(surfaces, x, y))
    return max(float(within.max(initial=0)), between)


@kernel
def _boxes(x, own, body, box):
    """Extend the bounding box (6,) of each body by its vertices."""
    for v in own:
        for axis in range(3):
            box[body[v], axis] = min(box[body[v], axis], x[v, axis])
            box[body[v], 3 + axis] = max(box[body[v], 3 + axis], x[v, axis])


@kernel
def _neighbors(box, margin, start, others):
    """List neighbors of each body by box distance; an empty `others` only counts them."""
    count = 0
    for a in range(len(box)):
        start[a] = count
        for b in range(len(box)):
            overlaps = a != b
            for axis in range(3):
                overlaps = overlaps and box[a, axis] <= box[b, 3 + axis] + margin
                overlaps = overlaps and box[b, axis] <= box[a, 3 + axis] + margin
            if overlaps:
                if len(others) > 0:
                    others[count] = b
                count += 1
    start[len(box)] = count


def body_neighbors(
    surfaces: Surfaces, x: np.ndarray, margin: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute bounding boxes and neighbor lists of all bodies.

    Args:
        surfaces: Surfaces of all bodies.
        x: (n, 3) positions [m].
        margin: Largest distance of neighbor boxes along each axis [m].

    Returns:
        Boxes (b, 6), lower then upper bounds [m]; start (b + 1,) and others (k,): the neighbors of body i are
        others[start[i]:start[i + 1]].
    """
    bodies = len(surfaces.flat)
    box = np.tile([math.inf] * 3 + [-math.inf] * 3, (bodies, 1))
    _boxes(x, surfaces.own, surfaces.body, box)
    start, others = np.zeros(bodies + 1, np.int64), np.zeros(0, np.int64)
    _neighbors(box, margin, start, others)
    others = np.zeros(start[-1], np.int64)
    _neighbors(box, margin, start, others)
    return box, start, others


SEARCH_MARGINS = 0.25, 0.5, 1.0
"""Smallest, initial and largest search margin in mean edge lengths."""

MIN_QUERIES, MAX_QUERIES = 3, 12
"""Queries served by one search below which the next margin is doubled, and above which it is halved."""


class _CachedPairs(NamedTuple):
    """Cached candidates: pairs (p,) within a radius [m] at positions x (n, 3)."""

    radius: float
    x: np.ndarray
    one: np.ndarray
    two: np.ndarray


class Candidates:
    """Cached broad phase for vertex-triangle and edge-edge pairs.

    Pairs within bodies and pairs between bodies have separate caches, since their distances change at
    different rates.

    Args:
        surfaces: Surfaces of all bodies.
    """

    def __init__(self, surfaces: Surfaces) -> None:
        self._surfaces, self._uncached = surfaces, BroadPhase(surfaces, clear=False)
        self._cached: dict[tuple[str, bool], _CachedPairs] = {}
        self._query_counts: dict[tuple[str, bool], int] = {}
        self._margin: dict[tuple[str, bool], float] = {}
        self._both: dict[str, tuple[_CachedPairs, _CachedPairs, Pairs]] = {}
        self._now, self._moved = np.zeros((0, 3)), dict[int, tuple[np.ndarray, np.ndarray, float]]()
        self._references: dict[tuple[int, bytes], tuple[np.ndarray, np.ndarray]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Candidates, (self._surfaces,)

    def vertices(self, points: Points, radius: float, runner: Runner = HOST) -> Pairs:
        """Vertex-triangle pairs within a radius.

        Args:
            points: Positions of the vertices.
            radius: Largest distance [m].
            runner: Device of the search.

        Returns:
            Sorted indices (p,) of vertices and of triangles.
        """
        if runner.is_remote:
            return self._uncached.vertices(points, radius, runner)
        return self._pairs("vertices", points.x, radius, runner)

    def edges(self, points: Points, radius: float, runner: Runner = HOST) -> Pairs:
        """Edge-edge pairs within a radius.

        Args:
            points: Positions of the vertices.
            radius: Largest distance [m].
            runner: Device of the search.

        Returns:
            Sorted indices (p,) of both edges.
        """
        if runner.is_remote:
            return self._uncached.edges(points, radius, runner)
        return self._pairs("edges", points.x, radius, runner)

    def _primitives(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """Query and target primitives of a kind of pairs."""
        s = self._surfaces
        return (s.edges, s.edges) if kind == "edges" else (s.vertices, s.triangles)

    def _pairs(self, kind: str, x: np.ndarray, radius: float, runner: Runner) -> Pairs:
        """Narrow phase over cached candidates: pairs of one kind within a radius [m]."""
        query, other = self._primitives(kind)
        inside, between = (self._near(kind, within, x, radius, runner) for within in (True, False))
        both = self._both.get(kind)
        if both is None or both[0] is not inside or both[1] is not between:
            pairs = merge_pairs((inside.one, inside.two), (between.one, between.two))
            both = self._both[kind] = inside, between, pairs
        return filter_pairs((x, query, other, *both[2]), radius, runner)

    def _near(self, kind: str, within: bool, x: np.ndarray, radius: float, runner: Runner) -> _CachedPairs:
        """Return the cached candidates within or between bodies; update them if they are outdated.

        Only outdated bodies are searched again, unless all are outdated or the cached radius is too large.
        """
        cached, s, which = self._cached.get((kind, within)), self._surfaces, (kind, within)
        outdated = self._outdated(cached, within, x, radius)
        if cached is not None and not outdated.any():
            self._query_counts[which] += 1
            return cached
        query, other = self._primitives(kind)
        capacity = 0 if cached is None else 2 * len(cached.one)
        is_partial = (
            cached is not None
            and not outdated.all()
            and cached.radius < radius + 2 * SEARCH_MARGINS[1] * s.edge
        )
        wide = cached.radius if cached and is_partial else radius + self._next_margin(which) * s.edge
        new = find_pairs(
            x, query, other, wide, runner, self._filter(within, x, wide, outdated), s.edge, capacity
        )
        pairs, reference = (new.one, new.two), x
        if cached and is_partial:
            is_valid = ~outdated[s.body[query[cached.one, 0]]]
            pairs = merge_pairs((cached.one[is_valid], cached.two[is_valid]), pairs)
            reference = self._reference_positions(cached.x, outdated, x)
        self._cached[which] = cached = _CachedPairs(wide, reference, *pairs)
        self._query_counts[which] = 1
        return cached

    def _outdated(
        self, cached: _CachedPairs | None, within: bool, x: np.ndarray, radius: float
    ) -> np.ndarray:
        """(b,) True for bodies whose cached pairs may be incomplete within a radius [m].

        Pairs between bodies are outdated for all bodies or for none.
        """
        s = self._surfaces
        none = np.zeros(len(s.flat), bool)
        if cached is None or cached.radius < radius:
            return ~none
        if cached.x is x:
            return none
        slack, reference = cached.radius - radius, id(cached.x)
        if self._now is not x:
            self._now, self._moved, self._references = x, {}, {}
        if reference not in self._moved:
            widest = max(each.radius for each in self._cached.values())
            self._moved[reference] = cached.x, *approach_bounds(s, cached.x, x - cached.x, widest)
        _, inside, between = self._moved[reference]
        if not within:
            return none | (between > slack)
        if (inside > slack).any():
            inside = np.minimum(inside, stretch(s, cached.x, x))
            self._moved[reference] = cached.x, inside, between
        return np.asarray(inside > slack)

    def _reference_positions(self, reference: np.ndarray, outdated: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Reference positions of the cache: x for outdated bodies; one array for all kinds of pairs."""
        which = id(reference), outdated.tobytes()
        if which not in self._references:
            self._references[which] = (
                reference,
                np.where(outdated[self._surfaces.body][:, None], x, reference),
            )
        return self._references[which][1]

    def _next_margin(self, which: tuple[str, bool]) -> float:
        """Next search margin: doubled after few queries, halved after many; constant within bodies."""
        least, margin, most = SEARCH_MARGINS
        if which in self._margin and not which[1]:
            query_count, margin = self._query_counts[which], self._margin[which]
            margin = min(most, 2 * margin) if query_count < MIN_QUERIES else margin
            margin = max(least, margin / 2) if query_count > MAX_QUERIES else margin
        self._margin[which] = margin
        return margin

    def _filter(self, within: bool, x: np.ndarray, radius: float, outdated: np.ndarray) -> PairFilter:
        """Filter of the search: pairs within outdated bodies, or pairs between neighboring bodies."""
        s = self._surfaces
        box, start, others = body_neighbors(s, x, radius) if not within else NO_NEIGHBORS
        box = box + (1 + BOX_ENLARGEMENT) * radius * np.repeat([-1, 1], 3)
        which = WITHIN if within else BETWEEN
        return PairFilter(which, s.body, box, start, others, outdated, s.rest, -1.0)
