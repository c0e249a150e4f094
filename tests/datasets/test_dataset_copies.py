"""Stores contain copies of all files of their scene, so that they work without the originals."""

import json
import shutil
import tomllib

import numpy as np
import pytest
from dataset_scenes import SCENE, VARY, sample_bytes, solved, spec_of, write_box

import supple
from supple.datasets.errors import DatasetError
from supple.datasets.exports import export_dataset
from supple.datasets.run.create import make_store
from supple.datasets.run.shard import Shards
from supple.datasets.run.store_verification import discard, verify
from supple.datasets.spec.dataset_spec import load_spec
from supple.datasets.store.dataset_store import Store
from supple.datasets.store.scene_files import (
    COPY_FOLDER,
    copy_files,
    named_files,
    scene_with_copied_files,
    strip_folder,
)
from supple.datasets.store.summary import write_summary
from supple.meshes import save_mesh


def named_scene(folder, monkeypatch):
    """A scene with file names of every type: relative, absolute and with a variable, one of them twice."""
    meshes, elsewhere = folder / "meshes", folder / "private" / "meshes"
    for copy_folder in (meshes, elsewhere):
        copy_folder.mkdir(parents=True)
    monkeypatch.setenv("MY_MESHES", str(elsewhere))
    save_mesh(supple.block((2, 1, 1), (1, 0.5, 0.5)), meshes / "bar.node")
    write_box(meshes / "box.obj", top=-0.3)
    write_box(elsewhere / "box.obj", top=-0.9)
    write_box(elsewhere / "skin.obj", top=0.4)
    bar = "{ block = { cells = [2, 1, 1], size = [1, 0.5, 0.5] } }"
    assert bar in SCENE
    obstacles = "\n".join(
        f"[[obstacle]]\nshape = {{ surface = {{ file = {file} }} }}"
        for file in ('"meshes/box.obj"', f"'{elsewhere}/box.obj'", '"$MY_MESHES/box.obj"')
    )
    text = SCENE.replace(bar, "{ file = 'meshes/bar.node' } # not 'meshes/bar.node'")
    text = text.replace("density = 100", 'density = 100\nrender = { file = "$MY_MESHES/skin.obj" }')
    path = folder / "named.toml"
    path.write_text(f"# It's mine, 'meshes/box.obj'\ntitle = 'meshes/box.obj'\n{text}\n{obstacles}\n")
    return path


def test_moved_store_works_without_the_originals(tmp_path, monkeypatch):
    original_folder = tmp_path / "home"
    original_folder.mkdir()
    scene = named_scene(original_folder, monkeypatch)
    store = solved(original_folder, count=4, shard=2, vary=VARY[:1], scene=str(scene))
    before = sample_bytes(store)
    text = (store.path / "scene.toml").read_text()
    assert str(tmp_path) not in text + (store.path / "zarr.json").read_text()
    assert "MY_MESHES" not in text
    assert text.startswith("# It's mine, 'meshes/box.obj'\n")
    names = {path.name for path in (store.path / COPY_FOLDER).iterdir()}
    assert names == {"bar.node", "bar.ele", "box.obj", "box_2.obj", "skin.obj"}
    tables = tomllib.loads(text)
    assert tables["solid"][0]["mesh"]["file"] == "files/bar.node"
    files = [each["shape"]["surface"]["file"] for each in tables["obstacle"]]
    assert files[1] == files[2] != files[0]
    assert tables["title"] == "meshes/box.obj"

    away = tmp_path / "away" / "renamed.zarr"
    shutil.copytree(store.path, away)
    shutil.rmtree(original_folder)
    monkeypatch.delenv("MY_MESHES")
    moved_store = Store(away)
    assert len(supple.data.open(away).scene().scene.obstacles) == 3
    assert verify(moved_store, samples=2).complete
    discard(moved_store, [1])
    Shards(moved_store).run(1)
    write_summary(moved_store)
    assert sample_bytes(moved_store) == before
    assert verify(moved_store, samples=1).complete
    folder = export_dataset(supple.data.open(away), "webdataset", tmp_path / "out")
    assert len(supple.load_scene(folder / "scene.toml").scene.obstacles) == 3


def test_unchanged_spec_reopens_its_store(tmp_path, monkeypatch):
    scene = named_scene(tmp_path, monkeypatch)
    spec = spec_of(tmp_path, count=2, shard=2, vary=VARY[:1], scene=str(scene))
    store = make_store(load_spec(spec), tmp_path / "set.zarr")
    assert make_store(load_spec(spec), store.path).facts == store.facts
    extended = make_store(load_spec(spec | {"count": 3}), store.path, grow=True)
    assert verify(extended, samples=0).good
    assert extended.facts["spec"]["scene"] == "named.toml"
    write_box(tmp_path / "private" / "meshes" / "box.obj", top=-0.8)
    with pytest.raises(DatasetError, match=r"its scene uses other files now: box(_2)?\.obj"):
        make_store(load_spec(spec | {"count": 3}), store.path)


