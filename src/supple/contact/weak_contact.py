"""Penalty contact between bodies by dynamic weak constraints [PBNG sections 4.1, 10.1 and 11.2].

Surfaces closer than a thickness h, or penetrating, are separated by the energy ½ k (n · C - h)², with the
vector C between the contact points and the contact normal n; there is no adhesion. For overlapping triangles,
k is proportional to the overlap area, so a uniform pressure is transmitted uniformly. Solids that are closer
than h at rest have contact at their distance at rest, without force. Friction is a spring
between sticking points (`terms/contact/penalty.py`). Contact points and normals are updated every few
iterations, and before a solve counts as converged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.collision.broad_phase.broad_phase import BroadPhase
from supple.collision.broad_phase.positions import Points
from supple.collision.ccd.intersections import any_pair_crosses, find_crossings
from supple.collision.narrow_phase.contact_pairs import ContactPairs, Surfaces
from supple.contact.state.contact_report import BodyContactReport
from supple.contact.state.friction_state import (
    CONTACTS,
    FrictionState,
    contacts_from_state,
    no_contacts,
    owners,
)
from supple.contact.thickness_effect import thickness_effect
from supple.kernels import HOST, Runner
from supple.model.dynamic_term import DynamicTerm
from supple.model.model import Model
from supple.terms import PenaltyContacts
from supple.terms.contact.penalty import force_change, forces_on_bodies, forces_on_vertices

if TYPE_CHECKING:
    from supple.problem import Problem

THICKNESS, STIFFNESS, REACH = 0.01, 10.0, 0.5
"""Defaults relative to the mean edge length e of the surfaces: thickness [e], search depth for penetrating
vertices [e], stiffness [E e] with the largest Young's modulus E."""

MAX_FORCE_CHANGE, MAX_RESIDUAL_CHANGE, MIN_FORCE_CHANGE = 1e-2, 0.5, 1e-4
"""Tolerances of contact updates within a step. Contacts are kept if their replacement changes forces by at
most the first fraction of the largest force and the second fraction of the residual; at convergence, by at
most the third fraction of the largest force."""

MIN_STRENGTH = 1e-6
"""Strength of contacts, relative to those of whole triangles, below which they are rounding."""

DETECTION_INTERVAL = 10
"""Iterations between contact updates."""


