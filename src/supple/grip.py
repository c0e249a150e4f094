"""What bodies that rub on each other remember from step to step: how far the springs are stretched that hold
what sticks, and what slides.

The spring of a contact begins where its two points were together when the step began, less what it was
stretched by at the end of the step before. What slides drags its end along. A vertex is known by the body
that it touches, whichever of its triangles that is; two edges and two triangles by their numbers. Triangles
that are new to each other begin as far stretched as those of the same body that one of them was on before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.barrier_grip import BarrierGrip, check_rows, no_rows, remembered
from supple.checks import floats, shown
from supple.contact.pairs import Meetings
from supple.terms import RubbingContacts
from supple.terms.rubbing import NUMBERS, STIFFNESS
from supple.words import counted

if TYPE_CHECKING:
    from supple.model import Model

CONTACTS = "contacts"
"""The name of what a `State` has of them: (m, WIDTH) vertices, weights, keys and numbers of each; of barriers
what `BarrierGrip` has."""

CORNERS, KEYS = 6, 2
WIDTH = 2 * CORNERS + KEYS + NUMBERS

Rough = Any
"""Contacts of bodies that rub: `RubbingContacts` or `Barriers`."""


@dataclass(frozen=True, eq=False)
class Grip:
    """start (n, 3): displacements when the step began [m]; of the contacts that there were then: keys (m, 2),
    the bodies (m,) that they were on; stretch (m, 3) [m] of their springs, stiffness (m,) [N/m]; slides
    (m,)."""

    start: np.ndarray
    keys: np.ndarray
    on: np.ndarray
    stretch: np.ndarray
    stiffness: np.ndarray
    slides: np.ndarray

    @staticmethod
    def of(term: RubbingContacts, u: np.ndarray, body: np.ndarray) -> Grip:
        """Where a step begins at displacements u (n, 3) [m], with the contacts of the last one; body (n,):
        whose each vertex is."""
        found, k = term.response(u), np.maximum(term.numbers[:, STIFFNESS], 1e-300)
        stretch = (found.holds / k)[:, None] * found.slip
        some = found.push > 0
        keys = np.zeros((len(k), KEYS), np.int64) if term.keys is None else term.keys
        on = body[term.vertices[:, -1]]
        return Grip(u.copy(), keys[some], on[some], stretch[some], k[some], found.slides[some])

    def held(self, found: Meetings, body: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of contacts in this step: o₀ (m, 3) [m], and whether each slides (m,)."""
        o = -np.einsum("mk,mki->mi", found.weights, self.start[found.vertices])
        slides = np.zeros(len(o), bool)
        _, new, old = np.intersect1d(_one(found.keys), _one(self.keys), return_indices=True)
        known = np.zeros(len(o), bool)
        known[new] = True
        o[new] += self.stretch[old]
        slides[new] = self.slides[old]
        self._hand_over(found, body, ~known, o, slides)
        along = (o * found.normal).sum(axis=1)
        return o - along[:, None] * found.normal, slides

    def _hand_over(
        self, found: Meetings, body: np.ndarray, new: np.ndarray, o: np.ndarray, slides: np.ndarray
    ) -> None:
        """Let contacts begin as the first of their triangles was stretched on the same body, on the mean."""
        places, old = np.unique(_one(np.column_stack([self.keys[:, 0], self.on])), return_inverse=True)
        wanted = _one(np.column_stack([found.keys[:, 0], body[found.vertices[:, -1]]]))
        if not len(places):
            return
        at = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
        some = new & (places[at] == wanted)
        whole = np.bincount(old, self.stiffness, len(places))
        for axis in range(3):
            mean = np.bincount(old, self.stiffness * self.stretch[:, axis], len(places)) / whole
            o[some, axis] += mean[at[some]]
        slides[some] = np.bincount(old, self.slides, len(places))[at[some]] > 0


def _one(pairs: np.ndarray) -> np.ndarray:
    """Rows (m, 2) of whole numbers as one thing each, which can be sorted."""
    whole = np.ascontiguousarray(pairs, np.int64)
    return whole.view([("a", np.int64), ("b", np.int64)]).ravel()


def owners(model: Model) -> np.ndarray:
    """(n,) the number of the body of each vertex."""
    body = np.zeros(model.vertices, np.int64)
    for k, (_, own) in enumerate(model.body_vertices):
        body[own] = k
    return body


def rubbing_terms(model: Model) -> list[int]:
    """The numbers of terms whose contacts rub: one at most."""
    return [k for k, term in enumerate(model.terms) if term.rough]


def grip_of(term: Rough, x: np.ndarray, u: np.ndarray, body: np.ndarray, rows: Any) -> Grip | BarrierGrip:
    """Where a step begins at positions x and displacements u (n, 3) [m], with the contacts of the last one;
    rows: what a state had of barriers, where the step is the first after it."""
    if term.confines:
        return BarrierGrip(x, remembered(term, x) if rows is None else rows)
    return Grip.of(term, u, body)


def contacts_to_state(term: Rough, positions: np.ndarray, rows: Any = None) -> dict[str, np.ndarray]:
    """What a state has of contacts where vertices are at positions (n, 3); rows as above."""
    if term.confines:
        return {CONTACTS: remembered(term, positions) if rows is None else rows}
    keys = np.zeros((len(term.vertices), KEYS)) if term.keys is None else term.keys
    return {CONTACTS: np.column_stack([term.vertices, term.weights, keys, term.numbers]).astype(float)}


def no_contacts(capacity: int = 0, rough: bool = True) -> RubbingContacts:
    return replace(_from_rows(np.empty((0, WIDTH))), capacity=capacity, rough=rough)


def contacts_from_state(remembered: Mapping[str, Any]) -> RubbingContacts:
    """The contacts that a state remembers; none where it has none."""
    return _from_rows(floats(remembered[CONTACTS])) if CONTACTS in remembered else no_contacts()


def _from_rows(rows: np.ndarray) -> RubbingContacts:
    vertices, weights, keys, numbers = np.split(rows, np.cumsum([CORNERS, CORNERS, KEYS]), axis=1)
    return RubbingContacts(
        vertices.astype(np.int32),
        np.ascontiguousarray(weights),
        np.ascontiguousarray(numbers),
        capacity=max(1, len(rows)),
        keys=keys.astype(np.int64),
    )


def rows_from(remembered: Mapping[str, Any]) -> np.ndarray:
    """The rows that a state remembers of barriers; none where it has none."""
    return floats(remembered[CONTACTS]) if CONTACTS in remembered else no_rows()


def check_contacts(model: Model, values: Any) -> None:
    """Refuse contacts of a state that do not suit a model."""
    (index,) = rubbing_terms(model)
    if model.terms[index].confines:
        check_rows(model.vertices, CONTACTS, values)
        return
    rows = floats(values)
    sound = rows.ndim == 2 and rows.shape[1] == WIDTH and np.isfinite(rows).all()
    if not sound or not ((rows[:, :CORNERS] >= 0) & (rows[:, :CORNERS] < model.vertices)).all():
        raise ValueError(
            f"{CONTACTS!r} of the state must be (m, {WIDTH}) finite numbers, the first six of each row "
            f"vertices of {counted(model.vertices, 'vertex', 'vertices')}; got {shown(values)}"
        )
