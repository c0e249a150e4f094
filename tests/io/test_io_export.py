"""Exports of any format: refusals, replacement and existing files."""

import weakref

import numpy as np
import pytest
from exports import DT, REST, SCENE, make_scene, positions, snapshot

import supple
from supple.io import FORMATS, ResultsError, ResultsFolder, save_frames
from supple.io.formats import interface
from supple.io.formats.interface import Format
from supple.io.frame_export import export_frames


def test_unfinished_run_exports_its_complete_frames(results):
    (results / "frame_0003.npz").unlink()
    with np.load(export_frames(results, "npz")["npz"]) as arrays:
        assert arrays["index"].tolist() == [0, 1, 2]


def test_results_without_start_begin_with_frame_1(results):
    (results / "frame_0000.npz").unlink()
    with np.load(export_frames(results, "npz")["npz"]) as arrays:
        assert arrays["index"].tolist() == [1, 2, 3]


def test_second_export_replaces_the_first(results):
    every = ",".join(FORMATS)
    export_frames(results, every)
    (results / "frame_0002.npz").unlink()
    paths = export_frames(results, every)
    assert len(list(paths["ply"].iterdir())) == 4
    assert len(list(paths["vtu"].glob("*.vtu"))) == 2
    with np.load(paths["npz"]) as arrays:
        assert len(arrays["positions"]) == 2


def test_clearing_results_clears_exports(results):
    export_frames(results, FORMATS)
    (results / "ply" / "notes.txt").touch()
    ResultsFolder(results).clear()
    assert [path.name for path in results.rglob("*") if path.is_file()] == ["notes.txt"]


def test_frames_are_written_lazily_and_released(tmp_path):
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


def test_results_and_arrays_are_exported_as_frames(tmp_path):
    still = supple.Result(positions(1), None, None)
    with np.load(save_frames(SCENE, [still, positions(2)], "npz", tmp_path, dt=0.5)["npz"]) as arrays:
        np.testing.assert_array_equal(arrays["positions"], [REST, positions(1), positions(2)])
        assert arrays["time"].tolist() == [0.0, 0.5, 1.0]


def test_start_has_pins_at_the_beginning_of_their_motion(tmp_path):
    scene = make_scene()
    path = supple.Keyframes.path([0, 1], [(0, 2, 0), (0, 0, 0)])
    scene.pin(scene.bodies[0].where([3]), motion=path)
    with np.load(save_frames(scene, [REST], "npz", tmp_path)["npz"]) as arrays:
        moved = arrays["positions"][0] - REST
    assert moved[3].tolist() == [0, 2, 0]
    assert np.count_nonzero(moved) == 1


def test_given_start_is_not_written_before_later_frames(tmp_path):
    with np.load(save_frames(SCENE, [REST], "npz", tmp_path, initial=positions(2))["npz"]) as arrays:
        np.testing.assert_array_equal(arrays["positions"], [positions(2), REST])
    later = supple.Frame(REST, None, None, None, 7, 7 * DT)
    with np.load(save_frames(SCENE, [later], "npz", tmp_path)["npz"]) as arrays:
        assert arrays["index"].tolist() == [7]
    with pytest.raises(ResultsError, match="initial must have"):
        save_frames(SCENE, [REST], "npz", tmp_path, initial=REST[1:])


@pytest.mark.parametrize("name", FORMATS)
def test_interrupted_export_keeps_the_old_files(name, results):
    path = export_frames(results, name)[name]
    old = snapshot(path)

    def failing():
        yield positions(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_frames(SCENE, failing(), name, results)
    if path.is_file() or name == "zarr":
        assert snapshot(path) == old
    assert not list(results.glob("**/.unfinished*"))
    export_frames(results, name)
    if name != "usd":  # which numbers its versions
        assert snapshot(path) == old


@pytest.mark.parametrize(
    ("formats", "sentence"),
    [
        ("usdd", "there is no format 'usdd'; did you mean 'usd'"),
        ("fbx", "there is no format 'fbx'; known here: 'usd', 'glb'"),
        (" , ", "no format given; available formats: usd, glb"),
    ],
)
def test_wrong_formats_are_refused(results, formats, sentence):
    with pytest.raises(ResultsError, match=sentence):
        export_frames(results, formats)


def test_folders_without_frames_are_refused(tmp_path, results):
    with pytest.raises(ResultsError, match="there is no results folder"):
        export_frames(tmp_path / "nowhere", "npz")
    with pytest.raises(ResultsError, match=r"has no report\.json"):
        export_frames(tmp_path, "npz")
    (results / "frame_0001.npz").unlink()
    with pytest.raises(ResultsError, match="has no complete frame yet"):
        export_frames(results, "npz")
    with pytest.raises(ResultsError, match="there are no frames"):
        save_frames(SCENE, [], "npz", tmp_path)
    with pytest.raises(ResultsError, match=r"frame 1 must have shape \(82, 3\), .* got shape \(5, 3\)"):
        save_frames(SCENE, [np.zeros((5, 3))], "npz", tmp_path)
    with pytest.raises(ResultsError, match="is a file; name a folder"):
        save_frames(SCENE, [REST], "npz", results / "report.json")


def test_missing_package_is_named_with_its_extra():
    absent = Format("usd", "", "", None, "no_such_package.core", "usd")
    with pytest.raises(ResultsError, match=r"needs the package no_such_package: pip install 'supple\[usd\]'"):
        absent.refuse_missing_package()


def test_names_are_sanitized_and_stay_distinct():
    assert interface.distinct(["a/b", "a:b", "A_b", "..", ""], interface.file_name) == [
        "a_b",
        "a_b_2",
        "A_b_3",
        "body",
        "body_2",
    ]
