"""Multilevel preconditioner for the Hessian of elastic bodies: aggregation with rigid-body modes.

Long waves, which dominate the iteration counts of sweeps and diagonal preconditioners, are nearly rigid
motions of small regions. The unknowns of the coarse levels are therefore rigid motions of aggregates of
vertices, then of aggregates of aggregates, and so on. Rotation centers use current positions: rotations about
rest positions would not be rigid motions of a rotated body.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import bsr_matrix

from supple.kernels import do, kernel, vector_of_four
from supple.kernels.parallel.parallel_for import parallel_for_rows
from supple.linear.assembly.hessian import Assembly
from supple.linear.block_matrix import Blocks3x3, Blocks6x6, add_padding_block
from supple.linear.multilevel.aggregation import Levels, coarsen
from supple.linear.multilevel.dense_inverse import (
    DIAGONAL_SHIFT,
    dense_phases,
    invert_blocks,
    invert_coarse,
    invert_dense,
)
from supple.linear.multilevel.rigid_aggregates import Bodies, Products, locate_bodies, multiply_levels
from supple.linear.multilevel.spectral_radius import POWER_PHASES, raise_powers
from supple.linear.multilevel.tied_basis import stiff_basis
from supple.linear.multilevel.v_cycle import (
    Cycle,
    Level,
    apply_cycle,
    begin_row,
    chebyshev_start,
    cycle_phases,
)
from supple.linear.multilevel_cg_kernels import allocate_vectors
from supple.linear.vectors import round_numbers

SMOOTHER_DEGREE = 3
"""Degree of the smoothing polynomials."""

CORRECTION_SCALE = 1.5
"""Scaling factor of coarse corrections: rigid aggregates are too stiff by about this factor."""

DEPENDENT_DAMPING = 0.5
"""Damping of the smoother at dependent vertices. They share elements with the vertices that they depend on,
so undamped simultaneous corrections would overshoot."""

RADIUS_GROWTH = 1.5
"""Growth factor of spectral radii that turned out too small."""

MAX_DENSE_ROWS = 100
"""Largest number of rows of a last level that is inverted directly."""


class NotPositive(Exception):  # noqa: N818
    """Raised if a matrix is not positive definite: a diagonal block, or the matrix of the last level."""


MAX_FLOAT32_CONTRAST = 1e3
"""Largest ratio of vertex stiffnesses for V-cycles in float32; beyond it, rounding loses the small
stiffnesses."""


class Multilevel:
    """Aggregation hierarchy of a mesh, computed once, and the memory of its matrices.

    Matrices of the levels are always computed in float64.

    Args:
        assembly: Assembly of the Hessian.
        precision: Floating-point type of the V-cycles. By default float32 if there are no stiff ties and the
            ratio of stiffnesses is at most MAX_FLOAT32_CONTRAST, otherwise float64.
    """

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
        even = self.basis is None and own.max(initial=0) <= MAX_FLOAT32_CONTRAST * own.min(initial=np.inf)
        self.dtype = np.dtype(precision or ("float32" if even else "float64"))
        self.levels = coarsen(self.pattern, connections, coarse)
        self.memory = Memory(self, self.levels)
        self.shift = DIAGONAL_SHIFT * self.levels.sums(
            own if self.basis is not None else assembly.rest_stiffness
        )

    def update_materials(self, assembly: Assembly) -> bool:
        """Adopt changed material parameters and keep the existing levels.

        Returns:
            False if the levels do not fit the new parameters and must be rebuilt.
        """
        own = assembly.rest_stiffness
        even = own.max(initial=0) <= MAX_FLOAT32_CONTRAST * own.min(initial=np.inf)
        if self.basis is not None or (self.dtype == np.float32 and not even):
            return False
        self.shift = DIAGONAL_SHIFT * self.levels.sums(own)
        return True

    @property
    def is_persistent(self) -> bool:
        """True if a preconditioner remains valid after its matrix is overwritten."""
        return self.basis is None and len(self.memory.fine_blocks) > 0

    def at(self, H: bsr_matrix | Blocks3x3, positions: np.ndarray) -> Preconditioner:
        """Build the preconditioner of a matrix. It reuses, and invalidates, the memory of the previous one.

        Args:
            H: Matrix with the pattern of the assembly.
            positions: (f, 3) positions of the free vertices [m].

        Raises:
            NotPositive: H is not positive definite.
        """
        return Preconditioner(self, as_matrix(H), np.ascontiguousarray(positions, float))


class Memory:
    """Memory of a preconditioner: setup arrays in float64, and their rounded versions for the V-cycle."""

    def __init__(self, hierarchy: Multilevel, levels: Levels) -> None:
        device, pattern, dtype = hierarchy.device, hierarchy.pattern, hierarchy.dtype
        f, rows, last = pattern.rows, levels.rows, int(levels.start[-1] - levels.start[-2])
        exact = np.dtype(float)

        def zeros(*shape: int, dtype: np.dtype = exact) -> np.ndarray:
            return device.zeros(shape, dtype)

        def allocate(array: np.ndarray) -> np.ndarray:
            return array if dtype == exact else device.zeros(array.shape, dtype)

        bodies = (rows, 3), (rows,), (rows, 6), (rows,), (f, 3), (rows, 3), (rows,)
        self.bodies = Bodies(*(zeros(*shape) for shape in bodies))
        self.blocks, self.inverses = zeros(len(levels.indices) + 1, 36), zeros(36 * (rows + 1))
        self.good = np.ones(1, np.int64)
        self.part = (
            np.ones(f)
            if hierarchy.basis is None
            else np.where(hierarchy.basis.follows, DEPENDENT_DAMPING, 1.0)
        )
        n = 6 * last if last <= MAX_DENSE_ROWS else 0
        self.squares, self.pivot = (zeros(n, n), zeros(n, n)), zeros(36)
        self.squared = zeros(2, f), zeros(2, rows)
        self.fine_blocks = (
            np.zeros(0) if dtype == exact else zeros(len(pattern.indices) + 1, 3, 3, dtype=dtype)
        )
        fine = Level(
            Blocks3x3(pattern.indptr, pattern.indices, self.fine_blocks), zeros(f, 9, dtype=dtype),
            levels.fine_parent, allocate(self.bodies.fine_offset), (),
            *(zeros(f, 4, dtype=dtype) for _ in range(4)),
        )  # fmt: skip
        coarse = Level(
            Blocks6x6(levels.indptr, levels.indices, allocate(self.blocks)), allocate(self.inverses),
            levels.parent, allocate(self.bodies.offset), allocate(self.bodies.scale),
            *(zeros(rows, 8, dtype=dtype) for _ in range(4)),
        )  # fmt: skip
        shape = levels.start, levels.child_start, levels.child, zeros(n, n, dtype=dtype)
        self.cycle = Cycle(
            fine, coarse, *shape, np.ones(len(levels.start)), SMOOTHER_DEGREE, CORRECTION_SCALE
        )
        self.products = Products(
            pattern.indices, levels.start, levels.indptr, levels.indices, levels.mirror,
            levels.source_start, levels.source, levels.source_row,
        )  # fmt: skip
        self.vectors = allocate_vectors(device, f)


class Preconditioner:
    """Multilevel preconditioner z = M r ≈ H⁻¹ r, symmetric and positive definite.

    Attributes:
        basis: Change of basis x = B y to the unknowns y of the V-cycle, or None.
    """

    def __init__(self, hierarchy: Multilevel, H: Blocks3x3, positions: np.ndarray) -> None:
        self.device, self.basis, self.vectors = hierarchy.device, hierarchy.basis, hierarchy.memory.vectors
        self._source, self._matrix = H, H if self.basis is None else self.basis.matrix(H)
        self._build(hierarchy, positions)
        memory, device = hierarchy.memory, self.device
        device.download(memory.good)
        if not memory.good[0]:
            raise NotPositive

    def _build(self, hierarchy: Multilevel, positions: np.ndarray) -> None:
        levels, memory, run = hierarchy.levels, hierarchy.memory, self.device.run
        bodies, A, good = memory.bodies, self._matrix.blocks, memory.good
        count = len(levels.start) - 1
        good[0] = 1
        self.device.upload(good)
        run(locate_bodies, count, levels.start, levels.child_start, levels.child, positions, bodies)
        run(multiply_levels, 2 * count, memory.products, bodies, A, memory.blocks)
        run(invert_blocks, 1, hierarchy.pattern.diagonal, A, memory.part, memory.cycle.fine.inverse, good)
        run(invert_coarse, 1, levels.diagonal, memory.blocks, bodies, hierarchy.shift, memory.inverses, good)
        dense = memory.cycle.dense
        if len(dense):
            exact = Blocks6x6(levels.indptr, levels.indices, memory.blocks)
            where, scratch = (levels.start[-2], hierarchy.shift), (memory.squares, memory.pivot, good)
            run(invert_dense, dense_phases(len(dense) // 6), exact, *where, *scratch, dense)
        self.cycle = self._round_cycle(memory, A)
        self.phases = 1 + cycle_phases(count, SMOOTHER_DEGREE, len(dense) > 0)
        run(raise_powers, POWER_PHASES, self.cycle, *memory.squared)

    def _round_cycle(self, memory: Memory, A: np.ndarray) -> Cycle:
        """Round the setup arrays to the precision of the V-cycle."""
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
        """Increase the spectral radii of all levels: M is not positive definite if an eigenvalue exceeds the
        radius."""
        self.device.download(self.cycle.radius)
        self.cycle.radius[:] *= RADIUS_GROWTH
        self.device.upload(self.cycle.radius)

    def in_basis(self, H: Blocks3x3) -> Blocks3x3:
        """Compute Bᵀ H B in device memory."""
        if self.basis is None:
            return H
        return self._matrix if H is self._source else self.basis.matrix(H)

    def forces(self, r: np.ndarray) -> np.ndarray:
        """Compute Bᵀ r for padded vectors (f, 4)."""
        return r if self.basis is None else self.basis.forces(r)

    def moves(self, y: np.ndarray) -> np.ndarray:
        """Compute B y for padded vectors (f, 4), in new memory."""
        if self.basis is not None:
            return self.basis.positions(y)
        x = self.device.zeros(y.shape, y.dtype)
        self.device.assign(x, y)
        return x

    def __call__(self, r: np.ndarray) -> np.ndarray:
        """Apply the preconditioner to a host vector r (3 f,)."""
        self.device.run(_precondition, self.phases, self.cycle, self.forces(as_records(r.astype(float))))
        y = self.cycle.fine.x
        self.device.download(y)
        x = self.moves(y.astype(float))
        self.device.download(x)
        return x[:, :3].astype(r.dtype).ravel()


def as_records(vector: np.ndarray) -> np.ndarray:
    """Convert a vector (3 f,) to padded vectors (f, 4)."""
    records = np.zeros((len(vector) // 3, 4), vector.dtype)
    records[:, :3] = vector.reshape(-1, 3)
    return records


def as_matrix(H: bsr_matrix | Blocks3x3) -> Blocks3x3:
    """Convert a SciPy matrix to 3×3 blocks with a padding block."""
    if isinstance(H, Blocks3x3):
        return H
    return Blocks3x3(
        H.indptr.astype(np.int32), H.indices.astype(np.int32), add_padding_block(H.data.astype(float))
    )


class Begin(NamedTuple):
    """Start a V-cycle for the residual r, padded vectors."""

    fine: Any
    r: Any
    gain: Any


@do.of(Begin)
def _begin(work, row):
    begin_row(work.fine, row, work.gain, vector_of_four(work.r, row))


@kernel
def _precondition(team, cycle, r):
    gain, _, _ = chebyshev_start(cycle.radius[0])
    parallel_for_rows(team, 0, 0, len(r), Begin(cycle.fine, r, gain))
    apply_cycle(team, 1, cycle)
