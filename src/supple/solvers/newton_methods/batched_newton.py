"""Newton steps of several batch members as bodies of one problem, each with its own line search.

    Δu = PCG(H, f, M) of all members, each to the same relative accuracy; `d` in the code
    t = 1 of each, halved until its own energy decreases by Armijo's rule
    x = x(t) along the rotation path of the members' Δu, each scaled by its t

Members that do not converge this way, at saddles or behind energy barriers, are left to `NewtonPCG`, one by
one. `BatchedSweeps` runs the sweeps before these steps, with a rate estimate for each batch member.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from supple.problem import Balances, Problem
from supple.problem.diagnostics import rounding_of
from supple.solvers.newton_methods.block_diagonal import block_capacity, join_members, padded_block_size
from supple.solvers.newton_methods.error_estimate import batch_body_errors
from supple.solvers.newton_methods.line_search import ARMIJO, copy_u
from supple.solvers.newton_methods.newton_system import Linearization
from supple.solvers.newton_methods.rate_estimate import TARGET_WITHOUT_TOLERANCE, BatchRateEstimates
from supple.solvers.newton_methods.rotation_path import RotationPath
from supple.solvers.pbng import PBNG, PBNGRun

MAX_STEPS = 30
"""Step limit; members that have not converged by then are solved separately. Most take 3 to 15 steps."""

MAX_CONCAVE_STEPS = 3
"""Limit of steps with negative curvature, which slow all members down to the speed of a single one."""

MAX_HALVINGS = 12
"""Limit of step halvings of a member, after which its step is 0."""

CONVERGED_FRACTION = 0.3
"""Fraction of the required relative residual and distance at which a member counts as converged.

This estimate of the distance is less accurate than an error estimate proper, and either value may increase
when the state is rounded.
"""


class BatchedNewton:
    """Newton iteration in float64 for several batch members.

    Args:
        problem: Problem with its batch.
        members: Batch members to solve.
        tolerance: Relative residual to reach.
        distance: Distance to the equilibrium to reach, relative to the size of a body, or None.
        max_rotation: Largest rotation of nearly all elements in one step [rad].

    Attributes:
        block_problem: Block-diagonal problem of the members.
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
            CONVERGED_FRACTION * tolerance,
            np.inf if distance is None else CONVERGED_FRACTION * distance,
        )
        self._group_size = padded_block_size(problem, len(members))
        fill = [members[-1]] * (self._group_size - len(members))
        self.block_problem = join_members(problem, [*members, *fill])
        self._linear: Linearization = self.block_problem.get_shared(
            "linearization", lambda: Linearization(self.block_problem, per_component=False)
        )
        self._paths: RotationPath = self.block_problem.get_shared(
            "rotation path", lambda: RotationPath(self.block_problem)
        )
        self.steps = self._concave = 0
        self._last_residual: float | None = None
        self._converged = np.zeros(self._group_size, bool)

    @property
    def converged(self) -> list[int]:
        """Batch members that have reached the relative residual and, as estimated, the distance."""
        return [
            member
            for member, has_converged in zip(self._members, self._converged, strict=False)
            if has_converged
        ]

    def run(self) -> None:
        """Iterate until all members have converged or separate solves are faster; write their states back."""
        while self.steps < MAX_STEPS and self._concave < MAX_CONCAVE_STEPS and self._step():
            self.steps += 1
        self._write_back()

    def _step(self) -> bool:
        """Make one Newton step; return True if any member moved."""
        block_problem, linear, states = self.block_problem, self._linear, self.block_problem.states
        balance = block_problem.balance()
        if not balance.finite:
            return False
        accuracy = linear.accuracy(balance.residual, self._last_residual, self._tolerance)
        self._last_residual = balance.residual
        relative_residual, residual = self._relative_residual(), self._residual()
        direction = linear.direction(accuracy, 0.0)
        self._concave += direction.projected
        d, net, u = (
            self._by_member(states.vectors(records)[0]) for records in (direction.d, states.net, states.u)
        )
        forces = np.where(self._problem.model.free[:, None], net, 0)
        known = batch_body_errors(self._problem.model, d, forces, u)
        distance = np.array([max(body.position_error for body in bodies) for bodies in known])
        self._converged = (relative_residual <= self._tolerance) & (distance <= self._distance)
        slope = np.einsum("cni,cni->c", d, forces)
        moving = ~self._converged & (slope > 0)
        return bool(moving.any()) and self._go(direction.d, slope, moving, residual)

    def _go(self, d: np.ndarray, slope: np.ndarray, moving: np.ndarray, residual: np.ndarray) -> bool:
        """Search along d for each member separately; return True if any member moved."""
        start = copy_u(self.block_problem)
        energy, rounding = self._energies()
        first_t = min(1.0, self._max_rotation / max(self._paths.along(d).typical_rotation, 1e-9))
        t, open_ = np.where(moving, first_t, 0.0), moving.copy()
        for _ in range(MAX_HALVINGS):
            self._move(start, d, t)
            change = self._energies()[0] - energy
            falls = (change <= -ARMIJO * t * slope) & (change < -rounding)
            same = np.abs(change) <= rounding
            if (open_ & same & ~falls).any():
                self.block_problem.balance()
                falls |= same & (self._residual() < residual)
            open_ &= ~falls
            if not open_.any():
                break
            t[open_] *= 0.5
        t[open_] = 0.0
        if open_.any():
            self._move(start, d, t)
        return bool(t.any())

    def _move(self, start: np.ndarray, d: np.ndarray, t: np.ndarray) -> None:
        """Move each member to its t on the path from u = start along d."""
        device = self.block_problem.device
        device.assign(self.block_problem.u, start)
        device.download(d)
        part = d.copy()
        part[:-1] *= np.repeat(t, self._problem.model.vertices)[:, None]
        self._paths.along(part).go(1.0)

    def _by_member(self, vectors: np.ndarray) -> np.ndarray:
        """Reshape vectors of all vertices to (batch, n, 3)."""
        return vectors.reshape(self._group_size, self._problem.model.vertices, 3)

    def _relative_residual(self) -> np.ndarray:
        """(batch,) largest relative residual of a body of each member."""
        bodies = self.block_problem.balance().bodies
        return np.array([body.relative_residual for body in bodies]).reshape(self._group_size, -1).max(axis=1)

    def _residual(self) -> np.ndarray:
        """(batch,) residual |f| [N]."""
        bodies = self.block_problem.balance().bodies
        return np.sqrt(
            np.square([body.residual for body in bodies]).reshape(self._group_size, -1).sum(axis=1)
        )

    def _energies(self) -> tuple[np.ndarray, np.ndarray]:
        """(batch,) energies E [J], and bounds of their rounding errors [J]."""
        block_problem, measures = self.block_problem, self.block_problem.diagnostics
        by_term = (measures.element_energies(k) for k in range(len(block_problem.model.terms)))
        stored = [energies.reshape(self._group_size, -1).sum(axis=1) for energies in by_term]
        u, anchor = (
            self._by_member(block_problem.states.vectors(a)[0])
            for a in (block_problem.u, block_problem.states.anchor)
        )
        stored.append(-np.einsum("cni,cni->c", self._by_member(block_problem.loads.force), u))
        inertia = block_problem.loads.inertia.reshape(self._group_size, -1)
        stored.append(0.5 * np.einsum("cn,cni,cni->c", inertia, u - anchor, u - anchor))
        scale = np.sum(np.abs(stored), axis=0)
        return np.sum(stored, axis=0), rounding_of(measures, scale, 1 / np.sqrt(self._group_size))

    def _write_back(self) -> None:
        problem, states = self._problem, self._problem.states
        displacements = self._by_member(self.block_problem.states.vectors(self.block_problem.u)[0])[
            : len(self._members)
        ]
        states.vectors(states.u)[self._members] = displacements
        problem.device.upload(states.u)
        problem.trust_region.outdated = True


