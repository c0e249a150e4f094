"""`gradients()`: many equilibria of one scene, differentiated together as bodies of one problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import repeat
from time import perf_counter
from typing import Any, NamedTuple, TypeVar, Unpack

import numpy as np

from supple.api.simulate import Result
from supple.config.backend import Backend
from supple.gradients.adjoint_system import MAX_RESIDUAL, System, SystemSolution
from supple.gradients.gradient import (
    ACCURACY,
    Gradient,
    Loss,
    assemble_gradient,
    evaluate_loss,
    gradient_at,
    make_report,
)
from supple.gradients.gradient_report import GradientReport, NoGradientError
from supple.gradients.polish import (
    MAX_STEPS,
    NEWTON_RESIDUAL,
    TARGET_RESIDUAL,
    PolishedState,
    is_compatible,
    make_problem_at,
    model_of_step,
    polish_timed,
)
from supple.kernels import compilation
from supple.model.model import Model
from supple.problem import Problem
from supple.problem.material_update import have_same_layout, materials_of, with_materials
from supple.solve.call_options import BackendOptions, check_callbacks, resolve_backend, takes_options
from supple.solvers.newton_methods.block_diagonal import join_materials, max_block_members, replicate_model
from supple.solvers.newton_methods.line_search import straight_path
from supple.support.arguments import check_integer, format_value, iterate_argument
from supple.support.progress import OpenProgress

T = TypeVar("T")

Pairs = Iterator[tuple[Result, Loss]]


@takes_options
def gradients(
    results: Iterable[Result],
    loss: Loss | Iterable[Loss],
    transform: Callable[[Gradient], T],
    *,
    batch_size: int | None = None,
    progress: OpenProgress | None = None,
    **options: Unpack[BackendOptions],
) -> Iterator[T]:
    """Differentiate many results of one scene.

    Up to 64 solids without contact are solved at once, as bodies of one problem; this number of results is
    read before the first gradient is returned. Preparations for the scene, such as preconditioner levels, are
    shared.

    Args:
        results: Results of one scene, for example from `equilibria`.
        loss: As for `gradient`, one for all results, or an iterable with one per result.
        transform: Function of a `Gradient` that returns the desired derivatives. The gradient is valid until
            the next one only, since all share one problem.
        batch_size: Number of results solved at once.
        progress: Called as progress(done, total) after each gradient; total is None if `results` has no
            length.
        **options: backend: as for `gradient`.

    Returns:
        Iterator over the results of `transform`.

    Raises:
        TypeError: An argument has the wrong type.
        NoGradientError: A derivative does not exist.

    Example: `list(supple.gradients.gradients(results, lambda x: x, lambda gradient: gradient.gravity))`.
    """
    if not callable(transform):
        raise TypeError(
            "transform must be a function of a gradient, such as lambda gradient: gradient.gravity; "
            "got " + format_value(transform)
        )
    if batch_size is not None:
        check_integer("batch_size", batch_size)
    same = callable(loss) or isinstance(loss, np.ndarray)
    losses: Iterator[Any] = (
        repeat(loss) if same else iterate_argument(loss, "loss must be ∂L/∂x, or one for each result")
    )
    result_list = iterate_argument(
        results, "results must be a list or an iterator of results, such as equilibria(...)"
    )
    backend = resolve_backend(options)
    check_callbacks(progress=progress)
    total = len(results) if isinstance(results, Sized) else None

    def transform_all() -> Iterator[T]:
        for done, one in enumerate(try_gradients(_pairs(result_list, losses), backend, batch_size), 1):
            if isinstance(one, NoGradientError):
                raise one
            transformed = transform(one)
            if progress is not None:
                progress(done, total)
            yield transformed

    return transform_all()


def _pairs(results: Iterator[Any], losses: Iterator[Any]) -> Pairs:
    for number, result in enumerate(results):
        if not isinstance(result, Result):
            raise TypeError(f"results[{number}] must be a result of supple, got {format_value(result)}")
        try:
            own_loss = next(losses)
        except StopIteration:
            few = f"loss has values for the first {number} results only; give one for each result"
            raise ValueError(few) from None
        yield result, own_loss


def try_gradients(
    pairs: Pairs, backend: Backend, batch_size: int | None = None
) -> Iterator[Gradient | NoGradientError]:
    """Yield one gradient, or NoGradientError, per result.

    If reading the results raises an error, the gradients before it are yielded first.
    """
    batched, problem, error = BatchedAdjoint(), None, None
    while error is None:
        chunk: list[tuple[Result, Loss]] = []
        try:
            for pair in pairs:
                chunk.append(pair)
                with suppress(NoGradientError):  # reported in its turn
                    problem = problem or _make_problem(pair[0], backend, None)
                if problem is None or len(chunk) == (batch_size or max_block_members(problem)):
                    break
        except Exception as raised:
            error = raised
        if not chunk and error is None:
            return
        solutions: list[Any] = [None] * len(chunk)
        if problem is not None and len(chunk) > 1:
            solutions = batched.adjoints(problem, *zip(*chunk, strict=True))
        for (result, loss), adjoint in zip(chunk, solutions, strict=True):
            try:
                problem, gradient = _gradient_of(result, loss, adjoint, backend, problem)
            except NoGradientError as none:
                yield none
            else:
                yield gradient
    raise error


def _gradient_of(
    result: Result, loss: Loss, adjoint: Adjoint | None, backend: Backend, known: Problem | None
) -> tuple[Problem, Gradient]:
    """Gradient of one result, and a problem for reuse by the next."""
    if adjoint is None:
        problem = _make_problem(result, backend, known)
        return problem, gradient_at(polish_timed(lambda: problem), result, loss)
    problem, report = (
        _make_problem(replace(result, positions=adjoint.positions), backend, known),
        adjoint.report,
    )
    state = PolishedState(
        problem, report.relative_residual, report.initial_relative_residual, report.steps, report.moved
    )
    return problem, assemble_gradient(state, result, adjoint.direct, adjoint.multipliers, report)


def _make_problem(result: Result, backend: Backend, known: Problem | None) -> Problem:
    problem = make_problem_at(result, backend, known)
    problem.keeps_prepared = True
    return problem


class Adjoint(NamedTuple):
    """Adjoint solution of one equilibrium.

    Attributes:
        positions: (n, 3) positions x [m].
        direct: (n, 3) ∂L/∂x.
        multipliers: (n, 3) λ with H λ = ∂L/∂x.
        report: Report.
    """

    positions: np.ndarray
    direct: np.ndarray
    multipliers: np.ndarray
    report: GradientReport


class BatchedAdjoint:
    """Batched solver for groups of results.

    The batch is as large as the largest group so far, and its problem is reused for results of the same
    shape.
    """

    def __init__(self) -> None:
        self._problem: Problem | None = None
        self._model: Model | None = None
        self._batch_size = 0

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
        solved: list[Any] = [None] * len(results)
        batchable = [k for k, result in enumerate(results) if _is_batchable(problem, result)]
        if len(batchable) < 2 or max_block_members(problem) < 2:
            return solved
        try:
            batch = self._gather(problem, [results[k] for k in batchable])
            adjoints = _solve_batch(batch, self._batch_size, [losses[k] for k in batchable])
        except NoGradientError:
            return solved
        for k, one in zip(batchable, adjoints, strict=True):
            solved[k] = one
        return solved

    def _gather(self, problem: Problem, results: Sequence[Result]) -> Problem:
        """Batched problem at the positions of all results; unused batch members repeat the last."""
        self._batch_size = max(self._batch_size, len(results))
        all_results = [*results, *[results[-1]] * (self._batch_size - len(results))]
        models = [model_of_step(result.model, result.step) for result in all_results]
        materials = join_materials([materials_of(model) for model in models], problem.model, True)
        batched_problem, size = self._problem, self._batch_size * problem.model.vertices
        fits = (
            batched_problem is not None
            and batched_problem.model.vertices == size
            and have_same_layout(batched_problem.model, materials)
        )
        if (
            batched_problem is not None
            and fits
            and self._model is not None
            and is_compatible(self._model, problem.model)
        ):
            batched_problem.use_materials([materials])
        else:
            batched_problem = self._problem = _make_batched_problem(problem, self._batch_size, materials)
            self._model = problem.model
        batched_problem.loads.set(np.concatenate([model.force for model in models]))
        batched_problem.positions = np.concatenate([result.positions for result in all_results])
        pinned = problem.model.pinned
        if problem.model.constraint_projection is not None:
            batched_problem.states.set_targets(
                np.concatenate([result.positions[pinned] for result in all_results])
            )
        return batched_problem


def _is_batchable(problem: Problem, result: Result) -> bool:
    """True for equilibria of the problem's model without history variables."""
    is_static = result.step is None or (math.isinf(result.step.dt) and not result.step.history)
    is_static = is_static and (result.state is None or not result.state.history)
    return is_static and not result.model.changing and is_compatible(problem.model, result.model)


