"""Cache of problems for evaluation.

Frames of a film differ only in vertex positions and dynamic terms, so that nothing else is set up again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields

from supple.compute import Compute
from supple.model import Model
from supple.problem import Problem

MOST = 4
"""Largest number of cached problems."""


@dataclass
class _Kept:
    """Cached problem with its key: kind, model, compute settings."""

    kind: str
    model: Model
    compute: Compute
    problem: Problem


_known: deque[_Kept] = deque(maxlen=MOST)


def kept(kind: str, model: Model, compute: Compute, make: Callable[[], Problem]) -> Problem:
    """Return a model's cached problem, or create it.

    A problem whose model differs only in dynamic terms, such as contacts, is reused with the terms of this
    model.

    Args:
        kind: Kind of problem, part of the cache key.
        model: Model.
        compute: Compute settings.
        make: Function that creates the problem.
    """
    for each in list(_known):
        if each.kind == kind and each.compute == compute and _alike(each.model, model):
            _known.remove(each)  # out of the cache while it is inconsistent
            for index, _ in model.followers:
                if each.model.terms[index] is not model.terms[index]:
                    each.problem.refresh(index, model.terms[index])
            each.model = model
            _known.append(each)
            return each.problem
    problem = make()
    _known.append(_Kept(kind, model, compute, problem))
    return problem


def _alike(one: Model, other: Model) -> bool:
    """True if two models differ only in their dynamic terms."""
    if one is other:
        return True
    names = (each.name for each in fields(Model) if each.name != "terms")
    if not all(getattr(one, name) is getattr(other, name) for name in names):
        return False
    if len(one.terms) != len(other.terms):
        return False
    following = {index for index, _ in one.followers}
    pairs = enumerate(zip(one.terms, other.terms, strict=True))
    return all(k in following or a is b for k, (a, b) in pairs)
