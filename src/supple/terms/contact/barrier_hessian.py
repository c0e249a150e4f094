"""Second derivatives of barrier contacts, on the host.

At the closest points, the distance d = |r| of r = Σ wᵢ xᵢ is stationary in the parameters θ of the points: r
· T = 0, T = ∂r/∂θ = Σ αᵢ xᵢ. With D = ½ d² this gives ∂D/∂xᵢ = wᵢ r and ∂²D = wᵢ wⱼ I - Cᵢ (TᵀT)⁻¹ Cⱼᵀ, Cᵢ =
wᵢ T + αᵢ r, over the parameters in the interior of their range.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supple.collision.narrow_phase.proximity_bounds import measure_edges, measure_faces

REGULARIZATION = 1e-12
"""Regularization added to TᵀT, relative to its trace; TᵀT is singular for parallel edges."""

_P, _Q = np.array([-1.0, 1, 0, 0]), np.array([0.0, 0, -1, 1])
"""Edges p and q as linear combinations of the corners."""


MIN_RELATIVE_DISTANCE = 1e-9
"""Smallest distance relative to the barrier distance, for example after separation of bodies in contact at
rest."""


def barrier_hessians(
    x: np.ndarray, crossing: np.ndarray, stiffness: np.ndarray, reach: np.ndarray, fading: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hessians of active contacts.

    Args:
        x: (m, 4, 3) corners [m].
        crossing: (m,) True for edge-edge contacts.
        stiffness: (m,) k [N/m].
        reach: (m,) barrier distance h [m].
        fading: (m,) ε of the mollifier [m⁴].

    Returns:
        Indices (s,) of the contacts within the barrier distance, their ∂²E (s, 4, 4, 3, 3) [N/m], and k m
        |b'| (s,) [N].
    """
    weights, distance = closest(x, crossing)
    active = np.flatnonzero(distance < reach)
    x, w, edges = x[active], weights[active], crossing[active]
    k, h, eps = stiffness[active], reach[active], fading[active]
    d = np.maximum(distance[active], MIN_RELATIVE_DISTANCE * h)
    y, log = d - h, np.log(d / h)
    b, first = -y * y * log, -y * (2 * log + y / d)
    second = (y / d) ** 2 - 4 * y / d - 2 * log
    gradient, curved = _half_square(x, w, edges)
    blocks = ((second - first / d) / d**2)[:, None, None, None, None] * _outer(gradient, gradient)
    blocks += (first / d)[:, None, None, None, None] * curved
    fade = np.ones(len(active))
    for_edges = np.flatnonzero(edges)
    if len(for_edges):
        m, slope, bend, turn, curvature = _mollifier(x[for_edges], eps[for_edges])
        of_b = (first / d)[for_edges, None, None] * gradient[for_edges]
        own = m[:, None, None, None, None] * blocks[for_edges]
        both = _outer(turn, of_b) + _outer(of_b, turn)
        own += slope[:, None, None, None, None] * both
        own += (b[for_edges] * bend)[:, None, None, None, None] * _outer(turn, turn)
        own += (b[for_edges] * slope)[:, None, None, None, None] * curvature
        blocks[for_edges], fade[for_edges] = own, m
    return active, k[:, None, None, None, None] * blocks, k * fade * np.abs(first)


class ActiveContacts(NamedTuple):
    """Active contacts and their forces.

    Attributes:
        indices: (s,) indices of the contacts within the barrier distance.
        weights: (s, 4) signed weights of the corners at the closest points.
        normal: (s, 3) n, from the second to the first side.
        normal_force: (s,) normal force λ = k m |b'| [N].
        force: (s, 4, 3) forces on the corners [N].
    """

    indices: np.ndarray
    weights: np.ndarray
    normal: np.ndarray
    normal_force: np.ndarray
    force: np.ndarray


def barrier_forces(
    x: np.ndarray, crossing: np.ndarray, stiffness: np.ndarray, reach: np.ndarray, fading: np.ndarray
) -> ActiveContacts:
    """Forces of active contacts; arguments as in `barrier_hessians`."""
    weights, distance = closest(x, crossing)
    active = np.flatnonzero(distance < reach)
    x, w = x[active], weights[active]
    h, d = reach[active], np.maximum(distance[active], 1e-300)
    y, log = d - h, np.log(d / h)
    b, first = -y * y * log, -y * (2 * log + y / d)
    normal = np.einsum("ea,eai->ei", w, x) / d[:, None]
    gradient = first[:, None, None] * w[:, :, None] * normal[:, None]
    edges, fade = np.flatnonzero(crossing[active]), np.ones(len(active))
    if len(edges):
        m, slope, _, turn, _ = _mollifier(x[edges], fading[active][edges])
        gradient[edges] *= m[:, None, None]
        gradient[edges] += (b[edges] * slope)[:, None, None] * turn
        fade[edges] = m
    k = stiffness[active]
    return ActiveContacts(active, w, normal, k * fade * np.abs(first), -k[:, None, None] * gradient)


