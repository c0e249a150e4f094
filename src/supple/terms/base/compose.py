"""Sums over a tuple of terms of any kinds, composed at compile time.

A kernel with an argument `terms` is specialized on their types: each function below processes the first term
and recurses on the rest, and the recursion is unrolled by type.
"""

from __future__ import annotations

import math
from typing import Any

from numba import types

from supple.algebra.dirichlet_projection import free_part
from supple.algebra.matrix3 import add, dot, scale
from supple.kernels import (
    all_lanes,
    device_function,
    gather,
    item_number,
    load,
    overload_by_type,
    row_address,
)
from supple.terms.base.term import force_with_safe_step, step_fraction, vertex_force


@device_function
def add_symmetric(A, B):
    """A + B for symmetric matrices as xx yy zz xy xz yz."""
    return (A[0] + B[0], A[1] + B[1], A[2] + B[2], A[3] + B[3], A[4] + B[4], A[5] + B[5])


@device_function
def forces_at(term, row, u, ui, N):
    """(f, A, s, q) of the incidences in a row.

    Forces f [N], Hessian bounds A [N/m], force magnitudes s [N] after projection by the constraint projector
    N, and q = 1/r² [1/m²] of the safe step radius.
    """
    f, A, q = _force_at(term, row, u, ui)
    free = free_part(N, f)
    return f, A, math.sqrt(dot(free, free)), q


@device_function
def plus(a, b):
    """Sum of two (f, A, s, q); q is their maximum."""
    return add(a[0], b[0]), add_symmetric(a[1], b[1]), a[2] + b[2], max(a[3], b[3])


def add_forces(terms: Any, batch: Any, u: Any, ui: Any, N: Any, total: Any) -> Any:
    """Add the contributions of all terms for the vertices of a batch to total = (f, A, s, q).

    N is the constraint projector of the vertices.
    """


@overload_by_type(add_forces)
def _add_forces(terms, batch, u, ui, N, total):
    if len(terms) == 0:
        return lambda terms, batch, u, ui, N, total: total

    def one_by_one(terms, batch, u, ui, N, total):
        term = terms[0]
        for k in range(term.start[item_number(batch)], term.start[item_number(batch) + 1]):
            total = plus(total, forces_at(term, row_address(batch, k), u, ui, N))
        return add_forces(terms[1:], batch, u, ui, N, total)

    def four_by_four(terms, batch, u, ui, N, total):
        term = terms[0]
        k, last = term.start[item_number(batch)], term.start[item_number(batch) + 1]
        while k + 3 < last:
            a = forces_at(term, row_address(batch, k), u, ui, N)
            b = forces_at(term, row_address(batch, k + 1), u, ui, N)
            c = forces_at(term, row_address(batch, k + 2), u, ui, N)
            d = forces_at(term, row_address(batch, k + 3), u, ui, N)
            total = plus(total, plus(plus(a, b), plus(c, d)))
            k += 4
        if k + 1 < last:
            a = forces_at(term, row_address(batch, k), u, ui, N)
            b = forces_at(term, row_address(batch, k + 1), u, ui, N)
            total = plus(total, plus(a, b))
            k += 2
        if k < last:
            total = plus(total, forces_at(term, row_address(batch, k), u, ui, N))
        return add_forces(terms[1:], batch, u, ui, N, total)

    # A GPU thread loads the data of four incidences at once; packs would no longer fit in registers.
    return four_by_four if isinstance(batch, types.BaseTuple) else one_by_one


def limit_step(terms: Any, batch: int, u: Any, ui: Any, step: Any, q: Any) -> Any:
    """Fraction of a batch's step that keeps the energy of every term finite.

    Steps within the safe radius given by q need no check.
    """


@overload_by_type(limit_step)
def _limit_step(terms, batch, u, ui, step, q):
    if not any(map(_has_barrier, terms)):
        return lambda terms, batch, u, ui, step, q: 0.0 * step[0] + 1.0

    def check_long_steps(terms, batch, u, ui, step, q):
        one = 0.0 * step[0] + 1.0
        if all_lanes(q * dot(step, step) <= 1.0):
            return one
        return shortest_step(terms, batch, u, ui, step, one)

    return check_long_steps