@dataclass(frozen=True, eq=False)
class WeakContact(DynamicTerm):
    """Penalty contact method, a `DynamicTerm` that updates the contacts of a problem.

    Attributes:
        surfaces: Surfaces of all bodies.
        thickness: h [m].
        stiffness: k [N/m].
        reach: Largest penetration depth in another body [m].
        rest: (n, 3) rest positions [m].
        friction: (2, bodies, bodies) static and kinetic friction coefficients of all pairs of bodies.
        every: Iterations between updates.
        relaxed_at_rest: True if solids that touch at rest exert no force on each other there.
    """

    surfaces: Surfaces
    thickness: float
    stiffness: float
    reach: float
    rest: np.ndarray
    friction: np.ndarray
    every: int | None = DETECTION_INTERVAL
    relaxed_at_rest: bool = True

    def update(self, problem: Problem, time: float) -> PenaltyContacts | None:
        """Update contacts at the current positions; None if the existing contacts are equivalent."""
        index = next(k for k in range(len(problem.model.terms)) if self._is_mine(problem.model, k))
        contacts = self.detect(problem)
        new = self.term(contacts, problem.dynamic_terms.friction_states.get(index))
        old: Any = problem.model.terms[index]
        return unless_equivalent(old, new, problem)

    def evaluate_at(
        self, model: Model, x: np.ndarray, time: float, history: Mapping[str, Any]
    ) -> PenaltyContacts:
        """Contacts at given positions, outside of a solve.

        Args:
            model: Model with this method.
            x: (n, 3) positions [m].
            history: History variables of a state, which contain frictional contacts.
        """
        if self.has_friction and CONTACTS in history:
            return contacts_from_state(history)
        friction_state = (
            FrictionState.of(no_contacts(), x - model.rest, self.surfaces.body) if self.has_friction else None
        )
        contacts = self.detect_at(x)
        return self.term(contacts, friction_state, max(1, len(contacts.distance)))

    @property
    def has_friction(self) -> bool:
        """True if any pair of bodies has friction."""
        return bool(self.friction.any())

    def _is_mine(self, model: Model, index: int) -> bool:
        return (index, self) in model.dynamic_terms

    @cached_property
    def _detector(self) -> BroadPhase:
        return BroadPhase(self.surfaces)

    def _bodies(self, contacts: ContactPairs) -> tuple[np.ndarray, np.ndarray]:
        """Bodies (m,) of both contact points."""
        body = self.surfaces.body
        return body[contacts.vertices[:, 0]], body[contacts.vertices[:, -1]]

    @cached_property
    def rest_approach(self) -> np.ndarray:
        """(bodies, bodies) h minus the distance of two solids at rest, from 0 to h [m]; 0 for shells.

        The contact of two bodies exerts no force up to this approach. Surfaces of shells need their
        thickness: they have no inside.
        """
        flat = self.surfaces.flat
        approach = np.zeros((len(flat), len(flat)))
        if not self.relaxed_at_rest:
            return approach
        contacts = self.surfaces.contact_pairs(self.rest, self.thickness, self.reach)
        first, second = self._bodies(contacts)
        excess = np.minimum(contacts.thickness - contacts.distance, self.thickness)
        solid = (first != second) & ~flat[first] & ~flat[second]
        np.maximum.at(approach, (first[solid], second[solid]), excess[solid])
        return np.maximum(approach, approach.T)

    def max_penetration(self, problem: Problem) -> float:
        """Largest depth of passed surfaces [m], beyond that by which bodies that touch at rest yield.

        Solids that intersect without contact forces have passed each other by more than the search depth.
        """
        contacts = self.detect(problem)
        first, second = self._bodies(contacts)
        distance = contacts.distance + self.rest_approach[first, second]
        depth = -float(distance.min(initial=0.0))
        pushing = (distance < contacts.thickness) & (contacts.strength > MIN_STRENGTH)
        first, second = first[pushing], second[pushing]
        x = problem.positions
        pairs = self._overlapping_boxes(x)
        pairs[first, second] = pairs[second, first] = False
        if any_pair_crosses(self.surfaces, x, np.argwhere(np.triu(pairs)), problem.device):
            crossings = find_crossings(self.surfaces, x, problem.device)
            depths = [max(each.depth, self.reach) for each in crossings if pairs[each.bodies]]
            depth = max([depth, *depths])
        return max(0.0, depth)

    def _overlapping_boxes(self, x: np.ndarray) -> np.ndarray:
        """(bodies, bodies) True for two solids whose bounding boxes overlap, at positions x (n, 3) [m]."""
        flat, body = self.surfaces.flat, self.surfaces.body
        low, high = np.full((len(flat), 3), np.inf), np.full((len(flat), 3), -np.inf)
        present, start = np.unique(body[self.surfaces.own], return_index=True)
        surface = x[self.surfaces.own]
        low[present], high[present] = (bound.reduceat(surface, start) for bound in (np.minimum, np.maximum))
        overlap = (np.maximum(low[:, None], low[None]) < np.minimum(high[:, None], high[None])).all(axis=2)
        solid = ~(flat[:, None] | flat[None])
        return np.asarray(overlap & solid & ~np.eye(len(flat), dtype=bool))

    def detect(self, problem: Problem) -> ContactPairs:
        """Find contacts at the positions of the problem, on its device."""
        device = problem.device
        if not device.is_remote:
            return self.detect_at(problem.positions, device)
        device.download(problem.u)
        points = Points.displaced(self.rest, problem.u, device)
        return self.surfaces.contact_pairs_at(points, self.thickness, self.reach, device, self._detector)

    def detect_at(self, x: np.ndarray, runner: Runner = HOST) -> ContactPairs:
        """Find contacts at positions x (n, 3) [m]."""
        return self.surfaces.contact_pairs(x, self.thickness, self.reach, runner, self._detector)

    def count_intersections(self, problem: Problem) -> int:
        """Number of edge-triangle intersections with a shell; contacts of solids have a depth instead."""
        flat = self.surfaces.flat
        if not flat.any():
            return 0
        intersections = find_crossings(self.surfaces, problem.positions, problem.device)
        return sum(each.count for each in intersections if flat[list(each.bodies)].any())

    def contact_points(self, x: np.ndarray) -> np.ndarray:
        """(m, 3) contact points on the first surface [m], at positions x (n, 3) [m]."""
        contacts = self.detect_at(x)
        return np.einsum("mk,mki->mi", np.maximum(contacts.weights, 0.0), x[contacts.vertices])

    def term(
        self, contacts: ContactPairs, friction_state: FrictionState | None = None, capacity: int = 0
    ) -> PenaltyContacts:
        """Contact energy term.

        Args:
            contacts: Contacts.
            friction_state: Friction state at the start of the step, if there is friction.
            capacity: Largest number of contacts.
        """
        first, second = self._bodies(contacts)
        slip, slides = np.zeros((len(first), 3)), np.zeros(len(first), bool)
        if friction_state is not None:
            slip, slides = friction_state.initial_slip(contacts, self.surfaces.body)
        gap = (contacts.normal * np.einsum("mk,mki->mi", contacts.weights, self.rest[contacts.vertices])).sum(
            axis=1
        )
        mu = self.friction[slides.astype(int), first, second]
        reach = contacts.thickness - self.rest_approach[first, second]
        columns = contacts.normal, slip, gap - reach, self.stiffness * contacts.strength, mu
        vertices, numbers = contacts.vertices.astype(np.int32), np.column_stack(columns)
        return PenaltyContacts(
            vertices, contacts.weights, numbers, capacity, self.has_friction, contacts.keys
        )


