"""Elements made of a material: Σ V ψ(F), with a deformation gradient F that is constant in each of them.

What they are, tetrahedra or triangles, is told by their corners and their `measure` of deformation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import types

from supple.kernels import (
    chosen_by_type,
    each,
    gather,
    generic,
    load,
    physics,
    select,
    stream,
    unrolled,
)
from supple.materials import (
    by_element,
    confinement,
    hessian_bound,
    psi,
    step_limit,
    traction,
    vertex_response,
)
from supple.terms.parameters import packed, placed
from supple.terms.placing import place_elements
from supple.terms.straining import from_rest, rest_gradient
from supple.terms.term import (
    Elemental,
    Visits,
    confined_force,
    energy,
    step_fraction,
    vertex_force,
)


class ElasticRows(NamedTuple):
    """start (batches + 1,): first row of each batch; others (rows, k - 1, lanes): ids of the other corners;
    rest (rows, 3 (k - 1) + 1, lanes): their shape gradients [1/m] and the rest volume [m³]. The visiting
    corner's gradient is minus the sum of theirs. Subclasses say how many corners there are; rows of another
    class, with any number of them, have the volume last."""

    start: Any
    others: Any
    rest: Any
    material: Any


@dataclass(frozen=True, eq=False)
class Elastic(Elemental):
    """Σₑ Vₑ ψ(Fₑ): vertices (m, k); gradients (m, k, 3) of the shape functions [1/m]; volume (m,) [m³];
    material: parameters are the same for all elements, or arrays with an entry for each."""

    vertices: np.ndarray
    gradients: np.ndarray
    volume: np.ndarray
    material: Any

    kind: ClassVar[type[ElasticRows]]
    """What kernels get."""

    deforms: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "material", by_element(self.material, len(self.vertices)))

    def rows(self, visits: Visits, start: np.ndarray) -> ElasticRows:
        ids, rest = place_elements(visits, self.vertices, self.gradients, self.volume)
        return self.kind(start, ids, rest, placed(self.material, visits.elements, visits.dtype))


def corner_count(rows: Any) -> int:
    """How many corners the elements of rows have, of their type in kernels too."""
    return getattr(rows, "instance_class", type(rows)).corners


def other_count(rows: Any) -> int:
    """How many besides the visiting one."""
    return corner_count(rows) - 1


@generic
def measure(rows, x, g):
    """F, a 9-tuple, from the displacements x [m] of the corners and their shape gradients g [1/m]."""


@physics
def _vector(data, row, first):
    return stream(data, row, first), stream(data, row, first + 1), stream(data, row, first + 2)


_other_gradients = each(
    "rows, row", "_vector(rows.rest, row, 3 * i)", _vector, over="rows", count=other_count
)

_other_corners = each(
    "rows, row, u", "gather(u, rows.others, row, i)", gather, over="rows", count=other_count
)

minus_sum = unrolled(
    "a",
    lambda n: ", ".join(f"-({' + '.join(f'a[{k}][{axis}]' for k in range(n))})" for axis in range(3)),
    over="a",
)
"""-Σ aᵢ."""


displacement_gradient = unrolled(
    "x, g",
    lambda n: ", ".join(
        " + ".join(f"(x[{k}][{i}] - x[0][{i}]) * g[{k}][{j}]" for k in range(1, n))
        for i in range(3)
        for j in range(3)
    ),
    over="x",
)
"""Σ xₐ gₐᵀ, a 9-tuple, of what the corners have: without rounding that grows with the distance from 0."""


@rest_gradient.of(ElasticRows)
def _identity(rows, g):
    zero = 0.0 * g[0][0]
    return (zero + 1.0, zero, zero, zero, zero + 1.0, zero, zero, zero, zero + 1.0)


@physics
def shape_gradients(rows, row):
    """Shape gradients of all corners [1/m], the visiting one's first: they sum to zero."""
    others = _other_gradients(rows, row)
    return (minus_sum(others),) + others  # noqa: RUF005


