"""Mesh files that claim, or inflate to, more than they can have are refused before memory is taken."""

import base64
import os
import tracemalloc
import zlib

import meshio
import numpy as np
import pytest

from supple.meshes import block, load_mesh, load_surface, save_mesh
from supple.meshes.checks import MeshError

MOST = 400e6
"""Bytes that reading a small file may take at the most."""


def refused(path, sentence, most=MOST):
    tracemalloc.start()
    try:
        with pytest.raises(MeshError, match=sentence) as caught:
            load_mesh(path)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
    assert str(path) in str(caught.value)


def bomb(size, claimed, blocks=1):
    """A compressed data array of VTU of zeros, in base64: header and blocks."""
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
def test_vtu_blocks_that_inflate_to_a_gigabyte(tmp_path, claimed):
    path = tmp_path / "bomb.vtu"
    path.write_text(vtu(bomb(2**28, claimed, blocks=4), 2**30 // 24))
    assert path.stat().st_size < 2e6
    refused(path, "claims 4.29 GB, more than 200 times" if claimed > 2**20 else "larger than the 0.0328 MB")


def test_vtu_blocks_appended_as_they_are(tmp_path):
    """What ParaView writes."""
    part = zlib.compress(bytes(2**29), 9)
    data = np.array([1, 2**15, 0, len(part)], "<u4").tobytes() + part
    head = vtu("", 2**29 // 24).replace('format="binary"', 'format="appended" offset="0"')
    head = head.replace("</VTKFile>", '<AppendedData encoding="raw">')
    path = tmp_path / "raw.vtu"
    path.write_bytes(head.encode().rstrip() + b"\n_" + data + b"\n</AppendedData>\n</VTKFile>\n")
    refused(path, "a compressed block is larger than")


@pytest.mark.parametrize("compression", ["zlib", "lzma", None])
@pytest.mark.parametrize("kind", [None, "UInt64"])
def test_vtu_files_of_others_are_read(tmp_path, compression, kind):
    mesh, path = block(3), tmp_path / "block.vtu"
    content = meshio.Mesh(
        mesh.points, [("tetra", mesh.tets)], cell_data={"a": [np.arange(mesh.n_tets) * 0.5]}
    )
    meshio.vtu.write(path, content, compression=compression, header_type=kind)
    found = load_mesh(path)
    np.testing.assert_array_equal(found.points, mesh.points)
    np.testing.assert_array_equal(found.tets, mesh.tets)
    np.testing.assert_array_equal(found.cell_data["a"], np.arange(mesh.n_tets) * 0.5)


def test_vtu_files_of_paraview_are_read(tmp_path):
    import pyvista

    mesh, path = block(3), tmp_path / "block.vtu"
    grid = pyvista.UnstructuredGrid({pyvista.CellType.TETRA: mesh.tets}, mesh.points)
    for binary in (True, False):
        grid.save(path, binary=binary)
        np.testing.assert_allclose(load_mesh(path).points, mesh.points, atol=1e-7)


def test_regular_blocks_are_far_from_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("supple.meshes.vtu.LEAST_BUDGET", 0)
    monkeypatch.setattr("supple.meshes.vtu.INFLATION", 50)
    save_mesh(block(30), tmp_path / "block.vtu", cell_data={"same": np.zeros(135000)})
    assert load_mesh(tmp_path / "block.vtu").n_tets == 135000


@pytest.mark.parametrize("version", ["2.2", "4.0", "4.1"])
@pytest.mark.parametrize("binary", [False, True])
def test_numbers_of_gmsh_nodes_far_beyond_their_count(tmp_path, version, binary):
    mesh, path = block(2), tmp_path / "block.msh"
    content = meshio.Mesh(mesh.points, [("tetra", mesh.tets)])
    writer = {"2.2": meshio.gmsh._gmsh22, "4.0": meshio.gmsh._gmsh40, "4.1": meshio.gmsh._gmsh41}[version]
    writer.write(path, content, binary=binary)
    assert load_mesh(path).n_tets == mesh.n_tets
    number, far = mesh.n_vertices, 2_000_000_000
    if binary and version == "2.2":  # meshio reads no such numbers
        return
    data = path.read_bytes()
    kind = {"4.0": "<i4", "4.1": "<u8"}[version] if binary else None
    at = data.index(b"$Nodes")
    if binary:
        old, new = (np.array([k], kind).tobytes() for k in (number, far))
        if version == "4.1":  # all numbers, and then all points
            old, new = (np.array([number - 1, k], kind).tobytes() for k in (number, far))
        else:
            old, new = (np.array([k], kind).tobytes() + mesh.points[-1].tobytes() for k in (number, far))
    else:
        old, new = f"\n{number}".encode(), f"\n{far}".encode()
        at = data.rindex(old, at, data.index(b"$EndNodes"))
    assert old in data[at:]
    path.write_bytes(data[:at] + data[at:].replace(old, new, 1))
    refused(path, "nodes have numbers from 1 to 2000000000|nodes have numbers from 0 to 1999999999", 50e6)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
@pytest.mark.parametrize("name", ["a.vtu", "a.msh", "a.mesh", "a.node", "a.stl", "a.obj"])
def test_pipes_and_folders_are_no_mesh_files(tmp_path, name):
    for make, kind in ((os.mkfifo, "a pipe"), (os.mkdir, "a folder")):
        make(tmp_path / name)
        with pytest.raises(MeshError, match=f"{name} is {kind}; only regular files are read"):
            load_mesh(tmp_path / name)
        with pytest.raises(MeshError, match=r"only regular files are read|surface files end in"):
            load_surface(tmp_path / name)
        (tmp_path / name).rmdir() if kind == "a folder" else (tmp_path / name).unlink()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
def test_the_other_file_of_tetgen_may_be_no_pipe_either(tmp_path):
    save_mesh(block(1), tmp_path / "a.node")
    (tmp_path / "a.ele").unlink()
    os.mkfifo(tmp_path / "a.ele")
    with pytest.raises(MeshError, match="is a pipe"):
        load_mesh(tmp_path / "a.node")