def unless_equivalent(old: PenaltyContacts, new: PenaltyContacts, problem: Problem) -> PenaltyContacts | None:
    """Return the new contacts; None if equivalent to the old contacts."""
    if problem.dynamic_terms.beginning:
        return None if _are_equal(old, new) else new
    return new if _changes_forces(old, new, problem) else None


def _changes_forces(old: PenaltyContacts, new: PenaltyContacts, problem: Problem) -> bool:
    """True if new contacts change vertex forces by more than the tolerances."""
    u, dynamic_terms = problem.states.vectors(problem.u)[0], problem.dynamic_terms
    change, most, length = force_change(old, new, u)
    if change <= MIN_FORCE_CHANGE * most:
        return False
    missing = MAX_RESIDUAL_CHANGE * dynamic_terms.residual
    return bool(dynamic_terms.balanced or change > MAX_FORCE_CHANGE * most or length > missing)


def _are_equal(old: PenaltyContacts, new: PenaltyContacts) -> bool:
    pairs = ((old.vertices, new.vertices), (old.weights, new.weights), (old.numbers, new.numbers))
    return all(np.array_equal(a, b) for a, b in pairs)


def with_weak_contact(
    model: Model,
    triangles: np.ndarray,
    flat: np.ndarray,
    young: float,
    thickness: float | None = None,
    stiffness: float | None = None,
    friction: np.ndarray | None = None,
    every: int = DETECTION_INTERVAL,
) -> Model:
    """Add penalty contact to a model.

    Args:
        model: Model without it.
        triangles: (t, 3) surface triangles.
        flat: (bodies,) True for shells, which have no inside.
        young: Largest Young's modulus of the bodies [Pa].
        thickness: h [m], by default a fraction of the mean edge.
        stiffness: k [N/m], by default in proportion to `young`.
        friction: (2, bodies, bodies) static and kinetic friction coefficients, or None.
        every: Iterations between contact updates.
    """
    surfaces = Surfaces(triangles, owners(model), model.rest, 0.0, flat)
    edge = surfaces.edge
    thick = THICKNESS * edge if thickness is None else thickness
    reach = max(REACH * edge, thick)
    surfaces.clear = max(reach, 2 * thick)
    stiff = STIFFNESS * young * edge if stiffness is None else stiffness
    bodies = len(model.body_vertices)
    coefficients = np.zeros((2, bodies, bodies)) if friction is None else friction
    contact = WeakContact(surfaces, thick, stiff, reach, model.rest, coefficients, every)
    capacity = max(64, len(surfaces.vertices))
    none = no_contacts(capacity, contact.has_friction)
    dynamic_terms = (*model.dynamic_terms, (len(model.terms), contact))
    return replace(model, terms=(*model.terms, none), dynamic_terms=dynamic_terms)


def contact_forces_on_vertices(term: PenaltyContacts, x: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """(n, 3) contact forces on vertices [N] at positions x (n, 3) [m]."""
    return forces_on_vertices(term, x - rest)


def report_penalty_contact(problem: Problem) -> BodyContactReport | None:
    """Report contact at the current displacements of a problem; None without penalty contact."""
    model = problem.model
    methods = [
        (k, dynamic_term) for k, dynamic_term in model.dynamic_terms if isinstance(dynamic_term, WeakContact)
    ]
    if not methods:
        return None
    ((index, contact),) = methods
    term: Any = model.terms[index]
    u, body, names = problem.states.vectors(problem.u)[0], contact.surfaces.body, model.body_vertices
    forces, complementarity = forces_on_bodies(term, u, model.rest, body, len(names))
    by_body = {name: (fx, fy, fz) for (name, _), (fx, fy, fz) in zip(names, forces.tolist(), strict=True)}
    depth = contact.max_penetration(problem)
    normal_force, distance, thickness = term.normal_forces(u, model.rest)
    effect = thickness_effect(problem, normal_force, np.maximum(distance, 0.0), thickness - distance)
    return BodyContactReport(
        count=len(term.vertices),
        max_penetration=depth if depth > MIN_FORCE_CHANGE * contact.thickness else 0.0,
        min_gap=None,
        forces=by_body,
        complementarity=complementarity,
        edge_intersections=contact.count_intersections(problem),
        **effect._asdict(),
    )
