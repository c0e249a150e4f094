"""Newton steps of several batch members as bodies of one problem, each with its own line search.

    d = PCG(H, r, M) of all members, each to the same relative accuracy
    t = 1 of each, halved until its own energy decreases by Armijo's rule
    x = x(t) along the rotation path of the members' d, each scaled by its t

Members that do not converge this way, at saddles or behind energy barriers, are left to `NewtonPCG`, one by
one.

Batched sweeps with convergence extrapolation per batch member.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from supple.problem import Balances, Problem
from supple.problem.diagnostics import rounding_of
from supple.solvers.newton_methods.block_diagonal import gather, room_for, size_for
from supple.solvers.newton_methods.error_estimate import distances_of_copies
from supple.solvers.newton_methods.line_search import ARMIJO, present
from supple.solvers.newton_methods.newton_system import Linearization
from supple.solvers.newton_methods.rate_estimate import BatchRateEstimates
from supple.solvers.newton_methods.rotation_path import RotationPath
from supple.solvers.pbng import PBNG, PBNGRun

STEPS = 30
"""Step limit; members that have not converged by then are solved separately. Most take 3 to 15 steps."""

CONCAVE = 3
"""Limit of steps with negative curvature, which slow all members down to the speed of a single one."""

HALVINGS = 12
"""Limit of step halvings of a member, after which its step is 0."""

CLOSER = 0.3
"""Fraction of the required relative residual and distance at which a member counts as converged.

