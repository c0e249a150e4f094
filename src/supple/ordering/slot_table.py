"""Slot table: current batch and lane of vertices that may leave their default slots."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.kernels import kernel, physics
from supple.ordering.batch_moves import place_of_visit
from supple.ordering.batches import VertexBatches


class Whereabouts:
    """Current and default slots of all vertices.

    Attributes:
        at: (n, 2) current batch and lane, -1 for none.
        home: (n, 2) default batch and lane, -1 for none.
        width: (batches,) number of distinct vertices in the `lanes` lanes of each batch.
        away: (k, 7) vertices in overflow slots: batch, lane and width of the default slot, then of the
            current slot, then the vertex.
    """

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
        """Moves of vertices to new slots, (k, 7) in the format of `away`."""
        there = self.home[vertices]
        columns = there[:, 0], there[:, 1], self.width[there[:, 0]], batch, lane, self.width[batch], vertices
        return np.column_stack(columns).astype(np.int32)

    def go(self, away: np.ndarray) -> None:
        """Set the vertices in overflow slots; all others return to their default slots."""
        self.at[self.away[:, 6]] = self.away[:, :2]
        self.at[away[:, 6]] = away[:, 3:5]
        self.away = away

    def visits(self, stencils: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Locate the incidences of all vertices with stencils (m, k).

        Returns:
            (batches + 1,) first row of each batch, and (m, k, 2) row within the batch, -1 for none, and lane.
        """
        start, places = np.zeros(len(self.width) + 1, np.int64), np.empty((*stencils.shape, 2), np.int32)
        _find_visits(stencils, self.at, self.width, self.lanes, self._rank, start, places)
        return start, places

    def with_visits(self, stencils: list[np.ndarray], more_than: int, but: np.ndarray) -> np.ndarray:
        """Free vertices with more than `more_than` incidences with stencils (m, k), except for the vertices
        `but`."""
        found, count = np.empty(sum(ids.size for ids in stencils), np.int64), 0
        self._rank[but] = -len(found) - 1
        for ids in stencils:
            count = _find_busy(ids, self.home, more_than, self._rank, found, count)
        for ids in (*stencils, but):
            self._rank[ids] = 0
        return found[:count]

    def list_visits(
        self,
        stencils: np.ndarray,
        start: np.ndarray,
        places: np.ndarray,
        element: np.ndarray,
        slot: np.ndarray,
    ) -> None:
        """Write stencil and corner of each incidence into element and slot (rows, lanes).

        Args:
            stencils: (m, k) vertex ids.
            start, places: Result of `visits`.
            element, slot: (rows, lanes) outputs.
        """
        element[: start[-1]] = -1
        _list_visits(stencils, self.at, start, places, element, slot)

    def exchange_own(self, own: np.ndarray, before: np.ndarray, nobody: int) -> np.ndarray:
        """Update the vertex ids `own` (batches, 1, lanes) after moves.

        Args:
            own: Vertex ids to update.
            before: Previous `away`.
            nobody: Vertex id of empty slots.

        Returns:
            (k, 3) batch, lane and vertex of each changed entry.
        """
        lanes = self.lanes // np.concatenate([before[:, [2, 5]], self.away[:, [2, 5]]])
        places = np.empty((int(lanes.sum()), 3), np.int32)
        return places[: _exchange_own(own, before, self.away, nobody, places)].copy()


def as_ids(stencils: np.ndarray) -> np.ndarray:
    """Stencils (m, k) as contiguous int32."""
    return np.array(stencils, np.int32, order="C")


@physics
def _fills_up(stencils, e, k):
    """True if a corner repeats the first one as padding."""
    return k > 0 and stencils[e, k] == stencils[e, 0]


