"""Solves cases for arrive.py with the supple that this process imports: requests and answers are lines of
JSON."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from typing import Any

from arrive_cases import CASES

import supple
from supple.solvers import SOLVERS


def handle_request(request: dict[str, Any]) -> dict[str, Any]:
    """Solve a case; features that this version of supple lacks are reported."""
    before = peak()
    scene, start = CASES[request["case"]]()
    begin = None if start is None else start(scene)
    solver = None if request["solver"] == "default" else SOLVERS[request["solver"]]()
    model = supple.scene.build_model(scene, quasistatic=True)
    supple.equilibrium(model, solver=solver, initial=begin, tolerance=None, max_iterations=1)  # compiles
    options = {"tolerance": request["tolerance"], "time_limit": request["limit"], "initial": begin}
    report, wall, cpu = timed(model, solver, options)
    if report.compile_seconds > 0:  # whose time is not told apart from that of the solve
        report, wall, cpu = timed(model, solver, options)
    error_estimate = getattr(report, "error_estimate", None)
    return {
        "outcome": report.outcome.name.lower(),
        "vertices": report.vertices,
        "iterations": report.iterations,
        "seconds": report.seconds,
        "wall": wall,
        "cpu": cpu,
        "energy": report.energy,
        "relative_residual": report.relative_residual,
        "position_error": error_estimate and error_estimate.position_error,
        "stable": error_estimate and error_estimate.stable,
        "certificate_seconds": error_estimate.seconds if error_estimate else 0.0,
        "notes": report.notes,
        "memory": peak() - before,
    }


def peak() -> int:
    """Peak memory of this process [bytes]; 0 on systems without this information."""
    with contextlib.suppress(ImportError):
        import resource

        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 0


def timed(model: Any, solver: Any, options: dict[str, Any]) -> tuple[Any, float, float]:
    """Report, wall seconds and CPU seconds of a complete solve."""
    wall, cpu = time.perf_counter(), time.process_time()
    report = supple.equilibrium(model, solver=solver, **options).report
    return report, time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    for line in sys.stdin:
        try:
            reply = handle_request(json.loads(line))
        except Exception as error:  # whatever an older version refuses
            reply = {"outcome": "error", "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
