"""Locks: one process at a time writes to a folder."""

import os
import signal
import subprocess
import sys

import pytest

from supple.io import ResultsError, ResultsFolder
from supple.io.lock import LOCK_NAME, hold_lock

HOLD = """
import sys, time
from pathlib import Path
from supple.io.lock import hold_lock
with hold_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of tmp_path."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_error_names_the_process_with_the_lock(tmp_path, holder):
    sentence = rf"is being written by process {holder.pid} on \S+, since 2"
    with pytest.raises(ResultsError, match=sentence), hold_lock(tmp_path):
        pass


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_lock_of_a_killed_process_is_released(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / LOCK_NAME).exists()
    with hold_lock(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_lock_is_released_after_a_failure(tmp_path):
    with pytest.raises(KeyboardInterrupt), hold_lock(tmp_path):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
    with (
        hold_lock(tmp_path),
        pytest.raises(ResultsError, match=f"process {os.getpid()}"),
        hold_lock(tmp_path),
    ):
        pass


def test_run_removes_unfinished_files_of_a_killed_process(tmp_path):
    (tmp_path / ".unfinished_4711_frame_0001.npz").touch()
    (tmp_path / ".unfinished_4711_positions.zarr").mkdir()
    with ResultsFolder(tmp_path).hold_lock():
        assert [file.name for file in tmp_path.iterdir()] == [LOCK_NAME]


def test_file_system_without_locks_is_used_with_a_warning(tmp_path, monkeypatch, caplog):
    def refuse(descriptor):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("supple.io.lock._lock", refuse)
    with hold_lock(tmp_path):
        pass
    assert "without locks" in caplog.text
