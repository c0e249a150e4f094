"""Carrying: which vertices must follow which others, lest what ties them be stretched.

A weak constraint of large stiffness nearly is an equation Σ c x = const between its vertices. From each such
equation one vertex is expressed by the others, x_a = Σ w_b x_b + const; moving a vertex b by δ while every
such a follows by w_b δ then changes none of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array

from supple.terms import Term

NEGLIGIBLE = 1e-9
"""Weights below this are none, and constraints whose remaining ones are follow from others."""

NEARLY_LARGEST = 0.9
"""Which vertices may be expressed by the others: those whose coefficient is this part of the largest, so that
weights do not grow where one constraint after the other is solved."""

MOST_LEADERS, LARGEST_WEIGHT = 24, 8.0
"""A constraint is left alone if some vertex would have to follow more others, or farther than they go."""


class Equations(NamedTuple):
    """C (m, n) with Σ C x = const for each tie between n vertices, and how stiff each is (m,) [N/m]."""

    coefficients: csr_array
    stiffness: np.ndarray


class Carrying(NamedTuple):
    """weights (n, n): vertex a follows vertex b by weights[a, b]; follows (n,): which vertices are expressed
    by others, or by nothing but a constant. None of those leads."""

    weights: csr_array
    follows: np.ndarray


def equations(terms: tuple[Term, ...], free: np.ndarray) -> Equations:
    """The ties of all terms between free vertices, as free (n,) tells; what is pinned is constant."""
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
    """Who follows whom. Stiffer ties come first where several share vertices; one that the others imply
    expresses no further vertex."""
    C = ties.coefficients
    n = C.shape[1]
    row = np.repeat(np.arange(C.shape[0]), np.diff(C.indptr))
    largest = np.zeros(C.shape[0])
    np.maximum.at(largest, row, np.abs(C.data))
    fit = np.abs(C.data) >= NEARLY_LARGEST * largest[row]
    fit &= np.bincount(C.indices, minlength=n)[C.indices] == 1  # no other tie has a say about it
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
    """Gauss' elimination: which weights w_b every vertex a gets in x_a = Σ w_b x_b, from ties that share
    vertices."""
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
    """Weights with x_v expressed by others."""
    result = {leader: w for leader, w in weights.items() if leader != v}
    for leader, w in by.items():
        result[leader] = result.get(leader, 0.0) + weights[v] * w
    return result


def _as_matrix(follows: dict[int, dict[int, float]], n: int) -> csr_array:
    entries = [(a, b, w) for a, leaders in follows.items() for b, w in leaders.items()]
    rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
    return csr_array((np.array(values, float), (rows, columns)), shape=(n, n))
