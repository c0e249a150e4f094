"""Unexpected errors end one sample, not the data set, and are reported with their sample."""

import json
from itertools import islice

import numpy as np
import pytest
from dataset_scenes import sample_bytes, solved, spec_of
from typer.testing import CliRunner

import supple
from supple.api.equilibria import BatchSolver
from supple.cli import app
from supple.datasets.errors import DatasetError
from supple.datasets.run import ray_backend as on_ray
from supple.datasets.run.create import make_store
from supple.datasets.run.ray_backend import run_ray
from supple.datasets.run.run_dataset import Share, run_store
from supple.datasets.run.sampler import Sampler
from supple.datasets.run.shard import Shards
from supple.datasets.run.store_verification import verify
from supple.datasets.run.worker_pool import _sendable
from supple.datasets.spec.dataset_spec import load_spec
from supple.datasets.store.journal import release_failed
from supple.datasets.store.status import status
from supple.datasets.store.summary import write_summary


def failing(monkeypatch, chosen, error=None, name="_solve_problem"):
    """Make solves fail under the conditions with a true `select(force)`."""
    real = getattr(Sampler, name)

    def solve(self, model, conditions, *rest):
        if chosen(conditions):
            raise error or ValueError("operands could not be broadcast together with shapes (54,3) (55,3)")
        return real(self, model, conditions, *rest)

    monkeypatch.setattr(Sampler, name, solve)
    monkeypatch.setattr("supple.datasets.run.sampler.equilibrium", lambda *given, **options: 1 / 0)


def heavy(conditions):
    return conditions.force[:, 1].sum() < -150


def test_crashed_sample_is_reported_and_others_are_solved(tmp_path, monkeypatch):
    full_store = solved(tmp_path, "whole.zarr", count=8, shard=4, solve={"initial": "cold"})
    failing(monkeypatch, heavy)
    store = solved(tmp_path, "set.zarr", count=8, shard=4, solve={"initial": "cold"})
    data, others = supple.data.open(store.path), supple.data.open(full_store.path)
    crashed = np.flatnonzero(data.outcomes == "crashed")
    assert 0 < len(crashed) < 8
    assert np.array_equal(np.flatnonzero(data["g"] < -6), crashed)
    assert np.array_equal(np.setdiff1d(np.arange(8), crashed), data.ids)
    assert np.array_equal(data["positions"][data.ids], others["positions"][data.ids])
    assert np.isnan(data["positions"][crashed]).all()
    progress = status(store)
    assert progress["outcomes"]["crashed"] == len(crashed)
    for sample in crashed:
        sentence = progress["failures"][str(sample)]
        assert "ValueError: operands could not be broadcast" in sentence
        assert "test_dataset_crashes.py, line" in sentence
    assert verify(store, samples=0).complete


def test_crash_from_one_start_is_retried_from_the_next(tmp_path, monkeypatch):
    calls = []

    def warm(conditions):
        calls.append(1)
        return conditions.initial is not cold and len(calls) % 2

    store = make_store(load_spec(spec_of(tmp_path, count=8, shard=8)), tmp_path / "set.zarr")
    shards = Shards(store)
    cold = shards.sampler.cold
    failing(monkeypatch, warm)
    shards.run(0)
    write_summary(store)
    data = supple.data.open(store.path)
    assert len(data.ids) == 8
    assert data["retries"].any()


@pytest.mark.parametrize("where", ["contact", "force"])
def test_samples_that_fail_in_evaluation_or_setup_are_crashed(tmp_path, monkeypatch, where):
    spec = load_spec(spec_of(tmp_path, count=4, shard=4, store={"quantities": ["positions", "von_mises"]}))
    shards = Shards(make_store(spec, tmp_path / "set.zarr"))
    if where == "contact":
        monkeypatch.setattr("supple.postprocess.evaluate.evaluate_model", lambda *given: 1 / 0)
    else:
        monkeypatch.setattr(
            "supple.datasets.spec.parametric_scene.VectorizedConditions.conditions", lambda *given: 1 / 0
        )
        monkeypatch.setattr("supple.datasets.spec.parametric_scene.Source.conditions", lambda *given: 1 / 0)
    shards.run(0)
    write_summary(shards.store)
    assert list(supple.data.open(shards.store.path).outcomes) == ["crashed"] * 4


