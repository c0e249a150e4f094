"""Exports: every format reopened with another library than the one that wrote it, where there is one."""

import struct
import weakref

import meshio
import numpy as np
import pytest
import pyvista
import trimesh

import supple
from supple.io import (
    FORMATS,
    ResultsError,
    ResultsFolder,
    SavedFrame,
    export,
    joined,
    save_frames,
    write_frame,
)
from supple.io.bodies import write_skins
from supple.io.formats import names
from supple.io.formats.format import Format

NAMES = ["Würfel 1", "ball"]
FRAMES, DT = 3, 1 / 30


def make_scene():
    """A cube, and a coarse ball with a finer one as its skin."""
    scene = supple.Scene(dt=DT, frames=FRAMES)
    material = supple.Corotated(young=1e4, poisson=0.3)
    fine = supple.ball(0.41, 5)
    scene.add_solid(supple.block(2), material, name=NAMES[0])
    skin = supple.TriMesh(
        fine.points[fine.surface_vertices], np.searchsorted(fine.surface_vertices, fine.surface)
    )
    scene.add_solid(supple.ball(0.4, 2), material, name=NAMES[1], render=skin)
    return scene


SCENE = make_scene()
CUBE, BALL = SCENE.bodies
REST = np.concatenate([body.points for body in SCENE.bodies])


def positions(index):
    """Turned, moved and a little stretched; volumes become (1 + index / 10) of those at rest."""
    turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1 + index / 10]])
    return REST @ turn.T + [index, 0, np.pi]


@pytest.fixture
def results(tmp_path):
    folder = ResultsFolder(tmp_path / "results")
    folder.create()
    mesh, body = joined(SCENE.bodies)
    for index in range(1, FRAMES + 1):
        x = positions(index)
        write_frame(folder.path, SavedFrame(x, 0 * x, index, index * DT), mesh, body)
    write_skins(folder.path, SCENE.bodies)
    frames = [{"index": index} for index in range(1, FRAMES + 1)]
    folder.write_report({"scene": {"bodies": NAMES, "dt": DT}, "solver": {}, "frames": frames})
    return folder.path


def skin_points(index):
    return BALL.skin.deform(positions(index)[BALL.vertices])


def boundary_points(index):
    return positions(index)[CUBE.vertices][CUBE.mesh.surface_vertices]


def test_usd_opens_with_its_units_times_and_prims(results):
    usd, geometry = (pytest.importorskip(f"pxr.{name}") for name in ("Usd", "UsdGeom"))
    stage = usd.Stage.Open(str(export(results, "usd")["usd"]))
    assert geometry.GetStageMetersPerUnit(stage) == 1
    assert geometry.GetStageUpAxis(stage) == "Y"
    assert stage.GetTimeCodesPerSecond() == stage.GetFramesPerSecond() == 30
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (1, FRAMES)
    bodies = [prim.GetName() for prim in stage.GetDefaultPrim().GetChildren()]
    assert bodies == ["W__rfel_1", "ball"]
    surfaces = [geometry.Mesh(stage.GetPrimAtPath(f"/World/{name}/surface")) for name in bodies]
    for index in range(1, FRAMES + 1):
        for surface, wanted in zip(surfaces, (boundary_points(index), skin_points(index)), strict=True):
            np.testing.assert_allclose(surface.GetPointsAttr().Get(index), wanted, rtol=1e-6, atol=1e-9)
            low, high = np.array(surface.GetExtentAttr().Get(index))
            np.testing.assert_allclose([low, high], [wanted.min(axis=0), wanted.max(axis=0)], rtol=1e-6)
    triangles = np.reshape(surfaces[1].GetFaceVertexIndicesAttr().Get(), (-1, 3))
    assert (triangles == BALL.skin.triangles).all()
    assert set(surfaces[1].GetFaceVertexCountsAttr().Get()) == {3}
    colours = {tuple(surface.GetDisplayColorAttr().Get()[0]) for surface in surfaces}
    assert len(colours) == 2


