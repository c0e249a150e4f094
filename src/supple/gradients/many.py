"""gradients(): batched gradients for many equilibria of one scene."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import suppress
from dataclasses import replace
from itertools import repeat
from typing import Any, TypeVar, Unpack

import numpy as np

from supple.api.simulate import Result
from supple.config.backend import Backend
from supple.gradients.batch import Adjoint, BatchedAdjoint
from supple.gradients.gradient import Gradient, Loss, assemble_gradient, gradient_at
from supple.gradients.gradient_report import NoGradientError
from supple.gradients.polish import PolishedState, make_problem_at, polish_timed
from supple.problem import Problem
from supple.solve.call_options import BackendOptions, check_callbacks, resolve_backend, takes_options
from supple.solvers.newton_methods.block_diagonal import max_block_members
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

    Example: `list(supple.gradients.gradients(results, lambda x: x, lambda gradient: gradient.gravity))`.

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
    """
    if not callable(transform):
        raise TypeError(
            "transform is a function of a gradient, such as lambda gradient: gradient.gravity; got "
            + format_value(transform)
        )
    if batch_size is not None:
        check_integer("batch_size", batch_size)
    same = callable(loss) or isinstance(loss, np.ndarray)
    losses: Iterator[Any] = (
        repeat(loss) if same else iterate_argument(loss, "loss is ∂L/∂x, or one for each result")
    )
    result_list = iterate_argument(
        results, "results are a list or an iterator of results, as equilibria gives them"
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
            few = f"there are losses for the first {number} results only; give one for each"
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
    state = PolishedState(problem, report.relative_residual, report.before, report.steps, report.moved)
    return problem, assemble_gradient(state, result, adjoint.direct, adjoint.multipliers, report)


def _make_problem(result: Result, backend: Backend, known: Problem | None) -> Problem:
    problem = make_problem_at(result, backend, known)
    problem.keeps_prepared = True
    return problem
