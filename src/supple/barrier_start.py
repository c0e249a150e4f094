"""Where bodies start that a barrier keeps apart: their gaps at rest, and which of these are too small."""

from __future__ import annotations

import numpy as np

from supple.contact.gaps import Gaps, gaps
from supple.contact.pairs import Surfaces


def rest_gaps(surfaces: Surfaces, thickness: float) -> np.ndarray:
    """(bodies, bodies) [m] smallest gap of each pair of bodies at rest, at most the thickness [m]; within a
    body the thickness."""
    found = gaps(surfaces, surfaces.rest, thickness)
    body = surfaces.body[found.vertices[:, [0, -1]]]
    gap = np.full((len(surfaces.flat), len(surfaces.flat)), thickness)
    others = body[:, 0] != body[:, 1]
    np.minimum.at(gap, tuple(body[others].T), found.distance[others])
    return np.minimum(gap, gap.T)


def start_notes(
    surfaces: Surfaces,
    found: Gaps,
    reach: np.ndarray,
    stiffness: np.ndarray,
    thickness: np.ndarray,
    names: tuple[str, ...],
) -> list[str]:
    """Sentences on bodies that start so near to each other that the barrier accelerates them.

    Args:
        surfaces: Surfaces of all bodies.
        found: Pairs that are near at rest.
        reach: (m,) distance [m] below which each of them pushes.
        stiffness: (bodies,) k [N/m].
        thickness: (bodies, bodies) [m] of each pair of bodies.
        names: Names of the bodies.
    """
    body = np.sort(surfaces.body[found.vertices[:, [0, -1]]], axis=1)
    ratio = np.clip(found.distance / reach, 1e-300, 1.0)
    stored = -stiffness[body].min(axis=1) * (reach * (1 - ratio)) ** 2 * np.log(ratio)
    sentences = []
    for one, other in np.argwhere(np.triu(np.ones_like(thickness, bool), 1)):
        pairs = (body == (one, other)).all(axis=1)
        gap = found.distance[pairs].min(initial=np.inf)
        if gap < thickness[one, other]:
            sentences.append(
                f"{names[one]!r} and {names[other]!r} start {gap:.2g} m apart, nearer than "
                f"{thickness[one, other]:.2g} m, the thickness of their contact: the barrier pushes them "
                f"apart with up to {stored[pairs].sum():.2g} J; a larger gap or a smaller thickness avoids "
                "that"
            )
    return sentences
