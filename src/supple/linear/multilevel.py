"""A multilevel preconditioner for the Hessian of elastic bodies: aggregates that move as rigid bodies.

Long waves, on which sweeps and diagonal preconditioners spend their iterations, are nearly rigid motions of
small parts. So the unknowns of the coarse levels are rigid motions of aggregates of vertices, of aggregates
of these, and so on, about where they are now: about rest positions they would not be rigid for a body that
has turned.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import bsr_matrix

from supple.kernels import do, kernel, vector_of_four
from supple.linear.aggregates import Levels, coarsen
from supple.linear.assembly import Assembly
from supple.linear.basis import stiff_basis
from supple.linear.block_rows import Sixes, Threes, with_room
from supple.linear.cycle import Cycle, Level, apply_cycle, chebyshev_start, cycle_phases
from supple.linear.dense import dense_phases, invert_dense
from supple.linear.inverses import SHIFT, invert_blocks, invert_coarse
from supple.linear.krylov import vectors_of
from supple.linear.radius import POWER_PHASES, raise_powers
from supple.linear.rigid import Bodies, Products, multiply_levels, place_bodies
from supple.linear.tiles import each_row
from supple.linear.transfer import begin_row
from supple.linear.vectors import round_numbers

DEGREE = 3
"""Degree of the smoothing polynomials."""

OVER = 1.5
"""How far to go along the correction of a coarse level: rigid aggregates are too stiff by about that."""

CALM = 0.5
"""How far smoothing moves vertices that follow others: they and those that they follow move the same
elements, and both at once would go too far."""

WIDER = 1.5
"""How much larger radii are made that have proved too small."""

MOST_DENSE = 100
"""Rows of a last level whose matrix is inverted."""


class NotPositive(Exception):  # noqa: N818
    """A matrix is not positive definite: some diagonal block, or the matrix of the last level, is not."""


CONTRAST = 1e3
"""How much stiffer than another one a vertex may be for cycles in float32, in which small numbers are lost
beside large ones."""


class Multilevel:
    """The levels of a mesh, found once, and the memory of their matrices. precision: of the cycles, float32
    where the contrast of stiffnesses and ties allow it if none is given; matrices of the levels are always
    computed in float64."""

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
        self.memory = Memory(self, self.levels)
        self.shift = SHIFT * self.levels.sums(own if self.basis is not None else assembly.rest_stiffness)

    def take_materials(self, assembly: Assembly) -> bool:
        """Go over to other values of materials, with the levels that there are; False where these do not
        suit."""
        own = assembly.rest_stiffness
        even = own.max(initial=0) <= CONTRAST * own.min(initial=np.inf)
        if self.basis is not None or (self.dtype == np.float32 and not even):
            return False
        self.shift = SHIFT * self.levels.sums(own)
        return True

    @property
    def lasts(self) -> bool:
        """Whether a preconditioner stays what it is when the matrix changes that it was made for."""
        return self.basis is None and len(self.memory.fine_blocks) > 0

    def at(self, H: bsr_matrix | Threes, positions: np.ndarray) -> Preconditioner:
        """The preconditioner for a matrix of this pattern, with free vertices at positions (f, 3) [m]: in the
        memory of the one before, which is of no use any more."""
        return Preconditioner(self, as_matrix(H), np.ascontiguousarray(positions, float))


class Memory:
    """Where kernels make a preconditioner: exact, what is computed in float64; rounded, what cycles read."""

    def __init__(self, hierarchy: Multilevel, levels: Levels) -> None:
        device, pattern, dtype = hierarchy.device, hierarchy.pattern, hierarchy.dtype
        f, rows, last = pattern.rows, levels.rows, int(levels.start[-1] - levels.start[-2])
        exact = np.dtype(float)

        def zeros(*shape: int, dtype: np.dtype = exact) -> np.ndarray:
            return device.zeros(shape, dtype)

        def rounded(array: np.ndarray) -> np.ndarray:
            return array if dtype == exact else device.zeros(array.shape, dtype)

        bodies = (rows, 3), (rows,), (rows, 6), (rows,), (f, 3), (rows, 3), (rows,)
        self.bodies = Bodies(*(zeros(*shape) for shape in bodies))
        self.blocks, self.inverses = zeros(len(levels.indices) + 1, 36), zeros(36 * (rows + 1))
        self.good = np.ones(1, np.int64)
        self.part = np.ones(f) if hierarchy.basis is None else np.where(hierarchy.basis.follows, CALM, 1.0)
        n = 6 * last if last <= MOST_DENSE else 0
        self.squares, self.pivot = (zeros(n, n), zeros(n, n)), zeros(36)
        self.squared = zeros(2, f), zeros(2, rows)
        self.fine_blocks = (
            np.zeros(0) if dtype == exact else zeros(len(pattern.indices) + 1, 3, 3, dtype=dtype)
        )
        fine = Level(
            Threes(pattern.indptr, pattern.indices, self.fine_blocks), zeros(f, 9, dtype=dtype),
            levels.fine_parent, rounded(self.bodies.fine_offset), (),
            *(zeros(f, 4, dtype=dtype) for _ in range(4)),
        )  # fmt: skip
        coarse = Level(
            Sixes(levels.indptr, levels.indices, rounded(self.blocks)), rounded(self.inverses),
            levels.parent, rounded(self.bodies.offset), rounded(self.bodies.scale),
            *(zeros(rows, 8, dtype=dtype) for _ in range(4)),
        )  # fmt: skip
        shape = levels.start, levels.child_start, levels.child, zeros(n, n, dtype=dtype)
        self.cycle = Cycle(fine, coarse, *shape, np.ones(len(levels.start)), DEGREE, OVER)
        self.products = Products(
            pattern.indices, levels.start, levels.indptr, levels.indices, levels.mirror,
            levels.source_start, levels.source, levels.source_row,
        )  # fmt: skip
        self.vectors = vectors_of(device, f)


class Preconditioner:
    """z = M r ≈ H⁻¹ r, symmetric and positive definite. basis: the unknowns y of its cycles, x = B y."""

    def __init__(self, hierarchy: Multilevel, H: Threes, positions: np.ndarray) -> None:
        self.device, self.basis, self.vectors = hierarchy.device, hierarchy.basis, hierarchy.memory.vectors
        self._of, self._matrix = H, H if self.basis is None else self.basis.matrix(H)
        self._build(hierarchy, positions)
        memory, device = hierarchy.memory, self.device
        device.pull(memory.good)
        if not memory.good[0]:
            raise NotPositive

    def _build(self, hierarchy: Multilevel, positions: np.ndarray) -> None:
        levels, memory, run = hierarchy.levels, hierarchy.memory, self.device.run
        bodies, A, good = memory.bodies, self._matrix.blocks, memory.good
        count = len(levels.start) - 1
        good[0] = 1
        self.device.push(good)
        run(place_bodies, count, levels.start, levels.child_start, levels.child, positions, bodies)
        run(multiply_levels, 2 * count, memory.products, bodies, A, memory.blocks)
        run(invert_blocks, 1, hierarchy.pattern.diagonal, A, memory.part, memory.cycle.fine.inverse, good)
        run(invert_coarse, 1, levels.diagonal, memory.blocks, bodies, hierarchy.shift, memory.inverses, good)
        dense = memory.cycle.dense
        if len(dense):
            exact = Sixes(levels.indptr, levels.indices, memory.blocks)
            where, scratch = (levels.start[-2], hierarchy.shift), (memory.squares, memory.pivot, good)
            run(invert_dense, dense_phases(len(dense) // 6), exact, *where, *scratch, dense)
        self.cycle = self._rounded(memory, A)
        self.phases = 1 + cycle_phases(count, DEGREE, len(dense) > 0)
        run(raise_powers, POWER_PHASES, self.cycle, *memory.squared)

    def _rounded(self, memory: Memory, A: np.ndarray) -> Cycle:
        """What was computed, in the precision of the cycle."""
        fine, coarse = memory.cycle.fine, memory.cycle.coarse
        pairs = [
            (memory.blocks, coarse.A.blocks),
            (memory.inverses, coarse.inverse),
            (memory.bodies.fine_offset, fine.offset),
            (memory.bodies.offset, coarse.offset),
            (memory.bodies.scale, coarse.scale),
        ]
        if not len(memory.fine_blocks):
            return memory.cycle._replace(fine=fine._replace(A=fine.A._replace(blocks=A)))
        for exact, rounded in [*pairs, (A, memory.fine_blocks)]:
            self.device.run(round_numbers, 1, exact, rounded)
        return memory.cycle

    def widen(self) -> None:
        """Smooth for larger eigenvalues than the powers have shown: M is not positive where one is larger."""
        self.device.pull(self.cycle.radius)
        self.cycle.radius[:] *= WIDER
        self.device.push(self.cycle.radius)

    def in_basis(self, H: Threes) -> Threes:
        """Bᵀ H B, where kernels see it."""
        if self.basis is None:
            return H
        return self._matrix if H is self._of else self.basis.matrix(H)

    def forces(self, r: np.ndarray) -> np.ndarray:
        """Bᵀ r of records (f, 4)."""
        return r if self.basis is None else self.basis.forces(r)

    def moves(self, y: np.ndarray) -> np.ndarray:
        """B y of records, in memory of its own."""
        if self.basis is not None:
            return self.basis.positions(y)
        x = self.device.zeros(y.shape, y.dtype)
        self.device.assign(x, y)
        return x

    def __call__(self, r: np.ndarray) -> np.ndarray:
        self.device.run(_precondition, self.phases, self.cycle, self.forces(as_records(r.astype(float))))
        y = self.cycle.fine.x
        self.device.pull(y)
        x = self.moves(y.astype(float))
        self.device.pull(x)
        return x[:, :3].astype(r.dtype).ravel()


def as_records(vector: np.ndarray) -> np.ndarray:
    """A vector (3 f,) as records (f, 4)."""
    records = np.zeros((len(vector) // 3, 4), vector.dtype)
    records[:, :3] = vector.reshape(-1, 3)
    return records


def as_matrix(H: bsr_matrix | Threes) -> Threes:
    """A matrix of SciPy's with room after its blocks."""
    if isinstance(H, Threes):
        return H
    return Threes(H.indptr.astype(np.int32), H.indices.astype(np.int32), with_room(H.data.astype(float)))


class Begin(NamedTuple):
    """The beginning of a cycle for records r."""

    fine: Any
    r: Any
    gain: Any


@do.of(Begin)
def _begin(work, row):
    begin_row(work.fine, row, work.gain, vector_of_four(work.r, row))


@kernel
def _precondition(team, cycle, r):
    gain, _, _ = chebyshev_start(cycle.radius[0])
    each_row(team, 0, 0, len(r), Begin(cycle.fine, r, gain))
    apply_cycle(team, 1, cycle)
