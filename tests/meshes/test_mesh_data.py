"""Cell and vertex data: files, transformations, selections and merges."""

import itertools
import pickle

import meshio
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import supple
from supple.meshes import MeshError, TriMesh, block, load_mesh, merge, save_mesh, sheet
from supple.meshes.files.load_save import deform_data, deformation_gradients

PLAIN = block((2, 1, 1))


def unit_vectors(count, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(count, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def tensors(count):
    return np.random.default_rng(1).normal(size=(count, 3, 3))


@pytest.fixture
def mesh():
    n, m = PLAIN.n_vertices, PLAIN.n_tets
    cells = {"fiber": unit_vectors(m), "region": np.arange(m) % 3, "a": np.linspace(0, 1, m), "T": tensors(m)}
    return PLAIN.with_data(
        cell_data=cells, point_data={"normal": unit_vectors(n, 2), "heat": np.arange(n) / n}
    )


def assert_same(data, other, atol=0.0):
    assert set(data) == set(other)
    for name, values in data.items():
        np.testing.assert_allclose(values, other[name], atol=atol, err_msg=name)


@pytest.mark.parametrize("suffix", [".vtu", ".vtk", ".msh"])
def test_files_keep_data(mesh, tmp_path, suffix):
    save_mesh(mesh, tmp_path / f"mesh{suffix}")
    loaded = load_mesh(tmp_path / f"mesh{suffix}")
    for name, values in mesh.cell_data.items():
        np.testing.assert_allclose(loaded.cell_data[name], values, err_msg=name)
    for name, values in mesh.point_data.items():
        np.testing.assert_allclose(loaded.point_data[name], values, err_msg=name)


def test_medit_regions_are_read_and_preserved(tmp_path):
    regions = np.arange(PLAIN.n_tets) % 2 + 5
    content = meshio.Mesh(PLAIN.points, [("tetra", PLAIN.tets)], cell_data={"medit:ref": [regions]})
    meshio.medit.write(str(tmp_path / "a.mesh"), content)
    mesh = load_mesh(tmp_path / "a.mesh")
    np.testing.assert_array_equal(mesh.cell_data["medit:ref"], regions)
    with pytest.warns(
        UserWarning, match=r"b\.mesh: a Medit file cannot store 'fiber' of the mesh; write a \.vtu"
    ):
        save_mesh(mesh.with_data(cell_data={"fiber": unit_vectors(mesh.n_tets)}), tmp_path / "b.mesh")
    np.testing.assert_array_equal(load_mesh(tmp_path / "b.mesh").cell_data["medit:ref"], regions)


def test_data_of_other_cells_are_ignored(tmp_path):
    cells = [("triangle", PLAIN.surface), ("tetra", PLAIN.tets[:4]), ("tetra", PLAIN.tets[4:])]
    counts = [len(ids) for _, ids in cells]
    first = np.cumsum([0, *counts])
    data = {"number": [np.arange(a, b) for a, b in itertools.pairwise(first)]}
    meshio.vtu.write(str(tmp_path / "a.vtu"), meshio.Mesh(PLAIN.points, cells, cell_data=data))
    mesh = load_mesh(tmp_path / "a.vtu").cell_data["number"]
    np.testing.assert_array_equal(mesh, np.arange(counts[0], first[-1]))


def test_vectors_and_tensors_rotate_with_the_mesh(mesh):
    turned = mesh.rotated((1, 2, 3), 0.7, center=(5, 0, 0))
    R = Rotation.from_rotvec(0.7 * np.array([1, 2, 3]) / np.sqrt(14)).as_matrix()
    expected = {**mesh.cell_data, "fiber": mesh.cell_data["fiber"] @ R.T, "T": R @ mesh.cell_data["T"] @ R.T}
    assert_same(turned.cell_data, expected, atol=1e-12)
    np.testing.assert_allclose(turned.point_data["normal"], mesh.point_data["normal"] @ R.T, atol=1e-12)
    back = turned.rotated((1, 2, 3), -0.7, center=(5, 0, 0))
    assert_same(back.cell_data, mesh.cell_data, atol=1e-12)


def test_translation_and_scaling_keep_data(mesh):
    moved = mesh.translated((1, 2, 3)).scaled(7)
    assert_same(moved.cell_data, mesh.cell_data, atol=1e-12)
    assert_same(moved.point_data, mesh.point_data, atol=1e-12)


def test_fiber_stays_along_its_material_line(mesh):
    """Under any affine map the direction between two material points is that of the mapped points."""
    A = np.array([[2.0, 0.3, 0], [0, 0.5, 0.1], [0.2, 0, 1]])
    edge = PLAIN.points[PLAIN.tets[:, 1]] - PLAIN.points[PLAIN.tets[:, 0]]
    along = edge / np.linalg.norm(edge, axis=1, keepdims=True)
    moved = PLAIN.with_data(cell_data={"along": along}).transformed(A)
    edge = moved.points[moved.tets[:, 1]] - moved.points[moved.tets[:, 0]]
    expected = edge / np.linalg.norm(edge, axis=1, keepdims=True)
    np.testing.assert_allclose(moved.cell_data["along"], expected, atol=1e-12)
    now, _ = deform_data(PLAIN.with_data(cell_data={"along": along}), PLAIN.points @ A.T)
    np.testing.assert_allclose(now["along"], expected, atol=1e-12)
    gradients = deformation_gradients(PLAIN, PLAIN.points @ A.T + 3)
    np.testing.assert_allclose(gradients, np.broadcast_to(A, gradients.shape), atol=1e-12)


def test_reflection_reflects_vectors(mesh):
    mirror = np.diag([-1.0, 1, 1])
    reflected = mesh.transformed(mirror)
    np.testing.assert_allclose(reflected.cell_data["fiber"], mesh.cell_data["fiber"] @ mirror, atol=1e-15)
    np.testing.assert_array_equal(reflected.cell_data["region"], mesh.cell_data["region"])


def test_selected_tets_keep_their_data(mesh):
    for chosen in (mesh.cell_data["region"] == 1, np.flatnonzero(mesh.cell_data["region"] == 1)):
        part = mesh.extract_cells(chosen)
        assert set(part.cell_data["region"]) == {1}
        np.testing.assert_array_equal(
            part.cell_data["fiber"], mesh.cell_data["fiber"][mesh.cell_data["region"] == 1]
        )
        indices = [int(np.flatnonzero((mesh.points == p).all(axis=1))[0]) for p in part.points]
        np.testing.assert_array_equal(part.point_data["heat"], mesh.point_data["heat"][indices])
    for wrong in ([], [mesh.n_tets], [-1], [0.5], np.zeros(3, bool)):
        with pytest.raises(MeshError, match="cells must be True or False for each"):
            mesh.extract_cells(wrong)


def test_selected_triangles_keep_their_data():
    surface = sheet(3).with_data(
        cell_data={"region": np.arange(18) % 3}, point_data={"heat": np.arange(16.0)}
    )
    textured = TriMesh(
        surface.points,
        surface.triangles,
        np.arange(108.0).reshape(18, 3, 2),
        cell_data=surface.cell_data,
        point_data=surface.point_data,
    )
    part = textured.extract_cells(textured.cell_data["region"] == 1)
    assert part.n_triangles == 6
    assert set(part.cell_data["region"]) == {1}
    np.testing.assert_array_equal(part.uv, textured.uv[1::3])
    np.testing.assert_array_equal(part.points[part.triangles], textured.points[textured.triangles[1::3]])
    np.testing.assert_array_equal(
        part.point_data["heat"][part.triangles], textured.point_data["heat"][textured.triangles[1::3]]
    )
    assert part.n_vertices == len(np.unique(part.triangles))
    with pytest.raises(MeshError, match="cells must be True or False for each of the 18 triangles"):
        textured.extract_cells([18])


def test_merged_meshes_keep_their_data(mesh):
    other = block(1, origin=(9, 0, 0)).with_data(cell_data={"region": np.full(5, 8)})
    both = merge([mesh, other])
    assert both.n_components == 2
    np.testing.assert_array_equal(both.cell_data["region"], [*mesh.cell_data["region"], *[8] * 5])
    np.testing.assert_array_equal(both.cell_data["fiber"][: mesh.n_tets], mesh.cell_data["fiber"])
    assert np.isnan(both.cell_data["fiber"][mesh.n_tets :]).all()
    again = both.extract_cells(np.arange(mesh.n_tets))
    assert_same(again.cell_data, mesh.cell_data)
    assert_same(again.point_data, mesh.point_data)
    with pytest.raises(MeshError, match="data 'region' have rows of shapes"):
        merge([mesh, other.with_data(cell_data={"region": np.ones((5, 2))})])
    with pytest.raises(TypeError, match="at least one TetMesh"):
        merge([])


def test_removed_vertices_lose_their_data():
    points = np.vstack([[[9.0, 9, 9]], PLAIN.points])
    mesh = supple.TetMesh(points, PLAIN.tets + 1, repair=True, point_data={"x": points[:, 0]})
    np.testing.assert_array_equal(mesh.point_data["x"], mesh.points[:, 0])


def test_field_is_cell_data_or_the_mean_of_vertices(mesh):
    assert mesh.field("a") is mesh.cell_data["a"]
    heat = mesh.with_data(point_data={"x": mesh.points[:, 0]}).field("x")
    np.testing.assert_allclose(heat, mesh.points[mesh.tets].mean(axis=1)[:, 0])
    with pytest.raises(MeshError, match="no data named 'b'; it has T, a, fiber, heat, normal, region"):
        mesh.field("b")


def test_data_are_immutable_and_pickled(mesh):
    given = np.ones(mesh.n_tets)
    other = mesh.with_data(cell_data={"mine": given})
    given[:] = 2
    assert (other.cell_data["mine"] == 1).all()
    assert "mine" not in mesh.cell_data
    copied = pickle.loads(pickle.dumps(other))
    assert_same(copied.cell_data, other.cell_data)
    for m in (other, copied):
        with pytest.raises(ValueError, match="read-only"):
            m.cell_data["mine"][0] = 3
        with pytest.raises(TypeError):
            m.cell_data["new"] = given


@pytest.mark.parametrize(
    "wrong", [{"a": np.ones(3)}, {"a": ["x"] * PLAIN.n_tets}, {"a": 1.0}, {3: np.ones(10)}, [1]]
)
def test_wrong_data_are_refused(wrong):
    with pytest.raises(MeshError, match="cell_data"):
        supple.TetMesh(PLAIN.points, PLAIN.tets, cell_data=wrong)
