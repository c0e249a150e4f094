"""Exports: every format reopened with another library than the one that wrote it, where there is one."""

import json
import struct
import weakref

import meshio
import numpy as np
import pytest
import pyvista
import trimesh
from vtkmodules.vtkIOGeometry import vtkGLTFReader

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
    points = fine.points[fine.surface_vertices]
    triangles = np.searchsorted(fine.surface_vertices, fine.surface)
    skin = supple.TriMesh(points, triangles, uv=seamed(points[triangles]))
    scene.add_solid(supple.ball(0.4, 2), material, name=NAMES[1], render=skin)
    return scene


def seamed(corners):
    """(t, 3, 2) texture coordinates with a seam: triangles on either side of x = 0 have their own."""
    side = corners[:, :, 0].mean(axis=1, keepdims=True) > 0
    return np.stack([corners[:, :, 1] + side, corners[:, :, 2] / 3], axis=2)


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
    rest = joined(SCENE.bodies)
    for index in range(FRAMES + 1):
        x = positions(index)
        write_frame(folder.path, SavedFrame(x, 0 * x, index, index * DT), rest)
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
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (0, FRAMES)
    bodies = [prim.GetName() for prim in stage.GetDefaultPrim().GetChildren()]
    assert bodies == ["W__rfel_1", "ball"]
    surfaces = [geometry.Mesh(prim) for prim in stage.Traverse() if prim.IsA(geometry.Mesh)]
    assert [surface.GetPrim().GetName() for surface in surfaces] == bodies
    for index in range(FRAMES + 1):
        for surface, wanted in zip(surfaces, (boundary_points(index), skin_points(index)), strict=True):
            np.testing.assert_allclose(surface.GetPointsAttr().Get(index), wanted, rtol=1e-6, atol=1e-9)
            low, high = np.array(surface.GetExtentAttr().Get(index))
            np.testing.assert_allclose([low, high], [wanted.min(axis=0), wanted.max(axis=0)], rtol=1e-6)
    triangles = np.reshape(surfaces[1].GetFaceVertexIndicesAttr().Get(), (-1, 3))
    assert (triangles == BALL.skin.triangles).all()
    assert set(surfaces[1].GetFaceVertexCountsAttr().Get()) == {3}
    colours = {tuple(surface.GetDisplayColorAttr().Get()[0]) for surface in surfaces}
    assert len(colours) == 2
    assert not geometry.PrimvarsAPI(surfaces[0]).HasPrimvar("st")
    uv = geometry.PrimvarsAPI(surfaces[1]).GetPrimvar("st")
    assert uv.GetInterpolation() == "faceVarying"
    np.testing.assert_allclose(uv.Get(), BALL.skin.uv.reshape(-1, 2), atol=1e-6)


def test_usd_volumes_are_right_handed_by_usds_own_check(results):
    usd, geometry = (pytest.importorskip(f"pxr.{name}") for name in ("Usd", "UsdGeom"))
    stage = usd.Stage.Open(str(export(results, "usd")["usd"]))
    volumes = [geometry.TetMesh(prim) for prim in stage.Traverse() if prim.IsA(geometry.TetMesh)]
    assert [volume.GetPrim().GetName() for volume in volumes] == ["W__rfel_1_volume", "ball_volume"]
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


def test_gltf_shows_the_last_shape_of_every_body_where_animations_are_unknown(results):
    scene = trimesh.load(export(results, "glb")["glb"], process=False)
    assert sorted(scene.graph.nodes_geometry) == sorted(NAMES)
    volumes = {name: mesh.volume for name, mesh in scene.geometry.items()}
    stretch = 1 + FRAMES / 10
    assert volumes[NAMES[0]] == pytest.approx(stretch, rel=1e-5)
    assert volumes["ball"] > 1.05 * stretch * BALL.mesh.volume  # the skin is finer and larger
    colours = {tuple(mesh.visual.material.baseColorFactor) for mesh in scene.geometry.values()}
    assert len(colours) == 2


