"""Friction state of body contacts: spring elongations and sliding flags, carried from step to step.

The spring of a contact starts at the initial relative position of its points, less the elongation at the end
of the previous step. During sliding, the end of the spring is dragged along. Vertex contacts are matched by
vertex and touched body, independent of the triangle; edge and triangle contacts by both primitives. New
triangle contacts inherit the mean elongation of the first triangle's previous contacts with the same body.

Friction state of barrier contacts: spring elongations and sliding flags, carried from step to step.

A contact is a vertex-triangle or edge-edge pair. The barriers at the start of a step include all pairs that
can touch during the step, so friction states never move between pairs. New contacts start without elongation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.collision.narrow_phase.contact_pairs import Meetings
from supple.collision.narrow_phase.proximity import Gaps
from supple.support.arguments import format_value, to_floats
from supple.support.text import pluralize
from supple.terms import Barriers, PenaltyContacts
from supple.terms.contact.barrier_friction import FrictionData
from supple.terms.contact.friction import NUMBERS, STIFFNESS

if TYPE_CHECKING:
    from supple.model.model import Model


VERTICES, STRETCH, SLIDES, KEY, BARRIER_NUMBERS = 0, 4, 7, 8, 9
"""Offsets in the row of a contact: vertices, spring elongation [m], sliding flag, key; row length."""

HOLDS = 1 / 3
"""Tangential stiffness κ relative to the barrier stiffness."""


@dataclass(frozen=True, eq=False)
class BarrierGrip:
    """Friction state at the start of a step.

    Attributes:
        began: (n, 3) positions [m].
        rows: (m, BARRIER_NUMBERS) contacts of the previous step.
    """

    began: np.ndarray
    rows: np.ndarray

    def rubs(
        self, found: Gaps, stiffness: np.ndarray, body: np.ndarray, friction: np.ndarray
    ) -> FrictionData:
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
        return FrictionData(self.began[found.vertices], slip, mu, HOLDS * stiffness)

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


def history(term: Barriers, positions: np.ndarray) -> np.ndarray:
    """History rows (m, BARRIER_NUMBERS) of active contacts at the end of a step, at positions (n, 3) [m]."""
    if term.friction_data is None:
        return no_rows()
    found = term.active_contacts(positions)
    rub = term.friction_response(positions, found)
    k = np.maximum(term.friction_data.stiffness[found.indices], 1e-300)
    stretch = (rub.tangential_stiffness / k)[:, None] * rub.slip
    columns = term.vertices[found.indices], stretch, rub.slides, term.keys[found.indices]
    return np.column_stack(columns).astype(float)


def no_rows() -> np.ndarray:
    """Empty history rows."""
    return np.zeros((0, BARRIER_NUMBERS))


def check_rows(vertices: int, name: str, values: Any) -> None:
    """Validate history rows of a state for a model.

    Args:
        vertices: Number of vertices.
        name: Name of the history variable.
        values: Rows.

    Raises:
        ValueError: If shape, numbers or vertices are invalid.
    """
    rows = to_floats(values)
    sound = rows.ndim == 2 and rows.shape[1] == BARRIER_NUMBERS and np.isfinite(rows).all()
    if not sound or not ((rows[:, :STRETCH] >= 0) & (rows[:, :STRETCH] < vertices)).all():
        raise ValueError(
            f"{name!r} of the state must be (m, {BARRIER_NUMBERS}) finite numbers, the first four of each "
            f"row vertices of {pluralize(vertices, 'vertex', 'vertices')}; got {format_value(values)}"
        )


CONTACTS = "contacts"
"""History variable of a `State`: (m, WIDTH) vertices, weights, keys and numbers of each contact; for
barriers, the rows of `BarrierGrip`."""

CORNERS, KEYS = 6, 2
"""Numbers of vertices and keys per contact."""
WIDTH = 2 * CORNERS + KEYS + NUMBERS
"""Row length of a contact in the history variable."""

Rough = Any
"""Frictional contacts: `PenaltyContacts` or `Barriers`."""


@dataclass(frozen=True, eq=False)
class Grip:
    """Friction state at the start of a step.

    Attributes:
        start: (n, 3) displacements [m].
        keys: (m, 2) identifiers of the contacts of the previous step.
        on: (m,) touched body of each.
        stretch: (m, 3) spring elongations [m].
        stiffness: (m,) stiffnesses [N/m].
        slides: (m,) True for sliding contacts.
    """

    start: np.ndarray
    keys: np.ndarray
    on: np.ndarray
    stretch: np.ndarray
    stiffness: np.ndarray
    slides: np.ndarray

    @staticmethod
    def of(term: PenaltyContacts, u: np.ndarray, body: np.ndarray) -> Grip:
        """Friction state from the contacts of the previous step.

        Args:
            term: Contacts of the previous step.
            u: (n, 3) displacements at the start of the step [m].
            body: (n,) body of each vertex.
        """
        found, k = term.response(u), np.maximum(term.numbers[:, STIFFNESS], 1e-300)
        stretch = (found.tangential_stiffness / k)[:, None] * found.slip
        some = found.normal_force > 0
        keys = np.zeros((len(k), KEYS), np.int64) if term.keys is None else term.keys
        on = body[term.vertices[:, -1]]
        return Grip(u.copy(), keys[some], on[some], stretch[some], k[some], found.slides[some])

    def held(self, found: Meetings, body: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Initial slip and sliding flags of the contacts in the current step.

        Args:
            found: Contacts.
            body: (n,) body of each vertex.

        Returns:
            o₀ (m, 3) [m] and flags (m,).
        """
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
        """Initialize new contacts with the mean elongation of the same primitive on the same body."""
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
    """Structured view of integer rows (m, 2), for sorting and matching."""
    whole = np.ascontiguousarray(pairs, np.int64)
    return whole.view([("a", np.int64), ("b", np.int64)]).ravel()