@physics
def corner_vectors(rows, row, u, ui):
    """The vectors of all corners, the visiting one's first."""
    return (ui,) + _other_corners(rows, row, u)  # noqa: RUF005


@physics
def corners(rows, row, u, ui):
    """Displacements of all corners from where their element is undeformed, the visiting one's first."""
    return from_rest(rows, row, corner_vectors(rows, row, u, ui))


def rest_volume(rows: Any, row: Any) -> Any:
    """V [m³], 0 in lanes without an element."""


@chosen_by_type(rest_volume)
def _rest_volume(rows, row):
    if not hasattr(rows.instance_class, "corners"):
        return lambda rows, row: load(rows.rest, row, rows.rest.shape[1] - 1)
    place = 3 * other_count(rows)
    return lambda rows, row: load(rows.rest, row, place)


def force_volume(rows: Any, row: Any, g: Any) -> Any:
    """V [m³] as vertex forces find it soonest."""


@chosen_by_type(force_volume)
def _force_volume(rows, row, g):
    """A device computes it sooner than it loads a further number, where the elements know how."""
    computed = volume_of.known(rows.instance_class) and isinstance(row, types.BaseTuple)
    return (
        (lambda rows, row, g: volume_of(rows, g)) if computed else lambda rows, row, g: rest_volume(rows, row)
    )


@generic
def volume_of(rows, g):
    """V [m³] from shape gradients, 0 where they vanish; for elements whose gradients tell it."""


@physics
def material_at(rows, row):
    """The material of the elements in a row."""
    return packed(rows.material, row, rest_volume(rows, row))


def response(material: Any, F: Any, g: Any) -> Any:
    """(P g, A, q) for the shape gradient g of a vertex; q is 0 where ψ is finite everywhere."""


@chosen_by_type(response, leads_on=True)
def _response(material, F, g):
    if vertex_response.known(material.instance_class):
        return lambda material, F, g: vertex_response(material, F, g)
    if material.instance_class.barrier:
        return lambda material, F, g: (
            traction(material, F, g),
            hessian_bound(material, F, g, g),
            confinement(material, F, g),
        )
    return lambda material, F, g: (traction(material, F, g), hessian_bound(material, F, g, g), 0.0 * F[0])


@vertex_force.of(ElasticRows)
def _vertex_force(rows, row, u, ui):
    f, A, _ = confined_force(rows, row, u, ui)
    return f, A


@confined_force.of(ElasticRows)
def _confined_force(rows, row, u, ui):
    """f = -V P g,  A = V hessian_bound(F, g, g)."""
    g = shape_gradients(rows, row)
    F = measure(rows, corners(rows, row, u, ui), g)
    return of_volume(force_volume(rows, row, g), response(material_at(rows, row), F, g[0]))


@physics
def of_volume(V, found):
    """(f, A, q) of elements with a volume V [m³] whose material gives (P g, A, q) per volume; A becomes
    xx yy zz xy xz yz."""
    f, A, q = found
    return (
        (-V * f[0], -V * f[1], -V * f[2]),
        (V * A[0], V * A[4], V * A[8], V * A[1], V * A[2], V * A[5]),
        q,
    )


@generic
def deformation_at(rows, row, u, ui):
    """F of the elements in one row of visits."""


@deformation_at.of(ElasticRows)
def _deformation_at(rows, row, u, ui):
    return measure(rows, corners(rows, row, u, ui), shape_gradients(rows, row))


@energy.of(ElasticRows)
def _energy(rows, row, u, ui):
    V = rest_volume(rows, row)
    return select(V > 0.0, V * psi(material_at(rows, row), deformation_at(rows, row, u, ui)), V)


@step_fraction.of(ElasticRows)
def _step_fraction(rows, row, u, ui, step):
    g = shape_gradients(rows, row)
    return step_limit(material_at(rows, row), measure(rows, corners(rows, row, u, ui), g), g[0], step)
