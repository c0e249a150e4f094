"""Slot table: current batch and lane of vertices that may leave their default slots."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.kernels import device_function, kernel
from supple.ordering.batch_moves import locate_incidence
from supple.ordering.batches import VertexBatches


class SlotTable:
    """Current and default slots of all vertices.

    Attributes:
        current_slot: (n, 2) current batch and lane, -1 for none.
        default_slot: (n, 2) default batch and lane, -1 for none.
        width: (batches,) number of distinct vertices in the `lanes` lanes of each batch.
        overflow: (k, 7) vertices in overflow slots: batch, lane and width of the default slot, then of the
            current slot, then the vertex.
    """

    def __init__(self, batches: VertexBatches, width: np.ndarray, n: int) -> None:
        self.width, self.lanes = width, batches.own.shape[2]
        batch, first = np.nonzero(np.arange(self.lanes) < batches.width[:, None])
        v = batches.own[batch, 0, first]
        default_slot = np.full((n + 1, 2), -1, np.int32)
        default_slot[v, 0], default_slot[v, 1] = batch, first
        self.default_slot = default_slot[:n].copy()
        self.current_slot = self.default_slot.copy()
        self.overflow = np.empty((0, 7), np.int32)
        self._rank = np.zeros(n, np.int32)

    def moves(self, vertices: np.ndarray, batch: np.ndarray, lane: np.ndarray) -> np.ndarray:
        """Moves of vertices to new slots, (k, 7) in the format of `overflow`."""
        default_slot = self.default_slot[vertices]
        columns = (
            default_slot[:, 0],
            default_slot[:, 1],
            self.width[default_slot[:, 0]],
            batch,
            lane,
            self.width[batch],
            vertices,
        )
        return np.column_stack(columns).astype(np.int32)

    def set_overflow(self, overflow: np.ndarray) -> None:
        """Set the vertices in overflow slots; all others return to their default slots."""
        self.current_slot[self.overflow[:, 6]] = self.overflow[:, :2]
        self.current_slot[overflow[:, 6]] = overflow[:, 3:5]
        self.overflow = overflow

    def locate_incidences(self, stencils: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Locate the incidences of all vertices with stencils (m, k).

        Returns:
            (batches + 1,) first row of each batch, and (m, k, 2) row within the batch, -1 for none, and lane.
        """
        start, locations = np.zeros(len(self.width) + 1, np.int64), np.empty((*stencils.shape, 2), np.int32)
        _locate_incidences(stencils, self.current_slot, self.width, self.lanes, self._rank, start, locations)
        return start, locations

    def busy_vertices(self, stencils: list[np.ndarray], more_than: int, but: np.ndarray) -> np.ndarray:
        """Free vertices with more than `more_than` incidences with stencils (m, k), except for the vertices
        `but`."""
        busy, count = np.empty(sum(ids.size for ids in stencils), np.int64), 0
        self._rank[but] = -len(busy) - 1
        for ids in stencils:
            count = _find_busy(ids, self.default_slot, more_than, self._rank, busy, count)
        for ids in (*stencils, but):
            self._rank[ids] = 0
        return busy[:count]

    def list_incidences(
        self,
        stencils: np.ndarray,
        start: np.ndarray,
        locations: np.ndarray,
        element: np.ndarray,
        slot: np.ndarray,
    ) -> None:
        """Write stencil and corner of each incidence into element and slot (rows, lanes).

        Args:
            stencils: (m, k) vertex ids.
            start, locations: Result of `locate_incidences`.
            element, slot: (rows, lanes) outputs.
        """
        element[: start[-1]] = -1
        _list_incidences(stencils, self.current_slot, start, locations, element, slot)

    def update_vertex_ids(self, own: np.ndarray, previous_overflow: np.ndarray, empty_id: int) -> np.ndarray:
        """Update the vertex ids `own` (batches, 1, lanes) after moves.

        Args:
            own: Vertex ids to update.
            previous_overflow: Previous `overflow`.
            empty_id: Vertex id of empty slots.

        Returns:
            (k, 3) batch, lane and vertex of each changed entry.
        """
        lanes = self.lanes // np.concatenate([previous_overflow[:, [2, 5]], self.overflow[:, [2, 5]]])
        changed = np.empty((int(lanes.sum()), 3), np.int32)
        return changed[: _update_vertex_ids(own, previous_overflow, self.overflow, empty_id, changed)].copy()


def as_ids(stencils: np.ndarray) -> np.ndarray:
    """Stencils (m, k) as contiguous int32."""
    return np.array(stencils, np.int32, order="C")


