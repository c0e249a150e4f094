"""Errors about unknown keyword arguments that suggest the right one, such as `center` for `centre`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, cast

from supple.support.arguments import suggest_name

T = TypeVar("T")


def suggest_keywords(target: T) -> T:
    """Decorate a function or class: unknown keywords raise a `TypeError` that names the closest known one."""
    if not isinstance(target, type):
        return cast(T, _suggesting(cast("Callable[..., Any]", target)))
    initialize = _suggesting(vars(target)["__init__"], target.__name__)
    setattr(target, "__init__", initialize)  # noqa: B010, mypy refuses an assignment
    return target


def _suggesting(function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """Wrap a function; `name` replaces its own name in messages."""
    kinds = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
    known = [p.name for p in signature(function).parameters.values() if p.kind in kinds and p.name != "self"]

    @wraps(function)
    def call(*positional: Any, **given: Any) -> Any:
        for each in given:
            if each not in known:
                title = name or function.__name__
                raise TypeError(f"{title}() has no keyword {each!r}; {suggest_name(each, known)}")
        return function(*positional, **given)

    return call
