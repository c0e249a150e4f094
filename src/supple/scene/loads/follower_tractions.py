"""Follower loads: tractions that rotate with a surface and scale with its area.

On an open surface these forces have no energy: their work depends on the path. During a solve they are
constant, like dead loads, with an energy of their own. Whenever all forces balance, they are updated to the
current surface, until an update changes nothing. The next forces follow from the last few by Anderson
acceleration [1965], so that slender bodies, which rotate far under a small change of load, converge as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from supple.meshes.measures import area_vectors
from supple.model.dynamic_term import DynamicTerm
from supple.scene.bodies import Body
from supple.scene.loads.ramps import AnyRamp, fraction_at
from supple.scene.pickling import picklable
from supple.terms import NodalForces, Term

UPDATE_INTERVAL = 200
"""Iterations after which forces are updated, if the solver has not balanced them before."""

FORCE_TOLERANCE = 1e-6
"""Tolerance of the forces relative to those on the current surface."""

ANDERSON_WINDOW = 5
"""Largest number of previous forces in Anderson acceleration."""


@dataclass(frozen=True, eq=False)
class FollowingTraction:
    """Tractions that rotate with triangles and act on current areas.

    Attributes:
        body: Loaded body.
        triangles: (k, 3) triangles of the body.
        traction: (k, 3) forces per area at rest [Pa].
        ramp: Fraction of the tractions over time.
    """

    body: Body
    triangles: np.ndarray
    traction: np.ndarray
    ramp: AnyRamp | None = None

    @cached_property
    def vertices(self) -> np.ndarray:
        """(m,) triangle vertices, numbered within the body."""
        return np.unique(self.triangles)

    def forces(self, x: np.ndarray) -> np.ndarray:
        """Forces of the tractions, which rotate with their triangles.

        Args:
            x: (n, 3) positions of all vertices of the body [m].

        Returns:
            (m, 3) forces on `vertices` [N].
        """
        local = np.einsum("kji,kj->ki", frames(self.body.points, self.triangles), self.traction)
        rotated = np.einsum("kij,kj->ki", frames(x, self.triangles, like=self.body.points), local)
        third = np.linalg.norm(area_vectors(x, self.triangles), axis=1, keepdims=True) / 3
        total = np.zeros_like(x)
        for corner in self.triangles.T:
            np.add.at(total, corner, third * rotated)
        return total[self.vertices]

    def stiffness(self, x: np.ndarray) -> np.ndarray:
        """Load stiffness K = ∂f/∂x of each triangle, of which every corner has a third of the force f.

        With the area vector A = |A| n, the turned traction τ and the angular velocity ω of the triangle, f =
        |A| τ changes by (n · dA) τ + |A| ω × τ. ω = n × dA/|A| + w n, where w turns the triangle within its
        plane such that its stretch U, the deformation seen in the turned frame, stays symmetric.

        Args:
            x: (n, 3) positions of all points of the body [m].

        Returns:
            (k, 3, 3, 3) [N/m]: component i of the force on each corner by coordinate j of corner b at
            [triangle, b, i, j].
        """
        rest = frames(self.body.points, self.triangles)
        R = frames(x, self.triangles, like=self.body.points)
        tau = np.einsum("kij,klj,kl->ki", R, rest, self.traction)
        A = area_vectors(x, self.triangles)
        area = np.maximum(np.linalg.norm(A, axis=1), 1e-300)[:, None, None]
        n = R[:, :, 2]
        p = np.linalg.inv(_in_plane(self.body.points, self.triangles, rest))
        U = _in_plane(x, self.triangles, R) @ p
        a, b, c = np.moveaxis(x[self.triangles], 1, 0)
        edges, trace = (b - a, c - a), np.trace(U, axis1=1, axis2=2)[:, None]
        K = np.zeros((len(n), 3, 3, 3))
        for corner, other, sign in ((1, 1, -0.5), (2, 0, 0.5)):
            dA = sign * _skew(edges[other])
            first, second = p[:, corner - 1, :1], p[:, corner - 1, 1:]
            w = (first * R[:, :, 1] - second * R[:, :, 0]) / trace
            spin = _skew(n) @ dA / area + n[:, :, None] * w[:, None]
            growth = np.einsum("ki,kij->kj", n, dA)
            K[:, corner] = (tau[:, :, None] * growth[:, None] - area * _skew(tau) @ spin) / 3
        K[:, 0] = -K[:, 1] - K[:, 2]
        return K

    def term(self, positions: np.ndarray) -> NodalForces:
        """Build a constant force term from rest tractions.

        Args:
            positions: (n, 3) positions of all vertices of the scene at zero displacement [m], without effect.

        Returns:
            The energy term.
        """
        ids = (self.vertices + self.body.first).astype(np.int32)[:, None]
        return NodalForces(ids, self.forces(self.body.points))

    def dynamic_term(self, index: int) -> tuple[int, FollowerForces]:
        """Return the update rule of the term.

        Args:
            index: Index of the load's term in the model.

        Returns:
            The index and the update rule.
        """
        return index, FollowerForces(index, self)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"ramp": picklable(self.ramp, f"a traction on {self.body.name!r}", "ramp")}


@dataclass(frozen=True, eq=False)
class FollowerForces(DynamicTerm):
    """Updates follower loads to the current surface."""

    index: int
    load: FollowingTraction
    every: int | None = UPDATE_INTERVAL
    is_follower_load = True
    caveat = (
        "tractions that follow their surface have no energy, so the stability of the equilibrium is unknown"
    )

    def forces(self, positions: np.ndarray, time: float) -> np.ndarray:
        """(m, 3) [N] at a time [s], for all vertices of the model at positions (n, 3) [m]."""
        load = self.load
        return fraction_at(load.ramp, time) * load.forces(positions[load.body.vertices])

    def load_stiffness(self, positions: np.ndarray, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Triangles (k, 3) of vertices of the model, and ∂f/∂x (k, 3, 3, 3) [N/m] of each, see
        `FollowingTraction.stiffness`."""
        load = self.load
        K = fraction_at(load.ramp, time) * load.stiffness(positions[load.body.vertices])
        return load.triangles + load.body.first, K

    def update(self, problem: Any, time: float) -> Term | None:
        term, target = problem.model.terms[self.index], self.forces(problem.positions, time)
        history = problem.dynamic_terms.step_cache.setdefault(self.index, [])
        if history and np.linalg.norm(target - term.force) <= FORCE_TOLERANCE * np.linalg.norm(target):
            return None
        if history:
            history[-1][1][:] = target - term.force
        now = next_forces(history, target) if history else target
        del history[: max(0, len(history) + 1 - ANDERSON_WINDOW)]
        history.append((now, np.zeros_like(now)))
        return None if (now == term.force).all() else replace(term, force=now)


