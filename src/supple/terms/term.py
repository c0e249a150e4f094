"""What every kind of energy term provides: to the solvers on the host, and to kernels as batched rows.

A term's rows are a NamedTuple of arrays with one *visit* per lane: a stencil seen from one of its vertices,
which comes first and is called the visiting vertex. Two arrangements of the same rows serve every solver:
by vertices (rows `start[b]` to `start[b + 1]` hold the visits of the 16 or 8 vertices of batch b) and by
elements (one visit per stencil).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from supple.kernels import generic


@dataclass(frozen=True)
class Visits:
    """Where visits go: visit k is stencil `element[k]` seen from slot `slot[k]`, stored at
    (`row[k]`, `lane[k]`) of arrays with `rows` rows and `lanes` lanes. Places without a visit keep `own`
    (rows, lanes) in all slots and zeros elsewhere, which add no energy. by_vertices: whether each stencil is
    visited from all of its vertices."""

    element: np.ndarray
    slot: np.ndarray
    row: np.ndarray
    lane: np.ndarray
    own: np.ndarray
    dtype: np.dtype
    by_vertices: bool = False

    def place(self, values: np.ndarray) -> np.ndarray:
        """(k, fields) values of the visits as (rows, fields, lanes) in the working precision."""
        out = np.zeros((len(self.own), values.shape[1], self.own.shape[1]), self.dtype)
        out[self.row, :, self.lane] = values
        return out

    @cached_property
    def elements(self) -> np.ndarray:
        """(rows, lanes) the stencil at every place, -1 where there is no visit."""
        out = np.full(self.own.shape, -1, np.int32)
        out[self.row, self.lane] = self.element
        return out

    def corners(self, vertices: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ids (k,) of the visiting corners of stencils with vertices (m, c), and those (k, c - 1) of the
        others, in the order of their slots `others` (k, c - 1)."""
        stencil = vertices[self.element]
        return stencil[np.arange(len(stencil)), self.slot], np.take_along_axis(stencil, others, axis=1)

    def place_ids(self, ids: np.ndarray) -> np.ndarray:
        """(k, slots) vertex ids of the visits as (rows, slots, lanes)."""
        out = np.repeat(self.own[:, None, :], ids.shape[1], axis=1)
        out[self.row, :, self.lane] = ids
        return np.ascontiguousarray(out, np.int32)


@dataclass(frozen=True)
class Elements:
    """A term arranged by elements: own (rows, 1, lanes) the first vertex of each stencil; the rows; element
    (rows, lanes): which stencil is where, or -1."""

    own: np.ndarray
    rows: Any
    element: np.ndarray


class Carriage(NamedTuple):
    """How the corners of elements hang on nodes that carry them: corners (m, 4), numbers of points, and their
    shape gradients (m, 4, 3) [1/m]; nodes (n, 8) that carry each point, with weights (n, 8)."""

    corners: np.ndarray
    gradients: np.ndarray
    nodes: np.ndarray
    weights: np.ndarray


class Relations(NamedTuple):
    """coefficients (m, k): the c of Σ c x, on which alone the energy of each stencil depends; stiffness (m,):
    the least in any direction that a change of that sum meets [N/m]."""

    coefficients: np.ndarray
    stiffness: np.ndarray


