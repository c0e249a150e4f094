"""Hybrid solver: sweeps while they converge quickly, then multilevel Newton steps along rotation paths.

    phase 1  PBNG-Anderson sweeps, while the convergence rate of the relative residual predicts an early end
    phase 2  Newton steps (`newton_pcg.py`), along which E never rises

If E is infinite at the start, a surrogate energy is minimized first. Unstable equilibria are left along
negative curvature. Sweeps hardly reduce long waves; these are the task of the multilevel solver of phase 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from supple.model.model import Model, unpinned_mask
from supple.problem import Balance, Balances, Problem
from supple.solvers.base import Run, Solver
from supple.solvers.newton_methods.active_set import ActiveSetNewton
from supple.solvers.newton_methods.batched_newton import BatchedSweeps
from supple.solvers.newton_methods.float64_problem import to_float64, write_back
from supple.solvers.newton_methods.follower_newton import MAX_FIXED_LOAD_UPDATES, FollowerNewton
from supple.solvers.newton_methods.newton_pcg import NewtonPCG
from supple.solvers.newton_methods.rate_estimate import DEVICE_FACTOR, RateEstimate, TimeBudget
from supple.solvers.newton_methods.untangling import COARSE_TOLERANCE, Untangling
from supple.solvers.pbng import PBNG
from supple.support.arguments import check_choice, check_integer, check_iterations, check_number
from supple.support.keywords import suggest_keywords
from supple.support.text import pluralize

ACTIVE_SET_PATIENCE = 10
"""`patience` of Newton steps with obstacles, larger than without because contacts come and go."""

BATCH_FACTOR = 4
"""Factor of `max_predicted_sweeps` for batches, whose members share the cost of a sweep."""


MAX_RATE_RESETS = 10
"""Corrections of rigid bodies per solve that reset the rate estimate; later ones no longer do."""

MAX_GROWTH = 10.0
"""Size or displacement of a body, relative to the scene, beyond which a solve is unbounded."""


@suggest_keywords
@dataclass(frozen=True)
class Hybrid(Solver):
    """Hybrid of PBNG and Newton: sweeps while they converge quickly, then Newton steps.

    Args:
        max_predicted_sweeps: Largest predicted number of remaining sweeps; beyond it, Newton steps begin.
            Four times as large on a device. 0 begins with Newton steps.
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
        """
        able = not problem.contacts or (problem.batch_size == 1 and problem.device.name == "cpu")
        if problem.dynamic_terms.has_body_friction or not able:
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


GROWTH_MESSAGE = (
    f"bodies have grown to {MAX_GROWTH:g} times their size and go on: what presses on them, such as the "
    "pressure in a chamber, gains more from that than it costs them; less pressure, or a material that "
    "stiffens as it "
    "stretches, such as gent or yeoh, has an equilibrium, and frames of a motion show where it is lost"
)

DRIFT_MESSAGE = (
    f"bodies have left for places {MAX_GROWTH:g} times as far off as the scene is large, and go on: nothing "
    "holds them; what only lies on others, without friction, may have no equilibrium: pin it, or "
    "simulate a motion"
)


def _find_unbounded_cause(problem: Problem) -> str:
    """Apparent reason for a missing equilibrium; empty if no reason is found."""
    if problem.loads.inertia.any():
        return ""
    return (
        GROWTH_MESSAGE
        if _has_outgrown_scene(problem)
        else DRIFT_MESSAGE
        if problem.trust_region and _has_left_scene(problem)
        else ""
    )


def _size(problem: Problem) -> float:
    """Extent of the scene at rest or of its constrained vertices, whichever is larger [m]."""
    known = problem.model.rest, problem.positions[~problem.model.free]
    return max(float(np.ptp(x, axis=0).max()) for x in known if len(x))


def _has_left_scene(problem: Problem) -> bool:
    """True if an unpinned body has left the scene."""
    model, displacement = problem.model, problem.positions - problem.model.rest
    loose = [own for _, own in model.body_vertices if unpinned_mask(model)[own].all()]
    drifts = (np.linalg.norm(displacement[own].mean(axis=0)) for own in loose)
    return bool(max(drifts, default=0.0) > MAX_GROWTH * _size(problem))


def _has_outgrown_scene(problem: Problem) -> bool:
    """True if shape-dependent loads, the only possible cause, have made a body grow beyond all bounds."""
    model, x = problem.model, problem.positions
    if not any(term.loads and not (term.intersection_free or term.encloses) for term in model.terms):
        return False
    extents = (np.ptp(x[vertices], axis=0).max() for _, vertices in model.body_vertices)
    return bool(max(extents, default=0.0) > MAX_GROWTH * _size(problem))


class HybridRun(Run):
    """Run of `Hybrid` on one problem; phase 2 works on the problem in float64."""

    needs_monitoring = True

    def __init__(self, options: Hybrid, problem: Problem) -> None:
        self.options, self.problem = options, problem
        self._sweeping = PBNG().begin(problem)
        self.check_every, self.patience = self._sweeping.check_every, self._sweeping.patience
        self._rate, self._time_budget = RateEstimate(1e-4), TimeBudget(None)
        self._untangling = Untangling(problem)
        self._max_sweeps_left = options.max_predicted_sweeps * (
            1 if problem.device.name == "cpu" else DEVICE_FACTOR
        )
        self._sweeps = 0
        self._newton: NewtonPCG | ActiveSetNewton | FollowerNewton | None = None
        self._swept_since = False
        self._sweeps_only = True
        self._unbounded_cause = ""
        self._fixes_loads, self._fixed_load_updates = False, 0
        self._start: np.ndarray | None = None
        if problem.follower_loads.without_contact:
            self._start, self._inverted = problem.positions.copy(), problem.diagnostics.inversions()[0]
        self._version = problem.layout.version
        self._rigid_moves, self._rate_resets = problem.contacts.moves, 0
        if options.max_predicted_sweeps == 0:
            self._start_newton()

    @property
    def recovers(self) -> bool:
        return self._untangling.open

    @property
    def float64_problem(self) -> Problem | None:
        newton = self._newton
        known = (
            isinstance(newton, NewtonPCG | FollowerNewton)
            and newton.problem is not self.problem
            and not self._swept_since
        )
        return newton.problem if known and newton is not None else None

    def start_at(self, balances: Balances) -> None:
        self._sweeping.start_at(balances)

    def set_targets(self, tolerance: float | None, max_iterations: int | None, budget: float | None) -> None:
        """Set the termination criteria. Iterations requested without a tolerance are sweeps."""
        self._time_budget = TimeBudget(budget)
        self._sweeps_only = (
            tolerance is None and max_iterations is not None and self.options.max_predicted_sweeps > 0
        )
        self._rate.target = tolerance or 1e-8
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

    @property
    def colors(self) -> int:
        return self._sweeping.colors

    def collect_rejected(self) -> list[int]:
        return self._sweeping.collect_rejected()

    def notes(self, member: int = 0) -> list[str]:
        if self._newton is None:
            return self._untangling.notes + self._sweeping.notes(member)
        steps, *others = self._newton.notes()
        others += [self._unbounded_cause] if self.unbounded else []
        return [*self._untangling.notes, f"{pluralize(self._sweeps, 'sweep')}, then {steps}", *others]

    def advance(self, iterations: int) -> None:
        if self.problem.layout.version != self._version:
            self._update_stencils()
        if self._untangling.open:
            self._untangle()
        if self._newton is None:
            with self._time_budget.charge_sweeps(iterations):
                self._sweeping.advance(iterations)
            self._sweeps += iterations
        elif self._time_budget.allows_step:
            with self._time_budget.charge_steps(iterations):
                for _ in range(iterations):
                    self._newton.step()
                write_back(self._newton.problem, self.problem)
                if isinstance(self._newton, FollowerNewton):
                    self._sync_follower_loads()
            self._unbounded_cause = "" if self.is_moving(0) else _find_unbounded_cause(self.problem)
            self.unbounded = bool(self._unbounded_cause)
        else:  # too little of the time limit is left for another Newton step
            PBNG().begin(self.problem).advance(iterations)
            self._swept_since = True

    def _sync_follower_loads(self) -> None:
        """Update the follower loads to the current positions; fix them if `FollowerNewton` failed."""
        if self._newton is not None and self._newton.problem is not self.problem:
            self.problem.follower_loads.sync()
        if isinstance(self._newton, FollowerNewton) and self._newton.failed:
            self._start_newton()

    def is_moving(self, member: int) -> bool:
        return isinstance(self._newton, FollowerNewton) and self._newton.is_moving

    def find_members_to_separate(self) -> np.ndarray:
        return np.full(self.problem.batch_size, self._fixed_load_updates > MAX_FIXED_LOAD_UPDATES)

    def _untangle(self) -> None:
        self._untangling.untangle(lambda surrogate: NewtonPCG(self.options, surrogate, COARSE_TOLERANCE).step)
        if self._newton is not None:
            self._start_newton()

    def observe(self, balance: Balance, member: int = 0) -> bool:
        """Continue the sweeps while the rate estimate predicts an early end; otherwise begin Newton steps."""
        if isinstance(self._newton, ActiveSetNewton):
            return self._newton.observe(balance)
        if self._newton is not None:
            return False
        self._reset_rate()
        moved = self._sweeping.observe(balance, member)
        self._rate.record(self._sweeps, math.inf if moved else balance.relative_residual)
        slow = self._rate.remaining > self._max_sweeps_left
        if slow and not self._sweeps_only and self._time_budget.allows_newton:
            self._start_newton()
        return moved

    def _reset_rate(self) -> None:
        """Discard the convergence rate if rigid bodies have moved since the last check.

        Their motion raises the relative residual, so their first few corrections hide the rate of the sweeps.
        """
        moves = self.problem.contacts.moves
        if moves != self._rigid_moves and self._rate_resets < MAX_RATE_RESETS:
            self._rate, self._rate_resets = RateEstimate(self._rate.target), self._rate_resets + 1
        self._rigid_moves = moves

    def _update_stencils(self) -> None:
        """Restart rate estimate and Newton steps after a change of stencils, which changes the forces."""
        self._version = self.problem.layout.version
        self._fixed_load_updates += self._fixes_loads
        self._rate = RateEstimate(self._rate.target)
        if self._newton is not None:
            self._start_newton()

    def _start_newton(self) -> NewtonPCG | ActiveSetNewton | FollowerNewton:
        self.check_every, self.patience, self._swept_since = 1, 3, False
        if self.problem.contacts:
            self.patience = ACTIVE_SET_PATIENCE
            make = partial(NewtonPCG, self.options)
            self._newton = ActiveSetNewton(self.problem, make, self._rate.target)
            return self._newton
        shadow = to_float64(self.problem)
        newton = NewtonPCG(self.options, shadow, self._rate.target)
        self._fixes_loads |= isinstance(self._newton, FollowerNewton) and self._newton.failed
        self._newton = newton
        if self.problem.follower_loads.without_contact and not self._fixes_loads:
            rotates = self.options.path == "rotation"
            if self._start is not None and shadow.diagnostics.inversions()[0] > self._inverted:
                shadow.positions = self._start  # sweeps under fixed loads have inverted elements
            self._newton = FollowerNewton(shadow, self._rate.target, newton.step, rotates)
        return self._newton
