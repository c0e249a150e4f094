"""Batches of vertices where stencils of some terms come and go.

Vertices are batched by the stencils that last. One that must take another colour, since a new stencil ties
it to one of its own, leaves its home, which then stands for no vertex, and goes to a batch at the end with
all its visits. Terms with a capacity have room for rows beforehand, and rows are written anew as they change.
What does not fit is for the caller to lay out again with more room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.kernels import Runner
from supple.ordering.batches import VertexBatches, batch_vertices
from supple.ordering.colours import ListedColours
from supple.ordering.recolouring import lasting_colours, recolour
from supple.ordering.rows import empty_rows, map_rows, overwrite, row_arrays
from supple.terms import Term, Visits

MORE_COLOURS = 16
"""Room for colours beside those of the stencils that last."""

ROWS_AT_LEAST = 4096
"""Room for rows of visits, if the capacity is large enough to fill them."""

Moves = np.ndarray
"""(k, 4): from which row and lane to which row and lane visits go."""


def changes(term: Term) -> bool:
    """Whether the stencils of a term may be exchanged for others."""
    return term.capacity is not None


@dataclass(frozen=True)
class Places:
    """Where vertices (n,) are: their batch, -1 for none, and the first of their lanes; width (batches,) of
    the batches, each of which has `lanes` lanes."""

    batch: np.ndarray
    lane: np.ndarray
    width: np.ndarray
    lanes: int

    def of_visit(self, v: np.ndarray, rank: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Row and lane of the rank-th visits of vertices v, where batches begin at rows `start`."""
        batch = self.batch[v]
        width = self.width[batch]
        row, part = np.divmod(rank, self.lanes // width)
        return start[batch] + row, part * width + self.lane[v]

    def all_lanes(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(k, batch, lane) of all lanes that stand for the k-th of vertices v."""
        batch = self.batch[v]
        k, lane = np.nonzero(np.arange(self.lanes) % self.width[batch][:, None] == self.lane[v][:, None])
        return k, batch[k], lane


@dataclass(frozen=True)
class Plan:
    """Which vertices are not at home, where all are, which every batch has, the colours of the batches at the
    end, the number of colours, the first rows of batches for all terms, and the visits of those that
    change."""

    moved: np.ndarray
    places: Places
    own: np.ndarray
    colours: np.ndarray
    count: int
    starts: list[np.ndarray]
    visits: list[Visits | None]


@dataclass(frozen=True)
class Changes:
    """What has become of batches: moves of visits for each of the terms that last, to be done one group after
    the other; which arrays were written, up to which row; and which batches have other vertices."""

    moves: list[list[Moves]]
    written: list[tuple[np.ndarray, int]]
    batches: np.ndarray


class ChangingBatches:
    """batches: with room for vertices that change their colour, and for rows; colours: those that there are
    now; moved: the vertices that are not at home; growth: how much more room than what is thought to be
    enough."""

    def __init__(
        self,
        terms: Sequence[Term],
        free: np.ndarray,
        dtype: np.dtype,
        lanes: int,
        at_once: float | None = None,
        growth: int = 1,
    ) -> None:
        self.growth = growth
        self._dtype, self._lanes, self._n = np.dtype(dtype), lanes, len(free)
        lasting = tuple(term for term in terms if not changes(term))
        changing = [term for term in terms if changes(term)]
        home = batch_vertices(lasting, free, dtype, lanes, at_once)
        self._first = len(home.own)
        narrow = lanes if at_once is None else int(home.width.min(initial=lanes))
        expected = min(int(free.sum()), sum(_visits(term) for term in changing) // 4)
        spare = growth * (1 + home.colours + -(-expected // narrow))
        self._at_home = np.concatenate([home.own, np.full((spare, 1, lanes), self._n, np.int32)])
        self.own = self._at_home.copy()
        width = np.concatenate([home.width, np.full(spare, narrow, np.int64)])
        self._home = _places(home, width, self._n)
        self._batch_colour = np.repeat(np.arange(home.colours), np.diff(home.colour_start))
        colour = np.where(self._home.batch >= 0, np.append(self._batch_colour, -1)[self._home.batch], -1)
        self.lasting = lasting_colours(colour.astype(np.int32), [term.vertices for term in lasting])
        self._valences = [np.bincount(t.vertices.ravel(), minlength=self._n)[: self._n] for t in lasting]
        self._away = [np.empty((0, 4), np.int32) for _ in lasting]
        self.moved = np.empty(0, np.int64)
        room = home.colours + growth * MORE_COLOURS + 1
        self.colours = ListedColours(0, np.zeros(room, np.int64), np.zeros(len(self.own), np.int64))
        known = zip(home.terms, home.element, strict=True)
        pairs = [self._empty(t, spare) if changes(t) else self._roomy(t, *next(known), spare) for t in terms]
        self.batches = VertexBatches(self.own, width, home.colour_start, *zip(*pairs, strict=True))

    def _roomy(self, term: Term, rows: Any, element: np.ndarray, spare: int) -> tuple[Any, np.ndarray]:
        """Rows of a term that lasts, and which elements they hold, with room for those of vertices that move;
        one more stays empty."""
        parts = self._lanes // int(self._home.width[-1])
        most = int(np.bincount(term.vertices.ravel()).max(initial=0))
        more = empty_rows(term, spare * -(-most // parts) + 1, self._lanes, self._n, self._dtype)
        start = np.concatenate([rows.start, np.full(spare, rows.start[-1])])
        roomy = map_rows(lambda a, b: np.concatenate([a, b]), rows, more)._replace(start=start)
        nothing = np.full((len(row_arrays(more)[0]), self._lanes), -1, np.int32)
        return roomy, np.concatenate([element, nothing])

    def _empty(self, term: Term, spare: int) -> tuple[Any, np.ndarray]:
        """Room for the rows of a term that changes, and for which elements they hold."""
        visits = _visits(term)
        count = min(visits, self.growth * max(ROWS_AT_LEAST, visits // 4))
        rows = empty_rows(term, count, self._lanes, self._n, self._dtype)
        rows = rows._replace(start=np.zeros(self._first + spare + 1, np.int64))
        return rows, np.full((count, self._lanes), -1, np.int32)

    def take(self, terms: Sequence[Term], device: Runner) -> Changes | None:
        """Go over to terms of which those that change have other stencils. None where there is not enough
        room, and then nothing has changed. device: who finds the colours."""
        plan = self._plan(terms, device)
        if plan is None:
            return None
        batches = np.flatnonzero((self.own != plan.own).any(axis=(1, 2)))
        self.own[:] = plan.own
        written = [(self.own, len(self.own)), *self._put_colours(plan)]
        moves, lasting = [], 0
        known = zip(terms, self.batches.terms, self.batches.element, plan.starts, plan.visits, strict=True)
        for term, rows, element, start, visits in known:
            if visits is not None:
                written += overwrite(rows, term.rows(visits, start))
                element[: len(visits.own)] = visits.elements
            else:
                moves.append(self._moves_of(lasting, plan, start, len(element) - 1))
                for row, lane, new_row, new_lane in (group.T for group in moves[-1]):
                    element[new_row, new_lane] = element[row, lane]
                lasting += 1
            rows.start[:] = start
            written.append((rows.start, len(start)))
        self.moved = plan.moved
        return Changes(moves, written, batches)

    def _plan(self, terms: Sequence[Term], device: Runner) -> Plan | None:
        lasting = self.lasting.colour
        colour = recolour(self.lasting, [term.vertices for term in terms if changes(term)], device)
        moved = np.flatnonzero(colour != lasting)
        moved = moved[np.lexsort([moved, *(-valence[moved] for valence in self._valences), colour[moved]])]
        places, colours = self._place(moved, colour[moved])
        count = int(colour.max(initial=-1)) + 1
        if places is None or count >= len(self.colours.start):
            return None
        own = self._own(moved, places)
        starts: list[np.ndarray] = []
        visits: list[Visits | None] = []
        valences = iter(self._valences)
        for term, rows in zip(terms, self.batches.terms, strict=True):
            room = len(row_arrays(rows)[0])  # of rows
            if changes(term):
                chosen, start = self._visits(term, places, own)
            else:
                chosen, start, room = None, self._starts(rows.start, places, moved, next(valences)), room - 1
            if start[-1] > room:
                return None
            visits.append(chosen)
            starts.append(start)
        return Plan(moved, places, own, colours, count, starts, visits)

    def _place(self, moved: np.ndarray, colour: np.ndarray) -> tuple[Places | None, np.ndarray]:
        """Where all vertices are when those that moved, sorted by colour, are in the batches at the end; and
        the colours of these batches. None where there are not enough of them."""
        home, first = self._home, self._first
        if not len(moved):
            return home, np.empty(0, np.int64)
        narrow = int(home.width[-1])
        used, begin, size = np.unique(colour, return_index=True, return_counts=True)
        batches = -(-size // narrow)
        if batches.sum() > len(home.width) - first:
            return None, used
        rank = np.arange(len(moved)) - np.repeat(begin, size)
        at = np.repeat(first + np.cumsum(batches) - batches, size)
        batch, lane = home.batch.copy(), home.lane.copy()
        batch[moved], lane[moved] = at + rank // narrow, rank % narrow
        return Places(batch, lane, home.width, self._lanes), np.repeat(used, batches)

    def _starts(
        self, start: np.ndarray, places: Places, moved: np.ndarray, valence: np.ndarray
    ) -> np.ndarray:
        """First rows of all batches of a term that lasts."""
        rows = np.zeros(len(start) - 1 - self._first, np.int64)
        batch = places.batch[moved]
        np.maximum.at(rows, batch - self._first, -(-valence[moved] // (self._lanes // places.width[batch])))
        return np.concatenate([start[: self._first + 1], start[self._first] + np.cumsum(rows)])

    def _visits(self, term: Term, places: Places, own: np.ndarray) -> tuple[Visits, np.ndarray]:
        """The visits of all vertices to a term's stencils, and the first rows of all batches."""
        k = term.vertices.shape[1]
        ids = term.vertices.ravel()
        order = np.argsort(ids, kind="stable")
        order = order[places.batch[ids[order]] >= 0]
        v = ids[order]
        rank = np.arange(len(v)) - np.searchsorted(v, v)
        nowhere = np.zeros(len(places.width), np.int64)
        row, lane = places.of_visit(v, rank, nowhere)
        count = nowhere.copy()
        np.maximum.at(count, places.batch[v], row + 1)
        start = np.concatenate([[0], np.cumsum(count)])
        row = start[places.batch[v]] + row
        of_row = np.repeat(own[:, 0], count, axis=0)
        return Visits(order // k, order % k, row, lane, of_row, self._dtype), start

    def _own(self, moved: np.ndarray, places: Places) -> np.ndarray:
        """(batches, 1, lanes) which vertices the batches have."""
        own = self._at_home.copy()
        _, batch, lane = self._home.all_lanes(moved)
        own[batch, 0, lane] = self._n
        k, batch, lane = places.all_lanes(moved)
        own[batch, 0, lane] = moved[k]
        return own

    def _put_colours(self, plan: Plan) -> list[tuple[np.ndarray, int]]:
        colour = np.concatenate([self._batch_colour, plan.colours])
        order = np.argsort(colour, kind="stable")
        _, start, listed = self.colours
        listed[: len(order)] = order
        start[:] = np.searchsorted(colour[order], np.arange(len(start)))
        self.colours = ListedColours(plan.count, start, listed)
        return [(start, len(start)), (listed, len(listed))]

    def _moves_of(self, lasting: int, plan: Plan, start: np.ndarray, empty: int) -> list[Moves]:
        """How the visits of a term that lasts follow the vertices: those that are not at home go there and
        leave an empty row behind, then others go where they belong."""
        moved, valence = plan.moved, self._valences[lasting][plan.moved]
        v = np.repeat(moved, valence)
        rank = np.arange(len(v)) - np.repeat(np.cumsum(valence) - valence, valence)
        home, there = self._home.of_visit(v, rank, start), plan.places.of_visit(v, rank, start)
        before, away = self._away[lasting], np.stack([*home, *there], axis=1).astype(np.int32)
        self._away[lasting] = away
        if np.array_equal(before, away):
            return []

        def emptied(places: np.ndarray) -> np.ndarray:
            return np.concatenate([np.full_like(places, [empty, 0]), places], axis=1)

        back = before[:, [2, 3, 0, 1]]
        return [back, emptied(before[:, 2:]), away, emptied(away[:, :2])]


def _visits(term: Any) -> int:
    """How many visits a term that changes may have."""
    return int(term.capacity * term.vertices.shape[1])


def _places(home: VertexBatches, width: np.ndarray, n: int) -> Places:
    """Where vertices are that are all at home."""
    lanes = home.own.shape[2]
    at, first = np.nonzero(np.arange(lanes) < home.width[:, None])
    v = home.own[at, 0, first]
    batch, lane = np.full(n + 1, -1), np.full(n + 1, -1)
    batch[v], lane[v] = at, first
    return Places(batch[:n], lane[:n], width, lanes)
