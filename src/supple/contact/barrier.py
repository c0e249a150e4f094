"""Intersection-free contact: a barrier energy, a trust region of step bounds, and a report.

The energy of `Barriers` repels surfaces closer than h. Each contact update computes a bound on the
displacement of every vertex within which no intersection can occur (`StepBounds`), for any solver. The energy
term receives all pairs that can get closer than h within these bounds. The energy is therefore exact between
two updates, and continuous across an update.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.collision.broad_phase.cached_broad_phase import Candidates, max_approach
from supple.collision.ccd.conservative_advancement import advance_to_contact, stop_at_obstacles
from supple.collision.ccd.intersections import find_crossings
from supple.collision.ccd.time_of_impact import earliest_impact
from supple.collision.narrow_phase.contact_pairs import Surfaces
from supple.collision.narrow_phase.proximity_bounds import (
    SAFE_FRACTION,
    UNLIMITED_RADIUS,
    Neighbors,
    ProximityPairs,
    distances_at,
    proximity_pairs,
    within_reach,
)
from supple.contact.initial_separation import find_touching_bodies, rest_gaps, separate_bodies, start_notes
from supple.contact.state.contact_report import BodyContactReport, Force
from supple.contact.state.friction_state import BarrierFrictionState, owners, rows_from
from supple.contact.thickness_effect import thickness_effect
from supple.kernels import HOST, Runner
from supple.model.dynamic_term import IntersectionFreeTerm
from supple.model.model import Model, unpinned_mask
from supple.terms import Barriers
from supple.terms.contact.barrier_hessian import closest

if TYPE_CHECKING:
    from supple.problem import Problem


THICKNESS, STIFFNESS, RADIUS = 0.05, 30.0, 0.5
"""Defaults relative to the mean edge length e of the surfaces: h, and search radius of proximity pairs;
stiffness in units of E e, with Young's modulus E of the softer body."""

MIN_THICKNESS = 0.1
"""Smallest thickness, relative to h, of two bodies with an initial gap below h."""

MAX_ACTIVE_DISTANCE, MIN_RADIUS_FRACTION = 5.0, 0.4
"""Distance in units of h beyond which pairs stay farther apart than h, within bounds of 0.4 times their
distance; and fraction of the search radius below which the broad phase is repeated."""

SEARCH_MARGIN = 1.0
"""Additional distance, in units of h, within which pairs are included in the energy term."""

SELF_CONTACT_FRACTION = 0.5
"""Barrier distance for pairs of one body, relative to their rest distance, if that is below h."""

DETECTION_INTERVAL = 10
"""Iterations between contact updates, unless vertices reach their step bounds earlier."""


