"""Newton's method on the assembled Hessian: the reference that every other solver is tested against.

    f = net force,  H Δu = f  with the Hessian that is asked for
    t: backtracking on the energy along Δu,  u += t Δu
    no good t, or f · Δu ≤ 0: the same with a weaker Hessian, which is positive definite

Without `rescue` there is no weaker one, and Δu is taken as it comes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from supple.checks import check_iterations, flag, listed, one_of, whole_number
from supple.linear import Assembly, NotPositive
from supple.linear.solvers import COUNTED, LINEAR_SOLVERS, LinearSolver, best_linear_solver
from supple.model import Model
from supple.problem import Problem
from supple.solvers.beside_obstacles import step_beside_obstacles
from supple.solvers.line_search import Start, backtrack
from supple.solvers.moves import line
from supple.solvers.solver import Run, Solver
from supple.words import counted

HessianKind = Literal["exact", "projected", "bound"]

WEAKER: dict[HessianKind, HessianKind] = {"exact": "projected", "projected": "bound"}
"""What is used where a Hessian is not positive definite: the projected one may be singular."""


@dataclass(frozen=True)
class Newton(Solver):
    """Newton with a choice of Hessian and linear solver.

    hessian: "exact", and where that proves not to be positive definite "projected", its positive
    semi-definite part element by element; or "bound", the approximation that PBNG uses [PBNG eq. 32].
    rescue: False takes the solution of H Δu = f as it is, and without a line search wherever it leads, also
    uphill [PBNG Fig. 11].
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

    def begin(self, problem: Problem) -> NewtonRun:
        return NewtonRun(self, problem)

    def memory(self, model: Model, number: int) -> int:
        """Elements with the places of their blocks, the matrix, and the levels of its preconditioner; without
        what a factorisation takes."""
        return model.elements * (10 * 8 + 4 * 4 + 2 * 16 * 4) + int(1.4 * _blocks(model) * (9 * 12 + 8))


def _blocks(model: Model) -> int:
    """3×3 blocks of the Hessian: one for each pair of vertices that share an element."""
    pairs = [
        term.vertices[:, [i, j]]
        for term in model.terms
        for i, j in zip(*np.triu_indices(term.vertices.shape[1], 1), strict=True)
    ]
    edges = np.sort(np.concatenate([np.empty((0, 2), np.int32), *pairs]), axis=1)
    return model.vertices + 2 * len(np.unique(edges.astype(np.int64) @ [model.vertices, 1]))


class NewtonRun(Run):
    """Newton at work on one problem."""

    patience = 12

    def __init__(self, options: Newton, problem: Problem) -> None:
        options.refuse_unable(problem.device.name, str(problem.dtype))
        if problem.device.name != "cpu":
            problem.contacts.refuse(f"{options.name} on a device", "descent", "pbng", "xpbd")
        if problem.following.rubs:
            raise ValueError(
                f"{options.name} cannot treat friction between bodies, whose forces are no derivatives of an "
                "energy; descent, pbng, xpbd can"
            )
        self.options, self.problem = options, problem
        self._weaker = self._uphill = 0
        self._see_stencils()

    def _see_stencils(self) -> None:
        """Find the pattern of the Hessian for the stencils that there are."""
        self._version = self.problem.layout.version
        self.assembly = self.problem.shared("assembly", lambda: Assembly(self.problem))
        self.linear = self._make_linear()
        self._first_residual: float | None = None

    def _make_linear(self) -> LinearSolver:
        name, count = self.options.linear_solver, self.options.linear_iterations
        if count is not None:
            return COUNTED[name](self.assembly, count)
        return best_linear_solver(self.assembly) if name == "auto" else LINEAR_SOLVERS[name](self.assembly)

    def notes(self, copy: int = 0) -> list[str]:
        notes = [f"linear solver: {self.linear.name}"]
        if self._uphill:
            notes.append(
                f"the Hessian gave {counted(self._uphill, 'step')} along which the energy rises; rescue=True "
                "takes its positive part there"
            )
        if self._weaker:
            notes.append(
                f"the exact Hessian led to no lower energy {counted(self._weaker, 'time')}; the projected "
                "one was used there"
            )
        return notes

    def advance(self, iterations: int) -> None:
        if self.problem.layout.version != self._version:
            self._see_stencils()
        for _ in range(iterations):
            if self.problem.contacts:
                step_beside_obstacles(self.problem, lambda twin: NewtonRun(self.options, twin)._step)
            else:
                self._step()

    def _step(self) -> None:
        """Solve H Δu = f for the net force f, then u += t Δu."""
        residual = self.problem.balance().residual
        if residual == 0 or not math.isfinite(residual):
            return
        self._first_residual = self._first_residual or residual
        accuracy = 0.1 * min(1.0, math.sqrt(residual / self._first_residual))
        if self.options.linear_iterations is not None:
            accuracy = 0.0
        kind = self.options.hessian
        went = self._go(kind, accuracy, residual)
        while not went and self.options.rescue and kind in WEAKER:
            self._weaker += kind == "exact"
            kind = WEAKER[kind]
            went = self._go(kind, accuracy, residual)

    def _go(self, kind: HessianKind, accuracy: float, residual: float) -> bool:
        """Along Δu with f · Δu > 0, or along any without a rescue; False where this Hessian does not give it,
        or it is too far to be any good, as across the plane of a sheet that is slack and flat, where only the
        bound has stiffness."""
        step = self._direction(kind, accuracy)
        slope = 0.0 if step is None else self._slope(step)
        uphill = not slope > 0
        self._uphill += uphill and not self.options.rescue
        if step is None or (uphill and self.options.rescue):
            return False
        begin, move = Start.of(self.problem, residual), line(self.problem, step)
        if not self.options.line_search:
            move(1.0)
            return True
        if backtrack(self.problem, move, begin, slope) is None:
            move(0.0)
            return False
        return True

    def _direction(self, kind: HessianKind, accuracy: float) -> np.ndarray | None:
        """The solution of H Δu = f, records (n + 1, 4); None where there is none."""
        force = self.assembly.take(self.problem.states.net)
        try:
            return self.assembly.spread(self.linear.solve(self.assembly.matrix(kind), force, accuracy))
        except (np.linalg.LinAlgError, NotPositive):
            return None

    def _slope(self, step: np.ndarray) -> float:
        """f · Δu [J]."""
        forces, moves = (self.problem.states.vectors(a)[0] for a in (self.problem.states.net, step))
        return float((forces * moves)[self.problem.model.free].sum())
