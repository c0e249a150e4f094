"""Surfaces, point caches and arrays of every frame, reopened with other libraries."""

import struct

import numpy as np
import pytest
import pyvista
import trimesh
from exports import (
    BALL,
    DT,
    FRAMES,
    NAMES,
    REST,
    SCENE,
    positions,
    read_surface,
    skin_points,
)

from supple.io import concatenate_bodies
from supple.io.frame_export import export_frames


@pytest.mark.parametrize("suffix", ["ply", "obj"])
def test_sequences_have_a_surface_for_every_body_and_frame(results, suffix):
    folder = export_frames(results, suffix)[suffix]
    assert len(list(folder.iterdir())) == 2 * (FRAMES + 1)
    for index in range(FRAMES + 1):
        assert b"meters, y is up" in (folder / f"ball_{index:04d}.{suffix}").read_bytes()[:150]
        points, triangles = read_surface(folder / f"ball_{index:04d}.{suffix}")
        np.testing.assert_allclose(points, skin_points(index), atol=2e-7 * 5)
        np.testing.assert_array_equal(triangles, BALL.skin.triangles)
        cube = pyvista.read(folder / f"Würfel_1_{index:04d}.{suffix}")
        assert cube.volume == pytest.approx(1 + index / 10, rel=1e-5)


def test_point_caches_follow_their_objects(results):
    folder = export_frames(results, "pc2")["pc2"]
    content = (folder / "ball.pc2").read_bytes()
    magic, version, points, start, rate, samples = struct.unpack("<12siiffi", content[:32])
    assert (magic, version, start, rate) == (b"POINTCACHE2\0", 1, 0, 1)
    cached = np.frombuffer(content[32:], "<f4").reshape(samples, points, 3)
    expected = [skin_points(index) for index in range(FRAMES + 1)]
    np.testing.assert_allclose(cached, expected, rtol=1e-6, atol=1e-9)
    rest, triangles = read_surface(folder / "ball.obj")
    np.testing.assert_allclose(rest, BALL.skin.surface.points, atol=1e-9)
    np.testing.assert_array_equal(triangles, BALL.skin.triangles)
    textured = trimesh.load(folder / "ball.obj", process=False)
    np.testing.assert_allclose(textured.visual.uv[textured.faces], BALL.skin.uv, atol=1e-6)


def test_numpy_archives_are_exact(results):
    with np.load(export_frames(results, "npz")["npz"]) as arrays:
        check_arrays(arrays)
        assert arrays["names"].tolist() == NAMES


def test_zarr_is_exact_and_has_a_frame_in_each_chunk(results):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(export_frames(results, "zarr")["zarr"], mode="r")
    check_arrays({name: array[:] for name, array in group.arrays()})
    assert group["positions"].chunks == (1, len(REST), 3)
    assert group.attrs["names"] == NAMES


def check_arrays(arrays):
    np.testing.assert_array_equal(arrays["positions"], [positions(i) for i in range(FRAMES + 1)])
    np.testing.assert_array_equal(arrays["time"], [i * DT for i in range(FRAMES + 1)])
    np.testing.assert_array_equal(arrays["index"], range(FRAMES + 1))
    rest = concatenate_bodies(SCENE.bodies)
    np.testing.assert_array_equal(arrays["tets"], rest.cells["tets"])
    np.testing.assert_array_equal(arrays["body"], rest.body)


def test_vtu_opens_as_a_series(results, tmp_path):
    reader = pyvista.get_reader(
        export_frames(results, "vtu", tmp_path / "elsewhere")["vtu"] / "animation.pvd"
    )
    assert reader.time_values == [i * DT for i in range(FRAMES + 1)]
    reader.set_active_time_value(2 * DT)
    grid = reader.read()[0]
    np.testing.assert_array_equal(grid.points, positions(2))
    np.testing.assert_allclose(grid.cell_data["volume_ratio"], 1.2)
