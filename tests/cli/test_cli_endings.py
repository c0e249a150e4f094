"""Failures of commands: error messages and exit codes."""

import io
import json
import os
import signal
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from cli_scenes import SAG, SWING, supple, supple_json, write_scene

import supple as supple_library
from supple.cli.console import replace_letter
from supple.io.lock import hold_lock
from supple.io.replace_file import replacing
from supple.runs import saved
from supple.support import memory

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from supple_command import main; main()"]


def in_a_shell(*arguments: str, **options) -> subprocess.CompletedProcess:
    sources = str(Path(supple_library.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": sources} | options.pop("environment", {})
    return subprocess.run([*COMMAND, *arguments], env=environment, stderr=subprocess.PIPE, **options)


def refused(*arguments: str) -> str:
    result = supple(*arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.split())


def fail(error: BaseException):
    def failing(*_, **__):
        raise error

    return failing


def test_defect_has_an_exit_code_and_a_traceback(tmp_path):
    scene = write_scene(tmp_path, SAG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("supple.cli.job.equilibrium", fail(ZeroDivisionError("division by zero")))
        result = supple("run", scene, "--json")
    assert result.exit_code == 70
    assert "Traceback (most recent call last)" in result.stderr
    assert "this is a defect of supple" in result.stderr
    output = json.loads(result.stdout)
    assert output["exit_code"] == 70
    assert "ZeroDivisionError: division by zero" in output["error"]
    assert supple_json("run", scene, "--no-picture")["totals"]["ok"]  # no lock is left


def test_out_of_memory_has_an_exit_code(tmp_path, monkeypatch):
    monkeypatch.setattr("supple.cli.job.equilibrium", fail(MemoryError("Unable to allocate 40 GiB")))
    result = supple("run", write_scene(tmp_path, SAG))
    assert result.exit_code == 71
    assert "Traceback" not in result.stderr
    assert "not enough memory (Unable to allocate 40 GiB)" in result.stderr


def test_interrupt_outside_a_solve_has_no_traceback(tmp_path, monkeypatch):
    monkeypatch.setattr("supple.cli.job.load_file", fail(KeyboardInterrupt()))
    result = supple("inspect", write_scene(tmp_path, SAG))
    assert result.exit_code == 130
    assert result.stderr == "Interrupted.\n"


@pytest.mark.parametrize(
    ("mesh", "sentence"),
    [
        ("block = { cells = [300, 300, 300] }", "simulating a block of 135,000,000 tetrahedra needs about"),
        ("torus = { major = 1e12 }", "the torus would have"),
        ("ball = { resolution = 100000 }", "the ball would have 3e+15 vertices; the limit is"),
    ],
)
def test_meshes_beyond_memory_are_refused_before_generation(tmp_path, monkeypatch, mesh, sentence):
    monkeypatch.setattr(memory, "available_memory", lambda: 16e9)
    scene = write_scene(tmp_path, SAG.replace("block = { cells = [3, 3, 3] }", mesh))
    message = refused("run", scene)
    assert f"{scene}: solid[0].mesh: {sentence}" in message
    assert not (tmp_path / "results").exists()


def test_frames_beyond_the_disk_are_refused(tmp_path):
    scene = write_scene(tmp_path, SWING.replace("frames = 6", "frames = 2000000000"))
    message = refused("run", scene)
    assert "2,000,000,000 frames of 64 vertices need at least" in message
    assert "request fewer frames" in message


def test_infinite_time_limit_is_no_limit(tmp_path):
    scene = write_scene(tmp_path, SAG + "time_limit = 1e30\n")
    assert supple_json("run", scene, "--no-picture")["totals"]["ok"]


@pytest.mark.parametrize(
    "command", [("run", "--overwrite"), ("compare", "--solver", "pbng", "--output", "results/scene"),
                ("render",), ("export", "--format", "ply")], ids=lambda command: command[0],
)  # fmt: skip
def test_locked_folder_is_untouched(tmp_path, command):
    scene = write_scene(tmp_path, SAG)
    supple_json("run", scene, "--no-picture")
    folder = tmp_path / "results" / "scene"
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    what = scene if command[0] in ("run", "compare") else "results/scene"
    with hold_lock(folder):
        message = refused(command[0], what, *command[1:])
    assert f"results/scene is being written by process {os.getpid()}" in message
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_export_to_another_folder_ignores_the_lock(tmp_path):
    supple_json("run", write_scene(tmp_path, SAG), "--no-picture")
    with hold_lock(tmp_path / "results" / "scene"):
        assert supple("export", "results/scene", "--format", "ply", "--output", "elsewhere").exit_code == 0


@pytest.mark.parametrize("command", [("run",), ("compare",), ("render",), ("export", "--format", "ply")])
def test_empty_name_is_no_folder(tmp_path, command):
    supple_json("run", write_scene(tmp_path, SAG), "--no-picture")
    what = "scene.toml" if command[0] in ("run", "compare") else "results/scene"
    assert "name of the folder is empty" in refused(command[0], what, *command[1:], "--output", "")


def test_full_disk_error_names_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("supple.io.frames.np.savez", fail(OSError(28, "No space left on device")))
    message = refused("run", write_scene(tmp_path, SAG), "--no-picture")
    assert "results/scene/frame_0000.npz: No space left on device." in message
    with pytest.raises(OSError, match=r"b\.txt"), replacing(tmp_path / "a.txt"):
        raise OSError(2, "No such file", "b.txt")


@pytest.mark.parametrize("format", ["npz", "zarr", "usd", "ply", "glb", "pc2", "vtu"])
def test_full_disk_error_names_the_export(tmp_path, monkeypatch, format):
    """Writers fail in their last frame with an error without a file name."""
    supple_json("run", write_scene(tmp_path, SAG), "--no-picture")
    from dataclasses import replace

    from supple.io import FORMATS

    real = FORMATS[format]

    @contextmanager
    def failing(path, shot):
        with real.writer(path, shot) as add:

            def add_or_fail(moment):
                if moment.index == 1:
                    raise OSError(28, "No space left on device")
                add(moment)

            yield add_or_fail

    monkeypatch.setitem(FORMATS, format, replace(real, writer=failing))
    message = refused("export", "results/scene", "--format", f"obj,{format}", "--output", "out")
    assert f"out/{real.path}: No space left on device." in message
    assert not list((tmp_path / "out").rglob(".*"))


def test_usd_on_full_disk_is_no_defect(tmp_path, monkeypatch):
    Tf = pytest.importorskip("pxr.Tf")
    supple_json("run", write_scene(tmp_path, SAG), "--no-picture")

    def full(*_):
        Tf.RaiseRuntimeError("Error occurred writing file: No space left on device")

    monkeypatch.setattr("supple.io.formats.usd._set_points", full)
    message = refused("export", "results/scene", "--format", "usd")
    assert "results/scene/animation.usdc: No space left on device." in message


def test_full_disk_leaves_no_lock(tmp_path, monkeypatch):
    monkeypatch.setattr("supple.io.lock.os.write", fail(OSError(28, "No space left on device")))
    with hold_lock(tmp_path):
        assert (tmp_path / ".lock").exists()
    assert not (tmp_path / ".lock").exists()


@pytest.mark.parametrize("command", [("report",), ("export", "--format", "npz"), ("render",)])
def test_read_only_file_system_error_names_no_hidden_file(tmp_path, monkeypatch, command):
    supple_json("run", write_scene(tmp_path, SAG), "--no-picture")
    real_open, real_os_open = io.open, os.open

    def refuse(path, *arguments):
        writes = any(isinstance(a, str) and set(a) & set("wax+") for a in arguments[:1])
        creates = any(isinstance(a, int) and a & os.O_CREAT for a in arguments[:1])
        if (writes or creates) and "/results/" in os.path.abspath(str(path)):
            raise OSError(30, "Read-only file system", str(path))

    def opening(path, *arguments, **options):
        refuse(path, *arguments)
        return real_open(path, *arguments, **options)

    def os_opening(path, *arguments, **options):
        refuse(path, *arguments)
        return real_os_open(path, *arguments, **options)

    monkeypatch.setattr("io.open", opening)
    monkeypatch.setattr("os.open", os_opening)
    monkeypatch.setattr("pathlib.Path.unlink", fail(OSError(30, "Read-only file system", ".unfinished_x")))
    message = refused(command[0], "results/scene", *command[1:])
    assert "Read-only file system." in message
    assert "/." not in message
    assert "unfinished" not in message


def test_mistakes_of_a_start_file_are_reported(tmp_path):
    scene = write_scene(tmp_path, SAG + "[initial]\nfile = 'start.npz'\n")
    start = tmp_path / "start.npz"
    assert "start.npz cannot be read: No such file" in refused("run", scene)
    start.write_bytes(b"garbage")
    message = refused("run", scene)
    assert "start.npz is not an NPZ file, or it is damaged" in message
    assert "pickle" not in message
    positions = np.zeros((64, 3))
    positions[5, 1] = np.nan
    np.savez(start, positions=positions)
    message = refused("run", scene)
    assert "has positions that are NaN or infinite, of 1 vertex." in message
    assert "shape" not in message
    np.savez(start, positions=np.zeros((3, 3)))
    assert "must have positions of shape (64, 3)" in refused("run", scene)
    np.savez(start, places=np.zeros((64, 3)))
    assert "has no `positions`" in refused("run", scene)


INVERTED = SAG.replace("corotated = { young = 1e4", "linear_elastic = { young = 1e3").replace("100", "300")


@pytest.mark.parametrize("frames", [1, 2])
def test_inverted_elements_are_reported_everywhere(tmp_path, frames):
    """A linear material under a far too large load reaches an inverted equilibrium."""
    scene = write_scene(tmp_path, INVERTED)
    outcome = supple("run", scene, "--frames", str(frames), "--no-picture")
    assert outcome.exit_code == 1, outcome.output
    report = json.loads((tmp_path / "results" / "scene" / "report.json").read_text())
    count = report["frames"][-1]["inverted"]
    most = "up to " if frames > 1 else ""
    assert f"Converged, {most}{count} inverted elements" in outcome.stdout
    assert count > 1
    assert report["totals"]["most_inverted"] == count
    assert report["totals"]["frames_inverted"] == list(range(1, frames + 1))
    words = f"{count} elements"
    if frames > 1:
        words = f"up to {count} elements, in 2 of 2 frames (the last has {count})"
        assert f"inverted {words}" in " ".join(outcome.stdout.split())
    assert "Elements are inverted" in outcome.stderr
    assert supple("report", "results/scene").exit_code == 0
    page = (tmp_path / "results" / "scene" / "report.html").read_text()
    assert "Elements are inverted" in page
    assert words in page


def test_runs_without_inverted_elements_do_not_mention_them(tmp_path):
    outcome = supple("run", write_scene(tmp_path, SAG), "--no-picture")
    assert "inverted  " not in outcome.stdout
    assert "inside out" not in outcome.stderr


def test_picture_of_a_run_reuses_model_and_frames(tmp_path, monkeypatch):
    for name in ("build_model", "read_frame"):
        monkeypatch.setattr(saved, name, fail(AssertionError(f"{name} was called")))
    result = supple("run", write_scene(tmp_path, SWING), "--no-film")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "results" / "scene" / "picture.png").stat().st_size > 1000


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "C locale"])
@pytest.mark.parametrize("command", ["list", "inspect"])
def test_output_on_ascii_terminals(tmp_path, encoding, command):
    scene = write_scene(tmp_path, SAG.replace("Sagging block", "Blöcke, ν = 0.3"))
    environment = {"PYTHONIOENCODING": encoding}
    if encoding == "C locale":
        environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}
    arguments = [command] if command == "list" else [command, scene]
    result = in_a_shell(*arguments, environment=environment, stdout=subprocess.PIPE)
    assert result.returncode == 0, result.stderr
    assert result.stderr == b""
    text = result.stdout.decode("latin-1" if encoding == "latin-1" else "ascii")
    assert "mu |F - R|" in text if command == "list" else "nu" in text


