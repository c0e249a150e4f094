"""Hybrid solver, our own: sweeps while they converge quickly, then multilevel Newton steps.

    start    E infinite: minimize a surrogate               Untangling.untangle (untangling.py)
    phase 1  PBNG sweeps with Anderson acceleration         `HybridRun.advance`
             at every check, each 10 sweeps:
                 n ← log(ρ/tolerance)/rate                  RateEstimate.remaining (rate_estimate.py)
                 n > n_max: phase 2                         `HybridRun.observe`
    phase 2  Newton steps, along which E never rises        NewtonPCG.step (newton_pcg.py)
             Δu ← PCG(H, f), multigrid as preconditioner    Linearization.direction (newton_system.py)
             negative curvature p: Δu ← PCG(H⁺, f)          Linearization.projected_direction
             t ← 1, less for large rotations; halved until Armijo's rule holds along a path that rotates
                 elements; doubled if E fell more than predicted
                                                            NewtonPCG._search_along
             t short: step with H⁺, then 10 sweeps, each kept if E falls
                                                            NewtonPCG._fallback_step
             also descend along ±p                          NewtonPCG._descend_along_curvature
    instead  obstacles: active-set steps                    ActiveSetNewton.step (active_set.py)
             follower loads without contact                 FollowerNewton.step (follower_newton.py)
             batches: sweeps, Newton steps of several states
                                                            BatchedSweeps (batched_newton.py)
             friction between bodies, or obstacles on a device or in a batch: PBNG only
                                                            `Hybrid.begin`
             number of iterations without tolerance: sweeps only
                                                            `HybridRun.set_targets`
             too little time for a Newton step: sweeps      TimeBudget (rate_estimate.py)

These files are in newton_methods/. E, f and H are those of newton.py, and H⁺ is the sum of the positive
semi-definite parts of the element matrices. ρ is the relative residual; rate, its logarithmic decrease per
sweep, is fitted to the last 2 to 4 checks, for batches always to 4. n_max is max_predicted_sweeps, 4 times as
large on a device or with obstacles (`OBSTACLE_FACTOR`), 16 times for batches.

E never rises, except by rounding, in the Newton steps of `NewtonPCG`. Accelerated sweeps may raise it between
two checks. Active-set steps are accepted if the residual falls. Follower loads have no energy: their
corrections are accepted if |Δu| falls.

Sweeps hardly reduce long waves; these are the task of phase 2, a truncated Newton method [Dembo and Steihaug
1983] with aggregation multigrid (linear/multilevel/). Unstable equilibria are left along negative curvature.
The complete description is docs/design/hybrid.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from supple.model.model import Model
from supple.problem import Balance, Balances, Problem
from supple.solvers.base import Run, Solver
from supple.solvers.newton_methods.active_set import PAUSES, ActiveSetNewton
from supple.solvers.newton_methods.batched_newton import BatchedSweeps
from supple.solvers.newton_methods.float64_problem import to_float64, write_back
from supple.solvers.newton_methods.follower_newton import MAX_FIXED_LOAD_UPDATES, FollowerNewton
from supple.solvers.newton_methods.newton_pcg import NewtonPCG
from supple.solvers.newton_methods.rate_estimate import (
    DEVICE_FACTOR,
    INITIAL_TARGET,
    TARGET_WITHOUT_TOLERANCE,
    RateEstimate,
    TimeBudget,
)
from supple.solvers.newton_methods.unbounded import find_unbounded_cause
from supple.solvers.newton_methods.untangling import COARSE_TOLERANCE, Untangling
from supple.solvers.pbng import PBNG
from supple.support.arguments import check_choice, check_integer, check_iterations, check_number
from supple.support.keywords import suggest_keywords
from supple.support.text import pluralize

ACTIVE_SET_PATIENCE = max(PAUSES) + 16
"""`patience` of Newton steps with obstacles: longer than the longest pause between them, during which sweeps
may find a new active set without a lower residual."""

OBSTACLE_FACTOR = 4
"""Factor of `max_predicted_sweeps` with obstacles, beside which Newton steps are often rejected."""

BATCH_FACTOR = 4
"""Factor of `max_predicted_sweeps` for batches, whose members share the cost of a sweep."""

MAX_RATE_RESETS = 10
"""Corrections of rigid bodies per solve that reset the rate estimate; later ones no longer do."""


@suggest_keywords
@dataclass(frozen=True)
class Hybrid(Solver):
    """Hybrid of PBNG and Newton: sweeps while they converge quickly, then Newton steps.

    Args:
        max_predicted_sweeps: Largest predicted number of remaining sweeps; beyond it, Newton steps begin.
            Four times as large on a device or with obstacles, sixteen times for batches. 0 begins with Newton
            steps.
        max_rotation: Largest rotation of nearly all elements in one Newton step [rad].
        path: "rotation" follows rotating elements, "straight" follows the line.
        iterations: Sweeps and Newton steps per time step unless the call sets a limit.
    """

    name: ClassVar[str] = "hybrid"
    batches: ClassVar[bool] = True

    max_predicted_sweeps: int = 250
    max_rotation: float = 2.0
    path: Literal["rotation", "straight"] = "rotation"
    iterations: int | None = None

    only_with: ClassVar[dict[str, tuple[str, str]]] = {"max_rotation": ("path", "rotation")}

    def __post_init__(self) -> None:
        check_integer("max_predicted_sweeps", self.max_predicted_sweeps, at_least=0)
        check_number("max_rotation", self.max_rotation, above=0)
        check_choice("path", self.path, ("rotation", "straight"))
        check_iterations(self.iterations)

    def begin(self, problem: Problem) -> Run:
        """Start a run, or PBNG sweeps if the problem does not permit Newton steps.

        Batches are swept for as long as the rate estimate justifies. Friction between bodies always requires
        sweeps, as do obstacles on a device or in a batch.

        Args:
            problem: Problem to solve.

        Returns:
            The run.
        """
        allows_newton = not problem.contacts or (problem.batch_size == 1 and problem.device.name == "cpu")
        if problem.dynamic_terms.has_body_friction or not allows_newton:
            return PBNG().begin(problem)
        if problem.batch_size == 1:
            return HybridRun(self, problem)
        max_rotation = self.max_rotation if self.path == "rotation" else None
        return BatchedSweeps(problem, self.max_predicted_sweeps * DEVICE_FACTOR * BATCH_FACTOR, max_rotation)

    def phases(self) -> tuple[Solver, ...]:
        return self, replace(self, max_predicted_sweeps=0)

    def for_close_guess(self) -> Solver:
        return replace(self, max_predicted_sweeps=0, path="straight")

    def memory(self, model: Model, number: int) -> int:
        return PBNG().memory(model, number)


class HybridRun(Run):
    """Run of `Hybrid` on one problem; phase 2 works on the problem in float64.

    Attributes:
        _sweep_run: PBNG run of phase 1.
        _newton: Stepper of phase 2, None in phase 1.
        _rate: Rate estimate of the sweeps, with the relative residual to reach.
        _time_budget: Remaining time.
        _untangling: Recovery of inverted elements.
        _max_sweeps_left: Predicted number of remaining sweeps beyond which phase 2 begins.
        _sweeps: Number of sweeps so far.
        _sweeps_only: True if the call permits no phase 2: it sets iterations without a tolerance.
        _swept_after_newton: True if sweeps followed the last Newton step, so that its float64 state is old.
        _unbounded_cause: Reason for which the energy appears to be unbounded, or "".
        _fixes_loads: True once `FollowerNewton` failed; follower loads are then fixed between updates.
        _fixed_load_updates: Number of these updates.
        _start: Initial positions of a problem with follower loads and without contact, otherwise None.
        _inverted: Number of inverted elements at `_start`.
        _layout_version: Version of the stencils that was processed last.
        _rigid_moves: Number of motions of rigid bodies at the last check.
        _rate_resets: Number of rate estimates discarded because of such motions.
    """

    needs_monitoring = True

    def __init__(self, options: Hybrid, problem: Problem) -> None:
        self.options, self.problem = options, problem
        self._sweep_run = PBNG().begin(problem)
        self.check_every, self.patience = self._sweep_run.check_every, self._sweep_run.patience
        self._rate, self._time_budget = RateEstimate(INITIAL_TARGET), TimeBudget(None)
        self._untangling = Untangling(problem)
        self._max_sweeps_left = options.max_predicted_sweeps * (
            1 if problem.device.name == "cpu" else DEVICE_FACTOR
        )
        self._max_sweeps_left *= OBSTACLE_FACTOR if problem.contacts else 1
        self._sweeps = 0
        self._newton: NewtonPCG | ActiveSetNewton | FollowerNewton | None = None
        self._swept_after_newton = False
        self._sweeps_only = True
        self._unbounded_cause = ""
        self._fixes_loads, self._fixed_load_updates = False, 0
        self._start: np.ndarray | None = None
        if problem.follower_loads.without_contact:
            self._start, self._inverted = problem.positions.copy(), problem.diagnostics.inversions()[0]
        self._layout_version = problem.layout.version
        self._rigid_moves, self._rate_resets = problem.contacts.moves, 0
        if options.max_predicted_sweeps == 0:
            self._start_newton()

    def advance(self, iterations: int) -> None:
        """Run sweeps in phase 1, Newton steps in phase 2."""
        if self.problem.layout.version != self._layout_version:
            self._update_stencils()
        if self._untangling.open:
            self._untangle()
        if self._newton is None:
            with self._time_budget.charge_sweeps(iterations):
                self._sweep_run.advance(iterations)
            self._sweeps += iterations
        elif self._time_budget.allows_step:
            with self._time_budget.charge_steps(iterations):
                for _ in range(iterations):
                    self._newton.step()
                write_back(self._newton.problem, self.problem)
                if isinstance(self._newton, FollowerNewton):
                    self._sync_follower_loads()
            self._unbounded_cause = "" if self.is_moving(0) else find_unbounded_cause(self.problem)
            self.unbounded = bool(self._unbounded_cause)
        else:  # too little of the time limit is left for another Newton step
            PBNG().begin(self.problem).advance(iterations)
            self._swept_after_newton = True

    def observe(self, balance: Balance, member: int = 0) -> bool:
        """Continue the sweeps while the rate estimate predicts an early end; otherwise begin Newton steps."""
        if isinstance(self._newton, ActiveSetNewton):
            return self._newton.observe(balance)
        if self._newton is not None:
            return False
        self._reset_rate()
        moved = self._sweep_run.observe(balance, member)
        self._rate.record(self._sweeps, math.inf if moved else balance.relative_residual)
        slow = self._rate.remaining > self._max_sweeps_left
        if slow and not self._sweeps_only and self._time_budget.allows_newton:
            self._start_newton()
        return moved

    def _start_newton(self) -> NewtonPCG | ActiveSetNewton | FollowerNewton:
        """Begin Newton steps at the current u: active-set, follower or plain."""
        self.check_every, self.patience, self._swept_after_newton = 1, 3, False
        if self.problem.contacts:
            self.patience = ACTIVE_SET_PATIENCE
            make = partial(NewtonPCG, self.options)
            self._newton = ActiveSetNewton(self.problem, make, self._rate.target)
            return self._newton
        float64_problem = to_float64(self.problem)
        newton = NewtonPCG(self.options, float64_problem, self._rate.target)
        self._fixes_loads |= isinstance(self._newton, FollowerNewton) and self._newton.failed
        self._newton = newton
        if self.problem.follower_loads.without_contact and not self._fixes_loads:
            rotates = self.options.path == "rotation"
            if self._start is not None and float64_problem.diagnostics.inversions()[0] > self._inverted:
                float64_problem.positions = self._start  # sweeps under fixed loads have inverted elements
            self._newton = FollowerNewton(float64_problem, self._rate.target, newton.step, rotates)
        return self._newton

    def _untangle(self) -> None:
        """Move u to a state of finite energy, if necessary; phase 2 starts again from there."""
        self._untangling.untangle(lambda surrogate: NewtonPCG(self.options, surrogate, COARSE_TOLERANCE).step)
        if self._newton is not None:
            self._start_newton()

    def _sync_follower_loads(self) -> None:
        """Update the follower loads to the current positions; fix them if `FollowerNewton` failed."""
        if self._newton is not None and self._newton.problem is not self.problem:
            self.problem.follower_loads.sync()
        if isinstance(self._newton, FollowerNewton) and self._newton.failed:
            self._start_newton()

    def _update_stencils(self) -> None:
        """Restart rate estimate and Newton steps after a change of stencils, which changes the forces."""
        self._layout_version = self.problem.layout.version
        self._fixed_load_updates += self._fixes_loads
        self._rate = RateEstimate(self._rate.target)
        if self._newton is not None:
            self._start_newton()

    def _reset_rate(self) -> None:
        """Discard the convergence rate if rigid bodies have moved since the last check.

        Their motion raises the relative residual, so their first few corrections hide the rate of the sweeps.
        """
        moves = self.problem.contacts.moves
        if moves != self._rigid_moves and self._rate_resets < MAX_RATE_RESETS:
            self._rate, self._rate_resets = RateEstimate(self._rate.target), self._rate_resets + 1
        self._rigid_moves = moves

    def start_at(self, balances: Balances) -> None:
        self._sweep_run.start_at(balances)

    def set_targets(self, tolerance: float | None, max_iterations: int | None, budget: float | None) -> None:
        """Set the termination criteria. Iterations requested without a tolerance are sweeps."""
        self._time_budget = TimeBudget(budget)
        self._sweeps_only = (
            tolerance is None and max_iterations is not None and self.options.max_predicted_sweeps > 0
        )
        self._rate.target = tolerance or TARGET_WITHOUT_TOLERANCE
        if self._newton is not None:
            self._newton.tolerance = self._rate.target

    def tighten_tolerance(self, relative_residual: float, member: int = 0) -> None:
        """Continue by Newton steps to a smaller relative residual.

        Long waves hardly contribute to the relative residual. The error estimate has already computed the
        first direction.
        """
        self._rate.target = relative_residual
        (self._newton or self._start_newton()).tolerance = relative_residual

    def leave_saddle(self, member: int = 0) -> bool:
        if self.problem.contacts:
            return False
        (self._newton or self._start_newton()).at_saddle = True
        return True

    def is_moving(self, member: int) -> bool:
        return isinstance(self._newton, FollowerNewton) and self._newton.is_moving

    def find_members_to_separate(self) -> np.ndarray:
        return np.full(self.problem.batch_size, self._fixed_load_updates > MAX_FIXED_LOAD_UPDATES)

    @property
    def recovers_from_inversion(self) -> bool:
        return self._untangling.open

    @property
    def float64_problem(self) -> Problem | None:
        newton = self._newton
        is_current = (
            isinstance(newton, NewtonPCG | FollowerNewton)
            and newton.problem is not self.problem
            and not self._swept_after_newton
        )
        return newton.problem if is_current and newton is not None else None

    @property
    def colors(self) -> int:
        return self._sweep_run.colors

    def collect_rejected(self) -> list[int]:
        return self._sweep_run.collect_rejected()

    def notes(self, member: int = 0) -> list[str]:
        if self._newton is None:
            return self._untangling.notes + self._sweep_run.notes(member)
        steps, *others = self._newton.notes()
        others += [self._unbounded_cause] if self.unbounded else []
        return [*self._untangling.notes, f"{pluralize(self._sweeps, 'sweep')}, then {steps}", *others]
