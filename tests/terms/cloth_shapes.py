"""Shapes and models of cloth for tests and benchmarks."""

import numpy as np

import supple
from supple.model.model import Model
from supple.terms import TriangleElasticity, bending_terms

ELASTICA = {
    1: (0.12347, 0.99125),
    2: (0.23851, 0.96689),
    5: (0.49591, 0.84666),
    8: (0.64063, 0.72443),
    10: (0.70020, 0.65635),
    20: (0.82988, 0.44523),
    50: (0.90792, 0.24502),
    100: (0.93752, 0.15922),
}
"""Drop and reach of the tip, by the length, of a heavy elastica: θ'' = -Γ (1 - s) cos θ, Γ = weight L³/B."""


def equilateral(cells, rows):
    """Points and triangles of a strip along x from 0 to 1 with straight sides; vertices up to half an edge
    from x = 0 are pinned, since a hinge bends a quarter of an edge on both sides."""
    s = 1 / cells
    lines, points = [], []
    for j in range(rows + 1):
        x = np.arange(cells + 1) * s
        x = np.append(x - s / 2, 1) if j % 2 else x
        lines.append(len(points) + np.arange(len(x)))
        points += [(at, j * s * np.sqrt(3) / 2, 0) for at in x]
    triangles = []
    for j in range(rows):
        even, odd = (lines[j], lines[j + 1])[:: 1 - 2 * (j % 2)]
        corners = [(even[i], even[i + 1], odd[i + 1]) for i in range(cells)]
        corners += [(even[i], odd[i + 1], odd[i]) for i in range(cells + 1)]
        triangles += [triangle[:: 1 - 2 * (j % 2)] for triangle in corners]
    return np.array(points, float), np.array(triangles)


def cloth(points, triangles, membrane, bending, pinned, gravity, thickness=1e-2, density=1.0):
    """A sheet of this density [kg/m²] with the given pinned vertices."""
    corners = points[triangles]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 2
    mass = np.zeros(len(points))
    np.add.at(mass, triangles, density * area[:, None] / 3)
    terms = (
        TriangleElasticity.from_mesh(points, triangles, membrane, thickness),
        *bending_terms(bending, points, triangles, points),
    )
    still = points[pinned]
    none = np.empty((0, 4), int)
    return Model(points, mass, mass[:, None] * gravity, pinned, lambda t: still, terms, none)


def cantilever(weight, cells, rows, bending=supple.HingeBending, stretching=1e7, membrane=None):
    """A strip of length 1 m and B = 1 N m pinned at x = 0, with Γ = weight [N/m²]; the stretching stiffness E
    h [N/m] is so large that it hardly stretches or bends transversely."""
    points, triangles = equilateral(cells, rows)
    membrane = membrane or supple.materials.PlaneStressStVK(young=stretching / 1e-2, poisson=0.0)
    pinned = np.flatnonzero(points[:, 0] <= 0.5 / cells + 1e-9)
    return cloth(points, triangles, membrane, bending(1.0), pinned, np.array([0, 0, -weight]))


def tip(model, positions):
    """Drop and reach of the free end [m]."""
    end = positions[model.rest[:, 0] > 1 - 1e-9].mean(axis=0)
    return -end[2], end[0]
