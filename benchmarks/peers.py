"""Milliseconds per sweep on one block of tetrahedra: supple and two peers, in one run on one CPU.

A sweep is one solver iteration: supple (PBNG) and Newton (VBD) then move every vertex once, pyPBD (PBD)
projects every tetrahedron's FEM constraint once.  Each peer is set up as fast as its package allows on a
CPU: pyPBD on all cores through OpenMP, in double precision, the only one its wheels have; Newton in single
precision with Warp's kernels at -O3, on one thread because Warp's CPU backend has no more.

The block is the unit cube in 31 x 31 x 31 cells of five tetrahedra (32,768 vertices, 148,955 tetrahedra),
pinned at x = 0.  The peers bend it by gravity, without contacts and damping; supple twists and stretches it
(`supple.api.bench.sweep`).  A peer's sample is the slope between a step of few and a step of many sweeps,
which leaves out what a step costs once.  All contestants take their samples in turns, after compilation and
warm-up, and the median counts.  Other programs must not take part: OpenMP's threads wait for each other, and
one that loses its core makes a pyPBD sweep up to twenty times as long.  So a round in which a peer's CPU
time falls short of its wall time times its threads is thrown away.

The peers are no dependencies of supple.  Install them next to it; one that is missing is skipped::

    pip install pypbd newton
    python benchmarks/peers.py --json peers.json
"""

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import supple.api.bench
from supple.io.machine import machine, versions

CELLS = 31
DENSITY, YOUNG, POISSON = 1000.0, 1e6, 0.3
TIME_STEP = 5e-3
WARM_UP_STEPS = 8
FEW, MANY = 5, 25  # sweeps in a step
CORES = os.cpu_count() or 1


@dataclass(frozen=True)
class Contestant:
    package: str
    method: str
    arithmetic: str
    threads: int
    sample: Callable[[], float]
    """Milliseconds per sweep; NaN if other programs took the cores meanwhile."""


def slope(step: Callable[[int], None], threads: int) -> float:
    """Marginal milliseconds of a sweep, from a step of FEW sweeps and one of MANY, or NaN."""
    wall, cpu = [], []
    for sweeps in (FEW, MANY):
        start = time.perf_counter(), time.process_time()
        step(sweeps)
        wall.append(time.perf_counter() - start[0])
        cpu.append(time.process_time() - start[1])
    undisturbed = sum(cpu) > 0.95 * threads * sum(wall)
    return 1e3 * (wall[1] - wall[0]) / (MANY - FEW) if undisturbed else math.nan


def peer(package: str, method: str, arithmetic: str, threads: int, step: Callable[[int], None]) -> Contestant:
    """A competitor that runs step by step, compiled and warmed up."""
    for _ in range(WARM_UP_STEPS):
        step(MANY)
    return Contestant(package, method, arithmetic, threads, lambda: slope(step, threads))


def supple_sweep() -> dict[str, Any]:
    return supple.api.bench.sweep(cells=CELLS, material="corotated", precision="float32")


def supple_pbng() -> Contestant:
    threads = supple_sweep()["threads"]  # the first call compiles
    return Contestant("supple", "PBNG, corotated", "float32", threads, lambda: supple_sweep()["ms_per_sweep"])


def pypbd_fem() -> Contestant:
    import pypbd as pbd

    mesh = supple.block(CELLS)
    simulation = pbd.Simulation.getCurrent()
    simulation.initDefault()
    model, controller = simulation.getModel(), simulation.getTimeStep()
    solid = model.addTetModel(mesh.points, mesh.tets.ravel().tolist())
    particles = model.getParticles()
    for i, mass in enumerate(np.where(mesh.points[:, 0] > 0, mesh.masses(DENSITY), 0.0)):
        particles.setMass(i, mass)
    fem = 2  # pyPBD's number for its FEM constraints; what follows Poisson's ratio is for the other kinds
    model.addSolidConstraints(solid, fem, YOUNG, POISSON, 1.0, False, False)
    pbd.TimeManager.getCurrent().setTimeStepSize(TIME_STEP)
    controller.setValueUInt(pbd.TimeStepController.NUM_SUB_STEPS, 1)
    controller.setValueUInt(pbd.TimeStepController.MAX_ITERATIONS_V, 0)

    def step(sweeps: int) -> None:
        controller.setValueUInt(pbd.TimeStepController.MAX_ITERATIONS, sweeps)
        controller.step(model)

    return peer("pypbd", "PBD, FEM tets (StVK)", "float64", CORES, step)


