"""Opened data sets: arrays, pairs for networks, graphs, and other formats."""

import io
import json
import pickle
import tarfile

import numpy as np
import pytest
from dataset_scenes import solved

import supple
from supple.datasets.errors import DatasetError
from supple.datasets.exports import EXPORTS, export_dataset
from supple.datasets.read.report_page import write_page


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    store = solved(tmp_path_factory.mktemp("data"), count=20, shard=6, store={"precision": "float32"})
    return supple.data.open(store.path)


def test_arrays_are_indexed_lazily(data):
    positions = data["positions"]
    assert positions.shape == (20, 12, 3)
    assert positions.dims == ("sample", "vertex", "xyz")
    assert np.array_equal(positions[[3, 17]], np.stack([positions[3], positions[17]]))
    assert np.array_equal(positions[2:4][1], positions[3])
    assert np.array_equal(positions[-1], positions[19])
    assert np.array_equal(np.asarray(positions), positions[:])
    assert not positions[0].flags.writeable
    with pytest.raises(IndexError, match="samples 0 to 19"):
        positions[20]
    with pytest.raises(KeyError, match="did you mean 'positions'"):
        data["postions"]
    assert set(data.sample(4)) >= {"positions", "g", "young", "angle", "relative_residual", "outcome"}
    assert np.array_equal(pickle.loads(pickle.dumps(data))["positions"][5], positions[5])
    assert "20 of 20 samples" in repr(data)


def test_folders_without_data_set_are_refused(tmp_path):
    with pytest.raises(DatasetError, match=r"has no zarr\.json"):
        supple.data.open(tmp_path)
    (tmp_path / "zarr.json").write_text("{}")
    with pytest.raises(DatasetError, match="cannot be read as a data set of supple"):
        supple.data.open(tmp_path)


def test_pairs_are_normalized_inputs_and_outputs(data):
    pairs = data.pairs("train")
    assert len(pairs) == len(data.split("train"))
    x, y = pairs[0]
    assert x.shape == (3,)
    assert y.shape == (12, 3)
    assert x.dtype == y.dtype == np.float32
    physical = pairs.denormalize(y)
    assert np.allclose(physical, data["displacements"][int(pairs.ids[0])], atol=1e-6)
    xs, ys = pairs.batch(np.arange(len(pairs)))
    assert np.allclose(xs.mean(axis=0), 0, atol=1e-5)
    assert np.allclose(xs.std(axis=0), 1, atol=1e-5)
    assert abs(float(ys.mean())) < 1e-5
    raw = data.pairs(normalize=False, inputs=["young"], output="positions")
    assert raw[3][0] == np.float32(data.inputs["young"][3])
    assert np.array_equal(raw[3][1], data["positions"][3])
    both = data.pairs("train", output=["positions", "displacements"])
    x, y = both[1]
    assert list(y) == ["positions", "displacements"]
    assert np.array_equal(x, pairs[1][0])
    assert np.array_equal(y["displacements"], pairs[1][1])
    assert np.array_equal(y["positions"], data.pairs("train", output="positions")[1][1])
    _, multiple_outputs = both.batch(np.array([1, 0]))
    assert np.array_equal(multiple_outputs["positions"][0], y["positions"])
    physical = both.denormalize(multiple_outputs)
    assert np.allclose(physical["positions"][0], data["positions"][int(both.ids[1])], atol=1e-6)
    for wrong in ([], [3], 3):
        with pytest.raises((DatasetError, TypeError), match="output must be"):
            data.pairs(output=wrong)
    with pytest.raises(DatasetError, match="did you mean 'positions'"):
        data.pairs(output=["positons", "displacements"])
    with pytest.raises(DatasetError, match="did you mean 'young'"):
        data.pairs(inputs=["yung"])
    with pytest.raises(DatasetError, match="not stored for every sample"):
        data.pairs(output="mass")


def test_pairs_and_streams_feed_pytorch(data):
    torch = pytest.importorskip("torch")
    loader = torch.utils.data.DataLoader(data.pairs(), batch_size=7, shuffle=True)
    assert sum(len(x) for x, _ in loader) == 20
    stream = data.stream(batch_size=4, seed=3)
    for workers in (0, 2):
        batches = list(torch.utils.data.DataLoader(stream, batch_size=None, num_workers=workers))
        xs = torch.cat([x for x, _ in batches])
        assert sorted(xs[:, 0].tolist()) == sorted(data.pairs()._x[:, 0].tolist())
    multiple_outputs = data.pairs(output=["positions", "displacements"])
    _x, y = next(iter(torch.utils.data.DataLoader(multiple_outputs, batch_size=5)))
    assert {name: tuple(part.shape) for name, part in y.items()} == dict.fromkeys(y, (5, 12, 3))
    stream = data.stream(batch_size=20, shuffle=False, output=["positions", "displacements"])
    _, open_matching = next(iter(torch.utils.data.DataLoader(stream, batch_size=None)))
    assert torch.equal(open_matching["positions"][:5], y["positions"])


def test_graphs_have_every_edge_in_both_directions(data):
    graph = data.graph(2)
    a, b = graph["edge_index"]
    assert {(int(i), int(j)) for i, j in zip(a, b, strict=True)} == {
        (int(j), int(i)) for i, j in zip(a, b, strict=True)
    }
    cells = data["cells"]
    edges = {tuple(sorted((int(c[i]), int(c[j])))) for c in cells for i in range(4) for j in range(i)}
    assert len(edges) == len(data["edges"]) == graph["edge_index"].shape[1] // 2
    assert graph["x"].shape == (3,)
    assert graph["y"].shape == (12, 3)


