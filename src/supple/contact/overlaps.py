"""Where triangles lie on each other: the part that two of them share, seen along the normal of both.

On the polygon that they share the weights of the corners of both are linear, so that its area and its middle
are all there is to know of them: a uniform pressure comes to every vertex as it should, whatever the two
meshes are (Puso and Laursen 2004 integrate over the same polygons).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supple.kernels import kernel, physics

OPPOSED = 0.5, 0.8
"""Cosine of the angle between triangles from which on they begin to face each other, and wholly do."""

LEAST = 1e-9
"""Part of the smaller triangle below which a polygon is rounding, and nobody knows where its middle is."""

MOST = 9
"""Corners that a polygon may have, with room to spare."""


class Overlaps(NamedTuple):
    """pairs (m,): which of those that were asked for face each other and share something; their triangles
    stencils (m, 6); weights (m, 6) of their corners at the middle of what they
    share, those of the second negative; normal (m, 3): from the second to the first; area (m,) [m²], less
    where they hardly face each other."""

    pairs: np.ndarray
    stencils: np.ndarray
    weights: np.ndarray
    normal: np.ndarray
    area: np.ndarray


@physics
def _side(px, py, qx, qy, rx, ry):
    """Twice the area of p, q and r, positive where r is to the left."""
    return (qx - px) * (ry - py) - (qy - py) * (rx - px)


@physics
def _clip(polygon, this, count, px, py, qx, qy, sense):
    """What of polygon[this] is left of the line from p to q, into the other one; how many corners it has."""
    other, kept = 1 - this, 0
    for k in range(count):
        ax, ay = polygon[this, k, 0], polygon[this, k, 1]
        n = k + 1 if k + 1 < count else 0
        bx, by = polygon[this, n, 0], polygon[this, n, 1]
        a, b = sense * _side(px, py, qx, qy, ax, ay), sense * _side(px, py, qx, qy, bx, by)
        if a >= 0.0:
            polygon[other, kept, 0], polygon[other, kept, 1] = ax, ay
            kept += 1
        if (a >= 0.0) != (b >= 0.0):
            t = a / (a - b)
            polygon[other, kept, 0], polygon[other, kept, 1] = ax + t * (bx - ax), ay + t * (by - ay)
            kept += 1
    return kept


@physics
def _weights(flat, first, x, y):
    """Of the corners of the triangle from row `first` of flat (6, 2) on, at a point."""
    ax, ay = flat[first, 0], flat[first, 1]
    bx, by = flat[first + 1, 0], flat[first + 1, 1]
    cx, cy = flat[first + 2, 0], flat[first + 2, 1]
    whole = _side(ax, ay, bx, by, cx, cy)
    u, v = _side(bx, by, cx, cy, x, y) / whole, _side(cx, cy, ax, ay, x, y) / whole
    return u, v, 1.0 - u - v


@kernel
def _overlap(flats, polygon, area, weights):
    """Of triangles with corners flats (m, 6, 2) in a plane; polygon (2, MOST, 2) is where it works."""
    for m in range(len(flats)):
        flat = flats[m]
        one = _side(flat[0, 0], flat[0, 1], flat[1, 0], flat[1, 1], flat[2, 0], flat[2, 1])
        other = _side(flat[3, 0], flat[3, 1], flat[4, 0], flat[4, 1], flat[5, 0], flat[5, 1])
        area[m] = 0.0
        if one == 0.0 or other == 0.0:
            continue
        for k in range(3):
            polygon[0, k, 0], polygon[0, k, 1] = flat[k, 0], flat[k, 1]
        this, count, sense = 0, 3, 1.0 if other > 0.0 else -1.0
        for k in range(3):
            n = 3 + (k + 1 if k < 2 else 0)
            count = _clip(polygon, this, count, flat[3 + k, 0], flat[3 + k, 1], flat[n, 0], flat[n, 1], sense)
            this = 1 - this
        total, x, y = 0.0, 0.0, 0.0
        px, py = polygon[this, 0, 0], polygon[this, 0, 1]
        for k in range(1, count - 1):
            ax, ay = polygon[this, k, 0], polygon[this, k, 1]
            bx, by = polygon[this, k + 1, 0], polygon[this, k + 1, 1]
            part = _side(px, py, ax, ay, bx, by)
            total += part
            x += part * (px + ax + bx) / 3.0
            y += part * (py + ay + by) / 3.0
        if abs(total) <= LEAST * min(abs(one), abs(other)):
            continue
        area[m] = 0.5 * abs(total)
        x, y = x / total, y / total
        u, v, w = _weights(flat, 0, x, y)
        weights[m, 0], weights[m, 1], weights[m, 2] = u, v, w
        u, v, w = _weights(flat, 3, x, y)
        weights[m, 3], weights[m, 4], weights[m, 5] = -u, -v, -w


def overlaps(
    x: np.ndarray, stencils: np.ndarray, one: np.ndarray, other: np.ndarray, free: np.ndarray
) -> Overlaps:
    """Of pairs of triangles, stencils (m, 6) of vertices at x (n, 3), with unit normals (m, 3) of both; free
    (m, 2): whether either of them has no outside, and may face either way."""
    cosine = -(one * other).sum(axis=1)
    turned = np.where((cosine < 0) & free.any(axis=1), -1.0, 1.0)
    begin, whole = OPPOSED
    facing = np.clip((turned * cosine - begin) / (whole - begin), 0.0, 1.0)
    some = np.flatnonzero(facing > 0)
    turned, free = turned[some, None], free[some]
    n = np.where(free[:, 1:], turned, 1.0) * other[some] - np.where(free[:, 1:], 1.0, turned) * one[some]
    n /= np.sqrt((n * n).sum(axis=1))[:, None]
    corners = x[stencils[some]]
    corners = corners - corners[:, :1]
    first, second = _across(n)
    flats = np.stack([np.einsum("mki,mi->mk", corners, axis) for axis in (first, second)], axis=2)
    area, weights = np.zeros(len(some)), np.zeros((len(some), 6))
    _overlap(np.ascontiguousarray(flats), np.zeros((2, MOST, 2)), area, weights)
    shared = area > 0
    found = some[shared]
    return Overlaps(found, stencils[found], weights[shared], n[shared], (facing[some] * area)[shared])


def _across(n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two unit vectors (m, 3) across n (m, 3) and each other."""
    axis = np.eye(3)[np.abs(n).argmin(axis=1)]
    first = np.cross(n, axis)
    first /= np.sqrt((first * first).sum(axis=1))[:, None]
    return first, np.cross(n, first)
