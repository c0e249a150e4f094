"""Random kills of workers and drivers lose no finished sample, and the finished store is bitwise identical to
an undisturbed one."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from dataset_scenes import sample_bytes, solved, spec_of

import supple
from supple.datasets.errors import DatasetError
from supple.datasets.run import worker_pool as pool
from supple.datasets.run.create import make_store
from supple.datasets.run.run_dataset import Share, run_store
from supple.datasets.run.store_verification import discard, verify
from supple.datasets.run.worker_pool import run_pool
from supple.datasets.spec.dataset_spec import load_spec
from supple.datasets.store.dataset_store import Store

WORKERS_KILLED, DRIVERS_KILLED = 16, 4
DETERMINISTIC_COLUMNS = (
    "outcome",
    "relative_residual",
    "position_error",
    "energy",
    "iterations",
    "inverted",
    "retries",
    "warm",
    "stable",
)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="SIGKILL is of POSIX")


class Killer(threading.Thread):
    """Kills or spares each worker of this process a random time after its start."""

    def __init__(self, kills, rng, part=1.0, longest=0.0):
        super().__init__(daemon=True)
        self.left, self.rng, self.over = kills, rng, threading.Event()
        self.part, self.longest, self.due = part, longest, {}

    def run(self):
        while self.left and not self.over.wait(0.01):
            for process in multiprocessing.active_children():
                now = time.monotonic()
                spared = self.rng.random() > self.part
                due = self.due.setdefault(
                    process.pid, np.inf if spared else now + self.rng.uniform(0, self.longest)
                )
                if now >= due:
                    self.kill(process)

    def kill(self, process):
        if self.left and kill(process):
            self.left -= 1
            self.due[process.pid] = np.inf


def kill(process):
    """True if there was a process to kill."""
    try:
        os.kill(process.pid, signal.SIGKILL)
    except (ProcessLookupError, TypeError):
        return False
    return True


def test_twenty_kills_leave_an_identical_store(tmp_path):
    full_store = solved(tmp_path, "whole.zarr", count=120, shard=20)
    spec = spec_of(tmp_path, count=120, shard=20)
    store = make_store(load_spec(spec), tmp_path / "killed.zarr")
    rng = random.Random(0)

    for _ in range(DRIVERS_KILLED):
        _kill_driver(store, rng)
        assert not verify(store, samples=0).problems, "what is recorded is complete at any moment"

    killer = Killer(WORKERS_KILLED, rng, part=0.4, longest=3.0)

    def watch(done, samples):
        """Kill workers during their solves, too."""
        workers = multiprocessing.active_children()
        if workers and rng.random() < 0.15:
            killer.kill(rng.choice(workers))

    killer.start()
    try:
        while killer.left:
            # Where workers start slowly, one sample may see three of them killed, which ends a run.
            with suppress(DatasetError):
                run_store(store, Share(), workers=2, progress=watch)
            discard(store, store.finished_shards()[:2])  # so that there is more to kill
    finally:
        killer.over.set()
        killer.join()
    run_store(store, Share(), workers=2)

    assert killer.left == 0
    assert store.finished_shards() == list(range(6))
    assert sample_bytes(store) == sample_bytes(full_store)
    mine, others = supple.data.open(store.path), supple.data.open(full_store.path)
    for name in DETERMINISTIC_COLUMNS:
        assert np.array_equal(mine[name], others[name], equal_nan=True), name
    assert not list(store.path.glob("shards/*.journal"))


def _kill_driver(store, rng):
    """Start a driver, and kill it during its work."""
    command = "from supple.cli import main; main()"
    driver = subprocess.Popen(
        [sys.executable, "-c", command, "dataset", "resume", str(store.path), "--workers", "1", "--quiet"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        driver.wait(rng.uniform(1.0, 5.0))
    except subprocess.TimeoutExpired:
        driver.send_signal(signal.SIGKILL)
        driver.wait()


def test_journal_keeps_samples_solved_before_a_kill(tmp_path):
    from supple.datasets.run.shard import Shards
    from supple.datasets.store.journal import Journal

    store = make_store(load_spec(spec_of(tmp_path, count=6, shard=6)), tmp_path / "set.zarr")
    shards = Shards(store)

    def stop(samples):
        if 3 in samples:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shards.run(0, stop)
    path = store.journal_file(0)
    content = path.read_bytes()
    path.write_bytes(content[:-7])  # the end came in the middle of a sample
    journal = Journal(path, store.facts["identity"])
    assert sorted(journal.read()) == [0, 1, 2]
    assert not Journal(path, "another").read()
    path.write_bytes(content)
    solves = []
    solve = shards.sampler.solve
    shards.sampler.solve = lambda values, *how: solves.append(values) or solve(values, *how)
    shards.run(0)
    assert len(solves) == 2
    assert not path.exists()
    assert sample_bytes(store) == sample_bytes(solved(tmp_path, "whole.zarr", count=6, shard=6))


def test_workers_that_never_start_end_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "MAX_STARTUP_CRASHES", 2)
    store = make_store(load_spec(spec_of(tmp_path, count=4, shard=4)), tmp_path / "set.zarr")
    killer = Killer(1000, random.Random(1))
    killer.start()
    try:
        with pytest.raises(DatasetError, match=r"2 workers in a row ended during their start.* SIGKILL"):
            run_pool(store.path, [0], 1, 1, lambda shard, sample: None)
    finally:
        killer.over.set()
        killer.join()


def test_shard_that_kills_its_workers_is_named():
    process = type("Dead", (), {"exitcode": -9})()
    deaths = pool._CrashCounter("set.zarr")
    deaths.count(pool._Worker(process, None, 7, 3, True))
    deaths.count(pool._Worker(process, None, 7, 4, True))  # which came further
    deaths.count(pool._Worker(process, None, 7, 4, True))
    with pytest.raises(DatasetError, match="shard 7 crashed its worker 3 times after 4 of its samples"):
        deaths.count(pool._Worker(process, None, 7, 4, True))


def test_worker_errors_are_raised_by_the_run(tmp_path):
    store = make_store(load_spec(spec_of(tmp_path, count=4, shard=4)), tmp_path / "set.zarr")
    (store.path / "scene.toml").write_text("gravity = 3")
    with pytest.raises(DatasetError, match=r"scene\.toml is damaged or was edited"):
        run_pool(store.path, [0], 1, 1, lambda shard, sample: None)


def test_ray_replaces_a_killed_worker(tmp_path):
    ray = pytest.importorskip("ray")
    full_store = solved(tmp_path, "whole.zarr", count=60, shard=10)
    store = make_store(load_spec(spec_of(tmp_path, count=60, shard=10)), tmp_path / "ray.zarr")
    killed = []

    def watch(done, samples):
        if not killed:
            killed.append(_kill_one_ray_worker(store))

    try:
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
        run_store(Store(store.path), Share(), ray=True, progress=watch)
    finally:
        ray.shutdown()
    assert killed[0] is not None
    assert sample_bytes(store) == sample_bytes(full_store)
    hosts = {json.loads(store.manifest_file(k).read_text())["process"] for k in range(6)}
    assert os.getpid() not in hosts


def _kill_one_ray_worker(store):
    """Kill a Ray worker with one solved shard and a second one in progress; return its process id."""
    number = store.manifest(store.finished_shards()[0])["process"]
    os.kill(number, signal.SIGKILL)
    return number
