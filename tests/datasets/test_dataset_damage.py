"""Checksums of stores: damaged, edited, missing and foreign files are named, and unfinished stores are
distinguished from damaged ones."""

import json
import shutil
import threading

import pytest
from dataset_scenes import SCENE, sample_bytes, solved, spec_of, write_box
from typer.testing import CliRunner

from supple.cli import app
from supple.datasets.errors import DatasetError
from supple.datasets.run.create import make_store
from supple.datasets.run.merge import merge
from supple.datasets.run.run_dataset import Share, run_store
from supple.datasets.run.shard import Shards
from supple.datasets.run.store_verification import discard, verify
from supple.datasets.spec.dataset_spec import load_spec
from supple.datasets.store import zarr_arrays as arrays
from supple.datasets.store.dataset_store import Store
from supple.datasets.store.store_checksums import has_valid_checksum, text_with_checksum
from supple.datasets.store.summary import is_summary_current, write_summary


@pytest.fixture(scope="module")
def full_store(tmp_path_factory):
    """A finished store of a scene with a file, whose last shard is not full."""
    folder = tmp_path_factory.mktemp("whole")
    write_box(folder / "below.obj", top=-0.2)
    obstacle = '[[obstacle]]\nshape = { surface = { file = "below.obj" } }\n\n[[force]]'
    (folder / "beside.toml").write_text(SCENE.replace("[[force]]", obstacle, 1))
    return solved(folder, count=5, shard=3, scene=str(folder / "beside.toml"))


@pytest.fixture
def copy(full_store, tmp_path):
    shutil.copytree(full_store.path, tmp_path / "copy.zarr")
    return Store(tmp_path / "copy.zarr")


def files(store):
    return sorted(path for path in store.path.rglob("*") if path.is_file())


def go_on(store):
    """Run `run_store` in this process."""
    shards = Shards(store)
    for shard in set(range(store.shards)) - set(store.finished_shards()):
        shards.run(shard)
    write_summary(store)


def command(*arguments):
    return CliRunner().invoke(app, ["dataset", *map(str, arguments)])


def test_valid_store_is_complete(full_store):
    verdict = verify(full_store, samples=0)
    assert (verdict.problems, verdict.notes, verdict.missing) == ([], [], 0)
    assert verdict.complete


@pytest.mark.parametrize("where", [0.0, 0.5, 1.0])
def test_one_flipped_bit_of_any_file_is_detected(copy, where):
    assert len(files(copy)) > 80
    for path in files(copy):
        content = path.read_bytes()
        damaged = bytearray(content or b"!")  # a part of the samples may have none
        damaged[int(where * (len(content) - 1))] ^= 2
        path.write_bytes(damaged)
        try:
            problems = verify(Store(copy.path), samples=0).problems
        except DatasetError as error:  # zarr.json itself cannot be read
            problems = [str(error)]
        assert any(str(path) in text or path == copy.path / "zarr.json" for text in problems), path
        path.write_bytes(content)
    assert verify(copy, samples=0).complete


def test_any_missing_file_is_detected(copy):
    for path in files(copy):
        if path == copy.path / "zarr.json":
            continue
        content = path.read_bytes()
        path.unlink()
        verdict = verify(copy, samples=0)
        manifest = path.parent.name == "shards"
        assert not verdict.complete
        assert manifest or any(str(path) in text for text in verdict.problems), path
        assert not manifest or verdict.missing in (2, 3)
        path.write_bytes(content)
    assert verify(copy, samples=0).complete


def test_foreign_files_are_named(copy):
    folders = {path.parent for path in files(copy)}
    assert len(folders) > 20
    for folder in folders:
        strange = folder / "strange.json"
        strange.write_text("{}")
        (problem,) = verify(copy, samples=0).problems
        assert str(strange) in problem
        assert "not a file of the data set" in problem
        strange.unlink()
    (copy.path / "shards" / "000007.json").write_text("{}")
    assert "000007.json" in verify(copy, samples=0).problems[0]
    assert copy.finished_shards() == [0, 1]


