"""supple export and supple mesh."""

import numpy as np
import pytest
import trimesh
from cli_scenes import STRETCH, supple, supple_json, write_scene

from supple.io import FORMATS
from supple.meshes import ball, block, load_mesh, save_mesh


@pytest.fixture
def results(tmp_path):
    supple_json("run", write_scene(tmp_path, STRETCH), "--output", "results", "--no-picture", "--no-film")
    return tmp_path / "results"


def test_export_writes_the_listed_files(results, tmp_path):
    message = supple_json("export", "results", "--format", ",".join(FORMATS), "--output", "out")
    assert set(message["files"]) == set(FORMATS)
    assert all((tmp_path / path).exists() for path in message["files"].values())
    glb = trimesh.load(tmp_path / "out" / "animation.glb", process=False)
    with np.load(tmp_path / "out" / "positions.npz") as saved:
        final = saved["positions"][-1]
    np.testing.assert_allclose(glb.bounds, [final.min(axis=0), final.max(axis=0)], atol=1e-6)
    assert final[:, 0].max() == pytest.approx(1.5)


def test_export_writes_next_to_the_frames_by_default(results):
    outcome = supple("export", "results", "--format", "npz, glb")
    assert outcome.exit_code == 0
    assert outcome.stdout.split() == ["npz", "results/positions.npz", "glb", "results/animation.glb"]
    assert supple("export", "results", "--format", "npz", "--quiet").stdout == ""


def test_run_writes_more_formats(tmp_path):
    scene = write_scene(tmp_path, STRETCH)
    supple_json("run", scene, "--output", "results", "--no-picture", "--no-film", "--format", "glb,npz")
    assert {"animation.glb", "positions.npz"} <= {path.name for path in (tmp_path / "results").iterdir()}
    refused = supple("run", scene, "--output", "other", "--format", "gltf")
    assert refused.exit_code == 2
    assert "there is no format 'gltf'" in refused.stderr
    assert not (tmp_path / "other").exists()


def test_render_surfaces_of_a_run_are_exported(tmp_path):
    fine = ball(0.7, 4).translated((0.5, 0.5, 0.5))
    trimesh.Trimesh(fine.points, fine.surface, process=False).export(tmp_path / "skin.ply")
    scene = STRETCH.replace("density = 100", 'density = 100\nrender = { file = "skin.ply" }')
    supple_json("run", write_scene(tmp_path, scene), "--output", "results", "--no-picture", "--no-film")
    supple_json("export", "results", "--format", "glb")
    (skin,) = trimesh.load(tmp_path / "results" / "animation.glb", process=False).geometry.values()
    assert len(skin.faces) == len(fine.surface)
    assert skin.extents[0] > 1.2 * 1.4  # a ball 1.4 m wide, stretched by half


@pytest.mark.parametrize("factor", ["0", "nan"])
def test_mesh_reports_a_wrong_scale(tmp_path, factor):
    trimesh.creation.box().export(tmp_path / "box.stl")
    message = supple_json("mesh", "box.stl", "box.vtu", "--scale", factor, exit_code=2)
    assert "scale must be finite and not 0" in message["error"]
    assert "edge_length" not in message["error"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("export", "nowhere", "--format", "usd"), "there is no results folder nowhere"),
        (("export", ".", "--format", "gltf"), "there is no format 'gltf'"),
        (("mesh", "nowhere.obj", "out.vtu"), "There is no surface file nowhere.obj"),
        (("mesh", "nowhere.mesh", "out.vtu"), "There is no mesh file nowhere.mesh"),
        (("mesh", "nowhere.obj", "out.usd"), "out.usd: mesh files end in one of"),
        (("mesh", "nowhere.obj", "nowhere/out.vtu"), "There is no folder nowhere"),
    ],
)
def test_mistakes(arguments, sentence):
    message = supple_json(*arguments, exit_code=2)
    assert sentence in message["error"]


def test_mesh_converts(tmp_path):
    save_mesh(block(2), tmp_path / "block.mesh")
    message = supple_json("mesh", "block.mesh", "block.vtu", "--scale", "2")
    assert message == {"file": "block.vtu", "vertices": 27, "tets": 40, "volume": 8.0, "exit_code": 0}
    assert load_mesh(tmp_path / "block.vtu").volume == pytest.approx(8)


def test_mesh_announces_tetrahedralization(tmp_path, monkeypatch):
    pytest.importorskip("pytetwild")
    monkeypatch.setattr("supple.meshes.generators.tetrahedralize.cache_folder", lambda: tmp_path / "cache")
    trimesh.creation.box().export(tmp_path / "box.stl")
    outcome = supple("mesh", "box.stl", "box.vtu", "--edge-length", "0.5")
    assert outcome.exit_code == 0
    assert "box.stl: tetrahedralizing 12 triangles with edges of 0.5 m …" in outcome.stderr
    assert load_mesh(tmp_path / "box.vtu").volume == pytest.approx(1, rel=0.05)
