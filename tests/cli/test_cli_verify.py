"""Checksums of results folders: damage is detected, and repaired where possible."""

import os
import struct
import zipfile

import numpy as np
import pytest
from cli_scenes import SWING, supple, supple_json, write_scene

from supple.cli.progress_bars import RunProgress
from supple.io import read_frame
from supple.io.checksums import CHECKSUMS, read_checksums

RUN = ("--no-picture", "--frames", "3")


@pytest.fixture
def results(tmp_path):
    supple_json("run", write_scene(tmp_path, SWING), *RUN)
    return tmp_path / "results" / "scene"


def resume():
    return supple("run", "scene.toml", *RUN, "--resume")


def flip(path, part=0.5):
    """Flip one bit, as failing disks do."""
    data = bytearray(path.read_bytes())
    data[int(part * (len(data) - 1))] ^= 1
    path.write_bytes(data)


def test_untouched_folder_is_intact(results):
    message = supple_json("verify", "results/scene")
    names = {f"frame_{k:04d}.{kind}" for k in range(4) for kind in ("npz", "vtu")}
    assert set(read_checksums(results).digests) == names | {"report.json", "scene.toml", "animation.pvd"}
    assert (message["files"], message["good"], message["problems"]) == (11, True, [])
    assert "11 files read, all checksums match" in supple("verify", "results/scene").stdout


@pytest.mark.parametrize("part", [0.0, 0.3, 0.7, 1.0])
def test_one_flipped_bit_in_any_file_is_detected(results, part):
    for path in sorted(results.iterdir()):
        if path.name == CHECKSUMS:
            continue
        before = path.read_bytes()
        flip(path, part)
        message = supple_json("verify", "results/scene", exit_code=1)
        assert message["damaged"] == [path.name]
        assert message["problems"] == [
            f"results/scene/{path.name} is damaged: it does not match its checksum."
        ]
        path.write_bytes(before)
    assert supple("verify", "results/scene").exit_code == 0


def test_missing_and_unexpected_files_are_named(results):
    (results / "frame_0002.vtu").unlink()
    (results / "frame_0007.npz").write_bytes(b"")
    (results / "notes.txt").write_text("mine")
    message = supple_json("verify", "results/scene", exit_code=1)
    assert (message["missing"], message["unexpected"]) == (["frame_0002.vtu"], ["frame_0007.npz"])
    assert (message["damaged"], message["foreign"]) == ([], ["notes.txt"])
    (results / "frame_0007.npz").unlink()
    assert resume().exit_code == 0
    assert supple_json("verify", "results/scene")["foreign"] == ["notes.txt"]


def test_damaged_checksums_are_detected(results):
    lines = (results / CHECKSUMS).read_text().splitlines()
    lines[3] = lines[3].replace(lines[3][0], "x", 1)
    (results / CHECKSUMS).write_text("\n".join(lines) + "\n")
    outcome = supple("verify", "results/scene")
    assert outcome.exit_code == 1
    assert "checksums.sha256 is damaged: line 4 is not a checksum" in outcome.stderr


@pytest.mark.parametrize("name", ["frame_0000.npz", "frame_0000.vtu", "frame_0002.vtu", "frame_0003.npz",
                                  "animation.pvd", "scene.toml"])  # fmt: skip
@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "gone"])
def test_resume_repairs_every_file_bitwise(results, name, damage):
    uninterrupted = read_checksums(results).digests
    path = results / name
    if damage == "flipped":
        flip(path)
    elif damage == "gone":
        path.unlink()
    else:
        os.truncate(path, 100 if damage == "cut" else 0)
    result = resume()
    assert result.exit_code == 0, result.output
    if not (damage == "gone" and name.startswith("frame_000") and "0000" not in name):
        assert name in result.stderr
    assert supple("verify", "results/scene").exit_code == 0
    again = read_checksums(results).digests
    assert {file: digest for file, digest in again.items() if file != "report.json"} == {
        file: digest for file, digest in uninterrupted.items() if file != "report.json"
    }


def test_damaged_start_of_an_earlier_version_is_repaired(results):
    (results / CHECKSUMS).unlink()
    os.truncate(results / "frame_0000.npz", 100)
    refused = supple("export", "results/scene", "--format", "ply")
    assert refused.exit_code == 2
    assert "frame 0 cannot be read; `supple run` with --resume writes it again" in refused.stderr
    assert resume().exit_code == 0
    assert read_frame(results, 0).index == 0
    assert supple("export", "results/scene", "--format", "ply").exit_code == 0
    outcome = supple("verify", "results/scene")
    assert outcome.exit_code == 1
    assert "has no checksums.sha256: the run was written by an earlier version" in outcome.stderr


