"""Friction states of body contacts: spring elongations and sliding flags, carried from step to step.

The spring of a contact starts at the initial relative position of its points, less the elongation at the end
of the previous step. During sliding, the end of the spring is dragged along. Vertex contacts are matched by
vertex and touched body, independent of the triangle; edge and triangle contacts by both primitives. New
triangle contacts inherit the mean elongation of the first triangle's previous contacts with the same body.

With barriers, a contact is a vertex-triangle or edge-edge pair. The barriers at the start of a step include
all pairs that can touch during the step, so friction states never move between pairs. New contacts start
without elongation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.collision.narrow_phase.contact_pairs import ContactPairs
from supple.collision.narrow_phase.proximity_bounds import ProximityPairs
from supple.support.arguments import format_value, to_floats
from supple.terms import Barriers, PenaltyContacts
from supple.terms.contact.barrier_friction import FrictionData
from supple.terms.contact.penalty import NUMBERS, STIFFNESS

if TYPE_CHECKING:
    from supple.model.model import Model


VERTICES, STRETCH, SLIDES, KEY, BARRIER_NUMBERS = 0, 4, 7, 8, 9
"""Offsets in the row of a contact: vertices, spring elongation [m], sliding flag, key; row length."""

TANGENTIAL_STIFFNESS = 1 / 3
"""Tangential stiffness κ relative to the barrier stiffness."""


@dataclass(frozen=True, eq=False)
class BarrierFrictionState:
    """Friction state at the start of a step.

    Attributes:
        start: (n, 3) positions [m].
        rows: (m, BARRIER_NUMBERS) contacts of the previous step.
    """

    start: np.ndarray
    rows: np.ndarray

    def friction_data(
        self, pairs: ProximityPairs, stiffness: np.ndarray, body: np.ndarray, friction: np.ndarray
    ) -> FrictionData:
        """Friction data of pairs in the current step.

        Args:
            pairs: Proximity pairs.
            stiffness: (m,) barrier stiffnesses [N/m].
            body: (n,) body of each vertex.
            friction: (2, bodies, bodies) static and kinetic friction coefficients.
        """
        slip, slides = np.zeros((len(pairs.keys), 3)), np.zeros(len(pairs.keys), bool)
        keys = self.rows[:, KEY].astype(np.int64)
        _, new, old = np.intersect1d(pairs.keys, keys, assume_unique=True, return_indices=True)
        slip[new], slides[new] = self.rows[old, STRETCH:SLIDES], self.rows[old, SLIDES] > 0
        first, second = body[pairs.vertices[:, 0]], body[pairs.vertices[:, -1]]
        slides |= self._slid_before(pairs.vertices, body)
        mu = friction[slides.astype(int), first, second]
        return FrictionData(self.start[pairs.vertices], slip, mu, TANGENTIAL_STIFFNESS * stiffness)

    def _slid_before(self, vertices: np.ndarray, body: np.ndarray) -> np.ndarray:
        """(m,) True for pairs with a vertex that slid on the other body; new contacts inherit that state."""
        rows = self.rows[self.rows[:, SLIDES] > 0]
        if not len(rows):
            return np.zeros(len(vertices), bool)
        slid = _pair_keys(rows[:, :STRETCH].astype(np.int64), body)
        return np.asarray(np.isin(_pair_keys(vertices, body), slid).any(axis=1))


def _pair_keys(vertices: np.ndarray, body: np.ndarray) -> np.ndarray:
    """(m, 4) integer key of each vertex of a contact and the body on the other side."""
    both = body[vertices[:, 0]] + body[vertices[:, 3]]
    return np.asarray(vertices * (int(body.max()) + 1) + both[:, None] - body[vertices])


def history_rows(term: Barriers, positions: np.ndarray) -> np.ndarray:
    """History rows (m, BARRIER_NUMBERS) of active contacts at the end of a step, at positions (n, 3) [m]."""
    if term.friction_data is None:
        return no_rows()
    active = term.active_contacts(positions)
    friction = term.friction_response(positions, active)
    k = np.maximum(term.friction_data.stiffness[active.indices], 1e-300)
    stretch = (friction.tangential_stiffness / k)[:, None] * friction.slip
    columns = term.vertices[active.indices], stretch, friction.slides, term.keys[active.indices]
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
    is_valid = rows.ndim == 2 and rows.shape[1] == BARRIER_NUMBERS and np.isfinite(rows).all()
    if not is_valid or not ((rows[:, :STRETCH] >= 0) & (rows[:, :STRETCH] < vertices)).all():
        raise ValueError(
            f"{name!r} of the state must be (m, {BARRIER_NUMBERS}) finite numbers that begin with four "
            f"vertex ids below {vertices:,}; got {format_value(values)}"
        )


CONTACTS = "contacts"
"""History variable of a `State`: (m, ROW_LENGTH) vertices, weights, keys and numbers of each contact; for
barriers, the rows of `BarrierFrictionState`."""

CORNERS, KEYS = 6, 2
"""Numbers of vertices and keys per contact."""
ROW_LENGTH = 2 * CORNERS + KEYS + NUMBERS
"""Row length of a contact in the history variable."""

FrictionalContacts = Any
"""Frictional contacts: `PenaltyContacts` or `Barriers`."""


@dataclass(frozen=True, eq=False)
class FrictionState:
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
    def of(term: PenaltyContacts, u: np.ndarray, body: np.ndarray) -> FrictionState:
        """Friction state from the contacts of the previous step.

        Args:
            term: Contacts of the previous step.
            u: (n, 3) displacements at the start of the step [m].
            body: (n,) body of each vertex.
        """
        response, k = term.response(u), np.maximum(term.numbers[:, STIFFNESS], 1e-300)
        stretch = (response.tangential_stiffness / k)[:, None] * response.slip
        is_active = response.normal_force > 0
        keys = np.zeros((len(k), KEYS), np.int64) if term.keys is None else term.keys
        on = body[term.vertices[:, -1]]
        return FrictionState(
            u.copy(),
            keys[is_active],
            on[is_active],
            stretch[is_active],
            k[is_active],
            response.slides[is_active],
        )

    def initial_slip(self, contacts: ContactPairs, body: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Initial slip and sliding flags of the contacts in the current step.

        Args:
            contacts: Contacts.
            body: (n,) body of each vertex.

        Returns:
            o₀ (m, 3) [m] and flags (m,).
        """
        o = -np.einsum("mk,mki->mi", contacts.weights, self.start[contacts.vertices])
        slides = np.zeros(len(o), bool)
        _, new, old = np.intersect1d(
            _as_structured(contacts.keys), _as_structured(self.keys), return_indices=True
        )
        has_history = np.zeros(len(o), bool)
        has_history[new] = True
        o[new] += self.stretch[old]
        slides[new] = self.slides[old]
        self._inherit_mean_elongation(contacts, body, ~has_history, o, slides)
        along = (o * contacts.normal).sum(axis=1)
        return o - along[:, None] * contacts.normal, slides

    def _inherit_mean_elongation(
        self, contacts: ContactPairs, body: np.ndarray, new: np.ndarray, o: np.ndarray, slides: np.ndarray
    ) -> None:
        """Initialize new contacts with the mean elongation of the same primitive on the same body."""
        primitives, old = np.unique(
            _as_structured(np.column_stack([self.keys[:, 0], self.on])), return_inverse=True
        )
        requested = _as_structured(np.column_stack([contacts.keys[:, 0], body[contacts.vertices[:, -1]]]))
        if not len(primitives):
            return
        at = np.minimum(np.searchsorted(primitives, requested), len(primitives) - 1)
        inherits = new & (primitives[at] == requested)
        total = np.bincount(old, self.stiffness, len(primitives))
        for axis in range(3):
            mean = np.bincount(old, self.stiffness * self.stretch[:, axis], len(primitives)) / total
            o[inherits, axis] += mean[at[inherits]]
        slides[inherits] = np.bincount(old, self.slides, len(primitives))[at[inherits]] > 0