def newton_vbd() -> Contestant:
    import newton
    import warp as wp

    wp.config.optimization_level = 3  # at the default, 2, a sweep takes half as long again
    wp.config.cpu_compiler_flags = None
    mesh = supple.block(CELLS)
    builder = newton.ModelBuilder(up_axis=newton.Axis.Y)
    builder.add_soft_mesh(
        vertices=[wp.vec3(*point) for point in mesh.points],
        indices=mesh.tets.ravel().tolist(),
        pos=wp.vec3(),
        rot=wp.quat_identity(),
        scale=1.0,
        vel=wp.vec3(),
        density=DENSITY,
        k_mu=YOUNG / (2 + 2 * POISSON),
        k_lambda=YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON)),
        k_damp=0.0,
        add_surface_mesh_edges=False,
    )
    for i in np.flatnonzero(mesh.points[:, 0] == 0):
        builder.particle_mass[i] = 0.0
    builder.color()
    model = builder.finalize(device="cpu")
    solver = newton.solvers.SolverVBD(model, particle_enable_self_contact=False, rigid_compliant_alm=True)
    states, control = [model.state(), model.state()], model.control()

    def step(sweeps: int) -> None:
        solver.iterations = sweeps
        solver.step(*states, control, None, TIME_STEP)
        states.reverse()

    return peer("newton", f"VBD, neo-Hookean, Warp {wp.__version__}", "float32", 1, step)


def measured(contestants: list[Contestant], count: int) -> list[dict[str, Any]]:
    """A row of results for each contestant, from `count` undisturbed rounds."""
    rounds: list[list[float]] = []
    attempts = 5 * count
    while len(rounds) < count and attempts:
        samples = [contestant.sample() for contestant in contestants]
        rounds += [] if any(map(math.isnan, samples)) else [samples]
        attempts -= 1
    if len(rounds) < count:
        sys.exit("Other programs kept taking the cores, so there are no figures: use a quiet machine.")
    return [
        {
            "package": contestant.package,
            "version": version(contestant.package),
            "method": contestant.method,
            "arithmetic": contestant.arithmetic,
            "threads": contestant.threads,
            "ms_per_sweep": median(samples),
            "samples": samples,
        }
        for contestant, *samples in zip(contestants, *rounds, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Milliseconds per sweep of supple, pyPBD and Newton.")
    parser.add_argument("--json", type=Path, help="write the figures and the machine's description here")
    parser.add_argument("--rounds", type=int, default=9, help="samples per contestant (default: 9)")
    options = parser.parse_args()

    contestants = []
    for prepare in (supple_pbng, pypbd_fem, newton_vbd):
        try:
            contestants.append(prepare())
        except ImportError as error:
            print(f"{prepare.__name__} is left out because it is not installed: {error}.")

    rows = measured(contestants, options.rounds)
    own = next((row["ms_per_sweep"] for row in rows if row["package"] == "supple"), None)
    print(f"{'package':13} {'ms/sweep':>8} {'/ supple':>8} {'threads':>7}  arithmetic  method")
    for row in rows:
        row["ratio"] = row["ms_per_sweep"] / own if own else None
        ratio = f"{row['ratio']:.2f}" if own else "-"
        print(
            f"{row['package']:7}{row['version']:6} {row['ms_per_sweep']:8.2f} {ratio:>8} {row['threads']:7}  "
            f"{row['arithmetic']:10}  {row['method']}"
        )
    if options.json:
        date = datetime.now(UTC).isoformat(timespec="seconds")
        report = {"date": date, "machine": machine(), "versions": versions(), "cells": CELLS, "rows": rows}
        options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
