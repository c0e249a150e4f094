"""Tied groups: vertices updated together with the dependent vertices of stiff weak constraints.

In a vertex-wise sweep, a pair tied by a spring of stiffness k in a body of stiffness E h moves its common
position by only E h / k of the required step. A joint move of both vertices leaves the spring unchanged, so
the pair converges at the rate of the body. The same holds for a vertex tied to a point between vertices of
another body, if it moves with each of them by its weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supple.kernels import kernel, lanes_of
from supple.ordering.batches import best_width
from supple.ordering.coloring import incidence
from supple.ordering.tie_elimination import NEGLIGIBLE_WEIGHT, eliminate_ties, tie_equations
from supple.terms import Incidence, Term

MAX_MEMBERS = 512
"""Largest number of dependents of a tied group; vertices with more are updated individually only."""


@dataclass(frozen=True)
class TiedGroups:
    """Tied groups in batches, sorted by color.

    Attributes:
        members: (batches, k, lanes) vertex ids, padded with n.
        weight: (batches, k, lanes) fraction of the group's step applied to each member, 0 for padding.
        width: (batches,) number of distinct groups per batch; they fill the first lanes and repeat in the
            others.
        color_start: (colors + 1,) first batch of each color.
        terms: Packed incidences of all members, for each term.
        own: For each term (rows, 1, lanes), vertex of each incidence.
        share: For each term (rows, 2, lanes), factors of an incidence's force and bound.
        element: For each term (rows, lanes), stencil of each incidence, or -1.
    """

    members: np.ndarray
    weight: np.ndarray
    width: np.ndarray
    color_start: np.ndarray
    terms: tuple
    own: tuple
    share: tuple
    element: tuple[np.ndarray, ...]

    @property
    def colors(self) -> int:
        """Number of colors."""
        return len(self.color_start) - 1


def find_tied_groups(terms: tuple[Term, ...], free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the tied groups of the static terms.

    Returns:
        (groups, k) each independent vertex with its dependents, padded with -1, and their weights (groups,
        k), 1 for the independent vertex. Ties of dynamic terms are ignored.
    """
    static_terms = tuple(term for term in terms if term.capacity is None)
    dependents = eliminate_ties(tie_equations(static_terms, free)).weights.tocsc()
    count = np.diff(dependents.indptr)
    leaders = np.flatnonzero((count > 0) & (count <= MAX_MEMBERS))
    count = count[leaders]
    table = np.full((len(leaders), 1 + count.max(initial=-1)), -1, np.int64)
    weight = np.zeros(table.shape)
    group = np.repeat(np.arange(len(leaders)), count)
    rank = np.arange(len(group)) - np.repeat(np.cumsum(count) - count, count)
    entry = dependents.indptr[leaders][group] + rank
    table[group, 1 + rank], weight[group, 1 + rank] = dependents.indices[entry], dependents.data[entry]
    table[:, :1], weight[:, :1] = leaders[:, None], 1
    return table, weight


@kernel
def _greedy_groups(groups, group_start, group_of, neighbor_start, neighbor, color, forbidden):
    """Smallest color not used by any group that contains a neighbor of a member."""
    for g in range(len(groups)):
        for v in groups[g]:
            if v >= 0:
                for i in range(neighbor_start[v], neighbor_start[v + 1]):
                    w = neighbor[i]
                    for j in range(group_start[w], group_start[w + 1]):
                        if color[group_of[j]] >= 0:
                            forbidden[color[group_of[j]]] = g
        c = 0
        while forbidden[c] == g:
            c += 1
        color[g] = c


