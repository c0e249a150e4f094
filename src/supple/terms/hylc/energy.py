"""ψ of six strains: e₀ and e₂, the stretches along both threads less 1; e₁, the cosine of the angle between
them; and the second fundamental form L as xx, xy, yy [1/m].

With X = e/z in the plane, ψ = C + Σ fₖ(Xₖ) + Σ fᵢⱼ(Xᵢ, Xⱼ) + [g₃(L/z₃)]ₓₓ + [g₄(L/z₄)]ᵧᵧ, of which the
last two are entries of functions of a matrix, g₃(y) = f₃(y) + Σᵢ fᵢ₃(Xᵢ, y), and g₄ alike. Of the eigenvalues
m ± r of L, with d = (L_xx - L_yy)/2 and b = L_xy, these are A ± d Q, A = (g(m + r) + g(m - r))/2 and
Q = (g(m + r) - g(m - r))/2r: no eigenvectors, and no singularity where L is round.

Q is a difference of nearly equal numbers where r is small, which single precision does not stand; so fabrics
are computed in double precision, and below FLAT Q is the derivative that it tends to.
"""

import math
from typing import Any, NamedTuple

from supple.kernels import physics, select
from supple.terms.hylc.splines import double, single

FLAT = 1e-4
"""r [1/m] below which L counts as round."""


class FabricData(NamedTuple):
    """What kernels get of a fabric: layout and table as in `Fabric`, and the scales z₀ ... z₄."""

    layout: Any
    table: Any
    scale: Any


class Bent(NamedTuple):
    """g and its derivatives at one curvature: g, g_y, g_yy; along the three strains in the plane: gᵢ, gᵢ_y,
    gᵢᵢ."""

    g: Any
    slope: Any
    curve: Any
    by: Any
    mixed: Any
    twice: Any


@physics
def _bent(fabric, k, X, y):
    """g₃ for k = 3 and g₄ for k = 4."""
    first = 3 * k - 1
    f, slope, curve = single(fabric, k, y)
    a = double(fabric, first, X[0], y)
    b = double(fabric, first + 1, X[1], y)
    c = double(fabric, first + 2, X[2], y)
    return Bent(
        f + a[0] + b[0] + c[0],
        slope + a[2] + b[2] + c[2],
        curve + a[5] + b[5] + c[5],
        (a[1], b[1], c[1]),
        (a[4], b[4], c[4]),
        (a[3], b[3], c[3]),
    )


class Entry(NamedTuple):
    """An entry of a function of a matrix: its value and its derivatives by m, d and b."""

    value: Any
    first: Any
    second: Any


@physics
def _entry(f, g, inverse, sign, d, b, r, flat):
    """A ± d Q of functions with (value, derivative, second derivative) f at m + r and g at m - r; inverse:
    1/z. Second derivatives are given as (mm, md, mb, dd, db, bb)."""
    zero = 0.0 * d
    half = select(flat, zero, 0.5 / r)
    A = 0.5 * (f[0] + g[0])
    Am = 0.5 * inverse * (f[1] + g[1])
    Amm = 0.5 * inverse * inverse * (f[2] + g[2])
    Q = select(flat, Am, half * (f[0] - g[0]))
    Qm = select(flat, Amm, half * inverse * (f[1] - g[1]))
    Qmm = half * inverse * inverse * (f[2] - g[2])
    square = 4.0 * half * half
    Qr, Qmr = square * (Am - Q), square * (Amm - Qm)
    K = square * (Qmm - 3.0 * Qr)
    s = sign
    return Entry(
        A + s * d * Q,
        (Am + s * d * Qm, d * Qm + s * (Q + d * d * Qr), b * Qm + s * d * b * Qr),
        (
            Amm + s * d * Qmm,
            d * Qmm + s * (Qm + d * d * Qmr),
            b * Qmm + s * d * b * Qmr,
            Qm + d * d * Qmr + s * d * (3.0 * Qr + d * d * K),
            d * b * Qmr + s * b * (Qr + d * d * K),
            Qm + b * b * Qmr + s * d * (Qr + b * b * K),
        ),
    )


@physics
def _by_entries(first):
    """Derivatives by L_xx, L_xy and L_yy from those by m, d and b."""
    return 0.5 * (first[0] + first[1]), first[2], 0.5 * (first[0] - first[1])


@physics
def _twice_by_entries(s):
    """Second derivatives by (xx, xx), (xx, xy), (xx, yy), (xy, xy), (xy, yy), (yy, yy)."""
    return (
        0.25 * (s[0] + 2.0 * s[1] + s[3]),
        0.5 * (s[2] + s[4]),
        0.25 * (s[0] - s[3]),
        s[5],
        0.5 * (s[2] - s[4]),
        0.25 * (s[0] - 2.0 * s[1] + s[3]),
    )


