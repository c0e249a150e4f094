"""Frames on disk."""

from xml.etree import ElementTree

import meshio
import numpy as np
import pytest
import pyvista

from supple.io import SavedFrame, read_frame, write_frame, write_pvd
from supple.io.replace_file import replacing
from supple.io.saved_bodies import JoinedBodies
from supple.meshes import block


@pytest.fixture
def frame():
    mesh = block(2)
    positions = mesh.points * [2.0, 1.0, 1.0] + np.random.default_rng(1).normal(0, 1e-9, mesh.points.shape)
    return SavedFrame(positions, np.pi * positions, 7, 0.1)


@pytest.fixture
def rest():
    mesh = block(2)
    return JoinedBodies([mesh], np.arange(mesh.n_tets, dtype=np.int32) % 2, mesh.points, mesh.volumes)


def test_npz_is_exact(tmp_path, frame, rest):
    write_frame(tmp_path, frame, rest)
    stored = read_frame(tmp_path, 7)
    np.testing.assert_array_equal(stored.positions, frame.positions)
    np.testing.assert_array_equal(stored.velocities, frame.velocities)
    assert (stored.index, stored.time) == (7, 0.1)
    assert stored.positions.dtype == np.float64


def test_vtu_opens_in_pyvista_with_its_fields(tmp_path, frame, rest):
    write_frame(tmp_path, frame, rest)
    grid = pyvista.read(tmp_path / "frame_0007.vtu")
    np.testing.assert_array_equal(grid.points, frame.positions)
    np.testing.assert_array_equal(grid.point_data["displacement"], frame.positions - block(2).points)
    np.testing.assert_array_equal(grid.cell_data["body"], rest.body)
    np.testing.assert_allclose(grid.cell_data["volume_ratio"], 2.0, rtol=1e-6)
    assert set(grid.celltypes) == {pyvista.CellType.TETRA}


def test_vtu_opens_in_meshio(tmp_path, frame, rest):
    write_frame(tmp_path, frame, rest)
    grid = meshio.read(tmp_path / "frame_0007.vtu")
    np.testing.assert_array_equal(grid.points, frame.positions)
    np.testing.assert_array_equal(grid.cells_dict["tetra"], block(2).tets)


def test_pvd_lists_every_frame_with_its_time(tmp_path, frame, rest):
    for index in (1, 2):
        write_frame(tmp_path, SavedFrame(frame.positions, frame.velocities, index, index / 3), rest)
    write_pvd(tmp_path, [1 / 3, 2 / 3])
    entries = ElementTree.parse(tmp_path / "animation.pvd").findall(".//DataSet")
    assert [entry.get("file") for entry in entries] == ["frame_0001.vtu", "frame_0002.vtu"]
    reader = pyvista.get_reader(tmp_path / "animation.pvd")
    assert reader.time_values == [1 / 3, 2 / 3]
    assert reader.read()[0].n_points == len(frame.positions)


def test_interrupted_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail_half_way():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_half_way()
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
