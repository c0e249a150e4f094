"""Stores: finished shards are complete, unfinished ones are never read, and damage is detected."""

import errno
import json
import os
import shutil

import numpy as np
import pytest
from dataset_scenes import sample_bytes, solved, spec_of

import supple
from supple.datasets.errors import DatasetError
from supple.datasets.run import create as creating
from supple.datasets.run.create import make_store
from supple.datasets.run.merge import merge
from supple.datasets.run.run_dataset import Share, parse_share, run_store
from supple.datasets.run.shard import Shards
from supple.datasets.run.store_verification import discard, verify
from supple.datasets.spec.dataset_spec import load_spec
from supple.datasets.store import zarr_arrays as arrays
from supple.datasets.store.dataset_store import Store
from supple.datasets.store.summary import is_summary_current, reports, write_summary
from supple.datasets.store.zarr_arrays import crc32c
from supple.io import replace_file as replacing


@pytest.fixture(scope="module")
def full_store(tmp_path_factory):
    return solved(
        tmp_path_factory.mktemp("whole"), count=10, shard=4, store={"quantities": ["positions", "energies"]}
    )


@pytest.fixture
def copy(full_store, tmp_path):
    shutil.copytree(full_store.path, tmp_path / "copy.zarr")
    return Store(tmp_path / "copy.zarr")


def test_zarr_reads_equal_arrays(full_store):
    zarr = pytest.importorskip("zarr")
    group, data = zarr.open_group(full_store.path, mode="r"), supple.data.open(full_store.path)
    assert np.array_equal(group["samples/positions"][:], data["positions"][:])
    assert np.array_equal(group["samples/body_energies"][7], data["body_energies"][7])
    for name, values in (data.inputs | {}).items():
        assert np.array_equal(group[f"inputs/{name}"][:], values)
    assert np.array_equal(group["report/energy"][:], data["energy"])
    assert np.array_equal(group["splits/train"][:], data.split("train"))
    assert np.array_equal(group["rest/cells"][:], data["cells"])
    assert group["samples/positions"].chunks == (1, 12, 3)
    assert group["samples/positions"].shards == (4, 12, 3)


def test_missing_middle_shard_is_missing_in_zarr(copy):
    zarr = pytest.importorskip("zarr")
    os.remove(copy.file("positions", 1))
    discard(copy, [1])
    data = supple.data.open(copy.path)
    assert list(data.ids) == [0, 1, 2, 3, 8, 9]
    assert np.isnan(data["positions"][5]).all()
    read = zarr.open_group(copy.path, mode="r")["samples/positions"][:]
    assert np.array_equal(read, data["positions"][:], equal_nan=True)


def test_checksum_is_crc32c():
    assert crc32c(b"123456789") == 0xE3069283


def test_statistics_equal_those_of_the_samples(full_store):
    data = supple.data.open(full_store.path)
    train = data.split("train")
    assert 0 < len(train) < len(data.ids)
    every = data["positions"][train].reshape(-1, 3)
    statistics = data.stats["positions"]
    assert np.allclose(statistics["mean"], every.mean(axis=0))
    assert np.allclose(statistics["std"], every.std(axis=0))
    assert np.allclose(statistics["rms"], np.sqrt((every**2).mean(axis=0)))
    assert np.array_equal(statistics["max"], every.max(axis=0))
    assert np.allclose(data.stats["young"]["mean"], data.inputs["young"][train].mean())


def test_valid_store_is_verified(full_store):
    verdict = verify(full_store, samples=2)
    assert verdict.good
    assert verdict.chunks == 20
    assert len(verdict.solved) == 2


