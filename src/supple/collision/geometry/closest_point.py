"""Closest points of vertex-triangle and edge-edge pairs, as barycentric weights.

All cases are evaluated and then selected, so that SIMD packs and GPU threads do not diverge.
"""

from __future__ import annotations

from supple.algebra.matrix3 import add, cross, dot, scale, select3, sub
from supple.kernels import device_function, where

MIN_SQUARED_SINE = 1e-14
"""Squared sine of the angle between edges below which they count as parallel, with any closest point."""

MIN_RELATIVE_HEIGHT = 1e-9
"""Height over a triangle, relative to edge lengths, below which its sign is rounding error."""


@device_function
def _unit(x):
    """Clamp to [0, 1]."""
    return min(max(x, 0.0 * x), 0.0 * x + 1.0)


@device_function
def _ratio(a, b):
    """a/b, or a if b is 0."""
    return a / where(abs(b) > 0.0, b, 0.0 * b + 1.0)


@device_function
def on_triangle(p, a, b, c):
    """Barycentric coordinates (u, v, w) of the point of a triangle closest to p [Ericson 2005, 5.1.5].

    For a degenerate triangle, the closest point of an edge.
    """
    ab, ac, ap, bp, cp = sub(b, a), sub(c, a), sub(p, a), sub(p, b), sub(p, c)
    d1, d2, d3 = dot(ab, ap), dot(ac, ap), dot(ab, bp)
    d4, d5, d6 = dot(ac, bp), dot(ab, cp), dot(ac, cp)
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    total, zero = va + vb + vc, 0.0 * d1
    one = zero + 1.0
    weights = _ratio(va, total), _ratio(vb, total), _ratio(vc, total)
    w = _ratio(d4 - d3, (d4 - d3) + (d5 - d6))
    weights = select3((va <= 0.0) & (d4 >= d3) & (d5 >= d6), (zero, 1.0 - w, w), weights)
    w = _ratio(d2, d2 - d6)
    weights = select3((vb <= 0.0) & (d2 >= 0.0) & (d6 <= 0.0), (1.0 - w, zero, w), weights)
    weights = select3((d6 >= 0.0) & (d5 <= d6), (zero, zero, one), weights)
    v = _ratio(d1, d1 - d3)
    weights = select3((vc <= 0.0) & (d1 >= 0.0) & (d3 <= 0.0), (1.0 - v, v, zero), weights)
    weights = select3((d3 >= 0.0) & (d4 <= d3), (zero, one, zero), weights)
    return select3((d1 <= 0.0) & (d2 <= 0.0), (one, zero, zero), weights)


@device_function
def on_edges(a, b, c, d):
    """(s, t) of the closest points a + s (b - a) and c + t (d - c) of two edges [Ericson 2005, 5.1.9]."""
    p, q, r = sub(b, a), sub(d, c), sub(a, c)
    pp, qq, pq = dot(p, p), dot(q, q), dot(p, q)
    pr, qr = dot(p, r), dot(q, r)
    across = pp * qq - pq * pq
    s = _unit(_ratio(pq * qr - pr * qq, across))
    s = where(across > MIN_SQUARED_SINE * pp * qq, s, 0.0 * s)
    t = _ratio(pq * s + qr, qq)
    before, behind = t < 0.0, t > 1.0
    s = where(before, _unit(_ratio(-pr, pp)), s)
    s = where(behind, _unit(_ratio(pq - pr, pp)), s)
    s = where(qq > 0.0, s, _unit(_ratio(-pr, pp)))
    return where(pp > 0.0, s, 0.0 * s), _unit(t)


@device_function
def between(s, a, b):
    """a + s (b - a)."""
    return add(a, scale(s, sub(b, a)))


@device_function
def crosses(p, q, a, b, c):
    """True if the edge from p to q intersects a triangle.

    Both ends lie on different sides of the triangle, beyond rounding errors, and all three sides of the
    triangle pass the edge in the same sense.
    """
    n = cross(sub(b, a), sub(c, a))
    d, e = sub(q, p), sub(p, a)
    s, t = dot(n, e), dot(n, sub(q, a))
    least = MIN_RELATIVE_HEIGHT * (dot(n, n) * (dot(d, d) + dot(e, e))) ** 0.5
    u, v = dot(d, cross(sub(a, p), sub(b, p))), dot(d, cross(sub(b, p), sub(c, p)))
    w = dot(d, cross(sub(c, p), sub(a, p)))
    inside = (u >= 0.0 and v >= 0.0 and w >= 0.0) or (u <= 0.0 and v <= 0.0 and w <= 0.0)
    return inside and ((s > least and t < -least) or (s < -least and t > least))
