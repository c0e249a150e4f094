"""What a bar of muscle between two walls pulls with, by its length, its activation and the solver.

    python benchmarks/muscle_curve.py

Writes benchmarks/results/muscle_curve.json, forces [N] and those of the closed form of one fibre, and
docs/images/muscle_curve.png.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from supple.io.machine import machine

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from muscle_bars import SOLVERS, bar, force, pulled

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "benchmarks" / "results" / "muscle_curve.json"
PICTURE = REPOSITORY / "docs" / "images" / "muscle_curve.png"
LENGTHS, ACTIVATIONS = np.arange(0.5, 1.51, 0.1), (0.0, 0.5, 1.0)
COLOURS = "#9aa3ad", "#5bb7b0", "#2f5596"


def measured(solver: str, length: float, activation: float) -> dict[str, Any]:
    scene, body = bar(length)
    limits = {"tolerance": 1e-4, "max_iterations": 40_000}
    found, report = pulled(scene, body, activation, SOLVERS[solver], **limits)
    return {
        "solver": solver,
        "length": float(length),
        "activation": activation,
        "force": -float(found[0]),
        "closed form": float(force(length, activation)),
        "ok": report.ok,
        "iterations": report.iterations,
    }


def main() -> None:
    rows = [measured("newton", length, activation) for activation in ACTIVATIONS for length in LENGTHS]
    for solver in SOLVERS:
        rows.append(measured(solver, 1.2, 1.0))
        print(rows[-1], flush=True)
    RESULTS.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n", encoding="utf-8")
    figure, axes = plt.subplots(figsize=(6, 4))
    fine = np.linspace(0.45, 1.55, 200)
    for activation, colour in zip(ACTIVATIONS, COLOURS, strict=True):
        axes.plot(
            fine, [force(x, activation) for x in fine], color=colour, label=f"activation {activation:g}"
        )
        here = [row for row in rows if row["activation"] == activation and row["solver"] == "newton"]
        axes.plot([r["length"] for r in here], [r["force"] for r in here], "o", color=colour)
    axes.set(xlabel="length over that at rest", ylabel="force [N]")
    axes.legend(frameon=False)
    figure.savefig(PICTURE, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
