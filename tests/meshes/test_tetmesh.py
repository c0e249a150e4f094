"""Properties and transformations of tetrahedral meshes."""

import numpy as np
import pytest
from mesh_shapes import SHAPES

from supple.meshes import MeshError, TetMesh, block

CORNER = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
TET = [[0, 1, 2, 3]]


def regular_tet():
    return TetMesh([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], [[0, 2, 1, 3]], repair=True)


def two_tets():
    return TetMesh(np.concatenate([CORNER, CORNER + 5]), [[0, 1, 2, 3], [4, 5, 6, 7]])


def test_one_tet_by_hand():
    mesh = TetMesh(CORNER, TET)
    assert mesh.volumes == pytest.approx([1 / 6])
    assert mesh.masses(12) == pytest.approx([0.5] * 4)
    assert (mesh.n_vertices, mesh.n_tets, mesh.n_components) == (4, 1, 1)
    assert mesh.bounds.tolist() == [[0, 0, 0], [1, 1, 1]]
    assert len(mesh.surface) == 4


def test_arrays_are_private_and_read_only():
    points, tets = CORNER.copy(), np.array(TET)
    mesh = TetMesh(points, tets)
    points[:], tets[:] = 7, 7
    assert mesh.points.tolist() == CORNER.tolist()
    assert mesh.tets.tolist() == TET
    assert (mesh.points.dtype, mesh.tets.dtype) == (np.float64, np.int32)
    for name in (
        "points",
        "tets",
        "volumes",
        "surface",
        "surface_vertices",
        "components",
        "quality",
        "bounds",
    ):
        with pytest.raises(ValueError, match="read-only"):
            getattr(mesh, name)[0] = 0
    with pytest.raises(AttributeError):
        mesh.points = points


@pytest.mark.parametrize("name", SHAPES)
def test_masses_sum_to_density_times_volume(name):
    mesh = SHAPES[name]()
    masses = mesh.masses(250)
    assert masses.shape == (mesh.n_vertices,)
    assert masses.min() > 0
    assert masses.sum() == pytest.approx(250 * mesh.volume, rel=1e-12)


def test_masses_with_density_by_tet():
    masses = two_tets().masses([1, 3])
    assert masses[:4] == pytest.approx([1 / 24] * 4)
    assert masses[4:] == pytest.approx([3 / 24] * 4)


@pytest.mark.parametrize("density", [0, -1, np.nan, np.inf])
def test_density_must_be_positive(density):
    with pytest.raises(ValueError, match="positive"):
        two_tets().masses(density)


def test_density_is_one_value_or_one_per_tet():
    with pytest.raises(ValueError, match="each of the 2 tets"):
        two_tets().masses([1, 2, 3])


def test_components_are_labeled():
    mesh = two_tets()
    assert mesh.n_components == 2
    assert mesh.components.tolist() == [0] * 4 + [1] * 4
    assert block(3).n_components == 1


def test_tets_that_touch_in_one_vertex_are_one_component():
    mesh = TetMesh(np.concatenate([CORNER, -CORNER[1:]]), [[0, 1, 2, 3], [0, 4, 6, 5]])
    assert mesh.n_components == 1


def test_quality_is_one_for_a_regular_tet_of_any_size():
    mesh = regular_tet()
    assert mesh.quality == pytest.approx([1])
    assert mesh.scaled(1e-3).quality == pytest.approx([1])


def test_worst_names_the_flattest_tet_first():
    points = np.concatenate([CORNER, CORNER * [1, 1, 1e-3] + 5, CORNER * [1, 1, 0.1] + 9])
    mesh = TetMesh(points, np.arange(12).reshape(3, 4))
    assert mesh.worst(2).tolist() == [1, 2]


def test_rigid_motions_keep_shape():
    mesh = block((2, 3, 1), size=(1, 2, 3))
    assert mesh.translated((1, 2, 3)).points == pytest.approx(mesh.points + np.array([1, 2, 3]))
    assert mesh.scaled(2).volume == pytest.approx(8 * mesh.volume)
    assert mesh.scaled((1, 2, 3)).size == pytest.approx([1, 4, 9])
    turned = mesh.rotated((0, 0, 5), np.pi / 2, center=(1, 0, 0))
    x, y, z = mesh.points.T
    assert turned.points == pytest.approx(np.stack([1 - y, x - 1, z], axis=1))
    assert turned.volume == pytest.approx(mesh.volume)


def test_reflection_keeps_volumes_positive():
    mirrored = block(2).scaled((-1, 1, 1))
    assert mirrored.bounds.tolist() == [[-1, 0, 0], [0, 1, 1]]
    assert mirrored.volume == pytest.approx(1)


@pytest.mark.parametrize(
    ("move", "message"),
    [
        (lambda mesh: mesh.scaled(0), "scale must be finite and not 0"),
        (lambda mesh: mesh.transformed(np.diag([1, 1, 0])), "flat"),
        (lambda mesh: mesh.scaled((1, 2)), "one number or three"),
        (lambda mesh: mesh.rotated((0, 0, 0), 1), "axis must not be zero"),
        (lambda mesh: mesh.translated((1, 2)), "offset must be three"),
        (lambda mesh: mesh.translated((1, 2, np.nan)), "offset must be three finite"),
        (lambda mesh: mesh.transformed(np.eye(4)), "matrix must have shape"),
    ],
)
def test_impossible_transformations_are_refused(move, message):
    with pytest.raises(MeshError, match=message):
        move(block(1))


def test_repr_shows_counts_and_size():
    text = repr(block((31, 31, 31), size=(1, 2, 0.5)))
    assert text == "TetMesh(32,768 vertices, 148,955 tets, 1 component, 1 × 2 × 0.5 m)"
    assert "2 components" in repr(two_tets())
