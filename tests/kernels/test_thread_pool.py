"""Threads share the chunks of a phase: each chunk runs once, and phases start after their predecessor."""

import os
import threading

import numpy as np
import pytest
from numba import njit

from supple.kernels import (
    claim_chunk,
    counters_for,
    default_threads,
    finish_chunk,
    run,
    wait_for_phase,
)
from supple.kernels.parallel import thread_pool as threads
from supple.kernels.parallel.thread_pool import cpu_quota

PHASES, CHUNKS = 40, 57


@njit(nogil=True)
def count_chunks(done, early, counters):
    """done[phase, chunk] += 1; early counts chunks that begin before the previous phase is complete."""
    for phase in range(len(done)):
        chunk = claim_chunk(counters, phase, done.shape[1])
        while chunk >= 0:
            if phase > 0:
                for other in range(done.shape[1]):
                    early[phase] += done[phase - 1, other] == 0
            done[phase, chunk] += 1
            finish_chunk(counters, phase)
            chunk = claim_chunk(counters, phase, done.shape[1])
        wait_for_phase(counters, phase, done.shape[1])


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_chunk_runs_once_in_its_phase(threads):
    done, early = np.zeros((PHASES, CHUNKS), np.int64), np.zeros(PHASES, np.int64)
    counters = counters_for(PHASES)
    run(count_chunks, threads, done, early, counters)
    np.testing.assert_array_equal(done, 1)
    np.testing.assert_array_equal(early, 0)
    np.testing.assert_array_equal(counters[1::2], CHUNKS)


@njit(nogil=True)
def claim_all(done, counters):
    chunk = claim_chunk(counters, 0, len(done))
    while chunk >= 0:
        done[chunk] += 1
        finish_chunk(counters, 0)
        chunk = claim_chunk(counters, 0, len(done))


def test_concurrent_claims_lose_and_repeat_no_chunk():
    """Chunks without work make threads meet at the counters all the time."""
    done = np.zeros(5_000_000, np.int8)
    counters = counters_for(1)
    claim_all(done[:0], counters_for(1))
    barrier = threading.Barrier(4, timeout=20)

    def concurrent(done, counters):
        barrier.wait()
        claim_all(done, counters)

    run(concurrent, 4, done, counters)
    np.testing.assert_array_equal(done, 1)
    assert counters[1] == len(done)


def test_all_threads_call_the_kernel():
    seen = []
    barrier = threading.Barrier(3, timeout=20)

    def kernel(tag):
        barrier.wait()  # passes only when three threads are in here at once
        seen.append((tag, threading.get_ident()))

    run(kernel, 3, "x")
    assert [tag for tag, _ in seen] == ["x"] * 3
    assert len({thread for _, thread in seen}) == 3
    assert threading.get_ident() in {thread for _, thread in seen}


def test_concurrent_solves_in_python_threads_are_independent():
    results = [np.zeros((PHASES, CHUNKS), np.int64) for _ in range(4)]

    def work(done):
        run(count_chunks, 3, done, np.zeros(PHASES, np.int64), counters_for(PHASES))

    workers = [threading.Thread(target=work, args=(done,)) for done in results]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
        assert not worker.is_alive()
    for done in results:
        np.testing.assert_array_equal(done, 1)


def test_errors_in_threads_are_raised():
    def kernel():
        if threading.current_thread() is not threading.main_thread():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(kernel, 2)


def test_environment_sets_the_number_of_threads(monkeypatch):
    monkeypatch.setenv("SUPPLE_THREADS", "5")
    assert default_threads() == 5
    monkeypatch.delenv("SUPPLE_THREADS")
    assert default_threads() >= 1


@pytest.mark.parametrize("wrong", ["0", "-1", "two", "1.5"])
def test_wrong_number_of_threads_is_refused(monkeypatch, wrong):
    monkeypatch.setenv("SUPPLE_THREADS", wrong)
    with pytest.raises(ValueError, match=r"SUPPLE_THREADS must be a whole number of threads, at least 1"):
        default_threads()


def groups(tmp_path, memberships, files):
    """A folder with control groups, and the file with the groups of a process."""
    mount, path = tmp_path / "cgroup", tmp_path / "memberships"
    path.write_text(memberships)
    for name, text in files.items():
        (mount / name).parent.mkdir(parents=True, exist_ok=True)
        (mount / name).write_text(text)
    return path, mount


@pytest.mark.parametrize(
    ("memberships", "files", "quota"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/\n", {}, None),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "50000 100000\n"}, 0.5),
        ("0::/a/b\n", {"a/b/cpu.max": "200000 100000\n", "a/cpu.max": "400000 100000\n"}, 2.0),
        (
            "5:memory:/a\n4:cpu,cpuacct:/a\n",
            {"cpu,cpuacct/a/cpu.cfs_quota_us": "300000\n", "cpu,cpuacct/a/cpu.cfs_period_us": "100000\n"},
            3.0,
        ),
        (
            "4:cpu,cpuacct:/outside\n0::/\n",  # the container does not see the folder of its own name
            {"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"},
            1.0,
        ),
        ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ("nonsense\n", {"cpu.max": "nonsense"}, None),
    ],
)
def test_container_quota_is_read(tmp_path, memberships, files, quota):
    assert cpu_quota(*groups(tmp_path, memberships, files)) == quota


def test_no_quota_without_control_groups(tmp_path):
    assert cpu_quota(tmp_path / "missing", tmp_path) is None


@pytest.mark.parametrize(("quota", "expected"), [(0.5, 1), (1.5, 2), (3.0, 3), (None, 8), (100.0, 8)])
def test_threads_respect_the_quota(monkeypatch, quota, expected):
    monkeypatch.delenv("SUPPLE_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(threads, "cpu_quota", lambda: quota)
    assert default_threads() == expected
