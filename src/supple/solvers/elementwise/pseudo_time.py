"""Pseudo-time motion of quasistatic problems, and detection of its rest state [PBNG section 6.1].

Element-wise methods need masses, so they find an equilibrium as the rest state of a motion. In a flow, every
step starts without velocity, and modes of the frequency ω decay by 1/(1 + ω² Δt²) per step: there is no
overshoot, but slow modes take long. In dynamics, as in XPBD-QS, velocities are kept, and the numerical
damping of backward Euler brings the body to rest after some oscillations.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add, scale, sub
from supple.kernels import record_at, store_record, vector_offset
from supple.problem import Problem
from supple.problem.vertex_kernels import apply_operation
from supple.support.text import pluralize

SNAPSHOT_INTERVAL, SNAPSHOTS = 25, 4
"""Steps between snapshots of the displacements, and intervals kept: 100 steps in all."""

REST_TOLERANCE = 1e-3
"""Largest displacement during those steps at which a body is at rest, relative to the overall maximum."""


class PseudoMomentum(NamedTuple):
    """Start of a pseudo-time step with the velocity of the previous one: u += keep (u - last), last = u.

    Attributes:
        u: Displacements, padded vectors [m].
        last: Displacements at the end of the previous step [m].
        keep: Fraction of the velocity that is kept.
    """

    u: Any
    last: Any
    keep: Any


@apply_operation.of(PseudoMomentum)
def _keep_velocity(operation, item, i):
    o, k = operation, i + vector_offset(item)
    x = record_at(o.u, k)
    store_record(o.u, k, add(x, scale(o.keep, sub(x, record_at(o.last, k)))))
    store_record(o.last, k, x)


def pseudo_momentum(problem: Problem, pseudo_time: str, damping: float) -> PseudoMomentum | None:
    """Return the operation that keeps velocities from step to step, None for a flow."""
    if pseudo_time == "flow":
        return None
    last = problem.zeros(problem.u.shape)
    problem.device.assign(last, problem.u)
    return PseudoMomentum(problem.u, last, 1.0 - damping)


class RestDetector:
    """Detector of the rest state of a pseudo-time motion.

    Attributes:
        steps: Number of completed steps.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.steps = problem, 0
        self._snapshots: deque[np.ndarray] = deque([self._displacements()], maxlen=SNAPSHOTS + 1)

    def step(self) -> None:
        """Count a completed step."""
        self.steps += 1
        if self.steps % SNAPSHOT_INTERVAL == 0:
            self._snapshots.append(self._displacements())

    def relative_motion(self, member: int = 0) -> float:
        """Largest change of position since any stored snapshot, relative to the largest displacement."""
        now = self._displacements()[member]
        largest = max(_max_length(now), 1e-30)
        return max(_max_length(now - before[member]) for before in self._snapshots) / largest

    def at_rest(self, member: int = 0) -> bool:
        """True if a batch member did not move during all snapshots; False until enough exist."""
        return len(self._snapshots) > SNAPSHOTS and self.relative_motion(member) <= REST_TOLERANCE

    def notes(self, method: Any, member: int = 0) -> list[str]:
        """Report sentences for a method with pseudo-time options."""
        how = "as dynamics" if method.pseudo_time == "dynamics" else "each started with zero velocity"
        sweeps = pluralize(method.sweeps_per_step, "sweep")
        return [
            f"run in pseudo-time, steps of {method.pseudo_dt:g} s with {sweeps}, {how}",
            self._sentence(method, member),
        ]

    def _sentence(self, method: Any, member: int) -> str:
        if self.at_rest(member):
            if method.keeps_forces:
                return "pseudo-time has come to rest"
            return (
                "pseudo-time has come to rest at the fixed point of its steps, whose residual decreases "
                f"with steps shorter than pseudo_dt={method.pseudo_dt:g}"
            )
        watched = min(self.steps, SNAPSHOT_INTERVAL * SNAPSHOTS)
        return (
            f"pseudo-time has not come to rest: in the last {watched} of {self.steps} steps vertices "
            f"moved by {self.relative_motion(member):.1%} of the largest displacement; use more iterations"
        )

    def _displacements(self) -> np.ndarray:
        """(batch, n, 3) displacements [m]."""
        states = self.problem.states
        return states.vectors(states.u).astype(float)


def _max_length(vectors: np.ndarray) -> float:
    return float(np.sqrt(np.square(vectors).sum(axis=-1).max(initial=0.0)))
