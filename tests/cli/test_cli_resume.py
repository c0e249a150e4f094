"""Interrupted runs leave complete frames and can be continued."""

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
from cli_scenes import STRETCH, SWING, supple, supple_json, write_scene

from supple.cli.progress import RunProgress
from supple.io import read_frame


@contextmanager
def interrupted_after(frames: int) -> Iterator[None]:
    """Within it, the user presses Ctrl-C in the middle of the solve that follows so many frames."""
    original = RunProgress.watch

    def watch(self, iteration, imbalance, seconds):
        original(self, iteration, imbalance, seconds)
        if self.done == frames and iteration > 5:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunProgress, "watch", watch)
        yield


@pytest.mark.parametrize("text", [SWING, STRETCH], ids=["dynamic", "quasistatic"])
def test_interrupted_and_resumed_gives_the_frames_of_an_uninterrupted_run(tmp_path, text):
    scene = write_scene(tmp_path, text)
    whole = supple_json("run", scene, "--output", "whole", "--no-picture")
    with interrupted_after(2):
        result = supple("run", scene, "--output", "parts", "--no-picture")
    frames = len(whole["frames"])
    assert result.exit_code == 130
    assert f"2 of {frames} frames are complete" in result.stderr
    assert "--resume" in result.stderr
    assert not (tmp_path / "parts" / "frame_0003.npz").exists()

    parts = supple_json("run", scene, "--output", "parts", "--no-picture", "--resume")
    assert [frame["index"] for frame in parts["frames"]] == list(range(1, frames + 1))
    for index in range(1, frames + 1):
        expected, found = read_frame(tmp_path / "whole", index), read_frame(tmp_path / "parts", index)
        assert found.time == expected.time
        np.testing.assert_allclose(found.positions, expected.positions, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.velocities, expected.velocities, rtol=0, atol=1e-10)
    assert (tmp_path / "parts" / "animation.pvd").read_text() == (
        tmp_path / "whole" / "animation.pvd"
    ).read_text()


def test_an_interrupt_before_the_first_frame_leaves_old_results_alone(tmp_path):
    scene = write_scene(tmp_path, SWING)
    supple_json("run", scene, "--no-picture")
    with interrupted_after(0):
        result = supple("run", scene, "--no-picture", "--overwrite")
    assert result.exit_code == 130
    assert "before the first frame" in result.stderr
    assert read_frame(tmp_path / "results" / "scene", 6).index == 6


def test_a_resume_without_results_starts_at_the_beginning(tmp_path):
    report = supple_json("run", write_scene(tmp_path, SWING), "--resume", "--no-picture")
    assert report["totals"]["frames"] == 6


def test_a_resume_of_a_finished_run_has_nothing_to_do(tmp_path):
    scene = write_scene(tmp_path, SWING)
    first = supple_json("run", scene, "--no-picture")
    again = supple_json("run", scene, "--no-picture", "--resume")
    assert again["frames"] == first["frames"]


def test_a_resume_shows_figures_that_were_infinite(tmp_path):
    scene = write_scene(tmp_path, SWING)
    supple_json("run", scene, "--no-picture", "--frames", "2")
    path = tmp_path / "results" / "scene" / "report.json"
    report = json.loads(path.read_text())
    report["frames"][-1] |= {"imbalance": None, "energy": None}
    path.write_text(json.dumps(report))
    result = supple("run", scene, "--frames", "2", "--resume")
    assert result.exit_code == 0
    assert "inf J" in result.stdout


def test_more_frames_continue_a_finished_run(tmp_path):
    scene = write_scene(tmp_path, SWING)
    supple_json("run", scene, "--no-picture")
    assert supple_json("run", scene, "--no-picture", "--resume", "--frames", "8")["totals"]["frames"] == 8
    assert supple("run", scene, "--resume", "--frames", "3").exit_code == 2


def test_a_frame_that_is_missing_is_computed_again(tmp_path):
    scene = write_scene(tmp_path, SWING)
    first = supple_json("run", scene, "--no-picture")
    (tmp_path / "results" / "scene" / "frame_0005.npz").unlink()
    again = supple_json("run", scene, "--no-picture", "--resume")
    assert [f["iterations"] for f in again["frames"]] == [f["iterations"] for f in first["frames"]]
    assert (tmp_path / "results" / "scene" / "frame_0005.npz").exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("1e4", "2e4"), "is not what it was when the run began"),
        (None, "tolerance was 1e-08 and is now 0.001"),
    ],
    ids=["scene", "settings"],
)
def test_a_resume_of_something_else_is_refused(tmp_path, change, sentence):
    scene = write_scene(tmp_path, SWING)
    supple_json("run", scene, "--no-picture", "--frames", "2")
    if change:
        write_scene(tmp_path, SWING.replace(*change))
    options = () if change else ("--tolerance", "1e-3")
    result = supple("run", scene, "--resume", *options)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "--overwrite" in result.stderr


def test_a_damaged_report_is_refused(tmp_path):
    scene = write_scene(tmp_path, SWING)
    supple_json("run", scene, "--no-picture", "--frames", "2")
    (tmp_path / "results" / "scene" / "report.json").write_text("{")
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
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "--resume continues" in said
    assert not list(folder.glob(".unfinished*"))
    saved = sorted(folder.glob("frame_*.npz"))
    assert len(saved) >= 3
    for path in saved:
        assert read_frame(folder, int(path.stem[-4:])).positions.shape == (64, 3)
        assert len(meshio.read(path.with_suffix(".vtu")).points) == 64
