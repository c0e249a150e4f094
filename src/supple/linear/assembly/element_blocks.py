"""Hessian blocks of solid elements: Kᵃᵇᵢₖ = V Σ Cᵢⱼₖₗ gᵃⱼ gᵇₗ of their corners a and b.

For an isotropic material, twelve numbers represent C = ∂²ψ/∂F∂F in the principal frame (see
`materials.principal`). Its positive semi-definite projection costs little more there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.algebra.matrix3 import matmul, matvec, scale_matrix, transpose
from supple.kernels import (
    add_blocks,
    device_function,
    do,
    gather,
    generic,
    item_number,
    kernel,
    row_address,
    unroll,
)
from supple.materials import hessian_bound
from supple.materials.principal import (
    positive,
    positive_symmetric,
    principal_frame,
    principal_hessian,
)
from supple.ordering.coloring import color_bounds, each_color
from supple.ordering.element_batches import batch_colored_elements
from supple.terms import Incidence, Term
from supple.terms.base.elastic import corners, material_at, measure, rest_volume, shape_gradients

if TYPE_CHECKING:
    from supple.problem.device import Device


class Tangent(NamedTuple):
    """Second derivatives, or their positive semi-definite projection if `filtered` is not 0."""

    filtered: Any


class Bound(NamedTuple):
    """Positive definite approximation used by sweeps [PBNG eq. 32]. The field `unused` is a placeholder."""

    unused: Any


class Principal(NamedTuple):
    """V C of an element in its principal frame.

    Attributes:
        U, W: Rotations of the singular value decomposition of F.
        stretch: V A as xx yy zz xy xz yz.
        same, cross: Coefficients of the pairs xy, xz, yz: δP̂ᵢⱼ = same δF̂ᵢⱼ + cross δF̂ⱼᵢ.
    """

    U: Any
    W: Any
    stretch: Any
    same: Any
    cross: Any


class BoundStiffness(NamedTuple):
    """Material, deformation gradient and volume of an element, for the bound."""

    material: Any
    F: Any
    V: Any


@generic
def stiffness(kind, material, F, V):
    """Element data required by `block`, for an element of volume V [m³]."""


@generic
def block(stiffness, g, h):
    """Kᵃᵇ, a 9-tuple, of corners with shape gradients g and h [1/m]."""


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
def _bound_stiffness(kind, material, F, V):
    return BoundStiffness(material, F, V)


@block.of(BoundStiffness)
def _bounded_block(stiffness, g, h):
    return scale_matrix(stiffness.V, hessian_bound(stiffness.material, stiffness.F, g, h))


@device_function
def _add_own(data, slots, row, stiff, g, pair):
    add_blocks(data, slots, row, pair, block(stiff, g, g))
    return 0


@device_function
def _add_pair(data, slots, row, stiff, g, h, pair, reverse):
    """Add Kᵃᵇ and its transpose Kᵇᵃ."""
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


_add_pairs = unroll("data, slots, row, stiff, g", _pairs, _add_own, _add_pair, over="g")


class AddElements(NamedTuple):
    """Add the blocks of the elements of a batch, rows start[batch] to start[batch + 1] - 1."""

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
    for k in range(work.start[item_number(batch)], work.start[item_number(batch) + 1]):
        row = row_address(batch, k)
        g = shape_gradients(rows, row)
        F = measure(rows, corners(rows, row, u, gather(u, work.own, row, 0)), g)
        stiff = stiffness(work.kind, material_at(rows, row), F, rest_volume(rows, row))
        _add_pairs(work.data, work.slots, row, stiff, g)


@kernel
def add_elements(team, kind, color_start, start, own, rows, slots, u, data):
    """Add the blocks of all elements to `data`. Batches of one color share no vertex, so no two threads
    collide.

    Args:
        team: Thread team.
        kind: `Tangent` or `Bound`.
        color_start: (colors + 1,) first batch of each color.
        start: (batches + 1,) first row of each batch.
        own: Vertex of each packed element.
        rows: Packed element data.
        slots: (rows, corners², lanes) matrix block of each corner pair.
        u: Displacements, padded vectors.
        data: (blocks, 3, 3) matrix values.
    """
    work = AddElements(kind, start, own, rows, slots, u, data)
    each_color(team, 0, color_start, color_bounds(color_start, 0), work)


ROWS_PER_BATCH = 8
"""Number of element rows per batch, processed sequentially by a CPU thread."""


@dataclass(frozen=True)
class ElementRows:
    """Packed elements of a term: the arguments of `add_elements`.

    Attributes:
        element: (rows, lanes) element id of each lane, -1 for padding.
    """

    color_start: np.ndarray
    start: np.ndarray
    own: np.ndarray
    rows: Any
    slots: np.ndarray
    element: np.ndarray

    @property
    def colors(self) -> int:
        """Number of colors."""
        return len(self.color_start) - 1


def update_element_ids(
    term: Term, slots: np.ndarray, number_of: np.ndarray, trash: int, dtype: np.dtype, device: Device
) -> ElementRows:
    """Pack and color the elements of a term for `add_elements`.

    On the CPU a thread adds one lane after the other, so a batch consists of elements close to each other in
    the matrix, and batches are colored. A GPU thread adds one lane, so elements are colored.

    Args:
        term: Term with solid elements.
        slots: (m, k, k) matrix block of each corner pair; negative slots are replaced by `trash`.
        number_of: (n,) matrix row of each vertex, -1 for pinned vertices.
        trash: Index of the block that collects unused entries.
        dtype: Floating-point type of the element data.
        device: Device that runs the kernel.
    """
    (m, k), lanes = term.vertices.shape, device.lanes
    if device.name == "cpu":
        element, color_start, start = _group_elements(term.vertices, number_of, lanes)
        row, lane = np.nonzero(element >= 0)
        chosen = element[row, lane]
        own = np.full(element.shape, len(number_of), np.int32)
        own[row, lane] = term.vertices[chosen, 0]
        incidence = Incidence(chosen, np.zeros(len(chosen), np.int64), row, lane, own, dtype)
        rows, own = term.rows(incidence, start), own[:, None, :].copy()
    else:
        batches = batch_colored_elements(term, len(number_of), dtype, lanes=lanes)
        element, color_start, start = batches.element, batches.color_start, batches.start
        rows, own = batches.rows, batches.own
    slot_rows = np.where(slots < 0, trash, slots).reshape(m, k * k).astype(np.int32)
    packed_slots = np.where((element >= 0)[:, :, None], slot_rows[element], trash)
    packed_slots = np.ascontiguousarray(packed_slots.transpose(0, 2, 1), np.int32)
    return ElementRows(color_start, start, own, rows, packed_slots, element)


def _group_elements(
    stencils: np.ndarray, number_of: np.ndarray, lanes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group elements by matrix row into colored batches: element (rows, lanes), color starts, row starts."""
    numbers = number_of[stencils]
    free = numbers >= 0
    first = np.where(free, numbers, len(number_of)).min(axis=1)
    order = np.argsort(first, kind="stable")[: int(free.any(axis=1).sum())]
    count = -(-len(order) // (ROWS_PER_BATCH * lanes))
    padded = np.full(count * ROWS_PER_BATCH * lanes, -1, np.int64)
    padded[: len(order)] = order
    element = padded.reshape(count, ROWS_PER_BATCH * lanes)
    color = np.zeros(count, np.int64)
    _color_batches(element, numbers, np.zeros(len(number_of), np.uint64), color)
    by_color = np.argsort(color, kind="stable")
    color_start = np.concatenate([[0], np.cumsum(np.bincount(color))]).astype(np.int64)
    start = ROWS_PER_BATCH * np.arange(count + 1, dtype=np.int64)
    return element[by_color].reshape(-1, lanes), color_start, start


@kernel
def _color_batches(element, numbers, taken, color):
    """Assign each batch the smallest of 64 colors not used by a batch with a common free vertex.

    A batch without an available color gets a color of its own.
    """
    next_color = 64
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
        color[b] = c if c < 64 else next_color
        if c == 64:
            next_color += 1
            continue
        for e in element[b]:
            if e >= 0:
                for v in numbers[e]:
                    if v >= 0:
                        taken[v] |= np.uint64(1) << np.uint64(c)
