"""Designs: values, order and parts of samples."""

import io
import os
import signal
import zipfile

import numpy as np
import pytest
from dataset_scenes import VARY, spec_of
from scipy.stats import qmc

import supple
from supple.datasets.errors import DatasetError, SpecError
from supple.datasets.run.create import facts_of
from supple.datasets.run.traversal import coordinates, path_through
from supple.datasets.spec.dataset_spec import load_spec
from supple.datasets.spec.sampling import draw
from supple.datasets.store.splits import split_of


@pytest.mark.parametrize("design", ["random", "latin_hypercube", "sobol"])
def test_values_are_in_range_and_repeat_with_the_seed(tmp_path, design):
    spec = load_spec(spec_of(tmp_path, count=50, design=design))
    columns = draw(spec)
    for vary in VARY:
        low, high = vary["range"]
        assert columns[vary["name"]].shape == (50, 1)
        assert low <= columns[vary["name"]].min() < columns[vary["name"]].max() <= high
    again = draw(load_spec(spec_of(tmp_path, count=50, design=design)))
    other = draw(load_spec(spec_of(tmp_path, count=50, design=design, seed=2)))
    assert all(np.array_equal(columns[name], again[name]) for name in columns)
    assert not np.array_equal(columns["g"], other["g"])
    median = np.median(columns["young"])
    assert 5e3 * 10**0.35 < median < 5e3 * 10**0.65, "evenly in the logarithm"


def test_low_discrepancy_designs_are_more_even_than_random(tmp_path):
    def unevenness(design):
        columns = draw(load_spec(spec_of(tmp_path, count=64, design=design)))
        return qmc.discrepancy(coordinates(columns, {"young"}).clip(0, 1))

    assert max(unevenness("sobol"), unevenness("latin_hypercube")) < unevenness("random")


def test_grids_have_all_combinations(tmp_path):
    vary = [VARY[0] | {"steps": 3}, {"path": "solid.bar.density", "name": "rho", "values": [50, 100]}]
    columns = draw(load_spec(spec_of(tmp_path, count=None, design="grid", vary=vary)))
    pairs = set(zip(columns["g"][:, 0].tolist(), columns["rho"][:, 0].tolist(), strict=True))
    assert pairs == {(g, rho) for g in (-12.0, -6.0, 0.0) for rho in (50.0, 100.0)}


@pytest.mark.parametrize("kind", ["csv", "npz", "parquet"])
def test_table_designs(tmp_path, kind):
    vary = [{"path": "gravity", "name": "g"}, {"path": "solid.bar.density", "name": "rho"}]
    g, rho = np.array([[0, -1, 0], [1, -2, 0.5]]), np.array([50.0, 100.0])
    path = tmp_path / f"values.{kind}"
    if kind == "csv":
        rows = [f"{a},{b},{c},{r}" for (a, b, c), r in zip(g, rho, strict=True)]
        path.write_text("\n".join(["g.x,g.y,g.z,rho", *rows]))
    elif kind == "npz":
        np.savez(path, g=g, rho=rho)
    else:
        pa = pytest.importorskip("pyarrow")
        __import__("pyarrow.parquet").parquet.write_table(pa.table({"g": g.tolist(), "rho": rho}), path)
    table = spec_of(tmp_path, count=None, design="table", table=str(path), vary=vary)
    columns = draw(load_spec(table))
    assert np.array_equal(columns["g"], g)
    assert np.array_equal(columns["rho"][:, 0], rho)
    with pytest.raises(DatasetError, match="no column for 'angle'"):
        draw(load_spec(table | {"vary": [*vary, {"path": VARY[2]["path"], "name": "angle"}]}))


def test_function_designs(tmp_path):
    vary = [{"path": "gravity.y", "name": "g"}]

    def function(count, rng):
        return {"g": -rng.uniform(1, 2, count)}

    def short(count, rng):
        return {"g": np.zeros(count - 1)}

    spec = spec_of(tmp_path, count=5, design="function", vary=vary)
    columns = draw(load_spec(spec | {"function": function}))
    assert columns["g"].shape == (5, 1)
    assert columns["g"].max() < -1
    with pytest.raises(DatasetError, match="must have 5 values"):
        draw(load_spec(spec | {"function": short}))
    with pytest.raises(DatasetError, match="cannot be imported"):
        draw(load_spec(spec | {"function": "no_such_module:f"}, allow_code=True))