def test_hdf5_export(data, tmp_path):
    h5py = pytest.importorskip("h5py")
    folder = export_dataset(data, "hdf5", tmp_path / "out")
    with h5py.File(folder / "samples.h5") as file:
        assert np.array_equal(file["samples/positions"][:], data["positions"][data.ids])
        assert np.array_equal(file["inputs/young"][:], data.inputs["young"])
        assert np.array_equal(file["id"][:][file["splits/train"][:]], data.split("train"))


def test_lance_export(data, tmp_path):
    lance = pytest.importorskip("lance")
    folder = export_dataset(data, "lance", tmp_path / "out")
    table = lance.dataset(str(folder / "samples.lance")).to_table()
    assert table["id"].to_pylist() == data.ids.tolist()
    flat = np.array(table["positions"].to_pylist(), np.float32)
    assert np.array_equal(flat.reshape(-1, 12, 3), data["positions"][data.ids])
    assert set(table["split"].to_pylist()) <= {"train", "valid", "test"}
    assert np.array_equal(np.load(folder / "rest.npz")["cells"], data["cells"])


def test_webdataset_export(data, tmp_path):
    folder = export_dataset(data, "webdataset", tmp_path / "out")
    seen = {}
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as tar:
            for entry in tar:
                content = tar.extractfile(entry).read()
                key, _, kind = entry.name.partition(".")
                if kind == "positions.npy":
                    seen[int(key)] = np.load(io.BytesIO(content))
                else:
                    assert json.loads(content)["inputs"]["g"] == data.inputs["g"][int(key)]
    assert sorted(seen) == data.ids.tolist()
    assert np.array_equal(seen[7], data["positions"][7])


def test_plaid_export(data, tmp_path):
    folder = export_dataset(data, "plaid", tmp_path / "out")
    problem = json.loads((folder / "problem_definitions" / "equilibria.yaml").read_text())
    assert problem["input_features"] == ["Global/angle", "Global/g", "Global/young"]
    assert json.loads((folder / "infos.yaml").read_text())["num_samples"]["train"] == len(data.split("train"))
    layout = json.loads((folder / "constants" / "train" / "layout.json").read_text())["cells"]
    cells = np.fromfile(
        folder / "constants" / "train" / "data.mmap", layout["dtype"], offset=layout["offset"], count=40
    )
    assert np.array_equal(cells, data["cells"].ravel()[:40])
    zarr = pytest.importorskip("zarr")
    sample = zarr.open_group(folder / "data" / "train" / "sample_000000000", mode="r")
    first = int(data.split("train")[0])
    assert np.array_equal(sample["Base_3_3__Zone__VertexFields__positions"][:], data["positions"][first])


@pytest.mark.parametrize("to", EXPORTS)
def test_cards_describe_the_exported_files(data, tmp_path, monkeypatch, to):
    """The code of each card runs in its folder, and its file names exist."""
    for package in {"webdataset": ["webdataset"], "plaid": ["zarr"]}.get(to, [EXPORTS[to].package]):
        pytest.importorskip(package)
    folder = export_dataset(data, to, tmp_path / "out")
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "20 equilibria of 12 vertices" in text
    assert "{" not in text.replace("{name: values", "")
    for word in ("supple.data.open", "design.csv", "zarr.json", "hierarchy"):
        assert word not in text
    assert to == "plaid" or "zarr" not in text.lower()
    code = text.split("```python")[1].split("```")[0]
    monkeypatch.chdir(folder)
    texts = {}
    exec(code, texts)
    assert np.array_equal(texts["points"], data.rest["points"])
    train = data.split("train")
    if to == "webdataset":
        assert np.array_equal(texts["output"], data["positions"][int(train[-1])])
        assert texts["value"] == data.inputs["g"][train[-1]]
    elif to == "plaid":
        first = texts["arrays"]["Base_3_3__Zone__VertexFields__positions"]
        assert np.array_equal(first, data["positions"][int(train[0])])
    else:
        assert np.array_equal(texts["outputs"], data["positions"][train])
        assert np.array_equal(
            texts["relative_residual"], data.report["relative_residual"][train if to == "lance" else data.ids]
        )


def test_invalid_batches_and_samples_are_refused(data):
    for batch in (0, -1, 2.5, "4"):
        with pytest.raises(ValueError, match="batch_size must be a whole number of at least 1, got"):
            data.stream(batch_size=batch)
    for sample in (20, -21, 2.5, "first"):
        with pytest.raises(
            ValueError, match="the sample of a graph must be a whole number from -20 to 19, got"
        ):
            data.graph(sample)
    assert np.array_equal(data.graph(-1)["y"], data.graph(19)["y"])


def test_invalid_exports_are_refused(data, tmp_path, monkeypatch):
    with pytest.raises(DatasetError, match="did you mean 'lance'"):
        export_dataset(data, "lanse", tmp_path)
    with pytest.raises(DatasetError, match="is the data set itself"):
        export_dataset(data, "plaid", data.path)
    with pytest.raises(DatasetError, match="or contains it"):
        export_dataset(data, "plaid", data.path.parent)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(DatasetError, match="not an earlier export, so it is not replaced"):
        export_dataset(data, "plaid", tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter.txt").exists()
    monkeypatch.setattr("supple.datasets.exports.find_spec", lambda name: None)
    for name, export in EXPORTS.items():
        if export.package:
            with pytest.raises(DatasetError, match=f"pip install {export.install}"):
                export_dataset(data, name, tmp_path)


def test_page_shows_extremes_and_histograms(data, tmp_path):
    path, page = write_page(data.path, tmp_path / "page.html")
    text = path.read_text(encoding="utf-8")
    assert "20 of 20 samples have reached their tolerance" in text
    assert len(page.pictures) == 3
    assert len(page.plots) == 5
    assert page.good
