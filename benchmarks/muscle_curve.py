"""Force of a muscle bar between two walls by length, activation and solver, and motion of one that falls and
is activated.

    nice python benchmarks/muscle_curve.py

Writes benchmarks/results/muscle_curve.json after every row, and goes on where it was stopped: "pulls", forces
[N] and those of the closed form of one fiber, and "falls", the largest distance of the bar's middle from
where Newton has it, as a part of how far that falls; and docs/images/muscle_curve.png.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import supple
from supple.io.machine import machine
from supple.io.replace_file import replacing

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from muscle_bars import SOLVERS, bar, falling, force, pulled

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "benchmarks" / "results" / "muscle_curve.json"
PICTURE = REPOSITORY / "docs" / "images" / "muscle_curve.png"
LENGTHS, ACTIVATIONS = [round(0.5 + 0.1 * k, 1) for k in range(11)], (0.0, 0.5, 1.0)
COLORS = "#9aa3ad", "#5bb7b0", "#2f5596"
LONG_STEPS = {"bpxpbd, steps of 10 ms": supple.BPXPBD(), "gpbd, steps of 10 ms": supple.GPBD()}
"""Default pseudo-time steps of these two solvers."""
PULLERS = {**SOLVERS, **LONG_STEPS}
FALLS = [
    (solver, dt, iterations)
    for dt in (0.005, 0.02)
    for iterations in (100, 400)
    for solver in ("pbng", "fpxpbd", "bpxpbd", "gpbd")
]


def pull_bar(solver: str, length: float, activation: float) -> dict[str, Any]:
    scene, body = bar(length)
    limits = {"tolerance": 1e-4, "max_iterations": 40_000}
    stress, report = pulled(scene, body, activation, PULLERS[solver], **limits)
    expected = float(force(length, activation))
    return {
        "solver": solver,
        "length": length,
        "activation": activation,
        "force": -float(stress[0]),
        "closed form": expected,
        "ok": report.ok,
        "iterations": report.iterations,
    }


@cache
def fall_of_newton(dt: float) -> np.ndarray:
    return falling("newton", dt, tolerance=1e-8)


def fall(solver: str, dt: float, iterations: int) -> dict[str, Any]:
    """Outcome and error of a fall; a non-finite run ends early."""
    expected = fall_of_newton(dt)
    displacement = falling(SOLVERS[solver], dt, max_iterations=iterations)
    off = (
        np.abs(displacement - expected).max() / abs(expected.min())
        if len(displacement) == len(expected)
        else np.inf
    )
    return {
        "solver": solver,
        "dt": dt,
        "iterations": iterations,
        "off": float(off) if np.isfinite(off) else None,
    }


def drawn(rows: list[dict[str, Any]]) -> None:
    figure, axes = plt.subplots(figsize=(6, 4))
    fine = np.linspace(0.45, 1.55, 200)
    for activation, color in zip(ACTIVATIONS, COLORS, strict=True):
        axes.plot(fine, [force(x, activation) for x in fine], color=color, label=f"activation {activation:g}")
        selected_rows = [row for row in rows if row["activation"] == activation and row["solver"] == "newton"]
        axes.plot([r["length"] for r in selected_rows], [r["force"] for r in selected_rows], "o", color=color)
    axes.set(xlabel="length over that at rest", ylabel="force [N]")
    axes.legend(frameon=False)
    figure.savefig(PICTURE, dpi=110, bbox_inches="tight")


def main() -> None:
    record = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    record |= {"machine": machine()}
    pull_cases = [("newton", length, activation) for activation in ACTIVATIONS for length in LENGTHS]
    pull_cases += [(solver, 1.2, 1.0) for solver in PULLERS if solver != "newton"]
    for kind, measure, cases, keys in (
        ("pulls", pull_bar, pull_cases, ("solver", "length", "activation")),
        ("falls", fall, FALLS, ("solver", "dt", "iterations")),
    ):
        rows = record.setdefault(kind, [])
        known = {tuple(row[key] for key in keys) for row in rows}
        for case in cases:
            if case not in known:
                rows.append(measure(*case))
                print(rows[-1], flush=True)
                with replacing(RESULTS) as temporary:
                    temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    drawn(record["pulls"])


if __name__ == "__main__":
    main()
