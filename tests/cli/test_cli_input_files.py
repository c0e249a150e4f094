"""Irregular, oversized or malicious input files are refused quickly with an error message."""

import io
import os
import signal
import socket
import sys
import zipfile

import numpy as np
import pytest
from cli_scenes import SAG, supple, supple_json, write_scene

import supple as library
from supple.support.input_files import TEXT_LIMIT, InputFileError, open_arrays

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes and devices of POSIX")

START = SAG + "[initial]\nfile = 'start.npz'\n"


@pytest.fixture(autouse=True)
def _no_wait():
    """Limit the time of a test, since a pipe without writer blocks forever."""
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits"))
    signal.alarm(300)
    yield
    signal.alarm(0)


def refused(*arguments):
    result = supple(*arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.split())


def make(path, kind):
    """Make a path that is not a regular file."""
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)


FILE_TYPES = ["a pipe", "a folder", "a device", "a socket"]


@pytest.mark.parametrize("kind", FILE_TYPES)
@pytest.mark.parametrize("command", [("run",), ("inspect",), ("compare",), ("dataset", "run")])
def test_irregular_scene_and_spec_files_are_refused(tmp_path, kind, command):
    make(tmp_path / "input.toml", kind)
    assert f"input.toml: is {kind}; only regular files are read." in refused(*command, "input.toml")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("kind", FILE_TYPES)
def test_irregular_start_files_are_refused(tmp_path, kind):
    make(tmp_path / "start.npz", kind)
    assert f"start.npz is {kind}; only regular files are read." in refused(
        "run", write_scene(tmp_path, START)
    )


@pytest.mark.parametrize("kind", FILE_TYPES[:3])
def test_irregular_mesh_and_fabric_files_are_refused(tmp_path, kind):
    block = "mesh = { block = { cells = [3, 3, 3] } }"
    make(tmp_path / "a.vtu", kind)
    message = refused("run", write_scene(tmp_path, SAG.replace(block, "mesh = { file = 'a.vtu' }")))
    assert f"a.vtu is {kind}" in message
    make(tmp_path / "a.json", kind)
    cloth = "[[cloth]]\nmesh = { sheet = { cells = [2, 2] } }\nfabric = 'a.json'\n"
    assert f"a.json is {kind}" in refused("run", write_scene(tmp_path, cloth))


@pytest.mark.parametrize("name", ["report.json", "frame_0001.npz", "frame_0001.vtu", "frame_0000.npz"])
@pytest.mark.parametrize("checked", [False, True])
def test_irregular_result_files_are_refused(tmp_path, name, checked):
    scene = write_scene(tmp_path, SAG)
    supple_json("run", scene, "--no-picture")
    folder = tmp_path / "results" / "scene"
    if not checked:
        (folder / "checksums.sha256").unlink()
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert name in refused("export", "results/scene", "--format", "ply")
    result = supple("run", scene, "--no-picture", "--resume")
    assert result.exit_code == (2 if name == "report.json" else 0), result.output
    if name != "report.json":
        assert name in result.stderr
        assert (folder / name).is_file()
    assert supple("list", "scenes").exit_code == 0


def test_scene_files_have_a_size_limit(tmp_path):
    scene = write_scene(tmp_path, SAG + "#" * TEXT_LIMIT)
    assert "scene.toml: is larger than 16.8 MB, the limit for such a file." in refused("run", scene)


def test_numbers_of_thousands_of_digits_are_refused(tmp_path):
    scene = write_scene(tmp_path, SAG.replace("density = 100", f"density = 1{'0' * 5000}"))
    line = 1 + scene_line(tmp_path, "density = 1")
    most = f"{sys.get_int_max_str_digits():,}"
    assert f"scene.toml: line {line} has a whole number of more than {most} digits." in refused("run", scene)


def scene_line(folder, start):
    lines = (folder / "scene.toml").read_text().splitlines()
    return next(k for k, line in enumerate(lines) if line.startswith(start))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("title =", "{} ="),
        ("density =", "{} = 3\ndensity ="),
        ("corotated =", "{} ="),
        ("young = 1e4", "{} = 1e4"),
        ("[stop]", "[{}]\na = 1\n[stop]"),
        ('name = "block"', 'name = "block"\nregion = [{{ name = "a", {} = 1 }}]'),
        ("[stop]", '[[pin]]\nsolid = "{}"\nwhere = {{ side = "x-" }}\n[stop]'),
        ("[stop]", '[solver]\nmethod = "{}"\n[stop]'),
        ("[stop]", '[solver]\nmethod = "pbng"\n{} = 1\n[stop]'),
        ("[stop]", '[view]\nfield = "{}"\n[stop]'),
        ("[stop]", '[output]\nfields = "{}"\n[stop]'),
        ("[stop]", '[initial]\nfile = "{}"\n[stop]'),
        ("{ block =", "{{ {} ="),
        ("{ block = { cells = [3, 3, 3] } }", '{{ file = "{}.vtu" }}'),
    ],
)
def test_very_long_words_are_shortened_in_messages(tmp_path, old, new):
    scene = write_scene(tmp_path, SAG.replace(old, new.format("k" * 100_000)))
    message = refused("run", scene)
    assert "kkk" in message
    assert len(message) < 3000


