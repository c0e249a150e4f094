"""Greedy graph coloring: vertices of one color share no stencil and can be updated in parallel.

Loops over colors run the batches of a color, which are consecutive, or listed if vertices may change color.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import types

from supple.kernels import (
    do,
    end_phase,
    inline_control,
    item_number,
    kernel,
    overload_by_type,
    parallel_for_nowait,
    with_number,
)


def incidence(stencils: np.ndarray, vertices: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Incidences of vertices and stencils in CSR format, (start, element, slot), ordered by element.

    Entries start[v] to start[v + 1] - 1 are the stencils that contain vertex v and its corner in them.
    Negative ids are skipped.

    Args:
        stencils: (m, k) vertex ids.
        vertices: Number of vertices.
    """
    corner = stencils.astype(np.int32).ravel()
    start, order = np.zeros(vertices + 1, np.int64), np.empty(int((corner >= 0).sum()), np.int64)
    sort_corners(corner, start, order)
    element, slot = np.divmod(order, stencils.shape[1])
    return start, element, slot


@kernel
def sort_corners(corner, start, incident):
    """Counting sort of corners: incident[start[i]:start[i + 1]] are the positions of row i in `corner`."""
    for c in range(len(corner)):
        if corner[c] >= 0:
            start[corner[c] + 1] += 1
    for i in range(1, len(start)):
        start[i] += start[i - 1]
    for c in range(len(corner)):
        if corner[c] >= 0:
            incident[start[corner[c]]] = c
            start[corner[c]] += 1
    for i in range(len(start) - 1, 0, -1):
        start[i] = start[i - 1]
    start[0] = 0


def merge_stencils(stencils: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate stencil arrays (m, k) of different widths, padded with -1."""
    width = max((s.shape[1] for s in stencils), default=1)
    filled = [np.pad(s, ((0, 0), (0, width - s.shape[1])), constant_values=-1) for s in stencils]
    return np.concatenate([np.empty((0, width), np.int32), *filled]).astype(np.int32)


@kernel
def forbid(stencils, first, last, element, v, color, forbidden):
    """Mark with v the colors of all vertices in its stencils, entries first to last - 1 of `element`."""
    for i in range(first, last):
        for w in stencils[element[i]]:
            if w >= 0 and color[w] >= 0:
                forbidden[color[w]] = v


@kernel
def _greedy(stencils, start, element, active, color, forbidden):
    for v in active:
        forbid(stencils, start[v], start[v + 1], element, v, color, forbidden)
        c = 0
        while forbidden[c] == v:
            c += 1
        color[v] = c


def color_vertices(stencils: Sequence[np.ndarray], active: np.ndarray, vertices: int) -> np.ndarray:
    """Color vertices greedily in the order of `active` [PBNG section 10].

    Args:
        stencils: One array (m, k) of vertex ids per term.
        active: Vertices to color.
        vertices: Number of vertices n.

    Returns:
        (n,) smallest color not used by any vertex with a common stencil; -1 for inactive vertices.
    """
    merged = merge_stencils(stencils)
    start, element, _ = incidence(merged, vertices)
    color = np.full(vertices, -1, np.int32)
    most = int(np.diff(start).max(initial=0)) * merged.shape[1] + 1
    _greedy(merged, start, element, np.asarray(active, np.int64), color, np.full(most + 1, -1, np.int64))
    return color


class ListedColors(NamedTuple):
    """Listed batches of each color: order[start[c]:start[c + 1]].

    Static orderings use a single array `start` (count + 1,) with the first batch of each color.

    Attributes:
        count: Number of colors.
        start: First list entry of each color; may have unused entries at the end.
        order: Batch ids sorted by color.
    """

    count: Any
    start: Any
    order: Any


Colors = np.ndarray | ListedColors


def color_count(colors: Any) -> int:
    """Number of colors."""
    return colors.count if isinstance(colors, ListedColors) else len(colors) - 1


@overload_by_type(color_count)
def _color_count(colors):
    if isinstance(colors, types.BaseTuple):
        return lambda colors: colors.count
    return lambda colors: len(colors) - 1


def color_bounds(colors: Any, color: int) -> tuple[int, int]:
    """Item range (first, last) of a color, last excluded; empty for the color after the last one."""
    start = colors.start if isinstance(colors, ListedColors) else colors
    return start[color], start[min(color + 1, color_count(colors))]


@overload_by_type(color_bounds)
def _color_bounds(colors, color):
    if isinstance(colors, types.BaseTuple):
        return lambda colors, color: (
            colors.start[color],
            colors.start[min(color + 1, color_count(colors))],
        )
    return lambda colors, color: (colors[color], colors[min(color + 1, color_count(colors))])


class ListedBatches(NamedTuple):
    """Work on the batches of a list."""

    order: Any
    work: Any


@do.of(ListedBatches)
def _do_listed_batches(part, item):
    do(part.work, with_number(item, part.order[item_number(item)]))


def at_batches(colors: Any, work: Any) -> Any:
    """Work on the batches to which the items of `colors` refer."""
    return ListedBatches(colors.order, work) if isinstance(colors, ListedColors) else work


@overload_by_type(at_batches)
def _at_batches(colors, work):
    if isinstance(colors, types.BaseTuple):
        return lambda colors, work: ListedBatches(colors.order, work)
    return lambda colors, work: work


@inline_control
def each_color(team, phase, colors, bounds, work):
    """Run work on all batches, one phase per color; returns the next phase.

    Args:
        team: Thread team.
        phase: First phase.
        colors: Colors.
        bounds: `color_bounds` of the first color; a kernel of many sweeps reads it once.
        work: Work for each batch.
    """
    first, last = bounds
    count = color_count(colors)
    for color in range(count):
        parallel_for_nowait(team, phase + color, first, last, at_batches(colors, work))
        next_bounds = color_bounds(colors, color + 1)  # overlaps with the work of other threads
        end_phase(team, phase + color, first, last)
        first, last = next_bounds
    return phase + count


def widest_color(colors: Colors) -> int:
    """Number of batches of the largest color."""
    start = colors.start[: colors.count + 1] if isinstance(colors, ListedColors) else colors
    return int(np.diff(start).max(initial=0))