def test_gltf_is_animated_through_all_frames(results):
    file = GLTF(export(results, "glb")["glb"])
    file.check()
    assert [node["name"] for node in file.tree["nodes"]] == NAMES
    assert [mesh["name"] for mesh in file.tree["meshes"]] == NAMES
    (animation,) = file.tree["animations"]
    assert [channel["target"] for channel in animation["channels"]] == [
        {"node": 0, "path": "weights"},
        {"node": 1, "path": "weights"},
    ]
    np.testing.assert_allclose(file.times(), np.arange(FRAMES + 1) * DT, rtol=1e-6)
    for frame in range(FRAMES + 1):
        cube, cube_normals, _ = file.shape(0, file.times()[frame])
        corners = boundary_points(frame)
        assert len(cube) == 6 * 9  # sharp edges are doubled
        assert {tuple(p) for p in cube.round(4).tolist()} == {tuple(p) for p in corners.round(4).tolist()}
        np.testing.assert_allclose(np.abs(cube_normals).max(axis=1), 1, atol=1e-5)  # of flat sides
        centre = corners.mean(axis=0)
        assert (np.einsum("ij,ij->i", cube - centre, cube_normals) > 0.4).all()
        ball, normals, triangles = file.shape(1, file.times()[frame])
        np.testing.assert_allclose(ball[triangles], skin_points(frame)[BALL.skin.triangles], atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, atol=1e-5)
    between, _, _ = file.shape(0, 1.25 * DT)
    first, second = (file.shape(0, index * DT)[0] for index in (1, 2))
    np.testing.assert_allclose(between, 0.75 * first + 0.25 * second, atol=1e-5)


def test_gltf_moves_in_another_reader(results):
    reader = vtkGLTFReader()
    reader.SetFileName(str(export(results, "glb")["glb"]))
    reader.ApplyDeformationsToGeometryOn()
    reader.SetFrameRate(30)
    reader.UpdateInformation()
    assert reader.GetNumberOfAnimations() == 1
    assert reader.GetAnimationDuration(0) == pytest.approx(FRAMES * DT)
    reader.EnableAnimation(0)
    reader.UpdateInformation()
    for index in range(FRAMES + 1):
        reader.UpdateTimeStep(index * DT)
        blocks = pyvista.wrap(reader.GetOutput()).combine()
        wanted = np.concatenate([boundary_points(index), skin_points(index)])
        np.testing.assert_allclose(blocks.points.min(axis=0), wanted.min(axis=0), atol=1e-5)
        np.testing.assert_allclose(blocks.points.max(axis=0), wanted.max(axis=0), atol=1e-5)


def test_gltf_has_texture_coordinates_with_v_downwards(results):
    file = GLTF(export(results, "glb")["glb"])
    cube, ball = (mesh["primitives"][0] for mesh in file.tree["meshes"])
    assert "TEXCOORD_0" not in cube["attributes"]
    corners = file.values(ball["indices"]).reshape(-1, 3)
    uv = file.values(ball["attributes"]["TEXCOORD_0"])[corners]
    np.testing.assert_allclose(uv * [1, -1] + [0, 1], BALL.skin.uv, atol=1e-6)


def test_gltf_of_one_frame_is_not_animated(tmp_path):
    file = GLTF(save_frames(SCENE, [supple.Frame(REST, None, None, None, 7, 7 * DT)], "glb", tmp_path)["glb"])
    file.check()
    assert "animations" not in file.tree
    assert all("targets" not in mesh["primitives"][0] for mesh in file.tree["meshes"])


@pytest.mark.parametrize("limit", ["MOST_TARGETS", "MOST_BYTES"])
def test_gltf_of_very_many_frames_has_some_of_them(tmp_path, monkeypatch, caplog, limit):
    few = {"MOST_TARGETS": 4, "MOST_BYTES": 4 * 24 * 300}[limit]
    monkeypatch.setattr(f"supple.io.formats.glb.{limit}", few)
    shapes = (positions(index) for index in range(1, 101))
    file = GLTF(save_frames(SCENE, shapes, "glb", tmp_path, start=positions(0))["glb"])
    file.check()
    times = file.times() / DT
    assert 3 <= len(times) <= 5
    assert (times[0], times[-1]) == (0, pytest.approx(100))
    assert f"animation.glb has {len(times)} of the 101 frames" in caplog.text
    ball, _, triangles = file.shape(1, file.times()[1])
    wanted = skin_points(round(times[1]))[BALL.skin.triangles]
    np.testing.assert_allclose(ball[triangles], wanted, atol=1e-4)


