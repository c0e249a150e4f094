"""What reports have of contact by a barrier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.barrier_contact import BarrierContact
from supple.contact.gaps import Gaps, distances_at
from supple.contact.pairs import Surfaces
from supple.terms import Barriers
from supple.words import counted

if TYPE_CHECKING:
    from supple.problem import Problem


@dataclass(frozen=True)
class ApartReport:
    """Contact of bodies with each other and themselves, none of which has passed another: contacts, which are
    nearer than the thickness; the smallest gap [m], None where nothing is near; how far pinned vertices are
    behind their motion [m]; the force [N] on each body, which are 0 in sum; complementarity [J]: Σ λ g,
    forces times gaps.

    The thickness enters forces in two ways. mean_gap [m]: Σ λ g / Σ λ, the thickness that stays open.
    mean_approach [m]: Σ λ (h - g) / Σ λ, by which the barrier gives way. In a linear system with strain
    energy U that prescribed displacements load, these are the shares of the contact force
    gap_share: Σ λ g / 2U, by which it is larger than between surfaces that close, and
    approach_share: Σ λ (h - g) / (2U + Σ λ (h - g)), by which it is smaller than between rigid surfaces of
    thickness h/2 each. Where loads press, forces are right, and only positions have these offsets."""

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
        """Of what has passed, which is nothing [m]."""
        return 0.0

    @property
    def passed(self) -> bool:
        return False

    def __str__(self) -> str:
        gap = "" if self.gap is None else f", smallest gap {self.gap:.2e} m"
        text = f"{counted(self.contacts, 'contact')} between bodies{gap}"
        if not self.contacts:
            return text
        return (
            f"{text}, forces times gaps {self.complementarity:.1e} J; of the force of prescribed "
            f"displacements, {self.gap_share:.2g} is due to open gaps (mean {self.mean_gap:.2e} m), "
            f"{self.approach_share:.2g} is lost to the approach within the thickness"
        )


def kept_apart(problem: Problem) -> ApartReport | None:
    """At the problem's present u; None where there is no barrier."""
    own = [(k, f) for k, f in problem.model.followers if isinstance(f, BarrierContact)]
    if not own:
        return None
    ((index, contact),) = own
    term: Any = problem.model.terms[index]
    force = term.forces(problem.positions)
    bodies = {}
    for name, vertices in problem.model.body_vertices:
        fx, fy, fz = map(float, force[vertices].sum(axis=0))
        bodies[name] = fx, fy, fz
    found, reach = contact.near(problem, anew=True)[1:3]
    apart = found.distance[found.distance < reach]
    others = found.distance[surfaces_apart(contact.surfaces, found)]
    gap = float(others.min()) if len(others) else None
    behind, offsets = problem.room.pins.behind, _offsets(problem, term)
    return ApartReport(len(apart), gap, behind, bodies, term.complementarity(problem.positions), *offsets)


def _offsets(problem: Problem, term: Barriers) -> tuple[float, float, float, float]:
    """Mean gap and approach [m], and their shares of the contact force, as `ApartReport` has them."""
    push, distance, reach = term.pushes(problem.positions)
    total = push.sum()
    if total == 0:
        return 0.0, 0.0, 0.0, 0.0
    gap, approach = float(push @ distance), float(push @ (reach - distance))
    twice = 2 * strain_energy(problem)
    gap_share = gap / twice if twice > 0 else np.inf
    return gap / total, approach / total, gap_share, approach / (max(twice, 0.0) + approach)


def strain_energy(problem: Problem) -> float:
    """Energy [J] that deformation stores in all bodies, at the problem's present u."""
    bodies = [not (term.loads or term.ties) for term in problem.model.terms]
    return float(problem.measures.stored_energies()[0, bodies].sum())


def surfaces_apart(surfaces: Surfaces, found: Gaps) -> np.ndarray:
    """(m,) whether pairs are of different bodies, or farther from each other at rest than they are now."""
    body = surfaces.body[found.vertices[:, [0, -1]]]
    return (body[:, 0] != body[:, 1]) | (distances_at(surfaces.rest, found) > 2 * found.distance)
