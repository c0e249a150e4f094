"""Undeformed shape of elements, which may differ from the initial shape."""

from __future__ import annotations

from supple.kernels import generic


@generic
def rest_gradient(rows, g):
    """Σ Xₐ gₐᵀ of the rest positions, a 9-tuple, to which `displacement_gradient` is added."""


@generic
def from_rest(rows, row, x):
    """Displacements of the corners from the undeformed element, up to a translation.

    Args:
        rows: Packed element data.
        row: Packed row.
        x: Displacements from the initial positions [m]. They are returned unchanged unless the initial shape
            is strained.
    """


@generic
def from_start(rows, row, x):
    """Inverse of `from_rest`."""


@from_rest.of(tuple)
def _from_rest(rows, row, x):
    return x


@from_start.of(tuple)
def _from_start(rows, row, x):
    return x
