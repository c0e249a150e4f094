"""Clusters of elements against colors of single ones [BNH Table 2], and the reasons of the time
difference.

    python benchmarks/clusters.py --device cuda          JSON to benchmarks/results/clusters.json

A sweep of block XPBD over a beam of 3,750 and balls of 10,240 and 54,880 tetrahedra, by colors, by clusters
of 2 to 8 elements, and by cells. What it takes is fitted as t = phases a + visits b: phases are the waits
between colors, visits those that follow one another, one in each color of single elements and up to the
size of a cluster otherwise. Clusters pay where they save more phases than they add visits: a/b tells.
"""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import supple
from supple.io.machine import machine
from supple.problem import Problem
from supple.solve.batch_solve import make_device
from supple_papers.bnh import beam, clamped_body
from supple_papers.common import begin_time_step, ms_per_sweep

RESULTS = Path(__file__).parent / "results" / "clusters.json"

BODIES: dict[str, Any] = {
    "beam": lambda: beam(0.01 / 30),
    "ball of 10,240": lambda: clamped_body(supple.ball(1.0, 8), 0.01 / 50),
    "ball of 54,880": lambda: clamped_body(supple.ball(1.0, 14), 0.01 / 50),
}

ORDERINGS: dict[str, dict[str, Any]] = {
    "colors": {},
    **{f"clusters of {k}": {"ordering": "clusters", "cluster_size": k} for k in (2, 3, 5, 8)},
    "cells": {"ordering": "cells"},
}


def longest(projections: Any) -> int:
    """Sequential visits of a sweep: the sum over colors of their longest batch."""
    total = 0
    for q in projections:
        bounds, start = np.asarray(q.elements.color_start), q.elements.start
        for a, b in pairwise(bounds):
            total += 1 if isinstance(start, tuple) else int(np.diff(np.asarray(start)[a : b + 1]).max())
    return total


def measure(device: str) -> dict[str, Any]:
    results: dict[str, Any] = {}
    for name, make in BODIES.items():
        scene = make()
        model = supple.scene.build_model(scene)
        problem = Problem(model, "float32", device=make_device(device, model))
        begin_time_step(problem, scene.dt, model.rest, 0.0, 0.0)
        rows = {}
        for label, options in ORDERINGS.items():
            solver = supple.BlockXPBD(iterations=1, **options)
            try:
                run = solver.begin(problem)
            except ValueError:
                continue  # cells are for blocks
            ms = ms_per_sweep(problem, solver, 100)
            rows[label] = {
                "us": round(1e3 * ms, 2),
                "phases": run.colors,
                "visits": longest(run.projections),
            }
            print(name, label, rows[label], flush=True)
        table = np.array([[row["phases"], row["visits"]] for row in rows.values()], float)
        times = np.array([row["us"] for row in rows.values()])
        (a, b), *_ = np.linalg.lstsq(table, times, rcond=None)
        results[name] = {
            "tetrahedra": len(model.tets),
            "orderings": rows,
            "us per phase": round(float(a), 3),
            "us per visit": round(float(b), 3),
        }
        print(name, {key: results[name][key] for key in ("us per phase", "us per visit")}, flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    results = json.loads(chosen.output.read_text()) if chosen.output.exists() else {}
    results[chosen.device] = {"machine": machine(), **measure(chosen.device)}
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
