"""Distance of element-wise methods from Newton in one step of a clamped bar, under loads of different
magnitudes.

python benchmarks/accuracy.py        JSON to benchmarks/results/accuracy.json
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import supple
from supple import BPXPBD, FPXPBD, GPBD, PBD, XPBD, BlockXPBD, Newton
from supple.config.stop_criteria import StopCriteria
from supple.io.machine import machine
from supple.solve.batch_solve import solve
from supple_papers.common import clamped_scene, time_step_problem

RESULTS = Path(__file__).parent / "results" / "accuracy.json"
SOLVERS = {
    "xpbd": XPBD(),
    "xpbd, root": XPBD(constraints="root"),
    "block_xpbd": BlockXPBD(),
    "bpxpbd": BPXPBD(),
    "fpxpbd": FPXPBD(),
    "gpbd": GPBD(),
    "pbd": PBD(),
}


def row(kind: type, gravity: float) -> dict[str, float]:
    """Distances from Newton over Newton's displacement after 400 sweeps, in float64."""
    material = kind(young=1e4, poisson=0.3)
    mesh = supple.block((6, 3, 3), (1, 0.5, 0.5))
    model = supple.scene.build_model(clamped_scene(mesh, material, 10, 0.01, gravity=(0, gravity, 0)))
    truth = time_step_problem(model, 0.01, model.rest, 0.0)
    solve(truth, Newton(), StopCriteria(1e-11, 30, None))
    moved = np.linalg.norm(truth.positions - model.rest)
    entry = {"largest displacement [m]": float(np.abs(truth.positions - model.rest).max())}
    for label, solver in SOLVERS.items():
        problem = time_step_problem(model, 0.01, model.rest, 0.0)
        solve(problem, solver, StopCriteria(None, 400, None))
        entry[label] = float(f"{np.linalg.norm(problem.positions - truth.positions) / moved:.3g}")
    return entry


def main() -> None:
    results: dict = {"machine": machine()}
    for kind in (supple.Corotated, supple.NeoHookean):
        for gravity in (-0.01, -1.0, -100.0, -1000.0):
            label = f"{kind.__name__}, gravity {gravity:g}"
            results[label] = row(kind, gravity)
            print(label, results[label], flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
