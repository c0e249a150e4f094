"""Newton's method with assembled Hessian: the reference for the tests of all other solvers.

    û ← uₙ + Δt vₙ, u ← initial guess                       Problem.begin_step (problem/problem.py)
    repeat                                                  `NewtonRun.advance`, `_step`
        f ← net force of the free vertices                  Problem.balance, into states.net
        η ← 0.1 min(1, √(|f|/|f₀|)), f₀ the first f         `_forcing_term` [Eisenstat and Walker 1996]
        for H of exact, projected, bound: the next if one fails
            H ← ∂²E/∂u², or its replacement                 Assembly.matrix (linear/assembly/hessian.py)
            Δu ← solution of H Δu = f                       `_solve`, linear/linear_solvers.py
                to |H Δu - f| ≤ η |f|, in a norm of the linear solver
            if f · Δu > 0:                                  `_move_along`
                t ← 1, halved until E(u + t Δu)
                    ≤ E(u) - 1e-4 t f · Δu [Armijo 1966]    backtrack (newton_methods/line_search.py)
                    or |f| falls, E alike up to rounding
                    t < 1e-6: the next H
                u ← u + t Δu; next step

E: elastic, constraint and external energy plus ½ m/Δt² |u - û|². The candidates for H are `Newton.hessians`:
exact; projected, the positive semi-definite part of every element [Teran et al. 2005]; and the bound of PBNG
[PBNG: Y. Chen et al. 2024, eq. 32]. The bound is positive definite, so its steps lead downhill; it is not
below the exact H in the block of one vertex, but may be below it as a whole. With `rescue=False` there is no
safer H, and Δu is used even uphill; with line_search=False, too, it is accepted as computed. Barrier contact
shortens u + t Δu to a path without intersections before E is evaluated (straight_path).

Obstacles: newton_methods/active_set.py. Follower loads: newton_methods/follower_newton.py, but only if all
options except linear_solver have their defaults; otherwise these loads are fixed between updates.

No paper has this box. PBNG compares with Newton's method without a line search [PBNG section 11], here
line_search=False and

    Fig. 7                  linear_solver="cg", linear_iterations=7 (2 steps) or 10 (11 steps); the paper does
                            not specify H
    Fig. 10, Table 4        linear_solver="gauss_seidel", linear_iterations=3 (2 steps) or 7 (6 steps); the
                            paper's SOR, ω = 1.3, is not available: ω is 1
    Fig. 11                 rescue=False, linear_solver="qr", "bicgstab" or "gauss_seidel"
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, get_args

import numpy as np

from supple.linear import Assembly, NotPositive
from supple.linear.assembly.sparsity import count_blocks
from supple.linear.condensed import condense_stiffness
from supple.linear.linear_solvers import ITERATIVE_SOLVERS, LINEAR_SOLVERS, LinearSolver, linear_solver
from supple.model.model import Model
from supple.problem import Problem
from supple.solvers.base import Run, Solver
from supple.solvers.newton_methods.active_set import active_set_step
from supple.solvers.newton_methods.follower_newton import MAX_FIXED_LOAD_UPDATES, FollowerNewton
from supple.solvers.newton_methods.line_search import Start, backtrack, straight_path
from supple.support.arguments import check_choice, check_flag, check_integer, check_iterations, comma_list
from supple.support.keywords import suggest_keywords
from supple.support.text import pluralize

HessianKind = Literal["exact", "projected", "bound"]

FIRST_FORCING_TERM = 0.1
"""Relative residual |H Δu - f|/|f| of the first linear solve, the forcing term η.