def _make_batched_problem(problem: Problem, batch_size: int, materials: tuple[Any, ...]) -> Problem:
    """Batched problem with copies of a model as separate bodies."""
    model = with_materials(replicate_model(problem.model, batch_size), materials)
    batched_problem = Problem(
        model, "float64", device=problem.device.clone(np.dtype(float), model.vertices + 1)
    )
    batched_problem.keeps_prepared = True
    return batched_problem


class _Residuals(NamedTuple):
    """Residual [N] and relative residual of each batch member (batch,)."""

    residual: np.ndarray
    relative_residual: np.ndarray


def _evaluate_residuals(problem: Problem, batch_size: int) -> _Residuals:
    bodies = problem.balance().bodies
    residual, relative_residual = (
        np.array([getattr(body, name) for body in bodies]).reshape(batch_size, -1)
        for name in ("residual", "relative_residual")
    )
    return _Residuals(np.sqrt(np.square(residual).sum(axis=1)), relative_residual.max(axis=1))


def _solve_batch(problem: Problem, batch_size: int, losses: Sequence[Loss]) -> list[Adjoint | None]:
    shape = batch_size, problem.model.vertices // batch_size, 3
    with _measure_time(len(losses)) as polishing:
        start, before = problem.positions.reshape(shape), _evaluate_residuals(problem, batch_size)
        steps, valid = _polish(problem, batch_size)
        x, relative_residual = (
            problem.positions.reshape(shape),
            _evaluate_residuals(problem, batch_size).relative_residual,
        )
    valid &= relative_residual <= NEWTON_RESIDUAL
    direct = np.zeros(shape)
    direct[: len(losses)] = _evaluate_losses(losses, x)
    with _measure_time(len(losses)) as solving:
        system = System(problem, batch_size)
        system.probe()
        assembly = system.assembly
        b = assembly.unconstrained(direct.reshape(-1, 3)[assembly.free].ravel()).reshape(-1, 3)
        solved, valid = _solve_valid(system, b, ACCURACY, valid & system.stable)
    adjoint = np.zeros(shape)
    adjoint.reshape(-1, 3)[assembly.free] = assembly.unconstrained(solved.x.ravel()).reshape(-1, 3)
    moved = np.abs(x - start).reshape(batch_size, -1).max(axis=1)

    def make_adjoint(k: int) -> Adjoint:
        statistics = (
            float(relative_residual[k]),
            float(before.relative_residual[k]),
            int(steps[k]),
            float(moved[k]),
        )
        state = PolishedState(problem, *statistics, seconds=polishing[0])
        return Adjoint(x[k], direct[k], adjoint[k], make_report(state, solved, system, solving[0], k))

    return [make_adjoint(k) if valid[k] else None for k in range(len(losses))]


