"""Dynamic vertex batches for terms with changing stencils.

Vertices are batched by the static stencils. If a new stencil connects a vertex to another of the same color,
the vertex takes a new color: it leaves its default slot, which becomes empty, and moves with all its
incidences to an overflow batch at the end. On a GPU, a vertex with many incidences of dynamic stencils also
moves there, because all other vertices of its batch would wait for it; several lanes share each vertex of an
overflow batch. Rows for terms with a capacity are allocated in advance and rewritten when stencils change. If
the new stencils do not fit, the caller must build the batches again with more room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.kernels import HOST, Runner
from supple.ordering.batches import VertexBatches, batch_vertices
from supple.ordering.colours import ListedColours
from supple.ordering.moving import Fill, fill_rows, put_lanes, swap_visits, tables_of
from supple.ordering.recolouring import lasting_colours, recolour
from supple.ordering.rows import empty_rows, map_rows, row_arrays
from supple.ordering.whereabouts import Whereabouts, as_ids, list_by_colour, visit_moves
from supple.terms import Term

MORE_COLOURS = 16
"""Number of additional colors beyond those of the static stencils."""

BUSY = 6
"""Number of incidences with dynamic stencils above which GPU lanes share a vertex. One contact incidence
takes about 1 μs on an H200, and every color of a sweep takes as long as its slowest vertex."""

SHARERS = 8
"""Minimum number of GPU lanes per vertex of an overflow batch."""

ROWS_AT_LEAST = 4096
"""Minimum number of incidence rows, if the capacity is large enough to fill them."""


_NOWHERE = np.empty((0, 7), np.int32)
"""Empty list of moves."""


def changes(term: Term) -> bool:
    """True if the stencils of a term may change during a solve."""
    return term.capacity is not None


@dataclass(frozen=True)
class Plan:
    """New colors and incidence rows for changed stencils.

    Attributes:
        colours: Color of each overflow batch.
        count: Number of colors.
        starts: First rows of the batches for each term; overflow batches only for static terms.
        visits: Location of each incidence of the dynamic terms, by term index.
    """

    colours: np.ndarray
    count: int
    starts: list[np.ndarray]
    visits: dict[int, np.ndarray]


@dataclass(frozen=True)
class Changes:
    """Updates of the batches in device memory.

    Attributes:
        moves: Moves of incidences, (arrays, moves, back) as in `swap_visits`.
        written: Arrays written by the host, with the number of rows to upload.
        own: (batches, 1, lanes) vertex ids.
        places: (k, 3) batch, lane and vertex of each changed entry of `own`.
        fills: Rows to write.
    """

    moves: list[tuple[tuple, np.ndarray, int]]
    written: list[tuple[np.ndarray, int]]
    own: np.ndarray
    places: np.ndarray
    fills: list[Fill]

    def carry_out(self, device: Runner) -> None:
        """Apply the updates to the arrays in device memory."""
        for arrays, moves, back in self.moves:
            device.run(swap_visits, 2, arrays, moves, back)
        for array, rows in self.written:
            device.push(array, rows)
        if len(self.places):
            vertex = np.ascontiguousarray(self.places[:, 2:])
            device.run(put_lanes, 1, (self.own,), (vertex,), self.places)
        for fill in self.fills:
            if len(fill.batches):
                device.run(fill_rows, 1, fill)


class ChangingBatches:
    """Vertex batches that adapt to changing stencils.

    Attributes:
        batches: Batches with overflow slots and spare rows.
        colours: Current colors.
        moved: Vertices outside their default slots.
        growth: Factor on the estimated room.
    """

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
        self._first, self._first_colours = len(home.own), home.colours
        narrow = lanes if at_once is None else int(home.width.min(initial=max(1, lanes // SHARERS)))
        self._busy = None if at_once is None else BUSY
        expected = min(int(free.sum()), sum(_visits(term) for term in changing) // 4)
        spare = growth * (1 + home.colours + -(-expected // narrow))
        self.own = np.concatenate([home.own, np.full((spare, 1, lanes), self._n, np.int32)])
        width = np.concatenate([home.width, np.full(spare, narrow, np.int64)])
        self._where = Whereabouts(home, width, self._n)
        self._batch_colour = np.repeat(np.arange(home.colours), np.diff(home.colour_start))
        colour = np.append(self._batch_colour, -1)[self._where.home[:, 0]].astype(np.int32)
        self.lasting = lasting_colours(colour, [term.vertices for term in lasting])
        self._valences = {
            k: np.bincount(term.vertices.ravel(), minlength=self._n)[: self._n]
            for k, term in enumerate(terms)
            if not changes(term)
        }
        self._ranked = np.lexsort([-valence for valence in self._valences.values()] or [np.zeros(self._n)])
        self._rank = np.empty(self._n, np.int64)
        self._rank[self._ranked] = np.arange(self._n)
        room = home.colours + growth * MORE_COLOURS + 1
        self.colours = ListedColours(0, np.zeros(room, np.int64), np.zeros(len(self.own), np.int64))
        known = zip(home.terms, home.element, strict=True)
        pairs = [self._empty(t, spare) if changes(t) else self._roomy(t, *next(known), spare) for t in terms]
        self.batches = VertexBatches(self.own, width, home.colour_start, *zip(*pairs, strict=True))
        numbered = zip(terms, self.batches.element, strict=True)
        self._slots = {k: np.zeros(e.shape, np.int8) for k, (t, e) in enumerate(numbered) if changes(t)}
        self._moves = {k: _NOWHERE for k in range(len(terms)) if k not in self._slots}
        self._arranged = dict(self._moves)
        self._taken: Sequence[Term] = ()

    @property
    def moved(self) -> np.ndarray:
        """Vertices outside their default slots."""
        return self._where.away[:, 6]

    def _roomy(self, term: Term, rows: Any, element: np.ndarray, spare: int) -> tuple[Any, np.ndarray]:
        """Rows and element ids of a static term, extended by rows for moved vertices."""
        parts = self._lanes // int(self._where.width[-1])
        most = int(np.bincount(term.vertices.ravel()).max(initial=0))
        more = empty_rows(term, spare * -(-most // parts), self._lanes, self._n, self._dtype)
        start = np.concatenate([rows.start, np.full(spare, rows.start[-1])])
        roomy = map_rows(lambda a, b: np.concatenate([a, b]), rows, more)._replace(start=start)
        nothing = np.full((len(row_arrays(more)[0]), self._lanes), -1, np.int32)
        return roomy, np.concatenate([element, nothing])

    def _empty(self, term: Term, spare: int) -> tuple[Any, np.ndarray]:
        """Empty rows and element ids of a dynamic term."""
        visits = _visits(term)
        count = min(visits, self.growth * max(ROWS_AT_LEAST, visits // 4))
        rows = empty_rows(term, count, self._lanes, self._n, self._dtype)
        rows = rows._replace(start=np.zeros(self._first + spare + 1, np.int64))
        return rows, np.full((count, self._lanes), -1, np.int32)

    def take(self, terms: Sequence[Term]) -> Changes | None:
        """Adopt terms with new stencils.

        Returns:
            Updates to apply in device memory, or None if the room is insufficient; then nothing has changed.
        """
        stencils = {k: as_ids(terms[k].vertices) for k in self._slots}
        before, known = self._where.away, self._taken
        if known and all(np.array_equal(known[k].vertices, ids) for k, ids in stencils.items()):
            self._taken = terms
            fills = [self._fill(terms, k) for k in self._slots if terms[k] is not known[k]]
            return Changes([], [], self.own, np.empty((0, 3), np.int32), fills)
        plan = self._plan(stencils)
        if plan is None:
            self._where.go(before)
            return None
        self._taken = terms
        places = self._where.exchange_own(self.own, before, self._n)
        moves, written = [], self._put_colours(plan)
        for k, rows in enumerate(self.batches.terms):
            start, element, slot = plan.starts[k], self.batches.element[k], self._slots.get(k)
            rows.start[len(rows.start) - len(start) :] = start
            written.append((rows.start, len(rows.start)))
            if slot is None:
                moves += self._moves_of(k, rows)
            else:
                self._where.list_visits(stencils[k], start, plan.visits[k], element, slot)
                written += [(element, int(start[-1])), (slot, int(start[-1]))]
        return Changes(moves, written, self.own, places, [self._fill(terms, k) for k in stencils])

    def _plan(self, stencils: dict[int, np.ndarray]) -> Plan | None:
        """Plan new colors and slots for the stencils of the dynamic terms and update the slot table.

        Returns None if the room is insufficient.
        """
        moved, colour = recolour(self.lasting, list(stencils.values()))
        if self._busy is not None:
            others = self._where.with_visits(list(stencils.values()), self._busy, moved)
            moved = np.concatenate([moved, others])
            colour = np.concatenate([colour, self.lasting.colour[others]])
        both = np.sort((colour.astype(np.int64) << 32) | self._rank[moved])
        moved, colour = self._ranked[both & 0xFFFFFFFF], both >> 32
        batch, lane, colours = self._spread(colour)
        count = max(int(colour.max(initial=-1)) + 1, self._first_colours)
        if len(colours) > len(self.own) - self._first or count >= len(self.colours.start):
            return None
        self._where.go(self._where.moves(moved, batch, lane))
        visits = {k: self._where.visits(ids) for k, ids in stencils.items()}
        starts = [
            visits[k][0] if k in visits else self._starts(k, rows.start)
            for k, rows in enumerate(self.batches.terms)
        ]
        room = [len(row_arrays(rows)[0]) for rows in self.batches.terms]
        if any(start[-1] > rows for start, rows in zip(starts, room, strict=True)):
            return None
        return Plan(colours, count, starts, {k: places for k, (_, places) in visits.items()})

    def _spread(self, colour: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Assign overflow batches and lanes to vertices sorted by color; also returns the color of each
        batch."""
        narrow = int(self._where.width[-1])
        used, begin, size = np.unique(colour, return_index=True, return_counts=True)
        batches = -(-size // narrow)
        rank = np.arange(len(colour)) - np.repeat(begin, size)
        at = np.repeat(self._first + np.cumsum(batches) - batches, size)
        return at + rank // narrow, rank % narrow, np.repeat(used, batches)

    def _starts(self, k: int, start: np.ndarray) -> np.ndarray:
        """First rows of the overflow batches of a static term."""
        away, rows = self._where.away, np.zeros(len(start) - self._first, np.int64)
        rows[0] = start[self._first]
        parts = self._lanes // away[:, 5]
        np.maximum.at(rows, 1 + away[:, 3] - self._first, -(-self._valences[k][away[:, 6]] // parts))
        return np.cumsum(rows)

    def _put_colours(self, plan: Plan) -> list[tuple[np.ndarray, int]]:
        _, start, listed = self.colours
        list_by_colour(np.concatenate([self._batch_colour, plan.colours]), start, listed)
        self.colours = ListedColours(plan.count, start, listed)
        return [(start, len(start)), (listed, len(listed))]

    def _moves_of(self, k: int, rows: Any) -> list[tuple[tuple, np.ndarray, int]]:
        """Moves of a static term's incidences: first back to default slots, then to new overflow slots."""
        back, away = self._moves[k], visit_moves(self._where.away, rows.start, self._valences[k])
        if np.array_equal(back, away):
            return []
        self._moves[k] = away
        return [(row_arrays(rows), np.concatenate([back, away]), len(back))]

    def _fill(self, terms: Sequence[Term], k: int) -> Fill:
        """Rows to write for a dynamic term."""
        rows, element = self.batches.terms[k], self.batches.element[k]
        batches = np.flatnonzero(np.diff(rows.start)).astype(np.int32)
        tables = tables_of(terms[k], self._dtype)
        return Fill(row_arrays(rows), tables, rows.start, self.own, element, self._slots[k], batches)

    def arrange_elements(self) -> None:
        """Update the element ids of `batches` to the current incidences of static terms."""
        for k, away in self._moves.items():
            back = self._arranged[k]
            if back is not away:
                element = self.batches.element[k][:, None]
                HOST.run(swap_visits, 2, (element,), np.concatenate([back, away]), len(back))
                self._arranged[k] = away


def _visits(term: Any) -> int:
    """Largest number of incidences of a dynamic term."""
    return int(term.capacity * term.vertices.shape[1])
