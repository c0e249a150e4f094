"""Colours of vertices when stencils come and go [PBNG section 10.1].

A vertex keeps the colour that it has by the stencils that never change, unless one that shares a new stencil
with it has the same; then it takes the least that is free. So colours follow from the stencils that there
are, whatever there was before.

Vertices are visited in an order that is mixed up by hashing their numbers. It says who waits for whom, and
nothing else does: in rounds, all that wait for nobody take their colours at once [Jones and Plassmann 1993].
Threads of the CPU and of a device find what one after the other would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from supple.kernels import Runner, do, each_item, kernel, number, physics, records_at_once, strides
from supple.ordering.colouring import incidence, merge_stencils

ROUNDS = 16
"""Of one launch; few vertices wait for longer."""

WINDOW = 62
"""Colours that are looked at together, as the bits of a number."""

WAITS, STAYS = 0, -1
"""In place of the round in which a vertex has taken its colour."""


class Sharing(NamedTuple):
    """Stencils (m, k), filled up with -1; those of the i-th vertex are entries start[i] to start[i + 1] of
    element."""

    stencils: Any
    start: Any
    element: Any


class Now(NamedTuple):
    """colour (n,) of all vertices; round (n,) in which those that new stencils touch have taken it."""

    colour: Any
    round: Any


@dataclass(frozen=True)
class LastingColours:
    """Colours (n,) by the stencils that never change, -1 where a vertex does not move; these stencils; and
    what kernels have of all vertices, which is as it was whenever they are done."""

    colour: np.ndarray
    sharing: Sharing
    now: Now


def lasting_colours(colour: np.ndarray, stencils: Sequence[np.ndarray]) -> LastingColours:
    merged = merge_stencils(stencils)
    start, element, _ = incidence(merged, len(colour))
    now = Now(colour.copy(), np.full(len(colour), STAYS, np.int32))
    return LastingColours(colour, Sharing(merged, start, element), now)


def recolour(lasting: LastingColours, stencils: Sequence[np.ndarray], device: Runner) -> np.ndarray:
    """Colours (n,) with further stencils (m, k) of several kinds, such that none that share one are equal."""
    colour = lasting.colour.copy()
    new = merge_stencils(stencils)
    new = np.where(colour[new] >= 0, new, -1).astype(np.int32)  # what does not move is in nobody's way
    vertices = np.unique(new[new >= 0])
    if not len(vertices):
        return colour
    numbered = np.where(new >= 0, np.searchsorted(vertices, new), -1)
    start, element, _ = incidence(numbered, len(vertices))
    found = np.full(len(vertices), -1, np.int32)
    touched = vertices, found, lasting.sharing, Sharing(new, start, element), lasting.now
    first = 1
    while (found < 0).any():
        device.run(recolour_rounds, 1 + ROUNDS, first, *touched)
        device.pull(found)
        first += ROUNDS
    device.run(settle, 1, vertices, lasting.colour, lasting.now)
    colour[vertices] = found
    return colour


@physics
def visited(v):
    """The number in whose order vertices are visited, different for all [Knuth's multiplicative hashing]."""
    return (v * 2654435761) & 0xFFFFFFFF


@physics
def waits(sharing, i, v, rounds, now):
    """Whether v, the i-th vertex, shares a stencil with one that is visited before it and had no colour when
    this round began."""
    for e in range(sharing.start[i], sharing.start[i + 1]):
        for corner in range(sharing.stencils.shape[1]):
            w = sharing.stencils[sharing.element[e], corner]
            if w >= 0 and (rounds[w] == WAITS or rounds[w] == now) and visited(w) < visited(v):
                return True
    return False


@physics
def taken(sharing, i, v, colour, first):
    """Which of the colours first, ..., first + WINDOW - 1 the others in the stencils of v, the i-th vertex,
    have, as bits."""
    bits = 0
    for e in range(sharing.start[i], sharing.start[i + 1]):
        for corner in range(sharing.stencils.shape[1]):
            w = sharing.stencils[sharing.element[e], corner]
            if w >= 0 and w != v:
                place = colour[w] - first
                if 0 <= place < WINDOW:
                    bits |= 1 << place
    return bits


class Begin(NamedTuple):
    """Vertices whose colours may change, in blocks of `size`."""

    vertices: Any
    size: Any
    now: Any


class Round(NamedTuple):
    """Those that wait for nobody take their colours: `found`, for each of the vertices."""

    vertices: Any
    size: Any
    now: Any
    found: Any
    lasting: Any
    new: Any
    round: Any


class Settle(NamedTuple):
    """All as it was, for the next time."""

    vertices: Any
    size: Any
    now: Any
    colour: Any


@physics
def own_part(work, block):
    """(first, last, step): which vertices of a block are this thread's."""
    first, step = strides(block)
    start = number(block) * work.size
    return start + first, min(len(work.vertices), start + work.size), step


@do.of(Begin)
def _begin(work, block):
    first, last, step = own_part(work, block)
    for k in range(first, last, step):
        v = work.vertices[k]
        if work.now.round[v] == STAYS:
            work.now.round[v] = WAITS


@do.of(Round)
def _take_colours(work, block):
    """The colour of before, or the least that is free."""
    colour, rounds, lasting, new = work.now.colour, work.now.round, work.lasting, work.new
    first, last, step = own_part(work, block)
    for k in range(first, last, step):
        v = work.vertices[k]
        if (
            rounds[v] == WAITS
            and not waits(new, k, v, rounds, work.round)
            and not waits(lasting, v, v, rounds, work.round)
        ):
            own = colour[v] - colour[v] % WINDOW
            bits = taken(new, k, v, colour, own) | taken(lasting, v, v, colour, own)
            if (bits >> (colour[v] - own)) & 1:
                own = 0
                bits = taken(new, k, v, colour, own) | taken(lasting, v, v, colour, own)
                while bits == (1 << WINDOW) - 1:
                    own += WINDOW
                    bits = taken(new, k, v, colour, own) | taken(lasting, v, v, colour, own)
                least = 0
                while (bits >> least) & 1:
                    least += 1
                colour[v] = own + least
            work.found[k] = colour[v]
            rounds[v] = work.round


@do.of(Settle)
def _settle(work, block):
    first, last, step = own_part(work, block)
    for k in range(first, last, step):
        v = work.vertices[k]
        work.now.colour[v] = work.colour[v]
        work.now.round[v] = STAYS


@kernel
def recolour_rounds(team, first, vertices, found, lasting, new, now):
    """Rounds first, ..., first + ROUNDS - 1, the first one 1. Neighbours never take a colour in the same
    round, since one of them waits for the other."""
    size = records_at_once(team)
    blocks = -(-len(vertices) // size)
    each_item(team, 0, 0, blocks, Begin(vertices, size, now))
    for k in range(ROUNDS):
        each_item(team, 1 + k, 0, blocks, Round(vertices, size, now, found, lasting, new, first + k))


@kernel
def settle(team, vertices, colour, now):
    """Let all vertices have the colours (n,) of the stencils that last."""
    size = records_at_once(team)
    each_item(team, 0, 0, -(-len(vertices) // size), Settle(vertices, size, now, colour))
