"""Newton's method on the assembled Hessian: the reference that every other solver is tested against."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from supple.checks import check_iterations, flag, one_of
from supple.model import Model
from supple.problem import Problem
from supple.solvers.assembly import Assembly
from supple.solvers.linear import LINEAR_SOLVERS, LinearSolver, best_linear_solver
from supple.solvers.solver import Run, Solver
from supple.words import counted

HessianKind = Literal["projected", "exact", "bound"]

ARMIJO = 1e-4
SMALLEST_STEP = 1e-6


@dataclass(frozen=True)
class Newton(Solver):
    """Newton with a choice of Hessian and linear solver.

    hessian: "exact"; "projected", its positive semi-definite part element by element; or "bound", the
    approximation that PBNG uses [PBNG eq. 32]. linear_solver: "direct", "amg" (algebraic multigrid), "cg"
    (block-Jacobi preconditioned conjugate gradients), or "auto". line_search: halve the step until the
    potential decreases. iterations: Newton steps per time step when a call sets no other limit.
    """

    name: ClassVar[str] = "newton"
    devices: ClassVar[tuple[str, ...]] = ("cpu",)
    precisions: ClassVar[tuple[str, ...]] = ("float64",)
    solves_systems: ClassVar[bool] = True

    hessian: HessianKind = "projected"
    linear_solver: Literal["auto", "direct", "amg", "cg"] = "auto"
    line_search: bool = True
    iterations: int | None = None

    def __post_init__(self) -> None:
        one_of("hessian", self.hessian, get_args(HessianKind))
        one_of("linear_solver", self.linear_solver, ("auto", *LINEAR_SOLVERS))
        flag("line_search", self.line_search)
        check_iterations(self.iterations)

    def begin(self, problem: Problem) -> NewtonRun:
        return NewtonRun(self, problem)

    def memory(self, model: Model, number: int) -> int:
        """Element matrices with their tensors and places, and the matrix; without what factors it."""
        return len(model.tets) * (144 + 81 + 16) * 8 + _blocks(model) * (9 * 8 + 8)


def _blocks(model: Model) -> int:
    """3×3 blocks of the Hessian: one for each pair of vertices that share an element."""
    a, b = np.triu_indices(4, 1)
    edges = np.sort(np.concatenate([model.tets[:, [i, j]] for i, j in zip(a, b, strict=True)]), axis=1)
    return model.vertices + 2 * len(np.unique(edges.astype(np.int64) @ [model.vertices, 1]))


class NewtonRun(Run):
    """Newton at work on one problem."""

    patience = 12

    def __init__(self, options: Newton, problem: Problem) -> None:
        options.refuse_unable(problem.device.name, str(problem.dtype))
        self.options, self.problem = options, problem
        self._indefinite = 0
        self._see_stencils()

    def _see_stencils(self) -> None:
        """Find the pattern of the Hessian for the stencils that there are."""
        self._version = self.problem.layout.version
        self.assembly = self.problem.shared("assembly", lambda: Assembly(self.problem))
        name = self.options.linear_solver
        self.linear: LinearSolver = (
            best_linear_solver(self.assembly) if name == "auto" else LINEAR_SOLVERS[name](self.assembly)
        )
        self._first_residual: float | None = None

    def notes(self, copy: int = 0) -> list[str]:
        notes = [f"linear solver: {self.linear.name}"]
        if self._indefinite:
            notes.append(
                f"the exact Hessian gave no descent direction {counted(self._indefinite, 'time')}; "
                "the projected one was used there"
            )
        return notes

    def advance(self, iterations: int) -> None:
        if self.problem.layout.version != self._version:
            self._see_stencils()
        for _ in range(iterations):
            self._step()

    def _step(self) -> None:
        """Solve H Δu = f for the net force f, then u += t Δu."""
        residual = self.problem.balance().residual
        if residual == 0 or not math.isfinite(residual):
            return
        self._first_residual = self._first_residual or residual
        accuracy = min(1e-2, 0.1 * math.sqrt(residual / self._first_residual))
        force = self.assembly.restrict(self.problem.states.net)
        step = self._direction(force, self.options.hessian, accuracy)
        if self.options.hessian == "exact" and not float(force @ step) > 0:
            self._indefinite += 1
            step = self._direction(force, "projected", accuracy)
        if self.options.line_search:
            self._search(step, float(force @ step), residual)
        else:
            self._move(self.problem.u.copy(), step, 1.0)

    def _direction(self, force: np.ndarray, kind: HessianKind, accuracy: float) -> np.ndarray:
        """The solution of H Δu = f; no step where there is none. Libraries may crash on a matrix that is not
        finite."""
        H = self.assembly.hessian(kind)
        try:
            step = self.linear.solve(H, force, accuracy) if np.isfinite(H.data).all() else 0 * force
            return self.assembly.unheld(step)
        except np.linalg.LinAlgError:
            return np.zeros_like(force)

    def _move(self, start: np.ndarray, step: np.ndarray, t: float) -> None:
        self.problem.u[:] = start
        self.problem.u[self.assembly.free, :3] += t * step.reshape(-1, 3)

    def _search(self, step: np.ndarray, slope: float, residual: float) -> None:
        """Backtrack until E(u + t Δu) ≤ E(u) - c t (f · Δu); where the decrease drowns in rounding, until the
        residual decreases instead."""
        start, energy = self.problem.u.copy(), self.problem.energy()
        rounding = self.problem.measures.energy_rounding()
        t = 1.0
        while t >= SMALLEST_STEP:
            self._move(start, step, t)
            change = self.problem.energy() - energy
            if change <= -ARMIJO * t * slope and change < -rounding:
                return
            if abs(change) <= rounding and self.problem.balance().residual < residual:
                return
            t *= 0.5
        self.problem.u[:] = start