class Density(NamedTuple):
    """ψ [J/m²] less its constant; its derivatives by e₀ e₁ e₂ L_xx L_xy L_yy; its second ones, the upper
    triangle row by row."""

    value: Any
    first: Any
    second: Any


@physics
def _plus3(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@physics
def density(fabric, e):
    """ψ and its derivatives at strains e, a 6-tuple."""
    z = fabric.scale
    w = (1.0 / z[0], 1.0 / z[1], 1.0 / z[2])
    X = (e[0] * w[0], e[1] * w[1], e[2] * w[2])
    m, d, b = 0.5 * (e[3] + e[5]), 0.5 * (e[3] - e[5]), e[4]
    r = math.sqrt(d * d + b * b)
    flat = r < FLAT
    x, y = (
        _side(fabric, 3, X, 1.0 / z[3], 1.0, m, d, b, r, flat),
        _side(fabric, 4, X, 1.0 / z[4], -1.0, m, d, b, r, flat),
    )
    a, s, c = single(fabric, 0, X[0]), single(fabric, 1, X[1]), single(fabric, 2, X[2])
    p, q, t = double(fabric, 5, X[0], X[1]), double(fabric, 6, X[0], X[2]), double(fabric, 7, X[1], X[2])
    value = a[0] + s[0] + c[0] + p[0] + q[0] + t[0] + x[0].value + y[0].value
    plane = (a[1] + p[1] + q[1], s[1] + p[2] + t[1], c[1] + q[2] + t[2])
    plane = _plus3(plane, _plus3(x[1], y[1]))
    bend = _by_entries(_plus3(x[0].first, y[0].first))
    twice = _plus3((a[2] + p[3] + q[3], s[2] + p[5] + t[3], c[2] + q[5] + t[5]), _plus3(x[3], y[3]))
    mixed = (
        _by_entries(_plus3(x[2][0], y[2][0])),
        _by_entries(_plus3(x[2][1], y[2][1])),
        _by_entries(_plus3(x[2][2], y[2][2])),
    )
    B, C = _twice_by_entries(x[0].second), _twice_by_entries(y[0].second)
    return Density(
        value,
        (w[0] * plane[0], w[1] * plane[1], w[2] * plane[2], bend[0], bend[1], bend[2]),
        (
            w[0] * w[0] * twice[0], w[0] * w[1] * p[4], w[0] * w[2] * q[4],
            w[0] * mixed[0][0], w[0] * mixed[0][1], w[0] * mixed[0][2],
            w[1] * w[1] * twice[1], w[1] * w[2] * t[4],
            w[1] * mixed[1][0], w[1] * mixed[1][1], w[1] * mixed[1][2],
            w[2] * w[2] * twice[2],
            w[2] * mixed[2][0], w[2] * mixed[2][1], w[2] * mixed[2][2],
            B[0] + C[0], B[1] + C[1], B[2] + C[2], B[3] + C[3], B[4] + C[4], B[5] + C[5],
        ),
    )  # fmt: skip


@physics
def _side(fabric, k, X, inverse, sign, m, d, b, r, flat):
    """The entry of gₖ(L/z); its derivatives by X; by X and then by m, d and b; and twice by X."""
    f, g = _bent(fabric, k, X, inverse * (m + r)), _bent(fabric, k, X, inverse * (m - r))
    whole = _entry((f.g, f.slope, f.curve), (g.g, g.slope, g.curve), inverse, sign, d, b, r, flat)
    zero = 0.0 * m
    by = (
        _entry((f.by[0], f.mixed[0], zero), (g.by[0], g.mixed[0], zero), inverse, sign, d, b, r, flat),
        _entry((f.by[1], f.mixed[1], zero), (g.by[1], g.mixed[1], zero), inverse, sign, d, b, r, flat),
        _entry((f.by[2], f.mixed[2], zero), (g.by[2], g.mixed[2], zero), inverse, sign, d, b, r, flat),
    )
    twice = (
        _plain(f.twice[0], g.twice[0], sign, d, r, flat),
        _plain(f.twice[1], g.twice[1], sign, d, r, flat),
        _plain(f.twice[2], g.twice[2], sign, d, r, flat),
    )
    return whole, (by[0].value, by[1].value, by[2].value), (by[0].first, by[1].first, by[2].first), twice


@physics
def _plain(f, g, sign, d, r, flat):
    """A ± d Q of values alone."""
    return 0.5 * (f + g) + sign * d * select(flat, 0.0 * d, 0.5 * (f - g) / r)
