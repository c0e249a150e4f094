"""Candidate pairs of contact, cached while bodies move.

The broad phase searches with an extra margin, so its pairs remain complete until bodies have approached each
other by that margin. Each query measures the distances of the cached candidates again, so results do not
depend on the cache. A GPU finds pairs faster than the host bounds the approach of bodies, so GPUs skip the
cache.

Upper bounds on the mutual approach of surfaces, per body.

The mean displacement of a body leaves all distances within the body unchanged. Between two bodies it reduces
distances by at most the relative displacement. The remainder is bounded by the largest deviation of vertex
displacements from the mean.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.collision.broad_phase.detector import NO_NEIGHBORS, BroadPhase, Pairs
from supple.collision.broad_phase.hash_grid import BETWEEN, ROUNDING, WITHIN, PairFilter
from supple.collision.broad_phase.pair_filter import filter_pairs, merge_pairs
from supple.collision.broad_phase.positions import Points
from supple.collision.broad_phase.search import find_pairs
from supple.kernels import HOST, Runner, kernel

if TYPE_CHECKING:
    from supple.collision.narrow_phase.contact_pairs import Surfaces


@kernel
def _most(x, step, own, body, margin, count, mean, away, lower, upper):
    """Bound the mutual approach of any two bodies whose swept boxes overlap [m].

    count, mean, away, lower and upper (bodies, ...) are scratch arrays; away (bodies,) returns the largest
    deviation from the mean displacement of each body [m].
    """
    for v in own:
        b = body[v]
        count[b] += 1
        for axis in range(3):
            mean[b, axis] += step[v, axis]
            here, there = x[v, axis], x[v, axis] + step[v, axis]
            lower[b, axis] = min(lower[b, axis], min(here, there) - 0.5 * margin)
            upper[b, axis] = max(upper[b, axis], max(here, there) + 0.5 * margin)
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
            square, meet = 0.0, True
            for axis in range(3):
                square += (mean[a, axis] - mean[b, axis]) ** 2
                meet = meet and lower[a, axis] <= upper[b, axis] and lower[b, axis] <= upper[a, axis]
            if meet:
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
    between = _most(x, step, surfaces.own, surfaces.body, margin, *work, *ends)
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
def _farthest(x, y, own, body, a, b, turn, most):
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
        most[k] = max(most[k], math.sqrt(square))


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
    most = np.zeros(bodies)
    _farthest(x, y, own, body, a, b, U @ Vt, most)
    return 2 * most


def bound_approach(surfaces: Surfaces, x: np.ndarray, y: np.ndarray, margin: float, enough: float) -> float:
    """Bound the approach of surfaces from x to y, with rotations removed if that helps.

    In contrast to `max_approach`, only the final positions count, not the path.

    Args:
        surfaces: Surfaces of all bodies.
        x: (n, 3) initial positions [m].
        y: (n, 3) final positions [m].
        margin: Pairs of bodies count if their swept boxes are within this distance [m].
        enough: Threshold [m]: the tighter bound of `stretch` is computed only if it can fall below this
            value.

    Returns:
        Largest decrease of any distance [m].
    """
    within, between = approach_bounds(surfaces, x, y - x, margin)
    if within.max(initial=0) > enough >= between:
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
            meet = a != b
            for axis in range(3):
                meet = meet and box[a, axis] <= box[b, 3 + axis] + margin
                meet = meet and box[b, axis] <= box[a, 3 + axis] + margin
            if meet:
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


MARGINS = 0.25, 0.5, 1.0
"""Smallest, initial and largest search margin in mean edge lengths."""

MIN_QUERIES, MAX_QUERIES = 3, 12
"""Queries served by one search below which the next margin is doubled, and above which it is halved."""


class _Known(NamedTuple):
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
        self._surfaces, self._anew = surfaces, BroadPhase(surfaces, clear=False)
        self._known: dict[tuple[str, bool], _Known] = {}
        self._served: dict[tuple[str, bool], int] = {}
        self._margin: dict[tuple[str, bool], float] = {}
        self._both: dict[str, tuple[_Known, _Known, Pairs]] = {}
        self._now, self._moved = np.zeros((0, 3)), dict[int, tuple[np.ndarray, np.ndarray, float]]()
        self._then: dict[tuple[int, bytes], tuple[np.ndarray, np.ndarray]] = {}

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
            return self._anew.vertices(points, radius, runner)
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
            return self._anew.edges(points, radius, runner)
        return self._pairs("edges", points.x, radius, runner)

    def _things(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """Query and target primitives of a kind of pairs."""
        s = self._surfaces
        return (s.edges, s.edges) if kind == "edges" else (s.vertices, s.triangles)

    def _pairs(self, kind: str, x: np.ndarray, radius: float, runner: Runner) -> Pairs:
        """Narrow phase over cached candidates: pairs of one kind within a radius [m]."""
        seek, other = self._things(kind)
        inside, between = (self._near(kind, within, x, radius, runner) for within in (True, False))
        both = self._both.get(kind)
        if both is None or both[0] is not inside or both[1] is not between:
            pairs = merge_pairs((inside.one, inside.two), (between.one, between.two))
            both = self._both[kind] = inside, between, pairs
        return filter_pairs((x, seek, other, *both[2]), radius, runner)

    def _near(self, kind: str, within: bool, x: np.ndarray, radius: float, runner: Runner) -> _Known:
        """Return the cached candidates within or between bodies; update them if they are outdated.

        Only outdated bodies are searched again, unless all are outdated or the cached radius is too large.
        """
        known, s, which = self._known.get((kind, within)), self._surfaces, (kind, within)
        late = self._late(known, within, x, radius)
        if known is not None and not late.any():
            self._served[which] += 1
            return known
        seek, other = self._things(kind)
        room = 0 if known is None else 2 * len(known.one)
        some = known is not None and not late.all() and known.radius < radius + 2 * MARGINS[1] * s.edge
        wide = known.radius if known and some else radius + self._next_margin(which) * s.edge
        found = find_pairs(x, seek, other, wide, runner, self._wanted(within, x, wide, late), s.edge, room)
        pairs, then = (found.one, found.two), x
        if known and some:
            stay = ~late[s.body[seek[known.one, 0]]]
            pairs = merge_pairs((known.one[stay], known.two[stay]), pairs)
            then = self._renewed(known.x, late, x)
        self._known[which] = known = _Known(wide, then, *pairs)
        self._served[which] = 1
        return known

    def _late(self, known: _Known | None, within: bool, x: np.ndarray, radius: float) -> np.ndarray:
        """(b,) True for bodies whose cached pairs may be incomplete within a radius [m].

        Pairs between bodies are outdated for all bodies or for none.
        """
        s = self._surfaces
        nobody = np.zeros(len(s.flat), bool)
        if known is None or known.radius < radius:
            return ~nobody
        if known.x is x:
            return nobody
        enough, then = known.radius - radius, id(known.x)
        if self._now is not x:
            self._now, self._moved, self._then = x, {}, {}
        if then not in self._moved:
            widest = max(each.radius for each in self._known.values())
            self._moved[then] = known.x, *approach_bounds(s, known.x, x - known.x, widest)
        _, inside, between = self._moved[then]
        if not within:
            return nobody | (between > enough)
        if (inside > enough).any():
            inside = np.minimum(inside, stretch(s, known.x, x))
            self._moved[then] = known.x, inside, between
        return np.asarray(inside > enough)

    def _renewed(self, then: np.ndarray, late: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Reference positions of the cache: x for outdated bodies; one array for all kinds of pairs."""
        which = id(then), late.tobytes()
        if which not in self._then:
            self._then[which] = then, np.where(late[self._surfaces.body][:, None], x, then)
        return self._then[which][1]

    def _next_margin(self, which: tuple[str, bool]) -> float:
        """Next search margin: doubled after few queries, halved after many; constant within bodies."""
        least, margin, most = MARGINS
        if which in self._margin and not which[1]:
            served, margin = self._served[which], self._margin[which]
            margin = min(most, 2 * margin) if served < MIN_QUERIES else margin
            margin = max(least, margin / 2) if served > MAX_QUERIES else margin
        self._margin[which] = margin
        return margin

    def _wanted(self, within: bool, x: np.ndarray, radius: float, late: np.ndarray) -> PairFilter:
        """Filter of the search: pairs within outdated bodies, or pairs between neighboring bodies."""
        s = self._surfaces
        box, start, others = body_neighbors(s, x, radius) if not within else NO_NEIGHBORS
        box = box + (1 + ROUNDING) * radius * np.repeat([-1, 1], 3)
        which = WITHIN if within else BETWEEN
        return PairFilter(which, s.body, box, start, others, late, s.rest, -1.0)
