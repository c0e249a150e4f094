"""Projections that an element-wise method prepares once for all steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supple.kernels import RECORD
from supple.problem import Problem


class Workplace(NamedTuple):
    """Prepared projections of a method, valid while W stays the same.

    Attributes:
        inertia: (n,) inertia from which W is computed [N/m].
        dynamic: True for steps in time, False for pseudo-time.
        weights: (n + 1,) W [m/N].
        version: Version of the problem layout.
        by_term: Projections of each term, in the order of visits.
        projections: All projections.
        phases: Number of phases of a sweep.
        widest: Largest number of batches in a phase.
        memory: History variables of all projections.
        drift: External forces and the displacement W f by them, or empty.
    """

    inertia: np.ndarray
    dynamic: bool
    weights: np.ndarray
    version: int
    by_term: dict[int, list]
    projections: tuple
    phases: int
    widest: int
    memory: list[np.ndarray]
    drift: list[np.ndarray]


def weights_of(problem: Problem, method: str, pseudo_dt: float | None) -> np.ndarray:
    """Compute W (n + 1,): Δt²/m of the free vertices [m/N], 0 for pinned vertices and padding.

    Args:
        problem: Problem.
        method: Solver name for the error message.
        pseudo_dt: Step size of pseudo-time [s], None in dynamics.

    Raises:
        ValueError: A free vertex has no positive mass.
    """
    model = problem.model
    stiffness = problem.loads.inertia if pseudo_dt is None else model.mass / pseudo_dt**2
    W = np.zeros(model.vertices + 1)
    if np.any(stiffness[model.free] <= 0):
        raise ValueError(f"{method} divides by masses: every free vertex needs a positive one")
    W[:-1][model.free] = 1 / stiffness[model.free]
    return W


def drift_of(work: Workplace, problem: Problem) -> np.ndarray:
    """W f_ext as padded vectors, cached while the external forces stay the same."""
    known, force = work.drift, problem.loads.force
    if not known or known[0] is not force:
        model = problem.model
        drift = np.zeros((*force.shape[:-2], model.vertices + 1, RECORD), problem.dtype)
        drift[..., :-1, :3] = work.weights[:-1, None] * model.unheld(force)
        known[:] = force, drift.reshape(-1, RECORD)
    return known[1]
