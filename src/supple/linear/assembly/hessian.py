"""Assembly of the Hessian of the potential over the free vertices as a sparse matrix of 3×3 blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import bsr_matrix

from supple.kernels import default_threads
from supple.linear.assembly.block_kernels import (
    EmbeddedBlocks,
    arrange_blocks,
    begin_blocks,
    constrain_rows,
    embedded_stencils,
)
from supple.linear.assembly.element_blocks import (
    Bound,
    ElementRows,
    Tangent,
    add_elements,
    update_element_ids,
)
from supple.linear.assembly.sparsity import make_pattern
from supple.linear.block_matrix import Blocks3x3
from supple.linear.vectors import gather_free, locate, spread_free
from supple.materials import LinearElastic
from supple.problem.diagnostics import rest_stiffness_of
from supple.problem.dirichlet_rows import normal_records
from supple.terms import Term, refresh_material

if TYPE_CHECKING:
    from supple.problem import Problem

HESSIAN_VARIANTS: dict[str, Any] = {"exact": Tangent(0), "projected": Tangent(1), "bound": Bound(0)}
"""Hessian variants: the exact Hessian, its element-wise positive semi-definite projection, and the bound used
by sweeps. The bound has its own kernel, compiled on first use."""

AT_REST = "at rest"


class Assembly:
    """Sparsity pattern of the Hessian, computed once, and its values at each state.

    Attributes:
        free: (f,) ids of the free vertices in matrix order, a spatially coherent order.
        pattern: Sparsity pattern of the matrix.
        precision: Floating-point type of the matrix values.
    """

    def __init__(self, problem: Problem, precision: str = "float64") -> None:
        self.problem, self.precision = problem, np.dtype(precision)
        model = problem.model
        free = np.flatnonzero(model.free)
        self.free = free[along_curve(model.rest[free])]
        number_of = np.full(model.vertices, -1, np.int64)
        number_of[self.free] = np.arange(len(self.free))
        stencils = [number_of[_stencils(term)] for term in model.terms]
        threads = problem.device.threads if problem.device.name == "cpu" else default_threads()
        self.pattern = make_pattern(stencils, len(self.free), threads)
        layout = number_of, len(self.pattern.indices), problem.dtype, problem.device
        self._elements = [
            update_element_ids(term, slots, *layout)
            if _has_principal_frame(term)
            else _block_class(term)(problem, k, slots, len(self.pattern.indices))
            for k, (term, slots) in enumerate(zip(model.terms, self.pattern.slots, strict=True))
        ]
        self._rest, self._positions = self.rest, problem.device.zeros((len(free), 3), np.dtype(float))
        self._inertia, self._inertia_source = np.zeros(len(free)), np.zeros(0)
        self.normals = normal_records(model, np.dtype(float))
        self._matrix = self._memory()

    def _memory(self) -> Blocks3x3:
        pattern, device = self.pattern, self.problem.device
        data = device.zeros((len(pattern.indices) + 1, 3, 3), self.precision)
        return Blocks3x3(pattern.indptr, pattern.indices, data)

    def update_materials(self) -> bool:
        """Update the material parameters to the current values of the problem.

        Returns:
            False if the change requires a new assembly.
        """
        updated = []
        for term, elements in zip(self.problem.model.terms, self._elements, strict=True):
            if term.material is not None:
                if not isinstance(elements, ElementRows):
                    return False
                rows = refresh_material(
                    elements.rows, term.material, elements.element, self.problem.device.run
                )
                elements = replace(elements, rows=rows)
            updated.append(elements)
        self._elements = updated
        return True

    @property
    def size(self) -> int:
        """Number of unknowns, three per free vertex."""
        return 3 * len(self.free)

    @property
    def rest(self) -> np.ndarray:
        """(f, 3) rest positions of the free vertices [m]."""
        return self.problem.model.rest[self.free]

    @property
    def positions(self) -> np.ndarray:
        """(f, 3) current positions of the free vertices [m], in device memory."""
        p = self.problem
        p.device.run(locate, 1, self._rest, p.u, self.free, self._positions)
        return self._positions

    def unconstrained(self, vectors: np.ndarray) -> np.ndarray:
        """Remove the components along constrained directions from vectors (3 f, ...) of the free vertices."""
        model = self.problem.model
        if model.constraint_projection is None:
            return vectors
        every = np.zeros((vectors[0].size, model.vertices, 3))
        every[:, self.free] = np.moveaxis(vectors.reshape(len(self.free), 3, -1), 2, 0)
        return np.moveaxis(model.unconstrained(every)[:, self.free], 0, 2).reshape(vectors.shape)

    def restrict(self, records: np.ndarray) -> np.ndarray:
        """Copy the free vertices' part of padded vectors (n + 1, 4) into a host vector (3 f,)."""
        self.problem.device.download(records)
        return records[self.free, :3].ravel()

    def gather(self, records: np.ndarray) -> np.ndarray:
        """Gather the padded vectors (f, 4) of the free vertices, in device memory."""
        out = self.problem.device.zeros((len(self.free), 4), np.dtype(float))
        self.problem.device.run(gather_free, 1, records, self.free, out)
        return out

    def spread(self, x: np.ndarray) -> np.ndarray:
        """Scatter padded vectors (f, 4) of the free vertices to all vertices, in device memory.

        Returns:
            (n + 1, 4) vectors without components along constrained directions, zero at pinned vertices.
        """
        p = self.problem
        out = p.device.zeros((p.model.vertices + 1, 4), np.dtype(float))
        p.device.run(spread_free, 1, x, self.free, self.normals, out)
        return out

    def at_rest(self) -> np.ndarray:
        """Blocks (blocks, 3, 3) of the Hessian at rest without inertia [N/m], the connection strengths of
        vertices.

        Solid elements contribute their positive semi-definite projection; all other terms contribute the
        bound, since their projection may vanish at a vertex.
        """
        self._assemble(AT_REST, np.zeros_like(self.problem.u), np.zeros(len(self.free)), self._matrix.blocks)
        return self.to_host(self._matrix).data

    @property
    def rest_stiffness(self) -> np.ndarray:
        """(f,) ⅓ tr A of the bound at rest without inertia [N/m], per free vertex."""
        return rest_stiffness_of(self.problem.diagnostics)[self.free] / 3

    def hessian(self, kind: str) -> bsr_matrix:
        """Assemble ∂²E/∂u² at the problem's u as a SciPy matrix, without the rank-one stiffness of sealed gas
        (`add_gas_stiffness` adds it).

        Args:
            kind: Hessian variant: "exact", "projected" or "bound".
        """
        return self.to_host(self.matrix(kind))

    def to_host(self, H: Blocks3x3) -> bsr_matrix:
        """Copy a device matrix to a SciPy matrix in host memory."""
        self.problem.device.download(H.blocks)
        return bsr_matrix((H.blocks[:-1].copy(), H.indices, H.indptr), shape=(self.size, self.size))

    def matrix(self, kind: str, new_memory: bool = False) -> Blocks3x3:
        """Assemble ∂²E/∂u² at the problem's u in device memory.

        Args:
            kind: Hessian variant, as in `hessian`.
            new_memory: Allocate new memory. Otherwise the next call overwrites the result.
        """
        p, H = self.problem, self._memory() if new_memory else self._matrix
        if self._inertia_source is not p.loads.inertia:
            self._inertia[:], self._inertia_source = p.loads.inertia[self.free], p.loads.inertia
            p.device.upload(self._inertia)
        self._assemble(kind, p.u, self._inertia, H.blocks)
        if p.model.constraint_projection is not None:
            p.device.run(constrain_rows, 1, H, self.free, self.pattern.diagonal, self.normals)
        return H

    def _assemble(self, kind: str, u: np.ndarray, inertia: np.ndarray, data: np.ndarray) -> None:
        """Sum the blocks of all terms and the inertia at displacements u. The last block collects unused
        entries."""
        p = self.problem
        p.device.run(begin_blocks, 2, data, self.pattern.diagonal, inertia)
        for elements in self._elements:
            if isinstance(elements, ElementRows):
                batches = elements.color_start, elements.start, elements.own, elements.rows, elements.slots
                variant = HESSIAN_VARIANTS["projected" if kind == AT_REST else kind]
                p.device.run(add_elements, elements.colors, variant, *batches, u, data)
            else:
                elements.add("bound" if kind == AT_REST else kind, u, data)


