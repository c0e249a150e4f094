"""Initial gaps of barrier contact: rest gaps, and warnings for small ones."""

from __future__ import annotations

import numpy as np

from supple.contact.gaps import Gaps, gaps
from supple.contact.pairs import Surfaces


def rest_gaps(surfaces: Surfaces, thickness: float) -> np.ndarray:
    """Smallest rest gap of each pair of bodies.

    Args:
        surfaces: Surfaces of all bodies.
        thickness: Upper limit of the gaps, and value within a body [m].

    Returns:
        (bodies, bodies) gaps [m].
    """
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
    """Warnings about initial gaps below the thickness, at which the barrier accelerates bodies.

    Args:
        surfaces: Surfaces of all bodies.
        found: Proximity pairs at rest.
        reach: (m,) barrier distances [m].
        stiffness: (bodies,) k [N/m].
        thickness: (bodies, bodies) thickness of each pair of bodies [m].
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