@kernel
def _find_busy(stencils, home, more_than, rank, found, count):
    """Count incidences in rank (n,) and append vertices that exceed the limit; returns the length of the
    list."""
    for e in range(len(stencils)):
        for k in range(stencils.shape[1]):
            v = stencils[e, k]
            if home[v, 0] >= 0 and not _fills_up(stencils, e, k):
                rank[v] += 1
                if rank[v] == more_than + 1:
                    found[count] = v
                    count += 1
    return count


@kernel
def _find_visits(stencils, at, width, lanes, rank, start, places):
    """Locate incidences; `rank` (n,) is 0 before and after."""
    for e in range(len(stencils)):
        for k in range(stencils.shape[1]):
            v = stencils[e, k]
            batch, places[e, k, 0] = at[v, 0], -1
            if batch >= 0 and not _fills_up(stencils, e, k):
                row, lane = place_of_visit(rank[v], 0, at[v, 1], width[batch], lanes)
                rank[v] += 1
                places[e, k, 0], places[e, k, 1] = row, lane
                start[batch + 1] = max(start[batch + 1], row + 1)
    for batch in range(len(width)):
        start[batch + 1] += start[batch]
    for e in range(len(stencils)):
        for k in range(stencils.shape[1]):
            rank[stencils[e, k]] = 0


@kernel
def _list_visits(stencils, at, start, places, element, slot):
    for e in range(len(stencils)):
        for k in range(stencils.shape[1]):
            if places[e, k, 0] >= 0:
                row = start[at[stencils[e, k], 0]] + places[e, k, 0]
                element[row, places[e, k, 1]] = e
                slot[row, places[e, k, 1]] = k


@physics
def _list_lanes(own, away, places, count):
    """Append default and current lanes of moved vertices, with the vertex in them; returns the length of the
    list."""
    for k in range(len(away)):
        for end in range(0, 6, 3):
            for lane in range(away[k, end + 1], own.shape[2], away[k, end + 2]):
                places[count, 0], places[count, 1] = away[k, end], lane
                places[count, 2] = own[away[k, end], 0, lane]
                count += 1
    return count


@physics
def _put_own(own, away, nobody, home):
    """Swap vertices between their default slots and overflow slots; vacated slots get the id `nobody`."""
    for k in range(len(away)):
        for end in range(0, 6, 3):
            v = away[k, 6] if (end == 0) == home else nobody
            for lane in range(away[k, end + 1], own.shape[2], away[k, end + 2]):
                own[away[k, end], 0, lane] = v


@kernel
def _exchange_own(own, before, away, nobody, places):
    """Move vertices to their new slots; returns the number of changed entries."""
    listed, count = _list_lanes(own, away, places, _list_lanes(own, before, places, 0)), 0
    _put_own(own, before, nobody, True)
    _put_own(own, away, nobody, False)
    for k in range(listed):
        batch, lane = places[k, 0], places[k, 1]
        if own[batch, 0, lane] != places[k, 2]:
            places[count, 0], places[count, 1], places[count, 2] = batch, lane, own[batch, 0, lane]
            count += 1
    return count


@kernel
def list_by_color(color, start, listed):
    """Sort batches by color into `listed`; the batches of color c begin at start[c]. `start` may have spare
    entries."""
    start[:] = 0
    for c in color:
        start[c + 1] += 1
    for c in range(1, len(start)):
        start[c] += start[c - 1]
    for batch in range(len(color)):
        listed[start[color[batch]]] = batch
        start[color[batch]] += 1
    for c in range(len(start) - 1, 0, -1):
        start[c] = start[c - 1]
    start[0] = 0


def visit_moves(away: np.ndarray, start: np.ndarray, valence: np.ndarray) -> Any:
    """Moves (k, 7) of the incidences for `swap_visits`.

    Args:
        away: Vertices in overflow slots.
        start: First row of each batch.
        valence: (n,) number of incidences of each vertex.
    """
    moves = away.copy()
    moves[:, 0], moves[:, 3], moves[:, 6] = start[away[:, 0]], start[away[:, 3]], valence[away[:, 6]]
    return moves
