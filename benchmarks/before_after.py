"""Effect of a change on sweep times: every solver, material and precision on two sources, interleaved.

    python benchmarks/before_after.py OTHER/src            this checkout against another one
    python benchmarks/before_after.py OTHER/src --turns 5

Each turn is one process per source, one after the other, on one thread; the least time of all turns counts,
so that what other programs take hardly does. Ratios above 1 mean that this checkout is slower. Results go to
benchmarks/results/before_after.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results" / "before_after.json"

CELLS = 21
"""Cells along an edge of the block: 10,648 vertices."""

MEASURE = """
import json, sys
import supple

try:
    from supple.api import bench
except ImportError:  # checkouts in which the package root had all modules
    from supple import bench
sweep = bench.sweep

def plain():
    return getattr(bench, "PLAIN", None) or supple.PBNG(acceleration="none")

cells, repeats = map(int, sys.argv[1:])
materials = "corotated", "neo_hookean", "stable_neo_hookean", "log_neo_hookean", "stvk", "linear_elastic"
cases = [("pbng", plain(), material) for material in materials]
cases += [(name, name, "corotated") for name in ("pbd", "xpbd", "bpxpbd", "fpxpbd", "gpbd")]
cases += [("block_xpbd", "block_xpbd", "neo_hookean")]
print(json.dumps({
    f"{name}, {material}, {precision}":
        sweep(cells, solver, material, precision, threads=1, repeats=repeats)["ms_min"]
    for precision in ("float32", "float64")
    for name, solver, material in cases
}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="the folder src of the other checkout")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=20, help="samples of each time in one turn")
    arguments = parser.parse_args()
    sources = {"before": arguments.other.resolve(), "after": FOLDER.parent / "src"}
    least: dict[str, dict[str, float]] = {name: {} for name in sources}
    for turn in range(arguments.turns):
        for name, source in sources.items():
            print(f"turn {turn + 1} of {arguments.turns}, {name} ...", file=sys.stderr)
            for what, ms in measured(source, arguments.repeats).items():
                least[name][what] = min(ms, least[name].get(what, ms))
    ratios = {what: least["after"][what] / ms for what, ms in least["before"].items()}
    save(least, ratios)
    for what, ratio in sorted(ratios.items(), key=lambda pair: -pair[1]):
        print(f"{ratio:5.3f}  {least['before'][what]:8.3f} -> {least['after'][what]:8.3f} ms  {what}")


def measured(source: Path, repeats: int) -> dict[str, float]:
    """Milliseconds per sweep by configuration, on the sources in a folder."""
    return json.loads(
        subprocess.run(
            [sys.executable, "-c", MEASURE, str(CELLS), str(repeats)],
            env=os.environ | {"PYTHONPATH": str(source)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
    )


def save(least: dict[str, dict[str, float]], ratios: dict[str, float]) -> None:
    from supple.io.machine import machine, versions

    what: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "vertices": (CELLS + 1) ** 3,
        "threads": 1,
        "milliseconds per sweep": least,
        "after over before": ratios,
    }
    RESULTS.write_text(json.dumps(what, indent=1) + "\n")


if __name__ == "__main__":
    main()
