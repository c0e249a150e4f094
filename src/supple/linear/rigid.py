"""Aggregates as rigid bodies: where they are now, and the matrices of their motions (Galerkin products).

The six unknowns of an aggregate with centre c and radius ρ are a translation t and a turn w [both m], which
move a vertex by u = t + w × (x - c)/ρ; so do they an aggregate in it, of centre c' and radius ρ', by
t' = t + w × o and w' = s w, o = (c' - c)/ρ, s = ρ'/ρ.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from supple.kernels import do, kernel, physics
from supple.linear.tiles import each_row

FLAT = 1e-8
"""Turns about an axis that moves vertices by less than √FLAT of the radius count as none."""


class Bodies(NamedTuple):
    """Of all coarse rows: centre (rows, 3) [m]; weight (rows,), how many vertices; moment (rows, 6) = Σ d dᵀ
    over the vertices, d = x - c, as xx yy zz xy xz yz; radius (rows,); and the o (f, 3) of every vertex, the
    o (rows, 3) and s (rows,) of every coarse row in its parent."""

    centre: Any
    weight: Any
    moment: Any
    radius: Any
    fine_offset: Any
    offset: Any
    scale: Any


class GatherBody(NamedTuple):
    """Centre, moment and radius of a row from its children: vertices, or rows before it."""

    bodies: Any
    child_start: Any
    child: Any
    positions: Any
    fine: Any


@do.of(GatherBody)
def _gather_body(work, row):
    bodies, positions, fine = work.bodies, work.positions, work.fine
    child_start, child = work.child_start, work.child
    centre, weight, moment = bodies.centre, bodies.weight, bodies.moment
    x = y = z = w = 0.0
    for c in range(child_start[row], child_start[row + 1]):
        i = child[c]
        m = 1.0 if fine else weight[i]
        source = positions if fine else centre
        x += m * source[i, 0]
        y += m * source[i, 1]
        z += m * source[i, 2]
        w += m
    x, y, z = x / w, y / w, z / w
    xx = yy = zz = xy = xz = yz = 0.0
    for c in range(child_start[row], child_start[row + 1]):
        i = child[c]
        m = 1.0 if fine else weight[i]
        source = positions if fine else centre
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
    centre[row, 0], centre[row, 1], centre[row, 2], weight[row] = x, y, z, w
    moment[row, 0], moment[row, 1], moment[row, 2] = xx, yy, zz
    moment[row, 3], moment[row, 4], moment[row, 5] = xy, xz, yz
    radius = math.sqrt((xx + yy + zz) / w)
    bodies.radius[row] = radius if radius > 1e-150 else 1.0
    inverse = 1.0 / bodies.radius[row]
    for c in range(child_start[row], child_start[row + 1]):
        i = child[c]
        source = positions if fine else centre
        target = bodies.fine_offset if fine else bodies.offset
        target[i, 0] = inverse * (source[i, 0] - x)
        target[i, 1] = inverse * (source[i, 1] - y)
        target[i, 2] = inverse * (source[i, 2] - z)
        if not fine:
            bodies.scale[i] = inverse * bodies.radius[i]


@kernel
def place_bodies(team, start, child_start, child, positions, bodies):
    """Where all aggregates are for vertices at positions (f, 3): one phase for each level."""
    for level in range(len(start) - 1):
        gather = GatherBody(bodies, child_start, child, positions, level == 0)
        each_row(team, level, start[level], start[level + 1], gather)


@physics
def _add_turned(out, s, a, b, c, ox, oy, oz, column):
    """Column (a, b, c) of T = A Q, then [I; o×] T into that column of block s."""
    out[s, column] += a
    out[s, 6 + column] += b
    out[s, 12 + column] += c
    out[s, 18 + column] += oy * c - oz * b
    out[s, 24 + column] += oz * a - ox * c
    out[s, 30 + column] += ox * b - oy * a


@physics
def _add_product(A, k, o, i, j, out, s):
    """Block s of out += Pᵢᵀ A_k Pⱼ, A_k 3×3, P = [I | -[o]×]."""
    ox, oy, oz = o[i, 0], o[i, 1], o[i, 2]
    px, py, pz = o[j, 0], o[j, 1], o[j, 2]
    a0, a1, a2 = A[k, 0, 0], A[k, 0, 1], A[k, 0, 2]
    b0, b1, b2 = A[k, 1, 0], A[k, 1, 1], A[k, 1, 2]
    c0, c1, c2 = A[k, 2, 0], A[k, 2, 1], A[k, 2, 2]
    _add_turned(out, s, a0, b0, c0, ox, oy, oz, 0)
    _add_turned(out, s, a1, b1, c1, ox, oy, oz, 1)
    _add_turned(out, s, a2, b2, c2, ox, oy, oz, 2)
    x, y, z = py * a2 - pz * a1, py * b2 - pz * b1, py * c2 - pz * c1
    _add_turned(out, s, x, y, z, ox, oy, oz, 3)
    x, y, z = pz * a0 - px * a2, pz * b0 - px * b2, pz * c0 - px * c2
    _add_turned(out, s, x, y, z, ox, oy, oz, 4)
    x, y, z = px * a1 - py * a0, px * b1 - py * b0, px * c1 - py * c0
    _add_turned(out, s, x, y, z, ox, oy, oz, 5)


@physics
def _add_framed(out, s, a, b, c, d, e, f, ox, oy, oz, scale, column):
    """Column (a, …, f) of A Tⱼ, then Tᵢᵀ times it into that column of block s."""
    out[s, column] += a
    out[s, 6 + column] += b
    out[s, 12 + column] += c
    out[s, 18 + column] += oy * c - oz * b + scale * d
    out[s, 24 + column] += oz * a - ox * c + scale * e
    out[s, 30 + column] += ox * b - oy * a + scale * f


@physics
def _add_coarse_product(k, o, scale, i, j, out, s):
    """Block s of out += Tᵢᵀ A_k Tⱼ, A_k 6×6, T = [[I, -[o]×], [0, s I]]."""
    ox, oy, oz, p = o[i, 0], o[i, 1], o[i, 2], scale[i]
    x, y, z, q = o[j, 0], o[j, 1], o[j, 2], scale[j]
    for c in range(3):
        _add_framed(
            out, s, out[k, c], out[k, 6 + c], out[k, 12 + c], out[k, 18 + c], out[k, 24 + c], out[k, 30 + c],
            ox, oy, oz, p, c,
        )  # fmt: skip
    for c in range(3):
        # column c of -[o]× has oⱼ cross products of the first three columns
        u, v = (c + 1) % 3, (c + 2) % 3
        yu = y if c == 0 else (z if c == 1 else x)
        zv = z if c == 0 else (x if c == 1 else y)
        _add_framed(
            out, s,
            yu * out[k, v] - zv * out[k, u] + q * out[k, 3 + c],
            yu * out[k, 6 + v] - zv * out[k, 6 + u] + q * out[k, 9 + c],
            yu * out[k, 12 + v] - zv * out[k, 12 + u] + q * out[k, 15 + c],
            yu * out[k, 18 + v] - zv * out[k, 18 + u] + q * out[k, 21 + c],
            yu * out[k, 24 + v] - zv * out[k, 24 + u] + q * out[k, 27 + c],
            yu * out[k, 30 + v] - zv * out[k, 30 + u] + q * out[k, 33 + c],
            ox, oy, oz, p, 3 + c,
        )  # fmt: skip


class Products(NamedTuple):
    """What Galerkin products need of a fine matrix and of `Levels`; see there."""

    fine_indptr: Any
    fine_indices: Any
    fine_parent: Any
    fine_slots: Any
    start: Any
    child_start: Any
    child: Any
    parent: Any
    indptr: Any
    indices: Any
    mirror: Any
    slots: Any


class MultiplyRow(NamedTuple):
    """Blocks of a row on and right of the diagonal; fine: whether those of A, which have 3×3 numbers, are
    multiplied."""

    fine: Any
    products: Any
    bodies: Any
    A: Any
    out: Any


@do.of(MultiplyRow)
def _multiply_row(work, row):
    fine, p, bodies, A, out = work.fine, work.products, work.bodies, work.A, work.out
    for k in range(p.indptr[row], p.indptr[row + 1]):
        for c in range(36):
            out[k, c] = 0.0
    for c in range(p.child_start[row], p.child_start[row + 1]):
        i = p.child[c]
        if fine:
            for k in range(p.fine_indptr[i], p.fine_indptr[i + 1]):
                j = p.fine_indices[k]
                if p.fine_parent[j] + p.start[0] >= row:
                    _add_product(A, k, bodies.fine_offset, i, j, out, p.fine_slots[k])
        else:
            for k in range(p.indptr[i], p.indptr[i + 1]):
                j = p.indices[k]
                if p.parent[j] >= row:
                    _add_coarse_product(k, bodies.offset, bodies.scale, i, j, out, p.slots[k])


class MirrorRow(NamedTuple):
    """What is left of the diagonal."""

    products: Any
    out: Any


@do.of(MirrorRow)
def _mirror_row(work, row):
    p, out = work.products, work.out
    for k in range(p.indptr[row], p.indptr[row + 1]):
        if p.indices[k] < row:
            q = p.mirror[k]
            for a in range(6):
                for b in range(6):
                    out[k, 6 * a + b] = out[q, 6 * b + a]


@kernel
def multiply_levels(team, p, bodies, A, out):
    """All coarse matrices Pᵀ A P into out (blocks, 36), two phases for each level."""
    for level in range(len(p.start) - 1):
        first, last = p.start[level], p.start[level + 1]
        each_row(team, 2 * level, first, last, MultiplyRow(level == 0, p, bodies, A, out))
        each_row(team, 2 * level + 1, first, last, MirrorRow(p, out))
