"""gradients(): the gradients of many equilibria of one scene."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import repeat
from typing import Any, TypeVar, Unpack

import numpy as np

from supple.asking import Circumstances, compute_of, takes_options
from supple.checks import each, shown, whole_number
from supple.compute import Compute
from supple.gradients.gradient import Gradient, Loss, gradient_at, made_at
from supple.gradients.polishing import Polished, polished_in_time, problem_of
from supple.gradients.report import NoGradientError
from supple.gradients.side_by_side import Adjoint, SideBySide
from supple.problem import Problem
from supple.simulate import Result
from supple.solvers.newton_steps.gathered import most_gathered

T = TypeVar("T")

Pairs = Iterator[tuple[Result, Loss]]


@takes_options
def gradients(
    results: Iterable[Result],
    loss: Loss | Iterable[Loss],
    take: Callable[[Gradient], T],
    *,
    at_once: int | None = None,
    **options: Unpack[Circumstances],
) -> Iterator[T]:
    """What `take` has of the gradient of each of many results of one scene, as `equilibria` gives them.

    loss: as for `gradient`, the same for all, or a list or an iterator of such, one for each. take: called
    with every `Gradient`, which is of use until the next one only, since all share one problem. Up to 64
    solids without contact are solved for at once, as bodies of one problem, or as many as `at_once` says; so
    many results are asked for before the first gradient is there. What a solver prepares for the scene, as
    the levels of its preconditioner, is prepared once. compute: as for `gradient`.
    Example: `list(supple.gradients(results, lambda x: x, lambda found: found.gravity))`.
    """
    if not callable(take):
        raise TypeError(
            "take is a function of a gradient, such as lambda found: found.gravity; got " + shown(take)
        )
    if at_once is not None:
        whole_number("at_once", at_once)
    same = callable(loss) or isinstance(loss, np.ndarray)
    losses: Iterator[Any] = repeat(loss) if same else each(loss, "loss is ∂L/∂x, or one for each result")
    given = each(results, "results are a list or an iterator of results, as equilibria gives them")
    compute = compute_of(options)

    def found() -> Iterator[T]:
        for one in attempted(_pairs(given, losses), compute, at_once):
            if isinstance(one, NoGradientError):
                raise one
            yield take(one)

    return found()


def _pairs(results: Iterator[Any], losses: Iterator[Any]) -> Pairs:
    for number, result in enumerate(results):
        if not isinstance(result, Result):
            raise TypeError(f"results[{number}] must be a result of supple, got {shown(result)}")
        try:
            own = next(losses)
        except StopIteration:
            few = f"there are losses for the first {number} results only; give one for each"
            raise ValueError(few) from None
        yield result, own


def attempted(
    pairs: Pairs, compute: Compute, at_once: int | None = None
) -> Iterator[Gradient | NoGradientError]:
    """The gradient of each, or why there is none. Those before one that cannot be asked for come before its
    error is raised."""
    together, problem, error = SideBySide(), None, None
    while error is None:
        chunk: list[tuple[Result, Loss]] = []
        try:
            for pair in pairs:
                chunk.append(pair)
                with suppress(NoGradientError):  # which is said when its turn comes
                    problem = problem or _problem_of(pair[0], compute, None)
                if problem is None or len(chunk) == (at_once or most_gathered(problem)):
                    break
        except Exception as raised:
            error = raised
        if not chunk and error is None:
            return
        known: list[Any] = [None] * len(chunk)
        if problem is not None and len(chunk) > 1:
            known = together.adjoints(problem, *zip(*chunk, strict=True))
        for (result, loss), adjoint in zip(chunk, known, strict=True):
            try:
                problem, found = _found(result, loss, adjoint, compute, problem)
            except NoGradientError as none:
                yield none
            else:
                yield found
    raise error


def _found(
    result: Result, loss: Loss, adjoint: Adjoint | None, compute: Compute, known: Problem | None
) -> tuple[Problem, Gradient]:
    """The gradient of one result, and the problem that is there, which the next one may use."""
    if adjoint is None:
        problem = _problem_of(result, compute, known)
        return problem, gradient_at(polished_in_time(lambda: problem), result, loss)
    problem, report = (
        _problem_of(replace(result, positions=adjoint.positions), compute, known),
        adjoint.report,
    )
    state = Polished(problem, report.imbalance, report.before, report.steps, report.moved)
    return problem, made_at(state, result, adjoint.direct, adjoint.found, report)


def _problem_of(result: Result, compute: Compute, known: Problem | None) -> Problem:
    problem = problem_of(result, compute, known)
    problem.keeps_prepared = True
    return problem
