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

NEGLIGIBLE_WEIGHT = 1e-9
"""Threshold below which weights are dropped. A constraint without remaining weights is implied by others."""

MIN_PIVOT_RATIO = 0.9
"""Ratio to the largest coefficient of an equation above which a vertex may be eliminated. It bounds the
growth of weights in successive eliminations."""

MAX_LEADERS, MAX_WEIGHT = 24, 8.0
"""Limits on the number of independent vertices and on the weight of a dependent vertex. A constraint beyond
them is not eliminated."""


class TieEquations(NamedTuple):
    """Tie equations Σ C x = const.

    Attributes:
        coefficients: (m, n) matrix C: one row per tie, one column per vertex.
        stiffness: (m,) stiffness of each tie [N/m].
    """

    coefficients: csr_array
    stiffness: np.ndarray


class TieElimination(NamedTuple):
    """Elimination of dependent vertices.

    Attributes:
        weights: (n, n) weight [a, b] of independent vertex b in dependent vertex a.
        dependent: (n,) True for dependent vertices, which have no dependents themselves. A dependent vertex
            without weights is constant.
    """

    weights: csr_array
    dependent: np.ndarray


def tie_equations(terms: tuple[Term, ...], free: np.ndarray) -> TieEquations:
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
        return TieEquations(csr_array((0, len(free))), np.zeros(0))
    where = np.concatenate(rows), np.concatenate(columns)
    C = csr_array((np.concatenate(values), where), shape=(first, len(free)))
    C.data[np.abs(C.data) < NEGLIGIBLE_WEIGHT] = 0
    C.eliminate_zeros()
    return TieEquations(C, np.concatenate(stiffness))


def eliminate_ties(ties: TieEquations) -> TieElimination:
    """Eliminate one vertex per tie, stiffer ties first if they share vertices. Implied ties eliminate no
    vertex."""
    C = ties.coefficients
    n = C.shape[1]
    row = np.repeat(np.arange(C.shape[0]), np.diff(C.indptr))
    largest = np.zeros(C.shape[0])
    np.maximum.at(largest, row, np.abs(C.data))
    fit = np.abs(C.data) >= MIN_PIVOT_RATIO * largest[row]
    fit &= np.bincount(C.indices, minlength=n)[C.indices] == 1  # in no other tie
    simple, entry = np.unique(row[fit], return_index=True)
    entry = np.flatnonzero(fit)[entry]

    expressed = np.full(C.shape[0], -1)
    expressed[simple] = C.indices[entry]
    divisor = np.ones(C.shape[0])
    divisor[simple] = -C.data[entry]
    is_other = (expressed[row] >= 0) & (C.indices != expressed[row])
    where = expressed[row[is_other]], C.indices[is_other]
    weights = csr_array((C.data[is_other] / divisor[row[is_other]], where), shape=(n, n))
    dependent = np.zeros(n, bool)
    dependent[expressed[simple]] = True

    left = np.flatnonzero((expressed < 0) & (largest > 0))
    if len(left):
        others = _eliminate(C, left[np.argsort(-ties.stiffness[left], kind="stable")])
        among = _as_matrix(others, n)
        dependent[list(others)] = True
        stays = eye_array(n, format="csr")
        stays.data[list(others)] = 0
        weights = weights @ (stays + among) + among
    weights = csr_array(weights)
    weights.data[np.abs(weights.data) < NEGLIGIBLE_WEIGHT] = 0
    weights.eliminate_zeros()
    return TieElimination(weights, dependent)


def _eliminate(C: csr_array, order: np.ndarray) -> dict[int, dict[int, float]]:
    """Gaussian elimination of ties with common vertices: weights w_b of dependent x_a = Σ w_b x_b."""
    weights_of: dict[int, dict[int, float]] = {}
    dependents: dict[int, set[int]] = {}
    for tie in order.tolist():
        entries = slice(C.indptr[tie], C.indptr[tie + 1])
        left: dict[int, float] = {}
        for v, c in zip(C.indices[entries].tolist(), C.data[entries].tolist(), strict=True):
            for leader, w in weights_of.get(v, {v: 1.0}).items():
                left[leader] = left.get(leader, 0.0) + c * w
        left = {v: c for v, c in left.items() if abs(c) > NEGLIGIBLE_WEIGHT}
        if not left:
            continue
        enough = MIN_PIVOT_RATIO * max(map(abs, left.values()))
        chosen = min(
            (v for v, c in left.items() if abs(c) >= enough), key=lambda v: (len(dependents.get(v, ())), v)
        )
        own = {v: -c / left[chosen] for v, c in left.items() if v != chosen}
        new = {a: _substitute(weights_of[a], chosen, own) for a in dependents.get(chosen, ())} | {chosen: own}
        if any(
            len(w) > MAX_LEADERS or max(map(abs, w.values()), default=0) > MAX_WEIGHT for w in new.values()
        ):
            continue
        weights_of |= new
        dependents.pop(chosen, None)
        for a, leaders in new.items():
            for v in leaders:
                dependents.setdefault(v, set()).add(a)
    return weights_of


def _substitute(weights: dict[int, float], v: int, by: dict[int, float]) -> dict[int, float]:
    """Substitute x_v in the weights of a vertex."""
    result = {leader: w for leader, w in weights.items() if leader != v}
    for leader, w in by.items():
        result[leader] = result.get(leader, 0.0) + weights[v] * w
    return result


def _as_matrix(weights_of: dict[int, dict[int, float]], n: int) -> csr_array:
    entries = [(a, b, w) for a, leaders in weights_of.items() for b, w in leaders.items()]
    rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
    return csr_array((np.array(values, float), (rows, columns)), shape=(n, n))