class BatchedSweeps(PBNGRun):
    """PBNG run over a batch that leaves slowly converging members to separate solves.

    A member leaves if more than `max_sweeps_left` sweeps are predicted and the solve has no iteration limit
    or time limit. Members with a small relative residual but far from the equilibrium continue to the smaller
    relative residual that the distance requires. Members at saddles leave.
    """

    def __init__(self, problem: Problem, max_sweeps_left: int, max_rotation: float | None) -> None:
        """Begin a run.

        Args:
            problem: Problem with its batch.
            max_sweeps_left: Largest number of predicted sweeps of members that stay.
            max_rotation: Largest rotation of nearly all elements in one Newton step [rad], or None without
                Newton steps.
        """
        super().__init__(PBNG(), problem)
        self._max_sweeps_left, self._max_rotation, self._sweeps = max_sweeps_left, max_rotation, 0
        self._tolerance: float | None = None
        self._rates = BatchRateEstimates(problem.batch_size)
        self.refines_sequentially = False
        self._saddles = np.zeros(problem.batch_size, bool)

    def set_targets(self, tolerance: float | None, max_iterations: int | None, budget: float | None) -> None:
        self.refines_sequentially = tolerance is not None and max_iterations is None and budget is None
        self._rates.target[:] = tolerance or TARGET_WITHOUT_TOLERANCE
        self._tolerance = tolerance

    def start_batched_newton(self, members: Sequence[int], distance: float | None) -> BatchedNewton | None:
        if self._max_rotation is None or self._tolerance is None or block_capacity(self.problem) < 2:
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

    def find_members_to_separate(self) -> np.ndarray:
        if not self.refines_sequentially:
            return super().find_members_to_separate()
        return self._saddles | (self._rates.remaining > self._max_sweeps_left)
