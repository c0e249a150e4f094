"""Projection of vectors and symmetric matrices at vertices with directional Dirichlet conditions.

N = Σ n nᵀ over the orthonormal constrained directions n is a projection: symmetric, stored as xx yy zz xy xz
yz, or () without constraints, which costs nothing.
"""

from __future__ import annotations

from typing import Any

from supple.kernels import device_function, overload_by_type


@device_function
def symmetric_matvec(S, v):
    """S v for a symmetric S as xx yy zz xy xz yz."""
    xx, yy, zz, xy, xz, yz = S
    return (
        xx * v[0] + xy * v[1] + xz * v[2],
        xy * v[0] + yy * v[1] + yz * v[2],
        xz * v[0] + yz * v[1] + zz * v[2],
    )


def free_part(N: Any, v: Any) -> Any:
    """v - N v: component of a vector orthogonal to the constrained directions."""


@overload_by_type(free_part)
def _free_part(N, v):
    if len(N) == 0:
        return lambda N, v: v
    return lambda N, v: _across(N, v)


@device_function
def _across(N, v):
    projection = symmetric_matvec(N, v)
    return (v[0] - projection[0], v[1] - projection[1], v[2] - projection[2])


def free_bound(N: Any, A: Any) -> Any:
    """P A P + ⅓ tr(A) N with P = I - N, for a positive definite A.

    The solution x of this system for a right-hand side P b has no component along N, and solves A x = b
    orthogonal to it.
    """


@overload_by_type(free_bound)
def _free_bound(N, A):
    if len(N) == 0:
        return lambda N, A: A
    return lambda N, A: _project_matrix(N, A)


@device_function
def _project_matrix(N, A):
    xx, yy, zz, xy, xz, yz = A
    a, b, c = _across(N, (xx, xy, xz)), _across(N, (xy, yy, yz)), _across(N, (xz, yz, zz))  # rows of A P
    p, q, r = _across(N, (a[0], b[0], c[0])), _across(N, (a[1], b[1], c[1])), _across(N, (a[2], b[2], c[2]))
    t = (xx + yy + zz) / 3.0
    return (
        p[0] + t * N[0],
        q[1] + t * N[1],
        r[2] + t * N[2],
        p[1] + t * N[3],
        p[2] + t * N[4],
        q[2] + t * N[5],
    )
