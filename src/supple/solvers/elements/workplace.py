"""What element-wise methods make once and use in every step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from supple.kernels import RECORD
from supple.problem import Problem


class Workplace(NamedTuple):
    """What a method needs for all steps with the same W (n + 1,), which the inertia (n,) gives: the version
    of the layout; its projections of each term, in the order of visits; all of these; the phases of a sweep
    and the most batches that one has; what the projections remember; and the external forces with the
    displacement W f by them."""

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
    """W (n + 1,): Δt²/m of the free vertices [m/N], 0 for pinned ones and padding; with the step of
    pseudo-time [s] where there is one."""
    model = problem.model
    stiffness = problem.loads.inertia if pseudo_dt is None else model.mass / pseudo_dt**2
    W = np.zeros(model.vertices + 1)
    if np.any(stiffness[model.free] <= 0):
        raise ValueError(f"{method} divides by masses: every free vertex needs a positive one")
    W[:-1][model.free] = 1 / stiffness[model.free]
    return W


def drift_of(work: Workplace, problem: Problem) -> np.ndarray:
    """W f_ext, records; remembered, since it is the same in every step."""
    known, force = work.drift, problem.loads.force
    if not known or known[0] is not force:
        model = problem.model
        drift = np.zeros((*force.shape[:-2], model.vertices + 1, RECORD), problem.dtype)
        drift[..., :-1, :3] = work.weights[:-1, None] * model.unheld(force)
        known[:] = force, drift.reshape(-1, RECORD)
    return known[1]
