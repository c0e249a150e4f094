"""Fiber directions of materials in the deformed configuration."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from supple.materials import table_of
from supple.model import Model, places


def carried_fibres(model: Model, positions: np.ndarray) -> np.ndarray:
    """Fiber directions F a in the deformed configuration.

    a is the first unit direction of a tetrahedron's material, so that |F a| is the fiber stretch.

    Args:
        model: Model.
        positions: (n, 3) positions [m].

    Returns:
        (m, 3) vectors for all cells; NaN for materials without fibers.
    """
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
    """(m, 3) fiber directions at rest."""
    found = np.full((len(model.cells), 3), np.nan)
    for term in model.terms:
        names = [p.name for p in getattr(term.material, "parameters", ()) if p.kind == "direction"]
        if names and term.fills:
            here = places(term.vertices, model.cells)
            known = table_of(getattr(term.material, names[0]), len(term.vertices))
            found[here[here >= 0]] = known[here >= 0]
    return found