def test_crashed_batch_is_solved_one_by_one(tmp_path, monkeypatch):
    """As on a GPU, with several samples at once; the CPU refuses batches of two."""
    sampler = Shards(
        make_store(load_spec(spec_of(tmp_path, count=6, shard=6)), tmp_path / "set.zarr")
    ).sampler
    values = [{"g": g, "young": 1e4, "angle": 0.2} for g in (-1.0, -10.0, -2.0, -3.0, -4.0)]
    single_results = [sampler.solve(each, [None]) for each in values]
    chunks, real = [], BatchSolver.solve

    def solve(self, chunk):
        chunks.append(len(chunk))
        if any(map(heavy, chunk)):
            raise RuntimeError("the third launch failed")
        return real(self, chunk)

    monkeypatch.setattr(BatchSolver, "solve", solve)
    monkeypatch.setattr(BatchSolver, "next_batch", lambda self, every: list(islice(every, 2)))
    monkeypatch.setattr("supple.datasets.run.sampler.equilibrium", lambda *given, **options: 1 / 0)
    results = list(sampler.solve_all(values, [None] * 5))
    assert chunks == [2, 1, 1, 2, 1, 1, 1]
    assert [each.crashed for each in results] == [False, True, False, False, False]
    assert "the third launch failed" in results[1].sentence
    for each, other in zip(results, single_results, strict=True):
        if each.ok:
            assert np.abs(each.measured.positions - other.measured.positions).max() < 3e-4


def test_status_reports_that_no_sample_could_be_solved(tmp_path, monkeypatch):
    failing(monkeypatch, lambda conditions: True)
    store = solved(tmp_path, count=3, shard=3)
    outcome = CliRunner().invoke(app, ["dataset", "status", str(store.path)])
    assert "3 samples: 3 crashed" in outcome.stdout
    assert "no sample has reached its tolerance" in outcome.stderr
    assert "sample 0: " in outcome.stderr
    assert CliRunner().invoke(app, ["dataset", "resume", str(store.path), "--quiet"]).exit_code == 1


def test_system_errors_are_not_attributed_to_samples(tmp_path, monkeypatch):
    """Lack of memory and disk errors end the run."""
    store = make_store(load_spec(spec_of(tmp_path, count=3, shard=3)), tmp_path / "set.zarr")
    for error in (MemoryError(), OSError(5, "Input/output error")):
        with monkeypatch.context() as patch:
            failing(patch, lambda conditions: True, error)
            with pytest.raises(type(error)):
                Shards(store).run(0)
    assert not store.finished_shards()
    Shards(store).run(0)
    assert sample_bytes(store) == sample_bytes(solved(tmp_path, "whole.zarr", count=3, shard=3))


def test_errors_outside_solves_name_the_shard(tmp_path, monkeypatch):
    store = make_store(load_spec(spec_of(tmp_path, count=3, shard=3)), tmp_path / "set.zarr")
    shards = Shards(store)
    with monkeypatch.context() as patch:
        patch.setattr("supple.datasets.run.shard.Neighbors", lambda count: [][count])
        with pytest.raises(RuntimeError, match=r"set\.zarr: shard 0 cannot be solved: IndexError") as caught:
            shards.run(0)
    assert "shard 0 cannot be solved" in str(_sendable(caught.value))
    monkeypatch.setattr("supple.datasets.run.sampler.is_batched", lambda *given: int("x"))
    with pytest.raises(DatasetError, match=r"set\.zarr: none of its samples can be solved: invalid literal"):
        Shards(store)


class DeadRay:
    """A cluster whose raylet dies while it solves."""

    class exceptions:  # noqa: N801
        class RayError(Exception):
            pass

        class RayTaskError(RayError):
            pass

        class WorkerCrashedError(RayError):
            pass

        class OutOfMemoryError(RayError):
            pass

        class LocalRayletDiedError(RayError):
            pass

    def __init__(self, where):
        self.where = where

    def is_initialized(self):
        return True

    def remote(self, **options):
        return lambda function: self

    def fails(self, where):
        if self.where == where:
            raise self.exceptions.LocalRayletDiedError("The task's local raylet died.")
        return ["task"], []

    def remote_call(self, path, shard):
        return "task"

    def wait(self, tasks, num_returns):
        return self.fails("wait")

    def get(self, task):
        return self.fails("get")

    def cancel(self, task, force):
        raise RuntimeError("no cluster")


@pytest.mark.parametrize("where", ["wait", "get"])
def test_dead_ray_cluster_is_reported(tmp_path, monkeypatch, where):
    store = make_store(load_spec(spec_of(tmp_path, count=2, shard=1)), tmp_path / "set.zarr")
    dead = DeadRay(where)
    dead.remote = lambda *given, **options: (lambda function: dead) if options else "task"
    tasks = iter("ab")
    dead.remote = lambda *given, **options: (lambda function: dead) if options else next(tasks)
    dead.wait = lambda waiting, num_returns: (dead.fails("wait") and waiting[:1], waiting[1:])
    monkeypatch.setitem(__import__("sys").modules, "ray", dead)
    with pytest.raises(DatasetError, match=r"Ray cluster.* was lost .*raylet died.*dataset resume") as caught:
        run_ray(store.path, [0, 1], None, lambda ids: None, store)
    assert "defect" not in str(caught.value)
    assert on_ray.run_ray is run_ray