@dataclass(frozen=True, eq=False)
class BarrierContact(IntersectionFreeTerm):
    """Barrier contact method, an `IntersectionFreeTerm` that updates contacts and step bounds of
    a problem.

    Attributes:
        surfaces: Surfaces of all bodies.
        thickness: Barrier distance h [m].
        stiffness: (bodies,) k [N/m]; a pair of bodies has the smaller one.
        names: Names of the bodies.
        friction: (2, bodies, bodies) static and kinetic friction coefficients of all pairs, or None.
        separate_initial: Young's modulus for the separation of initial intersections [Pa]; None: reject them.
        every: Iterations between contact updates.
    """

    surfaces: Surfaces
    thickness: float
    stiffness: np.ndarray
    names: tuple[str, ...]
    friction: np.ndarray | None = None
    separate_initial: float | None = None
    every: int | None = DETECTION_INTERVAL

    @cached_property
    def _candidates(self) -> Candidates:
        return Candidates(self.surfaces)

    @cached_property
    def pair_thickness(self) -> np.ndarray:
        """(bodies, bodies) thickness of each pair of bodies [m].

        Pairs with a rest gap below h have that gap as thickness, at least `MIN_THICKNESS` h, so that the
        barrier stores no initial energy.
        """
        return np.maximum(rest_gaps(self.surfaces, self.thickness), MIN_THICKNESS * self.thickness)

    @property
    def radius(self) -> float:
        """Search radius of proximity pairs [m]."""
        return max(MAX_ACTIVE_DISTANCE * self.thickness, RADIUS * self.surfaces.edge)

    def set_step_bounds(self, problem: Problem) -> None:
        """Set the step bounds of all vertices around their current positions."""
        problem.trust_region.set_bounds(self.near(problem).displacement_bounds())

    def near(self, problem: Problem, rebuild: bool = False) -> Neighbors:
        """Return all proximity pairs at the current positions.

        Reuses the cached pairs while their radius of completeness suffices.

        Args:
            problem: Problem with this method.
            rebuild: Force a new broad phase. Positions that have been set from outside force it as well,
                after a check for intersections.
        """
        region, finder = problem.trust_region, problem.device
        rebuild = rebuild or not region.checked
        if not region.checked:
            self._check(problem)
        cached: Neighbors | None = None if rebuild else region.neighbors
        x, least = (
            problem.positions,
            max(MAX_ACTIVE_DISTANCE * self.thickness, MIN_RADIUS_FRACTION * self.radius),
        )
        neighbors = None if cached is None else cached.at(x, least, finder)
        if neighbors is None:
            pairs = proximity_pairs(self.surfaces, x, self.radius, finder, self._candidates)
            neighbors = region.neighbors = Neighbors(self.surfaces, pairs, self._reach(pairs), self.radius, x)
        return neighbors

    def advance_bodies(self, problem: Problem) -> None:
        """Advance whole bodies toward the predicted positions, up to the first contact.

        Interior vertices move with their surface; a gap between them would invert elements.
        """
        states, region = problem.states, problem.trust_region
        assert region.step_bounds
        u, start = states.vectors(problem.u)[0], states.vectors(region.step_bounds.center)[0].astype(float)
        is_outside = ((u - start) ** 2).sum(axis=1) > region.radii**2
        if not is_outside.any():
            return
        x, finder = self.surfaces.rest + start, problem.device
        self._stop_at_obstacles(problem, x)
        cached: Neighbors | None = None if region.neighbors is None else region.neighbors.at(x, 0.0, finder)
        for candidate in region.pins.candidates(u - start, self.surfaces.body, region.radii):
            part = advance_to_contact(
                self.surfaces, x, candidate.step, self.thickness, finder, cached, self._candidates
            )
            if (part[candidate.must_complete] >= 1).all():
                break
        u[:] = start + part[self.surfaces.body, None] * candidate.step
        problem.device.upload(problem.u)
        if candidate.fraction > 0:
            region.pins.move(candidate.fraction)
        region.outdated = True

    def _stop_at_obstacles(self, problem: Problem, x: np.ndarray) -> None:
        """Stop bodies on their way from x (n, 3) [m] to the current u at obstacles, in contact with these."""
        contacts, surfaces, u = problem.contacts, self.surfaces, problem.states.vectors(problem.u)[0]
        if contacts.obstacles is None:
            return
        target, free = surfaces.rest + u, unpinned_mask(problem.model)
        free_vertices = surfaces.vertices[free[surfaces.vertices]]
        stopped = stop_at_obstacles(
            contacts.obstacles, contacts.shapes, x, target, surfaces.body, free_vertices, self.thickness
        )
        stop = free & (stopped != target).any(axis=1)
        if stop.any():
            u[stop] = (stopped - surfaces.rest)[stop]
            problem.device.upload(problem.u)
            contacts.detect()
            problem.device.download(problem.u)

    def limit_step(self, problem: Problem, start: np.ndarray) -> None:
        """Limit a straight step by continuous collision detection.

        Pairs outside the energy term keep a distance above their barrier distance, so no untracked pair
        enters the barrier range.

        Args:
            problem: Problem after the step.
            start: Displacements before the step, padded vectors.
        """
        states = problem.states
        u, x = states.vectors(problem.u)[0], self.surfaces.rest + states.vectors(start)[0]
        step = u - states.vectors(start)[0]
        nearer = max_approach(self.surfaces, x, step, self.thickness)
        max_fraction = min(1.0, self.surfaces.edge / max(nearer, 1e-300))
        pairs = self._nearby_pairs(problem, start, x, max_fraction * nearer + self.thickness)
        part = earliest_impact(x, step, *self._bounds(problem, pairs), max_fraction)
        if part < 1:
            u[:] = states.vectors(start)[0] + part * step
            problem.device.upload(problem.u)
        problem.trust_region.outdated = True

    def _nearby_pairs(
        self, problem: Problem, start: np.ndarray, x: np.ndarray, radius: float
    ) -> ProximityPairs:
        """Pairs within at least a radius [m] at x (n, 3); cached by `start` for repeated trial steps."""
        cached = problem.trust_region.nearby_pairs
        if cached is None or cached[0] is not start or cached[1] < radius:
            pairs = proximity_pairs(self.surfaces, x, radius, problem.device, self._candidates)
            cached = problem.trust_region.nearby_pairs = start, radius, pairs
        nearby: ProximityPairs = cached[2]
        return nearby

    def _bounds(self, problem: Problem, pairs: ProximityPairs) -> tuple[ProximityPairs, np.ndarray]:
        """Pairs and their minimum separations: 0 for tracked and active pairs, else barrier distance [m]."""
        reach = self._reach(pairs)
        tracked = np.isin(pairs.keys, self._term_of(problem).keys)
        return pairs, np.where(tracked | (pairs.distance <= reach), 0.0, reach)

    def update(self, problem: Problem, time: float) -> Barriers | None:
        """Update step bounds and contacts; None if the existing contacts suffice."""
        region, near = problem.trust_region, self.near(problem)
        radii = near.displacement_bounds()
        region.set_bounds(radii)
        moved = region.pins.advance(region.radii, self.thickness, SAFE_FRACTION * self.radius)
        step_begun, region.step_begun = region.step_begun, False
        friction_state = (
            None if self.friction is None else problem.dynamic_terms.friction_states.get(self._index(problem))
        )
        new, old = self.term(near.pairs, near.reach, radii, friction_state), self._term_of(problem)
        same = np.array_equal(old.keys, new.keys)
        enough = same or (not step_begun and bool(np.isin(new.keys, old.keys).all()))
        begins = (
            new.has_friction and problem.dynamic_terms.beginning
        )  # friction springs refer to the start of the step
        return None if enough and not moved and not begins else new

    def _index(self, problem: Problem) -> int:
        """Index of the energy term of this method."""
        return next(k for k, own in problem.model.dynamic_terms if own is self)

    def _term_of(self, problem: Problem) -> Any:
        return problem.model.terms[self._index(problem)]

    def evaluate_at(self, model: Model, x: np.ndarray, time: float, history: Mapping[str, Any]) -> Barriers:
        """Barrier contacts at given positions, outside of a solve.

        Args:
            model: Model with this method.
            x: (n, 3) positions [m].
            history: History variables of a state, which contain the friction state.

        Raises:
            ValueError: If surfaces intersect.
        """
        self._check_intersections(x)
        pairs = proximity_pairs(self.surfaces, x, self.thickness)
        friction_state = None if self.friction is None else BarrierFrictionState(x, rows_from(history))
        return self.term(pairs, self._reach(pairs), np.zeros(len(x)), friction_state, max(1, len(pairs.keys)))

    def contact_points(self, x: np.ndarray) -> np.ndarray:
        """(m, 3) points of active contacts on the first surface [m], at positions x (n, 3) [m]."""
        pairs = proximity_pairs(self.surfaces, x, self.thickness)
        pairs = pairs.where(pairs.distance < self._reach(pairs))
        weights, _ = closest(x[pairs.vertices], pairs.crossing)
        return np.einsum("mk,mki->mi", np.maximum(weights, 0.0), x[pairs.vertices])

    def term(
        self,
        pairs: ProximityPairs,
        reach: np.ndarray,
        radii: np.ndarray,
        friction_state: BarrierFrictionState | None = None,
        capacity: int = 0,
    ) -> Barriers:
        """Barrier energy term of all pairs that can become active within the step bounds.

        Args:
            pairs: Proximity pairs.
            reach: (m,) barrier distances [m].
            radii: (n,) step bounds [m].
            friction_state: Friction state at the start of the step, if there is friction.
            capacity: Largest number of contacts.
        """
        is_active = (reach > 0) & within_reach(pairs, radii, (1 + SEARCH_MARGIN) * reach)
        pairs, reach = pairs.where(is_active), reach[is_active]
        stiffness = self.stiffness[self.surfaces.body[pairs.vertices[:, [0, -1]]]].min(axis=1)
        friction_data = None
        if self.friction is not None:
            friction_state = friction_state or BarrierFrictionState(self.surfaces.rest, rows_from({}))
            friction_data = friction_state.friction_data(pairs, stiffness, self.surfaces.body, self.friction)
        return Barriers(
            vertices=pairs.vertices.astype(np.int32),
            crossing=pairs.crossing,
            stiffness=stiffness,
            reach=reach,
            keys=pairs.keys,
            positions=self.surfaces.rest,
            capacity=capacity,
            friction_data=friction_data,
        )

    def _reach(self, pairs: ProximityPairs) -> np.ndarray:
        """(m,) barrier distances [m]: thickness of both bodies; less for self-contact pairs close at rest."""
        body = self.surfaces.body[pairs.vertices[:, [0, -1]]]
        reach = self.pair_thickness[body[:, 0], body[:, 1]]
        own = np.flatnonzero(body[:, 0] == body[:, 1])
        reach[own] = np.minimum(
            reach[own], SELF_CONTACT_FRACTION * distances_at(self.surfaces.rest, pairs.where(own))
        )
        return reach

    def _check(self, problem: Problem) -> None:
        """Reject initial intersections and touching bodies, or separate them if `separate_initial` is set."""
        finder, x = problem.device, problem.positions
        close = find_touching_bodies(self.surfaces, x, self.thickness, finder)
        if self.separate_initial is not None and (close or find_crossings(self.surfaces, x, finder)):
            how = self.thickness, self.separate_initial, problem.device.threads
            problem.positions = separate_bodies(problem.model, self.surfaces, x, *how)
            problem.dynamic_terms.record_friction()
            close = find_touching_bodies(self.surfaces, problem.positions, self.thickness, finder)
        self._check_intersections(problem.positions, finder)
        if close:
            sentences = [f"{self.names[a]!r} touches {self.names[b]!r}" for a, b in close]
            raise ValueError(intersection_message(sentences))
        problem.trust_region.start_notes = self._start_notes(problem.positions)
        problem.trust_region.checked = True

    def _start_notes(self, x: np.ndarray) -> list[str]:
        """Warnings about small initial gaps, for motions that start at the rest positions."""
        pairs = proximity_pairs(self.surfaces, self.surfaces.rest, self.thickness)
        how = self._reach(pairs), self.stiffness, self.pair_thickness, self.names
        return start_notes(self.surfaces, pairs, *how) if np.array_equal(x, self.surfaces.rest) else []

    def _check_intersections(self, x: np.ndarray, runner: Runner = HOST) -> None:
        """Raise a ValueError if surfaces intersect at x (n, 3) [m]."""
        intersections = find_crossings(self.surfaces, x, runner)
        if intersections:
            raise ValueError(
                intersection_message([each.sentence(list(self.names)) for each in intersections])
            )


