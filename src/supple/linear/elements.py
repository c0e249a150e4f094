"""What elements of a material add to the Hessian: blocks Kᵃᵇᵢₖ = V Σ Cᵢⱼₖₗ gᵃⱼ gᵇₗ of their corners a and b.

C = ∂²ψ/∂F∂F of an isotropic material is known by twelve numbers in the frame of its principal stretches (see
`materials.principal`), where its positive semi-definite part costs little more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import matmul, matvec, scaled, transpose
from supple.kernels import add_blocks, do, gather, generic, kernel, number, physics, row_at, unrolled
from supple.materials import hessian_bound
from supple.materials.principal import positive, positive_symmetric, principal_frame, principal_hessian
from supple.ordering.colours import colour_bounds, each_colour
from supple.ordering.elements import batch_coloured_elements
from supple.terms import Term, Visits
from supple.terms.elastic import corners, material_at, measure, rest_volume, shape_gradients

if TYPE_CHECKING:
    from supple.problem.device import Device


class Tangent(NamedTuple):
    """The second derivatives, or where `filtered` is not 0 their positive semi-definite part."""

    filtered: Any


class Bound(NamedTuple):
    """The positive definite approximation that sweeps use [PBNG eq. 32]; unused: tuples need a field."""

    unused: Any


class Principal(NamedTuple):
    """V C of elements in the frame (U, W) of their stretches: stretch, A as xx yy zz xy xz yz; same and cross
    of the pairs xy, xz, yz: δP̂ᵢⱼ = same δF̂ᵢⱼ + cross δF̂ⱼᵢ."""

    U: Any
    W: Any
    stretch: Any
    same: Any
    cross: Any


class Bounded(NamedTuple):
    material: Any
    F: Any
    V: Any


@generic
def stiffness(kind, material, F, V):
    """What `block` needs of elements of volume V."""


@generic
def block(stiffness, g, h):
    """Kᵃᵇ, a 9-tuple, for corners with shape gradients g and h [1/m]."""


@stiffness.of(Tangent)
def _principal(kind, material, F, V):
    U, s, W = principal_frame(material, F)
    A, flip, twist = principal_hessian(material, s)
    if kind.filtered:
        A, flip, twist = positive_symmetric(A), positive(flip), positive(twist)
    h = 0.5 * V
    same = (h * (flip[0] + twist[0]), h * (flip[1] + twist[1]), h * (flip[2] + twist[2]))
    cross = (h * (flip[0] - twist[0]), h * (flip[1] - twist[1]), h * (flip[2] - twist[2]))
    stretch = (V * A[0], V * A[1], V * A[2], V * A[3], V * A[4], V * A[5])
    return Principal(U, W, stretch, same, cross)


@block.of(Principal)
def _principal_block(stiffness, g, h):
    """U K̂ Uᵀ, K̂ᵢᵢ = Aᵢᵢ aᵢ bᵢ + Σ sameᵢⱼ aⱼ bⱼ and K̂ᵢₖ = Aᵢₖ aᵢ bₖ + crossᵢₖ aₖ bᵢ, a = Wᵀ g, b = Wᵀ h."""
    U, W, A, same, cross = stiffness.U, stiffness.W, stiffness.stretch, stiffness.same, stiffness.cross
    turned = transpose(W)
    a, b = matvec(turned, g), matvec(turned, h)
    xx, yy, zz = a[0] * b[0], a[1] * b[1], a[2] * b[2]
    xy, xz, yz = a[0] * b[1], a[0] * b[2], a[1] * b[2]
    yx, zx, zy = a[1] * b[0], a[2] * b[0], a[2] * b[1]
    K = (
        A[0] * xx + same[0] * yy + same[1] * zz,
        A[3] * xy + cross[0] * yx,
        A[4] * xz + cross[1] * zx,
        A[3] * yx + cross[0] * xy,
        same[0] * xx + A[1] * yy + same[2] * zz,
        A[5] * yz + cross[2] * zy,
        A[4] * zx + cross[1] * xz,
        A[5] * zy + cross[2] * yz,
        same[1] * xx + same[2] * yy + A[2] * zz,
    )
    return matmul(matmul(U, K), transpose(U))


@stiffness.of(Bound)
def _bounded(kind, material, F, V):
    return Bounded(material, F, V)


@block.of(Bounded)
def _bounded_block(stiffness, g, h):
    return scaled(stiffness.V, hessian_bound(stiffness.material, stiffness.F, g, h))


@physics
def _add_own(data, slots, row, stiff, g, pair):
    add_blocks(data, slots, row, pair, block(stiff, g, g))
    return 0


@physics
def _add_pair(data, slots, row, stiff, g, h, pair, reverse):
    """Kᵃᵇ and Kᵇᵃ, its transpose."""
    K = block(stiff, g, h)
    add_blocks(data, slots, row, pair, K)
    add_blocks(data, slots, row, reverse, transpose(K))
    return 0


def _pairs(n: int) -> str:
    own = [f"_add_own(data, slots, row, stiff, g[{a}], {a * n + a})" for a in range(n)]
    others = [
        f"_add_pair(data, slots, row, stiff, g[{a}], g[{b}], {a * n + b}, {b * n + a})"
        for a in range(n)
        for b in range(a + 1, n)
    ]
    return " + ".join(own + others)


_add_pairs = unrolled("data, slots, row, stiff, g", _pairs, _add_own, _add_pair, over="g")


class AddElements(NamedTuple):
    """The blocks of the elements in a batch, rows start[batch] to start[batch + 1]."""

    kind: Any
    start: Any
    own: Any
    rows: Any
    slots: Any
    u: Any
    data: Any


@do.of(AddElements)
def _add_batch(work, batch):
    rows, u = work.rows, work.u
    for k in range(work.start[number(batch)], work.start[number(batch) + 1]):
        row = row_at(batch, k)
        g = shape_gradients(rows, row)
        F = measure(rows, corners(rows, row, u, gather(u, work.own, row, 0)), g)
        stiff = stiffness(work.kind, material_at(rows, row), F, rest_volume(rows, row))
        _add_pairs(work.data, work.slots, row, stiff, g)


@kernel
def add_elements(team, kind, colour_start, start, own, rows, slots, u, data):
    """Add the blocks of all elements to data (blocks, 3, 3). Batches of one colour share no vertex, so that
    no two threads meet; slots (rows, corners², lanes): where the blocks of each element go."""
    work = AddElements(kind, start, own, rows, slots, u, data)
    each_colour(team, 0, colour_start, colour_bounds(colour_start, 0), work)


BATCH = 8
"""Rows of elements that a thread of the CPU does one after the other."""


@dataclass(frozen=True)
class ElementRows:
    """A term's elements as `add_elements` takes them: see there; element (rows, lanes): which is where."""

    colour_start: np.ndarray
    start: np.ndarray
    own: np.ndarray
    rows: Any
    slots: np.ndarray
    element: np.ndarray

    @property
    def colours(self) -> int:
        return len(self.colour_start) - 1


