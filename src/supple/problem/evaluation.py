"""Kernels that evaluate the potential of a problem: net forces and their bounds, energies, inversions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from supple.algebra.holding import free_bound, free_part
from supple.algebra.matrix3 import dot, sub
from supple.contact import support
from supple.kernels import (
    divide,
    do,
    each_item,
    gather,
    generic,
    kernel,
    leads,
    load,
    physics,
    scatter,
    store,
    sum_shares,
)
from supple.problem.held import held_at
from supple.problem.sums import add_up, measure
from supple.terms import add_forces, deform_all, energy, inversion


class VertexRows(NamedTuple):
    """What kernels know of the free vertices by batch: own (batches, 1, lanes) ids; width (batches,) how many
    of the lanes are different vertices; force (batches, 3, lanes) external forces f [N]; inertia (batches, 1,
    lanes) k [N/m]; held: `HeldRows` where some are held along some directions, else (); contact: the
    `Planes` that vertices may touch, () where there are no obstacles; balls: the `Balls` that they must not
    leave, () where there are none."""

    own: Any
    width: Any
    force: Any
    inertia: Any
    held: Any = ()
    contact: Any = ()
    balls: Any = ()


@physics
def sum_forces(batch, f, A):
    """(f, A) summed up over the threads that share a batch."""
    v = sum_shares(batch, (f[0], f[1], f[2], A[0], A[1], A[2], A[3], A[4], A[5]))
    return (v[0], v[1], v[2]), (v[3], v[4], v[5], v[6], v[7], v[8])


@physics
def net_force(terms, vertices, batch, u, anchor, ui):
    """(r, A, s, q) for the vertices of a batch: net force r = -∂E/∂uᵢ, Hessian bound A, and this thread's
    share of the sum s of the magnitudes of the terms' forces, all of them across what is held, and of what
    confines them, q; anchor holds û."""
    N = held_at(vertices.held, batch)
    k = load(vertices.inertia, batch, 0)
    f = (load(vertices.force, batch, 0), load(vertices.force, batch, 1), load(vertices.force, batch, 2))
    d = sub(gather(anchor, vertices.own, batch, 0), ui)
    zero = 0.0 * ui[0]
    empty = (zero, zero, zero), (zero, zero, zero, zero, zero, zero), zero, zero
    r, A, s, q = add_forces(terms, batch, u, ui, N, empty)
    r, A = sum_forces(batch, r, A)
    r = (r[0] + f[0] + k * d[0], r[1] + f[1] + k * d[1], r[2] + f[2] + k * d[2])
    return free_part(N, r), free_bound(N, (A[0] + k, A[1] + k, A[2] + k, A[3], A[4], A[5])), s, q


@physics
def load_magnitude(vertices, batch, anchor, ui):
    """Magnitude of the external force and of inertia on the vertices of a batch, across what is held."""
    N = held_at(vertices.held, batch)
    f = (load(vertices.force, batch, 0), load(vertices.force, batch, 1), load(vertices.force, batch, 2))
    f, d = free_part(N, f), free_part(N, sub(gather(anchor, vertices.own, batch, 0), ui))
    return math.sqrt(dot(f, f)) + load(vertices.inertia, batch, 0) * math.sqrt(dot(d, d))


class Forces(NamedTuple):
    """Net forces of the vertices of a batch into the records `net`, s and tr A into the records `sizes`."""

    terms: Any
    vertices: Any
    u: Any
    anchor: Any
    net: Any
    sizes: Any


@do.of(Forces)
def _forces(work, place):
    vertices, u, anchor = work.vertices, work.u, work.anchor
    batch = divide(place, vertices.width)
    ui = gather(u, vertices.own, batch, 0)
    r, A, s, _ = net_force(work.terms, vertices, batch, u, anchor, ui)
    (s,) = sum_shares(batch, (s,))
    if leads(batch):
        s = s + load_magnitude(vertices, batch, anchor, ui)
        N = held_at(vertices.held, batch)
        r, s = support(vertices.contact, vertices.own, batch, N, A, ui, r, s)
        scatter(work.net, vertices.own, batch, 0, r)
        scatter(work.sizes, vertices.own, batch, 0, (s, A[0] + A[1] + A[2], 0.0 * s))


@kernel
def deform_elements(team, works):
    """Write deformations where visits look them up; see `Layout.deforms`."""
    deform_all(works, team, 0)


@kernel
def evaluate_balance(team, terms, vertices, u, anchor, net, sizes, softness, cuts, parts, figures):
    """Net forces into the records `net`, per vertex s and tr A into the records `sizes`, and what there is to
    say of them into figures; see `measure`."""
    each_item(team, 0, 0, len(vertices.own), Forces(terms, vertices, u, anchor, net, sizes))
    measure(team, 1, net, u, sizes, softness, cuts, parts, figures)


class Potentials(NamedTuple):
    """- f · u + ½ k |u - û|² and |f · u| of the vertices of a batch into values."""

    vertices: Any
    u: Any
    anchor: Any
    values: Any


@do.of(Potentials)
def _potentials(work, place):
    vertices = work.vertices
    batch = divide(place, vertices.width)
    ui = gather(work.u, vertices.own, batch, 0)
    f = (load(vertices.force, batch, 0), load(vertices.force, batch, 1), load(vertices.force, batch, 2))
    d, effort = sub(gather(work.anchor, vertices.own, batch, 0), ui), dot(f, ui)
    if leads(batch):
        store(work.values, batch, 0, 0.5 * load(vertices.inertia, batch, 0) * dot(d, d) - effort)
        store(work.values, batch, 1, abs(effort))


@kernel
def evaluate_potential(team, vertices, u, anchor, values, parts, sums):
    """Per vertex - f · u + ½ k |u - û|², and |f · u|, into values (copies, batches, 2, lanes), and their
    sums."""
    each_item(team, 0, 0, len(vertices.own), Potentials(vertices, u, anchor, values))
    add_up(team, 1, values, parts, sums)


class Energy(NamedTuple):
    """Of the elements of a term [J]."""

    term: Any


class Inversion(NamedTuple):
    """1 for every inverted element of a term, 0 for others."""

    term: Any


@generic
def quantity_at(quantity, row, u, ui):
    """A quantity of the elements in one row."""


@quantity_at.of(Energy)
def _energy_at(quantity, row, u, ui):
    return energy(quantity.term, row, u, ui)


@quantity_at.of(Inversion)
def _inversion_at(quantity, row, u, ui):
    return inversion(quantity.term, row, u, ui)


class Quantities(NamedTuple):
    """A quantity of the elements in a row into values."""

    quantity: Any
    own: Any
    u: Any
    values: Any


@do.of(Quantities)
def _quantities(work, row):
    store(work.values, row, 0, quantity_at(work.quantity, row, work.u, gather(work.u, work.own, row, 0)))


@kernel
def evaluate_elements(team, quantity, own, u, values, parts, sums):
    """A quantity of elements into values (copies, rows, 1, lanes), and their sums."""
    each_item(team, 0, 0, len(own), Quantities(quantity, own, u, values))
    add_up(team, 1, values, parts, sums)