def intersection_message(sentences: list[str]) -> str:
    """Error message for initial intersections."""
    return (
        "contact = 'barrier' needs a start without intersections or touching surfaces, but "
        f"{'; '.join(sentences)}. Move the bodies apart, set separate_initial = true, or use contact = "
        "'weak'."
    )


def with_barrier_contact(
    model: Model,
    triangles: np.ndarray,
    flat: np.ndarray,
    young: np.ndarray,
    thickness: float | None = None,
    stiffness: float | None = None,
    friction: np.ndarray | None = None,
    separate_initial: bool = False,
) -> Model:
    """Add barrier contact to a model.

    Args:
        model: Model without it.
        triangles: (t, 3) surface triangles.
        flat: (bodies,) True for shells, which have no inside.
        young: (bodies,) Young's moduli [Pa].
        thickness: h [m], by default a fraction of the mean edge.
        stiffness: k [N/m] of all bodies, by default in proportion to `young`.
        friction: (2, bodies, bodies) static and kinetic friction coefficients, or None.
        separate_initial: Separate initial intersections instead of rejecting them.
    """
    surfaces = surfaces_of(model, triangles, flat)
    edge = surfaces.edge
    thick = THICKNESS * edge if thickness is None else thickness
    stiff = STIFFNESS * young * edge if stiffness is None else np.full(len(young), stiffness)
    names = tuple(name for name, _ in model.body_vertices)
    separation_modulus = float(young.max()) if separate_initial else None
    contact = BarrierContact(surfaces, thick, stiff, names, friction, separation_modulus)
    unbounded = np.full(len(model.rest), UNLIMITED_RADIUS)
    capacity = max(64, len(surfaces.vertices))
    pairs = ProximityPairs(np.empty((0, 4), np.int64), np.empty(0, bool), np.empty(0), np.empty(0, np.int64))
    none = contact.term(pairs, np.empty(0), unbounded, None, capacity)
    dynamic_terms = (*model.dynamic_terms, (len(model.terms), contact))
    return replace(model, terms=(*model.terms, none), dynamic_terms=dynamic_terms)


