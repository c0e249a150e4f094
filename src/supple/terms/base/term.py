"""Interface of energy terms: methods for solvers on the host, and packed element data for kernels.

The packed data of a term is a NamedTuple of arrays with one incidence per lane: a stencil seen from one of
its vertices, the visiting vertex, which comes first. All solvers use two arrangements of the same data: by
vertices (rows `start[b]` to `start[b + 1]` hold the incidences of the 16 or 8 vertices of batch b) and by
elements (one incidence per stencil).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from supple.kernels import generic


@dataclass(frozen=True)
class Incidence:
    """Packing of incidences: incidence k is stencil `element[k]` seen from its corner `slot[k]`.

    Attributes:
        element: (k,) stencil of each incidence.
        slot: (k,) corner of the stencil that is the visiting vertex.
        row, lane: (k,) location in packed arrays. Lanes without an incidence have the vertex `own` as all
            corners and zero data, which contribute no energy.
        own: (rows, lanes) visiting vertex of each lane.
        dtype: Working precision.
        by_vertices: True if each stencil is visited from all of its vertices.
    """

    element: np.ndarray
    slot: np.ndarray
    row: np.ndarray
    lane: np.ndarray
    own: np.ndarray
    dtype: np.dtype
    by_vertices: bool = False

    def pack(self, values: np.ndarray) -> np.ndarray:
        """Pack values (k, fields) of the incidences to (rows, fields, lanes) in the working precision."""
        out = np.zeros((len(self.own), values.shape[1], self.own.shape[1]), self.dtype)
        out[self.row, :, self.lane] = values
        return out

    @cached_property
    def elements(self) -> np.ndarray:
        """(rows, lanes) stencil of each lane, -1 for lanes without an incidence."""
        out = np.full(self.own.shape, -1, np.int32)
        out[self.row, self.lane] = self.element
        return out

    def corners(self, vertices: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Visiting vertex and other vertices of each incidence.

        Args:
            vertices: (m, c) vertices of the stencils.
            others: (k, c - 1) slots of the other corners, in the order of the result.

        Returns:
            Vertex ids (k,) of the visiting corners and (k, c - 1) of the others.
        """
        stencil = vertices[self.element]
        return stencil[np.arange(len(stencil)), self.slot], np.take_along_axis(stencil, others, axis=1)

    def pack_ids(self, ids: np.ndarray) -> np.ndarray:
        """Pack vertex ids (k, slots) of the incidences to (rows, slots, lanes)."""
        out = np.repeat(self.own[:, None, :], ids.shape[1], axis=1)
        out[self.row, :, self.lane] = ids
        return np.ascontiguousarray(out, np.int32)


@dataclass(frozen=True)
class Elements:
    """A term packed by elements.

    Attributes:
        own: (rows, 1, lanes) first vertex of each stencil.
        rows: Packed element data.
        element: (rows, lanes) stencil of each lane, or -1.
    """

    own: np.ndarray
    rows: Any
    element: np.ndarray


class NodeInterpolation(NamedTuple):
    """Interpolation of element corners from grid nodes.

    Attributes:
        corners: (m, 4) point of each element corner.
        gradients: (m, 4, 3) shape gradients of the corners [1/m].
        nodes: (n, 8) nodes that interpolate each point.
        weights: (n, 8) interpolation weights.
    """

    corners: np.ndarray
    gradients: np.ndarray
    nodes: np.ndarray
    weights: np.ndarray


class Relations(NamedTuple):
    """Linear constraints that determine the energy of each stencil.

    Attributes:
        coefficients: (m, k) coefficients c; the energy depends on Σ c x only.
        stiffness: (m,) smallest stiffness against a change of that sum [N/m].
    """

    coefficients: np.ndarray
    stiffness: np.ndarray


