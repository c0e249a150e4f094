"""Trilinear interpolation on a regular grid, and transfer of velocities between vertices and nodes.

Velocities are transferred with their gradients (APIC) [Jiang et al. 2015]: a node gets vᵢ = Σₚ mₚ wᵢₚ (vₚ +
Cₚ (xᵢ - xₚ))/mᵢ with mᵢ = Σₚ wᵢₚ mₚ, a vertex vₚ = Σᵢ wᵢₚ vᵢ and Cₚ = Σᵢ vᵢ ∇wᵢₚᵀ. This conserves momentum
and reproduces affine motions. For these weights wᵢₚ D⁻¹ (xᵢ - xₚ) = ∇wᵢₚ, so that C is the paper's B D⁻¹. C
is stored instead of B, because D depends on the position in a cell and is singular on its faces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ORIGIN = np.array([0.38, 0.43, 0.47])
"""Position of a grid node [cells], chosen so that vertices with round coordinates lie inside cells."""

MIN_FACE_DISTANCE = 1e-3
"""Smallest distance of a vertex from a cell face [cells]; keeps node masses away from zero."""

MAX_CELLS = 2**62
"""Largest number of cells, limited by 64-bit indices."""

_CORNERS = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Points (n, 3) interpolated from a grid.

    Attributes:
        nodes: (q, 3) nodes around any of the points [m].
        corners: (n, 8) nodes around each point.
        weights: (n, 8) interpolation weights.
        gradients: (n, 8, 3) their gradients [1/m].
        offsets: (n, 8, 3) xᵢ - xₚ [m].
    """

    nodes: np.ndarray
    corners: np.ndarray
    weights: np.ndarray
    gradients: np.ndarray
    offsets: np.ndarray

    def gather(self, values: np.ndarray) -> np.ndarray:
        """Σᵢ wᵢₚ aᵢ (n, 3) of node vectors (q, 3)."""
        return np.einsum("pk,pki->pi", self.weights, values[self.corners])

    def gradient(self, values: np.ndarray) -> np.ndarray:
        """Σᵢ aᵢ ∇wᵢₚᵀ (n, 3, 3) of node vectors (q, 3), in their unit per meter."""
        return np.einsum("pki,pkj->pij", values[self.corners], self.gradients)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Σₚ wᵢₚ aₚ (q,) or (q, 3) of point values."""
        parts = self.weights.reshape(*self.weights.shape, *[1] * (values.ndim - 1)) * values[:, None]
        return self._sum(parts)

    def transfer(self, mass: np.ndarray, velocity: np.ndarray, affine: np.ndarray) -> np.ndarray:
        """Node velocities vᵢ (q, 3) [m/s].

        Args:
            mass: (n,) masses of the points [kg].
            velocity: (n, 3) velocities [m/s].
            affine: (n, 3, 3) velocity gradients [1/s].
        """
        near = velocity[:, None] + np.einsum("pij,pkj->pki", affine, self.offsets)
        momentum = self._sum((mass[:, None] * self.weights)[..., None] * near)
        return momentum / self.spread(mass)[:, None]

    def _sum(self, parts: np.ndarray) -> np.ndarray:
        """Sum parts (n, 8, ...) at each node."""
        where, count = self.corners.ravel(), len(self.nodes)
        if parts.ndim == 2:
            return np.bincount(where, parts.ravel(), count)
        return np.stack([np.bincount(where, parts[..., i].ravel(), count) for i in range(3)], axis=1)


def interpolate(points: np.ndarray, spacing: float) -> Interpolation:
    """Interpolate points (n, 3) [m] from a grid with a given edge length of the cells [m]."""
    at = points / spacing - ORIGIN
    cells = np.floor(at)
    t = np.clip(at - cells, MIN_FACE_DISTANCE, 1 - MIN_FACE_DISTANCE)
    cells = cells.astype(np.int64)
    low = cells.min(axis=0)
    size = cells.max(axis=0) - low + 2
    if float(np.prod(size.astype(float))) > MAX_CELLS:
        raise ValueError(
            f"the bodies span {' x '.join(f'{s:.3g}' for s in size)} cells of the grid, which are too "
            f"many to number; use a larger spacing than {spacing:g} m"
        )
    around = cells[:, None] + _CORNERS
    keys = np.ravel_multi_index(tuple(np.moveaxis(around - low, 2, 0)), tuple(size))
    numbers, corners = np.unique(keys, return_inverse=True)
    nodes = np.stack(np.unravel_index(numbers, tuple(size)), axis=1) + low
    w, slope = _linear_weights(t)
    weights = w[..., 0] * w[..., 1] * w[..., 2]
    gradients = np.stack(
        [
            slope[..., 0] * w[..., 1] * w[..., 2],
            w[..., 0] * slope[..., 1] * w[..., 2],
            w[..., 0] * w[..., 1] * slope[..., 2],
        ],
        axis=2,
    )
    offsets = (_CORNERS - t[:, None]) * spacing
    positions = (nodes + ORIGIN) * spacing
    return Interpolation(positions, corners.reshape(-1, 8), weights, gradients / spacing, offsets)


def _linear_weights(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One-dimensional hat functions of the eight corners along each axis, and their derivatives (n, 8, 3).

    Args:
        t: (n, 3) cell coordinates from 0 to 1.
    """
    is_upper = _CORNERS == 1
    return np.where(is_upper, t[:, None], 1 - t[:, None]), np.broadcast_to(
        np.where(is_upper, 1.0, -1.0), (len(t), 8, 3)
    )
