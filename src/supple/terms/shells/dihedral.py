"""Dihedral angle between two triangles with a common edge, and its derivatives.

Corners a and b are the edge, o and p the apexes of the triangles (a, b, o) and (b, a, p). Let e = b - a, l =
|e|, N₁ = e × (o - a) and N₂ = (p - a) × e; the normals N₁ and N₂ point to the same side. The angle is θ =
atan2(-l N₁ · (p - a), N₁ · N₂): 0 for coplanar triangles, negative for p on the side of N₁, ±π for triangles
folded onto each other [PBNG eq. 35, with the edge normalized].
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, cross, dot, scale
from supple.kernels import device_function, rounding

MIN_SQUARED_LENGTH = 1e-100
"""Lower bound of squared lengths in denominators [m²]."""


class Opening(NamedTuple):
    """Dihedral angle of a hinge, with derivatives.

    Attributes:
        sine, cosine: Sine and cosine of θ times |N₁| |N₂|.
        b, o, p: ∂θ/∂b, ∂θ/∂o and ∂θ/∂p [1/m]; ∂θ/∂a is minus their sum.
        length: l [m].
        along: (o - a) · e/l² and (p - a) · e/l².
        inverse: Inverse heights of the apexes [1/m].
    """

    sine: object
    cosine: object
    b: tuple
    o: tuple
    p: tuple
    length: object
    along: tuple
    inverse: tuple


@device_function
def opening(e, o, p):
    """Dihedral angle for corners at e, o and p relative to a [m].

    Degenerate triangles and edges have no direction. Their denominators are kept above rounding, so that the
    result stays finite.
    """
    N, M = cross(e, o), cross(p, e)
    square = dot(e, e)
    smallest = rounding(square)
    square = square + smallest * (dot(o, o) + dot(p, p)) + 1e-36
    length = math.sqrt(square)
    floor = smallest * square * square + 1e-36
    NN, MM = dot(N, N), dot(M, M)
    v, w = scale(length / (NN + floor), N), scale(length / (MM + floor), M)
    s, t = dot(o, e) / square, dot(p, e) / square
    return Opening(
        -(length * dot(N, p)),
        dot(N, M),
        add(scale(s, v), scale(t, w)),
        scale(-1.0, v),
        scale(-1.0, w),
        length,
        (s, t),
        (math.sqrt(dot(v, v)), math.sqrt(dot(w, w))),
    )


def angles(x: np.ndarray) -> np.ndarray:
    """θ (m,) [rad] of corners (m, 4, 3)."""
    e, o, p = (x[:, k] - x[:, 0] for k in (1, 2, 3))
    N, M = np.cross(e, o), np.cross(p, e)
    length = np.linalg.norm(e, axis=1)
    return np.arctan2(-length * np.einsum("ei,ei->e", N, p), np.einsum("ei,ei->e", N, M))


def angle_derivatives(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """∂θ/∂x (m, 4, 3) and ∂²θ/∂x∂x (m, 4, 4, 3, 3) at corners x (m, 4, 3).

    For each triangle with normal n, height h over the edge and relative foot t of the height on the edge:
    ∂θ/∂o = -w, ∂θ/∂b = t w, ∂θ/∂a = (1 - t) w, w = n/h = l N/|N|².
    """
    gradient, hessian = np.zeros((len(x), 4, 3)), np.zeros((len(x), 4, 4, 3, 3))
    e = x[:, 1] - x[:, 0]
    square = np.maximum((e**2).sum(axis=1), MIN_SQUARED_LENGTH)[:, None]
    length = np.sqrt(square)
    for apex, sign in ((2, 1.0), (3, -1.0)):
        corners = [0, 1, apex]
        d = x[:, apex] - x[:, 0]
        N = sign * np.cross(e, d)
        NN = np.maximum((N**2).sum(axis=1, keepdims=True), MIN_SQUARED_LENGTH**2)
        w, t = length * N / NN, np.einsum("ei,ei->e", d, e)[:, None] / square
        share = np.stack([1 - t, t, -np.ones_like(t)], axis=1)
        gradient[:, corners] += share * w[:, None]
        dN = sign * np.stack([cross_matrices(d - e), cross_matrices(-d), cross_matrices(e)], axis=1)
        dl = np.stack([-e, e, 0 * e], axis=1) / length[:, None]
        dt = np.stack([2 * t * e - e - d, d - 2 * t * e, e], axis=1) / square[:, None]
        turn = (length / NN)[:, :, None] * (np.eye(3) - 2 * np.einsum("ei,ej->eij", N, N) / NN[:, :, None])
        dw = np.einsum("ei,ebj->ebij", N / NN, dl) + np.einsum("eij,ebjk->ebik", turn, dN)
        dshare = np.stack([-dt, dt, 0 * dt], axis=1)  # ∂ of corner a's factor with respect to corner b
        blocks = np.einsum("ei,eabj->eabij", w, dshare) + share[:, :, None, :, None] * dw[:, None]
        for k, corner in enumerate(corners):
            hessian[:, corner, corners] += blocks[:, k]
    return gradient, hessian


def cross_matrices(a: np.ndarray) -> np.ndarray:
    """(m, 3, 3) matrices A with A v = a × v."""
    x, y, z = a.T
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)
