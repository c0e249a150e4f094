"""Problems that evaluations keep: the frames of a film differ in where vertices are and in what follows
these, and nothing else has to be set up again for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields

from supple.compute import Compute
from supple.model import Model
from supple.problem import Problem

MOST = 4
"""Problems that are kept."""


@dataclass
class _Kept:
    kind: str
    model: Model
    compute: Compute
    problem: Problem


_known: deque[_Kept] = deque(maxlen=MOST)


def kept(kind: str, model: Model, compute: Compute, make: Callable[[], Problem]) -> Problem:
    """The problem of a kind that is known for a model, or for one that differs only in what follows its
    vertices, such as contacts, with those of this model; else a new one."""
    for each in list(_known):
        if each.kind == kind and each.compute == compute and _alike(each.model, model):
            _known.remove(each)  # until it stands as it should
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
    """Whether two models are the same but for terms that follow the vertices."""
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
