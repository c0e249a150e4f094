"""Rigid-body modes of bodies without Dirichlet conditions, and conjugate gradients deflated by them.

The curvature of the energy along such a motion is 0 up to rounding and, since H (ω × x) = ω × g, up to the
residual forces -g. Its sign therefore says nothing about the stability of an equilibrium.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from supple.linear import Matrix, NotPositive, Parts
from supple.linear.linear_solvers import rigid_motions

FREE_RESISTANCE = 1e-9
"""A motion is free if its resistance is below this fraction of the stiffness of the vertices."""

MIN_MOTION = 1e-9
"""Smallest displacement of a motion as a fraction of a unit displacement.

Smaller ones are rotations of a component that is a point, or of a line about itself.
"""


class RigidModes:
    """Free rigid motions of connected components: translations, rotations and their linear combinations.

    A combination is, for instance, the rotation about the only pinned vertex of a body.

    Attributes:
        free: (parts, 6) True for the free ones among the six motions of each component.
        motions: (f, 3, 6) motions of the free vertices, 0 for motions that are not free.
        grams: (parts, 6, 6) pseudo-inverses of the Gram matrices of the motions.
    """

    def __init__(self, H: Matrix, positions: np.ndarray, forces: np.ndarray, parts: Parts) -> None:
        """Find the free motions of each component.

        Args:
            H: Hessian of the free vertices.
            positions: (f, 3) positions [m].
            forces: (f, 3) net forces [N].
            parts: Connected components.
        """
        f, self.parts = len(positions), parts
        number, size = parts.number, np.bincount(parts.number, minlength=parts.count)
        offset = positions - (parts.sums(positions) / size[:, None])[number]
        reach = parts.most(np.linalg.norm(offset, axis=1))
        unit = np.where(reach > 0, reach, 1.0)[number, None]
        motions = rigid_motions(offset / unit, centered=True).reshape(f, 3, 6)
        expected = np.zeros_like(motions)  # H (ω × x) = ω × g, g = -forces
        expected[:, :, 3:] = -rigid_motions(forces / unit, centered=True).reshape(f, 3, 6)[:, :, 3:]
        missing = (H @ motions.reshape(-1, 6)).reshape(f, 3, 6) - expected
        stiffness = parts.most(np.abs(H.diagonal()).reshape(f, 3).max(axis=1))
        self.free, self.motions = np.zeros((parts.count, 6), bool), np.zeros_like(motions)
        order, ends = np.argsort(number, kind="stable"), np.cumsum(size)
        for part in np.flatnonzero(parts.loose):
            own = order[ends[part] - size[part] : ends[part]]
            mixed, free = _free(motions[own], missing[own], float(stiffness[part]))
            self.free[part], self.motions[own] = free, np.where(free, mixed, 0)
        products = np.einsum("fia,fib->fab", self.motions, self.motions)
        self.grams = np.linalg.pinv(parts.sums(products), hermitian=True)

    def deflate(self, vector: np.ndarray) -> np.ndarray:
        """Return a vector (3 f,) with its components along free motions projected out."""
        v = vector.reshape(-1, 3)
        along = self.parts.sums(np.einsum("fia,fi->fa", self.motions, v))
        motion = np.einsum("pab,pb->pa", self.grams, along)[self.parts.number]
        return (v - np.einsum("fia,fa->fi", self.motions, motion)).ravel()


def _free(motions: np.ndarray, missing: np.ndarray, stiffness: float) -> tuple[np.ndarray, np.ndarray]:
    """Combine the motions of one component and test each combination for zero stiffness.

    Args:
        motions: (k, 3, 6) motions.
        missing: (k, 3, 6) forces that resist the motions [N/m].
        stiffness: Largest stiffness of the component [N/m].

    Returns:
        Six combinations (k, 3, 6) in order of increasing resistance, and (6,) True for the free ones.
    """
    across = np.linalg.svd(np.linalg.qr(missing.reshape(-1, 6), mode="r"))[2][::-1].T
    mixed, resisted = motions @ across, np.abs(missing @ across).max(axis=(0, 1))
    most = np.abs(mixed).max(axis=(0, 1))
    return mixed, (resisted <= FREE_RESISTANCE * stiffness * most) & (most > MIN_MOTION)


def deflated_cg(
    modes: RigidModes, H: Matrix, M: Callable[[np.ndarray], np.ndarray], b: np.ndarray, accuracy: float,
    iterations: int,
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:  # fmt: skip
    """Solve H x = b in the complement of the free motions by preconditioned, deflated conjugate gradients.

    The right-hand side of each component is scaled to the same √(b·Mb).

    Args:
        modes: Free rigid motions.
        H: Hessian of the free vertices.
        M: Preconditioner.
        b: (3 f,) right-hand side.
        accuracy: Tolerance of √(r·Mr) relative to its value at x = 0.
        iterations: Iteration limit.

    Returns:
        x (3 f,); a direction p in the complement with p · H p ≤ 0, or None if the iterations met none;
        √(r·Mr) of each component relative to its value at x = 0.

    Raises:
        NotPositive: The preconditioner is not positive definite.
    """
    parts, r = modes.parts, modes.deflate(b)
    z = modes.deflate(M(r))

    def sizes() -> np.ndarray:
        return np.sqrt(np.maximum(parts.sums((r * z).reshape(-1, 3).sum(axis=1)), 0))

    size = sizes()
    size = np.repeat(np.where(size > 0, size, 1.0)[parts.number], 3)
    r, z = r / size, z / size
    x, p, rz = np.zeros_like(r), z, float(r @ z)
    enough = accuracy**2 * rz
    for _ in range(iterations if r.any() else 0):
        if not rz > 0:
            raise NotPositive
        q = modes.deflate(H @ p)
        curvature = float(p @ q)
        if not curvature > 0:
            return x * size, p, sizes()
        x, r = x + rz / curvature * p, r - rz / curvature * q
        z = modes.deflate(M(r))
        before, rz = rz, float(r @ z)
        if abs(rz) <= enough:
            break
        p = z + rz / before * p
    return x * size, None, sizes()
