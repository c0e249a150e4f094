"""Newton's method on the assembled Hessian: the reference that every other solver is tested against.

    repeat
        f ← net force of the free vertices                       problem.balance, into states.net
        H ← ∂²E/∂u², or what stands for it                       Newton.hessian, linear/assembly.py
        Δu ← solution of H Δu = f                                Newton.linear_solver, linear/solvers.py
        if f · Δu > 0:
            t ← 1, halved until E(u + t Δu) is lower enough      line_search.py
            u ← u + t Δu
        where that fails: the same with the next safer H: exact, projected, bound

That is `NewtonRun._step`. The bound is PBNG's [eq. 32], positive definite and not below the exact H, so that
its steps are short but lead down. Without `rescue` there is no safer H, and Δu is taken as it comes. No paper
has this box; PBNG compares with Newton's method without a line search [section 11, Fig. 7, 11].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, get_args

import numpy as np

from supple.checks import check_iterations, flag, listed, one_of, whole_number
from supple.linear import Assembly, NotPositive
from supple.linear.condensed import condense_stiffness
from supple.linear.pattern import count_blocks
from supple.linear.solvers import COUNTED, LINEAR_SOLVERS, LinearSolver, linear_solver
from supple.model import Model
from supple.problem import Problem
from supple.solvers.newton_steps.beside_obstacles import step_beside_obstacles
from supple.solvers.newton_steps.follower_newton import HELD_UPDATES, FollowerNewton
from supple.solvers.newton_steps.line_search import Start, backtrack
from supple.solvers.newton_steps.moves import line
from supple.solvers.solver import Run, Solver
from supple.words import counted

HessianKind = Literal["exact", "projected", "bound"]

ACCURACY = 0.1
"""|H Δu - f|/|f| that is asked for at first; it falls with the root of |f|, so that Newton's last steps
converge faster than linearly [Eisenstat and Walker 1996]."""


@dataclass(frozen=True)
class Newton(Solver):
    """Newton with a choice of Hessian and linear solver.

    hessian: "exact"; "projected", its positive semi-definite part element by element; or "bound", the
    approximation that PBNG uses [PBNG eq. 32]. Where one leads to no lower energy the next is tried.
    rescue: False takes only the H that was asked for, and follows its Δu also where f · Δu ≤ 0, uphill; with
    line_search=False that is Newton as in PBNG Fig. 11.
    linear_solver: "multilevel" (conjugate gradients preconditioned with rigid aggregates), "direct", "amg"
    (algebraic multigrid), "cg" (block-Jacobi preconditioned conjugate gradients), or "auto": multilevel until
    a system proves hard; those that the papers compare with: "gauss_seidel", "bicgstab" and, for small
    systems, "qr". linear_iterations: exactly so many iterations of the linear solver in every step, as for
    equal budgets [PBNG Fig. 7]; otherwise as many as its accuracy takes. line_search: halve the step until
    the potential decreases. iterations: Newton steps per time step when a call sets no other limit.
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
        one_of("hessian", self.hessian, get_args(HessianKind))
        one_of("linear_solver", self.linear_solver, ("auto", *LINEAR_SOLVERS))
        flag("rescue", self.rescue)
        flag("line_search", self.line_search)
        if self.linear_iterations is not None:
            whole_number("linear_iterations", self.linear_iterations)
            if self.linear_solver not in COUNTED:
                raise ValueError(
                    f"linear_iterations is for linear_solver {listed(COUNTED)}, got {self.linear_solver!r}"
                )
        check_iterations(self.iterations)

    @property
    def hessians(self) -> tuple[HessianKind, ...]:
        """What is used for H, one after the other where it leads to no lower energy: the exact one need not
        be positive definite, and the projected one may be singular."""
        kinds = get_args(HessianKind)
        first = kinds.index(self.hessian)
        return kinds[first:] if self.rescue else kinds[first : first + 1]

    def begin(self, problem: Problem) -> NewtonRun:
        return NewtonRun(self, problem)

    def memory(self, model: Model, number: int) -> int:
        """Elements with the places of their blocks, the matrix, and the levels of its preconditioner; without
        what a factorisation takes."""
        blocks = count_blocks([term.vertices for term in model.terms], model.vertices)
        return model.elements * (10 * 8 + 4 * 4 + 2 * 16 * 4) + int(1.4 * blocks * (9 * 12 + 8))


