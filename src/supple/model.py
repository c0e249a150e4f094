"""What a scene becomes: constant arrays, terms and masses. No solver options in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.contact import Obstacles
from supple.contact.rigid import KnownPoses
from supple.terms import Term

if TYPE_CHECKING:
    from supple.embedding import Part


@dataclass(frozen=True)
class Always:
    """t -> the same part of a load at every time."""

    part: float = 1.0

    def __call__(self, time: float) -> float:
        return self.part


class Gravity(NamedTuple):
    """An acceleration (3,) [m/s²], and what part of it acts at a time [s]."""

    vector: np.ndarray
    fraction: Callable[[float], float] = Always()


NO_GRAVITY = Gravity(np.zeros(3))


class Grid(NamedTuple):
    """A regular grid that carries all bodies: the edge of its cells [m], and the part of it that anything may
    move in a step."""

    spacing: float
    cfl: float


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A scene as flat arrays (n vertices in all).

    rest (n, 3) rest positions [m]; mass (n,) lumped masses [kg]; force (n, 3) constant external forces
    [N]; pinned (k,) sorted ids of vertices whose positions are prescribed, wholly or along some directions;
    prescribed(t) their positions (k, 3) at time t [s] (t = inf is the end of every motion); terms: the
    energies; tets (m, 4): all tetrahedra; bodies: what cells are parts of, for output; varying: forces (n, 3)
    [N] that act beside the constant ones, each with the fraction of it that acts at time t; velocities (n, 3)
    [m/s] at the start, None for none; supports: the name of each pin, its vertices (k,) and the directions
    (d, 3) or (k, d, 3) along which it holds them, None for all; held (k, 3, 3): the projections N = Σ n nᵀ
    onto the orthonormal directions n along which each pinned vertex is held, I where it is wholly, None where
    all are; duration [s]: when motions and ramps have ended; followers: who says which stencils the term of a
    number has as the vertices move (`problem.Follower`); changing: numbers of terms whose materials vary,
    each with t -> its material; `terms` has that of the end; winds: (x, v, t) -> forces (n, 3) [N] that a
    step has from the positions and velocities (n, 3) where it begins; obstacles: what vertices cannot enter,
    if anything; gravity: what the forces have of it, which is by the masses; drag (n,): α [1/s] of the forces
    -α m v that slow vertices down, None for none; grid: what carries the bodies in motions, None where they
    move by themselves; volume_forces: for those of the forces that go with the volume of cells, the body,
    what part of them acts at time t, and (m, 3) [N/m³] in each of its cells.
    """

    rest: np.ndarray
    mass: np.ndarray
    force: np.ndarray
    pinned: np.ndarray
    prescribed: Callable[[float], np.ndarray]
    terms: tuple[Term, ...]
    tets: np.ndarray
    bodies: tuple[Part, ...] = ()
    varying: tuple[tuple[Callable[[float], float], np.ndarray], ...] = ()
    velocities: np.ndarray | None = None
    supports: tuple[tuple[str, np.ndarray, np.ndarray | None], ...] = ()
    held: np.ndarray | None = None
    duration: float = 1.0
    followers: tuple[tuple[int, Any], ...] = ()
    changing: tuple[tuple[int, Any], ...] = ()
    winds: tuple[Callable[[np.ndarray, np.ndarray, float], np.ndarray], ...] = ()
    obstacles: Obstacles | None = None
    gravity: Gravity = NO_GRAVITY
    drag: np.ndarray | None = None
    grid: Grid | None = None
    volume_forces: tuple[tuple[str, Callable[[float], float], np.ndarray], ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """For pickle, without what follows from the rest positions: most of the bytes are shape gradients."""
        state = {name: value for name, value in self.__dict__.items() if name != "cells"}
        return state | {"terms": tuple(term.bare() for term in self.terms)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        terms = tuple(bare.at(state["rest"]) for bare in state["terms"])
        self.__dict__.update(state | {"terms": terms})

    def __repr__(self) -> str:
        return f"<Model: {self.vertices:,} vertices, {self.elements:,} elements, {len(self.pinned):,} pinned>"

    @property
    def vertices(self) -> int:
        return len(self.rest)

    def inertia(self, dt: float) -> np.ndarray:
        """(n,) [N/m] k of the potential ½ k |u - û|² of a step of Δt [s]: m/Δt², and α m/Δt where vertices
        are slowed down, ½ m/Δt² |u - uₙ - Δt vₙ|² + ½ α m/Δt |u - uₙ|²; see `slow_down`."""
        mass = self.mass if self.drag is None else self.mass * (1 + self.drag * dt)
        return mass / (dt * dt)

    @property
    def elements(self) -> int:
        """Number of stencils over all terms."""
        return sum(len(term.vertices) for term in self.terms)

    @cached_property
    def cells(self) -> np.ndarray:
        """(m, 3) or (m, 4) the tetrahedra and triangles of all bodies, body after body; -1 where a triangle
        among tetrahedra has no fourth corner. Without bodies, the tetrahedra."""
        parts = [body.mesh.cells + np.int32(body.vertices.start) for body in self.bodies] or [self.tets]
        most = max(part.shape[1] for part in parts)
        return np.concatenate([padded(part, most) for part in parts])

    @property
    def mean_edge(self) -> float:
        """Mean length of the first edges at rest of all elements that stay [m]; ties count where nothing else
        does."""
        lasting = [term for term in self.terms if term.capacity is None and term.vertices.shape[1] > 1]
        bodies = [term for term in lasting if not term.ties] or lasting
        stencils = [term.vertices[:, :2] for term in bodies]
        edges = np.concatenate([np.diff(self.rest[s], axis=1)[:, 0] for s in stencils] or [np.empty((0, 3))])
        return float(np.linalg.norm(edges, axis=1).mean()) if len(edges) else 0.0

    @property
    def free(self) -> np.ndarray:
        """(n,) bool: True where a vertex may move, be it in some directions only."""
        mask = np.ones(self.vertices, bool)
        mask[self.pinned] = False if self.held is None else np.any(self.held != np.eye(3), axis=(1, 2))
        return mask

    @property
    def body_vertices(self) -> list[tuple[str, slice]]:
        """Names and vertices of the bodies; one of all vertices where the model knows none."""
        return [(body.name, body.vertices) for body in self.bodies] or [("", slice(0, self.vertices))]

    @property
    def rollers(self) -> np.ndarray:
        """(h,) ids of the vertices that are held along some directions and free across them."""
        return self.pinned[self.free[self.pinned]]

    def hold(self, x: np.ndarray, targets: np.ndarray) -> None:
        """Put pinned vertices of x (..., n, 3), positions or displacements, where targets (..., k, 3) are, as
        far as they are held: x ← x - N x + N target."""
        if self.held is None:
            x[..., self.pinned, :] = targets
            return
        there = x[..., self.pinned, :]
        x[..., self.pinned, :] = there - self.along(there) + self.along(targets)

    def along(self, vectors: np.ndarray) -> np.ndarray:
        """N v: what vectors (..., k, 3) of the pinned vertices have along the directions that are held."""
        return vectors if self.held is None else np.einsum("kij,...kj->...ki", self.held, vectors)

    def unheld(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors (..., n, 3) of all vertices without what they have along the directions that are held."""
        rest = vectors.copy()
        rest[..., self.pinned, :] -= self.along(vectors[..., self.pinned, :])
        return rest

    def loaded_bodies(self, force: np.ndarray) -> np.ndarray:
        """Whether forces (..., n, 3) act on anything of each body that may move; bool, (..., bodies)."""
        if self.held is None:
            acts = (force != 0).any(axis=-1) & self.free
        else:  # beyond the rounding of directions
            least = 1e-12 * float(np.abs(force).max(initial=0))
            acts = (np.abs(self.unheld(force)) > least).any(axis=-1)
        return np.stack([acts[..., own].any(axis=-1) for _, own in self.body_vertices], axis=-1)

    def fractions_at(self, time: float) -> tuple[float, ...]:
        """What part of each varying force acts at a time [s]."""
        return tuple(fraction(time) for fraction, _ in self.varying)

    def varied_at(self, time: float) -> tuple[float, ...]:
        """What part of each varying force acts at a time [s], and of each varying parameter of materials."""
        parts = [part for _, material in self.changing for part in material.fractions(time)]
        return *self.fractions_at(time), *parts

    def materials_at(self, time: float) -> dict[int, Any] | None:
        """Those that vary, at a time [s], by the number of their term; None where none does."""
        return {k: material(time) for k, material in self.changing} or None

    def force_at(self, time: float) -> np.ndarray:
        """All external forces (n, 3) [N] at a time [s]; those of t = inf are the last."""
        return self.force_of(self.fractions_at(time))

    def force_of(self, fractions: tuple[float, ...]) -> np.ndarray:
        """External forces (n, 3) [N] when these parts of the varying ones act."""
        force = self.force
        for fraction, (_, whole) in zip(fractions, self.varying, strict=True):
            force = force + fraction * whole
        return force


def padded(cells: np.ndarray, corners: int) -> np.ndarray:
    """Cells (m, k) as (m, corners), with -1 for what they lack."""
    return np.pad(cells, ((0, 0), (0, max(0, corners - cells.shape[1]))), constant_values=-1)


def places(some: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """(k,) where each of some cells (k, c) is among cells (m, c), -1 where it is not."""
    if some.shape[1] != cells.shape[1]:
        return np.full(len(some), -1)
    _, ids = np.unique(np.concatenate([cells, some]), axis=0, return_inverse=True)
    place = np.full(len(ids), -1)
    place[ids.ravel()[: len(cells)]] = np.arange(len(cells))
    return place[ids.ravel()[len(cells) :]]


def with_term(model: Model, index: int, term: Term) -> Model:
    """The model with another term in place of one."""
    return replace(model, terms=(*model.terms[:index], term, *model.terms[index + 1 :]))


def latest(model: Model, now: Model) -> Model:
    """The model itself, or what it is now where stencils have changed since."""
    pairs = zip(model.terms, now.terms, strict=True)
    changed = any(a is not b and (a.material is None or a.vertices is not b.vertices) for a, b in pairs)
    return now if changed else model


def coasted(model: Model, x: np.ndarray, v: np.ndarray, dt: float) -> np.ndarray:
    """û (n, 3) [m], where inertia pulls in a backward Euler step of dt [s] from x with v (n, 3) each, slowed
    down by what drags."""
    return x + dt * v if model.drag is None else x + dt * v / (1 + dt * model.drag)[:, None]


def with_bodies_at(model: Model, numbers: np.ndarray) -> Model:
    """The model with rigid bodies where numbers (k, 18) have them, at all times."""
    obstacles = model.obstacles
    if obstacles is None or not obstacles.rigid:
        return model
    there = KnownPoses(obstacles, np.zeros(1), numbers[None])
    return replace(model, obstacles=replace(obstacles, poses=there))


@dataclass(frozen=True, eq=False)
class Step:
    """The backward Euler step that led to positions, which says what forces act there beside those of the
    terms: dt [s], inf without inertia; anchor (n, 3) [m] = xₙ + Δt vₙ, None where that is not known; external
    forces (n, 3) [N], None for the model's constant ones; materials that vary, by the number of their term,
    None where all are the model's; time [s]: when it ends, for obstacles that move; remembered: as
    `State` has it there."""

    dt: float
    anchor: np.ndarray | None
    force: np.ndarray | None = None
    materials: dict[int, Any] | None = None
    time: float = np.inf
    remembered: Mapping[str, np.ndarray] = field(default_factory=dict)


def blown(model: Model, positions: np.ndarray, velocities: np.ndarray, time: float) -> np.ndarray:
    """(n, 3) [N] what winds do at a time [s] to vertices at positions (n, 3) [m] with velocities (n, 3)
    [m/s]."""
    forces = [wind(positions, velocities, time) for wind in model.winds]
    return np.sum(forces, axis=0) if forces else np.zeros_like(model.rest)


@dataclass(frozen=True, eq=False)
class Conditions:
    """What may differ from one equilibrium of a model to the next: positions (k, 3) of the pinned vertices
    [m]; external forces (n, 3) [N]; one material for each elasticity term, or None for the model's; where to
    start, (n, 3) [m], or None for the rest positions; time [s]: when it is, for obstacles that move;
    gravity: what the forces have of it, or None for the model's; path: the conditions at a fraction of all
    loads and motions, None where they are not known."""

    pinned: np.ndarray
    force: np.ndarray
    materials: tuple[Any, ...] | None = None
    start: np.ndarray | None = None
    time: float = np.inf
    gravity: Gravity | None = None
    path: Callable[[float], Conditions] | None = None


def unpinned(model: Model) -> np.ndarray:
    """(n,) bool: True where a vertex may move in all directions."""
    mask = np.ones(model.vertices, bool)
    mask[model.pinned] = False
    return mask