def owners(model: Model) -> np.ndarray:
    """(n,) body of each vertex."""
    body = np.zeros(model.vertices, np.int64)
    for k, (_, own) in enumerate(model.body_vertices):
        body[own] = k
    return body


def rubbing_terms(model: Model) -> list[int]:
    """Indices of terms with frictional contacts, at most one."""
    return [k for k, term in enumerate(model.terms) if term.has_friction]


def grip_of(term: Rough, x: np.ndarray, u: np.ndarray, body: np.ndarray, rows: Any) -> Grip | BarrierGrip:
    """Friction state at the start of a step.

    Args:
        term: Contacts of the previous step.
        x: (n, 3) positions [m].
        u: (n, 3) displacements [m].
        body: (n,) body of each vertex.
        rows: History rows of barriers in the first step after a restored state, else None.
    """
    if term.intersection_free:
        return BarrierGrip(x, history(term, x) if rows is None else rows)
    return Grip.of(term, u, body)


def contacts_to_state(term: Rough, positions: np.ndarray, rows: Any = None) -> dict[str, np.ndarray]:
    """History variable of contacts at positions (n, 3) [m]; `rows` as in `grip_of`."""
    if term.intersection_free:
        return {CONTACTS: history(term, positions) if rows is None else rows}
    keys = np.zeros((len(term.vertices), KEYS)) if term.keys is None else term.keys
    return {CONTACTS: np.column_stack([term.vertices, term.weights, keys, term.numbers]).astype(float)}


def no_contacts(capacity: int = 0, rough: bool = True) -> PenaltyContacts:
    """Empty contact term with a given capacity."""
    return replace(_from_rows(np.empty((0, WIDTH))), capacity=capacity, has_friction=rough)


def contacts_from_state(history: Mapping[str, Any]) -> PenaltyContacts:
    """Restore contacts from the history variables of a state; empty without them."""
    return _from_rows(to_floats(history[CONTACTS])) if CONTACTS in history else no_contacts()


def _from_rows(rows: np.ndarray) -> PenaltyContacts:
    vertices, weights, keys, numbers = np.split(rows, np.cumsum([CORNERS, CORNERS, KEYS]), axis=1)
    return PenaltyContacts(
        vertices.astype(np.int32),
        np.ascontiguousarray(weights),
        np.ascontiguousarray(numbers),
        capacity=max(1, len(rows)),
        keys=keys.astype(np.int64),
    )


def rows_from(history: Mapping[str, Any]) -> np.ndarray:
    """Barrier history rows of a state; empty without them."""
    return to_floats(history[CONTACTS]) if CONTACTS in history else no_rows()


def check_contacts(model: Model, values: Any) -> None:
    """Validate the contact history of a state for a model.

    Raises:
        ValueError: If shape, numbers or vertices are invalid.
    """
    (index,) = rubbing_terms(model)
    if model.terms[index].intersection_free:
        check_rows(model.vertices, CONTACTS, values)
        return
    rows = to_floats(values)
    sound = rows.ndim == 2 and rows.shape[1] == WIDTH and np.isfinite(rows).all()
    if not sound or not ((rows[:, :CORNERS] >= 0) & (rows[:, :CORNERS] < model.vertices)).all():
        raise ValueError(
            f"{CONTACTS!r} of the state must be (m, {WIDTH}) finite numbers, the first six of each row "
            f"vertices of {pluralize(model.vertices, 'vertex', 'vertices')}; got {format_value(values)}"
        )