This estimate of the distance is less accurate than an error estimate proper, and either value may increase
when the state is rounded.
"""


class BatchedNewton:
    """Newton iteration in float64 for several batch members.

    Args:
        problem: Problem with its batch.
        copies: Batch members to solve.
        tolerance: Relative residual to reach.
        distance: Distance to the equilibrium to reach, relative to the size of a body, or None.
        turn: Largest rotation of nearly all elements in one step [rad].

    Attributes:
        gathered: Block-diagonal problem of the members.
        steps: Number of steps made.
    """

    def __init__(
        self,
        problem: Problem,
        members: Sequence[int],
        tolerance: float,
        distance: float | None,
        max_rotation: float,
    ) -> None:
        self._problem, self._members, self._max_rotation = problem, list(members), max_rotation
        self._tolerance, self._distance = (
            CLOSER * tolerance,
            np.inf if distance is None else CLOSER * distance,
        )
        self._room = size_for(problem, len(members))
        fill = [members[-1]] * (self._room - len(members))
        self.gathered = gather(problem, [*members, *fill])
        self._linear: Linearization = self.gathered.shared(
            "linearization", lambda: Linearization(self.gathered, each=False)
        )
        self._paths: RotationPath = self.gathered.shared("rotation path", lambda: RotationPath(self.gathered))
        self.steps = self._concave = 0
        self._before: float | None = None
        self._arrived = np.zeros(self._room, bool)

    @property
    def arrived(self) -> list[int]:
        """Batch members that have reached the relative residual and, as estimated, the distance."""
        return [member for member, there in zip(self._members, self._arrived, strict=False) if there]

    def run(self) -> None:
        """Iterate until all members have converged or separate solves are faster; write their states back."""
        while self.steps < STEPS and self._concave < CONCAVE and self._step():
            self.steps += 1
        self._bring_back()

    def _step(self) -> bool:
        """Make one Newton step; return True if any member moved."""
        gathered, linear, states = self.gathered, self._linear, self.gathered.states
        balance = gathered.balance()
        if not balance.finite:
            return False
        accuracy = linear.accuracy(balance.residual, self._before, self._tolerance)
        self._before = balance.residual
        relative_residual, residual = self._relative_residual(), self._residual()
        direction = linear.direction(accuracy, 0.0)
        self._concave += direction.filtered
        d, net, u = (
            self._each(states.vectors(records)[0]) for records in (direction.d, states.net, states.u)
        )
        forces = np.where(self._problem.model.free[:, None], net, 0)
        known = distances_of_copies(self._problem.model, d, forces, u)
        far = np.array([max(body.position_error for body in bodies) for bodies in known])
        self._arrived = (relative_residual <= self._tolerance) & (far <= self._distance)
        slope = np.einsum("cni,cni->c", d, forces)
        goes = ~self._arrived & (slope > 0)
        return bool(goes.any()) and self._go(direction.d, slope, goes, residual)

    def _go(self, d: np.ndarray, slope: np.ndarray, goes: np.ndarray, residual: np.ndarray) -> bool:
        """Search along d for each member separately; return True if any member moved."""
        start = present(self.gathered)
        energy, rounding = self._energies()
        whole = min(1.0, self._max_rotation / max(self._paths.along(d).turn, 1e-9))
        t, open_ = np.where(goes, whole, 0.0), goes.copy()
        for _ in range(HALVINGS):
            self._put(start, d, t)
            change = self._energies()[0] - energy
            falls = (change <= -ARMIJO * t * slope) & (change < -rounding)
            same = np.abs(change) <= rounding
            if (open_ & same & ~falls).any():
                self.gathered.balance()
                falls |= same & (self._residual() < residual)
            open_ &= ~falls
            if not open_.any():
                break
            t[open_] *= 0.5
        t[open_] = 0.0
        if open_.any():
            self._put(start, d, t)
        return bool(t.any())

    def _put(self, start: np.ndarray, d: np.ndarray, t: np.ndarray) -> None:
        """Move each member to its t on the path from u = start along d."""
        device = self.gathered.device
        device.assign(self.gathered.u, start)
        device.download(d)
        part = d.copy()
        part[:-1] *= np.repeat(t, self._problem.model.vertices)[:, None]
        self._paths.along(part).go(1.0)

    def _each(self, vectors: np.ndarray) -> np.ndarray:
        """Reshape vectors of all vertices to (copies, n, 3)."""
        return vectors.reshape(self._room, self._problem.model.vertices, 3)

    def _relative_residual(self) -> np.ndarray:
        """(copies,) largest relative residual of a body of each member."""
        bodies = self.gathered.balance().bodies
        return np.array([body.relative_residual for body in bodies]).reshape(self._room, -1).max(axis=1)

    def _residual(self) -> np.ndarray:
        """(copies,) residual |r| [N]."""
        bodies = self.gathered.balance().bodies
        return np.sqrt(np.square([body.residual for body in bodies]).reshape(self._room, -1).sum(axis=1))

    def _energies(self) -> tuple[np.ndarray, np.ndarray]:
        """(copies,) energies E [J], and bounds of their rounding errors [J]."""
        gathered, measures = self.gathered, self.gathered.measures
        by_term = (measures.element_energies(k) for k in range(len(gathered.model.terms)))
        stored = [energies.reshape(self._room, -1).sum(axis=1) for energies in by_term]
        u, anchor = (self._each(gathered.states.vectors(a)[0]) for a in (gathered.u, gathered.states.anchor))
        stored.append(-np.einsum("cni,cni->c", self._each(gathered.loads.force), u))
        inertia = gathered.loads.inertia.reshape(self._room, -1)
        stored.append(0.5 * np.einsum("cn,cni,cni->c", inertia, u - anchor, u - anchor))
        scale = np.sum(np.abs(stored), axis=0)
        return np.sum(stored, axis=0), rounding_of(measures, scale, 1 / np.sqrt(self._room))

    def _bring_back(self) -> None:
        problem, states = self._problem, self._problem.states
        found = self._each(self.gathered.states.vectors(self.gathered.u)[0])[: len(self._members)]
        states.vectors(states.u)[self._members] = found
        problem.device.upload(states.u)
        problem.room.stale = True


class BatchedSweeps(PBNGRun):
    """PBNG run over a batch that leaves slowly converging members to separate solves.

    A member leaves if more than `prepare_sweeps` further sweeps are predicted and the solve has no iteration limit or
    time limit. Members with a small relative residual but far from the equilibrium continue to the smaller
    relative residual that the distance requires. Members at saddles leave.
    """

    def __init__(self, problem: Problem, max_sweeps_left: int, max_rotation: float | None) -> None:
        """Begin a run.

        Args:
            problem: Problem with its batch.
            ahead: Largest number of predicted sweeps of members that stay.
            turn: Largest rotation of nearly all elements in one Newton step [rad], or None for no such steps.
        """
        super().__init__(PBNG(), problem)
        self._max_sweeps_left, self._max_rotation, self._sweeps = max_sweeps_left, max_rotation, 0
        self._tolerance: float | None = None
        self._rates = BatchRateEstimates(problem.batch_size)
        self.refines_sequentially = False
        self._saddles = np.zeros(problem.batch_size, bool)

    def set_targets(self, tolerance: float | None, max_iterations: int | None, budget: float | None) -> None:
        self.refines_sequentially = tolerance is not None and max_iterations is None and budget is None
        self._rates.target[:] = tolerance or 1e-8
        self._tolerance = tolerance

    def newton_together(self, members: Sequence[int], distance: float | None) -> BatchedNewton | None:
        if self._max_rotation is None or self._tolerance is None or room_for(self.problem) < 2:
            return None
        return BatchedNewton(self.problem, members, self._tolerance, distance, self._max_rotation)

    def advance(self, count: int) -> None:
        super().advance(count)
        self._sweeps += count

    def observe_all(self, balances: Balances, active: np.ndarray) -> np.ndarray:
        moved = super().observe_all(balances, active)
        self._rates.record(self._sweeps, np.where(moved, np.inf, balances.relative_residual))
        return moved

    def tighten_tolerance(self, relative_residual: float, member: int = 0) -> None:
        self._rates.target[member] = relative_residual

    def leave_saddle(self, member: int = 0) -> bool:
        self._saddles[member] = True
        return self.refines_sequentially

    def find_leaving(self) -> np.ndarray:
        if not self.refines_sequentially:
            return super().find_leaving()
        return self._saddles | (self._rates.remaining > self._max_sweeps_left)
