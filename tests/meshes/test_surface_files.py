"""Surfaces from files, and checks that they are closed."""

import meshio
import numpy as np
import pytest
import trimesh
from real_meshes import real_mesh

from supple.meshes import MeshError, TriMesh, ball, block, load_surface
from supple.meshes.files.surface_files import SURFACES


def surface(mesh=None):
    mesh = mesh or ball(0.5, 3).translated((1, 2, 3))
    return TriMesh(mesh.points, mesh.surface)


@pytest.mark.parametrize("suffix", [*SURFACES, ".STL"])
def test_loaded_surfaces_are_closed_without_interior_vertices(suffix, tmp_path):
    given, path = surface(), tmp_path / f"ball{suffix}"
    path.write_bytes(as_bytes(trimesh.Trimesh(given.points, given.triangles, process=False), suffix))
    loaded = load_surface(path)
    loaded.refuse_open()
    assert loaded.n_triangles == given.n_triangles
    assert loaded.n_vertices == len(np.unique(given.triangles))
    assert loaded.enclosed_volume == pytest.approx(given.enclosed_volume, rel=1e-5)
    assert loaded.area == pytest.approx(given.area, rel=1e-5)


def as_bytes(mesh, suffix):
    content = mesh.export(file_type=suffix[1:].lower())
    return content.encode() if isinstance(content, str) else content


@pytest.mark.parametrize("binary", [True, False])
def test_stl_in_text_and_binary(binary, tmp_path):
    given, path = surface(), tmp_path / "ball.stl"
    meshio.Mesh(given.points, [("triangle", given.triangles)]).write(path, "stl", binary=binary)
    assert path.read_bytes().startswith(b"solid") != binary
    loaded = load_surface(path)
    loaded.refuse_open()
    assert loaded.n_triangles == given.n_triangles
    assert loaded.enclosed_volume == pytest.approx(given.enclosed_volume, rel=1e-5)


def test_obj_features_of_modeling_programs(tmp_path):
    """Quadrilaterals, texture coordinates that double vertices, normals, groups, materials, negative
    indices."""
    path = tmp_path / "cube.obj"
    path.write_text(
        "mtllib none.mtl\no cube\nvt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\nvn 0 0 1\n"
        + "".join(f"v {x} {y} {z}\n" for x in (0, 1) for y in (0, 1) for z in (0, 1))
        + "usemtl red\ng a\nf 1/1/1 2/2/1 4/3/1 3/4/1\nf 5/1/1 7/2/1 8/3/1 6/4/1\n"
        + "g b\nf 1//1 5//1 6//1 2//1\nf 3 4 8 7\nf -8 -6 -2 -4\nf 2 6 8 4\n"
    )
    cube = load_surface(path)
    cube.refuse_open()
    assert (cube.n_vertices, cube.n_triangles) == (8, 12)
    assert abs(cube.enclosed_volume) == pytest.approx(1)


@pytest.mark.parametrize("suffix", SURFACES)
@pytest.mark.parametrize("content", [b"", b"solid nonsense\n1 2 3\n", bytes(range(256))])
def test_invalid_surface_files_are_refused(suffix, content, tmp_path, capfd):
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(content)
    with pytest.raises(MeshError, match=rf"broken\{suffix}"):
        load_surface(path)
    assert capfd.readouterr() == ("", "")


def test_nan_is_refused(tmp_path):
    path = tmp_path / "nan.obj"
    path.write_text("v nan 0 0\nv 1 0 0\nv 1 1 0\nf 1 2 3\n")
    with pytest.raises(MeshError, match=r"nan\.obj: 1 of 3 points are NaN or infinite: 0"):
        load_surface(path)


def test_missing_files_and_unknown_suffixes(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no surface file .*a\.obj"):
        load_surface(tmp_path / "a.obj")
    with pytest.raises(
        MeshError,
        match=r"surface files end in one of \.obj, \.stl, \.ply, .*, not '\.fbx'",
    ):
        load_surface(tmp_path / "a.fbx")


@pytest.mark.parametrize(
    ("points", "triangles", "sentence"),
    [
        (np.zeros((0, 3)), [[0, 1, 2]], "it has no points"),
        (np.eye(3), np.zeros((0, 3), int), "it has no triangles"),
        (np.eye(3), [[0, 1, 3]], "Triangle 0 uses vertex 3, but vertices go from 0 to 2"),
        (np.eye(3), [[1, 2, 3]], "Indices seem to start at 1"),
        (np.eye(3), [[0, 1]], r"triangles must have shape \(m, 3\)"),
        (np.eye(3)[:, :2], [[0, 1, 2]], r"points must have shape \(n, 3\)"),
    ],
)
def test_invalid_surfaces_are_refused(points, triangles, sentence):
    with pytest.raises(MeshError, match=sentence):
        TriMesh(points, triangles)


def test_open_surface_error_names_a_position():
    given = surface(block(2))
    with pytest.raises(MeshError, match=r"not closed: 3 of \d+ edges .* for example at \("):
        TriMesh(given.points, given.triangles[1:]).refuse_open()


def test_transforms():
    given = surface()
    assert given.scaled(2).enclosed_volume == pytest.approx(8 * given.enclosed_volume)
    assert given.scaled((1, 2, 3)).enclosed_volume == pytest.approx(6 * given.enclosed_volume)
    mirrored = given.transformed(np.diag([-1, 1, 1]))
    assert mirrored.enclosed_volume == pytest.approx(given.enclosed_volume)
    np.testing.assert_allclose(given.translated((1, 0, 0)).points[:, 0], given.points[:, 0] + 1)


def test_armadillo_is_closed():
    armadillo = load_surface(real_mesh("armadillo.obj"))
    armadillo.refuse_open()
    assert (armadillo.n_vertices, armadillo.n_triangles) == (43_243, 86_482)
    assert armadillo.enclosed_volume == pytest.approx(0.0686, rel=1e-2)


def test_texture_coordinates_survive_seams(tmp_path):
    """Two triangles share an edge with a texture seam."""
    path, points = tmp_path / "seam.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\n"
    texture = "vt 0 0\nvt 0.4 0\nvt 0 0.4\nvt 0.6 0\nvt 0.6 1\nvt 1 1\n"
    path.write_text(points + texture + "f 1/1 2/2 3/3\nf 2/4 4/6 3/5\n")
    surface = load_surface(path)
    assert surface.n_vertices == 4
    corners = {
        (*surface.points[vertex, :2], *uv)
        for triangle, each in zip(surface.triangles, surface.uv, strict=True)
        for vertex, uv in zip(triangle, each, strict=True)
    }
    assert corners == {
        (0, 0, 0, 0),
        (1, 0, 0.4, 0),
        (0, 1, 0, 0.4),
        (1, 0, 0.6, 0),
        (0, 1, 0.6, 1),
        (1, 1, 1, 1),
    }
    mirrored = surface.scaled((-1, 1, 1))
    assert mirrored.uv[0].tolist() == surface.uv[0][::-1].tolist()
    path.write_text(points + texture + "f 1/1 2/2 3/3\nf 2 4 3\n")
    assert load_surface(path).uv is None


def test_texture_coordinates_of_another_shape_are_refused():
    given = surface()
    with pytest.raises(MeshError, match="uv must be finite and have shape"):
        TriMesh(given.points, given.triangles, uv=np.zeros((given.n_vertices, 2)))
