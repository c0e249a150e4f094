"""Equilibria by the default solver on a CUDA device compared with the CPU: convergence and times.

    python benchmarks/card.py                            bars, a twisted block; JSON to benchmarks/results
    python benchmarks/card.py --only 300K --profile      seconds of every kernel, too
    python benchmarks/card.py --large --cpu              also the largest block, and all of it on the CPU

Every case is solved twice, the first time to compile what it needs, and the second is measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from gpu import twisted_block

import supple
from supple.io import machine, versions
from supple.kernels.cuda import require_device

RESULTS = Path(__file__).parent / "results" / "card.json"


def bar(cells: int, young: float = 1e8) -> supple.Scene:
    """20:1:1, two meters long, clamped at one end, bent by its weight."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    mesh = supple.block((20 * cells, cells, cells), (2, 0.1, 0.1))
    body = scene.add_solid(mesh, supple.Corotated(young=young, poisson=0.4), density=1000)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    return scene


def hanging() -> supple.Scene:
    """Non-matching blocks tied by stiff springs."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    stiff, soft = (supple.Corotated(young=young, poisson=0.3) for young in (1e6, 1e5))
    top = scene.add_solid(supple.block(6, origin=(0, 1, 0)), stiff, density=1000)
    low = scene.add_solid(supple.block(5), soft, density=1000)
    scene.pin(top.where(lambda X: X[:, 1] > 2 - 1e-9))
    scene.attach(low.where(lambda X: X[:, 1] > 1 - 1e-9), top, stiffness=1e8)
    return scene


CASES: dict[str, Callable[[], supple.Scene]] = {
    "bar 100": lambda: bar(1),
    "bar 4K": lambda: bar(5),
    "bar 4K, soft": lambda: bar(5, 1e6),
    "hanging": hanging,
    "twist 32K": lambda: twisted_block(31),
    "bar 40K": lambda: bar(12),
    "bar 300K": lambda: bar(24),
}
LARGE: dict[str, Callable[[], supple.Scene]] = {"twist 2M": lambda: twisted_block(127)}


def profile() -> dict[str, list[float]]:
    """Record seconds of every later launch, by kernel."""
    from supple.kernels.cuda import synchronize
    from supple.problem.cuda import Cuda

    times: dict[str, list[float]] = defaultdict(list)
    plain = Cuda._launch

    def launch(self: Cuda, kernel: Any, *args: Any) -> None:
        synchronize()
        began = perf_counter()
        plain(self, kernel, *args)
        synchronize()
        times[kernel.__name__].append(perf_counter() - began)

    Cuda._launch = launch  # type: ignore[method-assign]
    return times


def measured(scene: supple.Scene, device: str, precision: str, tolerance: float, ahead: int) -> dict:
    solver = supple.Hybrid(max_predicted_sweeps=ahead)
    began = perf_counter()
    equilibrium = supple.equilibrium(
        scene, solver=solver, tolerance=tolerance, device=device, precision=precision
    )
    report = equilibrium.report
    return {
        "seconds": report.seconds,
        "wall": perf_counter() - began,
        "setup": report.setup_seconds,
        "compiling": report.compile_seconds,
        "outcome": report.outcome.name,
        "iterations": report.iterations,
        "relative_residual": report.relative_residual,
        "energy": report.energy,
        "certifying": report.error_estimate.seconds if report.error_estimate else None,
        "position_error": report.error_estimate.position_error if report.error_estimate else None,
        "reach": float(np.abs(equilibrium.positions).max()),
        "notes": report.notes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--once", action="store_true", help="do not solve twice")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--ahead", type=int, default=250)
    parser.add_argument("--precision", default="float64")
    parser.add_argument("--json", type=Path, default=RESULTS)
    given = parser.parse_args()
    cases = CASES | (LARGE if given.large else {})
    results: dict[str, Any] = {
        "date": str(date.today()),
        "card": require_device(),
        "machine": machine(),
        "versions": versions(),
    }
    for name in (n for n in cases if any(part in n for part in given.only)):
        scene = cases[name]()
        for device in ("cuda", "cpu") if given.cpu else ("cuda",):
            how = device, given.precision, given.tolerance, given.ahead
            seconds = measured(scene, *how)
            print(name, device, "first:", json.dumps(seconds), flush=True)
            times = profile() if given.profile and device == "cuda" else {}
            if not given.once:
                seconds = measured(scene, *how)
                print(name, device, "again:", json.dumps(seconds), flush=True)
            if times:
                seconds["kernels"] = {k: [len(v), sum(v)] for k, v in times.items()}
                for kernel, (count, total) in sorted(
                    seconds["kernels"].items(), key=lambda item: -item[1][1]
                ):
                    print(f"    {kernel:24} {count:5} x {1e3 * total / count:9.3f} ms = {1e3 * total:9.2f}")
                sys.stdout.flush()
            results[f"{name}, {device}"] = seconds
    given.json.parent.mkdir(exist_ok=True)
    given.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
