"""How long a sweep takes."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from supple.asking import method_of
from supple.checks import closest
from supple.compute import Compute
from supple.io.machine import machine
from supple.kernels import compilation
from supple.materials import MATERIALS
from supple.meshes import block
from supple.model import Model
from supple.scene import Rotate, Scene, Translate, build_model
from supple.solvers import PBNG, Solver
from supple.solvers.options import plain_options
from supple.solving import make_problem

SWEEPS = 5
"""Sweeps per sample for solvers that look at the residual only now and then."""

DT = 0.01
"""Time step [s]: with inertia, element-wise methods need no steps of pseudo-time between their sweeps."""


PLAIN = PBNG(acceleration=None)
"""What a sweep costs by itself."""


def sweep(
    cells: int = 31,
    solver: str | Solver = PLAIN,
    material: str = "corotated",
    precision: str = "float32",
    device: str = "cpu",
    threads: int | None = None,
    repeats: int = 20,
) -> dict[str, Any]:
    """Milliseconds per iteration of a solver in one time step of the twisted and stretched unit block [PBNG
    section 11.1].

    visits: vertex-tet pairs that a sweep over the free vertices looks at. setup_seconds: mesh, model,
    colouring and layout, without compile_seconds. imbalance: after the last sample, infinite where the solver
    failed. Each sample begins anew, with one iteration that is not timed.
    """
    method = method_of(solver)
    kind = _known(material, MATERIALS, "material")
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats}")
    compute = Compute(device, precision, threads)
    method.refuse_unable(device, precision)
    began = perf_counter()
    with compilation() as compiled:
        model = twisted_block(cells, kind)
        problem = make_problem(model, True, compute)
        problem.set_inertia(DT, model.rest)
        problem.begin_step(np.inf)
        start = problem.positions
        run = method.begin(problem)
        setup = perf_counter() - began - compiled.seconds
        run.advance(1)
    count = SWEEPS if run.check_every > 1 else 1
    samples = []
    for _ in range(repeats):
        problem.positions = start
        run = method.begin(problem)
        run.advance(1)
        problem.device.wait()
        tick = perf_counter()
        run.advance(count)
        problem.device.wait()
        samples.append(1e3 * (perf_counter() - tick) / count)
    return {
        "solver": method.name,
        "options": plain_options(method),
        "material": material,
        "precision": precision,
        "device": device,
        "cells": cells,
        "vertices": model.vertices,
        "tets": len(model.tets),
        "colours": run.colours,
        "visits": int(np.count_nonzero(model.free[model.tets])),
        "threads": problem.device.threads,
        "repeats": repeats,
        "ms_per_sweep": median(samples),
        "ms_min": min(samples),
        "imbalance": problem.balance().imbalance,
        "setup_seconds": setup,
        "compile_seconds": compiled.seconds,
        "machine": machine(),
    }


def _known(name: str, names: Iterable[str], what: str) -> str:
    if name not in names:
        raise ValueError(f"there is no {what} {name!r}; {closest(name, names)}")
    return name


def twisted_block(cells: int, material: str) -> Model:
    """The unit block with its left face held and its right one turned by 1 rad and pulled by 0.3 m."""
    scene = Scene(gravity=(0, 0, 0))
    body = scene.add_solid(block(cells), MATERIALS[material].example(), density=10)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    scene.pin(
        body.where(lambda X: X[:, 0] >= 1),
        motion=Rotate(axis=(1, 0, 0), centre=(1, 0.5, 0.5), angle=1.0) + Translate((0.3, 0, 0)),
    )
    return build_model(scene)
