import meshio
import numpy as np
import pytest
from data import data
from mesh_shapes import enclosed_volume

from supple.meshes import MeshError, block, load_mesh, save_mesh

SUFFIXES = [".mesh", ".msh", ".vtk", ".vtu"]
WITH_DATA = [".msh", ".vtk", ".vtu"]
CORNER = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)


def small():
    return block((2, 1, 1)).rotated((1, 2, 3), 0.5)


def written(path, cells, points=CORNER, file_format=None):
    meshio.Mesh(points, cells).write(path, file_format=file_format)
    return path


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".VTU"])
def test_round_trip_is_exact_and_quiet(suffix, tmp_path, capfd):
    mesh, path = small(), tmp_path / f"small{suffix}"
    save_mesh(mesh, path)
    again = load_mesh(str(path))
    assert (again.points == mesh.points).all()
    assert (again.tets == mesh.tets).all()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_deformed_positions_are_written(suffix, tmp_path):
    mesh, path = small(), tmp_path / f"bent{suffix}"
    save_mesh(mesh, path, positions=2 * mesh.points)
    assert load_mesh(path).points == pytest.approx(2 * mesh.points, rel=1e-15)


@pytest.mark.parametrize("suffix", WITH_DATA)
def test_data_are_written(suffix, tmp_path, capfd):
    mesh, path = small(), tmp_path / f"data{suffix}"
    velocity, F = np.sin(mesh.points), np.arange(9.0 * mesh.n_tets).reshape(-1, 3, 3)
    pinned = mesh.points[:, 0] < 0.5
    save_mesh(mesh, path, None, {"velocity": velocity, "pinned": pinned}, {"quality": mesh.quality, "F": F})
    assert capfd.readouterr() == ("", "")
    content = {".msh": meshio.gmsh, ".vtk": meshio.vtk, ".vtu": meshio.vtu}[suffix].read(str(path))
    assert (content.point_data["velocity"] == velocity).all()
    assert (content.point_data["pinned"] == pinned).all()
    assert (content.cell_data["quality"][0] == mesh.quality).all()
    assert (content.cell_data["F"][0] == F.reshape(-1, 9)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positions": np.zeros((3, 3))}, r"positions must have shape \(12, 3\)"),
        ({"point_data": {"mass": np.zeros(5)}}, r"point_data\['mass'\].*each of the 12 vertices"),
        ({"cell_data": {"energy": 1.0}}, r"cell_data\['energy'\].*each of the 10 tets"),
        ({"point_data": {"name": ["a"] * 12}}, "must hold numbers"),
    ],
)
def test_data_of_wrong_size_are_refused(options, message, tmp_path):
    with pytest.raises(MeshError, match=message):
        save_mesh(small(), tmp_path / "small.vtu", **options)
    assert not (tmp_path / "small.vtu").exists()


def test_data_that_a_format_cannot_hold_are_refused(tmp_path):
    with pytest.raises(MeshError, match="Medit file cannot hold point_data"):
        save_mesh(small(), tmp_path / "small.mesh", point_data={"mass": np.ones(12)})
    with pytest.raises(MeshError, match=r"could not be written as a Gmsh file.*1, 3, or 9 components"):
        save_mesh(small(), tmp_path / "small.msh", point_data={"uv": np.ones((12, 2))})


def test_missing_file():
    with pytest.raises(FileNotFoundError, match=r"There is no mesh file nowhere\.mesh"):
        load_mesh("nowhere.mesh")


def test_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="create it first"):
        save_mesh(small(), tmp_path / "nowhere" / "small.vtu")


@pytest.mark.parametrize("name", ["body.obj", "body", "body.mesh.gz"])
def test_unknown_suffix_lists_the_known_ones(name, tmp_path):
    for use in (load_mesh, lambda path: save_mesh(small(), path)):
        with pytest.raises(MeshError, match=r"\.mesh, \.msh, \.vtk, \.vtu"):
            use(tmp_path / name)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("content", [b"", b"solid nonsense\n1 2 3\n", bytes(range(256))])
def test_unreadable_file(suffix, content, tmp_path, capfd):
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(content)
    with pytest.raises(MeshError, match=f"broken{suffix}"):
        load_mesh(path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_file_cut_short(suffix, tmp_path):
    path = tmp_path / f"cut{suffix}"
    save_mesh(block(4), path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(MeshError, match=f"cut{suffix} could not be read"):
        load_mesh(path)


def test_sections_that_meshio_skips_make_no_noise(tmp_path, capfd):
    path = written(tmp_path / "mmg.mesh", [("tetra", [[0, 1, 2, 3]])])
    path.write_text(path.read_text().replace("\nEnd", "\nRequiredVertices\n1\n1\n\nEnd"))
    assert load_mesh(path).n_tets == 1
    assert capfd.readouterr() == ("", "")


def test_surface_file_says_what_it_holds(tmp_path):
    path = written(tmp_path / "surface.vtk", [("triangle", [[0, 1, 2], [0, 2, 3]]), ("line", [[0, 1]])])
    with pytest.raises(MeshError, match=r"surface\.vtk: .*it has 2 triangle, 1 line.*tetrahedralised"):
        load_mesh(path)


def test_flat_points_are_refused(tmp_path):
    path = written(tmp_path / "plane.mesh", [("tetra", [[0, 1, 2, 3]])], CORNER[:, :2], "medit")
    with pytest.raises(MeshError, match=r"plane\.mesh: points must have shape \(n, 3\)"):
        load_mesh(path)


def test_blocks_of_tets_are_joined_and_other_cells_ignored(tmp_path):
    mesh = small()
    cells = [("tetra", mesh.tets[:4]), ("triangle", mesh.surface), ("tetra", mesh.tets[4:])]
    assert (load_mesh(written(tmp_path / "two.vtu", cells, mesh.points)).tets == mesh.tets).all()


def test_inverted_tets_in_a_file_need_repair(tmp_path):
    path = written(tmp_path / "inverted.vtu", [("tetra", [[0, 2, 1, 3]])])
    with pytest.raises(MeshError, match=r"inverted\.vtu: 1 of 1 tets are inverted.*repair=True"):
        load_mesh(path)
    assert load_mesh(path, repair=True).volume == pytest.approx(1 / 6)


def test_unused_vertices_in_a_file_need_repair(tmp_path):
    path = written(
        tmp_path / "unused.msh", [("tetra", [[1, 2, 3, 4]])], np.insert(CORNER, 0, 9, axis=0), "gmsh"
    )
    with pytest.raises(MeshError, match=r"unused\.msh: 1 of 5 vertices belong to no tet: 0.*repair=True"):
        load_mesh(path)
    assert load_mesh(path, repair=True).points.tolist() == CORNER.tolist()


@pytest.mark.parametrize(
    ("name", "vertices", "tets"), [("bunny.mesh", 5_433, 34_055), ("octopus-low.mesh", 452, 1_140)]
)
def test_real_meshes_load(name, vertices, tets, capfd):
    mesh = load_mesh(data(name))
    assert (mesh.n_vertices, mesh.n_tets, mesh.n_components) == (vertices, tets, 1)
    assert mesh.volumes.min() > 0
    assert enclosed_volume(mesh) == pytest.approx(mesh.volume, rel=1e-9)
    assert capfd.readouterr() == ("", "")
