"""Functions on tuples of any length, unrolled when a kernel is compiled."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from supple.kernels.compile import let_choose

Count = Callable[[Any], int]


def each(arguments: str, item: str, *using: Callable, over: str, count: Count = len) -> Any:
    """The function of these arguments that returns a tuple of `item` for i = 0, 1, ..., one for each member
    of the argument `over`. using: the functions that the item names.

    >>> double = each("values", "2.0 * values[i]", over="values")
    >>> double((1.0, 3.0))
    (2.0, 6.0)
    """

    def body(length: int) -> str:
        return "".join(f"{_at(item, k)}, " for k in range(length)) or "()"

    return unrolled(arguments, body, *using, over=over, count=count)


def total(arguments: str, item: str, *using: Callable, over: str, count: Count = len) -> Any:
    """The function of these arguments that returns the sum of `item` over i, as in `each`."""

    def body(length: int) -> str:
        return " + ".join(_at(item, k) for k in range(length))

    return unrolled(arguments, body, *using, over=over, count=count)


def _at(item: str, index: int) -> str:
    return re.sub(r"\bi\b", str(index), item)


def unrolled(
    arguments: str, body: Callable[[int], str], *using: Callable, over: str, count: Count = len
) -> Any:
    """The function of these arguments whose text depends on how many members `over` has. In kernels that is
    told by its type, in Python by the argument itself."""
    names = {function.__name__: function for function in using}
    declaration = eval(f"lambda {arguments}: None")
    position = list(inspect.signature(declaration).parameters).index(over)

    @cache
    def implementation(length: int) -> Callable:
        return eval(f"lambda {arguments}: ({body(length)})", dict(names))

    def call(*values: Any) -> Any:
        return implementation(count(values[position]))(*values)

    def choose(*kinds):
        return implementation(count(kinds[position]))

    call.unrolled = (arguments, tuple(map(body, (1, 2, 3))), using)  # type: ignore[attr-defined]
    for function in (call, choose):
        function.__signature__ = inspect.signature(declaration)  # type: ignore[attr-defined]
    let_choose(call, choose)
    return call