def surfaces_of(model: Model, triangles: np.ndarray, flat: np.ndarray) -> Surfaces:
    """Surfaces of a model, without a rest distance filter."""
    return Surfaces(triangles, owners(model), model.rest, 0.0, flat)


def report_barrier_contact(problem: Problem) -> BodyContactReport | None:
    """Report barrier contact at the current displacements of a problem; None without a barrier."""
    own = [(k, f) for k, f in problem.model.dynamic_terms if isinstance(f, BarrierContact)]
    if not own:
        return None
    ((index, contact),) = own
    term: Any = problem.model.terms[index]
    force = term.forces(problem.positions)
    forces: dict[str, Force] = {}
    for name, vertices in problem.model.body_vertices:
        fx, fy, fz = map(float, force[vertices].sum(axis=0))
        forces[name] = fx, fy, fz
    pairs, reach = contact.near(problem, rebuild=True)[1:3]
    active = pairs.distance[pairs.distance < reach]
    others = pairs.distance[counts_for_gap(contact.surfaces, pairs)]
    gap = float(others.min()) if len(others) else None
    normal_force, distance, thickness = term.normal_forces(problem.positions)
    return BodyContactReport(
        count=len(active),
        max_penetration=0.0,
        min_gap=gap,
        forces=forces,
        complementarity=term.complementarity(problem.positions),
        pin_lag=problem.trust_region.pins.lag,
        **thickness_effect(problem, normal_force, distance, thickness - distance)._asdict(),
    )


def counts_for_gap(surfaces: Surfaces, pairs: ProximityPairs) -> np.ndarray:
    """(m,) True for pairs of different bodies, and for pairs closer than half their rest distance."""
    body = surfaces.body[pairs.vertices[:, [0, -1]]]
    return (body[:, 0] != body[:, 1]) | (distances_at(surfaces.rest, pairs) > 2 * pairs.distance)
