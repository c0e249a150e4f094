"""What bodies that rub on each other remember from step to step: how far the springs are stretched that hold
what sticks, and what slides.

The spring of a contact begins where its two points were together when the step began, less what it was
stretched by at the end of the step before. What slides drags its end along. A vertex is known by the body
that it touches, whichever of its triangles that is, and two edges by their ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.checks import floats, shown
from supple.contact.pairs import Meetings
from supple.terms import RubbingContacts
from supple.terms.rubbing import NUMBERS, STIFFNESS
from supple.words import counted

if TYPE_CHECKING:
    from supple.model import Model

CONTACTS = "contacts"
"""The name of what a `State` has of them: (m, 8 + NUMBERS) vertices, weights and numbers of each."""


@dataclass(frozen=True, eq=False)
class Grip:
    """start (n, 3): displacements when the step began [m]; keys (m,) of the contacts there were then;
    stretch (m, 3) [m] of their springs; slides (m,)."""

    start: np.ndarray
    keys: np.ndarray
    stretch: np.ndarray
    slides: np.ndarray

    @staticmethod
    def of(term: RubbingContacts, u: np.ndarray, body: np.ndarray) -> Grip:
        """Where a step begins at displacements u (n, 3) [m], with the contacts of the last one; body (n,):
        whose each vertex is."""
        found, k = term.response(u), np.maximum(term.numbers[:, STIFFNESS], 1e-300)
        stretch = (found.holds / k)[:, None] * found.slip
        touches = found.push > 0
        keys = keys_of(term.vertices, term.weights, body)
        return Grip(u.copy(), keys[touches], stretch[touches], (found.slides & touches)[touches])

    def held(self, found: Meetings, body: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of contacts in this step: o₀ (m, 3) [m], and whether each slides (m,)."""
        c = np.einsum("mk,mki->mi", found.weights, self.start[found.vertices])
        slides = np.zeros(len(c), bool)
        keys = keys_of(found.vertices, found.weights, body)
        _, new, old = np.intersect1d(keys, self.keys, assume_unique=True, return_indices=True)
        o = -c
        o[new] += self.stretch[old]
        slides[new] = self.slides[old]
        along = (o * found.normal).sum(axis=1)
        return o - along[:, None] * found.normal, slides


def keys_of(vertices: np.ndarray, weights: np.ndarray, body: np.ndarray) -> np.ndarray:
    """(m,) of contacts: two numbers each."""
    n = len(body)
    edges = weights[:, 1] > 0
    of_vertex = np.column_stack([vertices[:, 0], -1 - body[vertices[:, -1]]])
    one, other = np.sort(vertices[:, :2], axis=1), np.sort(vertices[:, 2:], axis=1)
    of_edges = np.column_stack([one[:, 0] * n + one[:, 1], other[:, 0] * n + other[:, 1]])
    keys = np.where(edges[:, None], of_edges, of_vertex).astype(np.int64)
    return np.ascontiguousarray(keys).view([("a", np.int64), ("b", np.int64)]).ravel()


def owners(model: Model) -> np.ndarray:
    """(n,) the number of the body of each vertex."""
    body = np.zeros(model.vertices, np.int64)
    for k, (_, own) in enumerate(model.body_vertices):
        body[own] = k
    return body


def rubbing_terms(model: Model) -> list[int]:
    """The numbers of terms whose contacts rub: one at most."""
    return [k for k, term in enumerate(model.terms) if term.sticks]


def as_history(term: RubbingContacts) -> dict[str, np.ndarray]:
    return {CONTACTS: np.column_stack([term.vertices, term.weights, term.numbers]).astype(float)}


def no_contacts(capacity: int = 0, rough: bool = True) -> RubbingContacts:
    nothing = np.empty((0, 4), np.int32), np.empty((0, 4)), np.empty((0, NUMBERS))
    return RubbingContacts(*nothing, capacity, rough)


def from_history(history: Mapping[str, Any]) -> RubbingContacts:
    """The contacts of a history; none where it has none."""
    if CONTACTS not in history:
        return no_contacts()
    rows = floats(history[CONTACTS])
    return RubbingContacts(
        rows[:, :4].astype(np.int32), rows[:, 4:8].copy(), rows[:, 8:].copy(), capacity=max(1, len(rows))
    )


def check_contacts(model: Model, values: Any) -> None:
    """Refuse a history of contacts that does not suit a model."""
    rows = floats(values)
    width = 8 + NUMBERS
    sound = rows.ndim == 2 and rows.shape[1] == width and np.isfinite(rows).all()
    if not sound or not ((rows[:, :4] >= 0) & (rows[:, :4] < model.vertices)).all():
        raise ValueError(
            f"{CONTACTS!r} of the state must be (m, {width}) finite numbers, the first four of each row "
            f"vertices of {counted(model.vertices, 'vertex', 'vertices')}; got {shown(values)}"
        )
