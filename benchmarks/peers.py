"""Milliseconds per sweep on one block of tetrahedra: supple and two peers, in one run on one CPU.

A sweep is one solver iteration: supple (PBNG) and Newton (VBD) then move every vertex once, pyPBD (PBD)
projects every tetrahedron's FEM constraint once.  Each peer is set up as fast as its package allows on a
CPU: pyPBD on all cores through OpenMP, in double precision, the only one its wheels have; Newton in single
precision with Warp's kernels at -O3, on one core because Warp's CPU backend runs a kernel on one thread.
The column "cores" is measured (CPU time over wall time), so a busy machine shows in it: believe a run only
if it reads all cores for pyPBD and 1 for Newton.

The block is the unit cube in 31 x 31 x 31 cells of five tetrahedra (32,768 vertices, 148,955 tetrahedra),
clamped at x = 0, pulled by gravity along -y, without contacts and damping.  A peer's sample is the slope
between a step of few and a step of many sweeps, which leaves out what a step costs once.  The samples of
all contestants are taken in turns, after compilation and warm-up, and the median counts.

The peers are no dependencies of supple.  Install them beside it; one that is missing is skipped::

    pip install pypbd newton
    python benchmarks/peers.py --json peers.json
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median

import numpy as np

CELLS = 31
DENSITY, YOUNG, POISSON = 1000.0, 1e6, 0.3
TIME_STEP = 5e-3
FEW, MANY = 5, 25
WARM_UP_STEPS = 4

Step = Callable[[int], object]
Sample = tuple[float, float]  # milliseconds per sweep, cores kept busy


@dataclass
class Contestant:
    name: str
    package: str
    method: str
    arithmetic: str
    sample: Callable[[], Sample]
    samples: list[Sample] = field(default_factory=list)

    def row(self) -> dict[str, object]:
        times, cores = zip(*self.samples, strict=True)
        return {
            "name": self.name,
            "version": version(self.package),
            "method": self.method,
            "arithmetic": self.arithmetic,
            "cores": round(median(cores), 2),
            "ms_per_sweep": round(median(times), 3),
            "samples_ms": [round(t, 3) for t in times],
        }


def block(cells: int = CELLS) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and tetrahedra of the unit cube, five per cell, mirrored from each cell to the next."""
    n = cells + 1
    vertices = np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    origins = vertices[(vertices < cells).all(axis=1)]
    # A cell's corners are numbered by the bits of (x, y, z): flipping a bit walks along an edge.
    split = np.array([[0, 3, 5, 6], *([corner, corner ^ 1, corner ^ 2, corner ^ 4] for corner in (1, 2, 4, 7))])
    corners = split ^ (origins.sum(axis=1) % 2)[:, None, None]
    places = origins[:, None, None] + np.stack([corners >> 2, corners >> 1 & 1, corners & 1], axis=-1)
    tets = (places @ [n * n, n, 1]).reshape(-1, 4)
    points = vertices / cells
    inverted = np.linalg.det(points[tets[:, 1:]] - points[tets[:, :1]]) < 0
    tets[inverted] = tets[inverted][:, [0, 1, 3, 2]]
    return points, tets


def slope(step: Step) -> Sample:
    """The marginal cost of a sweep, from a step of FEW and a step of MANY sweeps."""
    wall, cpu = [], []
    for sweeps in (FEW, MANY):
        start = time.perf_counter(), time.process_time()
        step(sweeps)
        wall.append(time.perf_counter() - start[0])
        cpu.append(time.process_time() - start[1])
    return 1e3 * (wall[1] - wall[0]) / (MANY - FEW), cpu[1] / wall[1]


def stepping(name: str, package: str, method: str, arithmetic: str, step: Step) -> Contestant:
    """A contestant that is driven by time steps, compiled and warmed up."""
    for _ in range(WARM_UP_STEPS):
        step(FEW)
    return Contestant(name, package, method, arithmetic, lambda: slope(step))


def supple_sweep() -> Sample:
    import numba
    import supple.bench

    figures = supple.bench.sweep(cells=CELLS, solver="pbng", material="corotated", precision="float32")
    return figures["ms_per_sweep"], float(numba.get_num_threads())


def supple() -> Contestant:
    supple_sweep()  # compiles
    return Contestant("supple", "supple", "PBNG, corotated", "float32", supple_sweep)


