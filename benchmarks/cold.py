"""Time of the first solves on a machine, with compilation of kernels: a bar in float64, then in float32, then
with Newton, each in a separate process, with an initially empty cache.

    python benchmarks/cold.py                    writes benchmarks/results/cold.json
    python benchmarks/cold.py --output FILE      writes another file, such as one for other sources

Seconds from the start of the process to its end, of which compiling, and seconds of processor time, which
other programs disturb less. The last row is the first again, with all kernels on disk.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

from supple.io.machine import machine, versions

RESULTS = Path(__file__).parent / "results" / "cold.json"

SOLVE = """
import supple
scene = supple.Scene(gravity=(0, -9.8, 0))
body = scene.add_solid(
    supple.block(cells=(6, 3, 3), size=(1, 0.5, 0.5)), supple.Corotated(young=1e5, poisson=0.3), density=10
)
scene.pin(body.where(lambda X: X[:, 0] <= 0))
print(supple.equilibrium(scene, {options}).report.compile_seconds)
"""

CASES = {
    "float64": "",
    "then float32": "precision='float32'",
    "then Newton": "solver=supple.Newton()",
    "float64 again": "",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    output = parser.parse_args().output
    with tempfile.TemporaryDirectory() as folder:
        by_case = {name: measure(options, folder) for name, options in CASES.items()}
    results = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "load": load(),
        "figures": by_case,
    }
    output.write_text(json.dumps(results, indent=1) + "\n")
    show(results)


def measure(options: str, folder: str) -> dict[str, float]:
    """Seconds of a solving process with its cache in a folder."""
    homes = dict.fromkeys(("XDG_CACHE_HOME", "HOME", "LOCALAPPDATA"), folder)
    began, before = perf_counter(), os.times()
    command = [sys.executable, "-c", SOLVE.format(options=options)]
    run = subprocess.run(command, env={**os.environ, **homes}, capture_output=True, text=True, check=True)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    entry = {"seconds": perf_counter() - began, "compiling": float(run.stdout), "processor": spent}
    return {name: round(value, 2) for name, value in entry.items()}


def load() -> float | None:
    """Mean number of runnable processes during the last minute."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None


def show(results: dict[str, Any]) -> None:
    computer = results["machine"]
    table = Table(
        "", "seconds", "compiling", "processor", title=f"{computer['cpu']}, {computer['cores']} cores"
    )
    for name, entry in results["figures"].items():
        table.add_row(name, *(f"{value:.1f}" for value in entry.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
