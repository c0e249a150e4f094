"""All methods beside each other: distance from Newton, milliseconds per sweep."""

from __future__ import annotations

import os

import numpy as np
from common import Figures, clamped, placed, say

import supple
from supple import BPXPBD, FPXPBD, GPBD, PBD, PBNG, XPBD, BlockXPBD, Newton
from supple.bench import sweep
from supple.materials import MATERIALS
from supple.solving import solve
from supple.stop import Stop


def accuracy() -> Figures:
    """How far each method ends from Newton in one step of a clamped bar, for displacements of all sizes."""
    solvers = {
        "xpbd": XPBD(),
        "xpbd, root": XPBD(constraints="root"),
        "block_xpbd": BlockXPBD(),
        "bpxpbd": BPXPBD(),
        "fpxpbd": FPXPBD(),
        "gpbd": GPBD(),
        "pbd": PBD(),
    }
    table: Figures = {}
    for name in ("corotated", "neo_hookean"):
        for g in (-0.01, -1.0, -100.0, -1000.0):
            material = MATERIALS[name](young=1e4, poisson=0.3)
            scene = clamped(supple.block((6, 3, 3), (1, 0.5, 0.5)), material, 10, 0.01, gravity=(0, g, 0))
            model = supple.build_model(scene)
            truth = placed(model, 0.01, model.rest, 0.0)
            solve(truth, Newton(), Stop(1e-11, 30, None))
            moved = np.linalg.norm(truth.positions - model.rest)
            row = {"largest displacement [m]": float(np.abs(truth.positions - model.rest).max())}
            for label, solver in solvers.items():
                problem = placed(model, 0.01, model.rest, 0.0)
                solve(problem, solver, Stop(None, 400, None))
                row[label] = float(f"{np.linalg.norm(problem.positions - truth.positions) / moved:.3g}")
            table[f"{name}, gravity {g:g}"] = row
            say(f"accuracy, {name}, {g}: {row}")
    return {"what": "distance from Newton over Newton's displacement after 400 sweeps, float64", **table}


TARGETS = {"block_xpbd": 8, "xpbd": 10, "bpxpbd": 10, "fpxpbd": 15, "gpbd": 40}
"""Milliseconds per sweep that are wanted on the quiet 2-core machine."""


def speed() -> Figures:
    """Milliseconds per sweep on the res-32 block in float32; only of use on a quiet machine."""
    cases = [
        ("block_xpbd", BlockXPBD(), "neo_hookean"),
        ("block_xpbd", BlockXPBD(ordering="clusters"), "neo_hookean"),
        ("block_xpbd", BlockXPBD(), "corotated"),
        ("xpbd", XPBD(), "neo_hookean"),
        ("xpbd", XPBD(), "corotated"),
        ("bpxpbd", BPXPBD(), "corotated"),
        ("fpxpbd", FPXPBD(), "corotated"),
        ("fpxpbd", FPXPBD(), "neo_hookean"),
        ("gpbd", GPBD(), "neo_hookean"),
        ("gpbd", GPBD(sweep="jacobi"), "neo_hookean"),
        ("gpbd", GPBD(), "log_neo_hookean"),
        ("pbd", PBD(), "stvk"),
        ("pbng", PBNG(acceleration="none"), "corotated"),
    ]
    table: Figures = {}
    for name, solver, material in cases:
        found = sweep(31, solver, material, "float32", repeats=30)
        options = {
            k: v
            for k, v in found["options"].items()
            if k in ("ordering", "sweep") and v not in ("colours", "gauss_seidel")
        }
        label = ", ".join([name, material, *map(str, options.values())])
        table[label] = {
            "ms per sweep": round(found["ms_per_sweep"], 2),
            "best": round(found["ms_min"], 2),
            "target": TARGETS.get(name),
            "colours": found["colours"],
            "threads": found["threads"],
        }
        say(f"speed, {label}: {table[label]}")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {"what": "res-32 block, 32768 vertices, 148955 tets, float32", "load average": load, **table}
