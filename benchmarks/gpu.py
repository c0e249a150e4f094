"""Sweeps and equilibria on a CUDA device: `python benchmarks/gpu.py --json benchmarks/results/gpu.json`.

Besides the times, it measures what bounds them: the copy bandwidth of the card, the bytes that one sweep must
move (each visit's rest data and ids once, positions once per vertex), and the cost of one grid-wide
synchronisation.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import date
from pathlib import Path
from statistics import median

import numpy as np
from numba import cuda

import supple
from supple.io.machine import machine
from supple.kernels.cuda import require_device
from supple.solvers import SOLVERS
from supple.solvers.cuda_problem import CudaProblem

TARGETS = {31: 25, 63: 100, 127: 900}
"""Microseconds per sweep to reach, by cells per side."""


TWIST = Path(__file__).resolve().parents[1] / "scenes" / "twist.toml"


def twisted_block(cells: int) -> supple.Scene:
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(cells), supple.Corotated(young=1e5, poisson=0.3), density=10)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    turn = supple.Rotate(axis=(1, 0, 0), center=(1, 0.5, 0.5), angle=1.0)
    scene.pin(body.where(lambda X: X[:, 0] >= 1), motion=turn + supple.Translate((0.3, 0, 0)))
    return scene


def seconds(work, repeats: int = 7) -> float:
    """Median time of some device work."""
    work()
    times = []
    for _ in range(repeats):
        cuda.synchronize()
        start = time.perf_counter()
        work()
        cuda.synchronize()
        times.append(time.perf_counter() - start)
    return median(times)


def copy_bandwidth() -> float:
    """Bytes read and written per second by a large copy on the device."""
    source, target = (cuda.device_array(2**28, np.float32) for _ in range(2))
    return 2 * source.nbytes / seconds(lambda: target.copy_to_device(source))


@cuda.jit
def _synchronise(times, out):
    grid = cuda.cg.this_grid()
    for _ in range(times):
        grid.sync()
    if cuda.grid(1) == 0:
        out[0] = times


def synchronisation() -> float:
    """Seconds per grid-wide synchronisation of 264 blocks of 128 threads."""
    out = cuda.device_array(1, np.int64)
    return seconds(lambda: _synchronise[264, 128](1000, out)) / 1000


def sweep_row(cells: int, precision: str, bandwidth: float) -> dict:
    problem = CudaProblem(supple.build_model(twisted_block(cells)), precision)
    problem.prescribe(np.inf)
    run = supple.PBNG().begin(problem)
    sweeps = 100 if cells < 100 else 20
    per_sweep = seconds(lambda: run.advance(sweeps), 5) / sweeps
    term = problem.terms[0]
    moved = term.rest.nbytes + term.others.nbytes + 3 * problem.u.nbytes
    return {
        "cells": cells,
        "vertices": problem.model.vertices,
        "tets": len(problem.model.tets),
        "precision": precision,
        "us_per_sweep": 1e6 * per_sweep,
        "target_us": TARGETS[cells] if precision == "float32" else None,
        "byte_floor_us": 1e6 * moved / bandwidth,
    }


def method_row(name: str) -> dict:
    problem = CudaProblem(supple.build_model(twisted_block(31)), "float32")
    problem.prescribe(np.inf)
    problem.set_inertia(0.01, problem.positions)
    run = SOLVERS[name]().begin(problem)
    return {
        "solver": name,
        "us_per_sweep": 1e6 * seconds(lambda: run.advance(20), 5) / 20,
        "colours": run.colours,
    }


def equilibrium_row(precision: str) -> dict:
    model = supple.build_model(supple.load_scene(TWIST).scene)
    reports = [
        supple.equilibrium(model, tolerance=1e-4, precision=precision, device="cuda").report for _ in range(4)
    ]
    best = min(reports[1:], key=lambda report: report.seconds)
    return {
        "precision": precision,
        "ms": 1e3 * best.seconds,
        "target_ms": 5 if precision == "float32" else None,
        "iterations": best.iterations,
        "imbalance": best.imbalance,
    }


def batch_row(precision: str, count: int = 64) -> dict:
    """Equilibria per second: the twisted block at as many moments of its motion, all solved together, each
    from the undeformed inside."""
    scene = supple.load_scene(TWIST).scene
    variations = [supple.Variation(time=0.5 + 0.5 * k / count) for k in range(1, count + 1)]
    rows = []
    for _ in range(3):
        start = time.perf_counter()
        results = list(supple.equilibria(scene, variations, precision=precision, device="cuda"))
        wall = time.perf_counter() - start
        reports = [result.report for result in results]
        solving = max(report.seconds for report in reports)
        rows.append(
            {
                "precision": precision,
                "equilibria": count,
                "solve_seconds": solving,
                "wall_seconds": wall,
                "per_second": count / solving,
                "per_second_with_setup": count / wall,
                "target_per_second": 400 if precision == "float32" else None,
                "iterations": sorted({report.iterations for report in reports}),
                "converged": sum(report.ok for report in reports),
            }
        )
    return min(rows, key=lambda row: row["solve_seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    bandwidth = copy_bandwidth()
    results = {
        "date": str(date.today()),
        "card": require_device(),
        "machine": machine(),
        "copy_bandwidth_tb_per_s": bandwidth / 1e12,
        "synchronisation_us": 1e6 * synchronisation(),
        "sweeps": [sweep_row(c, p, bandwidth) for c in TARGETS for p in ("float32", "float64")],
        "methods": [method_row(name) for name in SOLVERS if name not in ("pbng", "newton")],
        "equilibria": [equilibrium_row(p) for p in ("float32", "float64")],
        "batches": [batch_row(p) for p in ("float32", "float64")],
    }
    text = json.dumps(results, indent=2)
    print(text)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