COMPONENTS = {5125: "<u4", 5126: "<f4"}
WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3}


class GLTF:
    """A reader of binary glTF 2.0 that trusts nothing."""

    def __init__(self, path):
        content = path.read_bytes()
        magic, version, length = struct.unpack_from("<4sII", content)
        assert (magic, version, length) == (b"glTF", 2, len(content))
        size, kind = struct.unpack_from("<I4s", content, 12)
        assert (kind, size % 4) == (b"JSON", 0)
        self.tree = json.loads(content[20 : 20 + size])
        rest = content[20 + size :]
        size, kind = struct.unpack_from("<I4s", rest)
        assert (kind, size) == (b"BIN\0", len(rest) - 8)
        self.binary = rest[8:]
        assert self.tree["buffers"] == [{"byteLength": size}]

    def values(self, number):
        accessor = self.tree["accessors"][number]
        view = self.tree["bufferViews"][accessor["bufferView"]]
        width = WIDTHS[accessor["type"]]
        assert view["byteLength"] == 4 * width * accessor["count"]
        assert view["byteOffset"] % 4 == 0
        assert view["byteOffset"] + view["byteLength"] <= len(self.binary)
        data = self.binary[view["byteOffset"] :][: view["byteLength"]]
        return np.frombuffer(data, COMPONENTS[accessor["componentType"]]).reshape(-1, width)

    def check(self):
        """What the standard asks for: finite numbers, bounds of positions and times, indices in range, unit
        normals, as many targets as weights."""
        tree = self.tree
        assert tree["asset"]["version"] == "2.0"
        assert tree["scenes"][tree["scene"]]["nodes"] == list(range(len(tree["nodes"])))
        for number, accessor in enumerate(tree["accessors"]):
            values = self.values(number)
            assert np.isfinite(values).all()
            if "min" in accessor:
                assert accessor["min"] == values.min(axis=0).tolist()
                assert accessor["max"] == values.max(axis=0).tolist()
        for mesh in tree["meshes"]:
            (primitive,) = mesh["primitives"]
            assert primitive["material"] < len(tree["materials"])
            targets = primitive.get("targets", [])
            assert len(mesh.get("weights", [])) == len(mesh.get("extras", {}).get("targetNames", []))
            assert len(mesh.get("weights", [])) == len(targets)
            for attributes in (primitive["attributes"], *targets):
                accessors = [tree["accessors"][number] for number in attributes.values()]
                assert len({accessor["count"] for accessor in accessors}) == 1
                assert {"min", "max"} <= tree["accessors"][attributes["POSITION"]].keys()
            points = self.values(primitive["attributes"]["POSITION"])
            assert self.values(primitive["indices"]).max() == len(points) - 1
            normals = self.values(primitive["attributes"]["NORMAL"])
            np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, atol=1e-5)
        for animation in tree.get("animations", []):
            for channel in animation["channels"]:
                sampler = animation["samplers"][channel["sampler"]]
                keys, weights = self.values(sampler["input"]), self.values(sampler["output"])
                assert (np.diff(keys[:, 0]) > 0).all()
                mesh = tree["meshes"][tree["nodes"][channel["target"]["node"]]["mesh"]]
                assert len(weights) == len(keys) * len(mesh["weights"])
                assert {"min", "max"} <= tree["accessors"][sampler["input"]].keys()

    def times(self):
        return self.values(self.tree["animations"][0]["samplers"][0]["input"])[:, 0]

    def shape(self, body, time):
        """Positions and normals of the corners of a body at a time [s], and triangles."""
        (primitive,) = self.tree["meshes"][body]["primitives"]
        weights = self.values(self.tree["animations"][0]["samplers"][0]["output"])
        weights = weights.reshape(len(self.times()), -1)
        now = [np.interp(time, self.times(), weight) for weight in weights.T]
        found = []
        for name in ("POSITION", "NORMAL"):
            moves = [w * self.values(t[name]) for w, t in zip(now, primitive["targets"], strict=True)]
            found.append(self.values(primitive["attributes"][name]) + sum(moves))
        return *found, self.values(primitive["indices"]).reshape(-1, 3)


