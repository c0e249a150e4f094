"""Every material with every solver in both precisions: how far from Newton they end.

    nice python benchmarks/materials_by_solver.py [--device cuda] [--only gent]

A block of 48 tetrahedra sticks out of a wall and falls for three steps of 1/60 s; muscle is active, and what
can flow flows. Newton solves every step to 1e-9; the others have 300 iterations for each. Writes
benchmarks/results/materials_by_solver.json: the largest distance from Newton's positions as a part of the
way that Newton's have gone, or the sentence with which a solver refuses the material. Kernels are compiled on
the way, which is what takes most of the time: some ten seconds for each of 300 combinations. What is in
the file already is not computed again.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import supple
from supple.io.machine import machine
from supple.materials import MATERIALS
from supple.solvers import SOLVERS

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from problems import PRECISIONS, cantilever, material

RESULTS = Path(__file__).parent / "results" / "materials_by_solver.json"
STEP = {"dt": 1 / 60, "frames": 3, "quasistatic": False}
CLOTH_ONLY = {"mpbng"}


def kind_of(name: str) -> Any:
    """With moduli of about 1 kPa."""
    return material(
        name, **{"muscle": {"activation": 0.5}, "plastic_stvk": {"yield_strain": 0.02}}.get(name, {})
    )


def fallen(name: str, solver: str, **options: Any) -> np.ndarray:
    scene = cantilever(kind_of(name), cells=2, gravity=30.0, density=5.0)
    *_, last = supple.simulate(scene, solver, **STEP, **options)
    return last.positions


def distance(name: str, solver: str, precision: str, device: str, expected: np.ndarray) -> float | str:
    """From Newton's positions, as a part of the way from rest."""
    rest = supple.block(2).points
    stop = {"tolerance": 1e-6 if precision == "float64" else 1e-4, "max_iterations": 300}
    try:
        found = fallen(name, solver, precision=precision, device=device, **stop)
    except ValueError as refused:
        return str(refused)
    return float(np.abs(found - expected).max() / np.abs(expected - rest).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="materials whose names have this in them")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    record = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    known = record.setdefault(options.device, {})
    record[f"machine of {options.device}"] = machine()
    for name in (name for name in MATERIALS if options.only in name and not MATERIALS[name].thin):
        expected = fallen(name, "newton", tolerance=1e-9)
        for solver in (solver for solver in SOLVERS if solver not in CLOTH_ONLY):
            for precision in PRECISIONS:
                key = f"{name}, {solver}, {precision}"
                if precision in SOLVERS[solver].precisions and key not in known:
                    known[key] = distance(name, solver, precision, options.device, expected)
                    print(key, known[key], flush=True)
                    RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