def test_errors_of_ray_have_the_expected_base_class():
    exceptions = pytest.importorskip("ray").exceptions
    for name in ("LocalRayletDiedError", "NodeDiedError", "OwnerDiedError", "RaySystemError"):
        error = getattr(exceptions, name)
        assert issubclass(error, exceptions.RayError)
        assert not issubclass(error, exceptions.RayTaskError | exceptions.WorkerCrashedError)


def test_status_excludes_inverted_samples(tmp_path):
    """A sample with inverted elements is in no part, even if its outcome is converged."""
    store = solved(tmp_path, count=4, shard=4)
    manifest = store.manifest(0)
    positions = list(supple.data.open(store.path)["positions"][:])
    manifest["report"]["inverted"][2] = 5
    columns = {
        name: [float(v) if isinstance(v, str) else v for v in column]
        for name, column in manifest["report"].items()
    }
    store.publish(0, {"positions": positions}, columns, manifest)
    write_summary(store)
    data = supple.data.open(store.path)
    assert list(data.ids) == [0, 1, 3]
    assert not any(2 in data.split(part) for part in ("train", "valid", "test"))
    command_result = CliRunner().invoke(app, ["dataset", "status", str(store.path)])
    assert "1 sample with inverted elements" in command_result.stderr
    assert "1 sample excluded from splits and exports" in command_result.stderr
    progress = json.loads(CliRunner().invoke(app, ["dataset", "status", str(store.path), "--json"]).stdout)
    assert (progress["good"], progress["inverted"]) == (3, 1)


def test_failed_samples_are_solved_again(tmp_path, monkeypatch):
    """After the cause is removed, the store equals bitwise one without failures."""
    options = {"count": 8, "shard": 4, "solve": {"initial": "cold"}}
    full_store = solved(tmp_path, "whole.zarr", **options)
    with monkeypatch.context() as patch:
        failing(patch, heavy)
        store = solved(tmp_path, "set.zarr", **options)
    crashed = set(np.flatnonzero(supple.data.open(store.path).outcomes == "crashed"))
    command_result = CliRunner().invoke(app, ["dataset", "status", str(store.path)])
    assert f"dataset resume {store.path} --retry-failed" in " ".join(command_result.stderr.split())
    resume = ["dataset", "resume", str(store.path), "--workers", "1", "--json"]
    assert json.loads(CliRunner().invoke(app, resume).stdout)["good"] == 8 - len(crashed)
    outcome = CliRunner().invoke(app, [*resume, "--retry-failed"])
    assert (outcome.exit_code, json.loads(outcome.stdout)["good"]) == (0, 8)
    assert sample_bytes(store) == sample_bytes(full_store)
    assert verify(store, samples=0).complete
    assert release_failed(store, store.finished_shards()) == 0


def test_released_shards_solve_only_their_failed_samples(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        failing(patch, heavy)
        store = solved(tmp_path, count=8, shard=8, solve={"initial": "cold"})
    crashed = np.flatnonzero(supple.data.open(store.path).outcomes == "crashed")
    assert 0 < release_failed(store, store.finished_shards()) == len(crashed)
    assert not store.finished_shards()
    calls, real = [], Shards._solve_sample
    monkeypatch.setattr(Shards, "_solve_sample", lambda *given: calls.append(given[1]) or real(*given))
    Shards(store).run(0)
    write_summary(store)
    assert calls == list(crashed)
    assert len(supple.data.open(store.path).ids) == 8


def test_failed_samples_are_solved_again_from_python(tmp_path, monkeypatch):
    spec = spec_of(tmp_path, count=6, shard=3)
    with monkeypatch.context() as patch:
        failing(patch, lambda conditions: True)
        data = supple.data.open(solved(tmp_path, count=6, shard=3).path)
    assert list(data.outcomes) == ["crashed"] * 6
    data = supple.dataset(spec, tmp_path / "set.zarr", workers=1, shards="0/2", retry_failed=True)
    assert list(data.ids) == [0, 1, 2]
    assert len(supple.dataset(spec, tmp_path / "set.zarr", workers=1, retry_failed=True).ids) == 6


def test_damaged_samples_are_not_reused_by_a_retry(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        failing(patch, heavy)
        store = solved(tmp_path, count=8, shard=8, solve={"initial": "cold"})
    path = store.file("positions", 0)
    content = bytearray(path.read_bytes())
    content[16] ^= 1
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=r"is damaged: its checksum is wrong.*--discard"):
        run_store(store, Share(), workers=1, retry_failed=True)
    assert store.finished_shards() == [0]
