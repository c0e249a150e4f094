"""The equilibria of one scene as bodies of one problem: Newton steps and adjoint systems of all at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from supple.gradients.gradient import ACCURACY, Loss, direct_at, report_of
from supple.gradients.polishing import MOST_STEPS, NEAR, TARGET, Polished, acting, same_shape
from supple.gradients.report import GradientReport, NoGradientError
from supple.gradients.system import UNSOLVED, Solved, System
from supple.kernels import compilation
from supple.model import Model
from supple.problem import Problem
from supple.problem.materials import are_alike, materials_of, with_materials
from supple.simulate import Result
from supple.solvers.newton_steps.gathered import joined, most_gathered, repeated
from supple.solvers.newton_steps.moves import line


class Adjoint(NamedTuple):
    """Of one equilibrium: its positions x, ∂L/∂x there and λ with H λ = ∂L/∂x, (n, 3) each."""

    positions: np.ndarray
    direct: np.ndarray
    found: np.ndarray
    report: GradientReport


class SideBySide:
    """Solves for groups of results, the first of which is the largest: its problem serves the others of the
    same shape."""

    def __init__(self) -> None:
        self._problem: Problem | None = None
        self._model: Model | None = None
        self._copies = 0

    def adjoints(self, problem: Problem, results: Sequence[Result], losses: Sequence[Loss]) -> list[Any]:
        """The `Adjoint` of each of several results of the same kind as a problem in float64; None of those
        that have to be solved for alone: because they are of another shape, too far from balance, not stable,
        or because the function changes along a motion that costs nothing."""
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
        """The problem of all of them, at their positions. What there is room for beyond repeats the last."""
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
    """Whether a result is an equilibrium of the vertices and elements that a problem has, which remember
    nothing."""
    still = result.step is None or (math.isinf(result.step.dt) and not result.step.remembered)
    still = still and (result.state is None or not result.state.remembered)
    return still and not result.model.changing and same_shape(problem.model, result.model)


def _made(problem: Problem, copies: int, materials: tuple[Any, ...]) -> Problem:
    """A problem of so many copies of another one's model, whose bodies are those of every copy."""
    model = with_materials(repeated(problem.model, copies), materials)
    made = Problem(model, "float64", device=problem.device.alike(np.dtype(float), model.vertices + 1))
    made.keeps_prepared = True
    return made


class _Balanced(NamedTuple):
    """(copies,) residual [N] and imbalance."""

    residual: np.ndarray
    imbalance: np.ndarray


def _balanced(problem: Problem, copies: int) -> _Balanced:
    bodies = problem.balance().bodies
    residual, imbalance = (
        np.array([getattr(body, name) for body in bodies]).reshape(copies, -1)
        for name in ("residual", "imbalance")
    )
    return _Balanced(np.sqrt(np.square(residual).sum(axis=1)), imbalance.max(axis=1))


def _solved(problem: Problem, copies: int, losses: Sequence[Loss]) -> list[Adjoint | None]:
    shape = copies, problem.model.vertices // copies, 3
    with _timed(len(losses)) as polishing:
        start, before = problem.positions.reshape(shape), _balanced(problem, copies)
        steps, good = _polish(problem, copies)
        x, imbalance = problem.positions.reshape(shape), _balanced(problem, copies).imbalance
    good &= imbalance <= NEAR
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
        figures = float(imbalance[k]), float(before.imbalance[k]), int(steps[k]), float(moved[k])
        state = Polished(problem, *figures, seconds=polishing[0])
        return Adjoint(x[k], direct[k], found[k], report_of(state, solved, system, solving[0], k))

    return [one(k) if good[k] else None for k in range(len(losses))]


def _directs(losses: Sequence[Loss], x: np.ndarray) -> list[np.ndarray]:
    """∂L/∂x (n, 3) at the positions x (copies, n, 3) of each. Where one cannot be had, all are asked for
    alone, so that those before it come out."""
    try:
        return [direct_at(loss, x[k]) for k, loss in enumerate(losses)]
    except Exception as error:
        raise NoGradientError("A function of the positions has no derivative.") from error


@contextmanager
def _timed(parts: int) -> Iterator[list[float]]:
    """The seconds that each of several has of a time, without those of compilation, are then in the list."""
    found = [0.0]
    with compilation() as compiled:
        began = perf_counter()
        yield found
        found[0] = (perf_counter() - began - compiled.seconds) / parts


def _solve_good(
    system: System, b: np.ndarray, accuracy: float, good: np.ndarray
) -> tuple[Solved, np.ndarray]:
    """H x = b of the good copies (copies,), and which of them are, then: those leave along whose part of a
    direction the energy is concave, and the others are solved for again."""
    while True:
        solved = system.solve(b * good[system.of][:, None], accuracy)
        if solved.iterations or not good.any() or system.stable[good].all():
            return solved, good & (solved.residual <= UNSOLVED) & ~solved.flat
        good = good & system.stable


def _polish(problem: Problem, copies: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole Newton steps of each copy while they bring its forces down: how many (copies,), and which copies
    are fit for it."""
    steps, good = np.zeros(copies, int), np.ones(copies, bool)
    balance = _balanced(problem, copies)
    good &= balance.imbalance <= NEAR
    going = good & (balance.imbalance > TARGET)
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
        going &= balance.imbalance > TARGET
    return steps, good


def _move(problem: Problem, free: np.ndarray, d: np.ndarray) -> None:
    """Free vertices by d (f, 3) [m]."""
    records = np.zeros((problem.model.vertices + 1, 4))
    records[free, :3] = d
    problem.device.push(records)
    line(problem, records)(1.0)
