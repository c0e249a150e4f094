"""Effect of the thickness of contact between bodies on contact forces."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from supple.problem import Problem

MIN_PRESCRIBED_MOTION = 1e-12
"""Displacement of prescribed vertices, relative to the scene, above which displacements are prescribed."""


class ThicknessEffect(NamedTuple):
    """Gaps and approaches of contacts, and their shares of the contact force, as in `BodyContactReport`."""

    mean_gap: float = 0.0
    mean_approach: float = 0.0
    gap_share: float | None = None
    approach_share: float | None = None


def thickness_effect(
    problem: Problem, force: np.ndarray, gap: np.ndarray, approach: np.ndarray
) -> ThicknessEffect:
    """Estimate the shares of the contact force due to open gaps and to approach (docs/design/barrier.md).

    Args:
        problem: Problem at the end of a solve.
        force: (m,) normal forces λ [N].
        gap: (m,) gaps [m].
        approach: (m,) thickness minus gap [m].
    """
    total = float(force.sum())
    if total == 0:
        return ThicknessEffect()
    gap_work, approach_work = float(force @ gap), float(force @ approach)
    means = gap_work / total, approach_work / total
    if not prescribes_displacements(problem):
        return ThicknessEffect(*means)
    strain = max(2 * strain_energy(problem), 0.0)
    gap_share = gap_work / strain if strain > 0 else np.inf
    if gap_share >= 1 and problem.loads.acting.any():  # loads carry the contact
        return ThicknessEffect(*means)
    return ThicknessEffect(*means, min(gap_share, 1.0), approach_work / (strain + approach_work))


def prescribes_displacements(problem: Problem) -> bool:
    """True for equilibria whose pins or obstacles have moved from their places at rest."""
    model = problem.model
    if problem.loads.inertia.any():
        return False
    moved = model.along((problem.positions - model.rest)[model.pinned])
    extent = float(np.ptp(model.rest, axis=0).max())
    if np.abs(moved).max(initial=0.0) > MIN_PRESCRIBED_MOTION * extent:
        return True
    obstacles = model.obstacles
    return obstacles is not None and not np.array_equal(obstacles.poses(0.0), obstacles.poses(np.inf))


def strain_energy(problem: Problem) -> float:
    """Strain energy of all bodies at the current displacements of a problem [J]."""
    bodies = [not (term.loads or term.ties) for term in problem.model.terms]
    return float(problem.diagnostics.stored_energies()[0, bodies].sum())
