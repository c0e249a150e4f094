"""Times of GPBD Tables 1 and 4 compared with ours: python benchmarks/gpbd_tables.py --device cuda

Table 1: squares of 0.3 m of the five fabrics of HYLC, 64 × 64 and 128 × 128 cells, stretched by two bars and
draped over a ball, in steps of 0.1 ms with the paper's iterations, float64. The paper has the time of its
CUDA kernels in a step, on an RTX 4080, whose float64 is slow. Ours is that of the iterations of a step, and
that of whole steps with all that they need. Its flags and trampolines are left out: by the table the coarse
ones take five times as long as the fine ones. Table 4: the cube of `benchmarks/gpu.py`, on CUDA only.

The fabrics are found through SUPPLE_DATA, see `supple.load_fabric`. `--cells 8` is for a look at small ones;
names of fabrics choose some. Writes benchmarks/results/gpbd_tables.json, each row as soon as it is known.
"""

from __future__ import annotations

import argparse
import json
from datetime import date
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import supple
from supple.io.machine import machine
from supple.solve.batch_solve import make_problem

RESULTS = Path(__file__).parent / "results" / "gpbd_tables.json"
STEP, SUBSTEPS, FRAMES = 1e-4, 50, 8
SIDE = 0.3

Counts = tuple[int, int, float]
"""GPBD iterations per step, Newton steps in each, and milliseconds of the paper along x."""

TABLE_1: dict[str, dict[str, dict[int, Counts]]] = {
    "drape": {
        "satin1": {64: (3, 1, 18), 128: (3, 1, 70)},
        "basket1": {64: (3, 1, 17), 128: (3, 1, 69)},
        "rib1": {64: (3, 1, 17), 128: (3, 1, 71)},
        "honey1": {64: (3, 1, 17), 128: (5, 1, 123)},
        "stock1": {64: (3, 1, 18), 128: (3, 2, 208)},
    },
    "stretch": {
        "satin1": {64: (3, 1, 17), 128: (3, 1, 62)},
        "basket1": {64: (3, 1, 17), 128: (3, 1, 61)},
        "rib1": {64: (3, 1, 17), 128: (3, 1, 68)},
        "honey1": {64: (3, 1, 17), 128: (5, 3, 353)},
        "stock1": {64: (3, 1, 19), 128: (3, 5, 767)},
    },
}

PULLS = {"basket1": (0.02, 0.25), "honey1": (0.06, 0.64), "rib1": (0.07, 0.7), "satin1": (0.02, 0.25),
         "stock1": (0.035, 0.4)}  # fmt: skip
"""Displacement of each bar [m], and its duration [s]."""


def square(fabric: str, cells: int) -> tuple[supple.Scene, Any]:
    """A square of a fabric in the middle of the x-y plane, with its threads along the axes."""
    scene = supple.Scene(gravity=(0, 0, -9.81), quasistatic=False, dt=SUBSTEPS * STEP, substeps=SUBSTEPS)
    mesh = supple.sheet((cells, cells), (SIDE, SIDE), origin=(-SIDE / 2, -SIDE / 2, 0))
    return scene, scene.add_cloth(mesh, supple.load_fabric(fabric))


def stretched(fabric: str, cells: int) -> supple.Scene:
    """Two bars, 16 % of the side from the edge, 7 % wide and 67 % long, separate along x."""
    scene, cloth = square(fabric, cells)
    displacement, duration = PULLS[fabric]
    for sign in (-1, 1):
        bar = cloth.where(
            lambda X, sign=sign: (
                (np.abs(sign * X[:, 0] - 0.34 * SIDE) <= max(0.035 * SIDE, 0.51 * SIDE / cells))
                & (np.abs(X[:, 1]) <= 0.335 * SIDE)
            )
        )
        scene.pin(bar, motion=supple.Translate((sign * displacement, 0, 0), duration=duration))
    return scene


