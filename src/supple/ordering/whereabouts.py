"""Where vertices are that may leave the batches in which they are at home, and where their visits are."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.kernels import kernel
from supple.ordering.batches import VertexBatches
from supple.ordering.moving import place_of_visit


class Whereabouts:
    """at (n, 2): batch and lane of all vertices, -1 for none; home (n, 2): where they are at home; width
    (batches,): how many different vertices batches have in `lanes` lanes; away (k, 7): who is not at home:
    batch, lane and width there, then where they are, and which vertices they are."""

    def __init__(self, home: VertexBatches, width: np.ndarray, n: int) -> None:
        self.width, self.lanes = width, home.own.shape[2]
        at, first = np.nonzero(np.arange(self.lanes) < home.width[:, None])
        v = home.own[at, 0, first]
        places = np.full((n + 1, 2), -1, np.int32)
        places[v, 0], places[v, 1] = at, first
        self.home = places[:n].copy()
        self.at = self.home.copy()
        self.away = np.empty((0, 7), np.int32)
        self._rank = np.zeros(n, np.int32)

    def moves(self, vertices: np.ndarray, batch: np.ndarray, lane: np.ndarray) -> np.ndarray:
        """(k, 7) as `away`, of vertices that go to lanes of batches."""
        there = self.home[vertices]
        columns = there[:, 0], there[:, 1], self.width[there[:, 0]], batch, lane, self.width[batch], vertices
        return np.column_stack(columns).astype(np.int32)

    def go(self, away: np.ndarray) -> None:
        """Let nobody but these be away."""
        self.at[self.away[:, 6]] = self.away[:, :2]
        self.at[away[:, 6]] = away[:, 3:5]
        self.away = away

    def first_rows(self, stencils: np.ndarray) -> np.ndarray:
        """(batches + 1,) first rows of all batches for the visits of all vertices to stencils (m, k)."""
        start = np.zeros(len(self.width) + 1, np.int64)
        _count_rows(stencils, self.at, self.width, self.lanes, self._rank, start)
        return start

    def list_visits(
        self, stencils: np.ndarray, start: np.ndarray, element: np.ndarray, slot: np.ndarray
    ) -> None:
        """Write into element and slot (rows, lanes) who visits which of stencils (m, k) where."""
        element[: start[-1]] = -1
        _list_visits(stencils, self.at, self.width, self._rank, start, element, slot)

    def exchange_own(self, own: np.ndarray, before: np.ndarray, nobody: int) -> np.ndarray:
        """Write into own (batches, 1, lanes) which vertices the batches have, where others were away before;
        (k, 3) batch, lane and vertex where that is another."""
        ends = np.concatenate([before[:, [2, 5]], self.away[:, [2, 5]]])
        places = np.empty((int((self.lanes // ends).sum()), 3), np.int32)
        count = _list_lanes(own, before, places, 0)
        _list_lanes(own, self.away, places, count)
        _put_own(own, before, nobody, True)
        _put_own(own, self.away, nobody, False)
        now = own[places[:, 0], 0, places[:, 1]]
        changed = now != places[:, 2]
        places[:, 2] = now
        return places[changed]


def as_ids(stencils: np.ndarray) -> np.ndarray:
    """Stencils (m, k) as kernels want them."""
    return np.array(stencils, np.int32, order="C")


@kernel
def _count_rows(stencils, at, width, lanes, rank, start):
    """rank (n,) is 0 before and after."""
    for e in range(len(stencils)):
        for k in range(stencils.shape[1]):
            v = stencils[e, k]
            batch = at[v, 0]
            if batch >= 0:
                row = rank[v] // (lanes // width[batch])
                rank[v] += 1
                start[batch + 1] = max(start[batch + 1], row + 1)
    for batch in range(len(width)):
        start[batch + 1] += start[batch]
    for e in range(len(stencils)):
        for k in range(stencils.shape[1]):
            rank[stencils[e, k]] = 0


@kernel
def _list_visits(stencils, at, width, rank, start, element, slot):
    """rank (n,) is 0 before and after."""
    for e in range(len(stencils)):
        for k in range(stencils.shape[1]):
            v = stencils[e, k]
            batch = at[v, 0]
            if batch >= 0:
                row, lane = place_of_visit(rank[v], start[batch], at[v, 1], width[batch], element.shape[1])
                rank[v] += 1
                element[row, lane] = e
                slot[row, lane] = k
    for e in range(len(stencils)):
        for k in range(stencils.shape[1]):
            rank[stencils[e, k]] = 0


@kernel
def _list_lanes(own, away, places, count):
    """All lanes that vertices have at home and away, and who is there; returns how many are listed then."""
    for k in range(len(away)):
        for end in range(0, 6, 3):
            batch = away[k, end]
            for lane in range(away[k, end + 1], own.shape[2], away[k, end + 2]):
                places[count, 0] = batch
                places[count, 1] = lane
                places[count, 2] = own[batch, 0, lane]
                count += 1
    return count


@kernel
def _put_own(own, away, nobody, home):
    """Vertices are at home, and nobody where they were, or the other way."""
    for k in range(len(away)):
        for end in range(0, 6, 3):
            v = away[k, 6] if (end == 0) == home else nobody
            for lane in range(away[k, end + 1], own.shape[2], away[k, end + 2]):
                own[away[k, end], 0, lane] = v


@kernel
def list_by_colour(colour, start, listed):
    """Batches by colour, those of colour c from start[c] on; start has room for more colours."""
    start[:] = 0
    for c in colour:
        start[c + 1] += 1
    for c in range(1, len(start)):
        start[c] += start[c - 1]
    for batch in range(len(colour)):
        listed[start[colour[batch]]] = batch
        start[colour[batch]] += 1
    for c in range(len(start) - 1, 0, -1):
        start[c] = start[c - 1]
    start[0] = 0


def visit_moves(away: np.ndarray, start: np.ndarray, valence: np.ndarray) -> Any:
    """(k, 7) for `swap_visits`: how visits of vertices that have so many, (n,), go to where these are away,
    with first rows `start` of batches."""
    moves = away.copy()
    moves[:, 0], moves[:, 3], moves[:, 6] = start[away[:, 0]], start[away[:, 3]], valence[away[:, 6]]
    return moves