def test_json_on_ascii_terminals_is_lossless(tmp_path):
    scene = write_scene(tmp_path, SAG.replace("Sagging block", "Blöcke, ν = 0.3"))
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    result = in_a_shell("inspect", scene, "--json", environment=ascii_only, stdout=subprocess.PIPE)
    assert json.loads(result.stdout)["scene"]["title"] == "Blöcke, ν = 0.3"


def test_ascii_letters():
    assert "".join(map(replace_letter, "νλ³é…·☃")) == "nulambda^3e...-?"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("arguments", [["list", "--json"], ["list"], ["schema"], ["--version"]])
def test_full_disk_behind_stdout(arguments):
    with open("/dev/full", "wb") as full:
        result = in_a_shell(*arguments, stdout=full)
    assert b"standard output: No space left on device." in result.stderr
    assert b"Traceback" not in result.stderr
    assert b"Exception ignored" not in result.stderr
    assert result.returncode == 2


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
@pytest.mark.parametrize("arguments", [["list", "--json"], ["list"]])
def test_closed_pipe_ends_quietly(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    result = in_a_shell(*arguments, stdout=writer)
    os.close(writer)
    assert result.stderr == b""
    assert result.returncode == 141


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for child processes")
def test_interrupt_during_imports(tmp_path):
    """The first module that supple imports raises the interrupt."""
    (tmp_path / "numba.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    result = in_a_shell(
        "list",
        environment={"PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(supple_library.__file__).parents[1]}"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert result.stderr == b"Interrupted.\n"
    assert result.returncode == 130


def test_scenes_of_the_installed_package_run_by_name(tmp_path):
    """A scene name works in an empty folder, as after `pip install`."""
    listing = {entry["name"]: entry["description"] for entry in supple_json("list", "scenes")["scenes"]}
    assert set(listing) == {path.stem for path in (REPOSITORY / "scenes").glob("*.toml")}
    for scene in ("bunny_feet", "fabric_flags"):
        assert "$SUPPLE_DATA" in listing[scene] or "SUPPLE_DATA" in os.environ
    assert supple_json("inspect", "falling_block")["vertices"] > 0
    wheel = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    assert wheel["force-include"] == {"scenes": "supple/scenes"}
    assert all((REPOSITORY / path).exists() for path in wheel["only-include"])


def test_long_setup_is_announced(tmp_path, monkeypatch):
    scene = write_scene(tmp_path, SAG)
    assert "of set-up before" not in supple("run", scene, "--no-picture").stderr
    monkeypatch.setattr("supple.cli.progress_bars.SETUP_SECONDS_PER_CELL", 1.0)
    assert (
        "135 tetrahedra need about 2 min of set-up"
        in supple("run", scene, "--no-picture", "--overwrite").stderr
    )


def test_runs_without_a_terminal_print_the_remaining_time(tmp_path, monkeypatch):
    monkeypatch.setattr("supple.cli.progress_bars.LINE_INTERVAL", 0.0)
    message = supple("run", write_scene(tmp_path, SWING), "--no-picture").stderr
    first, second = (
        line for line in message.splitlines() if line.startswith(("frame 1/6: c", "frame 2/6: c"))
    )
    assert first.endswith(" left, about")
    assert not second.endswith("about")
    assert "frame 1/6: iteration 10  relative residual" in message
