"""Extended stores keep their samples, ids and parts."""

import os

import numpy as np
import pytest
from dataset_scenes import SCENE, VARY, sample_bytes, solved, spec_of, write_box

import supple
from supple.datasets.errors import DatasetError
from supple.datasets.run.create import make_store
from supple.datasets.run.run_dataset import Share, run_store
from supple.datasets.run.shard import Shards
from supple.datasets.run.store_verification import verify
from supple.datasets.spec.dataset_spec import load_spec
from supple.datasets.store.dataset_store import Store
from supple.io.errors import ResultsError
from supple.io.lock import hold_lock

LIMITS = {"max_iterations": 1, "initial": "cold", "tolerance": 1e-9}


def write_summary(store):
    run_store(store, Share(), workers=1)
    return supple.data.open(store.path)


@pytest.mark.parametrize("design", ["random", "sobol", "latin_hypercube"])
def test_extended_store_keeps_values_ids_and_parts(tmp_path, design):
    store = solved(tmp_path, count=10, shard=4, design=design)
    before = supple.data.open(store.path)
    values = {name: column.copy() for name, column in before.inputs.items()}
    positions, parts = before["positions"][:].copy(), {n: before.split(n) for n in ("train", "valid", "test")}
    full = {name: content for name, content in sample_bytes(store).items() if "c/2/" not in name}
    spec = load_spec(spec_of(tmp_path, count=15, shard=4, design=design))
    extended = make_store(spec, store.path, grow=True)
    assert (extended.count, extended.previous_counts, extended.finished_shards()) == (15, [10], [0, 1])
    data = write_summary(extended)
    assert list(data.ids) == list(range(15))
    for name, column in values.items():
        assert np.array_equal(data.inputs[name][:10], column)
        assert len(np.unique(data.inputs[name])) == 15
    assert np.array_equal(data["positions"][:10], positions)
    for name, ids in parts.items():
        assert set(ids) == set(data.split(name)[data.split(name) < 10])
    samples = sample_bytes(extended)
    assert all(samples[name] == content for name, content in full.items() if "zarr.json" not in name)
    assert verify(extended, samples=2).good
    assert [path.name for path in tmp_path.glob("*.zarr")] == ["set.zarr"]
    assert not list(tmp_path.glob(".*.zarr"))
    again = make_store(spec, store.path)
    assert again.facts["identity"] == extended.facts["identity"], "the spec is that of the grown store"
    extended_again = make_store(
        load_spec(spec_of(tmp_path, count=17, shard=4, design=design)), store.path, grow=True
    )
    assert (extended_again.previous_counts, extended_again.finished_shards()) == ([10, 15], [0, 1, 2])
    assert np.array_equal(extended_again.inputs["g"][:15], data.inputs["g"])


def test_last_shard_is_completed(tmp_path, monkeypatch):
    store = solved(tmp_path, count=6, shard=4)
    extended = make_store(load_spec(spec_of(tmp_path, count=8, shard=4)), store.path, grow=True)
    solved_samples = []
    real = Shards._solve_sample
    monkeypatch.setattr(
        Shards, "_solve_sample", lambda self, n, *rest: solved_samples.append(n) or real(self, n, *rest)
    )
    Shards(extended).run(1)
    assert solved_samples == [6, 7]


def test_stores_grow_only_with_the_grow_option(tmp_path):
    store = solved(tmp_path, count=4, shard=4)
    spec = load_spec(spec_of(tmp_path, count=6, shard=4))
    with pytest.raises(DatasetError, match=r"different are count.*or let it grow with --grow\."):
        make_store(spec, store.path)
    other = load_spec(spec_of(tmp_path, count=6, shard=4, seed=2))
    with pytest.raises(DatasetError, match="cannot grow into this spec: different are count, seed"):
        make_store(other, store.path, grow=True)
    fewer = load_spec(spec_of(tmp_path, count=3, shard=4))
    with pytest.raises(DatasetError, match="another spec"):
        make_store(fewer, store.path, grow=True)
    assert np.array_equal(supple.data.open(store.path).ids, range(4))


def test_tables_grow_at_their_end(tmp_path):
    table = tmp_path / "values.csv"
    table.write_text("g\n-1\n-5\n-3\n")
    changes = {
        "design": "table",
        "table": str(table),
        "count": None,
        "vary": [{"path": "gravity.y", "name": "g"}],
    }
    store = solved(tmp_path, shard=2, **changes)
    table.write_text("g\n-1\n-5\n-3\n-2\n")
    data = supple.dataset(spec_of(tmp_path, shard=2, **changes), store.path, workers=1, grow=True)
    assert sorted(data.inputs["g"][:3]) == [-5, -3, -1]
    assert data.inputs["g"][3] == -2
    assert list(data.ids) == [0, 1, 2, 3]
    table.write_text("g\n-7\n-5\n-3\n-2\n-8\n")
    with pytest.raises(
        DatasetError, match=r"the first 4 values of .g. differ from those in the store.*at the end of a table"
    ):
        make_store(load_spec(spec_of(tmp_path, shard=2, **changes)), store.path, grow=True)


