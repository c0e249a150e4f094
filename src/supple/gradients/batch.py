"""Batched gradients: equilibria of one scene as bodies of one problem."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from supple.api.simulate import Result
from supple.gradients.gradient import ACCURACY, Loss, direct_at, report_of
from supple.gradients.polish import MOST_STEPS, NEAR, TARGET, Polished, acting, same_shape
from supple.gradients.report import GradientReport, NoGradientError
from supple.gradients.system import UNSOLVED, Solved, System
from supple.kernels import compilation
from supple.model.model import Model
from supple.problem import Problem
from supple.problem.material_update import are_alike, materials_of, with_materials
from supple.solvers.newton_methods.block_diagonal import joined, most_gathered, repeated
from supple.solvers.newton_methods.line_search import line


class Adjoint(NamedTuple):
    """Adjoint solution of one equilibrium.

    Attributes:
        positions: (n, 3) positions x [m].
        direct: (n, 3) ∂L/∂x.
        found: (n, 3) λ with H λ = ∂L/∂x.
        report: Report.
    """

    positions: np.ndarray
    direct: np.ndarray
    found: np.ndarray
    report: GradientReport


class SideBySide:
    """Batched solver for groups of results.

    The batch is as large as the largest group so far, and its problem is reused for results of the same
    shape.
    """

    def __init__(self) -> None:
        self._problem: Problem | None = None
        self._model: Model | None = None
        self._copies = 0

    def adjoints(self, problem: Problem, results: Sequence[Result], losses: Sequence[Loss]) -> list[Any]:
        """Solve the adjoint systems of several results.

        Args:
            problem: Problem in float64 of the same kind.
            results: Results.
            losses: Loss of each result.

        Returns:
            `Adjoint` of each result; None for results that need a separate solve: another shape, far from
            equilibrium, unstable, or with a loss that changes along a zero-energy motion.
        """
        alone: list[Any] = [None] * len(results)
        alike = [k for k, result in enumerate(results) if _goes(problem, result)]
        if len(alike) < 2 or most_gathered(problem) < 2:
            return alone
        try:
            together = self._gathered(problem, [results[k] for k in alike])
            found = _solved(together, self._copies, [losses[k] for k in alike])
        except NoGradientError:
            return alone
        for k, one in zip(alike, found, strict=True):
            alone[k] = one
        return alone

    def _gathered(self, problem: Problem, results: Sequence[Result]) -> Problem:
        """Batched problem at the positions of all results; unused batch members repeat the last."""
        self._copies = max(self._copies, len(results))
        every = [*results, *[results[-1]] * (self._copies - len(results))]
        models = [acting(result.model, result.step) for result in every]
        materials = joined([materials_of(model) for model in models], problem.model, True)
        made, size = self._problem, self._copies * problem.model.vertices
        fits = made is not None and made.model.vertices == size and are_alike(made.model, materials)
        if made is not None and fits and self._model is not None and same_shape(self._model, problem.model):
            made.use_materials([materials])
        else:
            made = self._problem = _made(problem, self._copies, materials)
            self._model = problem.model
        made.loads.set(np.concatenate([model.force for model in models]))
        made.positions = np.concatenate([result.positions for result in every])
        pinned = problem.model.pinned
        if problem.model.held is not None:
            made.states.aim(np.concatenate([result.positions[pinned] for result in every]))
        return made


def _goes(problem: Problem, result: Result) -> bool:
    """True for equilibria of the problem's model without history variables."""
    still = result.step is None or (math.isinf(result.step.dt) and not result.step.history)
    still = still and (result.state is None or not result.state.history)
    return still and not result.model.changing and same_shape(problem.model, result.model)


def _made(problem: Problem, copies: int, materials: tuple[Any, ...]) -> Problem:
    """Batched problem with copies of a model as separate bodies."""
    model = with_materials(repeated(problem.model, copies), materials)
    made = Problem(model, "float64", device=problem.device.clone(np.dtype(float), model.vertices + 1))
    made.keeps_prepared = True
    return made


class _Balanced(NamedTuple):
    """Residual [N] and relative residual of each batch member (batch,)."""

    residual: np.ndarray
    relative_residual: np.ndarray


def _balanced(problem: Problem, copies: int) -> _Balanced:
    bodies = problem.balance().bodies
    residual, relative_residual = (
        np.array([getattr(body, name) for body in bodies]).reshape(copies, -1)
        for name in ("residual", "relative_residual")
    )
    return _Balanced(np.sqrt(np.square(residual).sum(axis=1)), relative_residual.max(axis=1))