def test_usd_volumes_are_right_handed_by_usds_own_check(results):
    usd, geometry = (pytest.importorskip(f"pxr.{name}") for name in ("Usd", "UsdGeom"))
    stage = usd.Stage.Open(str(export(results, "usd")["usd"]))
    volumes = [geometry.TetMesh(prim) for prim in stage.Traverse() if prim.IsA(geometry.TetMesh)]
    for volume, body in zip(volumes, SCENE.bodies, strict=True):
        np.testing.assert_array_equal(volume.GetTetVertexIndicesAttr().Get(), body.mesh.tets)
        assert len(geometry.TetMesh.FindInvertedElements(volume, usd.TimeCode(2))) == 0
        ours = {tuple(sorted(face)) for face in volume.GetSurfaceFaceVertexIndicesAttr().Get()}
        assert ours == {
            tuple(sorted(f)) for f in geometry.TetMesh.ComputeSurfaceFaces(volume, usd.TimeCode(2))
        }
        np.testing.assert_array_equal(
            volume.GetPointsAttr().Get(2), positions(2)[body.vertices].astype(np.float32)
        )


def test_gltf_has_the_last_shape_of_every_body_with_its_colour(results):
    scene = trimesh.load(export(results, "glb")["glb"], process=False)
    assert sorted(scene.graph.nodes_geometry) == sorted(NAMES)
    volumes = {name: mesh.volume for name, mesh in scene.geometry.items()}
    stretch = 1 + FRAMES / 10
    assert volumes[NAMES[0]] == pytest.approx(stretch, rel=1e-5)
    assert volumes["ball"] > 1.05 * stretch * BALL.mesh.volume  # the skin is finer and larger
    np.testing.assert_allclose(scene.geometry["ball"].vertices, skin_points(FRAMES), atol=1e-6)
    assert len({tuple(mesh.visual.vertex_colors[0]) for mesh in scene.geometry.values()}) == 2


@pytest.mark.parametrize("suffix", ["ply", "obj"])
def test_sequences_have_a_surface_for_every_body_and_frame(results, suffix):
    folder = export(results, suffix)[suffix]
    assert len(list(folder.iterdir())) == 2 * FRAMES
    for index in range(1, FRAMES + 1):
        ball = meshio.read(folder / f"ball_{index:04d}.{suffix}")
        np.testing.assert_allclose(ball.points, skin_points(index), atol=2e-7 * 5)
        np.testing.assert_array_equal(ball.cells_dict["triangle"], BALL.skin.triangles)
        cube = pyvista.read(folder / f"Würfel_1_{index:04d}.{suffix}")
        assert cube.volume == pytest.approx(1 + index / 10, rel=1e-5)


def test_point_caches_follow_their_objects(results):
    folder = export(results, "pc2")["pc2"]
    content = (folder / "ball.pc2").read_bytes()
    magic, version, points, start, rate, samples = struct.unpack("<12siiffi", content[:32])
    assert (magic, version, start, rate) == (b"POINTCACHE2\0", 1, 1, 1)
    cached = np.frombuffer(content[32:], "<f4").reshape(samples, points, 3)
    wanted = [skin_points(index) for index in range(1, FRAMES + 1)]
    np.testing.assert_allclose(cached, wanted, rtol=1e-6, atol=1e-9)
    rest = meshio.read(folder / "ball.obj")
    np.testing.assert_allclose(rest.points, BALL.skin.surface.points, atol=1e-9)
    np.testing.assert_array_equal(rest.cells_dict["triangle"], BALL.skin.triangles)


def test_numpy_archives_are_exact(results):
    with np.load(export(results, "npz")["npz"]) as found:
        check_arrays(found)
        assert found["names"].tolist() == NAMES


def test_zarr_is_exact_and_has_a_frame_in_each_chunk(results):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(export(results, "zarr")["zarr"], mode="r")
    check_arrays({name: array[:] for name, array in group.arrays()})
    assert group["positions"].chunks == (1, len(REST), 3)
    assert group.attrs["names"] == NAMES


def check_arrays(found):
    np.testing.assert_array_equal(found["positions"], [positions(i) for i in range(1, FRAMES + 1)])
    np.testing.assert_array_equal(found["time"], [i * DT for i in range(1, FRAMES + 1)])
    np.testing.assert_array_equal(found["index"], range(1, FRAMES + 1))
    mesh, body = joined(SCENE.bodies)
    np.testing.assert_array_equal(found["tets"], mesh.tets)
    np.testing.assert_array_equal(found["body"], body)


def test_vtu_opens_as_a_series(results, tmp_path):
    reader = pyvista.get_reader(export(results, "vtu", tmp_path / "elsewhere")["vtu"] / "animation.pvd")
    assert reader.time_values == [i * DT for i in range(1, FRAMES + 1)]
    reader.set_active_time_value(2 * DT)
    grid = reader.read()[0]
    np.testing.assert_array_equal(grid.points, positions(2))
    np.testing.assert_allclose(grid.cell_data["volume_ratio"], 1.2)


