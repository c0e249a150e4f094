"""Fibres of materials that have them, as they run where a body has been deformed to."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from supple.materials import table_of
from supple.model import Model, places


def carried_fibres(model: Model, positions: np.ndarray) -> np.ndarray:
    """F a (m, 3) of all cells at positions (n, 3) [m]: a is the first direction that the material of a
    tetrahedron has, of length 1, so that |F a| is how far its fibres are stretched; NaN where it has none."""
    directions, cells = _directions(model), model.cells
    found = np.full((len(cells), 3), np.nan)
    here = np.flatnonzero(np.isfinite(directions[:, 0]))
    if len(here):
        corners = cells[here]
        rest, now = (x[corners[:, 1:]] - x[corners[:, :1]] for x in (model.rest, positions))
        by_edges = np.linalg.solve(rest.transpose(0, 2, 1), directions[here][:, :, None])
        found[here] = np.einsum("eki,ek->ei", now, by_edges[:, :, 0])
    return found


@lru_cache(maxsize=2)
def _directions(model: Model) -> np.ndarray:
    """(m, 3) at rest."""
    found = np.full((len(model.cells), 3), np.nan)
    for term in model.terms:
        names = [p.name for p in getattr(term.material, "parameters", ()) if p.kind == "direction"]
        if names and term.fills:
            here = places(term.vertices, model.cells)
            known = table_of(getattr(term.material, names[0]), len(term.vertices))
            found[here[here >= 0]] = known[here >= 0]
    return found
