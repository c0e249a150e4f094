"""Points in tetrahedra: found exactly, also on the faces, edges and vertices between them."""

import numpy as np
import pytest
from data import data

from supple.meshes import ball, block, load_mesh
from supple.meshes.closest import closest_in_body
from supple.meshes.surface import neighbours

MESHES = {
    "ball": lambda: ball(1.0, 5),
    "block": lambda: block((7, 5, 3)).rotated((1, 2, 3), 0.3),
    "slivers": lambda: load_mesh(data("bunny.mesh")),
}


@pytest.mark.parametrize("corners", [1, 2, 3, 4])
@pytest.mark.parametrize("name", MESHES)
def test_points_of_the_body_are_their_own_closest_points(name, corners):
    mesh, rng = MESHES[name](), np.random.default_rng(corners)
    tets = mesh.tets[rng.integers(0, mesh.n_tets, 5000)]
    weights = np.pad(rng.dirichlet(np.ones(corners), len(tets)), ((0, 0), (0, 4 - corners)))
    points = np.einsum("ks,ksi->ki", weights, mesh.points[tets])
    vertices, found = closest_in_body(points, mesh)
    error = np.einsum("ks,ksi->ki", found, mesh.points[vertices]) - points
    assert np.abs(error).max() < 1e-10 * mesh.size.max()
    assert found.min() >= 0


def test_neighbours_share_three_vertices():
    mesh = ball(1.0, 3)
    beyond = neighbours(mesh.tets)
    assert (beyond < 0).sum() == len(mesh.surface)
    for tet, corner in np.argwhere(beyond >= 0)[::17]:
        shared = set(mesh.tets[tet]) & set(mesh.tets[beyond[tet, corner]])
        assert shared == set(np.delete(mesh.tets[tet], corner))