def _stencils(term: Term) -> np.ndarray:
    """(m, k) vertices that share Hessian blocks in each stencil of a term."""
    return term.vertices if term.node_interpolation is None else embedded_stencils(term.node_interpolation)


def _block_class(term: Term) -> Any:
    """Constructor of host-assembled blocks for a term."""
    return arrange_blocks if term.node_interpolation is None else EmbeddedBlocks


def _has_principal_frame(term: Any) -> bool:
    """True if `add_elements` supports the term's material: isotropic elements in the principal frame."""
    material = term.material
    if not term.fills or not material.isotropic:
        return False
    return material.objective or type(material) is LinearElastic


def along_curve(points: np.ndarray) -> np.ndarray:
    """Order points (n, 3) along the Morton curve, which keeps most spatial neighbors close to each other."""
    if len(points) == 0:
        return np.zeros(0, np.int64)
    low, size = points.min(axis=0), np.ptp(points, axis=0).max()
    cells = ((points - low) * (1023 / max(float(size), 1e-300))).astype(np.uint64)
    key = np.zeros(len(points), np.uint64)
    for bit in range(10):
        for axis in range(3):
            key |= ((cells[:, axis] >> np.uint64(bit)) & np.uint64(1)) << np.uint64(3 * bit + axis)
    return np.argsort(key, kind="stable")