def test_skins_and_mesh_data_are_repaired(tmp_path):
    import trimesh

    from supple.meshes import ball

    fine = ball(0.7, 4).translated((0.5, 0.5, 0.5))
    trimesh.Trimesh(fine.points, fine.surface, process=False).export(tmp_path / "skin.ply")
    write_scene(tmp_path, SWING.replace("density = 100", 'density = 100\nrender = { file = "skin.ply" }'))
    supple_json("run", "scene.toml", *RUN)
    skins = tmp_path / "results" / "scene" / "skins.npz"
    before = skins.read_bytes()
    os.truncate(skins, 100)
    refused = supple("export", "results/scene", "--format", "ply")
    assert (refused.exit_code, "skins.npz is damaged" in refused.stderr) == (2, True)
    (skins.parent / CHECKSUMS).rename(tmp_path / "aside")
    refused = supple("export", "results/scene", "--format", "ply")
    assert (refused.exit_code, "skins.npz is damaged" in refused.stderr) == (2, True)
    (tmp_path / "aside").rename(skins.parent / CHECKSUMS)
    assert "skins.npz is damaged and is written again" in resume().stderr
    assert skins.read_bytes() == before


def test_changed_report_is_recomputed_on_resume(results):
    """A resumed run does not give wrong numbers a valid checksum."""
    path = results / "report.json"
    text = path.read_text()
    path.write_text(text.replace('"iterations": ', '"iterations": 1', 1))
    for command in (("run", "scene.toml", *RUN, "--resume"), ("export", "results/scene", "--format", "ply"),
                    ("report", "results/scene"), ("render", "results/scene")):  # fmt: skip
        refused = supple(*command)
        assert refused.exit_code == 2, command
        assert "report.json is damaged: it does not match its checksum" in refused.stderr
        assert "--overwrite" in refused.stderr
    assert supple_json("verify", "results/scene", exit_code=1)["damaged"] == ["report.json"]
    path.write_text(text)
    assert resume().exit_code == 0


def test_export_names_frames_with_damaged_files(results):
    flip(results / "frame_0002.vtu")
    outcome = supple("export", "results/scene", "--format", "ply")
    assert outcome.exit_code == 0  # positions come from frame_0002.npz
    assert "frame_0002.vtu is damaged" in outcome.stderr
    flip(results / "frame_0001.vtu")
    assert "frame_0001.vtu is damaged" in supple("export", "results/scene", "--format", "ply").stderr
    flip(results / "frame_0001.vtu")
    flip(results / "frame_0003.npz", 0.0)
    refused = supple("export", "results/scene", "--format", "ply")
    assert refused.exit_code == 2
    assert "frame_0003.npz is damaged" in refused.stderr


def test_exports_and_pages_have_checksums_and_are_replaced(results):
    supple_json("export", "results/scene", "--format", "ply,zarr,glb,pc2,npz,vtu,obj")
    supple("report", "results/scene")
    names = set(read_checksums(results).digests)
    assert {"report.html", "animation.glb", "positions.npz", "ply/block_0003.ply"} <= names
    assert "positions.zarr/zarr.json" in names
    assert supple_json("verify", "results/scene")["unexpected"] == []
    flip(results / "ply" / "block_0002.ply")
    assert supple_json("verify", "results/scene", exit_code=1)["damaged"] == ["ply/block_0002.ply"]
    (results / "frame_0003.npz").unlink()  # the next export has a frame less
    supple_json("export", "results/scene", "--format", "ply,zarr")
    supple_json("export", "results/scene", "--format", "zarr")
    assert supple_json("verify", "results/scene", exit_code=1)["problems"] == [
        "results/scene/frame_0003.npz is missing."
    ]
    assert resume().exit_code == 0
    assert supple_json("verify", "results/scene")["good"]


