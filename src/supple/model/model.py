"""Discrete model of a scene: constant arrays, terms and masses, without solver options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from supple.collision import Obstacles
from supple.collision.obstacles.rigid_body import RecordedPoses
from supple.terms import Term

if TYPE_CHECKING:
    from supple.meshes.skinning import Part


@dataclass(frozen=True)
class ConstantFactor:
    """Constant load factor t -> part."""

    part: float = 1.0

    def __call__(self, time: float) -> float:
        return self.part


class Gravity(NamedTuple):
    """Gravitational acceleration.

    Attributes:
        vector: (3,) acceleration [m/s²].
        fraction: Load factor as a function of time [s].
    """

    vector: np.ndarray
    fraction: Callable[[float], float] = ConstantFactor()


NO_GRAVITY = Gravity(np.zeros(3))


class Grid(NamedTuple):
    """Regular grid in which all bodies are embedded during motions.

    Attributes:
        spacing: Cell edge [m].
        cfl: Largest displacement per step, as a fraction of the cell edge.
    """

    spacing: float
    cfl: float


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A scene as flat arrays with n vertices in all.

    Attributes:
        rest: (n, 3) rest positions [m].
        mass: (n,) lumped masses [kg].
        force: (n, 3) constant external forces [N].
        pinned: (k,) sorted ids of vertices with prescribed positions, fully or along some directions.
        prescribed: Function of time t [s] that returns the positions (k, 3) of the pinned vertices [m]; t =
            inf is the end of every motion.
        terms: Energies. Terms with varying materials have their final materials.
        tets: (m, 4) all tetrahedra.
        bodies: Bodies, for output.
        varying: Forces (n, 3) [N] in addition to the constant ones, each with its load factor as a function
            of time.
        velocities: (n, 3) initial velocities [m/s], None for zero.
        supports: For each pin, its name, its vertices (k,), and the constrained directions (d, 3) or (k, d,
            3), None for all.
        constraint_projection: (k, 3, 3) projections N = Σ n nᵀ onto the orthonormal constrained directions n
            of each pinned vertex, I for full constraints. None if all are full.
        duration: End of all motions and ramps [s].
        dynamic_terms: Term index and update rule of each dynamic term (`DynamicTerm`).
        changing: Term index of each varying material, and a function of time that returns the material.
        winds: Functions (x, v, t) of positions and velocities (n, 3) at the beginning of a step that return
            forces (n, 3) [N].
        obstacles: Obstacles, or None.
        gravity: Gravity contained in the forces, proportional to the masses.
        drag: (n,) coefficient α of the drag forces -α m v [1/s], None for none.
        grid: Grid that carries the bodies in time stepping, None for motions without a grid.
        volume_forces: For each force density contained in the forces, the name of the body, the load factor
            as a function of time, and densities (m, 3) in its cells [N/m³].
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
    constraint_projection: np.ndarray | None = None
    duration: float = 1.0
    dynamic_terms: tuple[tuple[int, Any], ...] = ()
    changing: tuple[tuple[int, Any], ...] = ()
    winds: tuple[Callable[[np.ndarray, np.ndarray, float], np.ndarray], ...] = ()
    obstacles: Obstacles | None = None
    gravity: Gravity = NO_GRAVITY
    drag: np.ndarray | None = None
    grid: Grid | None = None
    volume_forces: tuple[tuple[str, Callable[[float], float], np.ndarray], ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickle, without data derived from the rest positions.

        Most of the omitted bytes are shape gradients.
        """
        state = {name: value for name, value in self.__dict__.items() if name != "cells"}
        return state | {"terms": tuple(term.to_stored() for term in self.terms)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        terms = tuple(stored.restore(state["rest"]) for stored in state["terms"])
        self.__dict__.update(state | {"terms": terms})

    def __repr__(self) -> str:
        return f"<Model: {self.vertices:,} vertices, {self.elements:,} elements, {len(self.pinned):,} pinned>"

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return len(self.rest)

    def inertia(self, dt: float) -> np.ndarray:
        """(n,) k of the potential ½ k |u - û|² of a step [N/m].

        k = m/Δt², plus α m/Δt with drag: the sum of ½ m/Δt² |u - uₙ - Δt vₙ|² and ½ α m/Δt |u - uₙ|²; see
        `apply_drag`.

        Args:
            dt: Step size Δt [s].
        """
        mass = self.mass if self.drag is None else self.mass * (1 + self.drag * dt)
        return mass / (dt * dt)

    @property
    def elements(self) -> int:
        """Number of stencils over all terms."""
        return sum(len(term.vertices) for term in self.terms)

    @cached_property
    def cells(self) -> np.ndarray:
        """(m, 3) or (m, 4) tetrahedra and triangles of all bodies, body after body.

        Triangles among tetrahedra have -1 as fourth corner. Without bodies, these are the tetrahedra.
        """
        parts = [body.mesh.cells + np.int32(body.vertices.start) for body in self.bodies] or [self.tets]
        most = max(part.shape[1] for part in parts)
        return np.concatenate([pad_cells(part, most) for part in parts])

    @property
    def mean_edge(self) -> float:
        """Mean rest length of the first edges of all static elements [m].

        Connectors count only if there are no other elements.
        """
        lasting = [term for term in self.terms if term.capacity is None and term.vertices.shape[1] > 1]
        bodies = [term for term in lasting if not term.ties] or lasting
        stencils = [term.vertices[:, :2] for term in bodies]
        edges = np.concatenate([np.diff(self.rest[s], axis=1)[:, 0] for s in stencils] or [np.empty((0, 3))])
        return float(np.linalg.norm(edges, axis=1).mean()) if len(edges) else 0.0

    @property
    def free(self) -> np.ndarray:
        """(n,) bool: True for vertices with at least one free direction."""
        mask = np.ones(self.vertices, bool)
        mask[self.pinned] = (
            False
            if self.constraint_projection is None
            else np.any(self.constraint_projection != np.eye(3), axis=(1, 2))
        )
        return mask

    @property
    def body_vertices(self) -> list[tuple[str, slice]]:
        """Names and vertex ranges of bodies; a single unnamed range without bodies."""
        return [(body.name, body.vertices) for body in self.bodies] or [("", slice(0, self.vertices))]

    @property
    def rollers(self) -> np.ndarray:
        """(h,) ids of vertices constrained along some directions only."""
        return self.pinned[self.free[self.pinned]]

    def apply_dirichlet(self, x: np.ndarray, targets: np.ndarray) -> None:
        """Prescribe pinned vertices in place along constrained directions: x ← x - N x + N target.

        Args:
            x: (..., n, 3) positions or displacements, modified.
            targets: (..., k, 3) targets of the pinned vertices.
        """
        if self.constraint_projection is None:
            x[..., self.pinned, :] = targets
            return
        x_pinned = x[..., self.pinned, :]
        x[..., self.pinned, :] = x_pinned - self.along(x_pinned) + self.along(targets)

    def along(self, vectors: np.ndarray) -> np.ndarray:
        """N v: components of vectors (..., k, 3) of the pinned vertices along constrained directions."""
        return (
            vectors
            if self.constraint_projection is None
            else np.einsum("kij,...kj->...ki", self.constraint_projection, vectors)
        )

    def unconstrained(self, vectors: np.ndarray) -> np.ndarray:
        """Project vectors (..., n, 3) of all vertices orthogonal to constrained directions."""
        rest = vectors.copy()
        rest[..., self.pinned, :] -= self.along(vectors[..., self.pinned, :])
        return rest

    def loaded_bodies(self, force: np.ndarray) -> np.ndarray:
        """(..., bodies) bool: True if forces (..., n, 3) act on a body in free directions."""
        if self.constraint_projection is None:
            acts = (force != 0).any(axis=-1) & self.free
        else:  # exclude rounding of the directions
            least = 1e-12 * float(np.abs(force).max(initial=0))
            acts = (np.abs(self.unconstrained(force)) > least).any(axis=-1)
        return np.stack([acts[..., own].any(axis=-1) for _, own in self.body_vertices], axis=-1)

    def fractions_at(self, time: float) -> tuple[float, ...]:
        """Load factors of the varying forces at a time [s]."""
        return tuple(fraction(time) for fraction, _ in self.varying)

    def load_factors_at(self, time: float) -> tuple[float, ...]:
        """Load factors of the varying forces and of varying material parameters at a time [s]."""
        parts = [part for _, material in self.changing for part in material.fractions(time)]
        return *self.fractions_at(time), *parts

    def materials_at(self, time: float) -> dict[int, Any] | None:
        """Time-dependent materials at a time [s], by term index, or None."""
        return {k: material(time) for k, material in self.changing} or None

    def force_at(self, time: float) -> np.ndarray:
        """External forces (n, 3) [N] at a time [s]; t = inf is the final value."""
        return self.force_of(self.fractions_at(time))

    def force_of(self, fractions: tuple[float, ...]) -> np.ndarray:
        """External forces (n, 3) [N] for load factors of the varying forces."""
        force = self.force
        for fraction, (_, varying) in zip(fractions, self.varying, strict=True):
            force = force + fraction * varying
        return force


def pad_cells(cells: np.ndarray, corners: int) -> np.ndarray:
    """Pad cells (m, k) with -1 to shape (m, corners)."""
    return np.pad(cells, ((0, 0), (0, max(0, corners - cells.shape[1]))), constant_values=-1)


def find_cells(queries: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """(k,) index of cells `queries` (k, c) among `cells` (m, c), -1 for missing ones."""
    if queries.shape[1] != cells.shape[1]:
        return np.full(len(queries), -1)
    _, ids = np.unique(np.concatenate([cells, queries]), axis=0, return_inverse=True)
    index = np.full(len(ids), -1)
    index[ids.ravel()[: len(cells)]] = np.arange(len(cells))
    return index[ids.ravel()[len(cells) :]]


def with_term(model: Model, index: int, term: Term) -> Model:
    """Replace one term of a model."""
    return replace(model, terms=(*model.terms[:index], term, *model.terms[index + 1 :]))


def latest_model(model: Model, now: Model) -> Model:
    """Return `now` if stencils, or terms without a material, changed since `model`; otherwise `model`."""
    pairs = zip(model.terms, now.terms, strict=True)
    changed = any(a is not b and (a.material is None or a.vertices is not b.vertices) for a, b in pairs)
    return now if changed else model


def inertial_target(model: Model, x: np.ndarray, v: np.ndarray, dt: float) -> np.ndarray:
    """Inertial target û (n, 3) [m] of a backward Euler step, with drag.

    Args:
        model: Model with the drag coefficients.
        x: (n, 3) positions [m].
        v: (n, 3) velocities [m/s].
        dt: Step size [s].
    """
    return x + dt * v if model.drag is None else x + dt * v / (1 + dt * model.drag)[:, None]


def with_bodies_at(model: Model, numbers: np.ndarray) -> Model:
    """Fix the rigid bodies of a model at poses `numbers` (k, 18), at all times."""
    obstacles = model.obstacles
    if obstacles is None or not obstacles.rigid:
        return model
    known_poses = RecordedPoses(obstacles, np.zeros(1), numbers[None])
    return replace(model, obstacles=replace(obstacles, poses=known_poses))


@dataclass(frozen=True, eq=False)
class Step:
    """Backward Euler step that led to positions; determines all forces other than term forces.

    Attributes:
        dt: Step size [s], inf without inertia.
        anchor: (n, 3) inertial target xₙ + Δt vₙ [m], None if unknown.
        force: (n, 3) external forces [N], None for the constant forces of the model.
        materials: Varying materials, by term index; None for those of the model.
        time: End of the step [s], for moving obstacles.
        history: History variables at the end of the step, as in `State`.
    """

    dt: float
    anchor: np.ndarray | None
    force: np.ndarray | None = None
    materials: dict[int, Any] | None = None
    time: float = np.inf
    history: Mapping[str, np.ndarray] = field(default_factory=dict)


def wind_forces(model: Model, positions: np.ndarray, velocities: np.ndarray, time: float) -> np.ndarray:
    """(n, 3) wind forces [N].

    Args:
        model: Model with the winds.
        positions: (n, 3) positions [m].
        velocities: (n, 3) velocities [m/s].
        time: Time [s].
    """
    forces = [wind(positions, velocities, time) for wind in model.winds]
    return np.sum(forces, axis=0) if forces else np.zeros_like(model.rest)


@dataclass(frozen=True, eq=False)
class Conditions:
    """Boundary conditions, loads and materials of one equilibrium of a model.

    Attributes:
        pinned: (k, 3) positions of the pinned vertices [m].
        force: (n, 3) external forces [N].
        materials: One material per elastic term, None for those of the model.
        initial: (n, 3) initial positions [m], None for the rest positions.
        time: Time of moving obstacles [s].
        gravity: Gravity contained in the forces, None for that of the model.
        path: Conditions as a function of a fraction of all loads and motions, None if unknown.
    """

    pinned: np.ndarray
    force: np.ndarray
    materials: tuple[Any, ...] | None = None
    initial: np.ndarray | None = None
    time: float = np.inf
    gravity: Gravity | None = None
    path: Callable[[float], Conditions] | None = None


def unpinned_mask(model: Model) -> np.ndarray:
    """(n,) bool: True for vertices without any constraint."""
    mask = np.ones(model.vertices, bool)
    mask[model.pinned] = False
    return mask
