"""Elements with a material: Σ V ψ(F), with a constant deformation gradient F per element.

Tetrahedra and triangles differ in the number of corners and in `measure`, which computes F.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import types

from supple.kernels import (
    device_function,
    each,
    gather,
    generic,
    load,
    overload_by_type,
    stream,
    unroll,
    where,
)
from supple.materials import (
    by_element,
    hessian_bound,
    inverse_square_safe_radius,
    psi,
    step_limit,
    traction,
    vertex_response,
)
from supple.terms.base.packed_elements import pack_elements
from supple.terms.base.packed_parameters import load_material, pack_material
from supple.terms.base.term import (
    Elemental,
    Incidence,
    energy,
    force_with_safe_step,
    step_fraction,
    vertex_force,
)


@generic
def rest_gradient(rows, g):
    """Σ Xₐ gₐᵀ of the rest positions, a 9-tuple, to which `displacement_gradient` is added."""


@generic
def from_rest(rows, row, x):
    """Displacements of the corners from the undeformed element, up to a translation.

    Args:
        rows: Packed element data.
        row: Packed row.
        x: Displacements from the initial positions [m]. They are returned unchanged unless the initial shape
            is strained.
    """


@generic
def from_start(rows, row, x):
    """Inverse of `from_rest`."""


@from_rest.of(tuple)
def _from_rest(rows, row, x):
    return x


@from_start.of(tuple)
def _from_start(rows, row, x):
    return x


class ElasticRows(NamedTuple):
    """Packed data of elastic elements. Subclasses define the number of `corners` k.

    Attributes:
        start: (batches + 1,) first row of each batch.
        others: (rows, k - 1, lanes) ids of the other corners.
        rest: (rows, 3 (k - 1) + 1, lanes) shape gradients of the other corners [1/m], then the rest volume
            [m³]. The visiting corner's gradient is minus their sum. Other classes have the volume last, too.
        material: Material parameters, uniform or packed.
    """

    start: Any
    others: Any
    rest: Any
    material: Any


@dataclass(frozen=True, eq=False)
class Elastic(Elemental):
    """Σₑ Vₑ ψ(Fₑ).

    Attributes:
        vertices: (m, k) vertices of the elements.
        gradients: (m, k, 3) shape gradients [1/m].
        volume: (m,) rest volumes [m³].
        material: Material with parameters uniform or per element.
    """

    vertices: np.ndarray
    gradients: np.ndarray
    volume: np.ndarray
    material: Any

    kind: ClassVar[type[ElasticRows]]
    """Class of the packed data."""

    deforms: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "material", by_element(self.material, len(self.vertices)))

    def rows(self, incidence: Incidence, start: np.ndarray) -> ElasticRows:
        ids, rest = pack_elements(incidence, self.vertices, self.gradients, self.volume)
        return self.kind(start, ids, rest, pack_material(self.material, incidence.elements, incidence.dtype))


def corner_count(rows: Any) -> int:
    """Number of corners of the packed elements; also accepts their Numba type."""
    return getattr(rows, "instance_class", type(rows)).corners


def other_count(rows: Any) -> int:
    """Number of corners besides the visiting one."""
    return corner_count(rows) - 1


@generic
def measure(rows, x, g):
    """F, a 9-tuple, from the corner displacements x [m] and shape gradients g [1/m]."""


@device_function
def _vector(data, row, first):
    return stream(data, row, first), stream(data, row, first + 1), stream(data, row, first + 2)


_other_gradients = each(
    "rows, row", "_vector(rows.rest, row, 3 * i)", _vector, over="rows", count=other_count
)

_other_corners = each(
    "rows, row, u", "gather(u, rows.others, row, i)", gather, over="rows", count=other_count
)

minus_sum = unroll(
    "a",
    lambda n: ", ".join(f"-({' + '.join(f'a[{k}][{axis}]' for k in range(n))})" for axis in range(3)),
    over="a",
)
"""-Σ aᵢ."""


displacement_gradient = unroll(
    "x, g",
    lambda n: ", ".join(
        " + ".join(f"(x[{k}][{i}] - x[0][{i}]) * g[{k}][{j}]" for k in range(1, n))
        for i in range(3)
        for j in range(3)
    ),
    over="x",
)
"""Σ xₐ gₐᵀ of corner vectors x, a 9-tuple; rounding is independent of the distance from the origin."""


@rest_gradient.of(ElasticRows)
def _identity(rows, g):
    zero = 0.0 * g[0][0]
    return (zero + 1.0, zero, zero, zero, zero + 1.0, zero, zero, zero, zero + 1.0)


@device_function
def shape_gradients(rows, row):
    """Shape gradients of all corners [1/m], starting with the visiting one; they sum to zero."""
    others = _other_gradients(rows, row)
    return (minus_sum(others),) + others  # noqa: RUF005


@device_function
def corner_vectors(rows, row, u, ui):
    """Vectors of all corners, starting with the visiting one."""
    return (ui,) + _other_corners(rows, row, u)  # noqa: RUF005


@device_function
def corners(rows, row, u, ui):
    """Displacements of all corners from the undeformed element, starting with the visiting one."""
    return from_rest(rows, row, corner_vectors(rows, row, u, ui))


def rest_volume(rows: Any, row: Any) -> Any:
    """V [m³], 0 in lanes without an element."""


@overload_by_type(rest_volume)
def _rest_volume(rows, row):
    if not hasattr(rows.instance_class, "corners"):
        return lambda rows, row: load(rows.rest, row, rows.rest.shape[1] - 1)
    volume_field = 3 * other_count(rows)
    return lambda rows, row: load(rows.rest, row, volume_field)


def force_volume(rows: Any, row: Any, g: Any) -> Any:
    """V [m³] for vertex forces, computed or loaded, whichever is faster."""


@overload_by_type(force_volume)
def _force_volume(rows, row, g):
    """On a GPU, computing the volume is faster than loading another number, if the elements support it."""
    computed = volume_of.has_implementation(rows.instance_class) and isinstance(row, types.BaseTuple)
    return (
        (lambda rows, row, g: volume_of(rows, g)) if computed else lambda rows, row, g: rest_volume(rows, row)
    )


@generic
def volume_of(rows, g):
    """V [m³] from shape gradients, 0 if they vanish; for elements whose gradients determine it."""


@device_function
def material_at(rows, row):
    """Material of the elements in a packed row."""
    return load_material(rows.material, row, rest_volume(rows, row))


def response(material: Any, F: Any, g: Any) -> Any:
    """(P g, A, q) for the shape gradient g of a vertex; q is 0 if ψ is finite everywhere."""


@overload_by_type(response, control_flow=True)
def _response(material, F, g):
    if vertex_response.has_implementation(material.instance_class):
        return lambda material, F, g: vertex_response(material, F, g)
    if material.instance_class.barrier:
        return lambda material, F, g: (
            traction(material, F, g),
            hessian_bound(material, F, g, g),
            inverse_square_safe_radius(material, F, g),
        )
    return lambda material, F, g: (traction(material, F, g), hessian_bound(material, F, g, g), 0.0 * F[0])


@vertex_force.of(ElasticRows)
def _vertex_force(rows, row, u, ui):
    f, A, _ = force_with_safe_step(rows, row, u, ui)
    return f, A


@force_with_safe_step.of(ElasticRows)
def _confined_force(rows, row, u, ui):
    """f = -V P g,  A = V hessian_bound(F, g, g)."""
    g = shape_gradients(rows, row)
    F = measure(rows, corners(rows, row, u, ui), g)
    return scale_by_volume(force_volume(rows, row, g), response(material_at(rows, row), F, g[0]))


@device_function
def scale_by_volume(V, response):
    """Scale the material response (P g, A, q) by volumes V [m³] to (f, A, q); A becomes xx yy zz xy xz yz."""
    f, A, q = response
    return (
        (-V * f[0], -V * f[1], -V * f[2]),
        (V * A[0], V * A[4], V * A[8], V * A[1], V * A[2], V * A[5]),
        q,
    )


@generic
def deformation_at(rows, row, u, ui):
    """F of the elements in one packed row."""


@deformation_at.of(ElasticRows)
def _deformation_at(rows, row, u, ui):
    return measure(rows, corners(rows, row, u, ui), shape_gradients(rows, row))


@energy.of(ElasticRows)
def _energy(rows, row, u, ui):
    V = rest_volume(rows, row)
    return where(V > 0.0, V * psi(material_at(rows, row), deformation_at(rows, row, u, ui)), V)


@step_fraction.of(ElasticRows)
def _step_fraction(rows, row, u, ui, step):
    g = shape_gradients(rows, row)
    return step_limit(material_at(rows, row), measure(rows, corners(rows, row, u, ui), g), g[0], step)