@pytest.mark.parametrize("where", ["chunk", "index", "cut", "gone", "account"])
def test_damage_is_detected_and_repaired(copy, full_store, where):
    path = copy.file("positions", 1)
    content = bytearray(path.read_bytes())
    if where == "chunk":
        content[100] ^= 1
    elif where == "index":
        content[-30] ^= 1
    elif where == "cut":
        content = content[: len(content) // 2]
    path.write_bytes(content)
    if where == "gone":
        path.unlink()
    if where == "account":
        copy.manifest_file(1).write_text(copy.manifest_file(1).read_text()[:-40])
    verdict = verify(copy, samples=0)
    assert verdict.damaged == [1]
    assert str(path if where != "account" else copy.manifest_file(1)) in verdict.problems[0]
    discard(copy, verdict.damaged)
    Shards(copy).run(1)
    write_summary(copy)
    assert verify(copy, samples=0).good
    assert sample_bytes(copy) == sample_bytes(full_store)


def test_wrong_sample_is_detected_by_solving_again(copy):
    manifest = json.loads(copy.manifest_file(0).read_text())
    chunks = [x + 0.01 for x in supple.data.open(copy.path)["positions"][:4]]
    energies = list(supple.data.open(copy.path)["body_energies"][:4])
    report = {k: [float(v) if isinstance(v, str) else v for v in c] for k, c in manifest["report"].items()}
    copy.publish(0, {"positions": chunks, "body_energies": energies}, report, manifest)
    verdict = verify(copy, samples=10)
    assert not verdict.good
    assert all("solved again, differs by 1.0e-02 of the size" in sentence for sentence in verdict.problems)
    assert len(verdict.problems) == 4


def test_store_of_another_spec_is_refused_and_kept(copy, tmp_path):
    before = sample_bytes(copy)
    with pytest.raises(
        DatasetError,
        match=r"another spec, scene or design.*different are count, "
        r"store.*--overwrite",
    ):
        make_store(load_spec(spec_of(tmp_path, count=11)), copy.path)
    assert sample_bytes(copy) == before
    store = make_store(load_spec(spec_of(tmp_path, count=11)), copy.path, overwrite=True)
    assert store.count == 11
    assert not store.finished_shards()
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "me.png").write_bytes(b"")
    with pytest.raises(DatasetError, match="is not a data set, so it is not deleted"):
        make_store(load_spec(spec_of(tmp_path)), tmp_path / "photos", overwrite=True)
    with pytest.raises(DatasetError, match="is not a data set"):
        make_store(load_spec(spec_of(tmp_path)), tmp_path / "photos")


def test_wrong_design_overwrites_nothing(tmp_path):
    table = tmp_path / "values.csv"
    table.write_text("g\n-1\nnan\n")
    vary = [{"path": "gravity.y", "name": "g"}]
    store = make_store(load_spec(spec_of(tmp_path, count=2)), tmp_path / "set.zarr")
    before = store.facts
    spec = load_spec(spec_of(tmp_path, count=None, design="table", table=str(table), vary=vary))
    with pytest.raises(DatasetError, match="nan"):
        make_store(spec, store.path, overwrite=True)
    assert Store(store.path).facts == before
    table.write_text("g\n-1\n-2\n-3\n")
    assert make_store(spec, store.path, overwrite=True).count == 3


def test_changed_scene_is_refused(tmp_path):
    store = make_store(load_spec(spec_of(tmp_path)), tmp_path / "set.zarr")
    spec = spec_of(tmp_path)
    path = tmp_path / "bar.toml"
    path.write_text(path.read_text().replace("density = 100", "density = 101"))
    with pytest.raises(DatasetError, match="its scene is different"):
        make_store(load_spec(spec), store.path)


@pytest.mark.parametrize("failing", ["samples/positions", "shards/000001.json"])
def test_full_disk_leaves_no_partial_files(tmp_path, monkeypatch, failing):
    store = make_store(load_spec(spec_of(tmp_path, count=8)), tmp_path / "set.zarr")
    shards = Shards(store)
    shards.run(0)
    real = arrays.replacing

    def full(path):
        if failing in path.as_posix():
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return real(path)

    monkeypatch.setattr(arrays, "replacing", full)
    with pytest.raises(OSError, match="No space left on device"):
        shards.run(1)
    assert store.finished_shards() == [0]
    finish_now = reports(store)
    assert (finish_now["outcome"][4:] == 0).all()
    assert np.isnan(supple.data.open(store.path)["positions"][4:]).all()
    assert not list(store.path.rglob(".unfinished*"))
    monkeypatch.setattr(arrays, "replacing", real)
    shards.run(1)
    assert store.finished_shards() == [0, 1]
    assert verify(store, samples=0).good


@pytest.mark.parametrize("failing", ["report/iterations", "splits/train", "stats/"])
def test_truncated_reports_are_rewritten_by_the_next_run(tmp_path, monkeypatch, failing):
    """All samples are solved, and only derived files are missing."""
    store = make_store(load_spec(spec_of(tmp_path, count=4)), tmp_path / "set.zarr")
    Shards(store).run(0)
    real = arrays.replacing

    def full(path):
        if failing in path.as_posix():
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(arrays, "replacing", full)
        with pytest.raises(OSError, match="No space left on device"):
            run_store(store, Share())
    assert not is_summary_current(store)
    assert (reports(store)["outcome"] == 1).all()
    run_store(store, Share())
    assert is_summary_current(store)
    assert len(supple.data.open(store.path).split("train")) <= 4
    assert (store.path / "stats" / "positions" / "zarr.json").exists()