@pytest.mark.parametrize("suffix", ["ply", "obj"])
def test_sequences_have_a_surface_for_every_body_and_frame(results, suffix):
    folder = export(results, suffix)[suffix]
    assert len(list(folder.iterdir())) == 2 * (FRAMES + 1)
    for index in range(FRAMES + 1):
        assert b"metres, y is up" in (folder / f"ball_{index:04d}.{suffix}").read_bytes()[:150]
        points, triangles = read_surface(folder / f"ball_{index:04d}.{suffix}")
        np.testing.assert_allclose(points, skin_points(index), atol=2e-7 * 5)
        np.testing.assert_array_equal(triangles, BALL.skin.triangles)
        cube = pyvista.read(folder / f"Würfel_1_{index:04d}.{suffix}")
        assert cube.volume == pytest.approx(1 + index / 10, rel=1e-5)


def read_surface(path):
    """Points and triangles as they are numbered in a file; meshio cannot read textured OBJ files."""
    if path.suffix == ".ply":
        found = meshio.read(path)
        return found.points, found.cells_dict["triangle"]
    lines = [line.split() for line in path.read_text().splitlines()]
    points = [[float(word) for word in words] for kind, *words in lines if kind == "v"]
    faces = [[int(word.split("/")[0]) - 1 for word in words] for kind, *words in lines if kind == "f"]
    return np.array(points), np.array(faces)


def test_point_caches_follow_their_objects(results):
    folder = export(results, "pc2")["pc2"]
    content = (folder / "ball.pc2").read_bytes()
    magic, version, points, start, rate, samples = struct.unpack("<12siiffi", content[:32])
    assert (magic, version, start, rate) == (b"POINTCACHE2\0", 1, 0, 1)
    cached = np.frombuffer(content[32:], "<f4").reshape(samples, points, 3)
    wanted = [skin_points(index) for index in range(FRAMES + 1)]
    np.testing.assert_allclose(cached, wanted, rtol=1e-6, atol=1e-9)
    rest, triangles = read_surface(folder / "ball.obj")
    np.testing.assert_allclose(rest, BALL.skin.surface.points, atol=1e-9)
    np.testing.assert_array_equal(triangles, BALL.skin.triangles)
    textured = trimesh.load(folder / "ball.obj", process=False)
    np.testing.assert_allclose(textured.visual.uv[textured.faces], BALL.skin.uv, atol=1e-6)


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
    np.testing.assert_array_equal(found["positions"], [positions(i) for i in range(FRAMES + 1)])
    np.testing.assert_array_equal(found["time"], [i * DT for i in range(FRAMES + 1)])
    np.testing.assert_array_equal(found["index"], range(FRAMES + 1))
    rest = joined(SCENE.bodies)
    np.testing.assert_array_equal(found["tets"], rest.cells["tets"])
    np.testing.assert_array_equal(found["body"], rest.body)


def test_vtu_opens_as_a_series(results, tmp_path):
    reader = pyvista.get_reader(export(results, "vtu", tmp_path / "elsewhere")["vtu"] / "animation.pvd")
    assert reader.time_values == [i * DT for i in range(FRAMES + 1)]
    reader.set_active_time_value(2 * DT)
    grid = reader.read()[0]
    np.testing.assert_array_equal(grid.points, positions(2))
    np.testing.assert_allclose(grid.cell_data["volume_ratio"], 1.2)


def test_an_unfinished_run_gives_its_complete_frames(results):
    (results / "frame_0003.npz").unlink()
    with np.load(export(results, "npz")["npz"]) as found:
        assert found["index"].tolist() == [0, 1, 2]


def test_results_without_their_start_begin_with_frame_1(results):
    (results / "frame_0000.npz").unlink()
    with np.load(export(results, "npz")["npz"]) as found:
        assert found["index"].tolist() == [1, 2, 3]


def test_a_second_export_replaces_the_first(results):
    every = ",".join(FORMATS)
    export(results, every)
    (results / "frame_0002.npz").unlink()
    paths = export(results, every)
    assert len(list(paths["ply"].iterdir())) == 4
    assert len(list(paths["vtu"].glob("*.vtu"))) == 2
    with np.load(paths["npz"]) as found:
        assert len(found["positions"]) == 2


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
    assert most <= 2  # the new one and the one just written
    assert len(list((tmp_path / "new" / "folder" / "ply").iterdir())) == 18