def _evaluate_losses(losses: Sequence[Loss], x: np.ndarray) -> list[np.ndarray]:
    """∂L/∂x (n, 3) at the positions x (batch, n, 3) of each member.

    If one fails, a NoGradientError causes separate solves, so that the gradients before it are returned.
    """
    try:
        return [evaluate_loss(loss, x[k]) for k, loss in enumerate(losses)]
    except Exception as error:
        raise NoGradientError("A function of the positions has no derivative.") from error


@contextmanager
def _measure_time(parts: int) -> Iterator[list[float]]:
    """Measure the time per member, without compilation, into the returned list [s]."""
    elapsed = [0.0]
    with compilation() as compiled:
        began = perf_counter()
        yield elapsed
        elapsed[0] = (perf_counter() - began - compiled.seconds) / parts


def _solve_valid(
    system: System, b: np.ndarray, accuracy: float, valid: np.ndarray
) -> tuple[SystemSolution, np.ndarray]:
    """Solve H x = b for valid batch members.

    Members with negative curvature are excluded, and the others are solved again.

    Returns:
        Solution, and the members (batch,) with a valid one.
    """
    while True:
        solved = system.solve(b * valid[system.member_of_row][:, None], accuracy)
        if solved.iterations or not valid.any() or system.stable[valid].all():
            return solved, valid & (solved.residual <= MAX_RESIDUAL) & ~solved.flat
        valid = valid & system.stable


def _polish(problem: Problem, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Take full Newton steps for each batch member while they reduce its forces.

    Returns:
        Number of steps (batch,), and valid members (batch,).
    """
    steps, valid = np.zeros(batch_size, int), np.ones(batch_size, bool)
    balance = _evaluate_residuals(problem, batch_size)
    valid &= balance.relative_residual <= NEWTON_RESIDUAL
    active = valid & (balance.relative_residual > TARGET_RESIDUAL)
    for _ in range(MAX_STEPS):
        if not active.any():
            break
        system = System(problem, batch_size)
        assembly = system.assembly
        forces = assembly.unconstrained(assembly.restrict(problem.states.net)).reshape(-1, 3)
        solved, fit = _solve_valid(system, forces, ACCURACY, active)
        valid &= fit | ~active
        active = fit
        before = problem.positions.reshape(batch_size, -1, 3)
        _move(problem, assembly.free, solved.x * active[system.member_of_row][:, None])
        reached = _evaluate_residuals(problem, batch_size)
        worse = active & ~(reached.residual < balance.residual)
        if worse.any():
            current = problem.positions.reshape(batch_size, -1, 3)
            problem.positions = np.where(worse[:, None, None], before, current).reshape(-1, 3)
            reached = _evaluate_residuals(problem, batch_size)
        active &= ~worse
        steps += active
        balance = reached
        active &= balance.relative_residual > TARGET_RESIDUAL
    return steps, valid


def _move(problem: Problem, free: np.ndarray, d: np.ndarray) -> None:
    """Move the free vertices by d (f, 3) [m]."""
    records = np.zeros((problem.model.vertices + 1, 4))
    records[free, :3] = d
    problem.device.upload(records)
    straight_path(problem, records)(1.0)
