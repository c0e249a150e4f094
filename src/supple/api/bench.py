"""Benchmark of the time per solver iteration."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from supple.config.backend import Backend
from supple.io.machine import machine
from supple.kernels import compilation
from supple.materials import MATERIALS
from supple.meshes import block
from supple.model.model import Model
from supple.scene import Rotate, Scene, Translate, build_model
from supple.solve.batch_solve import make_problem
from supple.solve.call_options import resolve_solver
from supple.solvers import PBNG, Solver
from supple.solvers.options import plain_options
from supple.support.arguments import match_name, suggest_name

SWEEPS = 5
"""Iterations per sample for solvers that check the residual only every few iterations."""

TIME_STEP = 0.01
"""Time step [s]. With inertia, element-wise methods need no pseudo-time steps between their sweeps."""


UNACCELERATED_PBNG = PBNG(acceleration=None)
"""Default solver: plain PBNG sweeps without acceleration."""


def sweep(
    cells: int = 31,
    solver: str | Solver = UNACCELERATED_PBNG,
    material: str = "corotated",
    precision: str = "float32",
    device: str = "cpu",
    threads: int | None = None,
    repeats: int = 20,
) -> dict[str, Any]:
    """Measure the time per iteration of a solver in one time step of the twisted, stretched unit block.

    The block is that of [PBNG section 11.1]. Every sample restarts from the same positions, with one untimed
    iteration first.

    Args:
        cells: Cells along each edge of the block.
        solver: Solver or its name.
        material: Name of the material.
        precision: "float32" or "float64".
        device: "cpu" or "cuda".
        threads: Number of CPU threads, all cores by default.
        repeats: Number of samples.

    Returns:
        Settings and measurements by name. `ms_per_sweep` is the median [ms] and `ms_min` the minimum;
        `visits` counts (free vertex, tetrahedron) incidences; `setup_seconds` covers mesh, model, coloring
        and layout without `compile_seconds`; `relative_residual` is that after the last sample, infinite if
        the solver failed.

    Raises:
        ValueError: An argument is unknown or out of range.
    """
    method = resolve_solver(solver)
    kind = _check_name(material, MATERIALS, "material")
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats}")
    backend = Backend(device, precision, threads)
    method.check_support(device, precision)
    began = perf_counter()
    with compilation() as compiled:
        model = make_twisted_block(cells, kind)
        problem = make_problem(model, True, backend)
        problem.set_inertia(TIME_STEP, model.rest)
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
        "colors": run.colors,
        "visits": int(np.count_nonzero(model.free[model.tets])),
        "threads": problem.device.threads,
        "repeats": repeats,
        "ms_per_sweep": median(samples),
        "ms_min": min(samples),
        "relative_residual": problem.balance().relative_residual,
        "setup_seconds": setup,
        "compile_seconds": compiled.seconds,
        "machine": machine(),
    }


def _check_name(name: str, names: Iterable[str], what: str) -> str:
    """Return a known name, or raise an error with a suggestion."""
    known = match_name(name, names)
    if known is None:
        raise ValueError(f"there is no {what} {name!r}; {suggest_name(name, names)}")
    return known


def make_twisted_block(cells: int, material: str) -> Model:
    """Unit block with fixed left face; the right face is rotated by 1 rad and pulled by 0.3 m."""
    scene = Scene(gravity=(0, 0, 0))
    body = scene.add_solid(block(cells), MATERIALS[material].example(), density=10)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    scene.pin(
        body.where(lambda X: X[:, 0] >= 1),
        motion=Rotate(axis=(1, 0, 0), center=(1, 0.5, 0.5), angle=1.0) + Translate((0.3, 0, 0)),
    )
    return build_model(scene)
