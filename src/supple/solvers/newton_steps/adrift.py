"""Bodies that nothing holds: to move one as a whole takes no force.

Along such motions the curvature of the energy is 0 but for rounding and, since H (ω × x) = ω × g, for the
forces -g that are left, so that its sign says nothing of whether an equilibrium is stable.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import bsr_matrix
from scipy.sparse.csgraph import connected_components

from supple.linear import NotPositive
from supple.linear.solvers import rigid_motions

FREE = 1e-9
"""Part of the stiffness of vertices with which a motion may be resisted that counts as free."""


class Drift:
    """The translations and rotations, about x, y and z, that are free: of each part of a body or bodies that
    hang together. parts (f,): which part a vertex is in; motions (f, 3, 6), 0 where one is not free; grams
    (parts, 6, 6): the inverses of their products."""

    def __init__(self, H: bsr_matrix, positions: np.ndarray, forces: np.ndarray) -> None:
        """Of H at free vertices at positions (f, 3) [m], on which net forces (f, 3) [N] act."""
        f = len(positions)
        blocks = bsr_matrix((np.ones((len(H.indices), 1, 1)), H.indices, H.indptr), shape=(f, f))
        count, self.parts = connected_components(blocks, directed=False)
        size = np.bincount(self.parts, minlength=count)
        middle = self._sums(positions, count) / size[:, None]
        offset = positions - middle[self.parts]
        motions = rigid_motions(offset, centred=True).reshape(f, 3, 6)
        expected = np.zeros_like(motions)  # H (ω × x) = ω × g, g = -forces
        expected[:, :, 3:] = -rigid_motions(forces, centred=True).reshape(f, 3, 6)[:, :, 3:]
        missing = (H @ motions.reshape(-1, 6)).reshape(f, 3, 6) - expected
        resisted, most = np.zeros((count, 6)), np.zeros((count, 6))
        np.maximum.at(resisted, self.parts, np.abs(missing).max(axis=1))
        np.maximum.at(most, self.parts, np.abs(motions).max(axis=1))
        stiffness = np.zeros(count)
        np.maximum.at(stiffness, self.parts, np.abs(H.diagonal()).reshape(f, 3).max(axis=1))
        self.free = resisted <= FREE * stiffness[:, None] * most
        self.motions = np.where(self.free[self.parts][:, None, :], motions, 0)
        products = np.einsum("fia,fib->fab", self.motions, self.motions)
        self.grams = np.linalg.pinv(self._sums(products, count), hermitian=True)

    def _sums(self, values: np.ndarray, count: int) -> np.ndarray:
        """(parts, ...) of values (f, ...)."""
        sums = np.zeros((count, *values.shape[1:]))
        np.add.at(sums, self.parts, values)
        return sums

    def without(self, vector: np.ndarray) -> np.ndarray:
        """A vector (3 f,) less its part along free motions."""
        v = vector.reshape(-1, 3)
        along = self._sums(np.einsum("fia,fi->fa", self.motions, v), len(self.grams))
        motion = np.einsum("pab,pb->pa", self.grams, along)[self.parts]
        return (v - np.einsum("fia,fa->fi", self.motions, motion)).ravel()


def concave_beside(
    drift: Drift, H: bsr_matrix, M: Callable[[np.ndarray], np.ndarray], b: np.ndarray, accuracy: float,
    iterations: int,
) -> np.ndarray | None:  # fmt: skip
    """A direction p (3 f,) without free motions along which p · H p ≤ 0, if conjugate gradients for b (3 f,),
    preconditioned by M and solved to this accuracy, meet one."""
    r = drift.without(b)
    z = drift.without(M(r))
    p, rz = z, float(r @ z)
    enough = accuracy**2 * rz
    for _ in range(iterations):
        if not rz > 0:
            raise NotPositive
        q = drift.without(H @ p)
        curvature = float(p @ q)
        if not curvature > 0:
            return p
        r = r - rz / curvature * q
        z = drift.without(M(r))
        before, rz = rz, float(r @ z)
        if abs(rz) <= enough:
            return None
        p = z + rz / before * p
    return None
