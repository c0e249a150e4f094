"""Contact planes of vertices: local linearization of obstacles with gap, anchor and slip."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

from supple.algebra.dirichlet_projection import free_part
from supple.algebra.matrix3 import add, dot, scale, sub
from supple.kernels import device_function, gather, overload_by_type, record_at


class Friction(NamedTuple):
    """Friction data of contact planes, padded vectors as in `Planes`.

    Attributes:
        anchor: Stick point as a displacement [m].
        coefficient: Friction coefficient μ in the first component.
    """

    anchor: Any
    coefficient: Any


class Planes(NamedTuple):
    """Contact planes of all vertices, padded vectors (planes, copies (n + 1), 4).

    Attributes:
        normal: Unit normal, 0 without an obstacle.
        closest_point: Point on the plane as a displacement [m].
        force: Contact force for the warm start of vertex updates [N].
        reaction: Contact force of the last evaluation [N].
        friction: `Friction`, or () without friction.
    """

    normal: Any
    closest_point: Any
    force: Any
    reaction: Any
    friction: Any = ()


class PlaneContact(NamedTuple):
    """One contact plane of the vertices of a batch.

    Attributes:
        normal: n, projected onto the free directions.
        error: g n + o, projected onto the free directions [m].
        gap: g [m].
        mu: Friction coefficient μ, or () without friction.
    """

    normal: Any
    error: Any
    gap: Any
    mu: Any


@device_function
def across(n, v):
    """Component of v perpendicular to n: v - n (n · v)."""
    return sub(v, scale(dot(n, v), n))


def _fetch(planes: Any, j: int, own: Any, batch: Any) -> Any:
    """(n, closest point), and (anchor, μ) with friction, of the j-th plane for the vertices of a batch."""


@overload_by_type(_fetch)
def _fetch_by_type(planes, j, own, batch):
    if is_empty(planes[Planes._fields.index("friction")]):
        return lambda planes, j, own, batch: (
            gather(planes.normal[j], own, batch, 0),
            gather(planes.closest_point[j], own, batch, 0),
        )
    return lambda planes, j, own, batch: (
        gather(planes.normal[j], own, batch, 0),
        gather(planes.closest_point[j], own, batch, 0),
        gather(planes.friction.anchor[j], own, batch, 0),
        gather(planes.friction.coefficient[j], own, batch, 0),
    )


def _fetch_record(planes: Any, j: int, k: Any) -> Any:
    """(n, closest point), and (anchor, μ) with friction, of the j-th plane for the k-th padded vector."""


@overload_by_type(_fetch_record)
def _fetch_record_by_type(planes, j, k):
    if is_empty(planes[Planes._fields.index("friction")]):
        return lambda planes, j, k: (record_at(planes.normal[j], k), record_at(planes.closest_point[j], k))
    return lambda planes, j, k: (
        record_at(planes.normal[j], k),
        record_at(planes.closest_point[j], k),
        record_at(planes.friction.anchor[j], k),
        record_at(planes.friction.coefficient[j], k),
    )


def is_empty(kind: Any) -> bool:
    """True for the Numba type of ()."""
    return isinstance(kind, types.BaseTuple) and len(kind) == 0


def _at_displacement(plane: Any, N: Any, ui: Any) -> Any:
    """`PlaneContact` of vertices at displacements ui with the constrained directions N."""


@overload_by_type(_at_displacement)
def _at_displacement_by_type(plane, N, ui):
    if len(plane) == 2:
        return lambda plane, N, ui: _frictionless(plane, N, ui)
    return lambda plane, N, ui: _frictional(plane, N, ui)


@device_function
def _frictionless(plane, N, ui):
    n, closest_point = plane
    g = dot(n, sub(ui, closest_point))
    n = free_part(N, n)
    return PlaneContact(n, scale(g, n), g, ())


@device_function
def _frictional(plane, N, ui):
    n, closest_point, anchor, mu = plane
    g, o = dot(n, sub(ui, closest_point)), across(n, sub(ui, anchor))
    return PlaneContact(free_part(N, n), free_part(N, add(scale(g, n), o)), g, mu[0])


@device_function
def plane_contact(planes, j, own, batch, N, ui):
    """`PlaneContact` of the j-th plane for the vertices of a batch."""
    return _at_displacement(_fetch(planes, j, own, batch), N, ui)


@device_function
def plane_contact_at(planes, j, k, ui):
    """`PlaneContact` of the j-th plane for the vertex of the k-th padded vector."""
    return _at_displacement(_fetch_record(planes, j, k), (), ui)
