"""Compiled kernels are kept on disk, found again by later processes, and announced when they are made."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import supple
from supple.kernels import cache_directory

SOLVE = """
import json, logging, sys
logging.basicConfig(level=logging.INFO, format="LOG %(message)s", stream=sys.stderr)
import supple
scene = supple.Scene()
body = scene.add_solid(supple.block(1), supple.LinearElastic(young=1e3, poisson=0.3))
scene.pin(body.where(lambda X: X[:, 0] <= 0))
report = supple.equilibrium(scene, supple.PBNG(), tolerance=None, max_iterations=1).report
print(json.dumps(report.compile_seconds))
"""


COLOUR = """
import json, numpy as np
from supple.kernels import compilation
from supple.ordering import colour_vertices
with compilation() as compiled:
    colour_vertices([np.array([[0, 1, 2, 3]])], np.arange(4), 4)
print(json.dumps(compiled.seconds))
"""


def printed_by(script, cache_home):
    """What a script in a process of its own prints, and its log."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache_home), "HOME": str(cache_home)}
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    return json.loads(run.stdout), run.stderr


needs_xdg = pytest.mark.skipif(sys.platform != "linux", reason="the cache is moved with XDG_CACHE_HOME")


@needs_xdg
def test_a_second_process_compiles_nothing(tmp_path):
    seconds, log = printed_by(SOLVE, tmp_path)
    assert seconds > 0
    assert "LOG compiling sweeps (once on this machine, then cached)" in log
    assert any(tmp_path.rglob("*.nbc"))
    seconds, log = printed_by(SOLVE, tmp_path)
    assert seconds == 0
    assert "compiling" not in log


MOVE = """
import json, supple
from supple.solvers import SOLVERS
scene = supple.Scene(gravity=(0, -20, 0), quasistatic=False, dt=0.02)
body = scene.add_solid(supple.block(3), supple.NeoHookean(young=1e3, poisson=0.3), density=10)
scene.pin(body.where(lambda X: X[:, 0] <= 0))
found = {}
for name, solver in SOLVERS.items():
    *_, last = supple.simulate(scene, solver(), frames=2, substeps=2, max_iterations=4)
    found[name] = last.positions.tobytes().hex()
print(json.dumps(found))
"""


@needs_xdg
def test_what_was_compiled_and_what_is_found_give_the_same_bits(tmp_path):
    """With every solver: a process that compiles must not call what another one has inlined."""
    compiled, found = (printed_by(MOVE, tmp_path)[0] for _ in range(2))
    assert [name for name in compiled if compiled[name] != found[name]] == []


OWN_MATERIAL = """
import json, supple
class Mine(supple.LinearElastic):
    __slots__ = ()
""" + SOLVE.split("import supple\n")[1].replace("supple.LinearElastic", "Mine")


@needs_xdg
def test_a_class_of_a_script_does_not_spoil_the_cache(tmp_path):
    """The index of a kernel names the classes it was compiled for; another program has no such class."""
    assert printed_by(SOLVE, tmp_path)[0] > 0
    assert printed_by(OWN_MATERIAL, tmp_path)[0] > 0
    assert printed_by(SOLVE, tmp_path)[0] == 0


@needs_xdg
def test_kernels_work_where_nothing_can_be_kept(tmp_path):
    """A file stands where the cache folder should be."""
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    for _ in range(2):  # nor found in another place that would not notice edits
        seconds, _ = printed_by(COLOUR, nowhere)
        assert seconds > 0


def test_the_cache_has_a_folder_for_each_state_of_the_sources(tmp_path):
    """Numba does not notice an edit in what a kernel calls; the folder's name must."""
    shutil.copytree(
        Path(supple.__file__).parent, tmp_path / "supple", ignore=shutil.ignore_patterns("__pycache__")
    )
    assert folder(tmp_path) == cache_directory()
    source = tmp_path / "supple" / "algebra" / "matrix3.py"
    source.write_text(source.read_text() + "\n")
    assert folder(tmp_path) != cache_directory()


def folder(package):
    code = "from supple.kernels import cache_directory; print(cache_directory())"
    environment = {**os.environ, "PYTHONPATH": str(package)}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    return Path(run.stdout.strip())