def test_path_visits_every_point_once_and_is_short():
    points = np.random.default_rng(0).random((300, 2))
    order = path_through(points)
    assert sorted(order) == list(range(300))

    def length(p):
        return np.linalg.norm(np.diff(p, axis=0), axis=1).sum()

    assert length(points[order]) < 0.15 * length(points)


def test_design_is_stored_in_path_order(tmp_path):
    facts = facts_of(load_spec(spec_of(tmp_path, count=40)))
    drawn = draw(load_spec(spec_of(tmp_path, count=40)))
    assert all(np.array_equal(facts.columns[name], drawn[name][facts.draw_order]) for name in drawn)


def _nothing(count, rng):
    return {"g": 1 / 0}


def _not_finite(count, rng):
    return {"g": np.full(count, np.nan)}


def _words(count, rng):
    return {"g": ["light"] * count}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (_nothing, r"_nothing\(5, generator\) failed in line \d+ of test_dataset_designs.py.*ZeroDivision"),
        (_not_finite, r"sample 0 of the design has \[nan\] for 'g'"),
        (_words, "'g' of the design's function must be numbers"),
    ],
)
def test_failing_functions_are_reported(tmp_path, function, message):
    spec = spec_of(tmp_path, count=5, design="function", vary=[{"path": "gravity.y", "name": "g"}])
    with pytest.raises(DatasetError, match=message):
        draw(load_spec(spec | {"function": function}))


def test_failed_import_is_reported(tmp_path):
    (tmp_path / "broken_design.py").write_text("design = (", encoding="utf-8")
    spec = spec_of(tmp_path, count=5, design="function", vary=[{"path": "gravity.y", "name": "g"}])
    path = tmp_path / "broken.toml"
    text = "".join(f"{key} = {spec[key]!r}\n" for key in ("scene", "count", "design"))
    text += "function = 'broken_design:design'\n[[vary]]\npath = 'gravity.y'\nname = 'g'\n"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=r"cannot be imported \(SyntaxError"):
        draw(load_spec(path, allow_code=True))


def test_spec_with_code_is_refused_without_import(tmp_path):
    """Dictionaries with function names are refused too; function objects belong to the caller."""
    mark = tmp_path / "imported"
    code = (
        f"open({str(mark)!r}, 'w').close()\ndef design(count, rng):\n    return {{'g': rng.random(count)}}\n"
    )
    (tmp_path / "strange_design.py").write_text(code, encoding="utf-8")
    spec = spec_of(tmp_path, count=3, design="function", vary=[{"path": "gravity.y", "name": "g"}])
    spec["function"] = "strange_design:design"
    message = "imports and runs 'strange_design:design'.*--allow-code.*allow_code=True"
    with pytest.raises(SpecError, match=message):
        supple.dataset(spec, tmp_path / "set.zarr")
    path = tmp_path / "spec.toml"
    text = "".join(f"{key} = {spec[key]!r}\n" for key in ("scene", "count", "design", "function"))
    path.write_text(text + "[[vary]]\npath = 'gravity.y'\nname = 'g'\n", encoding="utf-8")
    with pytest.raises(SpecError, match=message):
        supple.dataset(path, tmp_path / "set.zarr")
    assert not mark.exists()
    assert draw(load_spec(path, allow_code=True))["g"].shape == (3, 1)
    assert mark.exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"g,g\n1,2\n", "several columns named 'g'"),
        ("a.csv", b"h\n1\n", "no column for 'g'; it has 'h'"),
        ("a.csv", b"g\nlight\n", "could not convert string to float: 'light'"),
        ("a.csv", b"g\n1,2\n", "line 2 has 2 values for 1 names"),
        ("a.csv", b"g\nnan\n", r"sample 0 of the design has \[nan\]"),
        ("a.csv", "g\n\xff".encode("latin-1"), "cannot be read as a table of numbers"),
        ("a.npz", b"PK\x03\x04 cut short", r"a.npz is not an NPZ file, or it is damaged \(.*\)\."),
        ("a.npz", b"", "a.npz is not an NPZ file, or it is damaged"),
        ("a.parquet", b"PAR1", "cannot be read as a table of numbers|needs PyArrow"),
        ("a.xlsx", b"", "CSV, NPZ or Parquet"),
    ],
)
def test_unreadable_tables_are_reported(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    vary = [{"path": "gravity.y", "name": "g"}]
    spec = spec_of(tmp_path, count=None, design="table", table=str(tmp_path / name), vary=vary)
    with pytest.raises(DatasetError, match=message):
        draw(load_spec(spec))


def table_spec(tmp_path, name):
    vary = [{"path": "gravity.y", "name": "g"}]
    return spec_of(tmp_path, count=None, design="table", table=str(tmp_path / name), vary=vary)


@pytest.mark.skipif(os.name == "nt", reason="pipes and devices of POSIX")
@pytest.mark.parametrize("suffix", ["csv", "npz", "parquet"])
def test_tables_are_regular_files(tmp_path, suffix):
    """Reading a pipe waits until data is written to it; a device never ends."""
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits"))
    signal.alarm(60)
    try:
        for kind in ("a pipe", "a device", "a folder"):
            path = tmp_path / f"{kind[2:]}.{suffix}"
            if kind == "a pipe":
                os.mkfifo(path)
            elif kind == "a folder":
                path.mkdir()
            else:
                path.symlink_to("/dev/zero")
            with pytest.raises(DatasetError, match=rf"{path} is {kind}; only regular files are read\."):
                draw(load_spec(table_spec(tmp_path, path.name)))
    finally:
        signal.alarm(0)


def test_claims_of_npz_tables_are_checked_before_they_are_read(tmp_path):
    head = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**10,)}
    np.lib.format.write_array_header_1_0(head, header)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("g.npy", head.getvalue())
    with pytest.raises(
        DatasetError, match=r"a\.npz is damaged: 'g' of shape .*80 GB, more than the file contains"
    ):
        draw(load_spec(table_spec(tmp_path, "a.npz")))


