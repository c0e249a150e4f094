"""User-defined energy terms of a scene."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from supple.scene.errors import SceneError
from supple.terms import Term

if TYPE_CHECKING:
    from supple.scene.scene import Scene

TermMaker = Callable[[np.ndarray], Term]
"""Function of the rest positions (n, 3) [m] of all vertices that builds a term."""


def make_user_terms(scene: Scene) -> tuple[Term, ...]:
    """Build and check user-defined scene terms."""
    rest = np.concatenate([body.points for body in scene.bodies])
    terms = tuple(make(rest) for make in scene.user_terms)
    for term in terms:
        ids = np.asarray(term.vertices)
        if ids.ndim != 2 or ids.dtype.kind not in "iu":
            raise SceneError(
                f"A term has whole numbers (m, k) as vertices; {term.name} have {ids.shape} of {ids.dtype}."
            )
        if ids.size and not (ids.min() >= 0 and ids.max() < len(rest)):
            raise SceneError(
                f"The scene has vertices 0 to {len(rest) - 1}, and {term.name} between {ids.min()} and "
                f"{ids.max()}."
            )
    return terms