def draped(fabric: str, cells: int) -> supple.Scene:
    """A fabric held near two corners above a ball of 3 cm."""
    scene, cloth = square(fabric, cells)
    near = max(0.01, 0.75 * SIDE / cells)
    for y in (-0.1, 0.1):
        scene.pin(cloth.where(lambda X, y=y: np.linalg.norm(X - [-0.1, y, 0], axis=1) <= near))
    scene.add_obstacle(supple.Sphere(0.03, (0, 0, -0.04)), friction=0.052)
    return scene


SCENES = {"stretch": stretched, "drape": draped}


def of_iterations(scene: supple.Scene, solver: supple.GPBD, count: int, device: str) -> float:
    """Seconds of the iterations of one step."""
    problem = make_problem(supple.scene.build_model(scene), True, supple.Backend(device, "float64"))
    problem.loads.set_time_step(STEP)
    prescribed = problem.model.prescribed(0.0)
    times = []
    for step in range(23):
        problem.states.predict(STEP, 0.0, prescribed)
        run = solver.begin(problem)
        problem.device.wait()
        begin = perf_counter()
        run.advance(count)
        problem.device.wait()
        times.append(perf_counter() - begin)
        if step > 2 and sum(times[3:]) > 20:
            break
    return median(times[3:] or times)


def row(kind: str, fabric: str, cells: int, counts: Counts, device: str) -> dict[str, Any]:
    iterations, newton, paper = counts
    scene = SCENES[kind](fabric, cells)
    solver = supple.GPBD(iterations=iterations, newton_steps=newton)
    kernels = of_iterations(scene, solver, iterations, device)
    frames = supple.simulate(scene, solver=solver, frames=FRAMES, device=device, precision="float64")
    ends = [(perf_counter(), frame) for frame in frames]
    stamps, frame = [end for end, _ in ends], ends[-1][1]
    interval = float(min(np.diff(stamps))) / SUBSTEPS
    return {
        "scene": kind,
        "fabric": fabric,
        "cells": cells,
        "iterations": iterations,
        "newton_steps": newton,
        "ms": round(1e3 * kernels, 3),
        "ms_whole_step": round(1e3 * interval, 3),
        "paper_ms": paper,
        "times_faster": round(paper / (1e3 * kernels), 1),
        "finite": bool(np.isfinite(frame.positions).all()),
        "moved_m": float(f"{np.abs(frame.positions - frame.model.rest).max():.3g}"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="GPBD Tables 1 and 4 beside ours.")
    parser.add_argument("fabrics", nargs="*", help="names of fabrics; all unless given")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--cells", type=int, nargs="*", help="cells along a side; 64 and 128 unless given")
    arguments = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows = {f"{r['scene']} {r['fabric']} {r['cells']}": r for r in results.get(arguments.device, [])}
    for kind, fabrics in TABLE_1.items():
        for fabric, sizes in fabrics.items():
            for cells in arguments.cells or sizes:
                if arguments.fabrics and fabric not in arguments.fabrics:
                    continue
                counts = sizes.get(cells, (*sizes[64][:2], float("nan")))
                made = row(kind, fabric, cells, counts, arguments.device)
                print(made, flush=True)
                if cells in sizes:
                    rows[f"{kind} {fabric} {cells}"] = made
                    write(results, arguments.device, list(rows.values()))
    if arguments.device == "cuda":
        from gpu import cube

        results["table 4"] = cube()
        write(results, "cuda", list(rows.values()))
        print(results["table 4"])


def write(results: dict[str, Any], device: str, rows: list[dict[str, Any]]) -> None:
    results[device] = rows
    results.setdefault("machines", {})[device] = {**machine(), **_card(device), "date": str(date.today())}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def _card(device: str) -> dict[str, str]:
    if device == "cpu":
        return {}
    from numba import cuda

    return {"card": str(cuda.get_current_device().name)}


if __name__ == "__main__":
    main()
