"""Rigid-body modes of aggregates: centers, radii and Galerkin products.

The six unknowns of an aggregate with center c and radius ρ are a translation t and a rotation w [both m],
which move a vertex at x by u = t + w × (x - c)/ρ. A child aggregate with center c' and radius ρ' moves by t'
= t + w × o and w' = s w, with o = (c' - c)/ρ and s = ρ'/ρ.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from supple.kernels import device_function, do, kernel
from supple.kernels.parallel.parallel_for import parallel_for_rows

PLANARITY_TOLERANCE = 1e-8
"""Rotations about an axis that move vertices by less than √PLANARITY_TOLERANCE of the radius count as
zero."""


class Bodies(NamedTuple):
    """Geometry of all coarse rows.

    Attributes:
        center: (rows, 3) center [m].
        weight: (rows,) number of vertices.
        moment: (rows, 6) Σ d dᵀ over the vertices [m²], d = x - c, as xx yy zz xy xz yz.
        radius: (rows,) radius [m].
        fine_offset: (f, 3) offset o of each vertex in its aggregate.
        offset, scale: (rows, 3) and (rows,) o and s of each coarse row in its parent.
    """

    center: Any
    weight: Any
    moment: Any
    radius: Any
    fine_offset: Any
    offset: Any
    scale: Any


class GatherBody(NamedTuple):
    """Center, moment and radius of a row from its children: vertices, or rows of the previous level."""

    bodies: Any
    child_start: Any
    child: Any
    positions: Any
    fine: Any


@do.of(GatherBody)
def _gather_body(work, row):
    bodies, positions, fine = work.bodies, work.positions, work.fine
    child_start, child = work.child_start, work.child
    center, weight, moment = bodies.center, bodies.weight, bodies.moment
    x = y = z = w = 0.0
    for c in range(child_start[row], child_start[row + 1]):
        i = child[c]
        m = 1.0 if fine else weight[i]
        source = positions if fine else center
        x += m * source[i, 0]
        y += m * source[i, 1]
        z += m * source[i, 2]
        w += m
    x, y, z = x / w, y / w, z / w
    xx = yy = zz = xy = xz = yz = 0.0
    for c in range(child_start[row], child_start[row + 1]):
        i = child[c]
        m = 1.0 if fine else weight[i]
        source = positions if fine else center
        a, b, d = source[i, 0] - x, source[i, 1] - y, source[i, 2] - z
        xx += m * a * a
        yy += m * b * b
        zz += m * d * d
        xy += m * a * b
        xz += m * a * d
        yz += m * b * d
        if not fine:
            xx += moment[i, 0]
            yy += moment[i, 1]
            zz += moment[i, 2]
            xy += moment[i, 3]
            xz += moment[i, 4]
            yz += moment[i, 5]
    center[row, 0], center[row, 1], center[row, 2], weight[row] = x, y, z, w
    moment[row, 0], moment[row, 1], moment[row, 2] = xx, yy, zz
    moment[row, 3], moment[row, 4], moment[row, 5] = xy, xz, yz
    radius = math.sqrt((xx + yy + zz) / w)
    bodies.radius[row] = radius if radius > 1e-150 else 1.0
    inverse = 1.0 / bodies.radius[row]
    for c in range(child_start[row], child_start[row + 1]):
        i = child[c]
        source = positions if fine else center
        target = bodies.fine_offset if fine else bodies.offset
        target[i, 0] = inverse * (source[i, 0] - x)
        target[i, 1] = inverse * (source[i, 1] - y)
        target[i, 2] = inverse * (source[i, 2] - z)
        if not fine:
            bodies.scale[i] = inverse * bodies.radius[i]


@kernel
def locate_bodies(team, start, child_start, child, positions, bodies):
    """Compute the geometry of all aggregates for vertices at positions (f, 3), one phase per level."""
    for level in range(len(start) - 1):
        gather = GatherBody(bodies, child_start, child, positions, level == 0)
        parallel_for_rows(team, level, start[level], start[level + 1], gather)


@device_function
def _fine_column(A, k, o, j, c):
    """Column c of A_k Pⱼ, with A_k 3×3 and P = [I | -[o]×]."""
    if c < 3:
        return A[k, 0, c], A[k, 1, c], A[k, 2, c]
    u, v = (c - 2) % 3, (c - 1) % 3
    x, y = o[j, u], o[j, v]
    return (
        x * A[k, 0, v] - y * A[k, 0, u],
        x * A[k, 1, v] - y * A[k, 1, u],
        x * A[k, 2, v] - y * A[k, 2, u],
    )


@device_function
def _coarse_number(A, k, o, scale, j, r, c):
    """Entry (r, c) of A_k Tⱼ, with A_k 6×6 and T = [[I, -[o]×], [0, s I]]."""
    if c < 3:
        return A[k, 6 * r + c]
    u, v = (c - 2) % 3, (c - 1) % 3
    return o[j, u] * A[k, 6 * r + v] - o[j, v] * A[k, 6 * r + u] + scale[j] * A[k, 6 * r + c]


class Products(NamedTuple):
    """Arrays of a fine pattern and of `Levels` that define the Galerkin products; see there."""

    fine_indices: Any
    start: Any
    indptr: Any
    indices: Any
    mirror: Any
    source_start: Any
    source: Any
    source_row: Any


class MultiplyColumn(NamedTuple):
    """Work: one of the six columns of a coarse block Pᵀ A P in the upper triangle.

    `fine` multiplies by the 3×3 blocks of A.
    """

    fine: Any
    products: Any
    bodies: Any
    A: Any
    out: Any


@do.of(MultiplyColumn)
def _multiply_column(work, column):
    p, out, o, scale = work.products, work.out, work.bodies.offset, work.bodies.scale
    slot, c = column // 6, column % 6
    if p.mirror[slot] >= 0:
        return
    r0 = r1 = r2 = r3 = r4 = r5 = 0.0
    for at in range(p.source_start[slot], p.source_start[slot + 1]):
        k, i = p.source[at], p.source_row[at]
        if work.fine:
            o = work.bodies.fine_offset
            x, y, z = _fine_column(work.A, k, o, p.fine_indices[k], c)
        else:
            j, s = p.indices[k], scale[i]
            x = _coarse_number(out, k, o, scale, j, 0, c)
            y = _coarse_number(out, k, o, scale, j, 1, c)
            z = _coarse_number(out, k, o, scale, j, 2, c)
            r3 += s * _coarse_number(out, k, o, scale, j, 3, c)
            r4 += s * _coarse_number(out, k, o, scale, j, 4, c)
            r5 += s * _coarse_number(out, k, o, scale, j, 5, c)
        r0 += x
        r1 += y
        r2 += z
        r3 += o[i, 1] * z - o[i, 2] * y
        r4 += o[i, 2] * x - o[i, 0] * z
        r5 += o[i, 0] * y - o[i, 1] * x
    out[slot, c], out[slot, 6 + c], out[slot, 12 + c] = r0, r1, r2
    out[slot, 18 + c], out[slot, 24 + c], out[slot, 30 + c] = r3, r4, r5


class MirrorNumber(NamedTuple):
    """One of 36 entries of a block left of the diagonal, copied from the transposed block."""

    mirror: Any
    out: Any


@do.of(MirrorNumber)
def _mirror_number(work, number):
    k, e = number // 36, number % 36
    q = work.mirror[k]
    if q >= 0:
        work.out[k, e] = work.out[q, 6 * (e % 6) + e // 6]


@kernel
def multiply_levels(team, p, bodies, A, out):
    """Compute all coarse matrices Pᵀ A P into `out` (blocks, 36), two phases per level."""
    for level in range(len(p.start) - 1):
        first, last = p.indptr[p.start[level]], p.indptr[p.start[level + 1]]
        work = MultiplyColumn(level == 0, p, bodies, A, out)
        parallel_for_rows(team, 2 * level, 6 * first, 6 * last, work)
        parallel_for_rows(team, 2 * level + 1, 36 * first, 36 * last, MirrorNumber(p.mirror, out))
