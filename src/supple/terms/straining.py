"""Where elements are undeformed, which need not be where bodies start."""

from __future__ import annotations

from supple.kernels import generic


@generic
def rest_gradient(rows, g):
    """Σ Xₐ gₐᵀ of the rest positions, a 9-tuple: what `displacement_gradient` changes."""


@generic
def from_rest(rows, row, x):
    """Displacements of the corners of elements from where these are undeformed, given those from where the
    vertices have none, but for a translation: the same, unless elements are strained where bodies start."""


@generic
def from_start(rows, row, x):
    """The reverse of `from_rest`."""


@from_rest.of(tuple)
def _from_rest(rows, row, x):
    return x


@from_start.of(tuple)
def _from_start(rows, row, x):
    return x
