"""The six strains of a triangle with its neighbors, and their derivatives.

Corners 0, 1 and 2 are the triangle, 3, 4 and 5 the apexes of its neighbors across the edges 01, 12 and 20.
With the shape gradients Gₐ in thread coordinates (u, v), (f_u, f_v) = Σ xₐ Gₐᵀ, e₀ = |f_u| - 1, e₁ = f_u ·
f_v/(|f_u| |f_v|), e₂ = |f_v| - 1 and L = -n Σ (θ/l) G_o G_oᵀ over the edges of length l and angle θ opposite
to the corners o; n is twice the area. Border edges have no angle.

Beyond MAX_UNCHANGED_ANGLE, θ grows to infinity for a closing fold (`regularize_angle`): at ±π it would
jump, and ψ with it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.angle import angle_of
from supple.algebra.matrix3 import add, cross, dot, scale, sub
from supple.kernels import device_function, where
from supple.terms.base.elastic import minus_sum
from supple.terms.shells.dihedral import angle_derivatives, angles, cross_matrices, opening

MIN_SQUARED_LENGTH = 1e-30
"""Lower bound of squared lengths in denominators [m²]."""

HINGES = ((0, 1, 2, 3), (1, 2, 0, 4), (2, 0, 1, 5))
"""Corners (a, b, o, p) of the three hinges, as in `dihedral`."""


class VertexStrains(NamedTuple):
    """Strains as seen from the visiting vertex.

    Attributes:
        strain: Six strains.
        at_corner: Their gradients at corner 0.
        at_apex: Gradient of -n θ/l of the first edge at corner 3, the factor of G_o G_oᵀ in L.
        bends: G_o G_oᵀ of the edges as uu uv vv.
        curvature: Bounds of the second derivatives of e₀ e₁ e₂ at corner 0.
        folds: Bounds of those of n θ/l of the edges at corner 0, and of the first edge at corner 3.
    """

    strain: Any
    at_corner: Any
    at_apex: Any
    bends: Any
    curvature: Any
    folds: Any


@device_function
def _square(G):
    return G[0] * G[0], G[0] * G[1], G[1] * G[1]


@device_function
def _fold(hinge, exists):
    """Regularized θ of a hinge, 1/l and ∂θ/l per change of the angle; 0 at a border.

    The last result is the factor from the curvature bound of the angle to that of θ.
    """
    theta, first, second = regularize_angle(angle_of(hinge.sine, hinge.cosine))
    inverse = exists / hinge.length
    return exists * theta, inverse, first * inverse, first + abs(second)


@device_function
def vertex_strains(x, G, exists):
    """Strains, gradients and curvature bounds of a triangle.

    Args:
        x: Six corners relative to the visiting vertex [m].
        G: Three shape gradients (u, v) [1/m].
        exists: 1 for each edge with a neighbor.
    """
    fu = _threads(x, G, 0)
    fv = _threads(x, G, 1)
    a, b = math.sqrt(dot(fu, fu) + MIN_SQUARED_LENGTH), math.sqrt(dot(fv, fv) + MIN_SQUARED_LENGTH)
    u, v = scale(1.0 / a, fu), scale(1.0 / b, fv)
    c = dot(u, v)
    p, q = scale(1.0 / a, sub(v, scale(c, u))), scale(1.0 / b, sub(u, scale(c, v)))
    e, o = sub(x[1], x[0]), sub(x[2], x[0])
    f = sub(x[2], x[1])
    N = cross(e, o)
    n = math.sqrt(dot(N, N) + MIN_SQUARED_LENGTH * MIN_SQUARED_LENGTH)
    first = opening(e, o, sub(x[3], x[0]))
    second = opening(f, sub(x[0], x[1]), sub(x[4], x[1]))
    third = opening(sub(x[0], x[2]), sub(x[1], x[2]), sub(x[5], x[2]))
    s, j, dj, bj = _fold(first, exists[0])
    t, k, dk, bk = _fold(second, exists[1])
    r, l, dl, bl = _fold(third, exists[2])
    F, S, T = _square(G[2]), _square(G[0]), _square(G[1])
    bend = (
        s * j * F[0] + t * k * S[0] + r * l * T[0],
        s * j * F[1] + t * k * S[1] + r * l * T[1],
        s * j * F[2] + t * k * S[2] + r * l * T[2],
    )
    grow = scale(1.0 / n, cross(N, f))
    at_first = add(scale(dj, minus_sum((first.b, first.o, first.p))), scale(s * j * j * j, e))
    at_second = scale(dk, second.o)
    at_third = add(scale(dl, third.b), scale(-(r * l * l * l), sub(x[0], x[2])))
    g0, g1 = G[0][0], G[0][1]
    return VertexStrains(
        (a - 1.0, c, b - 1.0, -n * bend[0], -n * bend[1], -n * bend[2]),
        (
            scale(g0, u),
            add(scale(g0, p), scale(g1, q)),
            scale(g1, v),
            _bending(grow, n, bend[0], at_first, F[0], at_second, S[0], at_third, T[0]),
            _bending(grow, n, bend[1], at_first, F[1], at_second, S[1], at_third, T[1]),
            _bending(grow, n, bend[2], at_first, F[2], at_second, S[2], at_third, T[2]),
        ),
        scale(-n * dj, first.p),
        (F, S, T),
        (g0 * g0 / a, _sum_square(g0 / a, g1 / b), g1 * g1 / b),
        (
            n * j * bj * _at_end(first, 0),
            n * k * bk * second.inverse[0] * second.inverse[0],
            n * l * bl * _at_end(third, 1),
            n * j * bj * first.inverse[1] * first.inverse[1],
        ),
    )


@device_function
def _sum_square(a, b):
    total = abs(a) + abs(b)
    return 1.5 * total * total


@device_function
def _at_end(hinge, end):
    """Curvature bound of θ at an end of its edge: Σ ((1 - t)/h)² + 3/l², for a (end 0) or b (end 1)."""
    s, t = hinge.along
    if end == 0:
        s, t = 1.0 - s, 1.0 - t
    p, q = s * hinge.inverse[0], t * hinge.inverse[1]
    return p * p + q * q + 3.0 / (hinge.length * hinge.length)


@device_function
def _threads(x, G, k):
    """Σ xₐ Gₐ."""
    d, e = sub(x[1], x[0]), sub(x[2], x[0])
    return add(scale(G[1][k], d), scale(G[2][k], e))


@device_function
def _bending(grow, n, bend, first, F, second, S, third, T):
    """-∂(n Σ (θ/l) G G)."""
    turn = add(scale(F, first), add(scale(S, second), scale(T, third)))
    return add(scale(-bend, grow), scale(-n, turn))


def strains(x: np.ndarray, G: np.ndarray, exists: np.ndarray) -> np.ndarray:
    """(m, 6) strains of corners x (m, 6, 3), shape gradients G (m, 3, 2) and neighbor flags (m, 3)."""
    f = np.einsum("eai,eak->eki", x[:, :3], G)
    a, b = np.linalg.norm(f, axis=2).T
    n = np.linalg.norm(np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]), axis=1)
    L = np.zeros((len(x), 3))
    for k, hinge in enumerate(HINGES):
        corners = x[:, hinge]
        length = np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1)
        theta = np.where(exists[:, k], regularize_angles(angles(corners))[0], 0.0)
        L -= (n * theta / length)[:, None] * _squares(G[:, hinge[2]])
    return np.column_stack([a - 1, np.einsum("ei,ei->e", f[:, 0], f[:, 1]) / (a * b), b - 1, L])


def _squares(G: np.ndarray) -> np.ndarray:
    return np.stack([G[:, 0] ** 2, G[:, 0] * G[:, 1], G[:, 1] ** 2], axis=1)


def strain_derivatives(x: np.ndarray, G: np.ndarray, exists: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """∂e/∂x (m, 6, 6, 3) and ∂²e/∂x∂x (m, 6, 6, 6, 3, 3), indexed by strain, then corners."""
    first, second = np.zeros((len(x), 6, 6, 3)), np.zeros((len(x), 6, 6, 6, 3, 3))
    _in_plane(x, G, first, second)
    _of_bending(x, G, exists, first, second)
    return first, second


def _in_plane(x: np.ndarray, G: np.ndarray, first: np.ndarray, second: np.ndarray) -> None:
    fu, fv = np.moveaxis(np.einsum("eai,eak->eki", x[:, :3], G), 1, 0)
    a, b = (np.maximum(np.linalg.norm(f, axis=1), MIN_SQUARED_LENGTH)[:, None] for f in (fu, fv))
    u, v = fu / a, fv / b
    c = (u * v).sum(axis=1, keepdims=True)
    p, q = (v - c * u) / a, (u - c * v) / b
    P, Q = ((np.eye(3) - _outer(w, w)) / length[:, :, None] for w, length in ((u, a), (v, b)))
    a, b, c = a[:, :, None], b[:, :, None], c[:, :, None]
    uu = -(_outer(u, p) + _outer(p, u) + c * P) / a
    vv = -(_outer(v, q) + _outer(q, v) + c * Q) / b
    uv = (Q - _outer(u, q)) / a
    gu, gv = G[:, :, 0], G[:, :, 1]
    first[:, 0, :3] = gu[:, :, None] * u[:, None]
    first[:, 1, :3] = gu[:, :, None] * p[:, None] + gv[:, :, None] * q[:, None]
    first[:, 2, :3] = gv[:, :, None] * v[:, None]
    pair = "ea,eb,eij->eabij"
    second[:, 0, :3, :3] = np.einsum(pair, gu, gu, P)
    second[:, 2, :3, :3] = np.einsum(pair, gv, gv, Q)
    second[:, 1, :3, :3] = (
        np.einsum(pair, gu, gu, uu)
        + np.einsum(pair, gv, gv, vv)
        + np.einsum(pair, gu, gv, uv)
        + np.einsum(pair, gv, gu, uv.transpose(0, 2, 1))
    )


def _of_bending(
    x: np.ndarray, G: np.ndarray, exists: np.ndarray, first: np.ndarray, second: np.ndarray
) -> None:
    n, dn, ddn = _twice_area(x)
    for k, hinge in enumerate(HINGES):
        corners = x[:, hinge]
        theta, slope, curve = regularize_angles(angles(corners))
        turn, bend = angle_derivatives(corners)
        dtheta = slope[:, None, None] * turn
        ddtheta = slope[:, None, None, None, None] * bend
        ddtheta += curve[:, None, None, None, None] * np.einsum("eai,ebj->eabij", turn, turn)
        inverse, dl, ddl = _inverse_length(corners)
        product, d, dd = _product((theta, dtheta, ddtheta), (inverse, dl, ddl))
        gradient, dw, ddw = np.zeros((len(x), 6, 3)), np.zeros((len(x), 6, 6, 3, 3)), None
        gradient[:, hinge] = d
        for i, corner in enumerate(hinge):
            dw[:, corner, hinge] = dd[:, i]
        _, gradient, ddw = _product((product, gradient, dw), (n, dn, ddn))
        weight = np.where(exists[:, k, None], -_squares(G[:, hinge[2]]), 0.0)
        first[:, 3:] += np.einsum("es,eai->esai", weight, gradient)
        second[:, 3:] += np.einsum("es,eabij->esabij", weight, ddw)


def _product(f: tuple, g: tuple) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """f g with its gradients (m, k, 3) and Hessians (m, k, k, 3, 3)."""
    (a, da, dda), (b, db, ddb) = f, g
    cross_terms = np.einsum("eai,ebj->eabij", da, db)
    cross_terms = cross_terms + cross_terms.transpose(0, 2, 1, 4, 3)
    first = da * b[:, None, None] + a[:, None, None] * db
    wide = (slice(None), None, None, None, None)
    return a * b, first, dda * b[wide] + a[wide] * ddb + cross_terms


def _inverse_length(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """1/l of hinge edges with derivatives with respect to their four corners."""
    e = x[:, 1] - x[:, 0]
    l = np.maximum(np.linalg.norm(e, axis=1), MIN_SQUARED_LENGTH)
    first, second = np.zeros((len(x), 4, 3)), np.zeros((len(x), 4, 4, 3, 3))
    first[:, 0], first[:, 1] = (s * e / (l**3)[:, None] for s in (1, -1))
    unit = e / l[:, None]
    block = (3 * _outer(unit, unit) - np.eye(3)) / (l**3)[:, None, None]
    for i in (0, 1):
        for j in (0, 1):
            second[:, i, j] = block if i == j else -block
    return 1 / l, first, second


def _twice_area(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n with derivatives with respect to the six corners."""
    edges = [x[:, (a + 2) % 3] - x[:, (a + 1) % 3] for a in range(3)]
    N = np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
    n = np.maximum(np.linalg.norm(N, axis=1), MIN_SQUARED_LENGTH)
    unit = N / n[:, None]
    first, second = np.zeros((len(x), 6, 3)), np.zeros((len(x), 6, 6, 3, 3))
    flat = (np.eye(3) - _outer(unit, unit)) / n[:, None, None]
    for a in range(3):
        first[:, a] = np.cross(unit, edges[a])
        for b in range(3):
            turn = (b == (a + 2) % 3) - (b == (a + 1) % 3)
            second[:, a, b] = -cross_matrices(edges[a]) @ flat @ cross_matrices(
                edges[b]
            ) + turn * cross_matrices(unit)
    return n, first, second