class Term(Protocol):
    """One kind of energy over stencils of vertices."""

    name: ClassVar[str]
    """What its stencils are called in sentences."""

    ties: ClassVar[bool]
    """Whether it ties points together, rather than being what bodies are made of."""

    loads: ClassVar[bool]
    """Whether it acts on bodies from outside, rather than being stored in them."""

    presses: ClassVar[bool]
    """Whether it is a pressure on triangles."""

    encloses: ClassVar[bool]
    """Whether it is gas sealed in its triangles, whose pressure follows their volume, see `SealedGas`."""

    confines: ClassVar[bool]
    """Whether it is contacts that let nothing pass."""

    deforms: ClassVar[bool]
    """Whether its elements have a deformation gradient: `volume` (m,) [m³] and `gradients` (m, k, 3) [1/m] of
    shape functions."""

    fills: ClassVar[bool]
    """Whether its elements deform and fill space, as tetrahedra do: F = Σ xₐ gₐᵀ, which `deformations` gives,
    and det F < 0 where they are turned inside out."""

    sheet: ClassVar[bool]
    """Whether it is a membrane, which can be of other triangles (`remeshed`), and `thinner`."""

    family: ClassVar[str]
    """With what its stencils are counted: element, weak_constraint, spring, cable, contact or load."""

    @property
    def material(self) -> Any:
        """What its elements are made of, None where that is not what they are."""

    @property
    def vertices(self) -> np.ndarray:
        """(m, k) vertex ids of the stencils."""

    @property
    def depends_on_rest(self) -> bool:
        """Whether it ties points by numbers, such as weights or lengths, measured at the rest positions."""

    @property
    def capacity(self) -> int | None:
        """How many stencils there is room for where they may come and go, see `Problem.refresh`; None where
        they stay."""

    @property
    def stiffnesses(self) -> np.ndarray:
        """[N/m] of its stencils, in any shape; none where a material has them, or nothing is stiff."""

    @property
    def rough(self) -> bool:
        """Whether it is contacts that may rub, which `grip` carries on from step to step."""

    @property
    def carriage(self) -> Carriage | None:
        """How its elements hang on vertices that carry them, where these are not their corners. Then its
        `hessian_blocks` are those of the corners, and rows by vertices look deformations up in a `table`."""

    @property
    def translatable(self) -> np.ndarray:
        """(m,) bool: whether translating a whole stencil leaves its energy as it is."""

    def rows(self, visits: Visits, start: np.ndarray) -> Any:
        """The term's data for kernels, arranged by `visits`."""

    def tables(self, dtype: np.dtype) -> Any:
        """What `put_visit` makes its rows of in a working precision, a NamedTuple of arrays, where stencils
        that come and go are many; None where `rows` is quick enough."""

    def relations(self) -> Relations | None:
        """What it keeps as it is, where the energy of a stencil depends on one sum Σ c x; None elsewhere."""

    def ends(self, positions: np.ndarray) -> np.ndarray:
        """(l, 2, 3) [m] ends of the lines that show it in pictures, for vertices at positions (n, 3)."""

    def hessian_blocks(self, elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
        """(m, k, k, 3, 3) second derivatives at displacements u; kind is exact, projected or bound."""

    def contact_forces(self, positions: np.ndarray, rest: np.ndarray) -> np.ndarray | None:
        """(n, 3) [N] of contacts on vertices at positions (n, 3) [m], at rest at (n, 3); None for terms that
        are no contacts."""

    def bare(self) -> Bare:
        """What it is without what follows from the rest positions, which are stored once."""


class Bare(Protocol):
    """A term as it is stored."""

    def at(self, rest: np.ndarray) -> Term:
        """The term of vertices at rest positions (n, 3) [m]."""


class Elemental:
    """What a term is unless it says otherwise: nothing is tied, and nothing but shape costs energy."""

    ties: ClassVar[bool] = False
    loads: ClassVar[bool] = False
    presses: ClassVar[bool] = False
    encloses: ClassVar[bool] = False
    confines: ClassVar[bool] = False
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
    def rough(self) -> bool:
        return False

    @property
    def carriage(self) -> Carriage | None:
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

    def bare(self) -> Self:
        return self

    def at(self, rest: np.ndarray) -> Self:
        return self


@cache
def others_first(corners: int) -> np.ndarray:
    """(k, k - 1) the other corners as seen from each, in an order that keeps a stencil's orientation."""
    if corners == 4:
        return np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]])
    return np.array([[(c + d) % corners for d in range(1, corners)] for c in range(corners)], np.int64)


@generic
def put_visit(tables, arrays, row, lane, element, slot):
    """Write what a term's `rows` have where a stencil is seen from one of its slots into a place of their
    arrays (rows, fields, lanes)."""


@generic
def vertex_force(term, row, u, ui):
    """Force on the visiting vertex and its Hessian bound in one row of visits.

    u (n, 4) displacement records [m], ui those of the visiting vertices, a 3-tuple. Returns (f, A): f [N] a
    3-tuple, A [N/m] symmetric as xx yy zz xy xz yz.
    """


@generic
def confined_force(term, row, u, ui):
    """(f, A, q): what `vertex_force` gives, and the `confinement` q [1/m²] of the visiting vertex; for terms
    whose material may have a `barrier`."""


@generic
def energy(term, row, u, ui):
    """Energy [J] of the stencils in one row of visits."""


@generic
def inversion(term, row, u, ui):
    """1 where the stencils in one row of visits are turned inside out, 0 elsewhere; for terms with a
    volume."""


@generic
def step_fraction(term, row, u, ui, step):
    """The fraction, at most 1, of the visiting vertex's step that keeps the energy of the row finite; for
    terms whose material has a `barrier` only."""
