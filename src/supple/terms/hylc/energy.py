"""ψ of six strains: two thread stretches and their angle in the plane, and the second fundamental form.

e₀ and e₂ are the stretches along both threads minus 1, e₁ is the cosine of the angle between them, and L is
the second fundamental form as xx, xy, yy [1/m]. With X = e/z in the plane, ψ = C + Σ fₖ(Xₖ) + Σ fᵢⱼ(Xᵢ, Xⱼ) +
[g₃(L/z₃)]ₓₓ + [g₄(L/z₄)]ᵧᵧ. The last two are entries of matrix functions, g₃(y) = f₃(y) + Σᵢ fᵢ₃(Xᵢ, y), and
g₄ likewise. With the eigenvalues m ± r of L, d = (L_xx - L_yy)/2 and b = L_xy, these entries are A ± d Q, A =
(g(m + r) + g(m - r))/2 and Q = (g(m + r) - g(m - r))/2r: no eigenvectors, and no singularity for equal
eigenvalues.

For small r, Q is a difference of nearly equal numbers, which single precision cannot represent. Therefore
fabrics are computed in double precision, and below FLAT Q is replaced by its limit, the derivative.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from supple.kernels import (
    claim_chunk,
    counters_for,
    device_function,
    kernel,
    lanes_of,
    load,
    run,
    store,
    unroll,
    where,
)
from supple.terms.hylc.fabric import Fabric
from supple.terms.hylc.splines import double, single

MIN_RADIUS = 1e-4
"""r [1/m] below which the eigenvalues of L count as equal."""


class FabricData(NamedTuple):
    """Fabric data for kernels: layout and table as in `Fabric`, and the scales z₀ ... z₄."""

    layout: Any
    table: Any
    scale: Any


_add_scaled = unroll("a, s, b", lambda n: ", ".join(f"a[{k}] + s * b[{k}]" for k in range(n)), over="a")
"""a + s b, for tuples."""


@device_function
def _zero_side(m):
    """Zeros in the shape of the result of `_side`."""
    o = 0.0 * m
    return (o, o, o, o, o, o, o, o, o, o, o, o, o, o, o, o, o, o, o, o, o, o, o, o, o)


@device_function
def _bending_function(fabric, k, X, y):
    """g₃ for k = 3 and g₄ for k = 4: g, g_y, g_yy; and gᵢ, gᵢ_y, gᵢᵢ along the three in-plane strains."""
    first = 3 * k - 1
    f, slope, curve = single(fabric, k, y)
    a = double(fabric, first, X[0], y)
    b = double(fabric, first + 1, X[1], y)
    c = double(fabric, first + 2, X[2], y)
    return (
        f + a[0] + b[0] + c[0], slope + a[2] + b[2] + c[2], curve + a[5] + b[5] + c[5],
        a[1], b[1], c[1], a[4], b[4], c[4], a[3], b[3], c[3],
    )  # fmt: skip


class Entry(NamedTuple):
    """Entry of a function of L = [[m + d, b], [b, m - d]]: value and derivatives by (m, d, b)."""

    value: Any
    first: Any
    second: Any


@device_function
def _entry(both, between, inverse, sign, d, b, r, flat):
    """A ± d Q of a function, with derivatives.

    Args:
        both: Sum of (value, derivative, second derivative) at m + r and m - r.
        between: Difference of the same.
        inverse: 1/z.
        sign: Sign of d Q.
        d, b, r: Components and radius of L [1/m].
        flat: True for r below FLAT.

    Returns:
        Entry, with second derivatives as (mm, md, mb, dd, db, bb).
    """
    zero = 0.0 * d
    half = where(flat, zero, 0.5 / r)
    A = 0.5 * both[0]
    Am = 0.5 * inverse * both[1]
    Amm = 0.5 * inverse * inverse * both[2]
    Q = where(flat, Am, half * between[0])
    Qm = where(flat, Amm, half * inverse * between[1])
    Qmm = half * inverse * inverse * between[2]
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


@device_function
def _side(fabric, k, X, m, d, b, r, flat):
    """Entry of gₖ(L/z) with derivatives.

    Returns the value; first, then second derivatives with respect to m, d and b; first derivatives with
    respect to X; mixed derivatives with respect to X and m, d, b; and second derivatives with respect to X.
    """
    inverse, sign = 1.0 / fabric.scale[k], 7.0 - 2.0 * k
    zero = 0.0 * m
    both = (zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero)
    between = both
    for end in range(2):
        sign_of_end = 1.0 - 2.0 * end
        g = _bending_function(fabric, k, X, inverse * (m + sign_of_end * r))
        both, between = _add_scaled(both, 1.0, g), _add_scaled(between, sign_of_end, g)
    entry = _entry(
        (both[0], both[1], both[2]), (between[0], between[1], between[2]), inverse, sign, d, b, r, flat
    )
    u = _entry((both[3], both[6], zero), (between[3], between[6], zero), inverse, sign, d, b, r, flat)
    v = _entry((both[4], both[7], zero), (between[4], between[7], zero), inverse, sign, d, b, r, flat)
    w = _entry((both[5], both[8], zero), (between[5], between[8], zero), inverse, sign, d, b, r, flat)
    half = where(flat, zero, 0.5 * sign * d / r)
    return (
        (entry.value,) + entry.first + entry.second + (u.value, v.value, w.value)  # noqa: RUF005
        + u.first + v.first + w.first
        + (
            0.5 * both[9] + half * between[9],
            0.5 * both[10] + half * between[10],
            0.5 * both[11] + half * between[11],
        )
    )  # fmt: skip


@device_function
def _by_entries(m, d, b):
    """Derivatives with respect to L_xx, L_xy and L_yy from those with respect to m, d and b."""
    return 0.5 * (m + d), b, 0.5 * (m - d)


@device_function
def _twice_by_entries(mm, md, mb, dd, db, bb):
    """Second derivatives with respect to (xx, xx), (xx, xy), (xx, yy), (xy, xy), (xy, yy), (yy, yy)."""
    return (
        0.25 * (mm + 2.0 * md + dd), 0.5 * (mb + db), 0.25 * (mm - dd),
        bb, 0.5 * (mb - db), 0.25 * (mm - 2.0 * md + dd),
    )  # fmt: skip


class Density(NamedTuple):
    """ψ and its derivatives.

    Attributes:
        value: ψ without its constant [J/m²].
        first: Derivatives with respect to e₀ e₁ e₂ L_xx L_xy L_yy.
        second: Second derivatives, upper triangle row by row.
    """

    value: Any
    first: Any
    second: Any


@device_function
def density(fabric, e):
    """ψ and its derivatives at strains e, a 6-tuple."""
    z = fabric.scale
    w = (1.0 / z[0], 1.0 / z[1], 1.0 / z[2])
    X = (e[0] * w[0], e[1] * w[1], e[2] * w[2])
    m, d, b = 0.5 * (e[3] + e[5]), 0.5 * (e[3] - e[5]), e[4]
    r = math.sqrt(d * d + b * b)
    flat = r < MIN_RADIUS
    s = _zero_side(m)
    for k in range(3, 5):
        s = _add_scaled(s, 1.0, _side(fabric, k, X, m, d, b, r, flat))
    f, g, h = single(fabric, 0, X[0]), single(fabric, 1, X[1]), single(fabric, 2, X[2])
    p, q, t = double(fabric, 5, X[0], X[1]), double(fabric, 6, X[0], X[2]), double(fabric, 7, X[1], X[2])
    bend, B = _by_entries(s[1], s[2], s[3]), _twice_by_entries(s[4], s[5], s[6], s[7], s[8], s[9])
    u, v = _by_entries(s[13], s[14], s[15]), _by_entries(s[16], s[17], s[18])
    y = _by_entries(s[19], s[20], s[21])
    return Density(
        f[0] + g[0] + h[0] + p[0] + q[0] + t[0] + s[0],
        (
            w[0] * (f[1] + p[1] + q[1] + s[10]),
            w[1] * (g[1] + p[2] + t[1] + s[11]),
            w[2] * (h[1] + q[2] + t[2] + s[12]),
            bend[0], bend[1], bend[2],
        ),
        (
            w[0] * w[0] * (f[2] + p[3] + q[3] + s[22]), w[0] * w[1] * p[4], w[0] * w[2] * q[4],
            w[0] * u[0], w[0] * u[1], w[0] * u[2],
            w[1] * w[1] * (g[2] + p[5] + t[3] + s[23]), w[1] * w[2] * t[4],
            w[1] * v[0], w[1] * v[1], w[1] * v[2],
            w[2] * w[2] * (h[2] + q[5] + t[5] + s[24]),
            w[2] * y[0], w[2] * y[1], w[2] * y[2],
            B[0], B[1], B[2], B[3], B[4], B[5],
        ),
    )  # fmt: skip


def data_of(fabric: Fabric, dtype: np.dtype) -> FabricData:
    """Pack the data of a fabric for kernels."""
    return FabricData(fabric.layout, fabric.table.astype(dtype), fabric.scale.astype(dtype))


def densities(
    fabric: Fabric, strain: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Evaluate ψ in float64.

    Args:
        fabric: Fabric.
        strain: (m, 6) strains.
        threads: Number of threads.

    Returns:
        ψ (m,) [J/m²] with its constant, ∂ψ/∂e (m, 6) and ∂²ψ/∂e∂e (m, 6, 6).
    """
    m, lanes = len(strain), lanes_of(np.float64)
    rows = -(-m // lanes)
    padded = np.zeros((rows * lanes, 6))
    padded[:m] = strain
    padded = np.ascontiguousarray(padded.reshape(rows, lanes, 6).transpose(0, 2, 1))
    out = np.empty((rows, 28, lanes))
    run(evaluate_densities, threads, data_of(fabric, np.dtype(float)), padded, out, counters_for(1))
    values = out.transpose(0, 2, 1).reshape(rows * lanes, 28)[:m]
    upper, second = np.triu_indices(6), np.empty((m, 6, 6))
    second[:, upper[0], upper[1]] = second[:, upper[1], upper[0]] = values[:, 7:]
    return values[:, 0] + fabric.constant, values[:, 1:7], second


@kernel
def evaluate_densities(fabric, strain, out, counters):
    """out[row] = ψ, its 6 first and 21 second derivatives at strain[row]."""
    row = claim_chunk(counters, 0, len(strain))
    while row >= 0:
        e = (
            load(strain, row, 0), load(strain, row, 1), load(strain, row, 2),
            load(strain, row, 3), load(strain, row, 4), load(strain, row, 5),
        )  # fmt: skip
        psi = density(fabric, e)
        store(out, row, 0, psi.value)
        for k in range(6):
            store(out, row, 1 + k, psi.first[k])
        for k in range(21):
            store(out, row, 7 + k, psi.second[k])
        row = claim_chunk(counters, 0, len(strain))
