"""What barriers that rub remember from step to step: how far the springs are stretched that hold what sticks,
and what slides.

A contact is a vertex and a triangle, or two edges; all that can touch in a step are among the barriers when
it begins, so that none has to be handed over to another. New ones begin unstretched.
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
"""Where in the row of a contact its vertices are, the stretch of its spring [m], whether it slides, and its
key."""

HOLDS = 1 / 3
"""κ in parts of the stiffness of a barrier."""


@dataclass(frozen=True, eq=False)
class BarrierGrip:
    """began (n, 3): where vertices were when the step began [m]; rows (m, NUMBERS) of the contacts that there
    were then."""

    began: np.ndarray
    rows: np.ndarray

    def rubs(self, found: Gaps, stiffness: np.ndarray, body: np.ndarray, friction: np.ndarray) -> Rubs:
        """Of pairs in this step, whose barriers have a stiffness (m,); body (n,): whose each vertex is;
        friction (2, bodies, bodies): μ of what sticks and of what slides."""
        slip, slides = np.zeros((len(found.keys), 3)), np.zeros(len(found.keys), bool)
        keys = self.rows[:, KEY].astype(np.int64)
        _, new, old = np.intersect1d(found.keys, keys, assume_unique=True, return_indices=True)
        slip[new], slides[new] = self.rows[old, STRETCH:SLIDES], self.rows[old, SLIDES] > 0
        one, other = body[found.vertices[:, 0]], body[found.vertices[:, -1]]
        slides |= self._slid(found.vertices, body)
        mu = friction[slides.astype(int), one, other]
        return Rubs(self.began[found.vertices], slip, mu, HOLDS * stiffness)

    def _slid(self, vertices: np.ndarray, body: np.ndarray) -> np.ndarray:
        """(m,) whether some vertex of each of those (m, 4) slid on the body that it is near to: what comes
        anew is of what slides already."""
        rows = self.rows[self.rows[:, SLIDES] > 0]
        if not len(rows):
            return np.zeros(len(vertices), bool)
        slid = _touching(rows[:, :STRETCH].astype(np.int64), body)
        return np.asarray(np.isin(_touching(vertices, body), slid).any(axis=1))


def _touching(vertices: np.ndarray, body: np.ndarray) -> np.ndarray:
    """(m, 4) a number for each vertex of a contact and the body on its other side."""
    both = body[vertices[:, 0]] + body[vertices[:, 3]]
    return np.asarray(vertices * (int(body.max()) + 1) + both[:, None] - body[vertices])


def remembered(term: Barriers, positions: np.ndarray) -> np.ndarray:
    """(m, NUMBERS) rows of the contacts that push where a step ends, with vertices at positions (n, 3)."""
    if term.rubs is None:
        return no_rows()
    found = term.near(positions)
    rub = term.rubbed(positions, found)
    k = np.maximum(term.rubs.stiffness[found.some], 1e-300)
    stretch = (rub.holds / k)[:, None] * rub.slip
    columns = term.vertices[found.some], stretch, rub.slides, term.keys[found.some]
    return np.column_stack(columns).astype(float)


def no_rows() -> np.ndarray:
    return np.zeros((0, NUMBERS))


def check_rows(vertices: int, name: str, values: Any) -> None:
    """Refuse rows that do not suit a model of so many vertices."""
    rows = floats(values)
    sound = rows.ndim == 2 and rows.shape[1] == NUMBERS and np.isfinite(rows).all()
    if not sound or not ((rows[:, :STRETCH] >= 0) & (rows[:, :STRETCH] < vertices)).all():
        raise ValueError(
            f"{name!r} of the state must be (m, {NUMBERS}) finite numbers, the first four of each row "
            f"vertices of {counted(vertices, 'vertex', 'vertices')}; got {shown(values)}"
        )
