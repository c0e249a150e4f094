"""Functions on tuples of any length, unrolled at compile time."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from supple.kernels.compile.dispatch import register_overload

Count = Callable[[Any], int]


def each(arguments: str, item: str, *using: Callable, over: str, count: Count = len) -> Any:
    """Build a function that returns a tuple of `item` for i = 0, 1, ..., with the length of `over`.

    Args:
        arguments: Argument names of the function.
        item: Expression in i and the arguments.
        *using: Functions named in the expression.
        over: Argument that determines the length.
        count: Length of `over`.

    >>> double = each("values", "2.0 * values[i]", over="values")
    >>> double((1.0, 3.0))
    (2.0, 6.0)
    """

    def body(length: int) -> str:
        return "".join(f"{_at(item, k)}, " for k in range(length)) or "()"

    return unroll(arguments, body, *using, over=over, count=count)


def total(arguments: str, item: str, *using: Callable, over: str, count: Count = len) -> Any:
    """Build a function that returns the sum of `item` over i, with arguments like `each`."""

    def body(length: int) -> str:
        return " + ".join(_at(item, k) for k in range(length))

    return unroll(arguments, body, *using, over=over, count=count)


def _at(item: str, index: int) -> str:
    return re.sub(r"\bi\b", str(index), item)


def unroll(
    arguments: str, body: Callable[[int], str], *using: Callable, over: str, count: Count = len
) -> Any:
    """Build a function with a separate expression for every length of its argument `over`.

    Kernels contain no loop over its members. They determine the length from the type of `over`, Python from
    its value.

    Args:
        arguments: Argument names of the function.
        body: Function that returns the expression for a length.
        *using: Functions named in the expression.
        over: Argument that determines the length.
        count: Length of `over`.
    """
    names = {function.__name__: function for function in using}
    declaration = eval(f"lambda {arguments}: None")
    position = list(inspect.signature(declaration).parameters).index(over)

    @cache
    def implementation(length: int) -> Callable:
        return eval(f"lambda {arguments}: ({body(length)})", dict(names))

    def call(*values: Any) -> Any:
        return implementation(count(values[position]))(*values)

    def choose(*argument_types):
        return implementation(count(argument_types[position]))

    call.unrolled = (arguments, tuple(map(body, (1, 2, 3))), using)  # type: ignore[attr-defined]
    for function in (call, choose):
        function.__signature__ = inspect.signature(declaration)  # type: ignore[attr-defined]
    register_overload(call, choose)
    return call
