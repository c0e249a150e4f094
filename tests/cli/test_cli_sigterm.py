"""SIGTERM, sent by Slurm and Docker, ends commands as Ctrl-C does, with exit code 143."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_scenes import SWING, supple, supple_json, write_scene

import supple as library
from supple.cli.console import TERMINATED, Terminated

COMMAND = [sys.executable, "-c", "from supple_command import main; main()"]
SOURCES = str(Path(library.__file__).parents[1])

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM for child processes")


def left_over(folder):
    """Locks and unfinished files anywhere in a folder."""
    patterns = (".lock*", ".unfinished_*", ".replaced_*")
    return sorted(path.name for pattern in patterns for path in folder.rglob(pattern))


def terminated(arguments, is_busy, signals=1):
    """Exit code and output of a command that got SIGTERM as soon as it was busy."""
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        env=os.environ | {"PYTHONPATH": SOURCES},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not is_busy() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.005)
    for _ in range(signals):
        process.send_signal(signal.SIGTERM)
    message, wrong = process.communicate(timeout=60)
    assert "Traceback" not in wrong
    return process.returncode, message + wrong


@pytest.mark.parametrize("signals", [1, 3])
def test_terminated_run_keeps_complete_frames_and_resumes(tmp_path, signals):
    scene, folder = write_scene(tmp_path, SWING), tmp_path / "results" / "scene"
    arguments = ("run", scene, "--frames", "100000")
    code, message = terminated(arguments, (folder / "frame_0003.npz").exists, signals)
    assert code == TERMINATED == 143
    assert "Terminated: " in message
    assert "--resume continues" in message
    assert left_over(tmp_path) == []
    assert supple("verify", "results/scene").exit_code == 0
    done = len(list(folder.glob("frame_*.npz"))) - 1
    assert supple("run", scene, "--frames", str(done + 1), "--no-picture", "--resume").exit_code == 0


def test_terminated_export_and_film_leave_no_partial_files(tmp_path):
    scene, folder = write_scene(tmp_path, SWING), tmp_path / "results" / "scene"
    supple_json("run", scene, "--frames", "300", "--no-picture", "--tolerance", "1e-2")
    for arguments in (("export", str(folder), "--format", "zarr,usd"), ("render", str(folder))):
        code, message = terminated(arguments, lambda: any(folder.glob(".unfinished_*")))
        assert (code, "Terminated" in message) == (143, True), arguments
        assert left_over(tmp_path) == []
        assert supple("verify", "results/scene").exit_code == 0


SPEC = """
scene = "scene.toml"
count = 4000
[[vary]]
path = "solid.block.material.young"
range = [1e4, 2e4]
[store]
shard_size = 500
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_terminated_data_set_ends_its_workers(tmp_path, workers):
    write_scene(tmp_path, SWING.replace("quasistatic = false\ndt = 0.02\nframes = 6\n", ""))
    (tmp_path / "set.toml").write_text(SPEC)
    arguments = ("dataset", "run", "set.toml", "--workers", str(workers))
    store = tmp_path / "results" / "set.zarr"
    code, message = terminated(arguments, lambda: any(store.rglob("*journal*")))
    assert code == 143, message
    assert "Terminated." in message
    assert [name for name in left_over(tmp_path) if not name.startswith(".lock")] == []
    assert supple("dataset", "status", str(store)).exit_code == 0


def test_sigterm_during_imports(tmp_path):
    """The first module that supple imports sends SIGTERM."""
    (tmp_path / "numba.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    result = subprocess.run(
        [*COMMAND, "list"],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{SOURCES}"},
        capture_output=True,
    )
    assert (result.returncode, result.stderr) == (143, b"Terminated.\n")


def test_ignored_sigterm_stays_ignored(tmp_path):
    program = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "import supple.cli as cli; cli.app = lambda: print(signal.getsignal(signal.SIGTERM).name)\n"
        "from supple_command import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": SOURCES},
        capture_output=True,
        text=True,
    )
    assert result.stdout == "SIG_IGN\n", result.stderr


def test_every_command_prints_terminated(tmp_path, monkeypatch):
    def terminate(*_, **__):
        raise Terminated

    monkeypatch.setattr("supple.cli.job.load_file", terminate)
    for command in ("inspect", "run", "compare"):
        result = supple(command, write_scene(tmp_path, SWING))
        assert (result.exit_code, result.stderr) == (143, "Terminated.\n")