class Term(Protocol):
    """One kind of energy over stencils of vertices."""

    name: ClassVar[str]
    """Plural name of the stencils in messages."""

    ties: ClassVar[bool]
    """True if the term connects points, as opposed to the elasticity of a body."""

    loads: ClassVar[bool]
    """True if the term is an external load, as opposed to stored energy."""

    presses: ClassVar[bool]
    """True if the term is a pressure on triangles."""

    encloses: ClassVar[bool]
    """Whether it is gas sealed in its triangles, whose pressure follows their volume, see `SealedGas`."""

    intersection_free: ClassVar[bool]
    """True if the term is an intersection-free contact."""

    deforms: ClassVar[bool]
    """True if elements have a deformation gradient, with attributes `volume` (m,) [m³] and `gradients` (m, k,
    3) [1/m] of the shape functions."""

    fills: ClassVar[bool]
    """True if elements are solid, like tetrahedra: F = Σ xₐ gₐᵀ, returned by `deformations`, with det F < 0
    for inverted elements."""

    sheet: ClassVar[bool]
    """True if the term is a membrane with the methods `remesh` and `scale_thickness`."""

    family: ClassVar[str]
    """Family in which stencils are counted: element, weak_constraint, spring, cable, contact or load."""

    @property
    def material(self) -> Any:
        """Material of the elements, None for terms without one."""

    @property
    def vertices(self) -> np.ndarray:
        """(m, k) vertex ids of the stencils."""

    @property
    def depends_on_rest(self) -> bool:
        """True if weights or lengths of connections were measured at the rest positions."""

    @property
    def capacity(self) -> int | None:
        """Largest number of stencils of a dynamic term, see `Problem.refresh`; None for static stencils."""

    @property
    def stiffnesses(self) -> np.ndarray:
        """Stiffnesses of the stencils [N/m], any shape; empty for terms with a material or no stiffness."""

    @property
    def has_friction(self) -> bool:
        """True for frictional contacts, whose history `FrictionState` stores from step to step."""

    @property
    def node_interpolation(self) -> NodeInterpolation | None:
        """Interpolation of the corners from grid nodes, None if the vertices are the corners.

        `hessian_blocks` of embedded elements are those of the corners, and data packed by vertices reads
        deformation gradients from a `table`.
        """

    @property
    def translatable(self) -> np.ndarray:
        """(m,) bool: True if the energy of a stencil is invariant under translation."""

    def rows(self, incidence: Incidence, start: np.ndarray) -> Any:
        """Pack the element data for kernels according to `incidence`."""

    def tables(self, dtype: np.dtype) -> Any:
        """Arrays from which `write_incidence` packs incidences in a working precision, for dynamic terms.

        None if packing by `rows` is fast enough.
        """

    def relations(self) -> Relations | None:
        """Linear constraints Σ c x that determine the energy; None for other terms."""

    def ends(self, positions: np.ndarray) -> np.ndarray:
        """(l, 2, 3) ends of lines that represent the term in pictures [m], at vertex positions (n, 3)."""

    def hessian_blocks(self, elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
        """Compute the Hessian blocks of all stencils.

        Args:
            elements: Data packed by elements.
            u: Displacements, padded vectors (n, 4) [m].
            kind: "exact", "projected" or "bound".
            threads: Number of threads.

        Returns:
            (m, k, k, 3, 3) blocks [N/m].
        """

    def contact_forces(self, positions: np.ndarray, rest: np.ndarray) -> np.ndarray | None:
        """Contact forces on the vertices.

        Args:
            positions: (n, 3) positions [m].
            rest: (n, 3) rest positions [m].

        Returns:
            (n, 3) forces [N]; None for terms other than contacts.
        """

    def to_stored(self) -> StoredTerm:
        """Return the term without data derived from the rest positions, for storage."""


class StoredTerm(Protocol):
    """A term in storage form."""

    def restore(self, rest: np.ndarray) -> Term:
        """Restore the term for rest positions (n, 3) [m]."""


class Elemental:
    """Default implementations of `Term` for elements: no connections, no loads, no dynamic stencils."""

    ties: ClassVar[bool] = False
    loads: ClassVar[bool] = False
    presses: ClassVar[bool] = False
    encloses: ClassVar[bool] = False
    intersection_free: ClassVar[bool] = False
    deforms: ClassVar[bool] = False
    fills: ClassVar[bool] = False
    sheet: ClassVar[bool] = False
    family: ClassVar[str] = "element"
    vertices: np.ndarray

    @property
    def capacity(self) -> int | None:
        return None

    @property
    def depends_on_rest(self) -> bool:
        return False

    @property
    def stiffnesses(self) -> np.ndarray:
        return np.empty(0)

    @property
    def has_friction(self) -> bool:
        return False

    @property
    def node_interpolation(self) -> NodeInterpolation | None:
        return None

    @property
    def translatable(self) -> np.ndarray:
        return np.ones(len(self.vertices), bool)

    def tables(self, dtype: np.dtype) -> Any:
        return None

    def relations(self) -> Relations | None:
        return None

    def ends(self, positions: np.ndarray) -> np.ndarray:
        return np.empty((0, 2, 3))

    def contact_forces(self, positions: np.ndarray, rest: np.ndarray) -> np.ndarray | None:
        return None

    def to_stored(self) -> Self:
        return self

    def restore(self, rest: np.ndarray) -> Self:
        return self


@cache
def others_first(corners: int) -> np.ndarray:
    """(k, k - 1) other corners as seen from each, in an order that preserves orientation."""
    if corners == 4:
        return np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]])
    return np.array([[(c + d) % corners for d in range(1, corners)] for c in range(corners)], np.int64)


@generic
def write_incidence(tables, arrays, row, lane, element, slot):
    """Pack one incidence of a stencil, seen from `slot`, into arrays (rows, fields, lanes), like `rows`."""


@generic
def vertex_force(term, row, u, ui):
    """Force on the visiting vertices and their Hessian bounds in one packed row.

    Args:
        term: Packed data of the term.
        row: Packed row.
        u: (n, 4) displacements, padded vectors [m].
        ui: Displacements of the visiting vertices, a 3-tuple.

    Returns:
        (f, A): f [N] a 3-tuple, A [N/m] symmetric as xx yy zz xy xz yz.
    """


@generic
def force_with_safe_step(term, row, u, ui):
    """(f, A, q): `vertex_force` and the `inverse_square_safe_radius` q [1/m²] of the visiting vertices.

    For terms whose material may have a `barrier`.
    """


@generic
def energy(term, row, u, ui):
    """Energy [J] of the stencils in one packed row."""


@generic
def inversion(term, row, u, ui):
    """1 for inverted stencils of a packed row, otherwise 0; for terms with a volume."""


@generic
def step_fraction(term, row, u, ui, step):
    """Fraction, at most 1, of the visiting vertices' steps that keeps the energy of the row finite.

    For terms whose material has a `barrier` only.
    """
