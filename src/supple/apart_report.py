"""What reports have of contact by a barrier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from supple.barrier_contact import BarrierContact
from supple.contact.gaps import Gaps, distances_at
from supple.contact.pairs import Surfaces
from supple.words import counted

if TYPE_CHECKING:
    from supple.problem import Problem


@dataclass(frozen=True)
class ApartReport:
    """Contact of bodies with each other and themselves, none of which has passed another: contacts, which are
    nearer than the thickness; the smallest gap [m], None where nothing is near; how far pinned vertices are
    behind their motion [m]; the force [N] on each body, which are 0 in sum; complementarity [J]: Σ λ g,
    forces times gaps."""

    contacts: int
    gap: float | None
    behind: float
    bodies: dict[str, tuple[float, float, float]]
    complementarity: float

    @property
    def depth(self) -> float:
        """Of what has passed, which is nothing [m]."""
        return 0.0

    @property
    def passed(self) -> bool:
        return False

    def __str__(self) -> str:
        gap = "" if self.gap is None else f", smallest gap {self.gap:.2e} m"
        carried = f", forces times gaps {self.complementarity:.1e} J"
        return f"{counted(self.contacts, 'contact')} between bodies{gap}{carried if self.contacts else ''}"


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
    return ApartReport(
        len(apart), gap, problem.room.pins.behind, bodies, term.complementarity(problem.positions)
    )


def surfaces_apart(surfaces: Surfaces, found: Gaps) -> np.ndarray:
    """(m,) whether pairs are of different bodies, or farther from each other at rest than they are now."""
    body = surfaces.body[found.vertices[:, [0, -1]]]
    return (body[:, 0] != body[:, 1]) | (distances_at(surfaces.rest, found) > 2 * found.distance)
