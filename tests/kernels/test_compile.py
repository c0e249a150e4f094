"""Compiled kernels are cached on disk, reused by later processes, and announced when compiled."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import supple
from supple.algebra.matrix3 import det
from supple.kernels import cache_directory, kernel

SOLVE = """
import json, logging, sys
logging.basicConfig(level=logging.INFO, format="LOG %(message)s", stream=sys.stderr)
import supple
scene = supple.Scene()
body = scene.add_solid(supple.block(1), supple.materials.LinearElastic(young=1e3, poisson=0.3))
scene.pin(body.where(lambda X: X[:, 0] <= 0))
report = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=None, max_iterations=1).report
print(json.dumps(report.compile_seconds))
"""


COLOR = """
import json, numpy as np
from supple.kernels import compilation
from supple.ordering import color_vertices
with compilation() as compiled:
    color_vertices([np.array([[0, 1, 2, 3]])], np.arange(4), 4)
print(json.dumps(compiled.seconds))
"""


def printed_by(script, kernel_folder):
    """Parsed output of a script in a new process, and its log."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(kernel_folder), "HOME": str(kernel_folder)}
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    return json.loads(run.stdout), run.stderr


needs_xdg = pytest.mark.skipif(sys.platform != "linux", reason="the cache is moved with XDG_CACHE_HOME")


@needs_xdg
def test_second_process_compiles_nothing(tmp_path):
    seconds, log = printed_by(SOLVE, tmp_path)
    assert seconds > 0
    assert "LOG compiling run_iterations (once on this machine, then cached)" in log
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
    *_, last = supple.simulate(scene, solver=solver(), frames=2, substeps=2, max_iterations=4)
    found[name] = last.positions.tobytes().hex()
print(json.dumps(found))
"""


@needs_xdg
def test_compiled_and_cached_kernels_are_bitwise_equal(tmp_path):
    """Every solver: a compiling process must not call functions that a caching one inlines."""
    compiled, loaded = (printed_by(MOVE, tmp_path)[0] for _ in range(2))
    assert [name for name in compiled if compiled[name] != loaded[name]] == []


OWN_MATERIAL = """
import json, supple
class Mine(supple.materials.LinearElastic):
    __slots__ = ()
""" + SOLVE.split("import supple\n")[1].replace("supple.materials.LinearElastic", "Mine")


@needs_xdg
def test_material_of_a_script_is_compiled_once_and_keeps_the_cache_valid(tmp_path):
    """The index of a kernel contains its material class, which other programs cannot import."""
    assert printed_by(SOLVE, tmp_path)[0] > 0
    assert printed_by(OWN_MATERIAL, tmp_path)[0] > 0
    assert printed_by(OWN_MATERIAL, tmp_path)[0] == 0
    assert printed_by(SOLVE, tmp_path)[0] == 0


DENSITY = """
import json, logging, multiprocessing, sys
logging.basicConfig(level=logging.INFO, format="LOG %(message)s", stream=sys.stderr)
import numpy as np, supple
from supple.kernels import compilation, device_function, kernel
from supple.materials.material import psi

FACTOR = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0

class Mine(supple.materials.LinearElastic):
    __slots__ = ()

@device_function
def three(x):
    return 3.0 * x

@psi.of(Mine)
def _psi(material, F):
    return FACTOR * three(material.mu) * F[0]

@kernel
def density(material, F, out):
    out[0] = psi(material, F)

def measure():
    out = np.zeros(1)
    with compilation() as compiled:
        density(Mine(young=2.6, poisson=0.3), (1.0,) * 9, out)
    return bool(compiled.seconds), round(out[0], 9)
"""
LOCAL_MATERIAL = (
    DENSITY
    + """
if __name__ == "__main__":
    print(json.dumps(measure()))
