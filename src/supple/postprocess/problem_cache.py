"""Cache of problems for evaluation.

Frames of a film differ only in vertex positions and dynamic terms, so that nothing else is set up again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields

from supple.config.backend import Backend
from supple.model.model import Model
from supple.problem import Problem

MAX_CACHED = 4
"""Largest number of cached problems."""


@dataclass
class _CacheEntry:
    """Cached problem with its key: kind, model, compute settings."""

    kind: str
    model: Model
    backend: Backend
    problem: Problem


_cache: deque[_CacheEntry] = deque(maxlen=MAX_CACHED)


def cached_problem(kind: str, model: Model, backend: Backend, make: Callable[[], Problem]) -> Problem:
    """Return a model's cached problem, or create it.

    A problem whose model differs only in dynamic terms, such as contacts, is reused with the terms of this
    model.

    Args:
        kind: Kind of problem, part of the cache key.
        model: Model.
        backend: Compute settings.
        make: Function that creates the problem.
    """
    for entry in list(_cache):
        if entry.kind == kind and entry.backend == backend and _has_same_statics(entry.model, model):
            _cache.remove(entry)  # out of the cache while it is inconsistent
            for index, _ in model.dynamic_terms:
                if entry.model.terms[index] is not model.terms[index]:
                    entry.problem.refresh(index, model.terms[index])
            entry.model = model
            _cache.append(entry)
            return entry.problem
    problem = make()
    _cache.append(_CacheEntry(kind, model, backend, problem))
    return problem


def _has_same_statics(one: Model, other: Model) -> bool:
    """True if two models differ only in their dynamic terms."""
    if one is other:
        return True
    names = (each.name for each in fields(Model) if each.name != "terms")
    if not all(getattr(one, name) is getattr(other, name) for name in names):
        return False
    if len(one.terms) != len(other.terms):
        return False
    dynamic = {index for index, _ in one.dynamic_terms}
    pairs = enumerate(zip(one.terms, other.terms, strict=True))
    return all(k in dynamic or a is b for k, (a, b) in pairs)