def _as_structured(pairs: np.ndarray) -> np.ndarray:
    """Structured view of integer rows (m, 2), for sorting and matching."""
    rows = np.ascontiguousarray(pairs, np.int64)
    return rows.view([("a", np.int64), ("b", np.int64)]).ravel()


def owners(model: Model) -> np.ndarray:
    """(n,) body of each vertex."""
    body = np.zeros(model.vertices, np.int64)
    for k, (_, own) in enumerate(model.body_vertices):
        body[own] = k
    return body


def frictional_terms(model: Model) -> list[int]:
    """Indices of terms with frictional contacts, at most one."""
    return [k for k, term in enumerate(model.terms) if term.has_friction]


def friction_state_of(
    term: FrictionalContacts, x: np.ndarray, u: np.ndarray, body: np.ndarray, rows: Any
) -> FrictionState | BarrierFrictionState:
    """Friction state at the start of a step.

    Args:
        term: Contacts of the previous step.
        x: (n, 3) positions [m].
        u: (n, 3) displacements [m].
        body: (n,) body of each vertex.
        rows: History rows of barriers in the first step after a restored state, else None.
    """
    if term.intersection_free:
        return BarrierFrictionState(x, history_rows(term, x) if rows is None else rows)
    return FrictionState.of(term, u, body)


def contacts_to_state(
    term: FrictionalContacts, positions: np.ndarray, rows: Any = None
) -> dict[str, np.ndarray]:
    """History variable of contacts at positions (n, 3) [m]; `rows` as in `friction_state_of`."""
    if term.intersection_free:
        return {CONTACTS: history_rows(term, positions) if rows is None else rows}
    keys = np.zeros((len(term.vertices), KEYS)) if term.keys is None else term.keys
    return {CONTACTS: np.column_stack([term.vertices, term.weights, keys, term.numbers]).astype(float)}


def no_contacts(capacity: int = 0, has_friction: bool = True) -> PenaltyContacts:
    """Empty contact term with a given capacity."""
    return replace(_from_rows(np.empty((0, ROW_LENGTH))), capacity=capacity, has_friction=has_friction)


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
    (index,) = frictional_terms(model)
    if model.terms[index].intersection_free:
        check_rows(model.vertices, CONTACTS, values)
        return
    rows = to_floats(values)
    is_valid = rows.ndim == 2 and rows.shape[1] == ROW_LENGTH and np.isfinite(rows).all()
    if not is_valid or not ((rows[:, :CORNERS] >= 0) & (rows[:, :CORNERS] < model.vertices)).all():
        raise ValueError(
            f"{CONTACTS!r} of the state must be (m, {ROW_LENGTH}) finite numbers that begin with six vertex "
            f"ids below {model.vertices:,}; got {format_value(values)}"
        )
