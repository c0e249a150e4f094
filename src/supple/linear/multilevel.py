"""A multilevel preconditioner for the Hessian of elastic bodies: aggregates that move as rigid bodies.

Long waves, on which sweeps and diagonal preconditioners spend their iterations, are nearly rigid motions of
small parts. So the unknowns of the coarse levels are rigid motions of aggregates of vertices, of aggregates
of these, and so on, about where they are now: about rest positions they would not be rigid for a body that
has turned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import bsr_matrix

from supple.kernels import kernel
from supple.linear.aggregates import coarsen
from supple.linear.assembly import Assembly
from supple.linear.basis import stiff_basis
from supple.linear.cycle import Coarse, Cycle, Fine, apply_cycle, cycle_phases
from supple.linear.inverses import invert_blocks, invert_coarse, invert_dense
from supple.linear.radius import POWER_STEPS, SAFETY, raise_powers
from supple.linear.rigid import Bodies, Products, multiply_levels, place_bodies

DEGREE = 3
"""Degree of the smoothing polynomials."""

OVER = 1.5
"""How far to go along the correction of a coarse level: rigid aggregates are too stiff by about that."""

CALM = 0.5
"""How far smoothing moves vertices that follow others: they and those that they follow move the same
elements, and both at once would go too far."""

WIDER = 1.5
"""How much larger radii are made that have proved too small."""

SHIFT = 1e-9
"""Part of its diagonal that is added to the last level's, which is singular for bodies that nothing holds."""


class NotPositive(Exception):  # noqa: N818
    """A matrix is not positive definite: some diagonal block, or the matrix of the last level, is not."""


CONTRAST = 1e3
"""How much stiffer than another one a vertex may be for cycles in float32, in which small numbers are lost
beside large ones."""


class Multilevel:
    """The levels of a mesh, found once. precision: of the cycles, float32 where the contrast of stiffnesses
    and ties allow it if none is given; matrices of the levels are always computed in float64."""

    def __init__(self, assembly: Assembly, precision: str | None = None) -> None:
        self.device, self.pattern = assembly.problem.device, assembly.pattern
        blocks = assembly.at_rest()
        connections = np.sqrt(np.square(blocks).sum(axis=(1, 2)))
        self.basis = stiff_basis(assembly, connections[self.pattern.diagonal])
        coarse = np.ones(self.pattern.rows, bool)
        if self.basis is not None:
            self.pattern, connections = self.basis.pattern, self.basis.connections(blocks)
            coarse = ~self.basis.follows
        own = connections[self.pattern.diagonal]
        even = self.basis is None and own.max(initial=0) <= CONTRAST * own.min(initial=np.inf)
        self.dtype = np.dtype(precision or ("float32" if even else "float64"))
        self.levels = coarsen(self.pattern, connections, coarse)
        f, rows = self.pattern.rows, self.levels.rows
        self.bodies = Bodies(
            centre=np.zeros((rows, 3)),
            weight=np.zeros(rows),
            moment=np.zeros((rows, 6)),
            radius=np.zeros(rows),
            fine_offset=np.zeros((f, 3)),
            offset=np.zeros((rows, 3)),
            scale=np.zeros(rows),
        )
        levels = self.levels
        self._products = Products(
            self.pattern.indptr, self.pattern.indices, levels.fine_parent, levels.fine_slots, levels.start,
            levels.child_start, levels.child, levels.parent, levels.indptr, levels.indices, levels.mirror,
            levels.slots,
        )  # fmt: skip

    def at(self, H: bsr_matrix, positions: np.ndarray) -> Preconditioner:
        """The preconditioner for a matrix of this pattern, with free vertices at positions (f, 3) [m]."""
        return Preconditioner(self, H, np.ascontiguousarray(positions, float))


