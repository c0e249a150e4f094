"""Computations beyond the available memory are refused in advance."""

import numpy as np
import pytest
from problems import cantilever, material

import supple
from supple.meshes.generators.solids import SIZES
from supple.support import memory

GIGABYTE = 10**9


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


MACHINE = {"proc/meminfo": "MemTotal: 9000000 kB\nMemAvailable:   4000000 kB\nSwapFree: 1000000 kB\n"}
SECOND = {
    "proc/self/cgroup": "0::/user/run\n",
    "sys/fs/cgroup/user/run/memory.max": "max\n",
    "sys/fs/cgroup/user/run/memory.current": "5\n",
    "sys/fs/cgroup/user/memory.max": "3000000000\n",
    "sys/fs/cgroup/user/memory.current": "2000000000\n",
    "sys/fs/cgroup/user/memory.stat": "anon 1000\ninactive_file 500000000\n",
}
FIRST = {
    "proc/self/cgroup": "9:name=systemd:/\n4:memory:/job\n0::/\n",
    "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "2000000000\n",
    "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "1000000000\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    "sys/fs/cgroup/memory/memory.usage_in_bytes": "1000000000\n",
}


@pytest.mark.parametrize(
    ("files", "free"),
    [
        (MACHINE, 5.12 * GIGABYTE),
        (MACHINE | SECOND, 1.5 * GIGABYTE),
        (MACHINE | FIRST, 1.0 * GIGABYTE),
        ({"proc/meminfo": "nonsense\n", "proc/self/cgroup": ""}, None),
        ({}, None),
    ],
    ids=["machine", "cgroup 2", "cgroup 1", "nonsense", "unknown"],
)
def test_smallest_of_all_limits_counts(tmp_path, files, free):
    write(tmp_path, files)
    assert memory.available_memory(tmp_path) == (None if free is None else pytest.approx(free))


def test_this_machine_has_memory():
    assert memory.available_memory() is None or memory.available_memory() > 1e8


def test_process_limit_counts(tmp_path):
    resource = pytest.importorskip("resource")
    write(tmp_path, MACHINE | {"proc/self/statm": "1000 500 1"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resource, "getrlimit", lambda which: (2 * GIGABYTE, -1))
        assert 1.9 * GIGABYTE < memory.available_memory(tmp_path) < 2 * GIGABYTE


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("block", {"cells": (3, 4, 5)}),
        ("block", {"cells": 2}),
        ("ball", {"resolution": 5}),
        ("torus", {"resolution": 3, "major": 1.3}),
        ("torus", {}),
    ],
)
def test_mesh_sizes_are_known_before_generation(kind, arguments):
    mesh = getattr(supple.meshes, kind)(**arguments)
    assert SIZES[kind](**arguments) == (mesh.n_vertices, mesh.n_tets)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: supple.block(300), "a block of 135,000,000 tetrahedra needs about 32.4 GB of memory"),
        (lambda: supple.block((300, 300, 300), size=(4, 1, 1)), "a block of 135,000,000 tetrahedra"),
        (lambda: supple.ball(resolution=300), "a ball of 540,000,000 tetrahedra"),
        (lambda: supple.meshes.torus(resolution=200), "a torus of"),
        (lambda: supple.block(10**9), "would have 1e\\+27 vertices; the limit is 2,147,483,647"),
        (lambda: supple.ball(resolution=10**9), "vertices; the limit is"),
        (lambda: supple.meshes.torus(major=1e12), "vertices; the limit is"),
        (lambda: supple.meshes.torus(minor=1e-12), "vertices; the limit is"),
    ],
)
def test_meshes_beyond_memory_are_refused_at_once(monkeypatch, make, sentence):
    monkeypatch.setattr(memory, "available_memory", lambda: 8.0 * GIGABYTE)
    with pytest.raises(ValueError, match=sentence):
        make()


def test_problems_beyond_memory_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1e5)
    with pytest.raises(ValueError, match=r"a problem of 135 elements needs about 0\.188 MB of memory"):
        supple.equilibrium(cantilever(material("corotated")))


def test_unknown_memory_refuses_nothing(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    assert supple.equilibrium(cantilever(material("corotated")), tolerance=1e-2).report.ok


def test_long_generators_are_announced(monkeypatch, caplog):
    monkeypatch.setattr("supple.meshes.generators.solids.SLOW_TET_COUNT", 30.0)
    with caplog.at_level("INFO", logger="supple"):
        supple.block(1)
        assert not caplog.messages
        supple.block(2)
    assert caplog.messages == ["Creating a block of 40 tetrahedra"]


def test_infinite_time_limit_is_no_limit():
    result = supple.equilibrium(cantilever(material("corotated")), time_limit=1e30, tolerance=1e-3)
    assert result.report.ok
    assert np.isfinite(result.positions).all()
