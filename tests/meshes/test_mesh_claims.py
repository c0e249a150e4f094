"""Mesh files with oversized counts or compressed data are refused before memory is allocated."""

import base64
import os
import re
import tracemalloc
import zlib
from contextlib import suppress

import meshio
import numpy as np
import pytest

from supple.meshes import block, load_mesh, load_surface, save_mesh
from supple.meshes.checks import MeshError

MAX_READ_BYTES = 400e6
"""Maximum memory for reading a small file."""


def refused(path, sentence, most=MAX_READ_BYTES):
    tracemalloc.start()
    try:
        with pytest.raises(MeshError, match=sentence) as caught:
            load_mesh(path)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
    assert str(path) in str(caught.value)


def bomb(size, claimed, blocks=1):
    """Compressed data array of VTU with zeros, in base64: header and blocks."""
    parts = [zlib.compress(bytes(size), 9)] * blocks
    header = np.array([blocks, claimed, 0, *map(len, parts)], "<u4").tobytes()
    return (base64.b64encode(header) + base64.b64encode(b"".join(parts))).decode()


def vtu(points, count):
    return f"""<?xml version="1.0"?>
<VTKFile type="UnstructuredGrid" version="0.1" header_type="UInt32" byte_order="LittleEndian"
 compressor="vtkZLibDataCompressor"><UnstructuredGrid><Piece NumberOfPoints="{count}" NumberOfCells="0">
<Points><DataArray type="Float64" Name="Points" NumberOfComponents="3" format="binary">{points}</DataArray>
</Points>
<Cells/></Piece></UnstructuredGrid></VTKFile>
"""