def _solved(problem: Problem, copies: int, losses: Sequence[Loss]) -> list[Adjoint | None]:
    shape = copies, problem.model.vertices // copies, 3
    with _timed(len(losses)) as polishing:
        start, before = problem.positions.reshape(shape), _balanced(problem, copies)
        steps, good = _polish(problem, copies)
        x, relative_residual = problem.positions.reshape(shape), _balanced(problem, copies).relative_residual
    good &= relative_residual <= NEAR
    direct = np.zeros(shape)
    direct[: len(losses)] = _directs(losses, x)
    with _timed(len(losses)) as solving:
        system = System(problem, copies)
        system.probe()
        assembly = system.assembly
        b = assembly.unheld(direct.reshape(-1, 3)[assembly.free].ravel()).reshape(-1, 3)
        solved, good = _solve_good(system, b, ACCURACY, good & system.stable)
    found = np.zeros(shape)
    found.reshape(-1, 3)[assembly.free] = assembly.unheld(solved.x.ravel()).reshape(-1, 3)
    moved = np.abs(x - start).reshape(copies, -1).max(axis=1)

    def one(k: int) -> Adjoint:
        figures = (
            float(relative_residual[k]),
            float(before.relative_residual[k]),
            int(steps[k]),
            float(moved[k]),
        )
        state = Polished(problem, *figures, seconds=polishing[0])
        return Adjoint(x[k], direct[k], found[k], report_of(state, solved, system, solving[0], k))

    return [one(k) if good[k] else None for k in range(len(losses))]


def _directs(losses: Sequence[Loss], x: np.ndarray) -> list[np.ndarray]:
    """∂L/∂x (n, 3) at the positions x (batch, n, 3) of each member.

    If one fails, a NoGradientError causes separate solves, so that the gradients before it are returned.
    """
    try:
        return [direct_at(loss, x[k]) for k, loss in enumerate(losses)]
    except Exception as error:
        raise NoGradientError("A function of the positions has no derivative.") from error


@contextmanager
def _timed(parts: int) -> Iterator[list[float]]:
    """Measure the time per member, without compilation, into the returned list [s]."""
    found = [0.0]
    with compilation() as compiled:
        began = perf_counter()
        yield found
        found[0] = (perf_counter() - began - compiled.seconds) / parts


def _solve_good(
    system: System, b: np.ndarray, accuracy: float, good: np.ndarray
) -> tuple[Solved, np.ndarray]:
    """Solve H x = b for valid batch members.

    Members with negative curvature are excluded, and the others are solved again.

    Returns:
        Solution, and the members (batch,) with a valid one.
    """
    while True:
        solved = system.solve(b * good[system.of][:, None], accuracy)
        if solved.iterations or not good.any() or system.stable[good].all():
            return solved, good & (solved.residual <= UNSOLVED) & ~solved.flat
        good = good & system.stable


def _polish(problem: Problem, copies: int) -> tuple[np.ndarray, np.ndarray]:
    """Take full Newton steps for each batch member while they reduce its forces.

    Returns:
        Number of steps (batch,), and valid members (batch,).
    """
    steps, good = np.zeros(copies, int), np.ones(copies, bool)
    balance = _balanced(problem, copies)
    good &= balance.relative_residual <= NEAR
    going = good & (balance.relative_residual > TARGET)
    for _ in range(MOST_STEPS):
        if not going.any():
            break
        system = System(problem, copies)
        assembly = system.assembly
        forces = assembly.unheld(assembly.restrict(problem.states.net)).reshape(-1, 3)
        solved, fit = _solve_good(system, forces, ACCURACY, going)
        good &= fit | ~going
        going = fit
        before = problem.positions.reshape(copies, -1, 3)
        _move(problem, assembly.free, solved.x * going[system.of][:, None])
        reached = _balanced(problem, copies)
        worse = going & ~(reached.residual < balance.residual)
        if worse.any():
            now = problem.positions.reshape(copies, -1, 3)
            problem.positions = np.where(worse[:, None, None], before, now).reshape(-1, 3)
            reached = _balanced(problem, copies)
        going &= ~worse
        steps += going
        balance = reached
        going &= balance.relative_residual > TARGET
    return steps, good


def _move(problem: Problem, free: np.ndarray, d: np.ndarray) -> None:
    """Move the free vertices by d (f, 3) [m]."""
    records = np.zeros((problem.model.vertices + 1, 4))
    records[free, :3] = d
    problem.device.upload(records)
    line(problem, records)(1.0)
