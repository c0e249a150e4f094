"""Every material with every solver in both precisions: distance from Newton.

    nice python benchmarks/materials_by_solver.py [--device cuda] [--only gent] [--solvers pbng,xpbd]

A block of 48 tetrahedra sticks out of a wall and falls for three steps of 1/60 s; muscle is active, and what
can flow flows. Newton solves every step to 1e-9; the others have 300 iterations for each. Writes
benchmarks/results/materials_by_solver.json: the largest distance from Newton's positions as a part of the
way that Newton's have gone, or the sentence with which a solver refuses the material. Kernels are compiled on
the way, which is what takes most of the time: some ten seconds for each of 300 combinations. The file is
written after each; what is in it already is not computed again, so that a run may be stopped at any time.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import supple
from supple.io.machine import machine
from supple.io.replace_file import replacing
from supple.materials import MATERIALS
from supple.solvers import SOLVERS

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from problems import PRECISIONS, cantilever, material

RESULTS = Path(__file__).parent / "results" / "materials_by_solver.json"
STEP = {"dt": 1 / 60, "frames": 3, "quasistatic": False}
ORDER = ("pbng", "newton", "hybrid", "fpxpbd", "xpbd", "bpxpbd", "gpbd", "pbd", "block_xpbd")
"""Solvers, most used first, without those for cloth only."""
NEAR = 0.01
"""Part of the displacement within which a result counts as Newton's."""


def kind_of(name: str) -> Any:
    """Material with moduli of about 1 kPa."""
    return material(
        name, **{"muscle": {"activation": 0.5}, "plastic_stvk": {"yield_strain": 0.02}}.get(name, {})
    )


def fallen(name: str, solver: str, **options: Any) -> np.ndarray:
    scene = cantilever(kind_of(name), cells=2, gravity=30.0, density=5.0)
    *_, last = supple.simulate(scene, solver=solver, **STEP, **options)
    return last.positions


@cache
def expected(name: str) -> np.ndarray:
    return fallen(name, "newton", tolerance=1e-9)


def distance(name: str, solver: str, precision: str, device: str) -> float | str:
    """Distance from Newton's positions relative to the displacement from rest."""
    rest, truth = supple.block(2).points, expected(name)
    stop = {"tolerance": 1e-6 if precision == "float64" else 1e-4, "max_iterations": 300}
    try:
        entry = fallen(name, solver, precision=precision, device=device, **stop)
    except ValueError as refused:
        return f"refused: {refused}"
    except Exception as wrong:
        return f"FAILED: {type(wrong).__name__}: {wrong}"
    return float(np.abs(entry - truth).max() / np.abs(truth - rest).max())


def counts(known: dict[str, float | str]) -> dict[str, int]:
    """Number of combinations by outcome."""
    values = [value for value in known.values() if not isinstance(value, str)]
    return {
        "combinations": len(known),
        f"within {NEAR:g} of the way": sum(value <= NEAR for value in values),
        "further off": sum(value > NEAR for value in values),
        "not finite": sum(not np.isfinite(value) for value in values),
        "refused in a sentence": sum(str(value).startswith("refused") for value in known.values()),
        "failed": sum(str(value).startswith("FAILED") for value in known.values()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="materials whose names have this in them")
    parser.add_argument("--solvers", default=",".join(ORDER))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    record = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    part = record.setdefault(options.device, {})
    part["machine"], known = machine(), part.setdefault("distances", {})
    names = [name for name in MATERIALS if options.only in name and not MATERIALS[name].thin]
    for solver in options.solvers.split(","):
        for name in names:
            for precision in PRECISIONS:
                key = f"{name}, {solver}, {precision}"
                if precision in SOLVERS[solver].precisions and key not in known:
                    known[key] = distance(name, solver, precision, options.device)
                    print(key, known[key], flush=True)
                    part["counts"] = counts(known)
                    with replacing(RESULTS) as temporary:
                        temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
