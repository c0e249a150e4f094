"""Friction state of barrier contacts: spring elongations and sliding flags, carried from step to step.

A contact is a vertex-triangle or edge-edge pair. The barriers at the start of a step include all pairs that
can touch during the step, so friction states never move between pairs. New contacts start without elongation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.checks import floats, shown
from supple.contact.gaps import Gaps
from supple.terms import Barriers
from supple.terms.barrier_rubbing import Rubs
from supple.words import counted

VERTICES, STRETCH, SLIDES, KEY, NUMBERS = 0, 4, 7, 8, 9
"""Offsets in the row of a contact: vertices, spring elongation [m], sliding flag, key; row length."""

HOLDS = 1 / 3
"""Tangential stiffness κ relative to the barrier stiffness."""


@dataclass(frozen=True, eq=False)
class BarrierGrip:
    """Friction state at the start of a step.

    Attributes:
        began: (n, 3) positions [m].
        rows: (m, NUMBERS) contacts of the previous step.
    """

    began: np.ndarray
    rows: np.ndarray

    def rubs(self, found: Gaps, stiffness: np.ndarray, body: np.ndarray, friction: np.ndarray) -> Rubs:
        """Friction data of pairs in the current step.

        Args:
            found: Proximity pairs.
            stiffness: (m,) barrier stiffnesses [N/m].
            body: (n,) body of each vertex.
            friction: (2, bodies, bodies) static and kinetic friction coefficients.
        """
        slip, slides = np.zeros((len(found.keys), 3)), np.zeros(len(found.keys), bool)
        keys = self.rows[:, KEY].astype(np.int64)
        _, new, old = np.intersect1d(found.keys, keys, assume_unique=True, return_indices=True)
        slip[new], slides[new] = self.rows[old, STRETCH:SLIDES], self.rows[old, SLIDES] > 0
        one, other = body[found.vertices[:, 0]], body[found.vertices[:, -1]]
        slides |= self._slid(found.vertices, body)
        mu = friction[slides.astype(int), one, other]
        return Rubs(self.began[found.vertices], slip, mu, HOLDS * stiffness)

    def _slid(self, vertices: np.ndarray, body: np.ndarray) -> np.ndarray:
        """(m,) True for pairs with a vertex that slid on the other body; new contacts inherit that state."""
        rows = self.rows[self.rows[:, SLIDES] > 0]
        if not len(rows):
            return np.zeros(len(vertices), bool)
        slid = _touching(rows[:, :STRETCH].astype(np.int64), body)
        return np.asarray(np.isin(_touching(vertices, body), slid).any(axis=1))


def _touching(vertices: np.ndarray, body: np.ndarray) -> np.ndarray:
    """(m, 4) integer key of each vertex of a contact and the body on the other side."""
    both = body[vertices[:, 0]] + body[vertices[:, 3]]
    return np.asarray(vertices * (int(body.max()) + 1) + both[:, None] - body[vertices])


def remembered(term: Barriers, positions: np.ndarray) -> np.ndarray:
    """History rows (m, NUMBERS) of active contacts at the end of a step, at positions (n, 3) [m]."""
    if term.rubs is None:
        return no_rows()
    found = term.near(positions)
    rub = term.rubbed(positions, found)
    k = np.maximum(term.rubs.stiffness[found.some], 1e-300)
    stretch = (rub.holds / k)[:, None] * rub.slip
    columns = term.vertices[found.some], stretch, rub.slides, term.keys[found.some]
    return np.column_stack(columns).astype(float)


def no_rows() -> np.ndarray:
    """Empty history rows."""
    return np.zeros((0, NUMBERS))


def check_rows(vertices: int, name: str, values: Any) -> None:
    """Validate history rows of a state for a model.

    Args:
        vertices: Number of vertices.
        name: Name of the history variable.
        values: Rows.

    Raises:
        ValueError: If shape, numbers or vertices are invalid.
    """
    rows = floats(values)
    sound = rows.ndim == 2 and rows.shape[1] == NUMBERS and np.isfinite(rows).all()
    if not sound or not ((rows[:, :STRETCH] >= 0) & (rows[:, :STRETCH] < vertices)).all():
        raise ValueError(
            f"{name!r} of the state must be (m, {NUMBERS}) finite numbers, the first four of each row "
            f"vertices of {counted(vertices, 'vertex', 'vertices')}; got {shown(values)}"
        )
