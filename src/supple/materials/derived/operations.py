"""Operations that graphs are made of, and what they give of numbers."""

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
"""Operations on one number."""

ROUNDING = "rounding(F[0])"
"""The input that is the relative rounding error of the numbers at hand."""

COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def folded(function: Callable[[float], float], value: float) -> float:
    """As compiled code would have it, which knows no exceptions."""
    try:
        return function(value)
    except (ValueError, ZeroDivisionError, OverflowError):
        return math.nan