def test_verify_exits_with_1_and_names_the_file(copy):
    path = copy.path / "inputs" / "young" / "c" / "0"
    content = bytearray(path.read_bytes())
    content[11] ^= 1
    path.write_bytes(content)
    outcome = command("verify", copy.path, "--samples", 0, "--json")
    assert outcome.exit_code == 1
    assert json.loads(outcome.stdout)["problems"] == [
        f"{path} is damaged or was edited: its checksum is wrong."
    ]
    (copy.path / "zarr.json").write_text("{")
    assert command("verify", copy.path).exit_code == 1


def test_unfinished_store_reports_missing_samples(copy):
    discard(copy, [0])
    verdict = verify(copy, samples=0)
    assert verdict.good
    assert not verdict.complete
    assert verdict.missing == 3
    assert "3 of 5 samples are missing, in 1 shard" in verdict.notes[0]
    outcome = command("verify", copy.path, "--samples", 0)
    assert outcome.exit_code == 1
    assert "3 samples missing" in outcome.stdout
    go_on(copy)
    assert command("verify", copy.path, "--samples", 0).exit_code == 0


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("scene.toml", "density = 100", "density = 200"),
        ("zarr.json", '"tolerance": null', '"tolerance": 1e-2'),
        ("design.csv", "0,", "0,-"),
        ("files/below.obj", "v ", "v 1"),
    ],
)
def test_edited_store_is_not_solved(copy, name, old, new):
    before = sample_bytes(copy)
    discard(copy, [0])
    text = (copy.path / name).read_text()
    assert old in text
    (copy.path / name).write_text(text.replace(old, new, 1))
    refused = rf"{name} is damaged or was edited.*not match the scene, spec or design"
    with pytest.raises(DatasetError, match=refused):
        run_store(Store(copy.path), Share(), workers=1)
    with pytest.raises(DatasetError, match=refused):
        Shards(Store(copy.path))
    outcome = command("resume", copy.path, "--quiet")
    assert outcome.exit_code == 2
    assert "edited" in outcome.stderr
    with pytest.raises(DatasetError, match=refused):
        merge(copy.path.with_name("merged.zarr"), [copy.path])
    (copy.path / name).write_text(text)
    go_on(Store(copy.path))
    assert sample_bytes(copy) == before


def test_damaged_inputs_are_refused_and_the_card_may_be_edited(copy):
    discard(copy, [1])
    card = copy.path / "README.md"
    card.write_text("My data")
    path = copy.path / "inputs" / "g" / "c" / "0"
    content = path.read_bytes()
    path.write_bytes(bytes(8) + content[8:])
    with pytest.raises(DatasetError, match="inputs/g/c/0 is damaged"):
        run_store(copy, Share(), workers=1)
    path.write_bytes(content)
    go_on(copy)
    assert verify(copy, samples=0).problems == [f"{card} is damaged or was edited: its checksum is wrong."]


@pytest.mark.parametrize("name", ["report/energy/c/0", "splits/train/c/0", "stats/positions/mean/zarr.json"])
def test_damaged_reports_are_rewritten(copy, name):
    before = (copy.path / name).read_bytes()
    (copy.path / name).write_bytes(before[:-1] + b"!")
    (problem,) = verify(copy, samples=0).problems
    assert name in problem
    assert "writes it again" in problem
    run_store(copy, Share(), workers=1)
    assert (copy.path / name).read_bytes() == before
    assert verify(copy, samples=0).complete


