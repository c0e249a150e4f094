"""Links: vertices that a stiff weak constraint ties together, which must be able to move as one.

Vertex by vertex, a pair tied by a spring of stiffness k inside a body of stiffness E h can shift its common
position by only E h / k of what is needed per sweep. Moving both by the same step leaves the spring alone,
so the pair follows the body at the body's own pace.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supple.kernels import kernel, lanes_of
from supple.ordering.batches import best_width
from supple.ordering.colouring import incidence
from supple.terms import Term, Visits


@dataclass(frozen=True)
class Links:
    """Groups of vertices by colour, in batches. members (batches, k, lanes): ids, padded with n; width
    (batches,): the first that many lanes are different groups, which the others repeat; colour_start
    (colours + 1,): first batch of each colour; terms: the visits of all members, row by row; own: for each
    term (rows, 1, lanes) whose visit it is; share: for each term (rows, 1, lanes) how many members the
    visited stencil has, which bounds the Hessian of their common translation; element: for each term
    (rows, lanes) which stencil is where, or -1."""

    members: np.ndarray
    width: np.ndarray
    colour_start: np.ndarray
    terms: tuple
    own: tuple
    share: tuple
    element: tuple[np.ndarray, ...]

    @property
    def colours(self) -> int:
        return len(self.colour_start) - 1


def linked_vertices(terms: tuple[Term, ...], free: np.ndarray) -> np.ndarray:
    """(groups, k) free vertices of everything that ties at least two and lets them move together (none of
    them pinned, no fixed point); unused places hold -1."""
    groups = sorted({group for term in terms for group in term.links(free) if len(group) > 1})
    width = max((len(g) for g in groups), default=0)
    table = np.full((len(groups), width), -1, np.int64)
    for row, group in enumerate(groups):
        table[row, : len(group)] = group
    return table


@kernel
def _greedy_groups(groups, group_start, group_of, neighbour_start, neighbour, colour, forbidden):
    """Least colour that no group touching a neighbour of a member has."""
    for g in range(len(groups)):
        for v in groups[g]:
            if v >= 0:
                for i in range(neighbour_start[v], neighbour_start[v + 1]):
                    w = neighbour[i]
                    for j in range(group_start[w], group_start[w + 1]):
                        if colour[group_of[j]] >= 0:
                            forbidden[colour[group_of[j]]] = g
        c = 0
        while forbidden[c] == g:
            c += 1
        colour[g] = c


def _neighbours(terms: tuple[Term, ...], chosen: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(start, ids): vertices that share a stencil with each chosen vertex, itself included."""
    pairs = [np.repeat(chosen[:, None], 2, axis=1)]
    for term in terms:
        touching = term.vertices[np.isin(term.vertices, chosen).any(axis=1)]
        k = touching.shape[1]
        pairs.append(
            np.stack([np.repeat(touching, k, axis=1), np.tile(touching, (1, k))], axis=2).reshape(-1, 2)
        )
    unique = np.unique(np.concatenate(pairs), axis=0)
    return np.searchsorted(unique[:, 0], np.arange(n + 1)), unique[:, 1]


def batch_links(
    terms: tuple[Term, ...],
    free: np.ndarray,
    dtype: np.dtype,
    lanes: int | None = None,
    at_once: float | None = None,
) -> Links | None:
    """The links of a model by colour: groups of one colour share no stencil. None when there are none. Groups
    may have several lanes, as vertices in `batch_vertices`."""
    groups, n, lanes = linked_vertices(terms, free), len(free), lanes or lanes_of(dtype)
    if not len(groups):
        return None
    group_start, group_of, _ = incidence(groups, n)
    neighbour_start, neighbour = _neighbours(terms, np.unique(groups[groups >= 0]), n)
    colour = np.full(len(groups), -1, np.int64)
    forbidden = np.full(len(groups) + 1, -1, np.int64)
    _greedy_groups(groups, group_start, group_of, neighbour_start, neighbour, colour, forbidden)

    order = np.argsort(colour, kind="stable")
    sizes = np.bincount(colour)
    width = lanes if at_once is None else _width(terms, groups, n, int(sizes.max()), lanes, at_once)
    colour_start = np.concatenate([[0], np.cumsum(-(-sizes // width))]).astype(np.int64)
    place = np.concatenate(
        [width * first + np.arange(size) for first, size in zip(colour_start[:-1], sizes, strict=True)]
    )
    table = np.full((colour_start[-1] * width, groups.shape[1]), -1, np.int64)
    table[place] = groups[order]
    members = np.where(table < 0, n, table).reshape(-1, width, groups.shape[1]).transpose(0, 2, 1)
    members = np.tile(members, lanes // width)
    rows = [_rows_of_links(term, table, n, width, lanes // width, np.dtype(dtype)) for term in terms]
    term_rows, own, share, element = zip(*rows, strict=True)
    widths = np.full(len(members), width, np.int64)
    return Links(
        np.ascontiguousarray(members, np.int32), widths, colour_start, term_rows, own, share, element
    )


def _width(terms: tuple[Term, ...], groups: np.ndarray, n: int, size: int, lanes: int, at_once: float) -> int:
    """How many groups a batch should have where a colour has `size` of them."""
    valences = (np.append(np.diff(incidence(term.vertices, n)[0]), 0) for term in terms)  # -1 finds the 0
    return best_width(size, [int(valence[groups].sum(axis=1).max()) for valence in valences], lanes, at_once)


def _rows_of_links(term: Term, table: np.ndarray, n: int, width: int, parts: int, dtype: np.dtype) -> tuple:
    """The visits of every group's members to a term's stencils, those left out that a common translation
    does not deform because the whole stencil moves."""
    first, element, slot = incidence(term.vertices, n)
    group, place = np.nonzero(table >= 0)
    member = table[group, place]
    count = first[member + 1] - first[member]
    group, member = np.repeat(group, count), np.repeat(member, count)
    offset = np.arange(len(group)) - np.repeat(np.cumsum(count) - count, count)
    element, slot = element[first[member] + offset], slot[first[member] + offset]

    key = group * len(term.vertices) + element
    _, inverse, shared = np.unique(key, return_inverse=True, return_counts=True)
    share = shared[inverse]
    kept = ~(term.translatable[element] & (share == term.vertices.shape[1]))
    group, member, element, slot, share = (a[kept] for a in (group, member, element, slot, share))

    rank = np.arange(len(group)) - np.searchsorted(group, group)
    valence = np.bincount(group, minlength=len(table)).reshape(-1, width)
    start = np.concatenate([[0], np.cumsum(-(-valence.max(axis=1) // parts))]).astype(np.int64)
    batch, lane = np.divmod(group, width)
    row, part = np.divmod(rank, parts)
    row, lane = start[batch] + row, part * width + lane
    own = np.full((start[-1], parts * width), n, np.int32)
    own[row, lane] = member
    visits = Visits(element, slot, row, lane, own, dtype)
    share = visits.place(share[:, None].astype(dtype))
    return term.rows(visits, start), own[:, None, :].copy(), share, visits.elements
