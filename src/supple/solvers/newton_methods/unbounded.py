"""Detection of energies without a lower bound: bodies that grow, or leave the scene."""

from __future__ import annotations

import numpy as np

from supple.model.model import unpinned_mask
from supple.problem import Problem

MAX_GROWTH = 10.0
"""Size or displacement of a body, relative to the scene, beyond which a solve is unbounded."""

GROWTH_MESSAGE = (
    f"bodies have grown to {MAX_GROWTH:g} times their size and continue to grow: the work of the loads, "
    "such as the pressure in a chamber, exceeds the elastic energy; reduce the pressure, or use a "
    "material that stiffens under stretch, such as gent or yeoh; the frames of a motion show when the "
    "equilibrium is lost"
)

DRIFT_MESSAGE = (
    f"bodies have moved {MAX_GROWTH:g} times the size of the scene and continue to move: nothing holds "
    "them, and a body that only rests on others without friction may have no equilibrium; pin it, or "
    "simulate a motion"
)


def find_unbounded_cause(problem: Problem) -> str:
    """Apparent reason for a missing equilibrium; empty if no reason is found."""
    if problem.loads.inertia.any():
        return ""
    if _has_outgrown_scene(problem):
        return GROWTH_MESSAGE
    if problem.trust_region and _has_left_scene(problem):
        return DRIFT_MESSAGE
    return ""


def scene_extent(problem: Problem) -> float:
    """Extent of the scene at rest or of its constrained vertices, whichever is larger [m]."""
    position_sets = problem.model.rest, problem.positions[~problem.model.free]
    return max(float(np.ptp(x, axis=0).max()) for x in position_sets if len(x))


def _has_left_scene(problem: Problem) -> bool:
    """True if an unpinned body has left the scene."""
    model, displacement = problem.model, problem.positions - problem.model.rest
    loose = [own for _, own in model.body_vertices if unpinned_mask(model)[own].all()]
    drifts = (np.linalg.norm(displacement[own].mean(axis=0)) for own in loose)
    return bool(max(drifts, default=0.0) > MAX_GROWTH * scene_extent(problem))


def _has_outgrown_scene(problem: Problem) -> bool:
    """True if shape-dependent loads, the only possible cause, have made a body grow beyond all bounds."""
    model, x = problem.model, problem.positions
    if not any(term.loads and not (term.intersection_free or term.encloses) for term in model.terms):
        return False
    extents = (np.ptp(x[vertices], axis=0).max() for _, vertices in model.body_vertices)
    return bool(max(extents, default=0.0) > MAX_GROWTH * scene_extent(problem))