def closest(x: np.ndarray, crossing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Signed weights (m, 4) of the corners x (m, 4, 3) at the closest points, and distances (m,) [m]."""
    weights, distance = np.zeros((len(x), 4)), np.zeros(len(x))
    points = np.ascontiguousarray(x.reshape(-1, 3), float)
    corners = np.arange(4 * len(x)).reshape(-1, 4)
    for chosen, measure in ((~crossing, measure_faces), (crossing, measure_edges)):
        indices = np.flatnonzero(chosen)
        w, d = np.zeros((len(indices), 4)), np.zeros(len(indices))
        measure(points, corners[indices], w, d)
        weights[indices], distance[indices] = w, d
    return weights, distance


def _outer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("eai,ebj->eabij", a, b)


def _half_square(x: np.ndarray, w: np.ndarray, crossing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient (m, 4, 3) and Hessian (m, 4, 4, 3, 3) of ½ d²."""
    r = np.einsum("ea,eai->ei", w, x)
    alpha = _parameters(w, crossing)
    T = np.einsum("eka,eai->eki", alpha, x)
    M = np.einsum("eki,eli->ekl", T, T)
    fixed = np.abs(alpha).sum(axis=2) == 0
    M[:, [0, 1], [0, 1]] += np.where(
        fixed, 1.0, REGULARIZATION * np.trace(M, axis1=1, axis2=2)[:, None] + 1e-300
    )
    C = w[:, None, :, None] * T[:, :, None] + alpha[..., None] * r[:, None, None]
    inverse_C = np.linalg.solve(M, C.reshape(len(x), 2, 12)).reshape(C.shape)
    hessian = np.einsum("ea,eb,ij->eabij", w, w, np.eye(3)) - np.einsum("ekai,ekbj->eabij", C, inverse_C)
    return w[:, :, None] * r[:, None], hessian


def _parameters(w: np.ndarray, crossing: np.ndarray) -> np.ndarray:
    """Coefficients α (m, 2, 4) of the parameters, 0 for fixed ones.

    In a triangle or on one of its edges, a corner exchanges weight with the first corner of nonzero weight;
    on edges, both ends exchange weight.
    """
    alpha = np.zeros((len(w), 2, 4))
    weighted = np.abs(w) > 0
    corners = np.arange(len(w))
    first = 1 + np.argmax(weighted[:, 1:], axis=1)
    slot = np.zeros(len(w), int)
    for corner in (2, 3):
        moves = weighted[:, corner] & (first != corner) & ~crossing
        which = corners[moves]
        alpha[which, slot[moves], first[moves]] = 1.0
        alpha[which, slot[moves], corner] = -1.0
        slot[moves] += 1
    for k, edge in enumerate((_P, -_Q)):
        inner = crossing & weighted[:, 2 * k] & weighted[:, 2 * k + 1]
        alpha[inner, k] = edge
    return alpha


def _mollifier(x: np.ndarray, eps: np.ndarray) -> tuple[np.ndarray, ...]:
    """Mollifier m(c) of edge pairs with m' and m'' (k,), and ∇c and ∇²c of c = |p × q|².

    Args:
        x: (k, 4, 3) ends of both edges, whose vectors are p and q [m].
        eps: (k,) value of c from which m = 1 [m⁴].

    Returns:
        m, m', m'', ∇c (k, 4, 3) and ∇²c (k, 4, 4, 3, 3).
    """
    p, q = x[:, 1] - x[:, 0], x[:, 3] - x[:, 2]
    N = np.cross(p, q)
    ratio = np.minimum((N**2).sum(axis=1) / eps, 1.0)
    turn = 2 * (_P[:, None] * np.cross(q, N)[:, None] + _Q[:, None] * np.cross(N, p)[:, None])
    pp, qq, pq = ((a * b).sum(axis=1)[:, None, None] for a, b in ((p, p), (q, q), (p, q)))
    one = np.eye(3)
    mixed = 4 * _matrix(p, q) - 2 * _matrix(q, p) - 2 * pq * one
    curvature = np.einsum("a,b,eij->eabij", _P, _P, 2 * (qq * one - _matrix(q, q)))
    curvature += np.einsum("a,b,eij->eabij", _Q, _Q, 2 * (pp * one - _matrix(p, p)))
    curvature += np.einsum("a,b,eij->eabij", _P, _Q, mixed)
    curvature += np.einsum("a,b,eji->eabij", _Q, _P, mixed)
    fades = ratio < 1.0
    return (2 - ratio) * ratio, 2 * (1 - ratio) / eps, np.where(fades, -2 / eps**2, 0.0), turn, curvature


def _matrix(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ei,ej->eij", a, b)
