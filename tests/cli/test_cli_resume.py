"""Interrupted runs keep complete frames and can be resumed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import meshio
import numpy as np
import pytest
from cli_scenes import STIFFENS, STRETCH, SWING, supple, supple_json, write_scene

import supple as library
from supple.cli.progress_bars import RunProgress
from supple.io import read_frame
from supple.io.checksums import CHECKSUMS


@contextmanager
def interrupted_after(frames: int) -> Iterator[None]:
    """Context in which Ctrl-C interrupts the solve after so many frames."""
    original = RunProgress.show_iteration

    def interrupt(self, info):
        original(self, info)
        if self.done == frames and info.iteration > 5:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunProgress, "show_iteration", interrupt)
        yield


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("text", [SWING, STIFFENS, STRETCH], ids=["dynamic", "stiffening", "quasistatic"])
def test_interrupted_and_resumed_run_equals_an_uninterrupted_one(tmp_path, text, precision):
    scene = write_scene(tmp_path, text.replace("1e-8", "1e-5"))
    options = ("--no-picture", "--precision", precision)
    uninterrupted = supple_json("run", scene, "--output", "whole", *options)
    with interrupted_after(2):
        result = supple("run", scene, "--output", "parts", *options)
    frames = len(uninterrupted["frames"])
    assert result.exit_code == 130
    assert f"2 of {frames} frames are complete" in result.stderr
    assert "--resume" in result.stderr
    assert not (tmp_path / "parts" / "frame_0003.npz").exists()

    parts = supple_json("run", scene, "--output", "parts", *options, "--resume")
    assert [frame["index"] for frame in parts["frames"]] == list(range(1, frames + 1))
    for index in range(1, frames + 1):
        expected, actual = read_frame(tmp_path / "whole", index), read_frame(tmp_path / "parts", index)
        assert actual.time == expected.time
        np.testing.assert_array_equal(actual.positions, expected.positions)
        np.testing.assert_array_equal(actual.velocities, expected.velocities)
        np.testing.assert_array_equal(actual.state.displacements, expected.state.displacements)
    assert (tmp_path / "parts" / "animation.pvd").read_text() == (
        tmp_path / "whole" / "animation.pvd"
    ).read_text()


def test_frames_of_earlier_versions_without_state_are_continued(tmp_path):
    scene = write_scene(tmp_path, SWING)
    supple_json("run", scene, "--no-picture")
    last = read_frame(tmp_path / "results" / "scene", 6)
    (tmp_path / "results" / "scene" / "frame_0006.npz").unlink()
    old = tmp_path / "results" / "scene" / "frame_0005.npz"
    old.with_name(CHECKSUMS).unlink()
    with np.load(old) as saved:
        arrays = {name: saved[name] for name in ("positions", "velocities", "index", "time")}
    np.savez(old, **arrays)
    supple_json("run", scene, "--no-picture", "--resume")
    again = read_frame(tmp_path / "results" / "scene", 6)
    np.testing.assert_allclose(again.positions, last.positions, rtol=0, atol=1e-12)


def test_interrupt_before_the_first_frame_keeps_old_results(tmp_path):
    scene = write_scene(tmp_path, SWING)
    supple_json("run", scene, "--no-picture")
    with interrupted_after(0):
        result = supple("run", scene, "--no-picture", "--overwrite")
    assert result.exit_code == 130
    assert "before the first frame" in result.stderr
    assert read_frame(tmp_path / "results" / "scene", 6).index == 6


def test_resume_without_results_starts_from_the_beginning(tmp_path):
    report = supple_json("run", write_scene(tmp_path, SWING), "--resume", "--no-picture")
    assert report["totals"]["frames"] == 6


def test_resume_of_a_finished_run_does_nothing(tmp_path):
    scene = write_scene(tmp_path, SWING)
    first = supple_json("run", scene, "--no-picture")
    again = supple_json("run", scene, "--no-picture", "--resume")
    assert again["frames"] == first["frames"]


def test_resume_shows_infinite_numbers(tmp_path):
    scene = write_scene(tmp_path, SWING)
    supple_json("run", scene, "--no-picture", "--frames", "2")
    path = tmp_path / "results" / "scene" / "report.json"
    report = json.loads(path.read_text())
    report["frames"][-1] |= {"relative_residual": None, "energy": None}
    path.write_text(json.dumps(report))
    path.with_name(CHECKSUMS).unlink()
    result = supple("run", scene, "--frames", "2", "--resume")
    assert result.exit_code == 0
    assert "inf J" in result.stdout


def test_more_frames_extend_a_finished_run(tmp_path):
    scene = write_scene(tmp_path, SWING)
    supple_json("run", scene, "--no-picture")
    assert supple_json("run", scene, "--no-picture", "--resume", "--frames", "8")["totals"]["frames"] == 8
    assert supple("run", scene, "--resume", "--frames", "3").exit_code == 2


def test_missing_frame_is_recomputed(tmp_path):
    scene = write_scene(tmp_path, SWING)
    first = supple_json("run", scene, "--no-picture")
    (tmp_path / "results" / "scene" / "frame_0005.npz").unlink()
    again = supple_json("run", scene, "--no-picture", "--resume")
    assert [f["iterations"] for f in again["frames"]] == [f["iterations"] for f in first["frames"]]
    assert (tmp_path / "results" / "scene" / "frame_0005.npz").exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("1e4", "2e4"), "has changed since the run began"),
        (None, "tolerance was 1e-08 and is now 0.001"),
    ],
    ids=["scene", "settings"],
)
def test_resume_of_a_changed_scene_is_refused(tmp_path, change, sentence):
    scene = write_scene(tmp_path, SWING)
    supple_json("run", scene, "--no-picture", "--frames", "2")
    if change:
        write_scene(tmp_path, SWING.replace(*change))
    options = () if change else ("--tolerance", "1e-3")
    result = supple("run", scene, "--resume", *options)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "--overwrite" in result.stderr


def test_damaged_report_is_refused(tmp_path):
    scene = write_scene(tmp_path, SWING)
    supple_json("run", scene, "--no-picture", "--frames", "2")
    (tmp_path / "results" / "scene" / "report.json").write_text("{")
    (tmp_path / "results" / "scene" / CHECKSUMS).unlink()
    result = supple("run", scene, "--resume")
    assert result.exit_code == 2
    assert "is not a report of supple" in result.stderr


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for child processes")
def test_ctrl_c_leaves_complete_files(tmp_path):
    scene = write_scene(tmp_path, SWING)
    command = [
        sys.executable,
        "-c",
        "from supple.cli import main; main()",
        "run",
        scene,
        "--frames",
        "100000",
    ]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        # In the background of a shell Ctrl-C is ignored, which children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    folder = tmp_path / "results" / "scene"
    deadline = time.monotonic() + 120
    while not (folder / "frame_0003.npz").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in message
    assert "--resume continues" in message
    assert not list(folder.glob(".unfinished*"))
    saved = sorted(folder.glob("frame_*.npz"))
    assert len(saved) >= 3
    for path in saved:
        assert read_frame(folder, int(path.stem[-4:])).positions.shape == (64, 3)
        assert len(meshio.read(path.with_suffix(".vtu")).points) == 64


def truncate(path, part=0.5):
    data = path.read_bytes()
    path.write_bytes(data[: int(part * len(data))])


@pytest.mark.parametrize("damage", ["truncated", "garbage", "empty", "another scene", "NaN", "VTU"])
def test_damaged_frame_is_recomputed_and_reported(tmp_path, damage):
    scene = write_scene(tmp_path, SWING)
    supple_json("run", scene, "--no-picture")
    folder = tmp_path / "results" / "scene"
    expected = [read_frame(folder, index) for index in range(1, 7)]
    path = folder / ("frame_0004.vtu" if damage == "VTU" else "frame_0004.npz")
    frame = expected[3]
    if damage in ("truncated", "VTU"):
        truncate(path)
    elif damage in ("garbage", "empty"):
        path.write_bytes(b"garbage" if damage == "garbage" else b"")
    else:
        count, value = (8, 0.0) if damage == "another scene" else (64, np.nan)
        vectors = np.full((count, 3), value)
        np.savez(path, positions=vectors, velocities=vectors, index=4, time=frame.time)
    result = supple("run", scene, "--no-picture", "--resume")
    assert result.exit_code == 0, result.output
    assert path.name in result.stderr
    assert "The run continues after frame 3." in result.stderr
    for saved in expected:
        np.testing.assert_array_equal(read_frame(folder, saved.index).positions, saved.positions)
    assert "The run continues" not in supple("run", scene, "--no-picture", "--resume").stderr


@pytest.mark.parametrize("command", [("render",), ("export", "--format", "ply"), ("report",)])
def test_reading_commands_name_the_damaged_file(tmp_path, command):
    scene = write_scene(tmp_path, SWING)
    supple_json("run", scene, "--no-picture", "--frames", "2")
    truncate(tmp_path / "results" / "scene" / "frame_0002.npz")
    result = supple(command[0], "results/scene", *command[1:])
    assert result.exit_code == 2
    assert "frame_0002.npz is damaged" in result.stderr
    assert "--resume" in result.stderr


def test_missing_totals_are_recomputed(tmp_path):
    supple_json("run", write_scene(tmp_path, SWING), "--no-picture", "--frames", "2")
    path = tmp_path / "results" / "scene" / "report.json"
    report = json.loads(path.read_text())
    del report["totals"]
    path.write_text(json.dumps(report))
    path.with_name(CHECKSUMS).unlink()
    assert supple("report", "results/scene").exit_code == 0


@pytest.mark.parametrize(
    "key_path", ["date", "machine", "scene.title", "frames.0.energy", "solver.tolerance"]
)
@pytest.mark.parametrize("command", [("render",), ("report",), ("export", "--format", "ply")])
def test_incomplete_report_is_named(tmp_path, key_path, command):
    supple_json("run", write_scene(tmp_path, SWING), "--no-picture", "--frames", "1")
    path = tmp_path / "results" / "scene" / "report.json"
    report = json.loads(path.read_text())
    *way, key = (int(word) if word.isdecimal() else word for word in key_path.split("."))
    where = report
    for word in way:
        where = where[word]
    del where[key]
    path.write_text(json.dumps(report))
    path.with_name(CHECKSUMS).unlink()
    result = supple(command[0], "results/scene", *command[1:])
    if result.exit_code:
        assert result.exit_code == 2
        assert f"report.json is not a report of this version of supple, it has no {key!r}" in result.stderr
    else:
        assert command[0] != "report"


def test_saved_run_restores_varying_parameters(tmp_path):
    """The stresses of every frame use the material parameters at its time."""
    scene = write_scene(tmp_path, STIFFENS.replace("1e-8", "1e-5"))
    supple_json("run", scene, "--output", "there", "--no-picture", "--precision", "float64")
    run = library.load_run(tmp_path / "there")
    for frame in library.simulate(library.load_scene(scene), precision="float64"):
        now, then = frame.evaluate(), run.frames[frame.index - 1].evaluate()
        np.testing.assert_allclose(then.von_mises, now.von_mises, rtol=1e-6)
        np.testing.assert_allclose(
            then.net_force, now.net_force, atol=1e-6 * np.abs(now.internal_force).max()
        )