@device_function
def _is_padding(stencils, e, k):
    """True if a corner repeats the first one as padding."""
    return k > 0 and stencils[e, k] == stencils[e, 0]


@kernel
def _find_busy(stencils, default_slot, more_than, rank, busy, count):
    """Count incidences in rank (n,) and append vertices that exceed the limit; returns the length of the
    list."""
    for e in range(len(stencils)):
        for k in range(stencils.shape[1]):
            v = stencils[e, k]
            if default_slot[v, 0] >= 0 and not _is_padding(stencils, e, k):
                rank[v] += 1
                if rank[v] == more_than + 1:
                    busy[count] = v
                    count += 1
    return count


@kernel
def _locate_incidences(stencils, slot_of, width, lanes, rank, start, locations):
    """Locate incidences; `rank` (n,) is 0 before and after."""
    for e in range(len(stencils)):
        for k in range(stencils.shape[1]):
            v = stencils[e, k]
            batch, locations[e, k, 0] = slot_of[v, 0], -1
            if batch >= 0 and not _is_padding(stencils, e, k):
                row, lane = locate_incidence(rank[v], 0, slot_of[v, 1], width[batch], lanes)
                rank[v] += 1
                locations[e, k, 0], locations[e, k, 1] = row, lane
                start[batch + 1] = max(start[batch + 1], row + 1)
    for batch in range(len(width)):
        start[batch + 1] += start[batch]
    for e in range(len(stencils)):
        for k in range(stencils.shape[1]):
            rank[stencils[e, k]] = 0


@kernel
def _list_incidences(stencils, slot_of, start, locations, element, slot):
    for e in range(len(stencils)):
        for k in range(stencils.shape[1]):
            if locations[e, k, 0] >= 0:
                row = start[slot_of[stencils[e, k], 0]] + locations[e, k, 0]
                element[row, locations[e, k, 1]] = e
                slot[row, locations[e, k, 1]] = k


@device_function
def _list_slots(own, overflow, changed, count):
    """Append default and current lanes of moved vertices, with the vertex in them; returns the length of the
    list."""
    for k in range(len(overflow)):
        for end in range(0, 6, 3):
            for lane in range(overflow[k, end + 1], own.shape[2], overflow[k, end + 2]):
                changed[count, 0], changed[count, 1] = overflow[k, end], lane
                changed[count, 2] = own[overflow[k, end], 0, lane]
                count += 1
    return count


@device_function
def _write_vertex_ids(own, overflow, empty_id, to_default):
    """Swap vertices between their default slots and overflow slots; vacated slots get the id `empty_id`."""
    for k in range(len(overflow)):
        for end in range(0, 6, 3):
            v = overflow[k, 6] if (end == 0) == to_default else empty_id
            for lane in range(overflow[k, end + 1], own.shape[2], overflow[k, end + 2]):
                own[overflow[k, end], 0, lane] = v


@kernel
def _update_vertex_ids(own, previous_overflow, overflow, empty_id, changed):
    """Move vertices to their new slots; returns the number of changed entries."""
    slot_count, count = (
        _list_slots(own, overflow, changed, _list_slots(own, previous_overflow, changed, 0)),
        0,
    )
    _write_vertex_ids(own, previous_overflow, empty_id, True)
    _write_vertex_ids(own, overflow, empty_id, False)
    for k in range(slot_count):
        batch, lane = changed[k, 0], changed[k, 1]
        if own[batch, 0, lane] != changed[k, 2]:
            changed[count, 0], changed[count, 1], changed[count, 2] = batch, lane, own[batch, 0, lane]
            count += 1
    return count


@kernel
def list_by_color(color, start, batches):
    """Sort batches by color into `batches`; the batches of color c begin at start[c]. `start` may have spare
    entries."""
    start[:] = 0
    for c in color:
        start[c + 1] += 1
    for c in range(1, len(start)):
        start[c] += start[c - 1]
    for batch in range(len(color)):
        batches[start[color[batch]]] = batch
        start[color[batch]] += 1
    for c in range(len(start) - 1, 0, -1):
        start[c] = start[c - 1]
    start[0] = 0


def incidence_moves(overflow: np.ndarray, start: np.ndarray, valence: np.ndarray) -> Any:
    """Moves (k, 7) of the incidences for `swap_incidences`.

    Args:
        overflow: Vertices in overflow slots.
        start: First row of each batch.
        valence: (n,) number of incidences of each vertex.
    """
    moves = overflow.copy()
    moves[:, 0], moves[:, 3], moves[:, 6] = (
        start[overflow[:, 0]],
        start[overflow[:, 3]],
        valence[overflow[:, 6]],
    )
    return moves