def test_killed_creation_leaves_no_store_without_card(tmp_path, monkeypatch):
    """A store appears only when it is complete."""

    def killed(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(creating, "card", killed)
        with pytest.raises(KeyboardInterrupt):
            make_store(load_spec(spec_of(tmp_path)), tmp_path / "set.zarr")
    assert not (tmp_path / "set.zarr").exists()
    store = make_store(load_spec(spec_of(tmp_path)), tmp_path / "set.zarr")
    assert 'supple.data.open("set.zarr")' in (store.path / "README.md").read_text()


def test_leftovers_of_killed_workers_are_removed(tmp_path):
    store = make_store(load_spec(spec_of(tmp_path, count=4)), tmp_path / "set.zarr")
    mine = replacing.temporary_path(store.path / "shards" / "000000.json")
    host, process = mine.name.split("_")[1:3]
    dead = mine.with_name(mine.name.replace(f"_{process}_", "_999999999_"))
    elsewhere = mine.with_name(mine.name.replace(f"_{host}_", "_another_"))
    old = elsewhere.with_name(elsewhere.name.replace("000000", "000001"))
    leftover = replacing.temporary_path(store.path).name.replace(f"_{process}_", "_999999999_")
    (tmp_path / leftover).mkdir()
    for path in (mine, dead, elsewhere, old):
        path.touch()
    os.utime(old, (0, 0))
    run_store(store, Share(), workers=1)
    assert [path.exists() for path in (mine, dead, elsewhere, old)] == [True, False, True, False]
    assert not (tmp_path / leftover).exists()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder_is_refused(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o500)
    with pytest.raises(PermissionError, match="closed"):
        make_store(load_spec(spec_of(tmp_path)), folder / "set.zarr")


def test_unwritable_folder_is_refused(tmp_path, monkeypatch):
    """Simulates a read-only folder, also for tests that run as root."""

    def refuse(path, *rest):
        raise PermissionError(errno.EACCES, "Permission denied", str(path / "zarr.json"))

    monkeypatch.setattr(creating, "write_empty", refuse)
    with pytest.raises(PermissionError, match=r"set\.zarr/zarr.json"):
        make_store(load_spec(spec_of(tmp_path)), tmp_path / "set.zarr")
    assert not list(tmp_path.glob("*.zarr"))
    assert not list(tmp_path.glob(".unfinished*"))


def test_shares_of_a_job_array_merge_into_the_full_store(tmp_path, full_store):
    spec = spec_of(full_store.path.parent, count=10, shard=4, store={"quantities": ["positions", "energies"]})
    parts = [make_store(load_spec(spec), tmp_path / f"part{k}.zarr") for k in range(2)]
    for k, part in enumerate(parts):
        shards = Shards(part)
        for shard in Share(k, 2).select(range(part.shards)):
            shards.run(shard)
    assert [part.finished_shards() for part in parts] == [[0, 2], [1]]
    merged = merge(tmp_path / "all.zarr", [part.path for part in parts])
    assert sample_bytes(merged) == sample_bytes(full_store)
    assert len(supple.data.open(merged.path).ids) == 10
    other = make_store(load_spec(spec | {"seed": 9}), tmp_path / "other.zarr")
    with pytest.raises(DatasetError, match="they cannot be merged"):
        merge(merged.path, [other.path])


def test_shares_are_written_i_of_n():
    assert parse_share("3/16") == Share(3, 16)
    assert parse_share(None) == Share(0, 1)
    for wrong in ("16/16", "1-2", "x", "1/0"):
        with pytest.raises(DatasetError, match="i from 0 to N-1"):
            parse_share(wrong)
    with pytest.raises(DatasetError, match="--overwrite cannot be combined with --shards"):
        parse_share("0/2", overwrite=True)
    assert parse_share(None, overwrite=True) == Share()
    every = [Share(k, 3).select(range(10)) for k in range(3)]
    assert sorted(shard for share in every for shard in share) == list(range(10))


def test_finished_store_is_untouched(full_store):
    before = {path: path.stat().st_mtime_ns for path in full_store.path.rglob("*")}
    run_store(full_store, Share(), workers=1)
    assert {path: path.stat().st_mtime_ns for path in full_store.path.rglob("*")} == before