def next_forces(history: list[tuple[np.ndarray, np.ndarray]], target: np.ndarray) -> np.ndarray:
    """Extrapolate the next forces by Anderson acceleration.

    Args:
        history: Previous forces (m, 3) [N] with their residuals (m, 3) [N].
        target: (m, 3) forces on the current surface [N].

    Returns:
        Forces (m, 3) [N] with the smallest residual of a linear model.
    """
    forces, residuals = (np.array([each[k].ravel() for each in history]) for k in (0, 1))
    if len(history) < 2:
        return target
    moved, changed = np.diff(forces, axis=0), np.diff(residuals, axis=0)
    weights = np.linalg.lstsq(changed.T, residuals[-1], rcond=1e-10)[0]
    return (forces[-1] + residuals[-1] - weights @ (moved + changed)).reshape(target.shape)


def frames(x: np.ndarray, triangles: np.ndarray, like: np.ndarray | None = None) -> np.ndarray:
    """Return triangle frames (k, 3, 3): columns are two tangents and the normal.

    Args:
        x: Positions of the points [m].
        triangles: (k, 3) triangles.
        like: Reference positions [m], at which the first direction is along the first edge. From there the
            directions rotate by the rotation nearest to the deformation of the triangle, so that shear does
            not favor an edge. Default: the first direction is along the first edge at x.
    """
    a, b, c = np.moveaxis(x[triangles], 1, 0)
    normal = _unit(np.cross(b - a, c - a))
    first = _unit(b - a)
    own = np.stack([first, np.cross(normal, first), normal], axis=2)
    if like is None:
        return own
    rest = frames(like, triangles)
    p, q = (_in_plane(points, triangles, axes) for points, axes in ((like, rest), (x, own)))
    F = q @ np.linalg.inv(p)
    angle = np.arctan2(F[:, 1, 0] - F[:, 0, 1], F[:, 0, 0] + F[:, 1, 1])
    turn = np.zeros((len(F), 3, 3))
    turn[:, 0, 0] = turn[:, 1, 1] = np.cos(angle)
    turn[:, 1, 0] = np.sin(angle)
    turn[:, 0, 1] = -np.sin(angle)
    turn[:, 2, 2] = 1
    return own @ turn


def _in_plane(x: np.ndarray, triangles: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Return the two edges from the first corner in the first two axes, as columns (k, 2, 2)."""
    a, b, c = np.moveaxis(x[triangles], 1, 0)
    return np.einsum("kij,kim->kjm", axes[:, :, :2], np.stack([b - a, c - a], axis=2))


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300)


def _skew(v: np.ndarray) -> np.ndarray:
    """Cross product matrices [v]ₓ (k, 3, 3): [v]ₓ w = v × w."""
    return np.cross(v[:, None, :], np.eye(3)).transpose(0, 2, 1)
