"""Load, combine and store the corners of one element visit.

Corners are tuples, the first corner of the packed row first. x is always a displacement, never a position;
W = Δt²/m.
"""

from __future__ import annotations

from typing import Any

from numba import types

from supple.algebra.dirichlet_projection import free_part
from supple.algebra.matrix3 import add, dot, matvec, scale
from supple.kernels import (
    device_function,
    each,
    gather,
    load,
    overload_by_type,
    scatter,
    store,
    total,
    unroll,
)
from supple.problem.dirichlet_rows import six
from supple.solvers.elementwise.projection import WeightedElements
from supple.terms.base.constraint import constraint_of_corners
from supple.terms.base.elastic import (
    corner_count,
    corners,
    from_start,
    material_at,
    rest_volume,
    shape_gradients,
)

matvec_each = each("M, g", "matvec(M, g[i])", matvec, over="g")
"""M gᵢ of all corners; with M = ∂C/∂F these are ∂C/∂xᵢ."""

weighted_dot = total("W, a, b", "W[i] * dot(a[i], b[i])", dot, over="a")
"""Σ Wᵢ aᵢ · bᵢ."""

corner_dot = total("a, b", "dot(a[i], b[i])", dot, over="a")
"""Σ aᵢ · bᵢ."""

plus = each("x, y", "add(x[i], y[i])", add, over="x")
"""xᵢ + yᵢ."""

times = each("s, x", "scale(s, x[i])", scale, over="x")
"""s xᵢ."""

times_weights = each("W, a", "scale(W[i], a[i])", scale, over="a")
"""Wᵢ aᵢ."""

shift_corners = each("x, s, W, a", "add(x[i], scale(s * W[i], a[i]))", add, scale, over="x")
"""xᵢ + s Wᵢ aᵢ."""

outer_sum = unroll(
    "a, b",
    lambda n: ", ".join(
        " + ".join(f"a[{k}][{p}] * b[{k}][{q}]" for k in range(n)) for p in range(3) for q in range(3)
    ),
    over="a",
)
"""Σ aᵢ bᵢᵀ, a 9-tuple."""

_corner_weights = each("rows, W, row", "load(W, row, i)", load, over="rows", count=corner_count)


@device_function
def compliance_matrix(W, g):
    """Γ = Σ Wᵢ gᵢ gᵢᵀ; forces -V P gᵢ at the corners change F by -V P Γ."""
    return outer_sum(times_weights(W, g), g)


_six_each = each(
    "rows, constrained, row", "six(constrained, row, 6 * i)", six, over="rows", count=corner_count
)


def constrained_corners(elements: Any, row: Any) -> Any:
    """Projection N onto constrained directions of each corner; () for models without such directions."""


@overload_by_type(constrained_corners)
def _constrained_corners(elements, row):
    if isinstance(elements[WeightedElements._fields.index("constrained")], types.BaseTuple):
        return lambda elements, row: ()
    return lambda elements, row: _six_each(elements.rows, elements.constrained, row)


_free_each = each("N, a", "free_part(N[i], a[i])", free_part, over="N")


def free_corners(N: Any, a: Any) -> Any:
    """aᵢ - Nᵢ aᵢ: corner vectors, such as gradients, without components along constrained directions.

    W then represents Wᵢ (I - Nᵢ).
    """


@overload_by_type(free_corners)
def _free_corners(N, a):
    if len(N) == 0:
        return lambda N, a: a
    return lambda N, a: _free_each(N, a)


def free_corner(constrained: Any, row: Any, corner: int, v: Any) -> Any:
    """v - N v: vector of one corner without its components along the constrained directions."""


@overload_by_type(free_corner)
def _free_corner(constrained, row, corner, v):
    if isinstance(constrained, types.BaseTuple):
        return lambda constrained, row, corner, v: v
    return lambda constrained, row, corner, v: free_part(six(constrained, row, 6 * corner), v)


@device_function
def corners_of(elements, row, u):
    """(x, W): displacements and W of all corners."""
    x = corners(elements.rows, row, u, gather(u, elements.own, row, 0))
    return x, _corner_weights(elements.rows, elements.weights, row)


@device_function
def load_element(elements, row, u):
    """(x, W, g, V, material): displacements, W, shape gradients, volume [m³] and material of an element."""
    x, W = corners_of(elements, row, u)
    rows = elements.rows
    return x, W, shape_gradients(rows, row), rest_volume(rows, row), material_at(rows, row)


@device_function
def corner_gradients(elements, row, dC_dF, g):
    """∂C/∂xᵢ = ∂C/∂F gᵢ, without the components along constrained directions."""
    return free_corners(constrained_corners(elements, row), matvec_each(dC_dF, g))


@device_function
def load_constraint(elements, row, x):
    """(C, ∂C/∂xᵢ, k) of elements that consist of one constraint; k = 0 in padding.

    The gradients have no components along constrained directions.
    """
    C, gradient, k = constraint_of_corners(elements.rows, row, x)
    return C, free_corners(constrained_corners(elements, row), gradient), k


@device_function
def _store_vector(data, row, first, x):
    store(data, row, first, x[0])
    store(data, row, first + 1, x[1])
    store(data, row, first + 2, x[2])


@device_function
def load_vector(data, row, first):
    return load(data, row, first), load(data, row, first + 1), load(data, row, first + 2)


_scatter_others = each(
    "u, others, row, x",
    "scatter(u, others, row, i, x[i + 1])",
    scatter,
    over="x",
    count=lambda x: len(x) - 1,
)


@device_function
def scatter_corners(elements, row, u, x):
    """Write the displacements of the corners back to u."""
    x = from_start(elements.rows, row, x)
    scatter(u, elements.own, row, 0, x[0])
    _scatter_others(u, elements.rows.others, row, x)


_load_from = each("x, data, row, first", "load_vector(data, row, first + 3 * i)", load_vector, over="x")

_store_from = each(
    "data, row, first, x", "_store_vector(data, row, first + 3 * i, x[i])", _store_vector, over="x"
)


@device_function
def load_corners(x, data, row, which):
    """Load the vectors of all corners from set number `which` of a packed row; x gives the corner count."""
    return _load_from(x, data, row, 3 * len(x) * which)


@device_function
def store_corners(data, row, which, x):
    """Inverse of `load_corners`."""
    _store_from(data, row, 3 * len(x) * which, x)
