"""How long a sweep takes."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from supple.io.machine import machine
from supple.kernels import compilation
from supple.materials import MATERIALS
from supple.meshes import block
from supple.model import Model
from supple.scene import Rotate, Scene, Translate, build_model
from supple.scene.checks import closest
from supple.solvers import SOLVERS
from supple.solvers.problem import Problem

SWEEPS = 5
"""Sweeps per sample for solvers that look at the residual only now and then."""


def sweep(
    cells: int = 31,
    solver: str = "pbng",
    material: str = "corotated",
    precision: str = "float32",
    threads: int | None = None,
    repeats: int = 20,
) -> dict[str, Any]:
    """Milliseconds per iteration of a solver on the twisted and stretched unit block [PBNG section 11.1].

    visits: vertex-tet pairs that a sweep over the free vertices looks at. setup_seconds: mesh, model,
    colouring and layout, without compile_seconds.
    """
    for name, known in ((solver, SOLVERS), (material, MATERIALS)):
        if name not in known:
            kind = "solver" if known is SOLVERS else "material"
            raise ValueError(f"there is no {kind} {name!r}; {closest(name, known)}")
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats}")
    began = perf_counter()
    with compilation() as compiled:
        model = twisted_block(cells, material)
        problem = Problem(model, precision, threads)
        problem.prescribe(np.inf)
        start = problem.u.copy()
        run = SOLVERS[solver]().begin(problem)
        setup = perf_counter() - began - compiled.seconds
        count = SWEEPS if run.check_every > 1 else 1
        run.advance(count)
        problem.balance()
    samples = []
    for _ in range(repeats):
        problem.u[:] = start
        tick = perf_counter()
        run.advance(count)
        samples.append(1e3 * (perf_counter() - tick) / count)
    return {
        "solver": solver,
        "material": material,
        "precision": precision,
        "cells": cells,
        "vertices": model.vertices,
        "tets": len(model.tets),
        "colours": problem.colours,
        "visits": int(np.count_nonzero(model.free[model.tets])),
        "threads": problem.threads,
        "repeats": repeats,
        "ms_per_sweep": median(samples),
        "ms_min": min(samples),
        "setup_seconds": setup,
        "compile_seconds": compiled.seconds,
        "machine": machine(),
    }


def twisted_block(cells: int, material: str) -> Model:
    """The unit block with its left face held and its right one turned by 1 rad and pulled by 0.3 m."""
    scene = Scene(gravity=(0, 0, 0))
    body = scene.add_solid(block(cells), MATERIALS[material](young=1e5, poisson=0.3), density=10)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    scene.pin(
        body.where(lambda X: X[:, 0] >= 1),
        motion=Rotate(axis=(1, 0, 0), center=(1, 0.5, 0.5), angle=1.0) + Translate((0.3, 0, 0)),
    )
    return build_model(scene)
