"""Cost of exchanging springs, compared with a sweep: python benchmarks/stencils.py

Blocks on one thread in float32, with springs between vertices anywhere in them, which is the worst case: each
refresh exchanges all of them for others. Times are those of the processor. Writes
benchmarks/results/stencils.json; figures_in_docs.py shows it in docs/design/changing_stencils.md.

With --cuda the same on a card, on the clock of the wall: writes benchmarks/results/stencils_gpu.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import numpy as np

import supple
from supple.io.machine import machine
from supple.model.model import Model
from supple.problem import Problem
from supple.scene import build_model
from supple.terms import Springs

RESULTS = Path(__file__).parent / "results" / "stencils.json"
GPU_RESULTS = Path(__file__).parent / "results" / "stencils_gpu.json"
CELLS = (20, 31)
PARTS = (0.001, 0.01, 0.05)
"""Parts of all vertices that are ends of springs."""


def block(cells: int) -> Model:
    scene = supple.Scene(gravity=(0, -1, 0))
    body = scene.add_solid(supple.block(cells), supple.Corotated(young=1e3, poisson=0.3), density=10)
    scene.pin(body.where(lambda X: X[:, 0] < 1e-9))
    return build_model(scene, quasistatic=True)


def springs(model: Model, count: int, seed: int, capacity: int | None = None) -> Springs:
    random = np.random.default_rng(seed)
    pairs = random.permutation(model.vertices)[: 2 * count].reshape(-1, 2).astype(np.int32)
    return Springs(pairs, np.full(count, 50.0), np.full((count, 1), 0.1), model.rest, capacity)


def least(action: Callable[[int], None], times: int) -> float:
    """Minimal CPU milliseconds of this thread over several runs."""
    seconds = []
    for k in range(times):
        begin = thread_time()
        action(k)
        seconds.append(thread_time() - begin)
    return 1e3 * min(seconds)


def sweep(problem: Problem) -> float:
    run = supple.PBNG("none").begin(problem)
    run.advance(1)
    return least(lambda k: run.advance(5), 10) / 5


def measure(cells: int) -> dict[str, Any]:
    model = block(cells)
    plain = Problem(model, "float32", 1)
    entry: dict[str, Any] = {
        "vertices": model.vertices,
        "tets": len(model.tets),
        "sweep_ms": sweep(plain),
        "set_up_ms": least(lambda k: Problem(model, "float32", 1), 3),
        "springs": [],
    }
    for part in PARTS:
        count = int(0.5 * part * model.vertices)
        empty = replace(model, terms=(*model.terms, springs(model, 0, 0, capacity=count)))
        problem = Problem(empty, "float32", 1)
        without = sweep(problem)
        refresh = least(lambda k: problem.refresh(1, springs(model, count, k)), 20)  # noqa: B023
        entry["springs"].append(
            {
                "part": part,
                "count": count,
                "moved": len(problem.layout.dynamic_batches.displaced),
                "colors": [plain.layout.colors, problem.layout.colors],
                "growths": problem.layout.growths,
                "sweep_without_ms": without,
                "sweep_with_ms": sweep(problem),
                "refresh_ms": refresh,
            }
        )
    return entry


def wall(problem: Problem, action: Callable[[int], Any], times: int = 20) -> float:
    """Minimal wall milliseconds of several runs, kernels included."""
    seconds = []
    for k in range(times):
        problem.device.wait()
        begin = perf_counter()
        action(k)
        problem.device.wait()
        seconds.append(perf_counter() - begin)
    return 1e3 * min(seconds)


def measure_on_card(cells: int) -> dict[str, Any]:
    from supple.problem.cuda import Cuda

    model, rows = block(cells), []
    for part in PARTS:
        count = int(0.5 * part * model.vertices)
        empty = replace(model, terms=(*model.terms, springs(model, 0, 0, capacity=count)))
        problem = Problem(empty, "float32", device=Cuda(model.vertices + 1))
        refresh = wall(problem, lambda k: problem.refresh(1, springs(model, count, k)))  # noqa: B023
        rows.append({"count": count, "refresh_ms": refresh})
    return {"vertices": model.vertices, "springs": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuda", action="store_true", help="measure on a card")
    if parser.parse_args().cuda:
        card_results = {
            "date": str(date.today()),
            "machine": machine(),
            "blocks": [*map(measure_on_card, CELLS)],
        }
        GPU_RESULTS.write_text(json.dumps(card_results, indent=2) + "\n")
        print(json.dumps(card_results["blocks"], indent=1))
        return
    results = {"date": str(date.today()), "machine": machine(), "blocks": [measure(c) for c in CELLS]}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results["blocks"], indent=1))


if __name__ == "__main__":
    main()
