"""Analysis of a row of GPBD Table 5 on which Gauss-Seidel fails: compress, log barrier, nu = 0.4995, 20³
cells, 20 x 10.

    python benchmarks/compress_row.py --device cuda      JSON to benchmarks/results/compress_row.json

The row again, with more and fewer sweeps, in both precisions, without what is done near inversion being
possible at all (steps a quarter as long), and on smaller cubes: when the first element inverts, how far it is
from the pinned ends, what energies do.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import supple
from supple.io.machine import machine
from supple.problem import Problem
from supple.solve.batch_solve import make_device
from supple_papers.common import elastic_energy, jacobians, march
from supple_papers.gpbd import MOTION_STEPS, cube

RESULTS = Path(__file__).parent / "results" / "compress_row.json"

CASES: dict[str, dict[str, Any]] = {
    "as in the paper": {},
    "float64": {"precision": "float64"},
    "5 sweeps": {"sweeps": 5},
    "60 sweeps": {"sweeps": 60},
    "30 local Newton steps": {"newton": 30},
    "clusters": {"ordering": "clusters"},
    "jacobi, mass": {"sweep": "jacobi"},
    "15³ cells": {"cells": 15},
    "10³ cells": {"cells": 10},
    "nu = 0.499": {"poisson": 0.499},
    "ends moved four times as slowly": {"slow": 4},
}


def follow(
    device: str,
    cells: int = 20,
    sweeps: int = 20,
    newton: int = 10,
    poisson: float = 0.4995,
    precision: str = "float32",
    slow: int = 1,
    steps: int = 1400,
    **form: Any,
) -> dict[str, Any]:
    """One run, evaluated at every 10th step."""
    scene = cube(supple.materials.LogNeoHookean(young=1e5, poisson=poisson), "compress", cells, 0.001)
    if slow > 1:
        longer = {"duration": slow * MOTION_STEPS * 0.001}
        scene.pins[:] = [replace(pin, motion=replace(pin.motion, **longer)) for pin in scene.pins]
    model = supple.scene.build_model(scene)
    problem, energy = Problem(model, precision, device=make_device(device, model)), elastic_energy(model)
    solver = supple.GPBD(newton_steps=newton, **form)
    seen: dict[str, list[Any]] = {"step": [], "elastic": [], "kinetic": [], "least J": [], "inverted": []}
    first, began = None, perf_counter()
    for step, (x, v) in enumerate(march(scene, problem, solver, model.rest, steps, sweeps), 1):
        if not np.isfinite(x).all():
            break
        if step % 10:
            continue
        J = jacobians(model, x)
        seen["step"].append(step)
        seen["elastic"].append(energy(x))
        seen["kinetic"].append(0.5 * float(np.sum(model.mass[:, None] * v**2)))
        seen["least J"].append(float(J.min()))
        seen["inverted"].append(int(np.sum(J <= 0)))
        if first is None and J.min() <= 0:
            center = model.rest[model.tets[int(J.argmin())]].mean(axis=0)
            nearest = float(min(center[0], 1 - center[0]))
            outside = float(min(center[1:].min(), (1 - center[1:]).min()))
            first = {"step": step, "from the pinned end [m]": nearest, "from the free side [m]": outside}
    return {
        "steps": step,
        "finite": step == steps,
        "first inverted": first,
        "most inverted": max(seen["inverted"]),
        "seconds": round(perf_counter() - began, 1),
        "seen": {name: [float(f"{value:.4g}") for value in values[::5]] for name, values in seen.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    chosen = parser.parse_args()
    results = json.loads(chosen.output.read_text()) if chosen.output.exists() else {}
    results["machine"] = machine() | {"device": chosen.device}
    for name in chosen.cases:
        if name in results:
            continue
        results[name] = follow(chosen.device, **CASES[name])
        row = results[name]
        print(f"{name}: {row['steps']} steps, finite {row['finite']}, {row['first inverted']}", flush=True)
        chosen.output.parent.mkdir(parents=True, exist_ok=True)
        chosen.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
