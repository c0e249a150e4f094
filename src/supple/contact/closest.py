"""Closest points of vertices and triangles, and of two edges, as weights of their corners."""

from __future__ import annotations

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.kernels import physics


@physics
def _unit(x):
    return min(max(x, 0.0), 1.0)


@physics
def on_triangle(p, a, b, c):
    """Weights (u, v, w) of the corners at the point of a triangle that is closest to p [Ericson 2005, section
    5.1.5]; of a triangle without area, at the closest point of an edge."""
    ab, ac, ap = sub(b, a), sub(c, a), sub(p, a)
    d1, d2 = dot(ab, ap), dot(ac, ap)
    if d1 <= 0.0 and d2 <= 0.0:
        return 1.0, 0.0, 0.0
    bp = sub(p, b)
    d3, d4 = dot(ab, bp), dot(ac, bp)
    if d3 >= 0.0 and d4 <= d3:
        return 0.0, 1.0, 0.0
    vc = d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        v = d1 / (d1 - d3)
        return 1.0 - v, v, 0.0
    cp = sub(p, c)
    d5, d6 = dot(ab, cp), dot(ac, cp)
    if d6 >= 0.0 and d5 <= d6:
        return 0.0, 0.0, 1.0
    vb = d5 * d2 - d1 * d6
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        w = d2 / (d2 - d6)
        return 1.0 - w, 0.0, w
    va = d3 * d6 - d5 * d4
    if va <= 0.0 and d4 >= d3 and d5 >= d6:
        w = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        return 0.0, 1.0 - w, w
    total = va + vb + vc
    return va / total, vb / total, vc / total


@physics
def on_edges(a, b, c, d):
    """(s, t): the closest points a + s (b - a) and c + t (d - c) of two edges [Ericson 2005, 5.1.9]."""
    p, q, r = sub(b, a), sub(d, c), sub(a, c)
    pp, qq, qr = dot(p, p), dot(q, q), dot(q, r)
    if pp == 0.0 and qq == 0.0:
        return 0.0, 0.0
    if pp == 0.0:
        return 0.0, _unit(qr / qq)
    pr = dot(p, r)
    if qq == 0.0:
        return _unit(-pr / pp), 0.0
    pq = dot(p, q)
    across = pp * qq - pq * pq
    s = _unit((pq * qr - pr * qq) / across) if across > 1e-14 * pp * qq else 0.0
    t = (pq * s + qr) / qq
    if t < 0.0:
        return _unit(-pr / pp), 0.0
    if t > 1.0:
        return _unit((pq - pr) / pp), 1.0
    return s, t


@physics
def between(s, a, b):
    """a + s (b - a)."""
    return add(a, scale(s, sub(b, a)))