class Preconditioner:
    """z = M r ≈ H⁻¹ r, symmetric and positive definite. basis: the unknowns y of its cycles, x = B y."""

    def __init__(self, hierarchy: Multilevel, H: bsr_matrix, positions: np.ndarray) -> None:
        self.device, self.basis = hierarchy.device, hierarchy.basis
        if self.basis is not None:
            H = self.basis.matrix(H)
        levels, bodies, run = hierarchy.levels, hierarchy.bodies, self.device.run
        count = len(levels.start) - 1
        run(place_bodies, count, levels.start, levels.child_start, levels.child, positions, bodies)
        coarse = np.zeros((len(levels.indices) + 1, 36))
        run(multiply_levels, 2 * count, hierarchy._products, bodies, H.data, coarse)
        good = np.ones(1, bool)
        inverse = np.empty((hierarchy.pattern.rows, 9), hierarchy.dtype)
        run(invert_blocks, 1, hierarchy.pattern.diagonal, H.data, inverse, good)
        if self.basis is not None:
            inverse = np.where(self.basis.follows[:, None], CALM * inverse, inverse)
        coarse_inverse = np.zeros(36 * (levels.rows + 1))
        run(invert_coarse, 1, levels.diagonal, coarse, bodies, coarse_inverse, good)
        dense = self._dense(hierarchy, coarse, good)
        if not good[0]:
            raise NotPositive
        coarse, coarse_inverse = coarse.astype(hierarchy.dtype), coarse_inverse.astype(hierarchy.dtype)
        blocks = room_after(H.data, hierarchy.dtype)
        self.cycle = self._cycle(hierarchy, blocks, inverse, coarse, coarse_inverse, dense)
        self._estimate_radii(levels)
        self.phases = cycle_phases(count, DEGREE, len(dense) > 0)

    def _dense(self, hierarchy: Multilevel, coarse: np.ndarray, good: np.ndarray) -> np.ndarray:
        """The inverse of the last level's matrix."""
        levels = hierarchy.levels
        first, last = int(levels.start[-2]), int(levels.start[-1])
        m = last - first
        if m > MOST_DENSE:
            return np.zeros((0, 0), hierarchy.dtype)
        blocks = np.arange(levels.indptr[first], levels.indptr[last])
        rows = np.repeat(np.arange(m), np.diff(levels.indptr[first : last + 1]))
        square = np.zeros((m, 6, m, 6))
        square[rows, :, levels.indices[blocks] - first, :] = coarse[blocks].reshape(-1, 6, 6)
        dense = square.reshape(6 * m, 6 * m)
        diagonal = np.einsum("ii->i", dense)
        own = diagonal.reshape(m, 6)
        own += SHIFT * own.max(axis=1, keepdims=True)
        flat = dense.ravel()
        invert_dense(flat, 6 * m, good)
        return flat.reshape(6 * m, 6 * m).astype(hierarchy.dtype)

    def _cycle(self, hierarchy: Multilevel, *arrays: np.ndarray) -> Cycle:
        levels, bodies, dtype = hierarchy.levels, hierarchy.bodies, hierarchy.dtype
        blocks, inverse, coarse, coarse_inverse, dense = arrays
        fine = Fine(
            hierarchy.pattern.indptr,
            hierarchy.pattern.indices,
            blocks,
            inverse,
            levels.fine_parent,
            bodies.fine_offset.astype(dtype),
            *(np.zeros((len(inverse), 4), dtype) for _ in range(4)),
        )
        upper = Coarse(
            levels.start,
            levels.child_start,
            levels.child,
            levels.indptr,
            levels.indices,
            coarse,
            coarse_inverse,
            levels.parent,
            bodies.offset.astype(dtype),
            bodies.scale.astype(dtype),
            *(np.zeros((levels.rows, 8), dtype) for _ in range(4)),
            dense,  # type: ignore[call-arg]
        )
        return Cycle(fine, upper, np.ones(len(levels.start)), DEGREE, OVER)

    def _estimate_radii(self, levels: Any) -> None:
        """The largest eigenvalue of D⁻¹ A of every level, by powers of it."""
        fine, coarse, radius = self.cycle.fine, self.cycle.coarse, self.cycle.radius
        squares = np.zeros((2, len(fine.parent))), np.zeros((2, levels.rows))
        self.device.run(raise_powers, 2 * POWER_STEPS + 2, fine, coarse, *squares)
        before, after = (
            np.append(s[0].sum(), np.add.reduceat(s[1], levels.start[:-1]))
            for s in zip(*squares, strict=True)
        )
        radius[:] = SAFETY * np.sqrt(after / np.maximum(before, 1e-300))

    def widen(self) -> None:
        """Smooth for larger eigenvalues than the powers have shown: M is not positive where one is larger."""
        self.cycle = self.cycle._replace(radius=WIDER * self.cycle.radius)

    def __call__(self, r: np.ndarray) -> np.ndarray:
        b = r if self.basis is None else self.basis.forces(r)
        self.device.run(_precondition, self.phases, self.cycle, as_records(b))
        y = self.cycle.fine.x[:, :3].astype(r.dtype).ravel()
        return y if self.basis is None else self.basis.positions(y)


def as_records(vector: np.ndarray) -> np.ndarray:
    """A vector (3 f,) as records (f, 4)."""
    records = np.zeros((len(vector) // 3, 4), vector.dtype)
    records[:, :3] = vector.reshape(-1, 3)
    return records


def room_after(blocks: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """3×3 blocks in a precision, with a number after them that may be read. Those of an assembly have one."""
    base = blocks.base
    roomy = (
        isinstance(base, np.ndarray)
        and base.ctypes.data == blocks.ctypes.data
        and base.nbytes > blocks.nbytes
    )
    if roomy and blocks.dtype == dtype and blocks.flags.c_contiguous:
        return blocks
    roomier = np.empty((len(blocks) + 1, 3, 3), dtype)
    roomier[:-1], roomier[-1] = blocks, 0
    return roomier


MOST_DENSE = 100
"""Rows of a last level whose matrix is inverted."""


@kernel
def _precondition(team, cycle, r):
    apply_cycle(team, 0, cycle, r)
