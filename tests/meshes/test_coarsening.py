"""Coarsened surfaces: vertex counts, completeness, and binding of removed vertices."""

import numpy as np
import pytest

import supple
from supple.meshes.coarsening import coarsen_surface
from supple.meshes.measures import area_vectors, areas

SHEETS = {
    **{
        kind: supple.sheet(24, (1.0, 1.0), pattern=kind)
        for kind in ("alternating", "parallel", "equilateral")
    },
    "disc": supple.meshes.disc(0.5, 12),
}
CURVED = {
    "tube": supple.meshes.tube(0.2, 1.0, 32),
    "sphere": supple.meshes.sphere(0.5, 8),
    "pillow": supple.meshes.pillow(16),
}
EACH_SURFACE = pytest.mark.parametrize("name", [*SHEETS, *CURVED])


def coarse(mesh, first=()):
    before = np.zeros(mesh.n_vertices, bool)
    before[list(first)] = True
    return coarsen_surface(mesh.points, mesh.triangles, before)


@EACH_SURFACE
def test_about_a_quarter_of_the_vertices_is_kept(name):
    mesh = (SHEETS | CURVED)[name]
    coarsened = coarse(mesh)
    assert 3 < mesh.n_vertices / len(coarsened.vertices) < 6.5
    assert coarsened.triangles.max() == len(coarsened.vertices) - 1
    assert len(coarsened.origin) == len(coarsened.triangles)


@pytest.mark.parametrize("name", SHEETS)
def test_sheets_have_no_holes_and_keep_their_border(name):
    mesh = SHEETS[name]
    coarsened = coarse(mesh)
    vectors = area_vectors(mesh.points[coarsened.vertices], coarsened.triangles)
    area = mesh.measures.sum()
    assert (vectors @ area_vectors(mesh.points, mesh.triangles)[0] > 0).all()
    assert vectors.sum(axis=0) @ [0, 0, 1] == pytest.approx(area, rel=0.01 if name != "disc" else 0.05)
    assert areas(mesh.points[coarsened.vertices], coarsened.triangles).sum() == pytest.approx(area, rel=0.05)


@EACH_SURFACE
def test_vertices_are_bound_at_their_positions(name):
    """Binding reproduces linear functions within the plane of a triangle."""
    mesh = (SHEETS | CURVED)[name]
    coarsened = coarse(mesh)
    assert len(np.unique(coarsened.bound)) == len(coarsened.bound) == mesh.n_vertices
    np.testing.assert_allclose(coarsened.weights.sum(axis=1), 1)
    x = mesh.points[coarsened.vertices]
    away = np.einsum("bk,bki->bi", coarsened.weights, x[coarsened.corners]) - mesh.points[coarsened.bound]
    edge = np.sqrt(mesh.measures.mean())
    assert np.abs(away).max() < (1e-9 if name in SHEETS else edge)
    np.testing.assert_allclose(away[np.isin(coarsened.bound, coarsened.vertices)], 0, atol=1e-12)


def test_sides_of_a_pillow_stay_separate():
    """Both sides start at the same place; only near the seam a vertex may have corners on the other side."""
    mesh = CURVED["pillow"]
    mesh = supple.TriMesh(mesh.points * [1, 0, 1], mesh.triangles)
    coarsened = coarse(mesh)
    side = np.zeros(mesh.n_vertices)
    up = area_vectors(mesh.points, mesh.triangles)[:, 1] > 0
    inner = ~np.isin(np.arange(mesh.n_vertices), mesh.triangles[~up])
    side[inner] = 1
    side[~np.isin(np.arange(mesh.n_vertices), mesh.triangles[up])] = -1
    product = side[coarsened.bound][:, None] * side[coarsened.vertices][coarsened.corners]
    assert (product < 0).any(axis=1).mean() < 0.1


def test_reserved_vertices_are_kept():
    mesh = SHEETS["parallel"]
    chosen = [30, 311, 500]
    assert np.isin(chosen, coarse(mesh, chosen).vertices).all()


def test_corners_are_kept():
    mesh = SHEETS["alternating"]
    corners = np.flatnonzero(((mesh.points[:, :2] == 0) | (mesh.points[:, :2] == 1)).all(axis=1))
    assert len(corners) == 4
    assert np.isin(corners, coarse(mesh).vertices).all()


def test_vertices_outside_the_surface_are_ignored():
    """For example those of solids in the same scene."""
    mesh = SHEETS["equilateral"]
    expected = coarse(mesh)
    points = np.concatenate([np.ones((5, 3)), mesh.points, np.ones((3, 3))])
    surface = coarsen_surface(points, mesh.triangles + 5, np.zeros(len(points), bool))
    np.testing.assert_array_equal(surface.vertices, expected.vertices + 5)
    np.testing.assert_array_equal(surface.triangles, expected.triangles)


def test_single_triangle_has_no_coarser_surface():
    surface = coarsen_surface(np.eye(3), np.array([[0, 1, 2]]), np.zeros(3, bool))
    assert len(surface.vertices) == len(surface.triangles) == len(surface.bound) == 0
