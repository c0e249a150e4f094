"""Bodies that nothing holds: to move one as a whole takes no force.

Along such motions the curvature of the energy is 0 but for rounding and, since H (ω × x) = ω × g, for the
forces -g that are left, so that its sign says nothing of whether an equilibrium is stable.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from supple.linear import Matrix, NotPositive, Parts
from supple.linear.solvers import rigid_motions

FREE = 1e-9
"""Part of the stiffness of vertices with which a motion may be resisted that counts as free."""

STILL = 1e-9
"""Motions whose largest displacement is below this part of what a vertex may do are none: of a part that is a
point, or a line, turning about itself."""


class Drift:
    """The motions of parts as a whole, translations, rotations and what they add up to, such as a rotation
    about the one vertex at which a body is pinned, that are free. free (parts, 6): which of six motions of
    each; motions (f, 3, 6), 0 where one is not free; grams (parts, 6, 6): the inverses of their products."""

    def __init__(self, H: Matrix, positions: np.ndarray, forces: np.ndarray, parts: Parts) -> None:
        """Of H at free vertices at positions (f, 3) [m], on which net forces (f, 3) [N] act."""
        f, self.parts = len(positions), parts
        number, size = parts.number, np.bincount(parts.number, minlength=parts.count)
        offset = positions - (parts.sums(positions) / size[:, None])[number]
        reach = parts.most(np.linalg.norm(offset, axis=1))
        unit = np.where(reach > 0, reach, 1.0)[number, None]
        motions = rigid_motions(offset / unit, centred=True).reshape(f, 3, 6)
        expected = np.zeros_like(motions)  # H (ω × x) = ω × g, g = -forces
        expected[:, :, 3:] = -rigid_motions(forces / unit, centred=True).reshape(f, 3, 6)[:, :, 3:]
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

    def without(self, vector: np.ndarray) -> np.ndarray:
        """A vector (3 f,) less its part along free motions."""
        v = vector.reshape(-1, 3)
        along = self.parts.sums(np.einsum("fia,fi->fa", self.motions, v))
        motion = np.einsum("pab,pb->pa", self.grams, along)[self.parts.number]
        return (v - np.einsum("fia,fa->fi", self.motions, motion)).ravel()


def _free(motions: np.ndarray, missing: np.ndarray, stiffness: float) -> tuple[np.ndarray, np.ndarray]:
    """Six sums of motions (k, 3, 6) of one part, those first that meet the least of the forces missing
    (k, 3, 6) [N/m], and which of them (6,) meet none."""
    across = np.linalg.svd(np.linalg.qr(missing.reshape(-1, 6), mode="r"))[2][::-1].T
    mixed, resisted = motions @ across, np.abs(missing @ across).max(axis=(0, 1))
    most = np.abs(mixed).max(axis=(0, 1))
    return mixed, (resisted <= FREE * stiffness * most) & (most > STILL)


def solve_beside(
    drift: Drift, H: Matrix, M: Callable[[np.ndarray], np.ndarray], b: np.ndarray, accuracy: float,
    iterations: int,
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:  # fmt: skip
    """x (3 f,) with H x = b beside free motions, by conjugate gradients that are preconditioned by M, to this
    accuracy, with the b of each part scaled to the same √(b·Mb); a direction p without free motions along
    which p · H p ≤ 0, if they meet one; and √(r·Mr) of each part, of what it was at x = 0."""
    parts, r = drift.parts, drift.without(b)
    z = drift.without(M(r))

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
        q = drift.without(H @ p)
        curvature = float(p @ q)
        if not curvature > 0:
            return x * size, p, sizes()
        x, r = x + rz / curvature * p, r - rz / curvature * q
        z = drift.without(M(r))
        before, rz = rz, float(r @ z)
        if abs(rz) <= enough:
            break
        p = z + rz / before * p
    return x * size, None, sizes()