def test_columns_without_a_quantity_may_be_words(tmp_path):
    np.savez(tmp_path / "a.npz", g=np.array([-1.0, -2.0]), remarks=np.array(["soft", "stiff"]))
    assert draw(load_spec(table_spec(tmp_path, "a.npz")))["g"].ravel().tolist() == [-1, -2]


def test_tables_beyond_memory_are_refused(tmp_path, monkeypatch):
    """A Parquet file of equal values is as small for 10^10 rows as for ten."""
    pa = pytest.importorskip("pyarrow")
    __import__("pyarrow.parquet").parquet.write_table(pa.table({"g": np.zeros(1000)}), tmp_path / "a.parquet")
    monkeypatch.setattr("supple.datasets.spec.sampling.available_memory", lambda: 7000.0)
    with pytest.raises(DatasetError, match=r"has 1,000 values, which need 0\.064 MB .* may use 0\.007 MB\."):
        draw(load_spec(table_spec(tmp_path, "a.parquet")))
    (tmp_path / "a.csv").write_text("g\n" + "-1\n" * 100)
    monkeypatch.setattr("supple.datasets.spec.sampling.CSV_LIMIT", 100)
    with pytest.raises(DatasetError, match=r"a\.csv is larger than .*, the limit for such a file\."):
        draw(load_spec(table_spec(tmp_path, "a.csv")))


def test_byte_order_mark_of_tables_is_ignored(tmp_path):
    (tmp_path / "a.csv").write_text("g\n-1\n-2\n", encoding="utf-8-sig")
    vary = [{"path": "gravity.y", "name": "g"}]
    spec = spec_of(tmp_path, count=None, design="table", table=str(tmp_path / "a.csv"), vary=vary)
    assert draw(load_spec(spec))["g"].ravel().tolist() == [-1, -2]


def test_parts_are_stable_when_the_set_grows():
    parts = {"train": 0.7, "valid": 0.2, "test": 0.1}
    few, many = split_of(np.arange(1000), 5, parts), split_of(np.arange(5000), 5, parts)
    for name, share in parts.items():
        assert np.array_equal(few[name], many[name][many[name] < 1000])
        assert abs(len(many[name]) / 5000 - share) < 0.03
    assert sorted(np.concatenate([*many.values()])) == list(range(5000))
    assert not np.array_equal(few["train"], split_of(np.arange(1000), 6, parts)["train"])
