"""Colours of vertices when stencils come and go [PBNG section 10.1].

A vertex keeps the colour that it has by the stencils that never change, unless one that shares a new stencil
with it has the same; then it takes the least that is free. So colours follow from the stencils that there
are, whatever there was before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from supple.kernels import kernel
from supple.ordering.colouring import forbid, incidence, merge_stencils


@dataclass(frozen=True)
class LastingColours:
    """Colours (n,) by the stencils that never change, -1 where a vertex does not move; and these stencils
    (m, k), which for vertex v are the entries start[v] to start[v + 1] of element."""

    colour: np.ndarray
    stencils: np.ndarray
    start: np.ndarray
    element: np.ndarray


def lasting_colours(colour: np.ndarray, stencils: Sequence[np.ndarray]) -> LastingColours:
    merged = merge_stencils(stencils)
    start, element, _ = incidence(merged, len(colour))
    return LastingColours(colour, merged, start, element)


@kernel
def _recolour(visited, vertices, stencils, start, element, new, new_start, new_element, colour, forbidden):
    for k in visited:
        v = vertices[k]
        previous, colour[v] = colour[v], -1
        forbid(stencils, start[v], start[v + 1], element, v, colour, forbidden)
        forbid(new, new_start[k], new_start[k + 1], new_element, v, colour, forbidden)
        c = previous
        if forbidden[previous] == v:
            c = 0
            while forbidden[c] == v:
                c += 1
        colour[v] = c


def recolour(lasting: LastingColours, stencils: Sequence[np.ndarray]) -> np.ndarray:
    """Colours (n,) with further stencils (m, k) of several kinds, such that none that share one are equal."""
    colour = lasting.colour.copy()
    new = merge_stencils(stencils)
    new = np.where(colour[new] >= 0, new, -1)  # what does not move is in nobody's way
    vertices = np.unique(new[new >= 0])
    if not len(vertices):
        return colour
    numbered = np.where(new >= 0, np.searchsorted(vertices, new), -1)
    start, element, _ = incidence(numbered, len(vertices))
    forbidden = np.full(int(colour.max()) + len(vertices) + 2, -1, np.int64)
    known = lasting.stencils, lasting.start, lasting.element
    _recolour(_visited(vertices), vertices, *known, new, start, element, colour, forbidden)
    return colour


def _visited(vertices: np.ndarray) -> np.ndarray:
    """The order in which vertices are visited: by numbers mixed up [Knuth's multiplicative hashing], so that
    neighbours mostly do not follow each other."""
    return np.argsort(vertices.astype(np.uint32) * np.uint32(2654435761), kind="stable")