It decreases with √|f|, so that the last Newton steps converge superlinearly [Eisenstat and Walker 1996].
"""


@suggest_keywords
@dataclass(frozen=True)
class Newton(Solver):
    """Newton's method with a choice of Hessian and linear solver.

    Args:
        hessian: "exact"; "projected", its positive semi-definite part element by element [Teran et al. 2005];
            or "bound", the approximation of PBNG [PBNG eq. 32]. If one yields no lower energy, the next is
            tried.
        rescue: False uses only the chosen Hessian, and follows its Δu even uphill, f · Δu ≤ 0. With
            line_search=False, this is Newton as in PBNG Fig. 11.
        linear_solver: "multilevel" (conjugate gradients preconditioned with rigid aggregates), "direct",
            "amg" (algebraic multigrid), "cg" (block-Jacobi preconditioned conjugate gradients), or "auto"
            (multilevel until a system proves hard). Baselines of the papers are "gauss_seidel", "bicgstab"
            and, for small systems, "qr".
        linear_iterations: Fixed number of iterations of the linear solver per step, for equal budgets [PBNG
            Fig. 7]. None iterates to the required accuracy.
        line_search: Halve the step until the potential decreases.
        iterations: Newton steps per time step unless the call sets a limit.
    """

    name: ClassVar[str] = "newton"
    precisions: ClassVar[tuple[str, ...]] = ("float64",)
    solves_systems: ClassVar[bool] = True

    hessian: HessianKind = "exact"
    rescue: bool = True
    linear_solver: Literal["auto", "multilevel", "direct", "amg", "cg", "gauss_seidel", "bicgstab", "qr"] = (
        "auto"
    )
    linear_iterations: int | None = None
    line_search: bool = True
    iterations: int | None = None

    def __post_init__(self) -> None:
        check_choice("hessian", self.hessian, get_args(HessianKind))
        check_choice("linear_solver", self.linear_solver, ("auto", *LINEAR_SOLVERS))
        check_flag("rescue", self.rescue)
        check_flag("line_search", self.line_search)
        if self.linear_iterations is not None:
            check_integer("linear_iterations", self.linear_iterations)
            if self.linear_solver not in ITERATIVE_SOLVERS:
                raise ValueError(
                    f"linear_iterations needs linear_solver {comma_list(ITERATIVE_SOLVERS)}, got "
                    f"{self.linear_solver!r}"
                )
        check_iterations(self.iterations)

    @property
    def hessians(self) -> tuple[HessianKind, ...]:
        """Hessians in the order of use; each replaces its predecessor if that yields no lower energy.

        The exact one may be indefinite, and the projected one may be singular.
        """
        variants = get_args(HessianKind)
        first = variants.index(self.hessian)
        return variants[first:] if self.rescue else variants[first : first + 1]

    def begin(self, problem: Problem) -> NewtonRun:
        return NewtonRun(self, problem)

    def memory(self, model: Model, number: int) -> int:
        """Estimate the memory of a run [bytes].

        It consists of elements with the indices of their blocks, the matrix, and the levels of its
        preconditioner. Factorizations are not included.

        Args:
            model: Model.
            number: Size of a floating-point number [bytes].

        Returns:
            Memory [bytes].
        """
        blocks = count_blocks([term.vertices for term in model.terms], model.vertices)
        return model.elements * (10 * 8 + 4 * 4 + 2 * 16 * 4) + int(1.4 * blocks * (9 * 12 + 8))


class NewtonRun(Run):
    """Newton run on one problem."""

    patience = 12

    def __init__(self, options: Newton, problem: Problem, fixes_loads: bool = False) -> None:
        self.options, self.problem = options, problem
        self._subproblem_run: NewtonRun | None = None
        if problem.contacts.rigid and problem.device.name == "cpu":
            problem.dynamic_terms.condense = condense_stiffness
        self._check_problem()
        self._exact_failures = self._uphill_steps = 0
        self._first_residual: float | None = None
        self._update_stencils()
        fixed_loads = fixes_loads or options != Newton(linear_solver=options.linear_solver)
        self._follower_newton: FollowerNewton | None = None
        self._fixed_load_updates = 0
        if problem.follower_loads.without_contact and not fixed_loads:
            self._follower_newton = FollowerNewton(problem, 0.0, self._step, rotates=True)

    def advance(self, iterations: int) -> None:
        """Run a number of Newton steps, with obstacles or follower loads those of their own methods."""
        if self.problem.layout.version != self._version:
            self._update_stencils()
            self._fixed_load_updates += self._follower_newton is not None and self._follower_newton.failed
        for _ in range(iterations):
            if self._follower_newton is not None and not self._follower_newton.failed:
                self._follower_newton.step()
            elif self.problem.contacts:
                active_set_step(self.problem, self._make_subproblem_step)
            else:
                self._step()

    def _step(self) -> None:
        """Take one Newton step: the body of the box."""
        residual = self.problem.balance().residual  # |f|; f is left in states.net
        if residual == 0 or not math.isfinite(residual):
            return
        forcing_term = self._forcing_term(residual)
        for kind in self.options.hessians:
            step = self._solve(kind, forcing_term)
            if step is not None and self._move_along(step, residual):
                return
            self._exact_failures += kind == "exact" and self.options.rescue

    def _forcing_term(self, residual: float) -> float:
        """Forcing term η: relative residual of the linear solve; 0 for a fixed number of iterations."""
        self._first_residual = self._first_residual or residual
        if self.options.linear_iterations is not None:
            return 0.0
        return FIRST_FORCING_TERM * min(1.0, math.sqrt(residual / self._first_residual))

    def _solve(self, kind: HessianKind, forcing_term: float) -> np.ndarray | None:
        """Solve H Δu = f. Return Δu as padded vectors (n + 1, 4), None without a solution."""
        f = self.assembly.gather(self.problem.states.net)
        try:
            return self.assembly.spread(self.linear.solve(self.assembly.matrix(kind), f, forcing_term))
        except (np.linalg.LinAlgError, NotPositive):
            return None

    def _move_along(self, step: np.ndarray, residual: float) -> bool:
        """Update u ← u + t Δu by a line search. Return False and restore u on failure.

        Failure means that Δu does not lead downhill, or is far too long. The latter happens across the plane
        of a flat slack sheet, where only the bound has stiffness.
        """
        slope = self._slope(step)
        if not slope > 0:
            if self.options.rescue:
                return False
            self._uphill_steps += 1
        start, move = Start.of(self.problem, residual), straight_path(self.problem, step)
        if not self.options.line_search:
            move(1.0)
            return True
        if backtrack(self.problem, move, start, slope) is None:
            move(0.0)
            return False
        return True

    def _slope(self, step: np.ndarray) -> float:
        """Slope f · Δu = -dE(u + t Δu)/dt at t = 0 [J]; positive is downhill."""
        forces, moves = (self.problem.states.vectors(a)[0] for a in (self.problem.states.net, step))
        return float((forces * moves)[self.problem.model.free].sum())

    def _make_subproblem_step(self, subproblem: Problem) -> Callable[[], None]:
        """Return the Newton step of an active-set problem."""
        self._subproblem_run = NewtonRun(self.options, subproblem, fixes_loads=True)
        return self._subproblem_run._step

    def _update_stencils(self) -> None:
        """Rebuild the sparsity pattern of the Hessian for the current stencils.

        With obstacles, steps are made by an active-set problem that constrains the vertices in
        contact (active_set.py).
        """
        self._version, self._first_residual = self.problem.layout.version, None
        for name in ("assembly", "linear"):
            self.__dict__.pop(name, None)
        if not self.problem.contacts:
            assert self.linear is not None  # created now, not in the first step

    @cached_property
    def assembly(self) -> Assembly:
        return self.problem.get_shared("assembly", lambda: Assembly(self.problem))

    @cached_property
    def linear(self) -> LinearSolver:
        return linear_solver(self.options.linear_solver, self.assembly, self.options.linear_iterations)

    def _check_problem(self) -> None:
        """Reject devices, precisions and forces that the method does not support."""
        options, problem = self.options, self.problem
        options.check_support(problem.device.name, str(problem.dtype))
        if problem.device.name != "cpu":
            problem.contacts.refuse(f"{options.name} on a device", "hybrid", "pbng", "xpbd")
        if problem.dynamic_terms.has_body_friction:
            raise ValueError(
                f"{options.name} does not support friction between bodies, because its forces are not "
                "derivatives of an energy; use hybrid, pbng or xpbd"
            )

    def is_moving(self, member: int) -> bool:
        return self._follower_newton is not None and self._follower_newton.is_moving

    def find_members_to_separate(self) -> np.ndarray:
        return np.full(self.problem.batch_size, self._fixed_load_updates > MAX_FIXED_LOAD_UPDATES)

    def notes(self, member: int = 0) -> list[str]:
        if self._follower_newton is not None and not self._follower_newton.failed:
            return self._follower_newton.notes()
        notes = [f"linear solver: {(self._subproblem_run or self).linear.name}"]
        if self._uphill_steps:
            notes.append(
                f"the Hessian gave {pluralize(self._uphill_steps, 'step')} in directions of rising "
                "energy; rescue=True uses its positive semidefinite projection there"
            )
        if self._exact_failures:
            notes.append(
                f"the exact Hessian did not reduce the energy {pluralize(self._exact_failures, 'time')}; "
                "a positive semidefinite one was used there"
            )
        return notes
