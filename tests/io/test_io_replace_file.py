"""Atomic replacement of files and folders, and its error messages."""

import os
import signal
import subprocess
import sys

import pytest

from supple.io import replace_file as module
from supple.io.replace_file import is_abandoned, replacing, replacing_folder, restore_replaced, temporary_path


def test_existing_folder_is_named_and_nothing_is_left(tmp_path):
    film = tmp_path / "film.mp4"
    film.mkdir()
    with pytest.raises(OSError, match=r"film\.mp4'$") as caught, replacing(film) as temporary_path:
        temporary_path.touch()
    assert caught.value.filename == str(film)
    assert ".unfinished" not in str(caught.value)
    assert os.listdir(tmp_path) == ["film.mp4"]


def test_missing_folder_is_named(tmp_path):
    path = tmp_path / "missing" / "film.mp4"
    with pytest.raises(FileNotFoundError) as caught, replacing(path) as temporary_path:
        temporary_path.write_text("frames")
    assert caught.value.filename == str(path)


def test_failed_files_in_a_folder_are_named(tmp_path):
    path = tmp_path / "frames.zarr"
    with pytest.raises(FileNotFoundError) as caught, replacing_folder(path) as temporary_path:
        (temporary_path / "chunk").write_text("numbers")
    assert caught.value.filename == str(path / "chunk")


def test_errors_of_other_files_keep_their_names(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "film.mp4"):
        (tmp_path / "mesh.obj").read_text()
    assert caught.value.filename == str(tmp_path / "mesh.obj")


def test_temporary_names_are_unique(tmp_path):
    """Processes with equal ids on two machines, and threads of one process, may write the same file."""
    first, second = temporary_path(tmp_path / "a.json"), temporary_path(tmp_path / "a.json")
    assert first != second
    assert str(os.getpid()) in first.name
    assert not is_abandoned(first)
    assert not is_abandoned(tmp_path / ".unfinished_4711_a.json"), (
        "of an earlier version, with unknown process"
    )
    assert is_abandoned(first.with_name(first.name.replace(f"_{os.getpid()}_", "_999999999_")))


@pytest.mark.parametrize("moment", [1, 2])
def test_interrupted_folder_replacement_keeps_the_old_folder(tmp_path, monkeypatch, moment):
    """The interrupt comes before the first or the second rename."""
    path = tmp_path / "set"
    path.mkdir()
    (path / "old").touch()
    real, calls = os.replace, []

    def killed(*names):
        calls.append(names)
        if len(calls) == moment:
            raise KeyboardInterrupt
        real(*names)

    def replace():
        with replacing_folder(path) as folder:
            folder.mkdir()
            (folder / "new").touch()

    monkeypatch.setattr(module.os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        replace()
    assert os.listdir(path) == ["old"]
    assert os.listdir(tmp_path) == ["set"]


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is of POSIX")
def test_folder_is_restored_after_a_kill_between_renames(tmp_path):
    path, other = tmp_path / "set", tmp_path / "my_set"
    path.mkdir()
    (path / "old").touch()
    program = """
import os, signal, sys
from pathlib import Path
from supple.io import replace_file as replacing
real = os.replace
def killed(source, target):
    if ".unfinished" in str(source):
        os.kill(os.getpid(), signal.SIGKILL)
    real(source, target)
replacing.os.replace = killed
with replacing.replacing_folder(Path(sys.argv[1])) as folder:
    folder.mkdir()
"""
    ended = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert not path.exists()
    restore_replaced(other)
    assert not other.exists(), "of another name"
    restore_replaced(path)
    assert os.listdir(path) == ["old"]
    with replacing_folder(path) as folder:
        folder.mkdir()
        (folder / "new").touch()
    assert os.listdir(path) == ["new"]
    assert not list(tmp_path.glob(".replaced*"))


def test_failed_folder_replacement_keeps_the_old_folder(tmp_path, monkeypatch):
    path = tmp_path / "set"
    path.mkdir()
    (path / "old").touch()
    real = os.replace

    def refuse(source, target):
        if ".unfinished" in str(source):
            raise OSError(13, "Permission denied", str(source))
        real(source, target)

    monkeypatch.setattr(module.os, "replace", refuse)
    with pytest.raises(OSError, match="Permission denied"), replacing_folder(path) as folder:
        folder.mkdir()
    assert os.listdir(tmp_path) == ["set"]
    assert os.listdir(path) == ["old"]