"""
)
SPAWNED = (
    DENSITY
    + """
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(json.dumps(pool.apply(measure)))
"""
)


def run_file(path, text, *arguments):
    """Output of a script file with a cache next to it, and its log."""
    path.write_text(text)
    environment = {**os.environ, "XDG_CACHE_HOME": str(path.parent / "cache")}
    command = [sys.executable, str(path), *arguments]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    return run.stdout, run.stderr


def measured(path, text, *arguments):
    return tuple(json.loads(run_file(path, text, *arguments)[0]))


@needs_xdg
def test_custom_classes_are_identified_by_their_computations(tmp_path):
    script = tmp_path / "script.py"
    assert measured(script, LOCAL_MATERIAL) == (True, 3.0)
    assert measured(script, LOCAL_MATERIAL) == (False, 3.0)
    assert measured(script, SPAWNED) == (False, 3.0)  # where __main__ is __mp_main__
    assert measured(tmp_path / "another.py", LOCAL_MATERIAL) == (False, 3.0)
    assert measured(script, LOCAL_MATERIAL + "# a remark") == (False, 3.0)
    edited = LOCAL_MATERIAL.replace("3.0 * x", "4.0 * x")
    assert measured(script, edited) == (True, 4.0)  # in what the implementation calls
    assert measured(script, edited, "2") == (True, 8.0)  # in a global that it reads
    assert measured(script, edited, "2") == (False, 8.0)
    assert measured(script, LOCAL_MATERIAL) == (False, 3.0)


@needs_xdg
def test_unrolled_code_is_part_of_the_class_identity(tmp_path):
    """Implementations chosen by type are part of it, too."""
    three = "@device_function\ndef three(x):\n    return 3.0 * x\n"
    assert three in LOCAL_MATERIAL
    unrolled = LOCAL_MATERIAL.replace(
        three, "from supple.kernels import total\nthrice = total('v', '3.0 * v[i]', over='v')\n"
    )
    unrolled = unrolled.replace("three(material.mu)", "thrice((material.mu,))")
    chosen = LOCAL_MATERIAL.replace(
        three,
        "from supple.kernels import overload_by_type\ndef three(x): pass\n"
        "@overload_by_type(three)\ndef _three(x):\n    return lambda x: 3.0 * x\n",
    )
    for name, text in (("unrolled", unrolled), ("chosen", chosen)):
        script = tmp_path / f"{name}.py"
        assert measured(script, text) == (True, 3.0)
        assert measured(script, text) == (False, 3.0)
        assert measured(script, text.replace("3.0 *", "4.0 *")) == (True, 4.0)


@needs_xdg
def test_damaged_cache_file_is_rebuilt(tmp_path):
    script = tmp_path / "script.py"
    assert measured(script, LOCAL_MATERIAL) == (True, 3.0)
    (cached_file,) = (tmp_path / "cache").rglob("density.*.nbc")
    cached_file.write_bytes(cached_file.read_bytes()[:100])
    assert measured(script, LOCAL_MATERIAL) == (True, 3.0)
    assert measured(script, LOCAL_MATERIAL) == (False, 3.0)


@needs_xdg
def test_log_names_uncacheable_kernels(tmp_path):
    text = LOCAL_MATERIAL.replace(
        "class Mine", "class Kind(__import__('enum').Enum):\n    ONE = 1\n\nclass Mine"
    )
    text = text.replace("FACTOR * three", "Kind.ONE.value * three")
    for _ in range(2):
        printed, log = run_file(tmp_path / "script.py", text)
        assert json.loads(printed) == [True, 3.0]
        assert "LOG kernels are not cached on disk and are compiled in every process: " in log
        assert "__main__._psi reads Kind, a Enum" in log


@needs_xdg
def test_material_may_print(tmp_path):
    """Printing needs a Python object outside of the machine code."""
    text = LOCAL_MATERIAL.replace("    return FACTOR", "    print('seen', 1)\n    return FACTOR")
    for _ in range(2):
        assert run_file(tmp_path / "script.py", text)[0].startswith("seen 1\n")


def test_kernel_functions_can_be_called_from_python():
    @kernel
    def corner(x, out):
        out[0] = det(x)

    out, x = np.zeros(1), (2.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 4.0)
    corner(x, out)
    assert out[0] == det(x) == 24


@needs_xdg
def test_unused_cache_folders_of_other_sources_are_removed_after_a_month(tmp_path):
    kernels = tmp_path / "supple" / "kernels"
    for name, days in [("old", 31), ("recent", 29)]:
        (kernels / name / "inside").mkdir(parents=True)
        (kernels / name / "inside" / "kernel.nbc").write_text("")
        os.utime(kernels / name, times=(time.time() - days * 86400,) * 2)
    assert printed_by(COLOR, tmp_path)[0] > 0
    left = {folder.name for folder in kernels.iterdir()}
    assert len(left) == 2
    assert "recent" in left
    assert "old" not in left


NOTE = COLOR.replace(
    "with compilation",
    """
