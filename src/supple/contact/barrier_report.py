"""Report of barrier contact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from supple.collision.narrow_phase.contact_pairs import Surfaces
from supple.collision.narrow_phase.proximity import ProximityPairs, distances_at
from supple.contact.barrier import BarrierContact
from supple.contact.report import BodyContactReport, Force
from supple.contact.thickness_effect import thickness_effect

if TYPE_CHECKING:
    from supple.problem import Problem


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