def shortest_step(terms: Any, batch: int, u: Any, ui: Any, step: Any, fraction: Any) -> Any:
    """Fraction of a batch's step, at most `fraction`, that keeps the energy of every term finite."""


def _has_barrier(term: Any) -> bool:
    """True if a term's material has a barrier; other terms cost nothing here."""
    classes = [getattr(field, "instance_class", None) for field in term]
    return any(getattr(cls, "barrier", False) for cls in classes)


def _force_at(term: Any, row: Any, u: Any, ui: Any) -> Any:
    """(f, A, q), with q = 0 for terms that are finite everywhere."""


@overload_by_type(_force_at)
def _choose_force_at(term, row, u, ui):
    if _has_barrier(term):
        return lambda term, row, u, ui: force_with_safe_step(term, row, u, ui)

    def finite_everywhere(term, row, u, ui):
        f, A = vertex_force(term, row, u, ui)
        return f, A, 0.0 * f[0]

    return finite_everywhere


@overload_by_type(shortest_step)
def _shortest_step(terms, batch, u, ui, step, fraction):
    if len(terms) == 0:
        return lambda terms, batch, u, ui, step, fraction: fraction
    if not _has_barrier(terms[0]):
        return lambda terms, batch, u, ui, step, fraction: shortest_step(
            terms[1:], batch, u, ui, step, fraction
        )

    def first_then_rest(terms, batch, u, ui, step, fraction):
        term = terms[0]
        for k in range(term.start[item_number(batch)], term.start[item_number(batch) + 1]):
            fraction = min(fraction, step_fraction(term, row_address(batch, k), u, ui, step))
        return shortest_step(terms[1:], batch, u, ui, step, fraction)

    return first_then_rest


def add_group_forces(terms: Any, owns: Any, shares: Any, batch: int, u: Any, f: Any, A: Any) -> Any:
    """Add the contributions of all terms to (f, A) of tied groups of vertices.

    Each row has its own visiting vertex; its share gives the weights of force and bound.
    """


@overload_by_type(add_group_forces)
def _add_group_forces(terms, owns, shares, batch, u, f, A):
    if len(terms) == 0:
        return lambda terms, owns, shares, batch, u, f, A: (f, A)

    def first_then_rest(terms, owns, shares, batch, u, f, A):
        term = terms[0]
        for k in range(term.start[item_number(batch)], term.start[item_number(batch) + 1]):
            row = row_address(batch, k)
            df, dA = vertex_force(term, row, u, gather(u, owns[0], row, 0))
            w, n = load(shares[0], row, 0), load(shares[0], row, 1)
            dA = (n * dA[0], n * dA[1], n * dA[2], n * dA[3], n * dA[4], n * dA[5])
            f, A = add(f, scale(w, df)), add_symmetric(A, dA)
        return add_group_forces(terms[1:], owns[1:], shares[1:], batch, u, f, A)

    return first_then_rest


def limit_group_step(terms: Any, owns: Any, shares: Any, batch: int, u: Any, step: Any, fraction: Any) -> Any:
    """Fraction of the step of a tied group of vertices that keeps every energy finite; see `limit_step`."""


@overload_by_type(limit_group_step)
def _limit_group_step(terms, owns, shares, batch, u, step, fraction):
    if len(terms) == 0:
        return lambda terms, owns, shares, batch, u, step, fraction: fraction
    if not _has_barrier(terms[0]):
        return lambda terms, owns, shares, batch, u, step, fraction: limit_group_step(
            terms[1:], owns[1:], shares[1:], batch, u, step, fraction
        )

    def first_then_rest(terms, owns, shares, batch, u, step, fraction):
        term = terms[0]
        for k in range(term.start[item_number(batch)], term.start[item_number(batch) + 1]):
            row = row_address(batch, k)
            ui, visiting_step = gather(u, owns[0], row, 0), scale(load(shares[0], row, 0), step)
            fraction = min(fraction, 0.25 * step_fraction(term, row, u, ui, visiting_step))
        return limit_group_step(terms[1:], owns[1:], shares[1:], batch, u, step, fraction)

    return first_then_rest
