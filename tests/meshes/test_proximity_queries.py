"""Closest points of bodies, exact also on faces, edges and vertices between cells."""

import numpy as np
import pytest
from real_meshes import real_mesh

from supple.meshes import ball, block, load_mesh, sheet, sphere
from supple.meshes.proximity_queries import closest_in_body, closest_on_triangles, containing_tets

MESHES = {
    "ball": lambda: ball(1.0, 5),
    "block": lambda: block((7, 5, 3)).rotated((1, 2, 3), 0.3),
    "slivers": lambda: load_mesh(real_mesh("bunny.mesh")),
}


@pytest.mark.parametrize("corners", [1, 2, 3, 4])
@pytest.mark.parametrize("name", MESHES)
def test_interior_points_are_their_own_closest_points(name, corners):
    mesh, rng = MESHES[name](), np.random.default_rng(corners)
    tets = mesh.tets[rng.integers(0, mesh.n_tets, 5000)]
    weights = np.pad(rng.dirichlet(np.ones(corners), len(tets)), ((0, 0), (0, 4 - corners)))
    points = np.einsum("ks,ksi->ki", weights, mesh.points[tets])
    vertices, closest = closest_in_body(points, mesh)
    error = np.einsum("ks,ksi->ki", closest, mesh.points[vertices]) - points
    assert np.abs(error).max() < 1e-10 * mesh.size.max()
    assert closest.min() >= 0


def distances_to(points, mesh):
    """Distances (k,) [m] of points from their closest points."""
    vertices, weights = closest_in_body(points, mesh)
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
    return np.linalg.norm(np.einsum("ks,ksi->ki", weights, mesh.points[vertices]) - points, axis=1)


CLOTH = {
    "sheet": lambda: sheet((9, 4), (2, 1)).rotated((1, 0, 2), 1.0),
    "sphere": lambda: sphere(1.0, 6),
    "sail": lambda: sheet((1, 40), (3, 1e-3)),
}


@pytest.mark.parametrize("name", [*MESHES, *CLOTH])
@pytest.mark.parametrize(("size", "where"), [(1.0, 0.0), (1e-6, 0.0), (1e6, 0.0), (1.0, 1e5)])
def test_closest_points_equal_those_of_vtk(name, size, where):
    """Points on both sides and far away; VTK uses the surface only, so interior points are excluded."""
    pyvista = pytest.importorskip("pyvista")
    mesh = (MESHES | CLOTH)[name]().scaled(size).translated((where, 0, 0))
    rng = np.random.default_rng(3)
    middle, reach = mesh.points.mean(axis=0), mesh.size.max()
    points = middle + rng.normal(size=(2000, 3)) * reach * 10 ** rng.uniform(-2, 1.5, (2000, 1))
    surface = pyvista.PolyData.from_regular_faces(mesh.points - middle, mesh.surface)
    _, theirs = surface.find_closest_cell(points - middle, return_closest_point=True)
    expected = np.linalg.norm(theirs - (points - middle), axis=1)
    distances = distances_to(points, mesh)
    rounding = 1e-12 * (np.linalg.norm(points, axis=1) + reach)
    inside = np.zeros(len(points), bool)
    if mesh.corners == 4:
        grid = pyvista.UnstructuredGrid({pyvista.CellType.TETRA: mesh.cells}, mesh.points - middle)
        inside = np.asarray(grid.find_containing_cell(points - middle)) >= 0
        sure = inside & (expected > 0.01 * reach)
        assert sure.sum() > 20
        assert distances[sure].max() <= rounding.max()
    outside = ~inside
    assert (np.abs(distances - expected)[outside] <= rounding[outside]).all()


def test_closest_points_from_afar_and_from_the_center_of_a_sphere():
    """Bounding boxes exclude little, since all of the surface is about equally far."""
    mesh = sphere(1.0, 12)
    radii = np.linalg.norm(mesh.points, axis=1)
    middle = np.zeros((300, 3)) + 1e-9 * np.random.default_rng(0).normal(size=(300, 3))
    distances = distances_to(middle, mesh)
    assert radii.min() * 0.98 < distances.min() <= distances.max() < radii.max()
    distant = 1e6 * np.random.default_rng(1).normal(size=(300, 3))
    assert np.abs(distances_to(distant, mesh) + 1 - np.linalg.norm(distant, axis=1)).max() < 1e-2


def test_closest_points_are_independent_of_chunk_size(monkeypatch):
    mesh = block((7, 5, 3))
    points = np.random.default_rng(0).normal(size=(500, 3)) * 2
    expected = closest_in_body(points, mesh)
    monkeypatch.setattr("supple.meshes.proximity_queries.MAX_PAIRS", 10)
    monkeypatch.setattr("supple.meshes.proximity_queries.POINTS_PER_BATCH", 33)
    for mine, theirs in zip(closest_in_body(points, mesh), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_degenerate_triangles_act_as_edges_or_points():
    vertices = np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [5, 5, 5]], float)
    points = np.array([[0.5, 1, 0], [3, 0, 0], [-1, 0, 0], [5, 5, 6]])
    triangle, weights = closest_on_triangles(points, vertices, np.array([[0, 1, 2], [3, 3, 3]]))
    closest = np.einsum("pk,pki->pi", weights, vertices[np.array([[0, 1, 2], [3, 3, 3]])[triangle]])
    np.testing.assert_allclose(closest, [[0.5, 0, 0], [2, 0, 0], [0, 0, 0], [5, 5, 5]], atol=1e-15)


def test_degenerate_tetrahedra_contain_nothing():
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]], float)
    tets = np.array([[0, 1, 2, 4], [0, 1, 2, 3]])
    containing, _ = containing_tets(np.array([[0.2, 0.2, 0.0], [0.2, 0.2, 0.2], [2, 2, 2]]), vertices, tets)
    assert containing.tolist() == [1, 1, -1]
