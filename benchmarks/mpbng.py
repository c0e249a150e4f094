"""MPBNG compared with PBNG and the default solver at equal time: python benchmarks/mpbng.py

The cloth of PBNG 11.5: a square of 8,281 vertices, 10 kg/m², E = 1000 (as E h in N/m: the paper gives no
thickness), pinned at two corners, swings from where it lies, in steps of 5 ms. And that of 11.6: a skirt of
24 thousand vertices, pinned at its rim, E h = 1000 N/m, k_b = 0.01, in steps of 12 ms. MPBNG has the paper's
13 and 24 iterations; the others get as long, on one thread in float32. What counts is how much longer edges
are than at rest, compared with a run in which every step has converged. Writes benchmarks/results/mpbng.json
after each method.

    python benchmarks/mpbng.py                 # both, about half an hour on one quiet core
    python benchmarks/mpbng.py dress           # one of them
    python benchmarks/mpbng.py dress --small   # some hundred vertices, to see that it runs; writes nothing
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from datetime import date
from functools import partial
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import numpy as np

import supple
from supple.io.machine import machine
from supple.problem import Problem
from supple.scene import build_model
from supple_papers.cloths import sheet, skirt, stretch

RESULTS = Path(__file__).parent / "results" / "mpbng.json"

CASES: dict[str, tuple[Any, int, int]] = {
    "sheet": (partial(sheet, 90), 13, 40),
    "dress": (partial(skirt, 150, 160), 24, 10),
}
"""Scenes, the iterations of MPBNG, and how many steps are made."""

SMALL: dict[str, tuple[Any, int, int]] = {
    "sheet": (partial(sheet, 16), 13, 4),
    "dress": (partial(skirt, 24, 20), 24, 3),
}


def seconds(scene: supple.Scene, solver: Any, count: int) -> float:
    """Time of the iterations of one step on one thread."""
    problem = Problem(build_model(scene, False), "float32", threads=1)
    problem.loads.set_time_step(scene.dt)
    times = []
    for _ in range(4):
        problem.begin_step(scene.dt, scene.dt)
        begin = thread_time()
        run = solver.begin(problem)
        run.set_targets(None, count, None)
        run.advance(count)
        times.append(thread_time() - begin)
    return min(times[1:])


def curve(scene: supple.Scene, solver: Any, steps: int, **limits: Any) -> list[float]:
    """Mean stretch after each step."""
    options = {"precision": "float32", "threads": 1, "frames": steps} | limits
    residuals, begin = [], perf_counter()
    for frame in supple.simulate(scene, solver=solver, **options):
        residuals.append(stretch(scene, frame.positions))
        count, passed = frame.report.iterations, perf_counter() - begin
        print(f"  step {len(residuals)} of {steps}: {count} iterations, {passed:.0f} s", flush=True)
    return residuals


def compared(make: Any, count: int, steps: int) -> Iterator[dict[str, Any]]:
    """All methods at equal time against the motion with converged steps, after each step."""
    scene = make()
    print(f"{scene.bodies[0].mesh.n_vertices:,} vertices, every step converged", flush=True)
    exact = curve(scene, supple.PBNG(), steps, tolerance=1e-5, precision="float64")
    budget = seconds(scene, supple.MPBNG(), count)
    plain = supple.PBNG(acceleration=None)
    sweeps = round(budget / (seconds(scene, plain, 100) / 100))
    accelerated = round(budget / (seconds(scene, supple.PBNG(), 100) / 100))
    methods: dict[str, tuple[Any, dict[str, Any]]] = {
        "mpbng": (supple.MPBNG(), {"max_iterations": count}),
        "mpbng, bound": (supple.MPBNG(coupling="bound"), {"max_iterations": count}),
        "mpbng, divided as printed": (supple.MPBNG(coupling="divided"), {"max_iterations": count}),
        "pbng": (plain, {"max_iterations": sweeps}),
        "pbng anderson": (supple.PBNG(), {"max_iterations": accelerated}),
        "hybrid": (supple.Hybrid(), {"tolerance": 1e-9, "time_limit": budget}),
        "hybrid, Newton steps": (
            supple.Hybrid(max_predicted_sweeps=0),
            {"tolerance": 1e-9, "time_limit": budget},
        ),
    }
    results: dict[str, Any] = {
        "vertices": scene.bodies[0].mesh.n_vertices,
        "ms_per_step": round(1e3 * budget, 2),
        "converged": [round(value, 6) for value in exact],
        "methods": {},
    }
    for name, (solver, limits) in methods.items():
        print(name, limits, flush=True)
        values = np.array(curve(scene, solver, steps, **limits))
        error = np.abs(values - exact)
        results["methods"][name] = {
            "limit": limits,
            "stretch": round(float(values[-1]), 6),
            "mean_error": float(f"{error.mean():.3g}"),
            "last_error": float(f"{error[-1]:.3g}"),
        }
        print(results["methods"][name], flush=True)
        errors = {name: each["mean_error"] for name, each in results["methods"].items()}
        if errors.keys() >= {"pbng", "mpbng"}:
            results["pbng_over_mpbng"] = round(errors["pbng"] / errors["mpbng"], 2)
        yield results


def main() -> None:
    parser = argparse.ArgumentParser(description="MPBNG beside PBNG and the default solver at equal time.")
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="|".join(CASES), help="or both")
    parser.add_argument("--small", action="store_true", help="some hundred vertices, and nothing is written")
    arguments = parser.parse_args()
    if unknown := set(arguments.cases) - set(CASES):
        parser.error(f"there are {' and '.join(CASES)}, and no {', '.join(unknown)}")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in arguments.cases:
        for entry in compared(*(SMALL if arguments.small else CASES)[name]):
            results |= {name: entry, "date": date.today().isoformat(), "machine": machine()}
            if not arguments.small:
                RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
