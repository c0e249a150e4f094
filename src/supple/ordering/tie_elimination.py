"""Tie elimination: dependent vertices expressed by independent ones through stiff weak constraints.

A weak constraint of large stiffness is nearly an equation Σ c x = const between its vertices. Each equation
expresses one vertex by the others, x_a = Σ w_b x_b + const. A displacement of vertex b by δ, with every
dependent vertex a displaced by w_b δ, then changes no constraint.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array

from supple.terms import Term

NEGLIGIBLE = 1e-9
"""Threshold below which weights are dropped. A constraint without remaining weights is implied by others."""

NEARLY_LARGEST = 0.9
"""Ratio to the largest coefficient of an equation above which a vertex may be eliminated. It bounds the
growth of weights in successive eliminations."""

MOST_LEADERS, LARGEST_WEIGHT = 24, 8.0
"""Limits on the number of independent vertices and on the weight of a dependent vertex. A constraint beyond
them is not eliminated."""


class Equations(NamedTuple):
    """Tie equations Σ C x = const.

    Attributes:
        coefficients: (m, n) matrix C: one row per tie, one column per vertex.
        stiffness: (m,) stiffness of each tie [N/m].
    """

    coefficients: csr_array
    stiffness: np.ndarray


class Carrying(NamedTuple):
    """Elimination of dependent vertices.

    Attributes:
        weights: (n, n) weight [a, b] of independent vertex b in dependent vertex a.
        follows: (n,) True for dependent vertices, which have no dependents themselves. A dependent vertex
            without weights is constant.
    """

    weights: csr_array
    follows: np.ndarray


def equations(terms: tuple[Term, ...], free: np.ndarray) -> Equations:
    """Collect the ties of all terms between free vertices; pinned vertices are constants.

    Args:
        terms: Terms of the model.
        free: (n,) mask of the free vertices.
    """
    rows, columns, values, stiffness = [], [], [], []
    first = 0
    for term in terms:
        relations = term.relations()
        if relations is not None:
            m, k = term.vertices.shape
            rows.append(first + np.repeat(np.arange(m), k))
            columns.append(term.vertices.ravel())
            values.append(np.where(free[term.vertices], relations.coefficients, 0.0).ravel())
            stiffness.append(relations.stiffness)
            first += m
    if not first:
        return Equations(csr_array((0, len(free))), np.zeros(0))
    where = np.concatenate(rows), np.concatenate(columns)
    C = csr_array((np.concatenate(values), where), shape=(first, len(free)))
    C.data[np.abs(C.data) < NEGLIGIBLE] = 0
    C.eliminate_zeros()
    return Equations(C, np.concatenate(stiffness))


def carrying(ties: Equations) -> Carrying:
    """Eliminate one vertex per tie, stiffer ties first if they share vertices. Implied ties eliminate no
    vertex."""
    C = ties.coefficients
    n = C.shape[1]
    row = np.repeat(np.arange(C.shape[0]), np.diff(C.indptr))
    largest = np.zeros(C.shape[0])
    np.maximum.at(largest, row, np.abs(C.data))
    fit = np.abs(C.data) >= NEARLY_LARGEST * largest[row]
    fit &= np.bincount(C.indices, minlength=n)[C.indices] == 1  # in no other tie
    simple, place = np.unique(row[fit], return_index=True)
    place = np.flatnonzero(fit)[place]

    expressed = np.full(C.shape[0], -1)
    expressed[simple] = C.indices[place]
    divisor = np.ones(C.shape[0])
    divisor[simple] = -C.data[place]
    alone = (expressed[row] >= 0) & (C.indices != expressed[row])
    where = expressed[row[alone]], C.indices[alone]
    weights = csr_array((C.data[alone] / divisor[row[alone]], where), shape=(n, n))
    follows = np.zeros(n, bool)
    follows[expressed[simple]] = True

    left = np.flatnonzero((expressed < 0) & (largest > 0))
    if len(left):
        others = _eliminate(C, left[np.argsort(-ties.stiffness[left], kind="stable")])
        among = _as_matrix(others, n)
        follows[list(others)] = True
        stays = eye_array(n, format="csr")
        stays.data[list(others)] = 0
        weights = weights @ (stays + among) + among
    weights = csr_array(weights)
    weights.data[np.abs(weights.data) < NEGLIGIBLE] = 0
    weights.eliminate_zeros()
    return Carrying(weights, follows)


def _eliminate(C: csr_array, order: np.ndarray) -> dict[int, dict[int, float]]:
    """Gaussian elimination of ties with common vertices: weights w_b of dependent x_a = Σ w_b x_b."""
    follows: dict[int, dict[int, float]] = {}
    followers: dict[int, set[int]] = {}
    for tie in order.tolist():
        places = slice(C.indptr[tie], C.indptr[tie + 1])
        left: dict[int, float] = {}
        for v, c in zip(C.indices[places].tolist(), C.data[places].tolist(), strict=True):
            for leader, w in follows.get(v, {v: 1.0}).items():
                left[leader] = left.get(leader, 0.0) + c * w
        left = {v: c for v, c in left.items() if abs(c) > NEGLIGIBLE}
        if not left:
            continue
        enough = NEARLY_LARGEST * max(map(abs, left.values()))
        chosen = min(
            (v for v, c in left.items() if abs(c) >= enough), key=lambda v: (len(followers.get(v, ())), v)
        )
        own = {v: -c / left[chosen] for v, c in left.items() if v != chosen}
        new = {a: _substituted(follows[a], chosen, own) for a in followers.get(chosen, ())} | {chosen: own}
        if any(
            len(w) > MOST_LEADERS or max(map(abs, w.values()), default=0) > LARGEST_WEIGHT
            for w in new.values()
        ):
            continue
        follows |= new
        followers.pop(chosen, None)
        for a, leaders in new.items():
            for v in leaders:
                followers.setdefault(v, set()).add(a)
    return follows


def _substituted(weights: dict[int, float], v: int, by: dict[int, float]) -> dict[int, float]:
    """Substitute x_v in the weights of a vertex."""
    result = {leader: w for leader, w in weights.items() if leader != v}
    for leader, w in by.items():
        result[leader] = result.get(leader, 0.0) + weights[v] * w
    return result


def _as_matrix(follows: dict[int, dict[int, float]], n: int) -> csr_array:
    entries = [(a, b, w) for a, leaders in follows.items() for b, w in leaders.items()]
    rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
    return csr_array((np.array(values, float), (rows, columns)), shape=(n, n))
