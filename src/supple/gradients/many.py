"""gradients(): the gradients of many equilibria of one scene."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any, TypeVar, Unpack

import numpy as np

from supple.asking import Circumstances, compute_of, takes_options
from supple.checks import each, shown
from supple.gradients.gradient import Gradient, Loss, gradient_at
from supple.gradients.polishing import polished, problem_of
from supple.simulate import Result

T = TypeVar("T")


@takes_options
def gradients(
    results: Iterable[Result],
    loss: Loss | Iterable[Loss],
    take: Callable[[Gradient], T],
    **options: Unpack[Circumstances],
) -> Iterator[T]:
    """What `take` has of the gradient of each of many results of one scene, as `equilibria` gives them.

    loss: as for `gradient`, the same for all, or a list or an iterator of such, one for each. take: called
    with every `Gradient`, which is of use until the next one only, since all share one problem: what a
    solver prepares for the scene, as the levels of its preconditioner, is prepared once. compute: as for
    `gradient`. Example: `list(supple.gradients(results, lambda x: x, lambda found: found.gravity))`.
    """
    if not callable(take):
        raise TypeError(
            "take is a function of a gradient, such as lambda found: found.gravity; got " + shown(take)
        )
    same = callable(loss) or isinstance(loss, np.ndarray)
    losses: Iterator[Any] = repeat(loss) if same else each(loss, "loss is ∂L/∂x, or one for each result")
    given = each(results, "results are a list or an iterator of results, as equilibria gives them")
    compute = compute_of(options)

    def found() -> Iterator[T]:
        problem = None
        for number, result in enumerate(given):
            if not isinstance(result, Result):
                raise TypeError(f"results[{number}] must be a result of supple, got {shown(result)}")
            try:
                own = next(losses)
            except StopIteration:
                few = f"there are losses for the first {number} results only; give one for each"
                raise ValueError(few) from None
            problem = problem_of(result, compute, problem)
            problem.keeps_prepared = True
            yield take(gradient_at(polished(problem), result, own))

    return found()