def pypbd() -> Contestant:
    import pypbd as pbd

    points, tets = block()
    simulation = pbd.Simulation.getCurrent()
    simulation.initDefault()
    model, controller = simulation.getModel(), simulation.getTimeStep()
    solid = model.addTetModel(points, tets.ravel().tolist())
    particles = model.getParticles()
    for i, clamped in enumerate(points[:, 0] == 0):
        particles.setMass(i, 0.0 if clamped else DENSITY / len(points))
    fem = 2  # pyPBD's number for the PBD FEM constraints; the last three arguments belong to other methods
    model.addSolidConstraints(solid, fem, YOUNG, POISSON, 1.0, False, False)
    pbd.TimeManager.getCurrent().setTimeStepSize(TIME_STEP)
    controller.setValueUInt(pbd.TimeStepController.NUM_SUB_STEPS, 1)
    controller.setValueUInt(pbd.TimeStepController.MAX_ITERATIONS_V, 0)

    def step(sweeps: int) -> None:
        controller.setValueUInt(pbd.TimeStepController.MAX_ITERATIONS, sweeps)
        controller.step(model)

    return stepping("pyPBD", "pypbd", "PBD, FEM tets (St. Venant-Kirchhoff)", "float64", step)


def newton() -> Contestant:
    import warp as wp

    wp.config.log_level = wp.LOG_ERROR  # no word on the missing GPU
    wp.config.optimization_level = 3  # Warp's default on the CPU, -O2, takes half as long again
    wp.config.cpu_compiler_flags = None
    import newton as nt

    points, tets = block()
    builder = nt.ModelBuilder(up_axis=nt.Axis.Y)
    builder.add_soft_mesh(
        pos=wp.vec3(), rot=wp.quat_identity(), scale=1.0, vel=wp.vec3(),
        vertices=[wp.vec3(*p) for p in points], indices=tets.ravel().tolist(),
        density=DENSITY, k_mu=YOUNG / (2 + 2 * POISSON), k_damp=0.0,
        k_lambda=YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON)), add_surface_mesh_edges=False,
    )  # fmt: skip
    for i in np.flatnonzero(points[:, 0] == 0):
        builder.particle_mass[i] = 0.0
    builder.color()
    model = builder.finalize(device="cpu")
    solver = nt.solvers.SolverVBD(model, particle_enable_self_contact=False, rigid_compliant_alm=True)
    states, control = [model.state(), model.state()], model.control()

    def step(sweeps: int) -> None:
        solver.iterations = sweeps
        solver.step(*states, control, None, TIME_STEP)
        states.reverse()

    return stepping("Newton", "newton", "VBD, neo-Hookean", "float32", step)


def cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((s.split(":")[1].strip() for s in lines if s.startswith("model name")), platform.processor())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures and the machine's description here")
    parser.add_argument("--rounds", type=int, default=9, help="samples per contestant (default: 9)")
    options = parser.parse_args()

    contestants = []
    for prepare in (supple, pypbd, newton):
        try:
            contestants.append(prepare())
        except ImportError as missing:
            print(f"{prepare.__name__} is skipped because it cannot be imported: {missing}.")
    for _ in range(options.rounds):
        for contestant in contestants:
            contestant.samples.append(contestant.sample())

    rows = [contestant.row() for contestant in contestants]
    own = next((row["ms_per_sweep"] for row in rows if row["name"] == "supple"), None)
    print(f"\n{'':8}{'version':>9}{'ms/sweep':>10}{'/ supple':>10}{'cores':>7}  arithmetic  method")
    for row in rows:
        row["ratio_to_supple"] = round(row["ms_per_sweep"] / own, 2) if own else None
        print(
            f"{row['name']:8}{row['version']:>9}{row['ms_per_sweep']:10.2f}"
            f"{row['ratio_to_supple'] or '-':>10}{row['cores']:7.2f}  {row['arithmetic']:10}  {row['method']}"
        )
    if options.json:
        machine = {"cpu": cpu_model(), "cores": os.cpu_count(), "system": platform.platform()}
        software = {"python": platform.python_version(), "numpy": np.__version__}
        figures = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "cells": CELLS, "rows": rows}
        options.json.write_text(json.dumps(figures | {"machine": machine, "software": software}, indent=2) + "\n")


if __name__ == "__main__":
    main()
