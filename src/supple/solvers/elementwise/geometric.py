"""Geometric constraints on tetrahedra, independent of the material: baselines of the papers.

Distances: |xᵢ - xⱼ| keeps its rest value, for the six edges of an element in sequence [PBCM section 3.2].
Shape matching: the corners move to the best-fitting rigid transformation of the undeformed element [Müller et
al. 2005]; each element is a cluster of its own.
"""

from __future__ import annotations

import math

from supple.algebra.matrix3 import add, cofactor, det, dot, matvec, minus9, scale, sub
from supple.algebra.rotation import rotation
from supple.kernels import device_function, where
from supple.solvers.elementwise.gather import load_element, scatter_corners
from supple.solvers.elementwise.projection import Projection, project
from supple.terms.base.elastic import measure


class DistanceProjection(Projection):
    """Six edges of each tetrahedron.

    Attributes:
        options: (stiffness,), the fraction of each correction that is applied.
    """

    __slots__ = ()


class ShapeProjection(Projection):
    """Tetrahedra as rigid clusters.

    Attributes:
        options: (stiffness,), the fraction of each correction that is applied.
    """

    __slots__ = ()


@device_function
def rest_edges(g, V):
    """Xₐ - X₀ [m] of the other three corners of a tetrahedron, the columns of (g₁ g₂ g₃)⁻ᵀ; 0 in padding."""
    M = (g[1][0], g[1][1], g[1][2], g[2][0], g[2][1], g[2][2], g[3][0], g[3][1], g[3][2])
    K, J = cofactor(M), det(M)
    exists = V > 0.0
    s = where(exists, 1.0 / where(exists, J, 0.0 * J + 1.0), 0.0 * J)
    return scale(s, (K[0], K[1], K[2])), scale(s, (K[3], K[4], K[5])), scale(s, (K[6], K[7], K[8]))


@device_function
def _keep_distance(a, b, wa, wb, rest, stiffness):
    """Return two corners after the correction of their distance; `rest` is the rest vector from b to a."""
    d = add(rest, sub(a, b))
    length, rest_length = math.sqrt(dot(d, d)), math.sqrt(dot(rest, rest))
    denominator = (wa + wb) * length
    nonzero = denominator > 0.0
    ratio = (length - rest_length) / where(nonzero, denominator, 0.0 * denominator + 1.0)
    s = stiffness * where(nonzero, ratio, 0.0 * denominator)
    return sub(a, scale(s * wa, d)), add(b, scale(s * wb, d))


@project.of(DistanceProjection)
def _project_distances(projection, row, u):
    elements, (stiffness,) = projection.elements, projection.options
    x, W, g, V, _ = load_element(elements, row, u)
    p, q, r = rest_edges(g, V)
    x0, x1, x2, x3 = x
    w0, w1, w2, w3 = W
    x1, x0 = _keep_distance(x1, x0, w1, w0, p, stiffness)
    x2, x0 = _keep_distance(x2, x0, w2, w0, q, stiffness)
    x3, x0 = _keep_distance(x3, x0, w3, w0, r, stiffness)
    x1, x2 = _keep_distance(x1, x2, w1, w2, sub(p, q), stiffness)
    x2, x3 = _keep_distance(x2, x3, w2, w3, sub(q, r), stiffness)
    x3, x1 = _keep_distance(x3, x1, w3, w1, sub(r, p), stiffness)
    scatter_corners(elements, row, u, (x0, x1, x2, x3))


@device_function
def _masses(W):
    """1/W up to a common factor; pinned corners are about a million times heavier than the others."""
    light = 1e-6 * (W[0] + W[1] + W[2] + W[3]) + 1e-30
    return 1.0 / (W[0] + light), 1.0 / (W[1] + light), 1.0 / (W[2] + light), 1.0 / (W[3] + light)


@device_function
def _towards(x, w, error, arm, stiffness):
    """Return a corner moved by stiffness (R - F) (X - C); pinned corners stay."""
    target = add(x, scale(stiffness, matvec(error, arm)))
    free = w > 0.0
    return where(free, target[0], x[0]), where(free, target[1], x[1]), where(free, target[2], x[2])


@project.of(ShapeProjection)
def _project_shape(projection, row, u):
    """Shape matching of one tetrahedron.

    x - c = F (X - C) about the center of mass, so (R - F) (X - C) moves the corners to R (X - C) + c. R of F,
    the deformation gradient of the element, conserves the center of mass and the momentum.
    """
    elements, (stiffness,) = projection.elements, projection.options
    x, W, g, V, _ = load_element(elements, row, u)
    F = measure(elements.rows, x, g)
    error = minus9(rotation(F), F)
    p, q, r = rest_edges(g, V)
    m0, m1, m2, m3 = _masses(W)
    center = scale(1.0 / (m0 + m1 + m2 + m3), add(scale(m1, p), add(scale(m2, q), scale(m3, r))))
    x0 = _towards(x[0], W[0], error, scale(-1.0, center), stiffness)
    x1 = _towards(x[1], W[1], error, sub(p, center), stiffness)
    x2 = _towards(x[2], W[2], error, sub(q, center), stiffness)
    x3 = _towards(x[3], W[3], error, sub(r, center), stiffness)
    scatter_corners(elements, row, u, (x0, x1, x2, x3))