import supple.kernels.compile.notices
supple.kernels.compile.notices.MIN_NOTICE_SECONDS = 0.0
with compilation""",
)


@needs_xdg
@pytest.mark.parametrize(
    ("setting", "silent"), [("", False), ("SUPPLE_QUIET", True), ("level", True), ("log", True)]
)
def test_terminal_gets_one_message(tmp_path, setting, silent):
    script = NOTE
    if setting == "level":
        script = "import logging; logging.getLogger('supple').setLevel('WARNING')" + script
    if setting == "log":
        script = "import logging; logging.basicConfig(level='INFO', filename='/dev/null')" + script
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "SUPPLE_QUIET": ""}
    if setting == "SUPPLE_QUIET":
        environment[setting] = "1"
    screen, stderr = os.openpty()
    command = [sys.executable, "-c", script]
    subprocess.run(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=stderr, timeout=300, check=True
    )
    os.set_blocking(screen, False)
    os.write(stderr, b"end")
    message = os.read(screen, 10_000).decode()
    assert message.count("supple: compiling kernels (once on this machine, then cached) ...") == (not silent)


@needs_xdg
def test_no_message_without_a_terminal(tmp_path):
    seconds, log = printed_by(NOTE, tmp_path)
    assert seconds > 0
    assert log == ""


def command(kernel_folder, *arguments):
    """Run of `supple compile` with a separate cache."""
    code = "from supple.cli import main; main()"
    environment = {**os.environ, "XDG_CACHE_HOME": str(kernel_folder), "HOME": str(kernel_folder)}
    return subprocess.run(
        [sys.executable, "-c", code, "compile", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


@needs_xdg
def test_precompiled_kernels_are_not_compiled_again(tmp_path):
    chosen = "--material", "linear_elastic", "--solver", "pbng", "--precision", "float64,float32"
    run = command(tmp_path, *chosen, "--workers", "2")
    assert run.returncode == 0, run.stderr
    assert "2/2 linear_elastic, float" in run.stderr
    assert printed_by(SOLVE, tmp_path)[0] == 0
    assert printed_by(SOLVE.replace("tolerance=", "precision='float32', tolerance="), tmp_path)[0] == 0


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--material", "linear", "there is no material 'linear'; did you mean 'linear_elastic'?"),
        ("--precision", "float16", "float16"),
        ("--workers", "0", "workers must be a whole number of at least 1, got 0"),
        ("--device", "gpu", "device must be 'cpu' or 'cuda', got 'gpu'"),
    ],
)
def test_mistakes_are_refused_before_compiling(tmp_path, option, value, sentence):
    run = command(tmp_path, option, value)
    assert run.returncode == 2
    assert sentence in run.stderr


@needs_xdg
def test_kernels_work_without_a_cache(tmp_path):
    """The cache path is a file instead of a folder."""
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    for _ in range(2):  # nor found in another place that would not notice edits
        seconds, _ = printed_by(COLOR, nowhere)
        assert seconds > 0


PLANTED = """
import os, pickle, sys
class Program:
    def __reduce__(self):
        return os.system, (f"touch {sys.argv[1]}",)
for path in sys.argv[2:]:
    with open(path, "r+b") as file:
        file.truncate()
        pickle.dump(Program(), file)
"""


@pytest.fixture(scope="module")
def kernel_cache(tmp_path_factory):
    """A cache with a few kernels."""
    cache_folder = tmp_path_factory.mktemp("kept") / "cache"
    assert printed_by(COLOR, cache_folder)[0] > 0
    return cache_folder


@needs_xdg
def test_kernels_are_cached_in_private_folders_only(kernel_cache):
    folders = [
        kernel_cache,
        *kernel_cache.glob("supple"),
        *kernel_cache.glob("supple/kernels"),
        *kernel_cache.glob("supple/kernels/*"),
    ]
    assert len(folders) == 4
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in kernel_cache.rglob("*.nbc")} == {0o600}


@needs_xdg
@pytest.mark.parametrize(
    ("shared", "how"),
    [
        ("", "mode"),
        ("supple/kernels/*", "mode"),
        ("supple/kernels/*/*.nbc", "mode"),
        ("supple", "owner"),
        ("supple/kernels/*/*.nbc", "owner"),
    ],
)
def test_kernels_writable_by_others_are_not_loaded(tmp_path, kernel_cache, shared, how):
    """A cached kernel is a pickle, which can run arbitrary code."""
    cache_folder, mark = tmp_path / "cache", tmp_path / "planted"
    shutil.copytree(kernel_cache, cache_folder)
    kernels = sorted(cache_folder.rglob("*.nbc"))
    subprocess.run([sys.executable, "-c", PLANTED, str(mark), *map(str, kernels)], check=True)
    targets = list(cache_folder.glob(shared)) if shared else []
    if how == "owner" and os.geteuid() != 0:
        pytest.skip("only root can give files away")
    for path in targets:
        os.chown(path, 12345, 12345) if how == "owner" else path.chmod(path.stat().st_mode | 0o022)
    seconds, log = printed_by(COLOR, cache_folder)
    if not targets:  # what the user has written is run, as all programs of the user are
        assert mark.exists()
        return
    assert seconds > 0
    assert not mark.exists()
    folder_is_shared = not shared.endswith(".nbc")
    sentence = (
        "The cache of compiled kernels is not used"
        if folder_is_shared
        else "Other users could write to the compiled"
    )
    assert log.count("ompiled kernels") == log.count(sentence) == 1
    if folder_is_shared:
        assert ("uid 12345" if how == "owner" else "others can write to") in log
        assert str(targets[0]) in log
        refused = command(cache_folder, "--material", "linear_elastic", "--solver", "pbng")
        assert refused.returncode == 2
        assert "compiled kernels cannot be saved" in refused.stderr
    else:
        assert printed_by(COLOR, cache_folder) == (0, "")  # it was written again, as the user's own


@needs_xdg
def test_cache_is_private_with_a_permissive_umask(tmp_path):
    script = "import os; os.umask(0)\n" + COLOR
    assert printed_by(script, tmp_path / "cache")[0] > 0
    assert printed_by(script, tmp_path / "cache") == (0, "")


def test_cache_folder_depends_on_the_sources(tmp_path):
    """Numba does not notice edits in functions that a kernel calls, so the folder name must."""
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
