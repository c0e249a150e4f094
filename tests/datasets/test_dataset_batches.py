"""Data sets on a fake device: batches equal single solves."""

import numpy as np
import pytest
from dataset_scenes import VARY, solved, spec_of
from fake_device import fake_device  # noqa: F401

import supple
from supple.datasets.run.create import make_store
from supple.datasets.run.run_dataset import MAX_DEVICE_PROCESSES, _worker_counts
from supple.datasets.run.shard import Shards
from supple.datasets.spec.dataset_spec import load_spec
from supple.datasets.store.status import status

pytestmark = pytest.mark.usefixtures("fake_device")


@pytest.mark.parametrize("start", ["predicted", "cold"])
def test_batches_equal_single_solves(tmp_path, start):
    """Young's modulus varies too, so that every batch member has its own material."""
    on = {"device": "cuda", "initial": start, "check": 0.3, "tolerance": 1e-5}
    stores = [
        solved(tmp_path, f"{device}.zarr", count=44, shard=44, solve=on | {"device": device})
        for device in ("cuda", "cpu")
    ]
    batch, single = (supple.data.open(store.path) for store in stores)
    assert list(batch.ids) == list(range(44))
    assert np.abs(batch["positions"][:] - single["positions"][:]).max() < 1e-3
    assert np.ptp(batch["positions"][:], axis=0).max() > 0.3
    gain = status(stores[0])["warm_starts"]
    if start == "cold":
        assert not batch["warm"].any()
        assert gain is None
    else:
        assert batch["warm"].sum() == 33, "three of four are predicted"
        assert gain["compared"] > 3
        assert gain["fewer_iterations"] >= 1, "those that arrive first wait to be certified with others"
        assert gain["lower_from_cold"] == 0


def test_invalid_values_do_not_shift_other_samples(tmp_path):
    """One row of a table is invalid, and its neighbors keep their samples."""
    table = tmp_path / "values.csv"
    table.write_text("young\n1e4\n-1\n2e4\n")
    changes = {"design": "table", "table": str(table), "count": None}
    changes |= {"vary": [{"path": VARY[1]["path"], "name": "young"}], "solve": {"device": "cuda"}}
    store = make_store(load_spec(spec_of(tmp_path, shard=3, **changes)), tmp_path / "set.zarr")
    Shards(store).run(0)
    data = supple.data.open(store.path)
    wrong = int(np.flatnonzero(data.inputs["young"] < 0)[0])
    assert list(data.outcomes == "invalid") == [k == wrong for k in range(3)]
    assert "young" in store.manifest(0)["failures"][str(wrong)]
    sag = {data.inputs["young"][k]: data["positions"][k][:, 1].mean() for k in data.ids}
    assert sag[1e4] < sag[2e4]


def test_several_workers_share_a_device(tmp_path, monkeypatch):
    monkeypatch.setattr("supple.datasets.run.run_dataset.default_threads", lambda: 16)
    spec = spec_of(tmp_path, count=40, shard=4, solve={"device": "cuda"})
    store = make_store(load_spec(spec), tmp_path / "set.zarr")
    assert _worker_counts(store, None, 10) == (MAX_DEVICE_PROCESSES, 16 // MAX_DEVICE_PROCESSES)
    assert _worker_counts(store, None, 2) == (2, 8), "no more than there are shards"
    assert _worker_counts(store, 3, 10) == (3, 5)


def test_workers_leave_a_share_of_the_memory(tmp_path, monkeypatch):
    from supple.api.equilibria import BatchSolver, bytes_per_member

    store = make_store(
        load_spec(spec_of(tmp_path, count=12, shard=12, solve={"device": "cuda"})), tmp_path / "set.zarr"
    )
    sampler = Shards(store).sampler
    each = bytes_per_member(sampler.model, "float64", sampler.request.solver)
    monkeypatch.setattr("supple.kernels.cuda.free_memory", lambda: 10 * each)
    every = [sampler.source.conditions({"g": -1.0 - k}) for k in range(12)]
    for share, count in ((1.0, 8), (0.5, 4), (0.01, 1)):
        batches = BatchSolver(sampler.model, sampler.request, share=share)
        assert len(batches.next_batch(iter(every))) == count
