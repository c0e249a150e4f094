"""Data sets on this machine: samples per second against a plain loop over `supple.equilibrium`, savings of
warm starts, and speed of opening and streaming a store. Figures come from one sequential run, so that ratios
are valid on a busy machine too; writes benchmarks/results/datasets.json.

With --device cuda: samples per second with storage against those of the solves alone, for 980 and 32,768
vertices; writes benchmarks/results/datasets_gpu.json."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import supple
from supple.api.equilibria import BatchSolver
from supple.datasets.run.create import make_store
from supple.datasets.run.run_dataset import MAX_DEVICE_PROCESSES, Share, run_store
from supple.datasets.run.shard import Shards
from supple.datasets.spec.dataset_spec import load_spec
from supple.datasets.store.status import status
from supple.io.machine import machine, versions

SCENE = """
gravity = [0, -9.8, 0]
[[solid]]
name = "bar"
mesh = { block = { cells = [19, 6, 6], size = [1, 0.3, 0.3] } }
material = { corotated = { young = 1e4, poisson = 0.3 } }
density = 100
[[pin]]
where = { side = "x-" }
[[pin]]
name = "end"
where = { side = "x+" }
motion = [
  { rotate = { axis = [1, 0, 0], center = [1, 0.15, 0.15], angle = 0.5 } },
  { translate = { offset = [0.1, 0, 0] } },
]
"""
VARY = [
    {"name": "g", "path": "gravity.y", "range": [-12, 0]},
    {"name": "young", "path": "solid.bar.material.young", "range": [5e3, 5e4], "scale": "log"},
    {"name": "poisson", "path": "solid.bar.material.poisson", "range": [0.2, 0.45]},
    {"name": "angle", "path": "pin.end.motion.rotate.angle", "range": [-1, 1]},
    {"name": "stretch", "path": "pin.end.motion.translate.offset.x", "range": [0, 0.3]},
    {"name": "lift", "path": "pin.end.motion.translate.offset.y", "range": [-0.2, 0.2]},
]
SWEEPS = '[solver]\nmethod = "pbng"\n'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--plain", type=int, default=200, help="samples of the plain loop")
    parser.add_argument("--warm", type=int, default=256, help="samples for what warm starts save")
    parser.add_argument("--stored", type=int, default=10_000, help="samples of the store that is streamed")
    parser.add_argument("--shard", type=int, default=None)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--workers", type=int, nargs="*", default=[None], help="of the sets on a device")
    parser.add_argument("--large", type=int, default=1024, help="samples of 32,768 vertices on a device")
    arguments = parser.parse_args()
    if arguments.device == "cuda":
        return on_device(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = {
            "machine": machine(),
            "versions": versions(),
            "rate": rate(folder, arguments.samples, arguments.plain, arguments.shard),
            "warm_starts": warm_starts(folder, arguments.warm),
            "reading": reading(folder, arguments.stored),
        }
    _write("datasets.json", results)


def _write(name: str, results: dict[str, Any]) -> None:
    path = Path(__file__).parent / "results" / name
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(results, indent=2))


def on_device(arguments: argparse.Namespace) -> None:
    """Rates for each number of workers, and without a store."""
    from supple.kernels.cuda import require_device

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = []
        for cells, samples, shard, estimate_distance in (
            ((19, 6, 6), arguments.samples, 1024, False),
            ((31, 31, 31), arguments.large, 128, False),
            ((19, 6, 6), arguments.samples // 8, 256, True),
        ):
            make = partial(_device_spec, folder, cells, estimate_distance)
            single = single_solves(folder, make, min(samples, arguments.shard or shard))
            print(f"{cells}: {single}", flush=True)
            for workers in arguments.workers:
                rows.append(stored(folder, make, samples, arguments.shard or shard, workers) | single)
                rows[-1]["certified"] = estimate_distance
                rows[-1]["part_of_solving_rate"] = (
                    rows[-1]["samples_per_second_once_started"] / single["solves_per_second"]
                )
                print(f"{cells}: {rows[-1]}", flush=True)
        results = {"device": require_device(), "machine": machine(), "versions": versions(), "sets": rows}
    _write("datasets_gpu.json", results)


def _device_spec(
    folder: Path, cells: tuple[int, int, int], estimate_distance: bool, samples: int, shard: int
) -> dict[str, Any]:
    """estimate_distance: solve to the default position tolerance, in addition to the relative residual."""
    size = SCENE.replace("cells = [19, 6, 6]", f"cells = {list(cells)}")
    scene = folder / f"bar{cells[1]}.toml"
    scene.write_text(size, encoding="utf-8")
    solve = {"device": "cuda", "precision": "float32", "initial": "cold"}
    solve |= {} if estimate_distance else {"position_tolerance": False}
    return {
        "scene": str(scene), "count": samples, "vary": VARY, "store": {"shard_size": shard}, "solve": solve,
    }  # fmt: skip


def stored(
    folder: Path, make: Callable[[int, int], dict[str, Any]], samples: int, shard: int, workers: int | None
) -> dict[str, Any]:
    """Time from spec to finished store; started: from the moment when as many shards were finished as there
    are workers."""
    store = make_store(load_spec(make(samples, shard)), folder / f"set_{workers}.zarr", True)
    seen: list[tuple[float, int]] = []
    began = perf_counter()
    run_store(store, Share(), workers, progress=lambda done, total: seen.append((perf_counter(), done)))
    seconds = perf_counter() - began
    begun = shard * (workers or MAX_DEVICE_PROCESSES)
    if 2 * begun > samples:  # too few for every worker to have done one before the clock starts
        begun = min(shard, samples)
    first, done = next(((t, n) for t, n in seen if n >= begun), seen[-1])
    progress = status(store)
    return {
        "vertices": int(store.facts["vertices"]),
        "samples": samples,
        "shard": shard,
        "workers": workers,
        "outcomes": progress["outcomes"],
        "samples_per_second": samples / seconds,
        "samples_per_second_once_started": (samples - done) / max(seen[-1][0] - first, 1e-9),
        "seconds_until_the_first": first - began,
        "seconds_after_the_last": began + seconds - seen[-1][0],
    }


def single_solves(folder: Path, make: Callable[[int, int], dict[str, Any]], samples: int) -> dict[str, Any]:
    """In this process, batch after batch: times of conditions, of a batch and of its solve, and the rate of a
    single worker."""
    store = make_store(load_spec(make(samples, samples)), folder / "alone.zarr", True)
    shards = Shards(store)
    source, values = shards.sampler.source, [shards.values(sample) for sample in range(samples)]
    source.conditions_of(values[:1])  # finds out how forces depend on them
    began = perf_counter()
    every = source.conditions_of(values)
    conditions = perf_counter() - began
    batches = BatchSolver(shards.sampler.model, shards.sampler.request)
    for _ in range(2):  # the first compiles
        batch, solving, left = 0.0, 0.0, iter(every)
        while chunk := batches.next_batch(left):
            began = perf_counter()
            _, _, reports = batches.solve(chunk)
            batch += perf_counter() - began
            solving += max(report.seconds for report in reports)
    batches.end()
    for _ in range(2):
        began = perf_counter()
        shards.run(0)
        worker = perf_counter() - began
    return {
        "one_worker_per_second": samples / worker,
        "microseconds_of_conditions": 1e6 * conditions / samples,
        "batches_per_second": samples / batch,
        "solves_per_second": samples / solving,
    }


def spec_of(folder: Path, count: int, shard: int | None, text: str = "", **changes: Any) -> dict[str, Any]:
    scene = folder / f"bar{len(text)}.toml"
    scene.write_text(SCENE + text, encoding="utf-8")
    return {
        "scene": str(scene),
        "count": count,
        "vary": VARY,
        "store": {"shard_size": shard} if shard else {},
    } | changes


def rate(folder: Path, samples: int, plain: int, shard: int | None) -> dict[str, Any]:
    """Rate from spec to finished store, with the start of workers, and of a loop over the samples: half of it
    before the set and half after it."""
    spec = load_spec(spec_of(folder, samples, shard))
    store = make_store(spec, folder / "rate.zarr")
    chosen = np.linspace(0, samples - 1, plain).astype(int)
    supple.equilibrium(_scene(store.inputs, 0))  # compiles
    used = process_time()
    before = _plain(store.inputs, chosen[::2])
    used = (process_time() - used) / len(chosen[::2])
    began, children = perf_counter(), _used_by_children()
    run_store(store, Share())
    seconds, children = perf_counter() - began, _used_by_children() - children
    after = _plain(store.inputs, chosen[1::2])
    each = (before + after) / plain
    progress = status(store)
    return {
        "vertices": int(store.facts["vertices"]),
        "samples": samples,
        "samples_per_second": samples / seconds,
        "outcomes": progress["outcomes"],
        "plain_loop_samples": plain,
        "plain_loop_per_second": 1 / each,
        "times_the_plain_loop": samples / seconds * each,
        "cpu_ms_per_sample": 1e3 * children / samples,
        "plain_loop_cpu_ms_per_sample": 1e3 * used,
        "warm_starts": progress["warm_starts"],
    }


def _used_by_children() -> float:
    """Processor seconds of ended workers, including their start."""
    import resource

    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _plain(inputs: dict[str, np.ndarray], chosen: np.ndarray) -> float:
    began = perf_counter()
    for sample in chosen:
        supple.equilibrium(_scene(inputs, int(sample)), tolerance=1e-4)
    return perf_counter() - began


def _scene(inputs: dict[str, np.ndarray], sample: int) -> supple.Scene:
    """The scene of a plain loop without data sets."""
    v = {name: float(column[sample]) for name, column in inputs.items()}
    scene = supple.Scene(gravity=(0, v["g"], 0))
    mesh = supple.block(cells=(19, 6, 6), size=(1, 0.3, 0.3))
    body = scene.add_solid(mesh, supple.Corotated(young=v["young"], poisson=v["poisson"]), density=100)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    turn = supple.Rotate(axis=(1, 0, 0), center=(1, 0.15, 0.15), angle=v["angle"])
    scene.pin(body.where(lambda X: X[:, 0] >= 1), turn + supple.Translate((v["stretch"], v["lift"], 0)))
    return scene


def warm_starts(folder: Path, samples: int) -> dict[str, Any]:
    """Sweeps of PBNG on designs of one quantity, along which samples are a path, and of six random ones."""
    designs = {"path": VARY[3:4], "random": VARY}
    results: dict[str, Any] = {}
    for name, vary in designs.items():
        sweeps = {}
        for start in ("cold", "neighbor", "predicted"):
            solve = {"initial": start, "check": 0.0}
            spec = spec_of(folder, samples, 128, SWEEPS, vary=vary, design="random", solve=solve)
            store = make_store(load_spec(spec), folder / f"{name}_{start}.zarr")
            run_store(store, Share())
            sweeps[start] = status(store)["iterations"] / samples
        results[name] = {
            "varied": len(vary),
            "sweeps": sweeps,
            "neighbor_saves": sweeps["cold"] / sweeps["neighbor"],
            "predicted_saves": sweeps["cold"] / sweeps["predicted"],
        }
    return results | {"samples": samples}


def reading(folder: Path, samples: int) -> dict[str, Any]:
    """Reading of a complete store: opening, single samples at random, and batches for a network."""
    store = make_store(load_spec(spec_of(folder, samples, 64)), folder / "reading.zarr")
    rng, n = np.random.default_rng(0), store.facts["vertices"]
    report = {name: [1] * 64 for name in ("outcome", "warm", "stable", "iterations", "inverted", "retries")}
    report |= {name: [0.5] * 64 for name in ("relative_residual", "position_error", "energy", "seconds")}
    for shard in range(store.shards):
        k = len(store.ids(shard))
        columns = {name: values[:k] for name, values in report.items()}
        store.publish(
            shard, {"positions": list(rng.random((k, n, 3)))}, columns, {"failures": {}, "checks": []}
        )
    run_store(store, Share())
    began = perf_counter()
    data = supple.data.open(store.path)
    ids = data.ids
    opening = perf_counter() - began
    bytes_each, positions = 12 * n, data["positions"]
    order = rng.permutation(ids)
    began = perf_counter()
    total = sum(float(positions[int(i)][0, 0]) for i in order)
    one = perf_counter() - began
    pairs = data.pairs(output="positions")
    began = perf_counter()
    for first in range(0, len(pairs), 64):
        x, y = pairs.batch(np.arange(first, min(first + 64, len(pairs))))
        total += float(y[0, 0, 0]) + float(x[0, 0])
    batches = perf_counter() - began
    return {
        "samples": samples,
        "megabytes": samples * bytes_each / 1e6,
        "opening_seconds": opening,
        "random_samples_per_second": samples / one,
        "normalized_batches_megabytes_per_second": samples * bytes_each / batches / 1e6,
        **_streamed(data, samples * bytes_each),
    }


def _streamed(data: Any, size: int) -> dict[str, float]:
    """Stream through the loader of PyTorch, if installed."""
    try:
        import torch
    except ImportError:
        return {}
    stream = data.stream(output="positions", normalize=False)
    began = perf_counter()
    for _x, y in torch.utils.data.DataLoader(stream, batch_size=None):
        float(y[0, 0, 0])
    return {"torch_loader_megabytes_per_second": size / (perf_counter() - began) / 1e6}


if __name__ == "__main__":
    main()
