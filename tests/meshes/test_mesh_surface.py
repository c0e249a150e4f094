"""Extraction of the surface triangles of a mesh."""

import numpy as np
import pytest
from mesh_shapes import SHAPES, enclosed_volume, face_counts

from supple.meshes import TetMesh, block
from supple.meshes.tetmesh import boundary


@pytest.mark.parametrize("name", SHAPES)
def test_neighboring_tets_conform(name):
    mesh = SHAPES[name]()
    counts = face_counts(mesh)
    assert set(counts.tolist()) <= {1, 2}
    assert np.sum(counts == 1) == len(mesh.surface)


@pytest.mark.parametrize("name", SHAPES)
def test_surface_is_closed_and_consistently_oriented(name):
    """Every directed edge occurs once, and once in the opposite direction."""
    edges = np.concatenate([SHAPES[name]().surface[:, [i, (i + 1) % 3]] for i in range(3)])
    forward = {tuple(edge) for edge in edges.tolist()}
    assert len(forward) == len(edges)
    assert forward == {(b, a) for a, b in forward}


@pytest.mark.parametrize("name", SHAPES)
def test_surface_faces_outward(name):
    mesh = SHAPES[name]()
    assert enclosed_volume(mesh) == pytest.approx(mesh.volume, rel=1e-12)


def test_surface_of_a_block_lies_on_its_sides():
    mesh = block((4, 3, 2))
    assert len(mesh.surface) == 2 * 2 * (4 * 3 + 3 * 2 + 2 * 4)
    on_side = ((mesh.points == 0) | (mesh.points == 1)).any(axis=1)
    assert mesh.surface_vertices.tolist() == np.flatnonzero(on_side).tolist()


def test_touching_surfaces_stay_separate():
    """Two tets with coincident points but separate vertices keep all their faces."""
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    mesh = TetMesh(np.concatenate([points, points]), [[0, 1, 2, 3], [4, 5, 6, 7]])
    assert len(mesh.surface) == 8


def test_huge_vertex_numbers_give_the_same_surface():
    """Beyond 2²¹ vertices three indices do not fit into one sorting key."""
    tets = block(3).tets
    offset = 30_000_000  # 64 vertices end just below 2³¹
    assert (boundary(tets * np.int32(offset)) == boundary(tets) * offset).all()