@pytest.mark.parametrize("name", ["frame_0002.vtu", "frame_0002.npz", "report.json", "animation.pvd"])
@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_kill_around_a_rename_leaves_valid_checksums(tmp_path, monkeypatch, name, done):
    scene, original, seen = write_scene(tmp_path, SWING), os.replace, []

    def replace(source, target):
        if str(target).endswith(name):
            seen.append(target)
            if len(seen) == (1 if name.startswith("frame") else 3):
                if done:
                    original(source, target)
                raise SystemExit(9)  # nothing is said, nothing is tidied
        original(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("supple.io.checksums.compact_checksums", lambda *_, **__: None)
        supple("run", scene, *RUN)
    assert len(seen) == (1 if name.startswith("frame") else 3)
    monkeypatch.undo()
    os.chdir(tmp_path)
    message = supple_json(
        "verify", "results/scene", exit_code=0 if done or not name.startswith("frame") else 1
    )
    assert message["damaged"] == []
    assert set(message["missing"]) <= {name}
    assert resume().exit_code == 0
    assert supple("verify", "results/scene").exit_code == 0


def test_interrupted_run_is_intact_and_resumes(tmp_path, monkeypatch):
    scene, original = write_scene(tmp_path, SWING), RunProgress.show_iteration

    def interrupt(self, info):
        original(self, info)
        if self.done == 2 and info.iteration > 5:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunProgress, "show_iteration", interrupt)
        assert supple("run", scene, *RUN).exit_code == 130
    assert supple("verify", "results/scene").exit_code == 0
    assert resume().exit_code == 0
    assert supple("verify", "results/scene").exit_code == 0


def test_truncated_checksum_line_affects_no_other(results):
    with (results / CHECKSUMS).open("ab") as file:
        file.write(b"0123456789")  # a write that a power cut ended
    supple_json("export", "results/scene", "--format", "npz")
    assert supple_json("verify", "results/scene")["files"] == 12


def test_comparisons_are_verified(tmp_path):
    supple(
        "compare", write_scene(tmp_path, SWING), "--solver", "pbng", "--no-picture", "--max-iterations", "3"
    )
    message = supple_json("verify", "results/scene_compare")
    assert (message["good"], message["files"] > 2) == (True, True)
    flip(tmp_path / "results" / "scene_compare" / "comparison.json")
    assert supple("verify", "results/scene_compare").exit_code == 1
    refused = supple("report", "results/scene_compare")
    assert (refused.exit_code, "comparison.json is damaged" in refused.stderr) == (2, True)


def test_folders_without_results_are_refused(tmp_path):
    (tmp_path / "store").mkdir()
    assert "there is no results folder nowhere" in supple("verify", "nowhere").stderr
    assert "so it is not a results folder" in supple("verify", "store").stderr
    (tmp_path / "store" / "zarr.json").write_text("{}")
    refused = supple("verify", "store")
    assert refused.exit_code == 2
    assert "`supple dataset verify store`" in " ".join(refused.stderr.split())


def central_directory(path, offset, value):
    """Set a field of two bytes in every entry of the central directory of a ZIP file."""
    data = bytearray(path.read_bytes())
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        struct.pack_into("<H", data, at + offset, value)
        at = data.find(b"PK\x01\x02", at + 4)
    path.write_bytes(data)


@pytest.mark.parametrize(("offset", "value"), [(8, 1), (10, 99), (10, 12), (10, 14)],
                         ids=["encrypted", "unknown method", "bzip2", "lzma"])  # fmt: skip
@pytest.mark.parametrize("checked", [False, True], ids=["without checksums", "with checksums"])
def test_archives_refused_by_zipfile_are_damaged_frames(results, offset, value, checked):
    expected = read_frame(results, 2).positions
    if not checked:
        (results / CHECKSUMS).unlink()
    central_directory(results / "frame_0002.npz", offset, value)
    refused = supple("export", "results/scene", "--format", "ply")
    assert refused.exit_code == 2, refused.output
    assert "frame_0002.npz is damaged" in refused.stderr
    result = resume()
    assert result.exit_code == 0, result.output
    assert "The run continues after frame 1." in result.stderr
    np.testing.assert_array_equal(read_frame(results, 2).positions, expected)


def test_frame_with_oversized_shape_is_damaged(results):
    (results / CHECKSUMS).unlink()
    path = results / "frame_0002.npz"
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["positions.npy"] = parts["positions.npy"].replace(b"(64, 3), ", b"(10000000000, 3), ")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    refused = supple("export", "results/scene", "--format", "ply")
    assert refused.exit_code == 2, refused.output
    assert "frame_0002.npz is damaged" in refused.stderr
