"""Operations of expression graphs and their values for numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

from supple.kernels import inverse_cube_root

FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "log": math.log,
    "exp": math.exp,
    "abs": abs,
    "neg": lambda x: -x,
    "inv": lambda x: 1.0 / x,
    "inverse_cube_root": inverse_cube_root,
}
"""Unary operations."""

ROUNDING = "rounding(F[0])"
"""Input that stands for the relative rounding error of the working precision."""

COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def folded(function: Callable[[float], float], value: float) -> float:
    """Evaluate a function without exceptions, like compiled code: NaN instead."""
    try:
        return function(value)
    except (ValueError, ZeroDivisionError, OverflowError):
        return math.nan