def _neighbors(terms: tuple[Term, ...], chosen: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(start, ids) vertices that share a stencil with each chosen vertex, including itself."""
    pairs = [np.repeat(chosen[:, None], 2, axis=1)]
    for term in terms:
        touching = term.vertices[np.isin(term.vertices, chosen).any(axis=1)]
        k = touching.shape[1]
        pairs.append(
            np.stack([np.repeat(touching, k, axis=1), np.tile(touching, (1, k))], axis=2).reshape(-1, 2)
        )
    unique = np.unique(np.concatenate(pairs), axis=0)
    return np.searchsorted(unique[:, 0], np.arange(n + 1)), unique[:, 1]


def batch_tied_groups(
    terms: tuple[Term, ...],
    free: np.ndarray,
    dtype: np.dtype,
    lanes: int | None = None,
    concurrent_batches: float | None = None,
) -> TiedGroups | None:
    """Color the tied groups of a model and pack them into batches; groups of one color share no stencil.

    Several lanes may share a group, as in `batch_vertices`.

    Args:
        terms: Terms of the model.
        free: (n,) mask of the free vertices.
        dtype: Floating-point type of the packed data.
        lanes: Lanes per batch; by default those of a CPU pack.
        concurrent_batches: Number of batches processed concurrently by the device.

    Returns:
        Tied groups, or None if the model has none.
    """
    (groups, weights), n, lanes = find_tied_groups(terms, free), len(free), lanes or lanes_of(dtype)
    if not len(groups):
        return None
    group_start, group_of, _ = incidence(groups, n)
    neighbor_start, neighbor = _neighbors(terms, np.unique(groups[groups >= 0]), n)
    color = np.full(len(groups), -1, np.int64)
    forbidden = np.full(len(groups) + 1, -1, np.int64)
    _greedy_groups(groups, group_start, group_of, neighbor_start, neighbor, color, forbidden)

    order = np.lexsort([-(groups >= 0).sum(axis=1), color])  # balances lanes
    sizes = np.bincount(color)
    width = (
        lanes
        if concurrent_batches is None
        else _width(terms, groups, n, int(sizes.max()), lanes, concurrent_batches)
    )
    color_start = np.concatenate([[0], np.cumsum(-(-sizes // width))]).astype(np.int64)
    slot = np.concatenate(
        [width * first + np.arange(size) for first, size in zip(color_start[:-1], sizes, strict=True)]
    )
    table = np.full((color_start[-1] * width, groups.shape[1]), -1, np.int64)
    table[slot] = groups[order]
    moves = np.zeros(table.shape)
    moves[slot] = weights[order]
    parts = lanes // width
    rows = [_group_incidences(term, table, moves, n, width, parts, np.dtype(dtype)) for term in terms]
    term_rows, own, share, element = zip(*rows, strict=True)
    members, weight = (
        np.ascontiguousarray(np.tile(a.reshape(-1, width, groups.shape[1]).transpose(0, 2, 1), parts))
        for a in (np.where(table < 0, n, table).astype(np.int32), moves.astype(dtype))
    )
    widths = np.full(len(members), width, np.int64)
    return TiedGroups(members, weight, widths, color_start, term_rows, own, share, element)


def _width(
    terms: tuple[Term, ...], groups: np.ndarray, n: int, size: int, lanes: int, concurrent_batches: float
) -> int:
    """Number of groups per batch for a color of `size` groups."""
    valences = (
        np.append(np.diff(incidence(term.vertices, n)[0]), 0) for term in terms
    )  # index -1 reads the 0
    return best_width(
        size, [int(valence[groups].sum(axis=1).max()) for valence in valences], lanes, concurrent_batches
    )


def _group_incidences(
    term: Term, table: np.ndarray, moves: np.ndarray, n: int, width: int, parts: int, dtype: np.dtype
) -> tuple:
    """Incidences of the group members with the stencils of a term that a group step changes."""
    first, element, slot = incidence(term.vertices, n)
    group, column = np.nonzero(table >= 0)
    member, move = table[group, column], moves[group, column]
    count = first[member + 1] - first[member]
    group, member, move = (np.repeat(a, count) for a in (group, member, move))
    offset = np.arange(len(group)) - np.repeat(np.cumsum(count) - count, count)
    element, slot = element[first[member] + offset], slot[first[member] + offset]

    relevant, share = _shares(term, group, element, slot, move)
    group, member, element, slot = (a[relevant] for a in (group, member, element, slot))
    rank = np.arange(len(group)) - np.searchsorted(group, group)
    valence = np.bincount(group, minlength=len(table)).reshape(-1, width)
    start = np.concatenate([[0], np.cumsum(-(-valence.max(axis=1) // parts))]).astype(np.int64)
    batch, lane = np.divmod(group, width)
    row, part = np.divmod(rank, parts)
    row, lane = start[batch] + row, part * width + lane
    own = np.full((start[-1], parts * width), n, np.int32)
    own[row, lane] = member
    packed = Incidence(element, slot, row, lane, own, dtype)
    share = packed.pack(share.astype(dtype))
    return term.rows(packed, start), own[:, None, :].copy(), share, packed.elements


def _shares(
    term: Term, group: np.ndarray, element: np.ndarray, slot: np.ndarray, move: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Select the relevant incidences and compute the factors (incidences, 2) of their forces and bounds.

    A stencil of which a group moves corners i by wᵢ has the force Σ wᵢ fᵢ and the bound Σⱼ |wⱼ| Σ |wᵢ| Aᵢ,
    since |Σ wᵢ gᵢ|² ≤ Σⱼ |wⱼ| Σ |wᵢ| |gᵢ|². A translation-invariant stencil contributes nothing if all its
    corners move equally. An energy that depends on Σ c x alone changes by W = Σ wᵢ cᵢ: the factors W/cᵢ and
    (W/cᵢ)² of one corner are exact, and mostly W = 0.
    """
    key = group * max(len(term.vertices), 1) + element
    _, one, inverse, count = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    relations = term.relations()
    if relations is None:
        total = np.bincount(inverse, np.abs(move), len(one))
        moves_equally = np.bincount(inverse, np.abs(move - move[one][inverse]), len(one)) < NEGLIGIBLE_WEIGHT
        translated = term.translatable[element[one]] & (count == term.vertices.shape[1]) & moves_equally
        relevant = ~translated[inverse]
        return relevant, np.column_stack([move, np.abs(move) * total[inverse]])[relevant]
    c = relations.coefficients[element, slot]
    W, most = np.bincount(inverse, move * c, len(one)), np.bincount(inverse, np.abs(move * c), len(one))
    order = np.lexsort([-np.abs(c), inverse])
    relevant = np.zeros(len(key), bool)
    relevant[order[np.searchsorted(inverse[order], np.arange(len(one)))]] = True
    relevant &= (np.abs(W) > NEGLIGIBLE_WEIGHT * most)[inverse]
    ratio = W[inverse][relevant] / c[relevant]
    return relevant, np.column_stack([ratio, ratio**2])
