"""Cost of gradients compared with one Newton direction, and their accuracy by the accuracy of the forward
solve.

python benchmarks/gradients.py [--cells 31] [--out benchmarks/results/gradients.json]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import supple
from supple.config.backend import Backend
from supple.gradients.gradient import gradient_at
from supple.gradients.polish import PolishedState, make_problem_at, polish
from supple.io.machine import machine
from supple.solvers.newton_methods.newton_system import Linearization

REPEATS = 15


def scene_of(cells: int) -> tuple[supple.Scene, supple.scene.Body]:
    """The twisted and stretched block of the other benchmarks, of a neo-Hookean material, under gravity."""
    scene = supple.Scene(gravity=(0, -9.81, 0))
    body = scene.add_solid(supple.block(cells), supple.NeoHookean(young=1e5, poisson=0.4), density=100)
    scene.pin(body.where(lambda X: X[:, 0] <= 0))
    turn = supple.Rotate(axis=(1, 0, 0), center=(1, 0.5, 0.5), angle=0.6)
    scene.pin(body.where(lambda X: X[:, 0] >= 1), motion=turn + supple.Translate((0.2, 0, 0)), name="hand")
    return scene, body


def fastest(
    do: Callable[[], object], repeats: int = REPEATS, clock: Callable[[], float] = perf_counter
) -> float:
    """Minimal seconds of several runs, after one that compiles."""
    do()
    times = []
    for _ in range(repeats):
        began = clock()
        do()
        times.append(clock() - began)
    return min(times)


def costs(cells: int) -> dict[str, float]:
    """Seconds of a Newton direction to 1e-2 and 1e-10, of an adjoint and of the derivatives from it."""
    scene, body = scene_of(cells)
    result = supple.equilibrium(scene)
    problem = make_problem_at(result, Backend())
    state: PolishedState = polish(problem)  # which moves the problem
    direct = np.random.default_rng(0).normal(size=result.positions.shape)
    problem.loads.set(problem.loads.force + direct)  # a Newton direction for as rough a right-hand side
    results: dict[str, float] = {"vertices": len(direct), "tetrahedra": body.mesh.n_cells}
    for accuracy in (1e-2, 1e-10):
        linear = Linearization(problem)

        def newton(linear: Linearization = linear, accuracy: float = accuracy) -> None:
            problem.balance()
            linear.direction(accuracy, 0.0)

        results[f"newton direction to {accuracy:g} [s]"] = fastest(newton)
        results[f"newton direction to {accuracy:g} [CPU s]"] = fastest(newton, clock=process_time)
    problem.loads.set(problem.loads.force - direct)
    results["adjoint [s]"] = fastest(lambda: gradient_at(state, result, direct))
    results["adjoint [CPU s]"] = fastest(lambda: gradient_at(state, result, direct), clock=process_time)
    gradient = gradient_at(state, result, direct)
    results["adjoint iterations"] = gradient.report.iterations

    def all_but_parameters() -> None:
        again = gradient_at(state, result, direct)
        _ = again.gravity, again.pins, again.rest, again.positions_of(body).density

    results["adjoint, gravity, pins, density and rest shape [s]"] = fastest(all_but_parameters)
    results["one parameter of the material of every element [s]"] = fastest(
        lambda: gradient.body(body).per_element("young")
    )
    for unit in ("s", "CPU s"):  # on a busy machine, the second is what counts
        name = f"adjoint over newton direction to 1e-10 [{unit} / {unit}]"
        results[name] = results[f"adjoint [{unit}]"] / results[f"newton direction to 1e-10 [{unit}]"]
    return results


def accuracies(cells: int) -> list[dict[str, float]]:
    """Errors of gradients at states of different residuals, without polishing."""
    scene, body = scene_of(cells)

    def loss(x: np.ndarray) -> np.ndarray:
        return np.sin(7 * x)

    result = supple.equilibrium(scene, solver="newton", tolerance=1e-11, position_tolerance=None)
    best = supple.gradient(result, loss)
    rows = []
    for tolerance in (1e-3, 1e-4, 1e-6, 1e-8, 1e-10):
        rough = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=tolerance, position_tolerance=None)
        problem = make_problem_at(rough, Backend())
        balance = problem.balance().relative_residual
        raw = gradient_at(PolishedState(problem, balance, balance, 0, 0.0), rough, loss)
        mended = supple.gradient(rough, loss)
        row = {
            "tolerance": tolerance,
            "newton steps": mended.report.steps,
            "mended": mended.report.relative_residual,
        }
        for name, a in (("raw", raw), ("polished", mended)):
            off = a.body(body).young / best.body(body).young - 1
            pins = np.linalg.norm(a.pins["hand"] - best.pins["hand"]) / np.linalg.norm(best.pins["hand"])
            row |= {f"{name}: young": abs(off), f"{name}: pins": float(pins)}
        rows.append(row)
        print({name: f"{value:.2g}" for name, value in row.items()})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, nargs="*", default=[9, 31])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "gradients.json")
    options = parser.parse_args()
    results = {"machine": machine(), "costs": [], "accuracies": accuracies(8)}
    for cells in options.cells:
        results["costs"].append(costs(cells))
        print(json.dumps(results["costs"][-1], indent=2))
    options.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