def _outer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ei,ej->eij", a, b)


MAX_UNCHANGED_ANGLE = math.radians(170)
"""Angle [rad] up to which θ is unchanged."""


CLOSING_RANGE = math.pi - MAX_UNCHANGED_ANGLE
"""Range of the regularized angles, π - MAX_UNCHANGED_ANGLE [rad]."""


MIN_REMAINDER = 1e-9
"""Lower bound of 1 - x, which keeps closed folds finite."""


@device_function
def regularize_angle(angle):
    """Regularized θ of a nearly closed fold, with its first and second derivative.

    An angle jumps from π to -π if two triangles pass through each other. The energy of a fabric differs on
    both sides, so it would jump, too, and cloth that is folded shut by its threads or by external forces
    would have no equilibrium. With c = MAX_UNCHANGED_ANGLE and x = (|θ| - c)/(π - c), for |θ| > c

        θ  ←  ± (|θ| + π x³/(1 - x)),

    which is twice continuously differentiable and unbounded, like the curvature of a closed fold.
    """
    size = abs(angle)
    zero = 0.0 * size
    x = max(size - MAX_UNCHANGED_ANGLE, zero) * (1.0 / CLOSING_RANGE)
    y = 1.0 / max(1.0 - x, zero + MIN_REMAINDER)
    sign = where(angle < 0.0, zero - 1.0, zero + 1.0)
    return (
        sign * (size + math.pi * x * x * x * y),
        1.0 + (math.pi / CLOSING_RANGE) * x * x * y * y * (3.0 - 2.0 * x),
        sign * (math.pi / (CLOSING_RANGE * CLOSING_RANGE)) * 2.0 * x * y * y * y * (3.0 - 3.0 * x + x * x),
    )


def regularize_angles(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Regularized θ (m,) and its derivatives for angles (m,), on the host."""
    size, sign = np.abs(angle), np.where(angle < 0, -1.0, 1.0)
    x = np.maximum(size - MAX_UNCHANGED_ANGLE, 0.0) / CLOSING_RANGE
    y = 1.0 / np.maximum(1.0 - x, MIN_REMAINDER)
    return (
        sign * (size + np.pi * x**3 * y),
        1.0 + np.pi / CLOSING_RANGE * x**2 * y**2 * (3.0 - 2.0 * x),
        sign * np.pi / CLOSING_RANGE**2 * 2.0 * x * y**3 * (3.0 - 3.0 * x + x**2),
    )
