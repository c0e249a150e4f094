"""Newton's linear systems: iterations and set-up of the multilevel preconditioner, and the assembly.

    python benchmarks/linear.py [--large]     # minutes on two cores; --large adds the bar of 300,000 vertices

Every case is the system of the first Newton step of a body under its own weight. Costs are CPU time of one
thread in sweeps of PBNG without acceleration, float64, which other work on the machine hardly changes.
Results go to benchmarks/results/linear.json, a table to the terminal.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import supple
from supple.io.machine import machine, versions
from supple.linear import Assembly, Multilevel, pcg
from supple.problem import Problem
from supple.scene import build_model

RESULTS = Path(__file__).parent / "results" / "linear.json"

ACCURACIES = (1e-1, 1e-2, 1e-8)


def clamped(cells: tuple, size: tuple, young: Any = 1e6, poisson: float = 0.4) -> supple.Scene:
    """A block that sticks out of a wall at x = 0; young may be a function of the centers of elements."""
    mesh = supple.block(cells, size)
    if callable(young):
        young = young(mesh.points[mesh.tets].mean(axis=1))
    scene = supple.Scene(gravity=(0, -9.8, 0))
    body = scene.add_solid(mesh, supple.Corotated(young=young, poisson=poisson), density=1000)
    scene.pin(body.where(lambda X: X[:, 0] <= 1e-9))
    return scene


def bar(across: int, **changes: Any) -> supple.Scene:
    return clamped((20 * across, across, across), (2.0, 0.1, 0.1), **changes)


def layers(contrast: float) -> Callable[[np.ndarray], np.ndarray]:
    """Three layers along y, the middle one softer by the contrast."""
    return lambda x: np.where(np.abs(x[:, 1] - 0.05) < 0.0167, 1e6 / contrast, 1e6)


def hanging(stiffness: float) -> supple.Scene:
    """A block that hangs from another, vertex by vertex."""
    scene = supple.Scene(gravity=(0, -9.8, 0))
    kind = supple.Corotated(young=1e6, poisson=0.4)
    top = scene.add_solid(supple.block(8, origin=(0, 1, 0)), kind, density=1000)
    below = scene.add_solid(supple.block(8), kind, density=1000)
    scene.pin(top.where(lambda X: X[:, 1] >= 2 - 1e-9))
    faces = (body.where(lambda X: np.abs(X[:, 1] - 1) < 1e-9) for body in (below, top))
    scene.attach(*faces, stiffness=stiffness)
    return scene


CASES: dict[str, Callable[[], supple.Scene]] = {
    "bar 20:1:1, 4K": lambda: bar(5),
    "bar 20:1:1, 40K": lambda: bar(12),
    "bar, ν = 0.49": lambda: bar(5, poisson=0.49),
    "bar, ν = 0.4995": lambda: bar(5, poisson=0.4995),
    "bar, cells 5:1:1": lambda: clamped((40, 10, 10), (2.0, 0.1, 0.1)),
    "plate 50:50:1": lambda: clamped((50, 1, 50), (1.0, 0.02, 1.0)),
    "sandwich 100:1": lambda: bar(6, young=layers(1e2)),
    "sandwich 10000:1": lambda: bar(6, young=layers(1e4)),
    "hanging, k = 1e4": lambda: hanging(1e4),
    "hanging, k = 1e8": lambda: hanging(1e8),
}

LARGE = {"bar 20:1:1, 300K": lambda: bar(24)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    warm_up()
    results: dict[str, Any] = {"machine": machine(), "versions": versions(), "cases": {}}
    heading = (
        f"{'case':20} vertices   its 1e-1/1e-2/1e-8    pattern aggregates exact filtered set-up iteration"
    )
    print(heading)
    for name, scene in (CASES | (LARGE if arguments.large else {})).items():
        results["cases"][name] = case = measure(scene())
        costs = "".join(f"{case[key]:10.2f}" for key in COSTS)
        print(
            f"{name:20} {case['vertices']:8,} {'/'.join(map(str, case['iterations'])):>14}   {costs}",
            flush=True,
        )
    RESULTS.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


COSTS = ("pattern", "aggregates", "exact", "filtered", "set_up", "iteration")


def measure(scene: supple.Scene) -> dict[str, Any]:
    model = build_model(scene)
    problem = Problem(model, "float64", threads=1)
    problem.begin_step(np.inf)
    problem.balance()
    pattern, assembly = timed(lambda: Assembly(problem))
    b = assembly.restrict(problem.states.net)
    aggregates, hierarchy = timed(lambda: Multilevel(assembly))
    exact, H = timed(lambda: assembly.hessian("exact"))
    filtered, _ = timed(lambda: assembly.hessian("projected"))
    set_up, M = timed(lambda: hierarchy.at(H, assembly.positions))
    iterations = [pcg(H, b, M, accuracy).iterations for accuracy in ACCURACIES]
    solve, _ = timed(lambda: pcg(H, b, M, ACCURACIES[1]))
    run = supple.PBNG(acceleration="none").begin(problem)
    run.advance(1)
    sweep = timed(lambda: run.advance(5))[0] / 5
    costs = pattern, aggregates, exact, filtered, set_up, solve / (iterations[1] + 1)
    return {
        "vertices": model.vertices,
        "levels": hierarchy.levels.sizes,
        "precision": str(hierarchy.dtype),
        "iterations": iterations,
        "sweep_ms": 1e3 * sweep,
        **{key: cost / sweep for key, cost in zip(COSTS, costs, strict=True)},
    }


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Minimal CPU time [s] of three, and the result."""
    seconds, result = [], None
    for _ in range(3):
        began = process_time()
        result = work()
        seconds.append(process_time() - began)
    return min(seconds), result


def warm_up() -> None:
    """Compile kernels, including both precisions of the levels."""
    for scene in (bar(2), bar(2, young=layers(1e4)), hanging(1e8)):
        measure(scene)


if __name__ == "__main__":
    main()
