"""Sweeps, equilibria, batches and substeps on a CUDA device.

    python benchmarks/gpu.py --json benchmarks/results/gpu.json --markdown benchmarks/results/gpu.md
    python benchmarks/gpu.py sweeps substeps --json ...      # some of it; the other figures stay as they are

Besides the times, it measures what bounds them: the copy bandwidth of the card and the bytes that one sweep
must move (each update's rest data and ids once, positions once per vertex), the rate of its arithmetic and
the operations of one sweep, and the cost of one synchronisation of all its blocks. Each section is written
as soon as it is done."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from statistics import median

import numpy as np
from numba import cuda

import supple
from supple.io.machine import machine
from supple.kernels import end_phase, kernel
from supple.kernels.cuda import require_device
from supple.problem import Problem
from supple.solve.batch_solve import make_problem
from supple.solvers import SOLVERS

TARGETS = {31: 25, 63: 100, 127: 900}
"""Microseconds per sweep to reach, by cells per side."""

OPERATIONS = 360
"""Additions and multiplications of one visit of a corotated tetrahedron, counted in the compiled kernel."""

TWIST = Path(__file__).resolve().parents[1] / "scenes" / "twist.toml"


def twisted_block(cells: int) -> supple.Scene:
    scene = supple.Scene(gravity=(0, 0, 0))
    body = scene.add_solid(supple.block(cells), supple.Corotated(young=1e5, poisson=0.3), density=10)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    turn = supple.Rotate(axis=(1, 0, 0), center=(1, 0.5, 0.5), angle=1.0)
    scene.pin(body.where(lambda X: X[:, 0] >= 1), motion=turn + supple.Translate((0.3, 0, 0)))
    return scene


def seconds(work: Callable, repeats: int = 7, wait: Callable = cuda.synchronize) -> float:
    """Median time of some device work, which is complete when `wait` returns."""
    work()
    times = []
    for _ in range(repeats):
        wait()
        start = time.perf_counter()
        work()
        wait()
        times.append(time.perf_counter() - start)
    return median(times)


def copy_bandwidth() -> float:
    """Bytes read and written per second by a large copy on the device."""
    source, target = (cuda.device_array(2**30, np.float32) for _ in range(2))
    return 2 * source.nbytes / seconds(lambda: target.copy_to_device(source))


@kernel
def _synchronize(team, phases):
    for phase in range(phases):
        end_phase(team, phase, 0, 0)


def synchronisation(problem: Problem) -> float:
    """Seconds for all blocks of a launch to meet."""
    return seconds(lambda: problem.device.run(_synchronize, 1000, 1000)) / 1000


@cuda.jit(fastmath=True)
def _multiply(out):
    a, b, c, d = np.float32(cuda.grid(1)), np.float32(1.0), np.float32(2.0), np.float32(3.0)
    s, t = np.float32(0.999), np.float32(0.5)
    for _ in range(4096):
        for _ in range(16):
            a, b, c, d = a * s + t, b * s + t, c * s + t, d * s + t
    out[cuda.grid(1) % out.size] = a + b + c + d


def arithmetic() -> float:
    """float32 operations per second, a multiplication with an addition counted as two."""
    out = cuda.device_array(1024, np.float32)
    return 132 * 16 * 128 * 4096 * 16 * 4 * 2 / seconds(lambda: _multiply[132 * 16, 128](out))


def limits() -> dict:
    """Peak rates of the GPU."""
    small = make_problem(supple.scene.build_model(twisted_block(8)), True, supple.Backend("cuda", "float32"))
    return {
        "copy_bandwidth_tb_per_s": copy_bandwidth() / 1e12,
        "arithmetic_tflop_per_s": arithmetic() / 1e12,
        "synchronisation_us": 1e6 * synchronisation(small),
    }


def sweeps() -> list[dict]:
    best = limits()
    return [sweep_row(cells, p, best) for cells in TARGETS for p in ("float32", "float64")]


def sweep_row(cells: int, precision: str, best: dict) -> dict:
    problem = make_problem(
        supple.scene.build_model(twisted_block(cells)), True, supple.Backend("cuda", precision)
    )
    problem.begin_step(np.inf)
    run = supple.PBNG(acceleration="none").begin(problem)
    count = 100 if cells < 100 else 20
    per_sweep = seconds(lambda: run.advance(count), 5, problem.device.wait) / count
    term = problem.layout.terms[0]
    moved = term.rest[:, :9].nbytes + term.others.nbytes + 3 * problem.u.nbytes
    incidences = len(term.rest) * problem.device.lanes
    return {
        "cells": cells,
        "vertices": problem.model.vertices,
        "tets": len(problem.model.tets),
        "precision": precision,
        "colors": run.colors,
        "us_per_sweep": 1e6 * per_sweep,
        "target_us": TARGETS[cells] if precision == "float32" else None,
        "bytes_us": moved / best["copy_bandwidth_tb_per_s"] / 1e6,
        "arithmetic_us": OPERATIONS * incidences / best["arithmetic_tflop_per_s"] / 1e6,
        "synchronisation_us": run.colors * best["synchronisation_us"],
    }


def methods() -> list[dict]:
    return [method_row(name) for name in SOLVERS if name not in ("pbng", "newton")]


def method_row(name: str) -> dict:
    """A sweep of a constraint-based method in the middle of a dynamic step."""
    problem = make_problem(
        supple.scene.build_model(twisted_block(31)), True, supple.Backend("cuda", "float32")
    )
    problem.begin_step(np.inf)
    problem.set_inertia(0.01, problem.positions)
    run = SOLVERS[name]().begin(problem)
    return {
        "solver": name,
        "us_per_sweep": 1e6 * seconds(lambda: run.advance(20), 5, problem.device.wait) / 20,
        "colors": run.colors,
    }


def cube() -> list[dict]:
    return [
        cube_row(supple.PBNG(acceleration="none")),
        cube_row(supple.GPBD(sweep="jacobi")),
        cube_row(supple.GPBD()),
    ]


def cube_row(solver: supple.solvers.Solver) -> dict:
    """The stable neo-Hookean cube of GPBD Table 4: one iteration among many, and a whole time step with one
    iteration, including launches."""
    scene = supple.Scene(quasistatic=False, dt=0.001)
    body = scene.add_solid(supple.block(25), supple.StableNeoHookean(young=1e6, poisson=0.45), density=1000)
    scene.pin(body.where(lambda X: X[:, 1] >= 1))
    problem = make_problem(supple.scene.build_model(scene), True, supple.Backend("cuda", "float32"))
    problem.loads.set_time_step(scene.dt)
    run = solver.begin(problem)
    prescribed = problem.model.prescribed(0.0)

    def frames() -> None:
        for _ in range(100):
            problem.states.predict(scene.dt, 0.0, prescribed)
            solver.begin(problem).advance(1)

    return {
        "solver": solver.name,
        "method": f"{solver.name} {getattr(solver, 'sweep', '')}".strip(),
        "tets": len(problem.model.tets),
        "colors": run.colors,
        "us_per_iteration": 1e6 * seconds(lambda: run.advance(50), 5, problem.device.wait) / 50,
        "us_per_frame": 1e6 * seconds(frames, 5, problem.device.wait) / 100,
        "paper_us": {"pbng": 113, "gpbd": 102 if "jacobi" in str(solver) else 629}[solver.name],
    }


def substeps() -> list[dict]:
    return [substeps_row(ordering) for ordering in ("colors", "clusters")]


def substeps_row(ordering: str) -> dict:
    """A step of 0.01 s in 50 substeps of block XPBD on 56 thousand tetrahedra [BNH Table 2]."""
    scene = supple.Scene(quasistatic=False, dt=0.01, frames=12)
    body = scene.add_solid(
        supple.block((22, 23, 22)), supple.NeoHookean(young=1e6, poisson=0.45), density=1000
    )
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    solver = supple.BlockXPBD(ordering=ordering, iterations=1)
    stamps, colors = [], 0
    for frame in supple.simulate(scene, solver=solver, substeps=50, device="cuda", precision="float32"):
        stamps.append(time.perf_counter())
        colors = frame.report.colors
    return {
        "ordering": ordering,
        "tets": len(body.mesh.tets),
        "colors": colors,
        "ms_per_step": 1e3 * median(np.diff(stamps[2:])),
        "target_ms": 6,
        "inverted": frame.report.inverted,
    }


ACCELERATIONS = ("chebyshev", "anderson")


def equilibria() -> list[dict]:
    return [equilibrium_row(p, a) for p in ("float32", "float64") for a in ACCELERATIONS]


def batches() -> list[dict]:
    return [batch_row(p, a) for p in ("float32", "float64") for a in ACCELERATIONS]


def equilibrium_row(precision: str, acceleration: str) -> dict:
    model = supple.scene.build_model(supple.load_scene(TWIST).scene)
    reports = [
        supple.equilibrium(
            model, solver=supple.PBNG(acceleration), tolerance=1e-4, precision=precision, device="cuda"
        ).report
        for _ in range(4)
    ]
    best = min(reports[1:], key=lambda report: report.seconds)
    return {
        "precision": precision,
        "acceleration": acceleration,
        "ms": 1e3 * best.seconds,
        "target_ms": 5 if precision == "float32" else None,
        "iterations": best.iterations,
        "relative_residual": best.relative_residual,
    }


def batch_row(precision: str, acceleration: str, count: int = 64) -> dict:
    """Equilibria per second: the twisted block at several moments of its motion, solved together from the
    undeformed interior."""
    scene = supple.load_scene(TWIST).scene
    variations = [supple.Variation(time=0.5 + 0.5 * k / count) for k in range(1, count + 1)]
    rows = []
    for _ in range(3):
        start = time.perf_counter()
        solver = supple.PBNG(acceleration)
        chosen = {
            "precision": precision,
            "device": "cuda",
            "position_tolerance": None,
        }  # to the relative residual alone
        results = list(supple.equilibria(scene, variations, solver=solver, **chosen))
        wall = time.perf_counter() - start
        reports = [result.report for result in results]
        solving = max(report.seconds for report in reports)
        rows.append(
            {
                "precision": precision,
                "acceleration": acceleration,
                "equilibria": count,
                "solve_seconds": solving,
                "wall_seconds": wall,
                "per_second": count / solving,
                "per_second_with_setup": count / wall,
                "target_per_second": 400 if precision == "float32" else None,
                "iterations": sorted({report.iterations for report in reports}),
                "converged": sum(report.ok for report in reports),
            }
        )
    return min(rows, key=lambda row: row["solve_seconds"])


def many() -> list[dict]:
    return [many_row("float32", a) for a in ACCELERATIONS]


def many_row(precision: str, acceleration: str, count: int = 1024, at_once: int = 256) -> dict:
    """Equilibria per second in one call, from the scene to host arrays, including set-up."""
    scene = supple.load_scene(TWIST).scene
    variations = [supple.Variation(time=0.5 + 0.5 * k / count) for k in range(1, count + 1)]
    start = time.perf_counter()
    chosen = {
        "precision": precision,
        "device": "cuda",
        "position_tolerance": None,
    }  # to the relative residual alone
    results = supple.equilibria(
        scene, variations, solver=supple.PBNG(acceleration), **chosen, batch_size=at_once
    )
    converged = sum(result.report.ok for result in results)
    wall = time.perf_counter() - start
    return {
        "precision": precision,
        "acceleration": acceleration,
        "equilibria": count,
        "at_once": at_once,
        "wall_seconds": wall,
        "per_second": count / wall,
        "converged": converged,
    }


def markdown(results: dict) -> str:
    """The rows with targets."""
    rows = [
        (
            f"PBNG sweep, {row['vertices']:,} vertices, {row['tets']:,} tetrahedra",
            f"{row['target_us']} µs",
            f"{row['us_per_sweep']:.0f} µs",
            f"{row['bytes_us']:.0f} / {row['arithmetic_us']:.0f} / {row['synchronisation_us']:.0f} µs",
        )
        for row in results.get("sweeps", [])
        if row["target_us"]
    ]
    rows += [
        (
            f"25³ stable neo-Hookean cube, {row['method']}, one iteration / one frame of it",
            f"{row['paper_us']} µs",
            f"{row['us_per_iteration']:.0f} / {row['us_per_frame']:.0f} µs",
            "",
        )
        for row in results.get("cube", [])
    ]
    rows += [
        (
            f"twisted block, relative residual 1e-4, {row['acceleration']}, {row['iterations']} sweeps",
            f"{row['target_ms']} ms",
            f"{row['ms']:.1f} ms",
            "",
        )
        for row in results.get("equilibria", [])
        if row["target_ms"]
    ]
    rows += [
        (
            f"{row['equilibria']} of them together, {row['acceleration']}",
            f"{row['target_per_second']} per second",
            f"{row['per_second']:.0f} per second",
            "",
        )
        for row in results.get("batches", [])
        if row["target_per_second"]
    ]
    rows += [
        (
            f"{row['equilibria']:,} of them in one call, {row['acceleration']}, with set-up and results",
            "",
            f"{row['per_second']:.0f} per second",
            "",
        )
        for row in results.get("many", [])
    ]
    rows += [
        (
            f"block XPBD, 50 substeps, {row['tets']:,} tetrahedra, {row['ordering']}",
            f"{row['target_ms']} ms",
            f"{row['ms_per_step']:.1f} ms",
            "",
        )
        for row in results.get("substeps", [])
    ]
    lines = [
        "| case, float32 | to reach | measured | bytes / arithmetic / synchronisation alone |",
        "|---|---|---|---|",
    ]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return f"{results['card']}, {results['date']}\n\n" + "\n".join(lines) + "\n"


SECTIONS: dict[str, Callable] = {
    section.__name__: section
    for section in (limits, sweeps, methods, cube, equilibria, batches, many, substeps)
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    results = {}
    if options.sections and options.json and options.json.exists():
        results = json.loads(options.json.read_text())
    results |= {"date": str(date.today()), "card": require_device(), "machine": machine()}
    for name in options.sections or SECTIONS:
        began = time.perf_counter()
        results[name] = SECTIONS[name]()
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
        for path, text in (
            (options.json, json.dumps(results, indent=2) + "\n"),
            (options.markdown, markdown(results)),
        ):
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    print(markdown(results))


if __name__ == "__main__":
    main()