def test_results_and_arrays_are_frames_too(tmp_path):
    still = supple.Result(positions(1), None, None)
    with np.load(save_frames(SCENE, [still, positions(2)], "npz", tmp_path, dt=0.5)["npz"]) as found:
        np.testing.assert_array_equal(found["positions"], [REST, positions(1), positions(2)])
        assert found["time"].tolist() == [0.0, 0.5, 1.0]


def test_the_start_has_pins_where_their_motion_begins(tmp_path):
    scene = make_scene()
    path = supple.Keyframes.path([0, 1], [(0, 2, 0), (0, 0, 0)])
    scene.pin(scene.bodies[0].where([3]), motion=path)
    with np.load(save_frames(scene, [REST], "npz", tmp_path)["npz"]) as found:
        moved = found["positions"][0] - REST
    assert moved[3].tolist() == [0, 2, 0]
    assert np.count_nonzero(moved) == 1


def test_the_start_may_be_given_and_is_not_written_before_later_frames(tmp_path):
    with np.load(save_frames(SCENE, [REST], "npz", tmp_path, start=positions(2))["npz"]) as found:
        np.testing.assert_array_equal(found["positions"], [positions(2), REST])
    later = supple.Frame(REST, None, None, None, 7, 7 * DT)
    with np.load(save_frames(SCENE, [later], "npz", tmp_path)["npz"]) as found:
        assert found["index"].tolist() == [7]
    with pytest.raises(ResultsError, match="start must have"):
        save_frames(SCENE, [REST], "npz", tmp_path, start=REST[1:])


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


FIELDS = ["von_mises", "cauchy", "principal_stretches", "reaction_force"]


def evaluated(frames):
    return [frame.evaluate() for frame in frames]


@pytest.fixture(scope="module")
def moved():
    """A scene of two bodies, one of which is pinned, with frames under a load that grows."""
    scene = make_scene()
    cube, ball = scene.bodies
    scene.pin(cube.where(lambda X: X[:, 0] <= 0))
    scene.pin(ball.where(lambda X: X[:, 1] <= 0))
    scene.gravity_ramp = supple.Ramp(times=(0, 2 * DT), fractions=(0, 1))
    return scene, list(supple.simulate(scene, frames=2))


def test_npz_and_zarr_have_the_fields_of_evaluate(moved, tmp_path):
    zarr = pytest.importorskip("zarr")
    scene, frames = moved
    paths = save_frames(scene, frames, "npz,zarr", tmp_path, fields=FIELDS)
    assert {path.name for path in tmp_path.iterdir()} == {"positions.npz", "positions.zarr"}
    group = zarr.open_group(paths["zarr"], mode="r")
    with np.load(paths["npz"]) as saved:
        for k, found in enumerate(evaluated(frames), start=1):
            for name in FIELDS:
                np.testing.assert_array_equal(saved[name][k], getattr(found, name))
                np.testing.assert_array_equal(group[name][k], getattr(found, name))
        np.testing.assert_allclose(saved["cauchy"][0], 0, atol=1e-9)
        np.testing.assert_allclose(saved["reaction_force"][0], 0, atol=1e-9)
    assert np.abs(found.reaction_force).max() > 1


def test_vtu_has_the_fields_of_evaluate(moved, tmp_path):
    scene, frames = moved
    folder = save_frames(scene, frames, "vtu", tmp_path, fields=FIELDS)["vtu"]
    grid, found = pyvista.read(folder / "frame_0002.vtu"), frames[1].evaluate()
    np.testing.assert_allclose(grid.cell_data["von_mises"], found.von_mises)
    np.testing.assert_allclose(grid.cell_data["cauchy"], found.cauchy.reshape(-1, 9))
    np.testing.assert_allclose(grid.point_data["reaction_force"], found.reaction_force)
    assert "von_mises" not in grid.point_data