@pytest.mark.parametrize("claimed", [2**30, 2**15], ids=["honest", "lying"])
def test_vtu_decompression_bombs_are_refused(tmp_path, claimed):
    path = tmp_path / "bomb.vtu"
    path.write_text(vtu(bomb(2**28, claimed, blocks=4), 2**30 // 24))
    assert path.stat().st_size < 2e6
    refused(path, "claims 4.29 GB, more than 200 times" if claimed > 2**20 else "larger than the 0.0328 MB")


def test_appended_vtu_decompression_bombs_are_refused(tmp_path):
    """The format that ParaView writes."""
    part = zlib.compress(bytes(2**29), 9)
    data = np.array([1, 2**15, 0, len(part)], "<u4").tobytes() + part
    head = vtu("", 2**29 // 24).replace('format="binary"', 'format="appended" offset="0"')
    head = head.replace("</VTKFile>", '<AppendedData encoding="raw">')
    path = tmp_path / "raw.vtu"
    path.write_bytes(head.encode().rstrip() + b"\n_" + data + b"\n</AppendedData>\n</VTKFile>\n")
    refused(path, "a compressed block is larger than")


@pytest.mark.parametrize("compression", ["zlib", "lzma", None])
@pytest.mark.parametrize("kind", [None, "UInt64"])
def test_foreign_vtu_files_are_read(tmp_path, compression, kind):
    mesh, path = block(3), tmp_path / "block.vtu"
    content = meshio.Mesh(
        mesh.points, [("tetra", mesh.tets)], cell_data={"a": [np.arange(mesh.n_tets) * 0.5]}
    )
    meshio.vtu.write(path, content, compression=compression, header_type=kind)
    loaded = load_mesh(path)
    np.testing.assert_array_equal(loaded.points, mesh.points)
    np.testing.assert_array_equal(loaded.tets, mesh.tets)
    np.testing.assert_array_equal(loaded.cell_data["a"], np.arange(mesh.n_tets) * 0.5)


def test_vtu_files_of_paraview_are_read(tmp_path):
    import pyvista

    mesh, path = block(3), tmp_path / "block.vtu"
    grid = pyvista.UnstructuredGrid({pyvista.CellType.TETRA: mesh.tets}, mesh.points)
    for binary in (True, False):
        grid.save(path, binary=binary)
        np.testing.assert_allclose(load_mesh(path).points, mesh.points, atol=1e-7)


def test_regular_blocks_are_far_below_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("supple.meshes.files.vtu.LEAST_BUDGET", 0)
    monkeypatch.setattr("supple.meshes.files.vtu.INFLATION", 50)
    save_mesh(block(30), tmp_path / "block.vtu", cell_data={"same": np.zeros(135000)})
    assert load_mesh(tmp_path / "block.vtu").n_tets == 135000


@pytest.mark.parametrize("version", ["2.2", "4.0", "4.1"])
@pytest.mark.parametrize("binary", [False, True])
def test_gmsh_node_numbers_far_beyond_their_count(tmp_path, version, binary):
    mesh, path = block(2), tmp_path / "block.msh"
    content = meshio.Mesh(mesh.points, [("tetra", mesh.tets)])
    writer = {"2.2": meshio.gmsh._gmsh22, "4.0": meshio.gmsh._gmsh40, "4.1": meshio.gmsh._gmsh41}[version]
    writer.write(path, content, binary=binary)
    assert load_mesh(path).n_tets == mesh.n_tets
    number, large_number = mesh.n_vertices, 2_000_000_000
    if binary and version == "2.2":  # meshio reads no such numbers
        return
    data = path.read_bytes()
    kind = {"4.0": "<i4", "4.1": "<u8"}[version] if binary else None
    at = data.index(b"$Nodes")
    if binary:
        old, new = (np.array([k], kind).tobytes() for k in (number, large_number))
        if version == "4.1":  # all numbers, and then all points
            old, new = (np.array([number - 1, k], kind).tobytes() for k in (number, large_number))
        else:
            old, new = (
                np.array([k], kind).tobytes() + mesh.points[-1].tobytes() for k in (number, large_number)
            )
    else:
        old, new = f"\n{number}".encode(), f"\n{large_number}".encode()
        at = data.rindex(old, at, data.index(b"$EndNodes"))
    assert old in data[at:]
    path.write_bytes(data[:at] + data[at:].replace(old, new, 1))
    refused(path, "node numbers range from 1 to 2000000000|node numbers range from 0 to 1999999999", 50e6)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
@pytest.mark.parametrize("name", ["a.vtu", "a.msh", "a.mesh", "a.node", "a.stl", "a.obj"])
def test_pipes_and_folders_are_refused_as_mesh_files(tmp_path, name):
    for make, kind in ((os.mkfifo, "a pipe"), (os.mkdir, "a folder")):
        make(tmp_path / name)
        with pytest.raises(MeshError, match=f"{name} is {kind}; only regular files are read"):
            load_mesh(tmp_path / name)
        with pytest.raises(MeshError, match=r"only regular files are read|surface files end in"):
            load_surface(tmp_path / name)
        (tmp_path / name).rmdir() if kind == "a folder" else (tmp_path / name).unlink()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
def test_second_file_of_tetgen_may_be_no_pipe_either(tmp_path):
    save_mesh(block(1), tmp_path / "a.node")
    (tmp_path / "a.ele").unlink()
    os.mkfifo(tmp_path / "a.ele")
    with pytest.raises(MeshError, match="is a pipe"):
        load_mesh(tmp_path / "a.node")


HUGE = 3_000_000_000
WRITERS = {
    "4.2.vtk": meshio.vtk._vtk_42,
    "5.1.vtk": meshio.vtk._vtk_51,
    "a.mesh": meshio.medit,
    "2.2.msh": meshio.gmsh._gmsh22,
    "4.0.msh": meshio.gmsh._gmsh40,
    "4.1.msh": meshio.gmsh._gmsh41,
}


def written(path, binary):
    """Bytes of a small mesh, with data if meshio can write and read them."""
    mesh = block(2)
    data = {"u": np.arange(81.0).reshape(27, 3)} if binary or path.suffix == ".vtk" else {}
    content = meshio.Mesh(mesh.points, [("tetra", mesh.tets)], point_data=data)
    WRITERS[path.name].write(path, content, **({} if path.suffix == ".mesh" else {"binary": binary}))
    assert load_mesh(path).n_tets == mesh.n_tets
    return path.read_bytes()


def survives(path):
    """Check that a file is read or refused, with little memory in either case."""
    tracemalloc.start()
    try:
        with suppress(MeshError):
            load_mesh(path)
    finally:
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert taken < 50e6


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("binary", [False, True])
def test_oversized_counts_are_read_or_refused(tmp_path, name, binary):
    """Each integer in a line of text, and each size in binary files, is replaced by a far too large one."""
    path = tmp_path / name
    data = written(path, binary)
    matches = [*re.finditer(rb"(?<=[ \n])\d+(?=[ \n])", data)][:40]
    for match in matches:
        path.write_bytes(data[: match.start()] + str(HUGE).encode() + data[match.end() :])
        survives(path)
    for count in (1, 27, 40) if binary and path.suffix == ".msh" else ():
        old, new = (np.array([k], "<u8").tobytes() for k in (count, HUGE))
        for match in [*re.finditer(re.escape(old), data)][:8]:
            path.write_bytes(data[: match.start()] + new + data[match.end() :])
            survives(path)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("4.2.vtk", b"POINTS 27", b"POINTS %d"),
        ("5.1.vtk", b"CELLS 41", b"CELLS %d"),
        ("a.mesh", b"Vertices\n27", b"Vertices\n%d"),
        ("a.mesh", b"Tetrahedra\n40", b"Tetrahedra\n%d"),
        ("a.mesh", b"Tetrahedra", b"RequiredVertices\n%d\nTetrahedra"),
        ("2.2.msh", b"$Nodes\n27", b"$Nodes\n%d"),
        ("4.1.msh", b"$Nodes\n1 27", b"$Nodes\n1 %d"),
    ],
)
def test_oversized_counts_of_text_files_are_refused(tmp_path, name, old, new):
    path = tmp_path / name
    data = written(path, False)
    assert old in data
    path.write_bytes(data.replace(old, new % HUGE, 1))
    refused(path, r"announces at least [\d,]+ bytes of data, but the file has [\d,]+ bytes", 50e6)


def test_structured_grids_are_refused_before_generation(tmp_path):
    for version in ("3.0", "5.1"):
        path = tmp_path / f"{version}.vtk"
        path.write_text(
            f"# vtk DataFile Version {version}\ngrid\nASCII\nDATASET STRUCTURED_POINTS\n"
            "DIMENSIONS 500 500 500\nORIGIN 0 0 0\nSPACING 1 1 1\n"
        )
        refused(path, "STRUCTURED_POINTS", 50e6)


@pytest.mark.parametrize("kind", ["ply", "off", "stl"])
@pytest.mark.parametrize("binary", [False, True])
def test_oversized_counts_of_surface_files_are_refused(tmp_path, kind, binary):
    import trimesh

    options = {"encoding": "binary" if binary else "ascii"} if kind == "ply" else {}
    suffix = "stl_ascii" if kind == "stl" and not binary else kind
    data = trimesh.creation.box().export(file_type=suffix, **options)
    data = data if isinstance(data, bytes) else data.encode()
    path = tmp_path / f"box.{kind}"
    matches = [*re.finditer(rb"(?<=[ \n])\d+(?=[ \n])", data)][:20]
    if kind == "stl" and binary:
        matches = [re.compile(rb"....", re.DOTALL).match(data, 80)]
    for match in matches:
        new = np.array([HUGE], "<u4").tobytes() if kind == "stl" else str(HUGE).encode()
        path.write_bytes(data[: match.start()] + new + data[match.end() :])
        survives(path)
