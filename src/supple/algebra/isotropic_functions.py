"""Isotropic functions of a matrix, a F + b cof F + c F Fᵀ F: the form of rotations and isotropic stresses.

Stored by their coefficients, they apply to a vector without the matrix itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from supple.algebra.matrix3 import cofactor, combine, matmul, matvec, transpose
from supple.kernels import generic


class Quadratic(NamedTuple):
    """a F + b cof F."""

    a: Any
    b: Any


class Cubic(NamedTuple):
    """a F + b cof F + c F Fᵀ F."""

    a: Any
    b: Any
    c: Any


@generic
def matrix_of(coefficients, F):
    """Matrix as a 9-tuple."""


@generic
def times(coefficients, F, g):
    """Matrix times a vector g."""


@matrix_of.of(Quadratic)
def _quadratic(coefficients, F):
    return combine(coefficients.a, F, coefficients.b, cofactor(F))


@times.of(Quadratic)
def _quadratic_times(coefficients, F, g):
    a, b = coefficients.a, coefficients.b
    x, y = matvec(F, g), matvec(cofactor(F), g)
    return (a * x[0] + b * y[0], a * x[1] + b * y[1], a * x[2] + b * y[2])


@matrix_of.of(Cubic)
def _cubic(coefficients, F):
    G = matmul(matmul(F, transpose(F)), F)
    return combine(1.0, combine(coefficients.a, F, coefficients.b, cofactor(F)), coefficients.c, G)


@times.of(Cubic)
def _cubic_times(coefficients, F, g):
    a, b, c = coefficients.a, coefficients.b, coefficients.c
    x, y = matvec(F, g), matvec(cofactor(F), g)
    z = matvec(F, matvec(transpose(F), x))
    return (
        a * x[0] + b * y[0] + c * z[0],
        a * x[1] + b * y[1] + c * z[1],
        a * x[2] + b * y[2] + c * z[2],
    )
