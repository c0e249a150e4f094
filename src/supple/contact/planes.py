"""What vertices see of obstacles: planes, with gaps, anchors and slips."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

from supple.algebra.holding import free_part
from supple.algebra.matrix3 import add, dot, scale, sub
from supple.kernels import chosen_by_type, gather, physics, record_at


class Friction(NamedTuple):
    """Records as in `Planes`: the anchor as a displacement [m], and μ as their first number."""

    anchor: Any
    coefficient: Any


class Planes(NamedTuple):
    """What every vertex may touch at once, records (planes, copies (n + 1), 4): the unit normal n, 0 where
    there is no obstacle; the foot on the plane as a displacement [m]; the force [N] with which visits go on;
    the reaction [N] that was measured last; friction: `Friction`, or () where there is none."""

    normal: Any
    foot: Any
    force: Any
    reaction: Any
    friction: Any = ()


class Touch(NamedTuple):
    """One plane as vertices of a batch see it: n, without what they are held along; g n + o [m]; g [m]; μ, or
    () without friction."""

    normal: Any
    error: Any
    gap: Any
    mu: Any


@physics
def across(n, v):
    """v - n (n · v)."""
    return sub(v, scale(dot(n, v), n))


def _fetch(planes: Any, j: int, own: Any, batch: Any) -> Any:
    """(n, foot), and (anchor, μ) where there is friction, of the j-th plane of the vertices of a batch."""


@chosen_by_type(_fetch)
def _fetch_by_type(planes, j, own, batch):
    if is_empty(planes[Planes._fields.index("friction")]):
        return lambda planes, j, own, batch: (
            gather(planes.normal[j], own, batch, 0),
            gather(planes.foot[j], own, batch, 0),
        )
    return lambda planes, j, own, batch: (
        gather(planes.normal[j], own, batch, 0),
        gather(planes.foot[j], own, batch, 0),
        gather(planes.friction.anchor[j], own, batch, 0),
        gather(planes.friction.coefficient[j], own, batch, 0),
    )


def _fetch_record(planes: Any, j: int, k: Any) -> Any:
    """What `_fetch` gives, of the vertex that the k-th record is of."""


@chosen_by_type(_fetch_record)
def _fetch_record_by_type(planes, j, k):
    if is_empty(planes[Planes._fields.index("friction")]):
        return lambda planes, j, k: (record_at(planes.normal[j], k), record_at(planes.foot[j], k))
    return lambda planes, j, k: (
        record_at(planes.normal[j], k),
        record_at(planes.foot[j], k),
        record_at(planes.friction.anchor[j], k),
        record_at(planes.friction.coefficient[j], k),
    )


def is_empty(kind: Any) -> bool:
    return isinstance(kind, types.BaseTuple) and len(kind) == 0


def _as_seen(found: Any, N: Any, ui: Any) -> Any:
    """The `Touch` of vertices at displacements ui that are held along N."""


@chosen_by_type(_as_seen)
def _as_seen_by_type(found, N, ui):
    if len(found) == 2:
        return lambda found, N, ui: _smooth(found, N, ui)
    return lambda found, N, ui: _rough(found, N, ui)


@physics
def _smooth(found, N, ui):
    n, foot = found
    g = dot(n, sub(ui, foot))
    n = free_part(N, n)
    return Touch(n, scale(g, n), g, ())


@physics
def _rough(found, N, ui):
    n, foot, anchor, mu = found
    g, o = dot(n, sub(ui, foot)), across(n, sub(ui, anchor))
    return Touch(free_part(N, n), free_part(N, add(scale(g, n), o)), g, mu[0])


@physics
def touch(planes, j, own, batch, N, ui):
    """What the j-th plane is to the vertices of a batch."""
    return _as_seen(_fetch(planes, j, own, batch), N, ui)


@physics
def touch_of(planes, j, k, ui):
    """What the j-th plane is to the vertex of the k-th record."""
    return _as_seen(_fetch_record(planes, j, k), (), ui)
