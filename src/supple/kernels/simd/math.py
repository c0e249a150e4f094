"""exp, log and x^(-1/3) of packs in vector instructions. LLVM would call a scalar function for each lane.

Accurate to a few units in the last place, exp(x) to |x| units. Results for non-finite input are as in C: log
of a negative number is NaN, log of 0 is -∞.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

LN2 = 0.6931471805599453
"""ln 2 in float64."""
LN2_REMAINDER = 2.3190468138462996e-17
"""Remainder log 2 - LN2."""


class _Format:
    """Floating-point format.

    Attributes:
        terms: Number of series terms of exp and log.
    """

    def __init__(self, bits: int, mantissa: int, terms: tuple[int, int]) -> None:
        self.integer, self.mantissa, self.terms = ir.IntType(bits), mantissa, terms
        self.bias = (1 << (bits - mantissa - 2)) - 1
        self.number: Any = np.float32 if bits == 32 else np.float64
        self.half_root = int(self.number(math.sqrt(0.5)).view(f"i{bits // 8}"))
        self.most = float(np.log(np.finfo(self.number).max))
        self.least = float(np.log(np.finfo(self.number).tiny))
        coarse = 2.0 ** (10 if bits == 32 else 20)
        first = round(LN2 * coarse) / coarse
        self.ln2 = first, LN2 - first + LN2_REMAINDER
        self.cube_root = int((4 / 3 * self.bias - 0.067) * 2.0**mantissa)
        self.cube_terms = 2 if bits == 32 else 3


_FORMATS = {32: _Format(32, 23, (7, 5)), 64: _Format(64, 52, (13, 11))}


class _Vector:
    """Arithmetic on LLVM vectors of one type, evaluated in the order written."""

    def __init__(self, builder: Any, x: Any) -> None:
        self.builder, self.type = builder, x.type
        wide = isinstance(x.type.element, ir.DoubleType)
        self.format = _FORMATS[64 if wide else 32]
        self.integers = ir.VectorType(self.format.integer, x.type.count)

    def number(self, value: float) -> Any:
        return ir.Constant(self.type, [float(self.format.number(value))] * self.type.count)

    def integer(self, value: int) -> Any:
        return ir.Constant(self.integers, [value] * self.type.count)

    def add(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(a, b, flags=("contract",))

    def mul(self, a: Any, b: Any) -> Any:
        return self.builder.fmul(a, b, flags=("contract",))

    def series(self, x: Any, coefficients: list[float]) -> Any:
        """Σ cₖ xᵏ, by Horner's rule."""
        total = self.number(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = self.add(self.mul(total, x), self.number(c))
        return total

    def chosen(self, sign: str, x: Any, limit: float, yes: Any, no: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered(sign, x, self.number(limit)), yes, no)


def vector_exp(builder: Any, x: Any) -> Any:
    """2ⁿ exp(r) with x = n log 2 + r, |r| ≤ ½ log 2.

    An instruction rounds n: the usual addition of a large number would not survive the reordering of sums in
    kernels.
    """
    v = _Vector(builder, x)
    f = v.format
    inside = v.chosen("<", x, f.least, v.number(f.least), v.chosen("<", x, f.most, x, v.number(f.most)))
    kind = f"v{x.type.count}f{f.integer.width}"
    rint = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(v.type, [v.type]), f"llvm.rint.{kind}"
    )
    n = builder.call(rint, [v.mul(inside, v.number(1 / LN2))])
    r = v.add(v.add(inside, v.mul(n, v.number(-f.ln2[0]))), v.mul(n, v.number(-f.ln2[1])))
    power = builder.add(builder.fptosi(n, v.integers), v.integer(f.bias))
    scale = builder.bitcast(builder.shl(power, v.integer(f.mantissa)), v.type)
    result = v.mul(v.series(r, [1 / math.factorial(k) for k in range(f.terms[0] + 1)]), scale)
    result = v.chosen("<", x, f.least, v.number(0.0), v.chosen(">", x, f.most, v.number(math.inf), result))
    return builder.select(builder.fcmp_unordered("uno", x, x), x, result)


def vector_log(builder: Any, x: Any) -> Any:
    """e log 2 + log m with x = 2ᵉ m, √½ ≤ m < √2, and log m = 2 s (1 + s²/3 + ...), s = (m - 1)/(m + 1)."""
    v = _Vector(builder, x)
    f = v.format
    bits = builder.bitcast(x, v.integers)
    e = builder.ashr(builder.sub(bits, v.integer(f.half_root)), v.integer(f.mantissa))
    m = builder.bitcast(builder.sub(bits, builder.shl(e, v.integer(f.mantissa))), v.type)
    s = builder.fdiv(builder.fsub(m, v.number(1.0)), builder.fadd(m, v.number(1.0)))
    series = v.series(v.mul(s, s), [2 / (2 * k + 1) for k in range(f.terms[1] + 1)])
    exponent = builder.sitofp(e, v.type)
    small = v.add(v.mul(exponent, v.number(f.ln2[1])), v.mul(s, series))
    result = v.add(v.mul(exponent, v.number(f.ln2[0])), small)
    result = v.chosen("==", x, math.inf, x, result)
    return v.chosen(">", x, 0.0, result, v.chosen("==", x, 0.0, v.number(-math.inf), v.number(math.nan)))


def vector_inverse_cube_root(builder: Any, x: Any) -> Any:
    """y = x^(-1/3) for x > 0, otherwise NaN, from y (1 - h)^(-1/3) with h = 1 - x y³.

    Two steps of the series of (1 - h)^(-1/3). The initial value, a third of the bit pattern, is accurate to
    1/20.
    """
    v = _Vector(builder, x)
    third = builder.ashr(builder.bitcast(x, v.integers), v.integer(2))
    for shift in (2, 4, 8):
        third = builder.add(third, builder.ashr(third, v.integer(shift)))
    y = builder.bitcast(builder.sub(v.integer(v.format.cube_root), third), v.type)
    for _ in range(2):
        cube = v.mul(v.mul(x, y), v.mul(y, y))
        h = v.add(v.number(1.0), v.mul(cube, v.number(-1.0)))
        y = v.add(y, v.mul(v.mul(y, h), v.series(h, [1 / 3, 2 / 9, 14 / 81][: v.format.cube_terms])))
    return positive_only(builder, x, y)


def positive_only(builder: Any, x: Any, y: Any) -> Any:
    """y where x > 0, otherwise NaN."""
    v = _Vector(builder, x)
    return v.chosen(">", x, 0.0, y, v.number(math.nan))