def test_usd_has_the_fields_of_evaluate(moved, tmp_path):
    usd, geometry = (pytest.importorskip(f"pxr.{name}") for name in ("Usd", "UsdGeom"))
    scene, frames = moved
    stage = usd.Stage.Open(str(save_frames(scene, frames, "usd", tmp_path, fields=FIELDS)["usd"]))
    found, first = frames[1].evaluate(), 0
    for body, name in zip(scene.bodies, ["W__rfel_1", "ball"], strict=True):
        last = first + body.mesh.n_tets
        volume, surface = (
            geometry.PrimvarsAPI(stage.GetPrimAtPath(f"/World/{name}/{name}{end}")) for end in ("_volume", "")
        )
        stress = volume.GetPrimvar("cauchy")
        assert stress.GetInterpolation() == "uniform"
        np.testing.assert_allclose(np.array(stress.Get(2)), found.cauchy[first:last], rtol=1e-6, atol=1e-6)
        values = np.array(volume.GetPrimvar("von_mises").Get(2))
        np.testing.assert_allclose(values, found.von_mises[first:last], rtol=1e-5)
        mean = found.at_vertices(found.von_mises)[body.vertices]
        skin = body.skin.interpolate(mean) if body.skin else mean[body.mesh.surface_vertices]
        shown = surface.GetPrimvar("von_mises")
        assert shown.GetInterpolation() == "vertex"
        np.testing.assert_allclose(np.array(shown.Get(2)), skin, rtol=1e-5, atol=1e-5)
        assert not surface.HasPrimvar("cauchy")
        forces = np.array(volume.GetPrimvar("reaction_force").Get(2))
        np.testing.assert_allclose(forces, found.reaction_force[body.vertices], rtol=1e-5, atol=1e-5)
        first = last


def test_results_and_positions_have_fields_too(moved, tmp_path):
    scene, frames = moved
    (result,) = supple.equilibria(scene, [supple.Variation(gravity=(0, -2, 0))])
    path = save_frames(scene, [result], "npz", tmp_path, fields="net_force")["npz"]
    with np.load(path) as saved:
        np.testing.assert_array_equal(saved["net_force"][1], result.evaluate().net_force)
    path = save_frames(scene, [frames[1].positions], "npz", tmp_path, fields="net_force", dt=2 * DT)["npz"]
    with np.load(path) as saved:
        np.testing.assert_allclose(saved["net_force"][1], frames[1].evaluate().net_force, atol=1e-9)


def test_fields_that_nobody_can_write_are_refused(moved, tmp_path):
    scene, frames = moved
    with pytest.raises(ResultsError, match="obj, glb cannot hold fields; usd, npz, zarr, vtu can"):
        save_frames(scene, frames, "obj,glb", tmp_path, fields="cauchy")
    with pytest.raises(ValueError, match="no field 'von_mizes' for files; did you mean 'von_mises'"):
        save_frames(scene, frames, "npz", tmp_path, fields="von_mizes")
    with pytest.raises(ValueError, match="fields are names such as 'von_mises,cauchy'"):
        save_frames(scene, frames, "npz", tmp_path, fields=[3])
    assert not list(tmp_path.iterdir())


def test_vtu_has_the_folds_and_threads_of_cloth(tmp_path):
    """And NaN on solids beside it."""
    from supple.io.bodies import joined
    from supple.io.frames import write_vtu

    scene = supple.Scene()
    cloth = scene.add_cloth(supple.sheet((2, 1), (2, 1)), supple.PlaneStressStVK(young=1e3, poisson=0.3))
    block = scene.add_solid(supple.block(1, origin=(0, 0, 3)), supple.Corotated(young=1e3, poisson=0.3))
    folded = np.concatenate([cloth.points, block.points])
    far = np.flatnonzero(cloth.points[:, 0] > 1.5)
    folded[far] = cloth.points[far] * [0, 1, 0] + [1, 0, 1]
    write_vtu(tmp_path, 1, folded, joined(scene.bodies))
    data = pyvista.read(tmp_path / "frame_0001.vtu").cell_data
    np.testing.assert_allclose(np.nanmax(data["bending_angle"]), 90)
    assert np.isnan(data["bending_angle"]).sum() == block.mesh.n_cells
    sheet = ~np.isnan(data["bending_angle"])
    np.testing.assert_allclose(np.abs(data["weft"][sheet]), np.tile([1.0, 0, 0], (4, 1)), atol=1e-12)
    np.testing.assert_allclose(np.abs(data["warp"][sheet]), np.tile([0, 1.0, 0], (4, 1)), atol=1e-12)