def test_stored_command_has_no_folders(tmp_path):
    command = ["/home/me/bin/supple", "dataset", "run", "/home/me/secret/bars.toml", "--output=/data/x.zarr"]
    spec = load_spec(spec_of(tmp_path, count=2))
    store = make_store(spec, tmp_path / "set.zarr", command=[*command, "specs/bars.toml"])
    message = ["supple", "dataset", "run", "bars.toml", "--output=x.zarr", "specs/bars.toml"]
    assert store.facts["command"] == message
    assert str(tmp_path) not in (store.path / "zarr.json").read_text()
    assert strip_folder("C:\\Users\\me\\bars.toml") == "bars.toml"
    assert strip_folder("~/bars.toml") == "bars.toml"
    assert strip_folder("1/16") == "1/16"


def test_texts_without_paths_are_unchanged(tmp_path):
    (tmp_path / "bar").write_text("a file that is called as the body is")
    (tmp_path / "a.obj").write_text("")
    text = 'solid = "bar"\nx = """a.obj"""\nfile = "a.obj"\n"a.obj" = 1\ny = \'\'\'\n"a.obj"\'\'\'\n'
    files = named_files(tomllib.loads(text), tmp_path)
    assert [file.text for file in files] == ["a.obj"]
    assert scene_with_copied_files(text, files) == text.replace('file = "a.obj"', 'file = "files/a.obj"')
    (tmp_path / "a.obj").write_text("changed")
    with pytest.raises(DatasetError, match=r"a\.obj changed while it was copied"):
        copy_files(files, tmp_path / "copies")


@pytest.mark.parametrize("others", [-12.0, -1.0])
def test_statistics_use_the_training_part_only(tmp_path, others):
    """Loads of the other samples do not change statistics and normalized pairs."""
    spec = spec_of(tmp_path, count=24, shard=8, store={"quantities": ["positions", "von_mises"]})
    store = make_store(load_spec(spec), tmp_path / "set.zarr")
    train = store.parts_of(np.arange(24))["train"]
    assert 2 < 24 - len(train) < 20
    shards = Shards(store)
    given = shards.values
    shards.values = lambda n: given(n) | ({} if n in train else {"g": others})
    shards.sampler.precompute_conditions = lambda every: [None] * len(every)
    for shard in range(store.shards):
        shards.run(shard)
    write_summary(store)
    data = supple.data.open(store.path)
    assert len(data.ids) == 24
    assert np.array_equal(data.split("train"), train)
    for name in ("positions", "von_mises"):
        values = data[name][train].reshape(-1, *data[name].shape[2:])
        np.testing.assert_allclose(data.stats[name]["mean"], values.mean(axis=0))
        np.testing.assert_allclose(data.stats[name]["max"], values.max(axis=0))
        assert not np.allclose(data.stats[name]["mean"], data[name][:].mean(axis=(0, 1)), rtol=1e-6)
    x = np.column_stack([np.log(v) if name == "young" else v for name, v in data.inputs.items()])[train]
    for part in ("train", "valid", "test", None):
        pairs = data.pairs(part, output=["displacements", "von_mises"])
        np.testing.assert_allclose(pairs.x_mean, x.mean(axis=0))
        np.testing.assert_allclose(pairs.x_std, x.std(axis=0))
        moved = data["displacements"][train].reshape(-1, 3)
        np.testing.assert_allclose(pairs.y_mean["displacements"], moved.mean(axis=0), rtol=1e-5)
        stresses = data["von_mises"][train]
        np.testing.assert_allclose(pairs.y_std["von_mises"], stresses.std(), rtol=1e-5)
    assert json.loads((store.path / "stats" / "zarr.json").read_text())["attributes"] == {"part": "train"}


def test_statistics_without_training_part_use_all_samples(tmp_path):
    store = solved(tmp_path, count=6, shard=3, splits={"train": 0.0, "valid": 0.0, "test": 1.0})
    data = supple.data.open(store.path)
    assert len(data.split("test")) == 6
    np.testing.assert_allclose(data.stats["positions"]["mean"], data["positions"][:].mean(axis=(0, 1)))
    assert json.loads((store.path / "stats" / "zarr.json").read_text())["attributes"] == {"part": "all"}
    assert len(data.pairs("test")) == 6
