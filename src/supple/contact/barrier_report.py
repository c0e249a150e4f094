"""Report of barrier contact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.collision.narrow_phase.contact_pairs import Surfaces
from supple.collision.narrow_phase.proximity import ProximityPairs, distances_at
from supple.contact.barrier import BarrierContact
from supple.support.text import pluralize
from supple.terms import Barriers

if TYPE_CHECKING:
    from supple.problem import Problem


@dataclass(frozen=True)
class BarrierContactReport:
    """Report of intersection-free contact between bodies and of self-contact.

    The thickness h affects forces in two ways: gaps remain open, and the barrier yields. In a linear system
    with strain energy U under prescribed displacements, `gap_share` is the relative excess of the contact
    force over that of closed surfaces. `approach_share` is its relative deficit against rigid surfaces of
    thickness h/2 each. Under prescribed loads, forces are correct, and only positions are offset.

    Attributes:
        contacts: Number of contacts closer than the thickness.
        gap: Smallest gap [m], None without proximity pairs.
        behind: Largest lag of prescribed vertices behind their motion [m].
        bodies: Contact force on each body [N]; their sum is 0.
        complementarity: Σ λ g, normal forces times gaps [J].
        mean_gap: Σ λ g / Σ λ, the remaining gap [m].
        mean_approach: Σ λ (h - g) / Σ λ, the approach within the barrier [m].
        gap_share: Σ λ g / 2U.
        approach_share: Σ λ (h - g) / (2U + Σ λ (h - g)).
    """

    contacts: int
    gap: float | None
    behind: float
    bodies: dict[str, tuple[float, float, float]]
    complementarity: float
    mean_gap: float = 0.0
    mean_approach: float = 0.0
    gap_share: float = 0.0
    approach_share: float = 0.0

    @property
    def depth(self) -> float:
        """Penetration depth [m], always 0."""
        return 0.0

    @property
    def passed(self) -> bool:
        """False: barrier contact excludes intersections."""
        return False

    def __str__(self) -> str:
        gap = "" if self.gap is None else f", smallest gap {self.gap:.2e} m"
        text = f"{pluralize(self.contacts, 'contact')} between bodies{gap}"
        if not self.contacts:
            return text
        return (
            f"{text}, forces times gaps {self.complementarity:.1e} J; of the force of prescribed "
            f"displacements, {self.gap_share:.2g} is due to open gaps (mean {self.mean_gap:.2e} m), "
            f"{self.approach_share:.2g} is lost to the approach within the thickness"
        )


def report_barrier_contact(problem: Problem) -> BarrierContactReport | None:
    """Report barrier contact at the current displacements of a problem; None without a barrier."""
    own = [(k, f) for k, f in problem.model.dynamic_terms if isinstance(f, BarrierContact)]
    if not own:
        return None
    ((index, contact),) = own
    term: Any = problem.model.terms[index]
    force = term.forces(problem.positions)
    bodies = {}
    for name, vertices in problem.model.body_vertices:
        fx, fy, fz = map(float, force[vertices].sum(axis=0))
        bodies[name] = fx, fy, fz
    pairs, reach = contact.near(problem, rebuild=True)[1:3]
    active = pairs.distance[pairs.distance < reach]
    others = pairs.distance[counts_for_gap(contact.surfaces, pairs)]
    gap = float(others.min()) if len(others) else None
    behind, offsets = problem.trust_region.pins.lag, _offsets(problem, term)
    return BarrierContactReport(
        len(active), gap, behind, bodies, term.complementarity(problem.positions), *offsets
    )


def _offsets(problem: Problem, term: Barriers) -> tuple[float, float, float, float]:
    """Mean gap and approach [m], and their shares of the contact force, as in `BarrierContactReport`."""
    force, distance, reach = term.normal_forces(problem.positions)
    total = force.sum()
    if total == 0:
        return 0.0, 0.0, 0.0, 0.0
    gap, approach = float(force @ distance), float(force @ (reach - distance))
    twice = 2 * strain_energy(problem)
    gap_share = gap / twice if twice > 0 else np.inf
    return gap / total, approach / total, gap_share, approach / (max(twice, 0.0) + approach)


def strain_energy(problem: Problem) -> float:
    """Strain energy of all bodies at the current displacements of a problem [J]."""
    bodies = [not (term.loads or term.ties) for term in problem.model.terms]
    return float(problem.diagnostics.stored_energies()[0, bodies].sum())


def counts_for_gap(surfaces: Surfaces, pairs: ProximityPairs) -> np.ndarray:
    """(m,) True for pairs of different bodies, and for pairs closer than half their rest distance."""
    body = surfaces.body[pairs.vertices[:, [0, -1]]]
    return (body[:, 0] != body[:, 1]) | (distances_at(surfaces.rest, pairs) > 2 * pairs.distance)
