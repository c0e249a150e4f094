"""Elements with a quadratic energy ½ k C(x)² of one scalar constraint: springs, hinges, areas and so on.

A kind of constraint is a subclass of `ConstraintRows` with an implementation of `constraint`, and a subclass
of `Constraint` with second derivatives. Sweeps, energies and projections of all methods follow. C depends on
the relative positions of the corners, and optionally on fixed points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from supple.algebra.matrix3 import dot, scale, sub
from supple.algebra.symmetric import axial_and_isotropic
from supple.kernels import device_function, each, gather, generic, load
from supple.terms.base.elastic import minus_sum, other_count
from supple.terms.base.term import Elemental, Elements, Incidence, energy, others_first, vertex_force

MIN_RELATIVE_STIFFNESS = 0.01
"""Smallest vertex stiffness perpendicular to the constraint gradient, relative to the stiffness along it;
keeps steps finite for otherwise unconstrained vertices."""


class ConstraintRows(NamedTuple):
    """Packed data of constraints. Subclasses define the numbers of `corners` k and `fixed` points f.

    Attributes:
        start: (batches + 1,) first row of each batch.
        others: (rows, k - 1, lanes) ids of the other corners.
        offsets: (rows, 3 (k - 1 + f), lanes) vectors from the visiting corner to the other corners, then to
            the fixed points, at zero displacement [m].
        stiffness: (rows, 1, lanes) k [N/m for lengths].
        rest: (rows, fields, lanes) parameters of C.
        material: Internal variables, see `Crease`, or ().
    """

    start: Any
    others: Any
    offsets: Any
    stiffness: Any
    rest: Any
    material: Any = ()


@dataclass(frozen=True, eq=False)
class Constraint(Elemental):
    """½ Σ k C².

    Attributes:
        vertices: (m, k) corners.
        stiffness: (m,) k.
        rest: (m, fields) parameters of C.
        positions: (n, 3) positions of all vertices at zero displacement [m].
        capacity: Largest number of constraints of a dynamic term, or None.
        depends_on_rest: True if `rest` was measured at the rest positions.
    """

    vertices: np.ndarray
    stiffness: np.ndarray
    rest: np.ndarray
    positions: np.ndarray
    capacity: int | None = None
    depends_on_rest: bool = False

    kind: ClassVar[type[ConstraintRows]]
    """Class of the packed data."""

    material: ClassVar[Any] = None

    @property
    def translatable(self) -> np.ndarray:
        return np.full(len(self.vertices), fixed_count(self.kind) == 0)

    @property
    def stiffnesses(self) -> np.ndarray:
        return self.stiffness

    def fixed_points(self) -> np.ndarray:
        """(m, f, 3) fixed points [m]; none by default."""
        return np.empty((len(self.vertices), 0, 3))

    others: ClassVar[np.ndarray | None] = None
    """(k, k - 1) other corners as seen from each, if their order matters."""

    def rest_of(self, element: np.ndarray, slot: np.ndarray) -> np.ndarray:
        """(v, fields) parameters of C for incidences of elements (v,) seen from their corners slot (v,)."""
        return self.rest[element]

    def rows(self, incidence: Incidence, start: np.ndarray) -> ConstraintRows:
        element, slot = incidence.element, incidence.slot
        order = others_first(self.vertices.shape[1]) if self.others is None else self.others
        own, ids = incidence.corners(self.vertices, order[slot])
        ends = np.concatenate([self.positions[ids], self.fixed_points()[element]], axis=1)
        offsets = ends - self.positions[own][:, None]
        return self.kind(
            start,
            incidence.pack_ids(ids),
            incidence.pack(offsets.reshape(len(element), 3 * ends.shape[1])),
            incidence.pack(self.stiffness[element, None]),
            incidence.pack(self.rest_of(element, slot)),
        )

    def hessian_blocks(self, elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
        """k (∇C ∇Cᵀ + C ∇²C), its positive semi-definite projection, or a definite bound.

        The bound adds MIN_RELATIVE_STIFFNESS in all directions to the projection.
        """
        x = self.positions[self.vertices] + u[self.vertices, :3]
        C, gradient, curvature = self.derivatives(x)
        k = self.stiffness[:, None, None, None, None]
        blocks = k * np.einsum("eai,ebj->eabij", gradient, gradient)
        blocks = blocks + k * C[:, None, None, None, None] * curvature
        if kind == "exact":
            return blocks
        blocks = positive_part(blocks)
        if kind == "bound":
            least = MIN_RELATIVE_STIFFNESS * self.stiffness[:, None] * (gradient**2).sum(axis=2)
            for corner in range(blocks.shape[1]):
                blocks[:, corner, corner] += least[:, corner, None, None] * np.eye(3)
        return blocks

    def derivatives(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """C (m,), ∇C (m, k, 3) and ∇²C (m, k, k, 3, 3) for corners at x (m, k, 3) [m]."""
        raise TypeError(f"{type(self).__name__} does not implement derivatives()")


def positive_part(blocks: np.ndarray) -> np.ndarray:
    """Positive semi-definite projection of symmetric matrices (m, k, k, 3, 3)."""
    m, k = blocks.shape[:2]
    matrices = blocks.transpose(0, 1, 3, 2, 4).reshape(m, 3 * k, 3 * k)
    values, vectors = np.linalg.eigh(0.5 * (matrices + matrices.transpose(0, 2, 1)))
    positive = np.einsum("epk,ek,eqk->epq", vectors, np.maximum(values, 0), vectors)
    return positive.reshape(m, k, 3, k, 3).transpose(0, 1, 3, 2, 4)


@generic
def constraint(rows, row, r):
    """(C, ∇, κ) of the constraints in a packed row, at r, the vectors from the visiting corner.

    r and ∇ contain the other corners, then the fixed points; the gradient of the visiting corner is minus the
    sum of ∇. κ is a curvature bound: C κ bounds C ∇²C at the visiting corner.
    """


def fixed_count(rows: Any) -> int:
    """Number of fixed points of packed constraints; also accepts their Numba type."""
    return getattr(getattr(rows, "instance_class", rows), "fixed", 0)


@device_function
def _offset(rows, row, other, ui, first):
    d, o = sub(other, ui), rows.offsets
    return load(o, row, first) + d[0], load(o, row, first + 1) + d[1], load(o, row, first + 2) + d[2]


@device_function
def corner_vector(rows, row, u, ui, k):
    """Vector from the visiting corner to the k-th other corner [m], for data with `others` and `offsets`."""
    return _offset(rows, row, gather(u, rows.others, row, k), ui, 3 * k)


_offsets = each(
    "rows, row, u, ui",
    "_offset(rows, row, gather(u, rows.others, row, i), ui, 3 * i)",
    _offset,
    gather,
    over="rows",
    count=other_count,
)

relative = each(
    "rows, row, x", "_offset(rows, row, x[i + 1], x[0], 3 * i)", _offset, over="rows", count=other_count
)
"""Vectors from the first corner to the others [m], all displaced by x, for data with `offsets`."""


@device_function
def _to_point(rows, row, ui, point):
    first, o = 3 * (rows.others.shape[1] + point), rows.offsets
    return load(o, row, first) - ui[0], load(o, row, first + 1) - ui[1], load(o, row, first + 2) - ui[2]


_to_points = each("rows, row, ui", "_to_point(rows, row, ui, i)", _to_point, over="rows", count=fixed_count)

_of_corners = each("rows, gradients", "gradients[i]", over="rows", count=other_count)


@device_function
def constraint_of_corners(rows, row, x):
    """(C, ∇C, k): value, gradients of all corners, and stiffness, for corners displaced by x."""
    C, others, _ = constraint(rows, row, relative(rows, row, x) + _to_points(rows, row, x[0]))
    return C, (minus_sum(others),) + _of_corners(rows, others), load(rows.stiffness, row, 0)  # noqa: RUF005


@device_function
def _at_vertex(rows, row, u, ui):
    """Constraints of a packed row as seen from the visiting vertices."""
    return constraint(rows, row, _offsets(rows, row, u, ui) + _to_points(rows, row, ui))


@vertex_force.of(ConstraintRows)
def _vertex_force(rows, row, u, ui):
    """f = -k C ∇C,  A = k (∇C ∇Cᵀ + max(C κ, s |∇C|²) I)."""
    C, others, curvature = _at_vertex(rows, row, u, ui)
    g, k = minus_sum(others), load(rows.stiffness, row, 0)
    across = k * max(C * curvature, MIN_RELATIVE_STIFFNESS * dot(g, g))
    return scale(-k * C, g), axial_and_isotropic(k, g, across)


@energy.of(ConstraintRows)
def _energy(rows, row, u, ui):
    C, _, _ = _at_vertex(rows, row, u, ui)
    return 0.5 * load(rows.stiffness, row, 0) * C * C
