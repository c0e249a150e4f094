"""Dynamic batches: vertices and elements of terms whose stencils change during a solve.

Vertices are batched by the static stencils. If a new stencil connects a vertex to another of the same color,
the vertex takes a new color: it leaves its default slot, which becomes empty, and moves with all its
incidences to an overflow batch at the end. On a GPU, a vertex with many incidences of dynamic stencils also
moves there, because all other vertices of its batch would wait for it; several lanes share each vertex of an
overflow batch. Rows for terms with a capacity are allocated in advance and rewritten when stencils change. If
the new stencils do not fit, the caller must build the batches again with a larger capacity.

Recoloring follows PBNG section 10.1. A vertex keeps its color from the static stencils, unless a new stencil
connects it to a vertex of the same color; then it takes the smallest available color. Colors therefore depend
on the current stencils only, not on earlier ones. Vertices are processed in an order given by a hash of their
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.kernels import HOST, Runner, kernel
from supple.ordering.batch_moves import Fill, fill_rows, stencil_tables, swap_incidences, write_lanes
from supple.ordering.batches import VertexBatches, batch_elements, batch_vertices
from supple.ordering.coloring import ListedColors, incidence, merge_stencils
from supple.ordering.row_trees import empty_rows, map_rows, row_arrays
from supple.ordering.slot_table import SlotTable, as_ids, incidence_moves, list_by_color
from supple.terms import Term

HASH_MULTIPLIER = 2654435761
"""Multiplier of the hash: 2³² times the golden section [Knuth's multiplicative hashing]."""


@dataclass(frozen=True)
class StaticColors:
    """Colors by the static stencils, and work arrays of `recolor`.

    Attributes:
        color: (n,) color of each vertex, -1 for pinned vertices.
        start, near: Free neighbors of vertex v by static stencils: near[start[v]:start[v + 1]].
        now: (n,) work array, equal to `color` between calls.
        number: (n,) work array, -1 between calls.
    """

    color: np.ndarray
    start: np.ndarray
    near: np.ndarray
    now: np.ndarray
    number: np.ndarray


def static_colors(color: np.ndarray, stencils: Sequence[np.ndarray]) -> StaticColors:
    """Prepare recoloring from the static colors (n,) and the static stencils (m, k) of each term."""
    merged, n = merge_stencils(stencils), len(color)
    first, element, _ = incidence(merged, n)
    start, near = np.zeros(n + 1, np.int64), np.empty(len(element) * (merged.shape[1] - 1), np.int32)
    count = _find_near(merged, first, element, color, np.full(n, -1, np.int32), start, near)
    return StaticColors(color, start, near[:count].copy(), color.copy(), np.full(n, -1, np.int32))


def recolor(static: StaticColors, stencils: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Recolor vertices so that no two vertices of a new stencil have the same color.

    Args:
        static: Static colors.
        stencils: New stencils, one array (m, k) per term.

    Returns:
        Vertices that change color, and their new colors.
    """
    new, color, now = merge_stencils(stencils), static.color, static.now
    vertices, numbered = np.empty(new.size, np.int32), np.empty(new.shape, np.int32)
    count = _number_vertices(new, color, static.number, vertices, numbered)
    vertices, first, element = vertices[:count], np.zeros(count + 2, np.int32), np.empty(new.size, np.int32)
    _list_stencils(numbered, first, element)
    forbidden = np.full(int(color.max(initial=-1)) + count + 2, -1, np.int32)
    work = numbered, first, element, static.start, static.near, now, forbidden
    new_color = color[vertices]
    _assign_colors(_hash_order(vertices), vertices, new_color, *work)
    moved = np.flatnonzero(new_color != color[vertices])
    now[vertices], static.number[vertices] = color[vertices], -1
    return vertices[moved], new_color[moved]


def _hash_order(vertices: np.ndarray) -> np.ndarray:
    """Order in which vertices are recolored: sorted by hash."""
    low = np.uint64(0xFFFFFFFF)
    hashed = (vertices.astype(np.uint64) * np.uint64(HASH_MULTIPLIER)) & low
    both = np.sort((hashed << np.uint64(32)) | np.arange(len(vertices), dtype=np.uint64))
    return (both & low).astype(np.int64)


@kernel
def _find_near(stencils, first, element, color, seen, start, near):
    """List the free neighbors of each free vertex v through stencils element[first[v]:first[v + 1]].

    `seen` (n,) is work memory. Returns the number of entries.
    """
    count = 0
    for v in range(len(color)):
        start[v] = count
        if color[v] >= 0:
            for i in range(first[v], first[v + 1]):
                for slot in range(stencils.shape[1]):
                    w = stencils[element[i], slot]
                    if w >= 0 and w != v and color[w] >= 0 and seen[w] != v:
                        seen[w] = v
                        near[count] = w
                        count += 1
    start[len(color)] = count
    return count


@kernel
def _number_vertices(stencils, color, number, vertices, numbered):
    """Number the free vertices in order of first appearance and write the number of each corner, or -1."""
    count = 0
    for e in range(len(stencils)):
        for slot in range(stencils.shape[1]):
            v, numbered[e, slot] = stencils[e, slot], -1
            if v >= 0 and color[v] >= 0:  # pinned vertices cause no conflict
                if number[v] < 0:
                    number[v] = count
                    vertices[count] = v
                    count += 1
                numbered[e, slot] = number[v]
    return count


@kernel
def _list_stencils(numbered, first, element):
    """List the stencils of vertex i as element[first[i]:first[i + 1]], once per corner; `first` has one spare
    entry."""
    for e in range(len(numbered)):
        for slot in range(numbered.shape[1]):
            if numbered[e, slot] >= 0:
                first[numbered[e, slot] + 2] += 1
    for i in range(2, len(first)):
        first[i] += first[i - 1]
    for e in range(len(numbered)):
        for slot in range(numbered.shape[1]):
            i = numbered[e, slot]
            if i >= 0:
                element[first[i + 1]] = e
                first[i + 1] += 1


@kernel
def _assign_colors(order, vertices, new_color, numbered, first, element, start, near, now, forbidden):
    """Assign each vertex its previous color or the smallest available one, stored in `new_color` (k,) and
    `now` (n,)."""
    for i in order:
        v = vertices[i]
        for k in range(first[i], first[i + 1]):
            for slot in range(numbered.shape[1]):
                j = numbered[element[k], slot]
                if j >= 0 and j != i:
                    forbidden[new_color[j]] = i
        for k in range(start[v], start[v + 1]):
            forbidden[now[near[k]]] = i
        if forbidden[new_color[i]] == i:
            least = 0
            while forbidden[least] == i:
                least += 1
            new_color[i] = now[v] = least


EXTRA_COLORS = 16
"""Number of additional colors beyond those of the static stencils."""

MAX_UNSHARED = 6
"""Number of incidences with dynamic stencils above which GPU lanes share a vertex. One contact incidence
takes about 1 μs on an H200, and every color of a sweep takes as long as its slowest vertex."""

MIN_SHARED_LANES = 8
"""Minimum number of GPU lanes per vertex of an overflow batch."""

MIN_ROWS = 4096
"""Minimum number of incidence rows, if the capacity is large enough to fill them."""


NO_MOVES = np.empty((0, 7), np.int32)
"""Empty list of moves."""


def is_dynamic(term: Term) -> bool:
    """True if the stencils of a term may change during a solve."""
    return term.capacity is not None


@dataclass(frozen=True)
class Plan:
    """New colors and incidence rows for changed stencils.

    Attributes:
        colors: Color of each overflow batch.
        count: Number of colors.
        starts: First rows of the batches for each term; overflow batches only for static terms.
        locations: Location of each incidence of the dynamic terms, by term index.
    """

    colors: np.ndarray
    count: int
    starts: list[np.ndarray]
    locations: dict[int, np.ndarray]


@dataclass(frozen=True)
class BatchUpdate:
    """Updates of the batches in device memory.

    Attributes:
        moves: Moves of incidences, (arrays, moves, back) as in `swap_incidences`.
        written: Arrays written by the host, with the number of rows to upload.
        own: (batches, 1, lanes) vertex ids.
        slots: (k, 3) batch, lane and vertex of each changed entry of `own`.
        fills: Rows to write.
    """

    moves: list[tuple[tuple, np.ndarray, int]]
    written: list[tuple[np.ndarray, int]]
    own: np.ndarray
    slots: np.ndarray
    fills: list[Fill]

    def apply(self, device: Runner) -> None:
        """Apply the updates to the arrays in device memory."""
        for arrays, moves, back in self.moves:
            device.run(swap_incidences, 2, arrays, moves, back)
        for array, rows in self.written:
            device.upload(array, rows)
        if len(self.slots):
            vertex = np.ascontiguousarray(self.slots[:, 2:])
            device.run(write_lanes, 1, (self.own,), (vertex,), self.slots)
        for fill in self.fills:
            if len(fill.batches):
                device.run(fill_rows, 1, fill)


class DynamicBatches:
    """Vertex batches that adapt to changing stencils.

    Attributes:
        batches: Batches with overflow slots and spare rows.
        colors: Current colors.
        displaced: Vertices outside their default slots.
        growth: Factor on the estimated capacity.
    """

    def __init__(
        self,
        terms: Sequence[Term],
        free: np.ndarray,
        dtype: np.dtype,
        lanes: int,
        concurrent_batches: float | None = None,
        growth: int = 1,
    ) -> None:
        self.growth = growth
        self._dtype, self._lanes, self._n = np.dtype(dtype), lanes, len(free)
        static_terms = tuple(term for term in terms if not is_dynamic(term))
        dynamic_terms = [term for term in terms if is_dynamic(term)]
        static = batch_vertices(static_terms, free, dtype, lanes, concurrent_batches)
        self._first, self._first_colors = len(static.own), static.colors
        narrow = (
            lanes
            if concurrent_batches is None
            else int(static.width.min(initial=max(1, lanes // MIN_SHARED_LANES)))
        )
        self._max_unshared = None if concurrent_batches is None else MAX_UNSHARED
        expected = min(int(free.sum()), sum(_max_incidences(term) for term in dynamic_terms) // 4)
        spare = growth * (1 + static.colors + -(-expected // narrow))
        self.own = np.concatenate([static.own, np.full((spare, 1, lanes), self._n, np.int32)])
        width = np.concatenate([static.width, np.full(spare, narrow, np.int64)])
        self._slot_table = SlotTable(static, width, self._n)
        self._batch_color = np.repeat(np.arange(static.colors), np.diff(static.color_start))
        color = np.append(self._batch_color, -1)[self._slot_table.default_slot[:, 0]].astype(np.int32)
        self.static_colors = static_colors(color, [term.vertices for term in static_terms])
        self._valences = {
            k: np.bincount(term.vertices.ravel(), minlength=self._n)[: self._n]
            for k, term in enumerate(terms)
            if not is_dynamic(term)
        }
        self._ranked = np.lexsort([-valence for valence in self._valences.values()] or [np.zeros(self._n)])
        self._rank = np.empty(self._n, np.int64)
        self._rank[self._ranked] = np.arange(self._n)
        max_colors = static.colors + growth * EXTRA_COLORS + 1
        self.colors = ListedColors(0, np.zeros(max_colors, np.int64), np.zeros(len(self.own), np.int64))
        static_rows = zip(static.terms, static.element, strict=True)
        pairs = [
            self._empty_rows(t, spare) if is_dynamic(t) else self._extend_rows(t, *next(static_rows), spare)
            for t in terms
        ]
        self.batches = VertexBatches(self.own, width, static.color_start, *zip(*pairs, strict=True))
        numbered = zip(terms, self.batches.element, strict=True)
        self._slots = {k: np.zeros(e.shape, np.int8) for k, (t, e) in enumerate(numbered) if is_dynamic(t)}
        self._moves = {k: NO_MOVES for k in range(len(terms)) if k not in self._slots}
        self._updated_moves = dict(self._moves)
        self._terms: Sequence[Term] = ()

    @property
    def displaced(self) -> np.ndarray:
        """Vertices outside their default slots."""
        return self._slot_table.overflow[:, 6]

    def _extend_rows(self, term: Term, rows: Any, element: np.ndarray, spare: int) -> tuple[Any, np.ndarray]:
        """Rows and element ids of a static term, extended by rows for moved vertices."""
        parts = self._lanes // int(self._slot_table.width[-1])
        most = int(np.bincount(term.vertices.ravel()).max(initial=0))
        more = empty_rows(term, spare * -(-most // parts), self._lanes, self._n, self._dtype)
        start = np.concatenate([rows.start, np.full(spare, rows.start[-1])])
        extended = map_rows(lambda a, b: np.concatenate([a, b]), rows, more)._replace(start=start)
        nothing = np.full((len(row_arrays(more)[0]), self._lanes), -1, np.int32)
        return extended, np.concatenate([element, nothing])

    def _empty_rows(self, term: Term, spare: int) -> tuple[Any, np.ndarray]:
        """Empty rows and element ids of a dynamic term."""
        max_count = _max_incidences(term)
        count = min(max_count, self.growth * max(MIN_ROWS, max_count // 4))
        rows = empty_rows(term, count, self._lanes, self._n, self._dtype)
        rows = rows._replace(start=np.zeros(self._first + spare + 1, np.int64))
        return rows, np.full((count, self._lanes), -1, np.int32)

    def set_terms(self, terms: Sequence[Term]) -> BatchUpdate | None:
        """Adopt terms with new stencils.

        Returns:
            Updates to apply in device memory, or None, without changes, if the capacity is insufficient.
        """
        stencils = {k: as_ids(terms[k].vertices) for k in self._slots}
        before, known = self._slot_table.overflow, self._terms
        if known and all(np.array_equal(known[k].vertices, ids) for k, ids in stencils.items()):
            self._terms = terms
            fills = [self._fill(terms, k) for k in self._slots if terms[k] is not known[k]]
            return BatchUpdate([], [], self.own, np.empty((0, 3), np.int32), fills)
        plan = self._plan(stencils)
        if plan is None:
            self._slot_table.set_overflow(before)
            return None
        self._terms = terms
        slots = self._slot_table.update_vertex_ids(self.own, before, self._n)
        moves, written = [], self._update_colors(plan)
        for k, rows in enumerate(self.batches.terms):
            start, element, slot = plan.starts[k], self.batches.element[k], self._slots.get(k)
            rows.start[len(rows.start) - len(start) :] = start
            written.append((rows.start, len(rows.start)))
            if slot is None:
                moves += self._moves_of(k, rows)
            else:
                self._slot_table.list_incidences(stencils[k], start, plan.locations[k], element, slot)
                written += [(element, int(start[-1])), (slot, int(start[-1]))]
        return BatchUpdate(moves, written, self.own, slots, [self._fill(terms, k) for k in stencils])

    def _plan(self, stencils: dict[int, np.ndarray]) -> Plan | None:
        """Plan new colors and slots for the stencils of the dynamic terms and update the slot table.

        Returns None if the capacity is insufficient.
        """
        displaced, color = recolor(self.static_colors, list(stencils.values()))
        if self._max_unshared is not None:
            shared = self._slot_table.busy_vertices(list(stencils.values()), self._max_unshared, displaced)
            displaced = np.concatenate([displaced, shared])
            color = np.concatenate([color, self.static_colors.color[shared]])
        both = np.sort((color.astype(np.int64) << 32) | self._rank[displaced])
        displaced, color = self._ranked[both & 0xFFFFFFFF], both >> 32
        batch, lane, colors = self._spread(color)
        count = max(int(color.max(initial=-1)) + 1, self._first_colors)
        if len(colors) > len(self.own) - self._first or count >= len(self.colors.start):
            return None
        self._slot_table.set_overflow(self._slot_table.moves(displaced, batch, lane))
        incidences = {k: self._slot_table.locate_incidences(ids) for k, ids in stencils.items()}
        starts = [
            incidences[k][0] if k in incidences else self._starts(k, rows.start)
            for k, rows in enumerate(self.batches.terms)
        ]
        capacity = [len(row_arrays(rows)[0]) for rows in self.batches.terms]
        if any(start[-1] > rows for start, rows in zip(starts, capacity, strict=True)):
            return None
        return Plan(colors, count, starts, {k: locations for k, (_, locations) in incidences.items()})

    def _spread(self, color: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Assign overflow batches and lanes to vertices sorted by color; also returns the color of each
        batch."""
        narrow = int(self._slot_table.width[-1])
        used, begin, size = np.unique(color, return_index=True, return_counts=True)
        batches = -(-size // narrow)
        rank = np.arange(len(color)) - np.repeat(begin, size)
        at = np.repeat(self._first + np.cumsum(batches) - batches, size)
        return at + rank // narrow, rank % narrow, np.repeat(used, batches)

    def _starts(self, k: int, start: np.ndarray) -> np.ndarray:
        """First rows of the overflow batches of a static term."""
        overflow, rows = self._slot_table.overflow, np.zeros(len(start) - self._first, np.int64)
        rows[0] = start[self._first]
        parts = self._lanes // overflow[:, 5]
        np.maximum.at(rows, 1 + overflow[:, 3] - self._first, -(-self._valences[k][overflow[:, 6]] // parts))
        return np.cumsum(rows)

    def _update_colors(self, plan: Plan) -> list[tuple[np.ndarray, int]]:
        _, start, order = self.colors
        list_by_color(np.concatenate([self._batch_color, plan.colors]), start, order)
        self.colors = ListedColors(plan.count, start, order)
        return [(start, len(start)), (order, len(order))]

    def _moves_of(self, k: int, rows: Any) -> list[tuple[tuple, np.ndarray, int]]:
        """Moves of a static term's incidences: first back to default slots, then to new overflow slots."""
        back, away = self._moves[k], incidence_moves(self._slot_table.overflow, rows.start, self._valences[k])
        if np.array_equal(back, away):
            return []
        self._moves[k] = away
        return [(row_arrays(rows), np.concatenate([back, away]), len(back))]

    def _fill(self, terms: Sequence[Term], k: int) -> Fill:
        """Rows to write for a dynamic term."""
        rows, element = self.batches.terms[k], self.batches.element[k]
        batches = np.flatnonzero(np.diff(rows.start)).astype(np.int32)
        tables = stencil_tables(terms[k], self._dtype)
        return Fill(row_arrays(rows), tables, rows.start, self.own, element, self._slots[k], batches)

    def update_element_ids(self) -> None:
        """Update the element ids of `batches` to the current incidences of static terms."""
        for k, away in self._moves.items():
            back = self._updated_moves[k]
            if back is not away:
                element = self.batches.element[k][:, None]
                HOST.run(swap_incidences, 2, (element,), np.concatenate([back, away]), len(back))
                self._updated_moves[k] = away


def _max_incidences(term: Any) -> int:
    """Largest number of incidences of a dynamic term."""
    return int(term.capacity * term.vertices.shape[1])


class DynamicElements:
    """Packed elements of a dynamic term, as in `batch_elements`, allocated for its capacity.

    Attributes:
        elements: Packed elements; empty lanes refer to the vertex `padding`.
    """

    def __init__(self, term: Term, dtype: np.dtype, padding: int, lanes: int) -> None:
        self.elements = batch_elements(term, dtype, padding, lanes)
        self._term, self._dtype, self._padding = term, dtype, padding
        element = self.elements.element
        self._start, self._slot = np.arange(len(element) + 1), np.zeros(element.shape, np.int8)

    def set_term(self, term: Term, device: Runner) -> None:
        """Adopt the stencils of a new term; no effect for the current term."""
        if term is self._term:
            return
        own, element, rows = self.elements.own, self.elements.element, self.elements.rows
        now, before = len(term.vertices), len(self._term.vertices)
        self._term = term
        own.ravel()[:now], own.ravel()[now:before] = term.vertices[:, 0], self._padding
        element.ravel()[:now], element.ravel()[now:before] = np.arange(now), -1
        batches = np.arange(-(-max(now, before) // element.shape[1]), dtype=np.int32)
        if len(batches):
            device.upload(own, len(batches))
            device.upload(element, len(batches))
            tables = stencil_tables(term, self._dtype)
            work = Fill(row_arrays(rows), tables, self._start, own, element, self._slot, batches)
            device.run(fill_rows, 1, work)
