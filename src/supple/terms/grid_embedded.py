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
    counters_for,
    device_function,
    do,
    gather,
    is_leader,
    item_number,
    overload_by_type,
    pack_like,
    parallel_for,
    row_address,
    run,
    scatter,
    shared_lane_sum,
    stream,
    where,
)
from supple.materials import psi, step_limit
from supple.terms.base.elastic import (
    Elastic,
    deformation_at,
    material_at,
    response,
    rest_volume,
    scale_by_volume,
)
from supple.terms.base.packed_elements import pack_elements
from supple.terms.base.packed_parameters import pack_material
from supple.terms.base.tensors import contract_tensors, load_matrix, tensors_of
from supple.terms.base.term import (
    Elements,
    Incidence,
    NodeInterpolation,
    energy,
    force_with_safe_step,
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
        table_rows: Rows of the table of F, see `NodeRows`.
        material: Material parameters.
    """

    start: Any
    others: Any
    rest: Any
    strain: Any
    table_rows: Any
    material: Any


class NodeRows(NamedTuple):
    """Elements packed by nodes.

    Attributes:
        start: (batches + 1,) first row of each batch.
        rest: (rows, 4, lanes) G of the visiting node [1/m] and the rest volume [m³].
        table_rows: (rows, 3, lanes) rows of the element's F in the table.
        table: (3 m + 3, 4) rows of F of all elements, padded vectors.
        material: Material parameters.
    """

    start: Any
    rest: Any
    table_rows: Any
    table: Any
    material: Any


@dataclass(frozen=True, eq=False)
class EmbeddedElasticity(Elastic):
    """Σₑ Vₑ ψ(F₀ + Σᵢ uᵢ Gᵢᵀ).

    Attributes:
        vertices: (m, k) nodes of each element; unused slots repeat the first node.
        gradients: (m, k, 3) gradients G [1/m], 0 in unused slots.
        start: (m, 3, 3) F₀, at zero displacement of the nodes.
        interpolation: Interpolation of the corners from nodes.
    """

    start: np.ndarray
    interpolation: NodeInterpolation

    name: ClassVar[str] = "tetrahedra in grid contact"

    @property
    def node_interpolation(self) -> NodeInterpolation:
        return self.interpolation

    def rows(self, incidence: Incidence, start: np.ndarray) -> Any:
        m, material = len(self.vertices), pack_material(self.material, incidence.elements, incidence.dtype)
        first = 3 * np.where(incidence.elements < 0, m, incidence.elements)[:, None]
        table_rows = np.ascontiguousarray(first + np.arange(3)[:, None], np.int32)
        if incidence.by_vertices:
            gradients = self.gradients[incidence.element, incidence.slot]
            rest = np.column_stack([gradients, self.volume[incidence.element]])
            table = np.tile(np.eye(3, 4, dtype=incidence.dtype), (m + 1, 1))  # the last one for empty lanes
            return NodeRows(start, incidence.pack(rest), table_rows, table, material)
        ids, rest = pack_elements(incidence, self.vertices, self.gradients, self.volume)
        strain = incidence.pack((self.start - np.eye(3)).reshape(-1, 9)[incidence.element])
        return EmbeddedRows(start, ids, rest, strain, table_rows, material)

    def deformations(self, displacements: np.ndarray) -> np.ndarray:
        """F (m, 3, 3) at displacements (n, 3) [m] of all nodes."""
        return self.start + np.einsum("eai,eaj->eij", displacements[self.vertices], self.gradients)

    def hessian_blocks(self, elements: Elements, u: np.ndarray, kind: str, threads: int) -> np.ndarray:
        """(m, 4, 4, 3, 3) blocks of the corners, Kᵃᵇᵢₖ = V Σ Cᵢⱼₖₗ gᵃⱼ gᵇₗ [N/m].

        C is ∂²ψ/∂F∂F, its positive semi-definite projection, or its bound.
        """
        tensors = tensors_of(elements, u, kind, threads)
        blocks = np.empty((len(self.volume), 4, 4, 3, 3))
        gradients = self.interpolation.gradients
        run(contract_tensors, threads, tensors, gradients, self.volume, blocks, counters_for(1))
        return blocks


@device_function
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
def _load_deformation(rows, row, u, ui):
    a, b, c = (
        gather(rows.table, rows.table_rows, row, 0),
        gather(rows.table, rows.table_rows, row, 1),
        gather(rows.table, rows.table_rows, row, 2),
    )
    return (a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2])


@device_function
def _store_deformation(rows, row, table, F):
    scatter(table, rows.table_rows, row, 0, (F[0], F[1], F[2]))
    scatter(table, rows.table_rows, row, 1, (F[3], F[4], F[5]))
    scatter(table, rows.table_rows, row, 2, (F[6], F[7], F[8]))


class Deform(NamedTuple):
    """Write F of the elements in a row, at displacements u, to the table."""

    own: Any
    rows: Any
    table: Any
    u: Any


@do.of(Deform)
def _deform(work, row):
    rows, u = work.rows, work.u
    _store_deformation(rows, row, work.table, deformation_at(rows, row, u, gather(u, work.own, row, 0)))


def deform_all(works: Any, team: Any, phase: int) -> int:
    """Execute a tuple of `Deform`, one phase each; returns the next phase."""
    return phase


@overload_by_type(deform_all, control_flow=True)
def _deform_all(works, team, phase):
    if len(works) == 0:
        return lambda works, team, phase: phase

    def first_then_rest(works, team, phase):
        parallel_for(team, phase, 0, len(works[0].own), works[0])
        return deform_all(works[1:], team, phase + 1)

    return first_then_rest


def update_deformations(terms: Any, own: Any, batch: Any, u: Any, previous_u: Any) -> None:
    """Update the table of F after a batch of nodes has moved from `previous_u` to its displacements in u."""


@overload_by_type(update_deformations)
def _update_deformations(terms, own, batch, u, previous_u):
    if not any(getattr(rows, "instance_class", None) is NodeRows for rows in terms):
        return lambda terms, own, batch, u, previous_u: None

    def update(terms, own, batch, u, previous_u):
        step = sub(gather(u, own, batch, 0), previous_u)
        share = 1.0 if is_leader(batch) else 0.0  # surely read by its writer only
        (x,) = shared_lane_sum(batch, (share * step[0],))
        (y,) = shared_lane_sum(batch, (share * step[1],))
        (z,) = shared_lane_sum(batch, (share * step[2],))
        _update_tables(terms, batch, (x, y, z))

    return update


def _update_tables(terms: Any, batch: Any, step: Any) -> None:
    """Update the table of F by a step [m] of the nodes."""


@overload_by_type(_update_tables)
def _choose_update(terms, batch, step):
    if len(terms) == 0:
        return lambda terms, batch, step: None
    if terms[0].instance_class is not NodeRows:
        return lambda terms, batch, step: _update_tables(terms[1:], batch, step)

    def first_then_rest(terms, batch, step):
        rows = terms[0]
        for k in range(rows.start[item_number(batch)], rows.start[item_number(batch) + 1]):
            row = row_address(batch, k)
            F = plus9(deformation_at(rows, row, step, step), outer(step, gradient_of(rows, row, 0)))
            _store_deformation(rows, row, rows.table, F)
        _update_tables(terms[1:], batch, step)

    return first_then_rest


@vertex_force.of(NodeRows)
def _vertex_force(rows, row, u, ui):
    f, A, _ = force_with_safe_step(rows, row, u, ui)
    return f, A


@force_with_safe_step.of(NodeRows)
def _confined_force(rows, row, u, ui):
    """f = -V P G,  A = V hessian_bound(F, G, G)."""
    F = deformation_at(rows, row, u, ui)
    return scale_by_volume(
        rest_volume(rows, row), response(material_at(rows, row), F, gradient_of(rows, row, 0))
    )


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