class NewtonRun(Run):
    """Newton at work on one problem."""

    patience = 12

    def __init__(self, options: Newton, problem: Problem, holds_loads: bool = False) -> None:
        self.options, self.problem = options, problem
        self._of_twin: NewtonRun | None = None
        if problem.contacts.rigid and problem.device.name == "cpu":
            problem.following.condense = condense_stiffness
        self._refuse_unable()
        self._exact_failed = self._uphill = 0
        self._first_residual: float | None = None
        self._see_stencils()
        held = holds_loads or options != Newton(linear_solver=options.linear_solver)
        self._follower: FollowerNewton | None = None
        self._held_updates = 0
        if problem.follower_loads.alone and not held:
            self._follower = FollowerNewton(problem, 0.0, self._step, turning=True)

    def _step(self) -> None:
        """One pass through the box above."""
        residual = self.problem.balance().residual  # |f|; f is left in states.net
        if residual == 0 or not math.isfinite(residual):
            return
        accuracy = self._accuracy(residual)
        for kind in self.options.hessians:
            step = self._solve(kind, accuracy)
            if step is not None and self._move_along(step, residual):
                return
            self._exact_failed += kind == "exact" and self.options.rescue

    def _accuracy(self, residual: float) -> float:
        """|H Δu - f|/|f| that the linear solver shall reach; 0 where it has so many iterations instead."""
        self._first_residual = self._first_residual or residual
        if self.options.linear_iterations is not None:
            return 0.0
        return ACCURACY * min(1.0, math.sqrt(residual / self._first_residual))

    def _solve(self, kind: HessianKind, accuracy: float) -> np.ndarray | None:
        """Δu of H Δu = f, (n + 1, 4) as the problem keeps vectors of vertices; None where there is none."""
        f = self.assembly.take(self.problem.states.net)
        try:
            return self.assembly.spread(self.linear.solve(self.assembly.matrix(kind), f, accuracy))
        except (np.linalg.LinAlgError, NotPositive):
            return None

    def _move_along(self, step: np.ndarray, residual: float) -> bool:
        """u ← u + t Δu; False, and u as it was, where Δu does not lead down, or is too far to be any good, as
        across the plane of a sheet that is slack and flat, where only the bound has stiffness."""
        slope = self._slope(step)
        if not slope > 0:
            if self.options.rescue:
                return False
            self._uphill += 1
        start, move = Start.of(self.problem, residual), line(self.problem, step)
        if not self.options.line_search:
            move(1.0)
            return True
        if backtrack(self.problem, move, start, slope) is None:
            move(0.0)
            return False
        return True

    def _slope(self, step: np.ndarray) -> float:
        """f · Δu = -dE(u + t Δu)/dt at t = 0 [J]: positive is downhill."""
        forces, moves = (self.problem.states.vectors(a)[0] for a in (self.problem.states.net, step))
        return float((forces * moves)[self.problem.model.free].sum())

    def advance(self, iterations: int) -> None:
        if self.problem.layout.version != self._version:
            self._see_stencils()
            self._held_updates += self._follower is not None and self._follower.failed
        for _ in range(iterations):
            if self._follower is not None and not self._follower.failed:
                self._follower.step()
            elif self.problem.contacts:
                step_beside_obstacles(self.problem, self._steps_of)
            else:
                self._step()

    def _steps_of(self, twin: Problem) -> Callable[[], None]:
        self._of_twin = NewtonRun(self.options, twin, holds_loads=True)
        return self._of_twin._step

    def leaving(self) -> np.ndarray:
        return np.full(self.problem.copies, self._held_updates > HELD_UPDATES)

    def on_its_way(self, copy: int) -> bool:
        return self._follower is not None and self._follower.on_its_way

    def _see_stencils(self) -> None:
        """Forget the pattern of the Hessian and find it again for the stencils that there are; not beside
        obstacles, where steps are made by another problem that holds what they push (beside_obstacles.py)."""
        self._version, self._first_residual = self.problem.layout.version, None
        for name in ("assembly", "linear"):
            self.__dict__.pop(name, None)
        if not self.problem.contacts:
            assert self.linear is not None  # found now, not in the first step

    @cached_property
    def assembly(self) -> Assembly:
        return self.problem.shared("assembly", lambda: Assembly(self.problem))

    @cached_property
    def linear(self) -> LinearSolver:
        return linear_solver(self.options.linear_solver, self.assembly, self.options.linear_iterations)

    def _refuse_unable(self) -> None:
        options, problem = self.options, self.problem
        options.refuse_unable(problem.device.name, str(problem.dtype))
        if problem.device.name != "cpu":
            problem.contacts.refuse(f"{options.name} on a device", "descent", "pbng", "xpbd")
        if problem.following.rubs:
            raise ValueError(
                f"{options.name} cannot treat friction between bodies, whose forces are no derivatives of an "
                "energy; descent, pbng, xpbd can"
            )

    def notes(self, copy: int = 0) -> list[str]:
        if self._follower is not None and not self._follower.failed:
            return self._follower.notes()
        notes = [f"linear solver: {(self._of_twin or self).linear.name}"]
        if self._uphill:
            notes.append(
                f"the Hessian gave {counted(self._uphill, 'step')} along which the energy rises; rescue=True "
                "takes its positive part there"
            )
        if self._exact_failed:
            notes.append(
                f"the exact Hessian led to no lower energy {counted(self._exact_failed, 'time')}; a safer "
                "one was used there"
            )
        return notes
