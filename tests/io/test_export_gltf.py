"""glTF files, checked against the specification and with VTK."""

import json
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
    boundary_points,
    positions,
    skin_points,
)
from vtkmodules.vtkIOGeometry import vtkGLTFReader

import supple
from supple.io import save_frames
from supple.io.frame_export import export_frames


def test_static_gltf_readers_see_the_last_frame(results):
    scene = trimesh.load(export_frames(results, "glb")["glb"], process=False)
    assert sorted(scene.graph.nodes_geometry) == sorted(NAMES)
    volumes = {name: mesh.volume for name, mesh in scene.geometry.items()}
    stretch = 1 + FRAMES / 10
    assert volumes[NAMES[0]] == pytest.approx(stretch, rel=1e-5)
    assert volumes["ball"] > 1.05 * stretch * BALL.mesh.volume  # the skin is finer and larger
    colors = {tuple(mesh.visual.material.baseColorFactor) for mesh in scene.geometry.values()}
    assert len(colors) == 2


def test_gltf_is_animated_through_all_frames(results):
    file = GLTF(export_frames(results, "glb")["glb"])
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
        center = corners.mean(axis=0)
        assert (np.einsum("ij,ij->i", cube - center, cube_normals) > 0.4).all()
        ball, normals, triangles = file.shape(1, file.times()[frame])
        np.testing.assert_allclose(ball[triangles], skin_points(frame)[BALL.skin.triangles], atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, atol=1e-5)
    between, _, _ = file.shape(0, 1.25 * DT)
    first, second = (file.shape(0, index * DT)[0] for index in (1, 2))
    np.testing.assert_allclose(between, 0.75 * first + 0.25 * second, atol=1e-5)


def test_gltf_animation_in_vtk(results):
    reader = vtkGLTFReader()
    reader.SetFileName(str(export_frames(results, "glb")["glb"]))
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
        expected = np.concatenate([boundary_points(index), skin_points(index)])
        np.testing.assert_allclose(blocks.points.min(axis=0), expected.min(axis=0), atol=1e-5)
        np.testing.assert_allclose(blocks.points.max(axis=0), expected.max(axis=0), atol=1e-5)


def test_gltf_has_texture_coordinates_with_v_downwards(results):
    file = GLTF(export_frames(results, "glb")["glb"])
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


@pytest.mark.parametrize("limit", ["MAX_TARGETS", "MAX_BYTES"])
def test_long_gltf_animations_are_subsampled(tmp_path, monkeypatch, caplog, limit):
    few = {"MAX_TARGETS": 4, "MAX_BYTES": 4 * 24 * 300}[limit]
    monkeypatch.setattr(f"supple.io.formats.glb.{limit}", few)
    shapes = (positions(index) for index in range(1, 101))
    file = GLTF(save_frames(SCENE, shapes, "glb", tmp_path, initial=positions(0))["glb"])
    file.check()
    times = file.times() / DT
    assert 3 <= len(times) <= 5
    assert (times[0], times[-1]) == (0, pytest.approx(100))
    assert f"animation.glb has {len(times)} of the 101 frames" in caplog.text
    ball, _, triangles = file.shape(1, file.times()[1])
    expected = skin_points(round(times[1]))[BALL.skin.triangles]
    np.testing.assert_allclose(ball[triangles], expected, atol=1e-4)


COMPONENTS = {5125: "<u4", 5126: "<f4"}


WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3}


class GLTF:
    """A strict reader of binary glTF 2.0."""

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
        """Check the standard's requirements: finite numbers, bounds of positions and times, indices in range,
        unit normals, as many targets as weights."""
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
        """Positions and normals of the corners of a body at a time [s], and its triangles."""
        (primitive,) = self.tree["meshes"][body]["primitives"]
        weights = self.values(self.tree["animations"][0]["samplers"][0]["output"])
        weights = weights.reshape(len(self.times()), -1)
        now = [np.interp(time, self.times(), weight) for weight in weights.T]
        arrays = []
        for name in ("POSITION", "NORMAL"):
            moves = [w * self.values(t[name]) for w, t in zip(now, primitive["targets"], strict=True)]
            arrays.append(self.values(primitive["attributes"][name]) + sum(moves))
        return *arrays, self.values(primitive["indices"]).reshape(-1, 3)
