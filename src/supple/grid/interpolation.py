"""Trilinear interpolation on a regular grid, and what is transferred by it: vertices to nodes and back.

Velocities are transferred with their gradients (APIC) [Jiang et al. 2015]: a node gets
vᵢ = Σₚ mₚ wᵢₚ (vₚ + Cₚ (xᵢ - xₚ))/mᵢ with mᵢ = Σₚ wᵢₚ mₚ, a vertex vₚ = Σᵢ wᵢₚ vᵢ and Cₚ = Σᵢ vᵢ ∇wᵢₚᵀ. That
keeps momentum, and affine motions as they are. For these weights wᵢₚ D⁻¹ (xᵢ - xₚ) = ∇wᵢₚ, so that C is the
paper's B D⁻¹; it is C that is kept, since D belongs to a place in a cell, and is singular on its faces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ORIGIN = np.array([0.38, 0.43, 0.47])
"""Where the grid has a node, in cells, so that the vertices of blocks with round coordinates are inside of
cells."""

LEAST = 1e-3
"""Parts of a cell: a vertex nearer to a face counts as that far away, lest nodes have next to no mass."""

MOST_CELLS = 2**62
"""Whose numbers fit into 64 bits."""

_CORNERS = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Points (n, 3) on a grid: nodes (q, 3) [m], those around any of them; corners (n, 8): which are around
    each; weights (n, 8), their gradients (n, 8, 3) [1/m], and offsets (n, 8, 3) xᵢ - xₚ [m]."""

    nodes: np.ndarray
    corners: np.ndarray
    weights: np.ndarray
    gradients: np.ndarray
    offsets: np.ndarray

    def gather(self, values: np.ndarray) -> np.ndarray:
        """Σᵢ wᵢₚ aᵢ (n, 3) of vectors (q, 3) at nodes."""
        return np.einsum("pk,pki->pi", self.weights, values[self.corners])

    def gradient(self, values: np.ndarray) -> np.ndarray:
        """Σᵢ aᵢ ∇wᵢₚᵀ (n, 3, 3) [1/m of vectors]."""
        return np.einsum("pki,pkj->pij", values[self.corners], self.gradients)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Σₚ wᵢₚ aₚ (q,) or (q, 3) of numbers or vectors at points."""
        parts = self.weights.reshape(*self.weights.shape, *[1] * (values.ndim - 1)) * values[:, None]
        return self._sum(parts)

    def transfer(self, mass: np.ndarray, velocity: np.ndarray, affine: np.ndarray) -> np.ndarray:
        """vᵢ (q, 3) [m/s] of nodes from mass (n,), velocity (n, 3) and its gradient (n, 3, 3) of points."""
        near = velocity[:, None] + np.einsum("pij,pkj->pki", affine, self.offsets)
        momentum = self._sum((mass[:, None] * self.weights)[..., None] * near)
        return momentum / self.spread(mass)[:, None]

    def _sum(self, parts: np.ndarray) -> np.ndarray:
        """Of parts (n, 8, ...) at each node."""
        where, count = self.corners.ravel(), len(self.nodes)
        if parts.ndim == 2:
            return np.bincount(where, parts.ravel(), count)
        return np.stack([np.bincount(where, parts[..., i].ravel(), count) for i in range(3)], axis=1)


def interpolate(points: np.ndarray, spacing: float) -> Interpolation:
    """Points (n, 3) [m] on a grid of cells with edges of so many metres."""
    at = points / spacing - ORIGIN
    cells = np.floor(at)
    t = np.clip(at - cells, LEAST, 1 - LEAST)
    cells = cells.astype(np.int64)
    low = cells.min(axis=0)
    size = cells.max(axis=0) - low + 2
    if float(np.prod(size.astype(float))) > MOST_CELLS:
        raise ValueError(
            f"bodies are spread over {' x '.join(f'{s:.3g}' for s in size)} cells of the grid, which are too "
            f"many to number; its spacing, {spacing:g} m, must be larger"
        )
    around = cells[:, None] + _CORNERS
    keys = np.ravel_multi_index(tuple(np.moveaxis(around - low, 2, 0)), tuple(size))
    numbers, corners = np.unique(keys, return_inverse=True)
    nodes = np.stack(np.unravel_index(numbers, tuple(size)), axis=1) + low
    w, slope = _tents(t)
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
    places = (nodes + ORIGIN) * spacing
    return Interpolation(places, corners.reshape(-1, 8), weights, gradients / spacing, offsets)


def _tents(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, 8, 3) the weights along each axis, and their slopes per cell, of points t (n, 3) in their cells."""
    far = _CORNERS == 1
    return np.where(far, t[:, None], 1 - t[:, None]), np.broadcast_to(
        np.where(far, 1.0, -1.0), (len(t), 8, 3)
    )
