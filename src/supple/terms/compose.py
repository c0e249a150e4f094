"""Summing over a tuple of terms of any kinds, composed when a kernel is compiled.

A kernel that takes `terms` is specialised on the kinds in it: each function below visits the first term and
recurses on the rest, and the recursion is unrolled by type.
"""

from __future__ import annotations

import math
from typing import Any

from numba import types
from numba.extending import overload

from supple.algebra.matrix3 import add, dot
from supple.kernels import physics
from supple.terms.term import step_fraction, vertex_force


@physics
def add_symmetric(A, B):
    """A + B for symmetric matrices as xx yy zz xy xz yz."""
    return (A[0] + B[0], A[1] + B[1], A[2] + B[2], A[3] + B[3], A[4] + B[4], A[5] + B[5])


def add_forces(terms: Any, batch: int, u: Any, ui: Any, f: Any, A: Any, s: Any) -> Any:
    """(f, A, s) plus what all terms add for the vertices of a batch: forces f [N], Hessian bounds A [N/m] and
    force magnitudes s [N]."""


@overload(add_forces)
def _add_forces(terms, batch, u, ui, f, A, s):  # type: ignore[no-untyped-def]
    if len(terms) == 0:
        return lambda terms, batch, u, ui, f, A, s: (f, A, s)

    def first_then_rest(terms, batch, u, ui, f, A, s):  # type: ignore[no-untyped-def]
        term = terms[0]
        for row in range(term.start[batch], term.start[batch + 1]):
            df, dA = vertex_force(term, row, u, ui)
            f, A, s = add(f, df), add_symmetric(A, dA), s + math.sqrt(dot(df, df))
        return add_forces(terms[1:], batch, u, ui, f, A, s)

    return first_then_rest


def limit_step(terms: Any, batch: int, u: Any, ui: Any, step: Any, fraction: Any) -> Any:
    """The fraction of a batch's step, at most `fraction`, that keeps the energy of every term finite."""


def _has_barrier(term: types.BaseNamedTuple) -> bool:
    """Whether a term's material is infinite somewhere; others cost nothing here."""
    materials = [field for field in term if isinstance(field, types.BaseNamedTuple)]
    return any(getattr(material.instance_class, "barrier", False) for material in materials)


@overload(limit_step)
def _limit_step(terms, batch, u, ui, step, fraction):  # type: ignore[no-untyped-def]
    if len(terms) == 0:
        return lambda terms, batch, u, ui, step, fraction: fraction
    if not _has_barrier(terms[0]):
        return lambda terms, batch, u, ui, step, fraction: limit_step(
            terms[1:], batch, u, ui, step, fraction
        )

    def first_then_rest(terms, batch, u, ui, step, fraction):  # type: ignore[no-untyped-def]
        term = terms[0]
        for row in range(term.start[batch], term.start[batch + 1]):
            fraction = min(fraction, step_fraction(term, row, u, ui, step))
        return limit_step(terms[1:], batch, u, ui, step, fraction)

    return first_then_rest
