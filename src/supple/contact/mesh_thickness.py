"""Thickness of closed meshes: diameters of the largest inscribed balls that touch the surface.

A ball that touches at a point p with the outward normal n has its center at p - r n. It is inscribed if the
depth of the center is r; bisection finds the largest r.
"""

from __future__ import annotations

import numpy as np

from supple.contact.mesh_distance import distance_of_mesh
from supple.kernels import kernel

SAMPLES, HALVINGS = 1024, 24
"""Maximum number of sampled triangles, and bisection steps."""

OPPOSITE = -0.5
"""Cosine between the normals at two contact points of a ball below which they belong to opposite walls of a
thin part."""

THIN_SHARE, THINNEST = 0.05, 1e-3
"""Share of the surface area that is thinner than the thickness of thin parts, and lower limit of that
thickness relative to the largest thickness."""


@kernel
def _distances(values, points, found):
    for i in range(len(points)):
        d, nx, ny, nz = distance_of_mesh(values, 0, points[i, 0], points[i, 1], points[i, 2])
        found[i, 0], found[i, 1], found[i, 2], found[i, 3] = d, nx, ny, nz


def mesh_distances(numbers: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Signed distances of points from a mesh.

    Args:
        numbers: Tree of the mesh, see `TriangleTree.numbers_at`.
        points: (k, 3) points in the frame of the mesh [m].

    Returns:
        Distances (k,) [m] and their gradients (k, 3).
    """
    found = np.empty((len(points), 4))
    _distances(numbers, np.ascontiguousarray(points, float), found)
    return found[:, 0], found[:, 1:]


def mesh_thickness(numbers: np.ndarray, corners: np.ndarray) -> tuple[float, float]:
    """Largest thickness of a closed mesh, and thickness of its thin parts.

    Args:
        numbers: Tree of the mesh, see `TriangleTree.numbers_at`.
        corners: (t, 3, 3) corners of the triangles [m].

    Returns:
        Both thicknesses [m].
    """
    chosen = corners[:: -(-len(corners) // SAMPLES)]
    areas = np.cross(chosen[:, 1] - chosen[:, 0], chosen[:, 2] - chosen[:, 0])
    area = np.linalg.norm(areas, axis=1)
    chosen, areas, area = chosen[area > 0], areas[area > 0], area[area > 0]
    normals, touching = areas / area[:, None], chosen.mean(axis=1)
    largest = 0.5 * float(np.ptp(corners.reshape(-1, 3), axis=0).max())
    low, high = np.zeros(len(area)), np.full(len(area), largest)
    for _ in range(HALVINGS):
        r = 0.5 * (low + high)
        inside = -mesh_distances(numbers, touching - r[:, None] * normals)[0] >= (1 - 1e-6) * r
        low, high = np.where(inside, r, low), np.where(inside, high, r)
    beyond = mesh_distances(numbers, touching - 1.1 * low[:, None] * normals)[1]
    opposite = np.einsum("ki,ki->k", beyond, normals) < OPPOSITE
    thick = 2 * float(low.max())
    order = np.argsort(low)
    share = np.cumsum((area * opposite)[order]) / area.sum()
    if share[-1] <= THIN_SHARE:
        return thick, thick
    thin = 2 * float(low[order[np.searchsorted(share, THIN_SHARE)]])
    return thick, max(thin, THINNEST * thick)