def savez(**arrays):
    np.savez("start.npz", **arrays)


@pytest.mark.parametrize("name", ["positions", "velocities"])
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (np.zeros((64, 3)) + 1j, "start.npz has '{}' of type complex128; real numbers are needed."),
        (np.full((64, 3), "1.5"), "start.npz has '{}' of type <U3; real numbers are needed."),
        (np.full((64, 3), b"garbage"), "start.npz has '{}' of type |S7; real numbers are needed."),
        (np.zeros((64, 3), "M8[s]"), "start.npz has '{}' of type datetime64[s]; real numbers are needed."),
        (np.zeros(64, [("x", float)]), "real numbers are needed"),
        (np.full((64, 3), np.nan), "start.npz has {} that are NaN or infinite, of 64 vertices."),
        (np.zeros((64, 2)), "start.npz must have {} of shape (64, 3), one row for each vertex of the scene; "
                            "their shape is (64, 2)."),
    ],
)  # fmt: skip
def test_non_finite_starts_are_refused(tmp_path, name, values, sentence):
    write_scene(tmp_path, START.replace("title", "quasistatic = false\ntitle"))
    savez(**{"positions": np.zeros((64, 3)), name: values})
    assert sentence.format(name) in refused("run", "scene.toml")


def test_integer_starts_are_read_and_object_arrays_refused(tmp_path):
    write_scene(tmp_path, START)
    savez(positions=np.zeros((64, 3), np.int8))
    file = library.load_scene("scene.toml")
    assert (file.initial_positions(library.scene.build_model(file.scene))[[5, 60]] == 0).all(axis=1).any()
    savez(positions=np.full((64, 3), None))
    assert "real numbers are needed" in refused("run", "scene.toml", "--overwrite")


def claiming(path, shape, kind=zipfile.ZIP_DEFLATED, filled=0):
    """NPZ file whose positions declare a shape but have only so many bytes."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w", kind) as archive, archive.open("positions.npy", "w") as member:
        member.write(head.getvalue())
        for _ in range(filled >> 20):
            member.write(bytes(2**20))


def test_declared_shapes_of_starts_are_checked_before_reading(tmp_path):
    """10¹² declared rows are refused as damage, not as lack of memory."""
    write_scene(tmp_path, START)
    for shape in ((10**12, 3), (64, 10**14), (2**62, 2**62)):
        claiming(tmp_path / "start.npz", shape)
        message = refused("run", "scene.toml")
        assert "start.npz is damaged: 'positions' of shape" in message
        assert "more than the file contains" in message


def test_decompression_bombs_are_not_read(tmp_path):
    import tracemalloc

    write_scene(tmp_path, START)
    claiming(tmp_path / "start.npz", (2**25 // 3, 3), filled=2**28)
    assert (tmp_path / "start.npz").stat().st_size < 2e6
    supple("inspect", write_scene(tmp_path, SAG, "other.toml"))
    tracemalloc.start()
    message = refused("run", "scene.toml")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "must have positions of shape (64, 3)" in message or "damaged" in message
    assert most < 50e6


def test_error_names_arrays_beyond_memory(tmp_path, monkeypatch):
    np.savez(tmp_path / "a.npz", x=np.zeros(1000))
    monkeypatch.setattr("supple.support.input_files.available_memory", lambda: 7000.0)
    with open_arrays(tmp_path / "a.npz") as arrays, pytest.raises(InputFileError, match=r"may use 0\.007 MB"):
        arrays["x"]


def test_any_flipped_bit_of_an_archive_is_handled(tmp_path):
    """Each flipped bit is harmless or reported, without any other exception."""
    path, vectors = tmp_path / "a.npz", np.random.default_rng(0).random((5, 3))
    np.savez(path, positions=vectors)
    original = path.read_bytes()
    noticed = 0
    for at in range(len(original)):
        for bit in (0, 3, 5, 7):
            data = bytearray(original)
            data[at] ^= 1 << bit
            path.write_bytes(data)
            try:
                with open_arrays(path) as arrays:
                    np.testing.assert_array_equal(arrays["positions"], vectors)
            except (InputFileError, KeyError):
                noticed += 1
    assert noticed > 2 * len(original)


def test_encrypted_array_is_named(tmp_path):
    path = tmp_path / "start.npz"
    np.savez(path, positions=np.zeros((8, 3)))
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with (
        open_arrays(path) as arrays,
        pytest.raises(InputFileError, match=r"^is damaged: 'positions' is marked as encrypted$"),
    ):
        arrays["positions"]
