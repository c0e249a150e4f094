"""Kernels that evaluate the potential of a problem: net forces, Hessian bounds, energies, inversions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from supple.algebra.dirichlet_projection import free_bound, free_part
from supple.algebra.matrix3 import dot, sub
from supple.collision import add_reactions
from supple.kernels import (
    device_function,
    do,
    gather,
    generic,
    is_leader,
    kernel,
    load,
    parallel_for,
    scatter,
    shared_lane_sum,
    split_lanes,
    store,
)
from supple.problem.dirichlet_rows import constrained_at
from supple.problem.reductions import add_up, reduce_statistics
from supple.terms import add_forces, deform_all, energy, inversion


class VertexRows(NamedTuple):
    """Data of the free vertices, packed by batches.

    Attributes:
        own: (batches, 1, lanes) vertex ids.
        width: (batches,) number of lanes with different vertices.
        force: (batch size or 1, batches, 3, lanes) external forces f [N].
        inertia: (batches, 1, lanes) inertia k [N/m].
        constrained: `ConstrainedRows` for directional Dirichlet conditions, otherwise ().
        contact: Obstacle contact `Planes`, () without obstacles.
        step_bounds: Step bounds `StepBounds`, () without bounds.
    """

    own: Any
    width: Any
    force: Any
    inertia: Any
    constrained: Any = ()
    contact: Any = ()
    step_bounds: Any = ()


@device_function
def sum_forces(batch, f, A):
    """Sum (f, A) over the threads that share a batch."""
    v = shared_lane_sum(batch, (f[0], f[1], f[2], A[0], A[1], A[2], A[3], A[4], A[5]))
    return (v[0], v[1], v[2]), (v[3], v[4], v[5], v[6], v[7], v[8])


@device_function
def net_force(terms, vertices, batch, u, anchor, ui):
    """Net force and Hessian bound of the vertices of a batch.

    Args:
        terms: Packed data of the terms.
        vertices: Packed data of the vertices.
        batch: Vertex batch.
        u: Displacements.
        anchor: Inertial target û.
        ui: Displacements of the vertices of the batch.

    Returns:
        (r, A, s, q): net force r = -∂E/∂uᵢ, Hessian bound A, and this thread's share of the sum s of the
        magnitudes of the term forces, all orthogonal to constrained directions; and of the sum q of
        confinements.
    """
    N = constrained_at(vertices.constrained, batch)
    k = load(vertices.inertia, batch, 0)
    f = (load(vertices.force, batch, 0), load(vertices.force, batch, 1), load(vertices.force, batch, 2))
    d = sub(gather(anchor, vertices.own, batch, 0), ui)
    zero = 0.0 * ui[0]
    empty = (zero, zero, zero), (zero, zero, zero, zero, zero, zero), zero, zero
    r, A, s, q = add_forces(terms, batch, u, ui, N, empty)
    r, A = sum_forces(batch, r, A)
    r = (r[0] + f[0] + k * d[0], r[1] + f[1] + k * d[1], r[2] + f[2] + k * d[2])
    return free_part(N, r), free_bound(N, (A[0] + k, A[1] + k, A[2] + k, A[3], A[4], A[5])), s, q


@device_function
def load_magnitude(vertices, batch, anchor, ui):
    """Magnitude of external force and inertia on the vertices of a batch, in free directions."""
    N = constrained_at(vertices.constrained, batch)
    f = (load(vertices.force, batch, 0), load(vertices.force, batch, 1), load(vertices.force, batch, 2))
    f, d = free_part(N, f), free_part(N, sub(gather(anchor, vertices.own, batch, 0), ui))
    return math.sqrt(dot(f, f)) + load(vertices.inertia, batch, 0) * math.sqrt(dot(d, d))


class Forces(NamedTuple):
    """Write net forces of a batch to the vectors `net`, and s and tr A to the vectors `sizes`."""

    terms: Any
    vertices: Any
    u: Any
    anchor: Any
    net: Any
    sizes: Any


@do.of(Forces)
def _forces(work, item):
    vertices, u, anchor = work.vertices, work.u, work.anchor
    batch = split_lanes(item, vertices.width)
    ui = gather(u, vertices.own, batch, 0)
    r, A, s, _ = net_force(work.terms, vertices, batch, u, anchor, ui)
    (s,) = shared_lane_sum(batch, (s,))
    if is_leader(batch):
        s = s + load_magnitude(vertices, batch, anchor, ui)
        N = constrained_at(vertices.constrained, batch)
        r, s = add_reactions(vertices.contact, vertices.own, batch, N, A, ui, r, s)
        scatter(work.net, vertices.own, batch, 0, r)
        scatter(work.sizes, vertices.own, batch, 0, (s, A[0] + A[1] + A[2], 0.0 * s))


@kernel
def deform_elements(team, works):
    """Tabulate deformation gradients of embedded elements; see `Layout.deforms`."""
    deform_all(works, team, 0)


@kernel
def evaluate_balance(team, terms, vertices, u, anchor, net, sizes, softness, cuts, parts, statistics):
    """Write net forces to `net`, s and tr A to `sizes`, and `statistics`, see `reduce_statistics`."""
    parallel_for(team, 0, 0, len(vertices.own), Forces(terms, vertices, u, anchor, net, sizes))
    reduce_statistics(team, 1, net, u, sizes, softness, cuts, parts, statistics)


class Potentials(NamedTuple):
    """Write - f · u + ½ k |u - û|² and |f · u| of the vertices of a batch to `values`."""

    vertices: Any
    u: Any
    anchor: Any
    values: Any


@do.of(Potentials)
def _potentials(work, item):
    vertices = work.vertices
    batch = split_lanes(item, vertices.width)
    ui = gather(work.u, vertices.own, batch, 0)
    f = (load(vertices.force, batch, 0), load(vertices.force, batch, 1), load(vertices.force, batch, 2))
    d, effort = sub(gather(work.anchor, vertices.own, batch, 0), ui), dot(f, ui)
    if is_leader(batch):
        store(work.values, batch, 0, 0.5 * load(vertices.inertia, batch, 0) * dot(d, d) - effort)
        store(work.values, batch, 1, abs(effort))


@kernel
def evaluate_potential(team, vertices, u, anchor, values, parts, sums):
    """Write - f · u + ½ k |u - û|² and |f · u| per vertex to `values`, and their sums to `sums`.

    The values have shape (batch, vertex batches, 2, lanes).
    """
    parallel_for(team, 0, 0, len(vertices.own), Potentials(vertices, u, anchor, values))
    add_up(team, 1, values, parts, sums)


class Energy(NamedTuple):
    """Energy of the elements of a term [J]."""

    term: Any


class Inversion(NamedTuple):
    """Inversion indicator: 1 for inverted elements, otherwise 0."""

    term: Any


@generic
def quantity_at(quantity, row, u, ui):
    """Quantity of the elements in one packed row."""


@quantity_at.of(Energy)
def _energy_at(quantity, row, u, ui):
    return energy(quantity.term, row, u, ui)


@quantity_at.of(Inversion)
def _inversion_at(quantity, row, u, ui):
    return inversion(quantity.term, row, u, ui)


class Quantities(NamedTuple):
    """Store one quantity for all elements in a row."""

    quantity: Any
    own: Any
    u: Any
    values: Any


@do.of(Quantities)
def _quantities(work, row):
    store(work.values, row, 0, quantity_at(work.quantity, row, work.u, gather(work.u, work.own, row, 0)))


@kernel
def evaluate_elements(team, quantity, own, u, values, parts, sums):
    """Store a quantity of all elements in `values` (batch, rows, 1, lanes), and its sums."""
    parallel_for(team, 0, 0, len(own), Quantities(quantity, own, u, values))
    add_up(team, 1, values, parts, sums)