def test_failed_samples_stay_failed(tmp_path):
    """Their report rows are kept."""
    vary = [*VARY[:2], {"path": "pin.end.motion.rotate.angle", "name": "angle", "range": [-1, 1]}]
    store = solved(tmp_path, count=3, shard=4, vary=vary, solve=LIMITS)
    failed = supple.data.open(store.path).outcomes
    assert "converged" not in failed
    spec = spec_of(tmp_path, count=4, shard=4, vary=vary, solve=LIMITS)
    extended = make_store(load_spec(spec), store.path, grow=True)
    Shards(extended).run(0)
    data = supple.data.open(extended.path)
    assert list(data.outcomes[:3]) == list(failed)
    assert np.isnan(data["positions"][0]).all()


def test_files_of_the_scene_must_be_unchanged(tmp_path):
    """Otherwise a set would mix samples of two scenes."""
    below = tmp_path / "below.obj"
    write_box(below, top=-0.2)
    scene = tmp_path / "beside.toml"
    obstacle = '[[obstacle]]\nshape = { surface = { file = "below.obj" } }\n\n[[force]]'
    scene.write_text(SCENE.replace("[[force]]", obstacle))
    changes = {"scene": str(scene), "vary": VARY[:1], "shard": 2}
    store = make_store(load_spec(spec_of(tmp_path, count=2, **changes)), tmp_path / "set.zarr")
    Shards(store).run(0)
    write_box(below, top=-0.8)
    more = load_spec(spec_of(tmp_path, count=4, **changes))
    with pytest.raises(
        DatasetError, match=r"cannot grow into this spec: its scene uses other files now: below\.obj"
    ):
        make_store(more, store.path, grow=True)
    with pytest.raises(DatasetError, match=r"its scene uses other files now: below\.obj"):
        make_store(load_spec(spec_of(tmp_path, count=2, **changes)), store.path)
    assert Store(store.path).count == 2
    Shards(store).run(0)  # has a copy of its own
    write_box(store.path / "files" / "below.obj", top=-0.8)
    with pytest.raises(DatasetError, match=r"files/below\.obj is damaged or was edited"):
        Shards(store)


def test_unfinished_shards_keep_their_journal(tmp_path, monkeypatch):
    store = make_store(load_spec(spec_of(tmp_path, count=8, shard=4)), tmp_path / "set.zarr")

    def stop(samples):
        if 6 in samples:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Shards(store).run(1, stop)
    extended = make_store(load_spec(spec_of(tmp_path, count=10, shard=4)), store.path, grow=True)
    solved_samples = []
    real = Shards._solve_sample
    monkeypatch.setattr(
        Shards, "_solve_sample", lambda self, n, *rest: solved_samples.append(n) or real(self, n, *rest)
    )
    Shards(extended).run(1)
    assert solved_samples == [7]


def test_writing_to_a_concurrently_extended_set_is_refused(tmp_path):
    store = make_store(load_spec(spec_of(tmp_path, count=3, shard=4)), tmp_path / "set.zarr")
    shards = Shards(store)
    more = load_spec(spec_of(tmp_path, count=4, shard=4))
    with (
        hold_lock(store.path, outside=True),
        pytest.raises(ResultsError, match=r"set\.zarr is being written by process"),
    ):
        make_store(more, store.path, grow=True)
    extended = make_store(more, store.path, grow=True)
    with pytest.raises(DatasetError, match="has grown or was replaced during this solve"):
        shards.run(0)
    assert not extended.finished_shards()
    with pytest.raises(DatasetError, match="--grow cannot be combined with --shards"):
        supple.dataset(more, store.path, shards="0/2", grow=True)
    assert not list(tmp_path.glob(".*"))


def test_set_is_restored_after_a_kill_during_extension(tmp_path):
    store = solved(tmp_path, count=2, shard=4)
    aside = tmp_path / ".replaced_another_999999999_0123abcd_set.zarr"
    store.path.rename(aside)
    assert Store(store.path).finished_shards() == [0]
    store.path.rename(aside)
    assert make_store(load_spec(spec_of(tmp_path, count=2)), store.path).finished_shards() == [0]
    aside.mkdir()
    mine = tmp_path / ".replaced_another_999999999_0123abcd_my_set.zarr"
    mine.mkdir()
    for folder in (aside, mine):
        os.utime(folder, (0, 0))
    store.clear_abandoned()
    assert not aside.exists()
    assert mine.exists(), "of another set"