def test_kill_while_writing_reports_is_no_damage(copy, monkeypatch):
    """At any moment of a kill, the next run writes the reports."""
    before = {path: path.read_bytes() for path in files(copy)}
    manifest = copy.manifest_file(1)
    manifest.unlink()  # so that there is something to change
    real, calls, moment = arrays.replacing, 0, 0

    def killed(path):
        nonlocal calls
        calls += 1
        if calls == moment:
            raise KeyboardInterrupt
        return real(path)

    monkeypatch.setattr(arrays, "replacing", killed)
    shutil.copytree(copy.path, copy.path.with_name("counted.zarr"))
    write_summary(Store(copy.path.with_name("counted.zarr")))
    total = calls
    assert total > 50
    for moment in (1, 2, 3, total // 4, total // 2, total - 4, *range(total - 2, total + 1)):
        calls = 0
        with pytest.raises(KeyboardInterrupt):
            write_summary(copy)
        verdict = verify(Store(copy.path), samples=0)
        assert verdict.good, moment
        assert not verdict.up_to_date
        assert "Reports, splits and statistics do not" in verdict.notes[-1]
    monkeypatch.undo()
    manifest.write_bytes(before[manifest])
    run_store(Store(copy.path), Share())
    assert verify(Store(copy.path), samples=0).complete
    assert {path: path.read_bytes() for path in files(copy)} == before


def test_simultaneously_ending_processes_leave_a_valid_store(copy):
    """Each process writes reports of all visible shards while others publish."""
    manifest = copy.manifest_file(0)
    hidden = manifest.with_suffix(".aside")
    manifest.rename(hidden)
    threads = [threading.Thread(target=write_summary, args=(Store(copy.path),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    hidden.rename(manifest)
    for thread in threads:
        thread.join()
    if not is_summary_current(copy):
        write_summary(copy)
    assert verify(Store(copy.path), samples=0).good


def test_json_checksums_cover_the_full_text():
    text = text_with_checksum({"checksum": "0" * 64, "a": "0" * 64, "b": [1.5, None]})
    assert json.loads(text)["a"] == "0" * 64
    assert has_valid_checksum(text)
    for at in range(len(text)):
        assert not has_valid_checksum(text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :])
    assert not has_valid_checksum("{}")


def test_merged_and_extended_stores_have_new_checksums(copy, full_store, tmp_path):
    merged = merge(tmp_path / "merged.zarr", [copy.path])
    assert verify(merged, samples=1).complete
    assert "merged.zarr" in (merged.path / "README.md").read_text()
    scene = str(full_store.path.parent / "beside.toml")
    spec = load_spec(spec_of(full_store.path.parent, count=7, shard=3, scene=scene))
    extended = make_store(spec, copy.path, grow=True)
    assert verify(extended, samples=0).good
    go_on(extended)
    assert verify(extended, samples=0).complete


def test_merging_saves_shards_of_a_store_without_inputs(copy, full_store, tmp_path):
    shutil.rmtree(copy.path / "inputs")
    scene = str(full_store.path.parent / "beside.toml")
    spec = load_spec(spec_of(full_store.path.parent, count=5, shard=3, scene=scene))
    new_store = make_store(spec, tmp_path / "fresh.zarr")
    assert verify(merge(new_store.path, [copy.path]), samples=1).complete
    assert sample_bytes(new_store) == sample_bytes(full_store)
    root = copy.path / "zarr.json"
    root.write_text(root.read_text().replace("float64", "float32", 1))
    with pytest.raises(DatasetError, match=r"zarr\.json is damaged or was edited.*Nothing is merged"):
        merge(new_store.path, [copy.path])


@pytest.mark.parametrize(("schema", "advice"), [(3, "compute it again"), (5, "a later version is needed")])
def test_stores_of_other_versions_are_refused(tmp_path, schema, advice):
    store = solved(tmp_path, count=2, shard=2)
    root = json.loads((store.path / "zarr.json").read_text())
    root["attributes"]["supple"]["schema"] = schema
    (store.path / "zarr.json").write_text(json.dumps(root))
    with pytest.raises(DatasetError, match=rf"was written by supple .* in layout {schema}, not 4; {advice}"):
        Store(store.path)
    root["attributes"]["supple"] = {"schema": schema, "versions": [1]}
    (store.path / "zarr.json").write_text(json.dumps(root))
    with pytest.raises(DatasetError, match=rf"was written by supple in layout {schema}, not 4; {advice}"):
        Store(store.path)
