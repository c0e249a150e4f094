"""Vertices and obstacles: what each vertex may touch, found again and again in the course of a solve.

Where a step begins, and every few sweeps, each vertex finds the shapes that are nearest to it and takes the
planes through its closest points on them [PBNG section 7.2]; one that is inside is put onto the surface.
Kernels see () where a model has no obstacles, and compile it to nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from supple.algebra.matrix3 import add, dot, scale, sub
from supple.contact import Friction, Planes, allowed, carried, distance, nearest, touch_of
from supple.contact.coulomb import Touch
from supple.contact.shapes import FRICTION
from supple.kernels import (
    RECORD,
    chosen_by_type,
    number_at,
    offset_of,
    pack_like,
    physics,
    put_record,
    record_at,
    select,
)
from supple.model import Model
from supple.problem.device import Device
from supple.problem.records import act, for_each
from supple.problem.states import States

FAR = 1e30
"""Gap [m] to a plane that is not there."""

SNAP = 8
"""Roundings of an edge: a vertex this close to its anchor is put there, lest rounding makes it creep."""


class Remember(NamedTuple):
    """start = u, where a step begins."""

    u: Any
    start: Any


@act.of(Remember)
def _remember(operation, place, i):
    k = i + offset_of(place)
    put_record(operation.start, k, record_at(operation.u, k))


class Detect(NamedTuple):
    """Planes of every vertex at u, which is put out of what it is inside of where `free` (n + 1,) is 1. rest
    (n + 1, 4): positions at rest, float64; which (copies (n + 1), 4): the numbers of the shapes."""

    u: Any
    rest: Any
    free: Any
    start: Any
    shapes: Any
    planes: Any
    which: Any
    snap: Any


@physics
def _vector(records, k):
    """A record as plain numbers in float64."""
    first = RECORD * k
    return (
        1.0 * number_at(records, first),
        1.0 * number_at(records, first + 1),
        1.0 * number_at(records, first + 2),
    )


@physics
def _put(records, k, v, like):
    put_record(records, k, (pack_like(v[0], like), pack_like(v[1], like), pack_like(v[2], like)))


@act.of(Detect)
def _detect(operation, place, i):
    o, k = operation, i + offset_of(place)
    X = _vector(o.rest, i)
    found = nearest(o.shapes, add(X, _vector(o.u, k)))
    for j in range(len(o.planes.normal)):
        if o.which[k, j] != found[j]:  # the force was that of another
            _put(o.planes.force[j], k, (0.0, 0.0, 0.0), record_at(o.u, k)[0])
        o.which[k, j] = found[j]
        _take_plane(o, j, found[j], i, k, X)
    clamp(o.planes, o.u, k, pack_like(o.free[i], record_at(o.u, k)[0]), o.snap)


@physics
def _take_plane(operation, j, shape, i, k, X):
    u, planes = _vector(operation.u, k), operation.planes
    like = record_at(operation.u, k)[0]
    none = (0.0, 0.0, 0.0)
    if shape < 0 or i == operation.free.shape[0] - 1:
        _put(planes.normal[j], k, none, like)
        _put(planes.foot[j], k, none, like)
    else:
        d, n = distance(operation.shapes, shape, add(X, u))
        _put(planes.normal[j], k, n, like)
        _put(planes.foot[j], k, sub(u, scale(d, n)), like)
        take_friction(planes.friction, operation, j, shape, k, X, like)


def take_friction(friction: Any, operation: Any, j: int, shape: int, k: int, X: Any, like: Any) -> None:
    """Write the anchor and the coefficient, where there is friction."""


@chosen_by_type(take_friction)
def _take_friction(friction, operation, j, shape, k, X, like):
    if len(friction) == 0:
        return lambda friction, operation, j, shape, k, X, like: None

    def anchored(friction, operation, j, shape, k, X, like):
        there = carried(operation.shapes, shape, add(X, _vector(operation.start, k)))
        mu = operation.shapes.rows[shape, FRICTION]
        _put(friction.anchor[j], k, sub(there, X), like)
        _put(friction.coefficient[j], k, (mu, 0.0, 0.0), like)

    return anchored


@physics
def clamp(planes, u, k, free, snap):
    """Put the k-th record of u out of all planes, and to its anchor where it is there but for rounding."""
    x = record_at(u, k)
    for _ in range(3 if len(planes.normal) > 1 else 1):
        for j in range(len(planes.normal)):
            at = touch_of(planes, j, k, x)
            x = sub(x, scale(free * min(at.gap, 0.0 * at.gap), at.normal))
            x = settled(at, x, free, snap)
    put_record(u, k, x)


def settled(at: Any, x: Any, free: Any, snap: Any) -> Any:
    """x, or the anchor where that is hardly away."""


@chosen_by_type(settled)
def _settled(at, x, free, snap):
    if isinstance(at[Touch._fields.index("mu")], types.BaseTuple):
        return lambda at, x, free, snap: x

    def snapped(at, x, free, snap):
        slip = sub(at.error, scale(at.gap, at.normal))
        near = (dot(slip, slip) <= snap * snap) & (at.gap <= snap)
        return sub(x, scale(select(near, free, 0.0 * free), slip))

    return snapped


class Clamp(NamedTuple):
    """u is put out of the planes that there are, after something has moved it without looking at them, and
    what follows it is put where it is."""

    u: Any
    free: Any
    planes: Any
    snap: Any
    followers: Any


@act.of(Clamp)
def _clamp_record(operation, place, i):
    o, k = operation, i + offset_of(place)
    clamp(o.planes, o.u, k, pack_like(o.free[i], record_at(o.u, k)[0]), o.snap)
    follow(o.followers, o.u, k)


def follow(followers: tuple, u: Any, k: int) -> None:
    """Put the k-th record of u into those of others, too."""


@chosen_by_type(follow)
def _follow(followers, u, k):
    if len(followers) == 0:
        return lambda followers, u, k: None
    return lambda followers, u, k: put_record(followers[0], k, record_at(u, k))


class Press(NamedTuple):
    """What element-wise methods do with a plane of this number: u += W Δr with the force r = C(r - (g n +
    o)/W), which memory (copies (n + 1), 4) keeps in the course of a step; weights (n + 1,): W [m/N]."""

    u: Any
    weights: Any
    planes: Any
    number: Any
    memory: Any


@act.of(Press)
def _press(operation, place, i):
    o, k = operation, i + offset_of(place)
    W = o.weights[i]
    if W > 0.0:
        x, before = record_at(o.u, k), record_at(o.memory, k)
        at = touch_of(o.planes, o.number, k, x)
        force = allowed(at, sub(before, scale(1.0 / W, at.error)))
        put_record(o.memory, k, force)
        put_record(o.u, k, add(x, scale(W, sub(force, before))))


class Exert(NamedTuple):
    """u += W r with what `Press` remembers."""

    u: Any
    weights: Any
    memory: Any


@act.of(Exert)
def _exert(operation, place, i):
    o, k = operation, i + offset_of(place)
    put_record(o.u, k, add(record_at(o.u, k), scale(o.weights[i], record_at(o.memory, k))))


def clamp_all(clamps: Any, team: Any, phase: int, count: int) -> int:
    """Do a `Clamp` on so many records in one phase, where there is one; returns the phase that follows."""
    return phase


@chosen_by_type(clamp_all, leads_on=True)
def _clamp_all(clamps, team, phase, count):
    if len(clamps) == 0:
        return lambda clamps, team, phase, count: phase

    def do_it(clamps, team, phase, count):
        for_each(team, phase, (count,), (clamps,))
        return phase + 1

    return do_it


class Contacts:
    """What the vertices of a problem touch; planes are () where there is no obstacle."""

    def __init__(self, model: Model, dtype: np.dtype, device: Device, states: States) -> None:
        self.model, self.dtype, self.device, self.states = model, dtype, device, states
        self.obstacles = model.obstacles
        self.planes: Planes | tuple[()] = ()
        if self.obstacles is None:
            return
        self.shapes = self.obstacles.shapes(0.0)
        self._rest = np.zeros((model.vertices + 1, RECORD))
        self._rest[:-1, :3] = model.rest
        self._free = np.append(_wholly_free(model), 0).astype(dtype)
        self._snap = SNAP * float(np.finfo(dtype).eps) * model.mean_edge
        self.resize()

    def __bool__(self) -> bool:
        """Whether there is an obstacle."""
        return self.obstacles is not None

    def refuse(self, method: str, *others: str) -> None:
        """Refuse obstacles for a method that does not know how to treat them, with some that do."""
        if self.obstacles is not None:
            raise ValueError(
                f"{method} cannot keep bodies out of obstacles yet, and the scene has "
                f"{self.obstacles.names[0]!r}; {', '.join(others)} can"
            )

    def resize(self) -> None:
        """Room for as many copies of the state as there are."""
        if self.obstacles is None:
            return
        shape = self.obstacles.planes, len(self.states.u), RECORD

        def records() -> np.ndarray:
            return np.zeros(shape, self.dtype)

        rough = self.obstacles.rough
        self._start = np.zeros(shape[1:] if rough else (1, RECORD), self.dtype)
        self._which = np.full((len(self.states.u), 3), -1, np.int32)
        friction = Friction(records(), records()) if rough else ()
        self.planes = Planes(records(), records(), records(), friction)

    @property
    def phases(self) -> int:
        """Of `clamp_all`."""
        return int(self.obstacles is not None)

    def clamp(self, *followers: np.ndarray) -> Clamp | tuple[()]:
        """What `clamp_all` does, with further records that are to be as u is."""
        return Clamp(self.states.u, self._free, self.planes, self._snap, followers) if self.planes else ()

    @property
    def rough(self) -> bool:
        """Whether an obstacle has friction."""
        return self.obstacles is not None and self.obstacles.rough

    def found(self, copy: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of a copy of the state: normals, feet [m] and the forces [N] that were evaluated last, (planes, n,
        3) each, and the numbers (planes, n) of the shapes, -1 for none."""
        n = self.model.vertices + 1
        own = slice(copy * n, (copy + 1) * n - 1)
        arrays = [getattr(self.planes, name) for name in ("normal", "foot", "force")]
        for array in (*arrays, self._which):
            self.device.pull(array)
        normals, feet, forces = (array[:, own, :3].astype(float) for array in arrays)
        return normals, feet, forces, self._which[own, : len(normals)].T

    def begin_step(self, time: float) -> None:
        """Know where vertices are before a step begins, and bring obstacles to where they are in the end [s]
        of it."""
        if self.obstacles is None:
            return
        if self.obstacles.rough:
            self.device.on_records(Remember(self.states.u, self._start))
        self.obstacles.advance(self.shapes, time)
        self.device.push(self.shapes.rows)

    def detect(self) -> None:
        """Find the planes at the present u."""
        if self.obstacles is None:
            return
        found = self.shapes, self.planes, self._which, self._snap
        self.device.on_records(Detect(self.states.u, self._rest, self._free, self._start, *found))


def _wholly_free(model: Model) -> np.ndarray:
    """(n,) True for vertices that nothing holds."""
    free = np.ones(model.vertices, bool)
    free[model.pinned] = False
    return free