def arrange_elements(
    term: Term, slots: np.ndarray, number_of: np.ndarray, trash: int, dtype: np.dtype, device: Device
) -> ElementRows:
    """number_of (n,): rows of the matrix, -1 for pinned vertices; slots (m, k, k): places of blocks, negative
    ones are replaced by `trash`.

    On the CPU, where a thread adds one lane after the other, elements near to each other in the matrix make a
    batch, and batches are coloured; a thread of a device does one lane, so there elements are."""
    (m, k), lanes = term.vertices.shape, device.lanes
    if device.name == "cpu":
        element, colour_start, start = _near_each_other(term.vertices, number_of, lanes)
        row, lane = np.nonzero(element >= 0)
        chosen = element[row, lane]
        own = np.full(element.shape, len(number_of), np.int32)
        own[row, lane] = term.vertices[chosen, 0]
        visits = Visits(chosen, np.zeros(len(chosen), np.int64), row, lane, own, dtype)
        rows, own = term.rows(visits, start), own[:, None, :].copy()
    else:
        batches = batch_coloured_elements(term, len(number_of), dtype, lanes=lanes)
        element, colour_start, start = batches.element, batches.colour_start, batches.start
        rows, own = batches.rows, batches.own
    places = np.where(slots < 0, trash, slots).reshape(m, k * k).astype(np.int32)
    laid = np.where((element >= 0)[:, :, None], places[element], trash)
    laid = np.ascontiguousarray(laid.transpose(0, 2, 1), np.int32)
    return ElementRows(colour_start, start, own, rows, laid, element)


def _near_each_other(
    stencils: np.ndarray, number_of: np.ndarray, lanes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(element (rows, lanes), colour_start, start)."""
    numbers = number_of[stencils]
    free = numbers >= 0
    first = np.where(free, numbers, len(number_of)).min(axis=1)
    order = np.argsort(first, kind="stable")[: int(free.any(axis=1).sum())]
    count = -(-len(order) // (BATCH * lanes))
    places = np.full(count * BATCH * lanes, -1, np.int64)
    places[: len(order)] = order
    element = places.reshape(count, BATCH * lanes)
    colour = np.zeros(count, np.int64)
    _colour_batches(element, numbers, np.zeros(len(number_of), np.uint64), colour)
    by_colour = np.argsort(colour, kind="stable")
    colour_start = np.concatenate([[0], np.cumsum(np.bincount(colour))]).astype(np.int64)
    start = BATCH * np.arange(count + 1, dtype=np.int64)
    return element[by_colour].reshape(-1, lanes), colour_start, start


@kernel
def _colour_batches(element, numbers, taken, colour):
    """The least colour of each batch that no batch sharing a free vertex with it has, of the first 64; what
    finds none free gets one of its own."""
    further = 64
    for b in range(len(element)):
        used = np.uint64(0)
        for e in element[b]:
            if e >= 0:
                for v in numbers[e]:
                    if v >= 0:
                        used |= taken[v]
        c = 0
        while c < 64 and (used >> np.uint64(c)) & np.uint64(1):
            c += 1
        colour[b] = c if c < 64 else further
        if c == 64:
            further += 1
            continue
        for e in element[b]:
            if e >= 0:
                for v in numbers[e]:
                    if v >= 0:
                        taken[v] |= np.uint64(1) << np.uint64(c)
