"""Cubic Hermite splines of one and two strains, with linear extrapolation."""

from typing import Any, NamedTuple

from supple.kernels import device_function, where
from supple.kernels.simd.load_store import load_four, load_two


class Weights(NamedTuple):
    """Interpolation weights of the knot interval that contains a strain.

    Attributes:
        knot: Number of the first knot.
        value: Weights of value and slope at both ends in the spline.
        first, second: The same for its first and second derivative.
    """

    knot: Any
    value: Any
    first: Any
    second: Any


@device_function
def _select4(condition, a, b):
    return (
        where(condition, a[0], b[0]),
        where(condition, a[1], b[1]),
        where(condition, a[2], b[2]),
        where(condition, a[3], b[3]),
    )


@device_function
def weights(table, begin, count, x):
    """Weights for a strain x among `count` knots from table[begin]; a knot belongs to its right interval."""
    zero = 0.0 * x
    one = zero + 1.0
    index = zero
    for k in range(1, count - 1):
        index = index + where(x >= table[begin + k], one, zero)
    t, end = load_two(table, begin, index)
    h = end - t
    inverse = 1.0 / h
    s = (x - t) * inverse
    r = 1.0 - s
    low, high = x < table[begin], x >= table[begin + count - 1]
    value = ((1.0 + 2.0 * s) * r * r, h * s * r * r, (3.0 - 2.0 * s) * s * s, -(h * s * s * r))
    first = (-(6.0 * s * r * inverse), r * (1.0 - 3.0 * s), 6.0 * s * r * inverse, s * (3.0 * s - 2.0))
    second = (
        (12.0 * s - 6.0) * inverse * inverse,
        (6.0 * s - 4.0) * inverse,
        (6.0 - 12.0 * s) * inverse * inverse,
        (6.0 * s - 2.0) * inverse,
    )
    nothing = (zero, zero, zero, zero)
    value = _select4(low, (one, x - t, zero, zero), _select4(high, (zero, zero, one, x - end), value))
    first = _select4(low, (zero, one, zero, zero), _select4(high, (zero, zero, zero, one), first))
    second = _select4(low, nothing, _select4(high, nothing, second))
    return Weights(index, value, first, second)


@device_function
def _sum4(w, c):
    return w[0] * c[0] + w[1] * c[1] + w[2] * c[2] + w[3] * c[3]


@device_function
def single(fabric, k, x):
    """(f, f', f'') of spline k at x."""
    begin, count, values = fabric.layout[4 * k], fabric.layout[4 * k + 1], fabric.layout[4 * k + 3]
    table = fabric.table
    w = weights(table, begin, count, x)
    c = load_four(table, values, 2.0 * w.knot)
    return _sum4(w.value, c), _sum4(w.first, c), _sum4(w.second, c)


@device_function
def _along(w, a, b):
    """Value and v-derivative on the line between knots a and b, for weights w along it.

    A knot has p, ∂u, ∂v and ∂u∂v.
    """
    return (
        w[0] * a[0] + w[1] * a[1] + w[2] * b[0] + w[3] * b[1],
        w[0] * a[2] + w[1] * a[3] + w[2] * b[2] + w[3] * b[3],
    )


@device_function
def _across(w, low, high):
    return w[0] * low[0] + w[1] * low[1] + w[2] * high[0] + w[3] * high[1]


@device_function
def double(fabric, k, x, y):
    """(f, f_x, f_y, f_xx, f_xy, f_yy) of spline k at x and y."""
    table, layout = fabric.table, fabric.layout
    begin, nu, nv, values = layout[4 * k], layout[4 * k + 1], layout[4 * k + 2], layout[4 * k + 3]
    u, v = weights(table, begin, nu, x), weights(table, begin + nu, nv, y)
    at = 4.0 * (v.knot * nu + u.knot)
    a, b = load_four(table, values, at), load_four(table, values + 4, at)
    c, d = load_four(table, values + 4 * nu, at), load_four(table, values + 4 * nu + 4, at)
    low, high = _along(u.value, a, b), _along(u.value, c, d)
    low1, high1 = _along(u.first, a, b), _along(u.first, c, d)
    low2, high2 = _along(u.second, a, b), _along(u.second, c, d)
    return (
        _across(v.value, low, high),
        _across(v.value, low1, high1),
        _across(v.first, low, high),
        _across(v.value, low2, high2),
        _across(v.first, low1, high1),
        _across(v.second, low, high),
    )
