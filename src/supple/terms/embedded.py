"""Grid-embedded elements: Σ V ψ(F) over tetrahedra whose corners are interpolated from grid nodes.

A corner p of an element moves by Σᵢ wᵢₚ uᵢ, so that F = F₀ + Σᵢ uᵢ Gᵢᵀ with Gᵢ = Σₚ wᵢₚ gₚ, the formula of
the element with the nodes as corners. A tetrahedron has 8 to 32 nodes, so kernels loop over them instead of
unrolling. Vertex updates would read all nodes of an element once per node. Instead, a table stores F of every
element; vertex updates read and update it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from supple.algebra.matrix3 import add_diagonal, det, outer, plus9, sub
from supple.kernels import (
    chosen_by_type,
    counters_for,
    do,
    each_item,
    gather,
    leads,
    number,
    pack_like,
    physics,
    row_at,
    run,
    scatter,
    stream,
    sum_shares,
    where,
)
from supple.materials import psi, step_limit
from supple.terms.base.elastic import (
    Elastic,
    deformation_at,
    material_at,
    of_volume,
    response,
    rest_volume,
)
from supple.terms.base.parameters import placed
from supple.terms.base.placement import place_elements
from supple.terms.base.tensors import contract_tensors, load_matrix, tensors_of
from supple.terms.base.term import (
    Carriage,
    Elements,
    Visits,
    confined_force,
    energy,
    inversion,
    step_fraction,
    vertex_force,
)


class EmbeddedRows(NamedTuple):
    """Elements packed by elements.

    Attributes:
        start: (batches + 1,) first row of each batch.
        others: (rows, k - 1, lanes) ids of the other nodes.
        rest: (rows, 3 (k - 1) + 1, lanes) their gradients G [1/m] and the rest volume [m³]. The first node's
            gradient is minus their sum.
        strain: (rows, 9, lanes) F₀ - I.
        places: Rows of the table of F, see `NodeRows`.
        material: Material parameters.
    """

    start: Any
    others: Any
    rest: Any
    strain: Any
    places: Any
    material: Any


class NodeRows(NamedTuple):
    """Elements packed by nodes.

    Attributes:
        start: (batches + 1,) first row of each batch.
        rest: (rows, 4, lanes) G of the visiting node [1/m] and the rest volume [m³].
        places: (rows, 3, lanes) rows of the element's F in the table.
        table: (3 m + 3, 4) rows of F of all elements, padded vectors.
        material: Material parameters.
    """

    start: Any
    rest: Any
    places: Any
    table: Any
    material: Any


@dataclass(frozen=True, eq=False)
class EmbeddedElasticity(Elastic):
    """Σₑ Vₑ ψ(F₀ + Σᵢ uᵢ Gᵢᵀ).

    Attributes:
        vertices: (m, k) nodes of each element; unused slots repeat the first node.
        gradients: (m, k, 3) gradients G [1/m], 0 in unused slots.
        start: (m, 3, 3) F₀, at zero displacement of the nodes.
        hanging: Interpolation of the corners from nodes.
    """

    start: np.ndarray
    hanging: Carriage

    name: ClassVar[str] = "tetrahedra that a grid carries"

    @property
    def carriage(self) -> Carriage:
        return self.hanging

    def rows(self, visits: Visits, start: np.ndarray) -> Any:
        m, material = len(self.vertices), placed(self.material, visits.elements, visits.dtype)
        first = 3 * np.where(visits.elements < 0, m, visits.elements)[:, None]
        places = np.ascontiguousarray(first + np.arange(3)[:, None], np.int32)
        if visits.by_vertices:
            gradients = self.gradients[visits.element, visits.slot]
            rest = np.column_stack([gradients, self.volume[visits.element]])
            table = np.tile(np.eye(3, 4, dtype=visits.dtype), (m + 1, 1))  # the last one for empty lanes
            return NodeRows(start, visits.place(rest), places, table, material)
        ids, rest = place_elements(visits, self.vertices, self.gradients, self.volume)
        strain = visits.place((self.start - np.eye(3)).reshape(-1, 9)[visits.element])
        return EmbeddedRows(start, ids, rest, strain, places, material)

    def deformations(self, displacements: np.ndarray) -> np.ndarray:
        """F (m, 3, 3) at displacements (n, 3) [m] of all nodes."""
        return self.start + np.einsum("eai,eaj->eij", displacements[self.vertices], self.gradients)

    def hessian_blocks(self, elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
        """(m, 4, 4, 3, 3) blocks of the corners, Kᵃᵇᵢₖ = V Σ Cᵢⱼₖₗ gᵃⱼ gᵇₗ [N/m].

        C is ∂²ψ/∂F∂F, its positive semi-definite projection, or its bound.
        """
        tensors = tensors_of(elements, u, kind, threads)
        blocks = np.empty((len(self.volume), 4, 4, 3, 3))
        gradients = self.hanging.gradients
        run(contract_tensors, threads, tensors, gradients, self.volume, blocks, counters_for(1))
        return blocks


@physics
def gradient_of(rows, row, slot):
    """G of another node of the elements in a row [1/m]."""
    first = 3 * slot
    return stream(rows.rest, row, first), stream(rows.rest, row, first + 1), stream(rows.rest, row, first + 2)


@deformation_at.of(EmbeddedRows)
def _deformation_at(rows, row, u, ui):
    """F = F₀ + Σ (uₐ - uᵢ) Gₐᵀ over the other nodes."""
    F = add_diagonal(load_matrix(rows.strain, row), 1.0)
    for slot in range(rows.others.shape[1]):
        F = plus9(F, outer(sub(gather(u, rows.others, row, slot), ui), gradient_of(rows, row, slot)))
    return F


@deformation_at.of(NodeRows)
def _looked_up(rows, row, u, ui):
    a, b, c = (
        gather(rows.table, rows.places, row, 0),
        gather(rows.table, rows.places, row, 1),
        gather(rows.table, rows.places, row, 2),
    )
    return (a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2])


@physics
def _put(rows, row, table, F):
    scatter(table, rows.places, row, 0, (F[0], F[1], F[2]))
    scatter(table, rows.places, row, 1, (F[3], F[4], F[5]))
    scatter(table, rows.places, row, 2, (F[6], F[7], F[8]))


class Deform(NamedTuple):
    """Write F of the elements in a row, at displacements u, to the table."""

    own: Any
    rows: Any
    table: Any
    u: Any


@do.of(Deform)
def _deform(work, row):
    rows, u = work.rows, work.u
    _put(rows, row, work.table, deformation_at(rows, row, u, gather(u, work.own, row, 0)))


def deform_all(works: Any, team: Any, phase: int) -> int:
    """Execute a tuple of `Deform`, one phase each; returns the next phase."""
    return phase


@chosen_by_type(deform_all, leads_on=True)
def _deform_all(works, team, phase):
    if len(works) == 0:
        return lambda works, team, phase: phase

    def first_then_rest(works, team, phase):
        each_item(team, phase, 0, len(works[0].own), works[0])
        return deform_all(works[1:], team, phase + 1)

    return first_then_rest


def keep_up(terms: Any, own: Any, batch: Any, u: Any, before: Any) -> None:
    """Update the table of F after a batch of nodes has moved from `before` to its displacements in u."""


@chosen_by_type(keep_up)
def _keep_up(terms, own, batch, u, before):
    if not any(getattr(rows, "instance_class", None) is NodeRows for rows in terms):
        return lambda terms, own, batch, u, before: None

    def moved(terms, own, batch, u, before):
        step = sub(gather(u, own, batch, 0), before)
        share = 1.0 if leads(batch) else 0.0  # surely read by its writer only
        (x,) = sum_shares(batch, (share * step[0],))
        (y,) = sum_shares(batch, (share * step[1],))
        (z,) = sum_shares(batch, (share * step[2],))
        _carry_along(terms, batch, (x, y, z))

    return moved


def _carry_along(terms: Any, batch: Any, step: Any) -> None:
    """Update the table of F by a step [m] of the nodes."""


@chosen_by_type(_carry_along)
def _choose_carrying(terms, batch, step):
    if len(terms) == 0:
        return lambda terms, batch, step: None
    if terms[0].instance_class is not NodeRows:
        return lambda terms, batch, step: _carry_along(terms[1:], batch, step)

    def first_then_rest(terms, batch, step):
        rows = terms[0]
        for k in range(rows.start[number(batch)], rows.start[number(batch) + 1]):
            row = row_at(batch, k)
            F = plus9(deformation_at(rows, row, step, step), outer(step, gradient_of(rows, row, 0)))
            _put(rows, row, rows.table, F)
        _carry_along(terms[1:], batch, step)

    return first_then_rest


@vertex_force.of(NodeRows)
def _vertex_force(rows, row, u, ui):
    f, A, _ = confined_force(rows, row, u, ui)
    return f, A


@confined_force.of(NodeRows)
def _confined_force(rows, row, u, ui):
    """f = -V P G,  A = V hessian_bound(F, G, G)."""
    F = deformation_at(rows, row, u, ui)
    return of_volume(rest_volume(rows, row), response(material_at(rows, row), F, gradient_of(rows, row, 0)))


@step_fraction.of(NodeRows)
def _step_fraction(rows, row, u, ui, step):
    F = deformation_at(rows, row, u, ui)
    return step_limit(material_at(rows, row), F, gradient_of(rows, row, 0), step)


@energy.of(EmbeddedRows)
def _energy(rows, row, u, ui):
    V = rest_volume(rows, row)
    return where(V > 0.0, V * psi(material_at(rows, row), deformation_at(rows, row, u, ui)), V)


@inversion.of(EmbeddedRows)
def _inversion(rows, row, u, ui):
    J = det(deformation_at(rows, row, u, ui))
    return where(J < 0.0, pack_like(1.0, J), pack_like(0.0, J))
