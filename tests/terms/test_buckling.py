"""Lateral buckling of strips under their own weight, against Michell and Prandtl."""

import numpy as np
from cloth_shapes import cloth, equilateral
from scipy.sparse.linalg import eigsh

import supple
from supple.linear.assembly.hessian import Assembly
from supple.problem import Problem

EI_BY_B, GJ_BY_B = 8 / 9, 8 / 3
"""Of a strip of hinges on an equilateral mesh, by its width: an angle is κ across its edge less a third of κ
along it, so that curvatures are coupled as in a plate with ν = -1/3, which bends with B (1 - ν²) and twists
with 2 B (1 - ν)."""

CRITICAL = 12.85 * (EI_BY_B * GJ_BY_B) ** 0.5
"""Critical q L³ = 12.85 √(EI GJ) of a cantilever with weight q per length; here q, EI and GJ by width, and B
= L = 1."""


def upright(weight, cells=48, rows=8):
    """A strip on edge: length along x, height along y, pinned at x = 0, with B = 1 and nearly
    inextensible."""
    points, triangles = equilateral(cells, rows)
    membrane = supple.materials.PlaneStressStVK(young=1e9, poisson=0.3)
    pinned = np.flatnonzero(points[:, 0] <= 0.5 / cells + 1e-9)
    return cloth(points, triangles, membrane, supple.HingeBending(1.0), pinned, np.array([0, -weight, 0]))


def least_curvature(weight):
    """The smallest eigenvalue of the transverse Hessian of the hanging strip."""
    model = upright(weight)
    flat = supple.equilibrium(model, solver="newton", tolerance=1e-8, position_tolerance=None)
    assert np.abs(flat.positions[:, 2]).max() < 1e-9
    problem = Problem(model, "float64")
    problem.positions = flat.positions
    across = Assembly(problem).hessian("exact").tocsr()[2::3, 2::3]
    return float(eigsh(across.tocsc(), 1, sigma=-1e-3, which="LM", return_eigenvectors=False)[0])


def test_strip_on_edge_buckles_at_the_known_length():
    """Within 5 % in length, which is proportional to the cube root of the weight."""
    assert least_curvature(CRITICAL * 0.95**3) > 0
    assert least_curvature(CRITICAL * 1.05**3) < 0
