"""What a scene becomes: constant arrays, terms and masses. No solver options in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from supple.terms import Term

if TYPE_CHECKING:
    from supple.embedding import Part


@dataclass(frozen=True, eq=False)
class Model:
    """A scene as flat arrays (n vertices in all).

    rest (n, 3) rest positions [m]; mass (n,) lumped masses [kg]; force (n, 3) constant external forces
    [N]; pinned (k,) sorted ids of vertices whose positions are prescribed; prescribed(t) their positions
    (k, 3) at time t [s] (t = inf is the end of every motion); terms: the energies; tets (m, 4): all
    tetrahedra, for counting inversions and for output; bodies: what they are parts of, for output.
    """

    rest: np.ndarray
    mass: np.ndarray
    force: np.ndarray
    pinned: np.ndarray
    prescribed: Callable[[float], np.ndarray]
    terms: tuple[Term, ...]
    tets: np.ndarray
    bodies: tuple[Part, ...] = ()

    @property
    def vertices(self) -> int:
        return len(self.rest)

    @property
    def elements(self) -> int:
        """Number of stencils over all terms."""
        return sum(len(term.vertices) for term in self.terms)

    @property
    def free(self) -> np.ndarray:
        """(n,) bool: True where a vertex may move."""
        mask = np.ones(self.vertices, bool)
        mask[self.pinned] = False
        return mask


@dataclass(frozen=True, eq=False)
class Conditions:
    """What may differ from one equilibrium of a model to the next: positions (k, 3) of the pinned vertices
    [m]; external forces (n, 3) [N]; one material for each elasticity term, or None for the model's; where to
    start, (n, 3) [m], or None for the rest positions."""

    pinned: np.ndarray
    force: np.ndarray
    materials: tuple | None = None
    start: np.ndarray | None = None