def test_an_unfinished_run_gives_its_complete_frames(results):
    (results / "frame_0003.npz").unlink()
    with np.load(export(results, "npz")["npz"]) as found:
        assert len(found["positions"]) == 2


def test_a_second_export_replaces_the_first(results):
    every = ",".join(FORMATS)
    export(results, every)
    (results / "frame_0002.npz").unlink()
    paths = export(results, every)
    assert len(list(paths["ply"].iterdir())) == 2
    assert len(list(paths["vtu"].glob("*.vtu"))) == 1
    with np.load(paths["npz"]) as found:
        assert len(found["positions"]) == 1


def test_clearing_results_clears_exports(results):
    export(results, FORMATS)
    (results / "ply" / "notes.txt").touch()
    ResultsFolder(results).clear()
    assert [path.name for path in results.rglob("*") if path.is_file()] == ["notes.txt"]


def test_frames_are_written_as_they_come_and_not_kept(tmp_path):
    alive, most = [], 0

    def frames():
        nonlocal most
        for index in range(1, 9):
            frame = supple.Frame(positions(index), None, None, None, index, index * DT)
            alive.append(weakref.ref(frame))
            most = max(most, sum(each() is not None for each in alive))
            yield frame
            del frame

    save_frames(SCENE, frames(), FORMATS, tmp_path / "new" / "folder")
    assert most <= 3  # the new one, the one just written, and the last one, which is kept for glTF
    assert len(list((tmp_path / "new" / "folder" / "ply").iterdir())) == 16


def test_results_and_arrays_are_frames_too(tmp_path):
    still = supple.Result(positions(1), None, None)
    with np.load(save_frames(SCENE, [still, positions(2)], "npz", tmp_path, dt=0.5)["npz"]) as found:
        np.testing.assert_array_equal(found["positions"], [positions(1), positions(2)])
        assert found["time"].tolist() == [0.5, 1.0]


@pytest.mark.parametrize("name", FORMATS)
def test_a_failure_half_way_leaves_what_was_there(name, results):
    path = export(results, name)[name]
    old = snapshot(path)

    def failing():
        yield positions(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_frames(SCENE, failing(), name, results)
    if path.is_file() or name == "zarr":
        assert snapshot(path) == old
    assert not list(results.glob("**/.unfinished*"))
    export(results, name)
    if name != "usd":  # which numbers its versions
        assert snapshot(path) == old


def snapshot(path):
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return {file: file.read_bytes() for file in files}


@pytest.mark.parametrize(
    ("formats", "sentence"),
    [
        ("usdd", "there is no format 'usdd'; did you mean 'usd'"),
        ("fbx", "there is no format 'fbx'; known here: 'usd', 'glb'"),
        (" , ", "no format is named; there are usd, glb"),
    ],
)
def test_wrong_formats_are_refused(results, formats, sentence):
    with pytest.raises(ResultsError, match=sentence):
        export(results, formats)


def test_folders_without_frames_are_refused(tmp_path, results):
    with pytest.raises(ResultsError, match="there is no results folder"):
        export(tmp_path / "nowhere", "npz")
    with pytest.raises(ResultsError, match=r"has no report\.json"):
        export(tmp_path, "npz")
    (results / "frame_0001.npz").unlink()
    with pytest.raises(ResultsError, match="has no complete frame yet"):
        export(results, "npz")
    with pytest.raises(ResultsError, match="there are no frames"):
        save_frames(SCENE, [], "npz", tmp_path)
    with pytest.raises(ResultsError, match=r"frame 1 must have shape \(82, 3\), .* got shape \(5, 3\)"):
        save_frames(SCENE, [np.zeros((5, 3))], "npz", tmp_path)
    with pytest.raises(ResultsError, match="is a file; name a folder"):
        save_frames(SCENE, [REST], "npz", results / "report.json")


def test_a_missing_package_is_named_with_its_extra():
    absent = Format("usd", "", "", None, "no_such_package.core", "usd")
    with pytest.raises(ResultsError, match=r"needs the package no_such_package: pip install 'supple\[usd\]'"):
        absent.refuse_missing_package()


def test_names_become_valid_and_stay_distinct():
    assert names.distinct(["a/b", "a:b", "A_b", "..", ""], names.file_name) == [
        "a_b",
        "a_b_2",
        "A_b_3",
        "body",
        "body_2",
    ]
