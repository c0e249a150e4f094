"""Cloth beside closed forms, and what a sweep of it costs: python benchmarks/cloth.py

Strips under their own weight beside the heavy elastica (ASTM D1388), sheets rolled to cylinders beside plate
theory, and sweeps of PBNG over membranes with hinges beside those over tetrahedra, in float32, on one thread
and on a CUDA device where there is one.
Writes benchmarks/results/cloth.json; with names of parts, such as sweeps, only these are measured again;
`card` measures sweeps on a CUDA device.
"""

from __future__ import annotations

import json
import math
import sys
from datetime import date
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import numpy as np

sys.path += [str(Path(__file__).parents[1] / "tests" / name) for name in ("", "terms")]
from cloth_shapes import ELASTICA, cantilever, cloth, equilateral, tip
from problems import model_of, sheet

import supple
from supple.compute import Compute
from supple.io.machine import machine
from supple.kernels.cuda import require_device
from supple.model import Model
from supple.problem import Problem
from supple.scene import build_model
from supple.solving import make_problem
from supple.terms import bending_terms

RESULTS = Path(__file__).parent / "results" / "cloth.json"
CELLS, ROWS = 64, 28
SWEEPS = 50
BENDINGS = {"hinge": supple.HingeBending, "isometric": supple.IsometricBending}


def weave() -> supple.WovenStVK:
    """As stiff along the strip as the isotropic one, half across, and soft in shear."""
    return supple.WovenStVK(weft=1e9, warp=5e8, shear=1e8, poisson_weft=0.2, poisson_warp=0.1)


def elastica() -> list[dict[str, Any]]:
    """Angle of the chord beside that of the heavy elastica, for each weight."""
    found = []
    kinds = {
        **{name: (kind, None) for name, kind in BENDINGS.items()},
        "weave": (supple.HingeBending, weave()),
    }
    for name, (bending, membrane) in kinds.items():
        for weight, (drop, reach) in ELASTICA.items():
            if name != "hinge" and weight not in (8, 100):
                continue
            stretching = 4e7 if weight == 1 else 1e7  # what is bent less must be harder to bend across itself
            model = cantilever(float(weight), CELLS, ROWS, bending, stretching, membrane)
            result = supple.equilibrium(model)
            angle, expected = (
                math.degrees(math.atan2(*end)) for end in (tip(model, result.positions), (drop, reach))
            )
            found.append(
                {
                    "bending": name,
                    "weight": weight,
                    "angle": round(angle, 3),
                    "expected": round(expected, 3),
                    "error": round(angle / expected - 1, 5),
                    "outcome": result.report.outcome.name,
                }
            )
            print(found[-1], flush=True)
    return found


def cylinders() -> list[dict[str, Any]]:
    """Energy of rolled sheets by that of a plate, for directions across the mesh."""
    found = []
    meshes = {"equilateral": equilateral(48, 56), "right triangles": sheet(48)}
    for mesh, (points, triangles) in meshes.items():
        area = float(np.ptp(points[:, 0]) * np.ptp(points[:, 1]))
        for degrees in (0, 17, 45, 135):
            c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
            flat = points @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]).T
            rolled = np.stack(
                [2 * np.sin(flat[:, 0] / 2), flat[:, 1], 2 - 2 * np.cos(flat[:, 0] / 2)], axis=1
            )
            for name, kind in BENDINGS.items():
                problem = Problem(model_of(flat, *bending_terms(kind(1.0), flat, triangles, flat)), "float64")
                problem.positions = rolled
                energy = float(problem.measures.stored_energies().sum())
                ratio = round(energy / (area / 8), 4)
                found.append({"mesh": mesh, "degrees": degrees, "bending": name, "ratio": ratio})
                print(found[-1], flush=True)
    return found


def sweep(model: Model, device: str) -> dict[str, Any]:
    """Milliseconds of a sweep, and nanoseconds of each visit of a stencil."""
    problem = make_problem(model, True, Compute(device, "float32", 1))
    clock = thread_time if device == "cpu" else perf_counter
    problem.set_inertia(0.01, model.rest)
    problem.begin_step(np.inf)
    run = supple.PBNG("none").begin(problem)
    run.advance(2)
    times = []
    for _ in range(8):
        problem.device.wait()
        begin = clock()
        run.advance(SWEEPS)
        problem.device.wait()
        times.append((clock() - begin) / SWEEPS)
    stencils = sum(len(term.vertices) for term in model.terms)
    visits = sum(term.vertices.size for term in model.terms)
    return {
        "vertices": model.vertices,
        "stencils": stencils,
        "ms": round(1e3 * min(times), 4),
        "ns_per_visit": round(1e9 * min(times) / visits, 2),
        "ns_per_stencil": round(1e9 * min(times) / stencils, 2),
    }


def sweeps(device: str = "cpu") -> dict[str, Any]:
    """A cloth of 128 × 128 cells, its membrane alone and with hinges, and a block of as many tetrahedra."""
    points, triangles = sheet(128)
    held = np.flatnonzero(points[:, 0] == 0)
    membrane, down = supple.Corotated(young=1e5, poisson=0.3), np.array([0, 0, -10.0])
    scene = supple.Scene(gravity=(0, -1, 0))
    body = scene.add_solid(supple.block(25), membrane, density=10)
    scene.pin(body.where(lambda X: X[:, 0] < 1e-9))
    models = {
        "tetrahedra": build_model(scene),
        "membrane": cloth(points, triangles, membrane, None, held, down),
        "membrane and hinges": cloth(points, triangles, membrane, supple.HingeBending(1e-3), held, down),
    }
    found = {}
    for name, model in models.items():
        found[name] = sweep(model, device)
        print(name, found[name], flush=True)
    return found


def main() -> None:
    parts = {"sweeps": sweeps, "cylinders": cylinders, "elastica": elastica}
    if sys.argv[1:] == ["card"]:
        parts = {"card": lambda: {"device": require_device(), **sweeps("cuda")}}
    old = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    chosen = sys.argv[1:] or list(parts)
    found = {
        **old,
        **{name: parts[name]() for name in chosen},
        "machine": machine(),
        "date": str(date.today()),
    }
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
