"""Cost of parameters by element in a sweep: python benchmarks/parameters.py [--device cuda]

Three ways to give μ and λ to the kernels of PBNG: uniform, as numbers; copies next to the rest data of each
visit, as supple does it; and gathered by element number from one table. They take turns in one process.
Writes benchmarks/results/parameters.json; figures_in_docs.py shows it in docs/design/parameters.md.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

import supple
from supple.api.bench import TIME_STEP, UNACCELERATED_PBNG, make_twisted_block
from supple.config.backend import Backend
from supple.io.machine import machine
from supple.kernels import RECORD, gather, like
from supple.materials import MATERIALS, hessian_bound, traction
from supple.model.model import Model
from supple.solve.batch_solve import make_problem
from supple.terms import Incidence, TetElasticity, vertex_force
from supple.terms.base.elastic import corners, force_volume, measure, shape_gradients
from supple.terms.tet import TetRows

SWEEPS = 5


class GatheredRows(TetRows):
    """Tetrahedra with a table of material records and the element numbers of every slot."""

    __slots__ = ()


@dataclass(frozen=True, eq=False)
class PackedElasticity(TetElasticity):
    """Tetrahedra with parameters that are looked up by element number, without a material for other code."""

    parameters: Any = None
    stiffness: ClassVar[np.ndarray] = np.zeros(0)

    def __post_init__(self) -> None:
        pass

    def rows(self, incidences: Incidence, start: np.ndarray) -> Any:
        rows = TetElasticity(self.vertices, self.gradients, self.volume, self.parameters).rows(
            incidences, start
        )
        table = np.zeros((len(self.vertices), RECORD), incidences.dtype)
        for k, values in enumerate(self.parameters):
            table[:, k] = values
        elements = np.ascontiguousarray(np.maximum(incidences.elements, 0)[:, None, :])
        return GatheredRows(*rows[:3], type(self.parameters)._make((table, elements)))


@vertex_force.of(GatheredRows)
def _vertex_force(rows, row, u, ui):
    g = shape_gradients(rows, row)
    F = measure(rows, corners(rows, row, u, ui), g)
    V = force_volume(rows, row, g)
    numbers = gather(rows.material[0], rows.material[1], row, 0)
    material = like(rows.material, (numbers[0], numbers[1]))
    f = traction(material, F, g[0])
    A = hessian_bound(material, F, g[0], g[0])
    return (
        (-V * f[0], -V * f[1], -V * f[2]),
        (V * A[0], V * A[4], V * A[8], V * A[1], V * A[2], V * A[5]),
    )


def variants(cells: int, name: str) -> dict[str, Model]:
    model = make_twisted_block(cells, name)
    (term,) = model.terms
    young = np.random.default_rng(0).uniform(5e4, 2e5, len(term.vertices))
    uneven = MATERIALS[name].example(young=young)
    packed = PackedElasticity(term.vertices, term.gradients, term.volume, None, uneven)
    return {
        "uniform": model,
        "copies": replace(model, terms=(replace(term, material=uneven),)),
        "gathered": replace(model, terms=(packed,)),
    }


def sample(problem: Any, start: np.ndarray) -> float:
    """Milliseconds of a sweep."""
    problem.positions = start
    run = UNACCELERATED_PBNG.begin(problem)
    run.advance(1)
    problem.device.wait()
    tick = perf_counter()
    run.advance(SWEEPS)
    problem.device.wait()
    return 1e3 * (perf_counter() - tick) / SWEEPS


def row(cells: int, name: str, precision: str, device: str, repeats: int) -> dict[str, Any]:
    problems = {}
    for way, model in variants(cells, name).items():
        problem = make_problem(model, True, Backend(device, precision, 1))
        problem.set_inertia(TIME_STEP, model.rest)
        problem.begin_step(np.inf)
        problems[way] = problem, problem.positions
        sample(*problems[way])
    seconds: dict[str, list[float]] = {way: [] for way in problems}
    for _ in range(repeats):
        for way in problems:
            seconds[way].append(sample(*problems[way]))
    over = [g / c for g, c in zip(seconds["gathered"], seconds["copies"], strict=True)]
    least = {way: min(times) for way, times in seconds.items()}
    return {
        "cells": cells,
        "material": name,
        "precision": precision,
        "ms_median": {way: median(times) for way, times in seconds.items()},
        "ms_min": least,
        "gathered_over_copies_median": median(over),
        "gathered_over_copies_min": least["gathered"] / least["copies"],
        "copies_over_uniform_min": least["copies"] / least["uniform"],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=60)
    device, repeats = vars(parser.parse_args()).values()
    cases = [
        (cells, name, precision)
        for cells in (20, 31)
        for name in ("corotated", "neo_hookean")
        for precision in ("float32", "float64")
    ]
    rows = []
    for case in cases:
        rows.append(row(*case, device, repeats))
        print(rows[-1], flush=True)
    path = Path(__file__).parent / "results" / "parameters.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    results[device] = {
        "date": str(date.today()),
        "version": supple.__version__,
        "machine": machine(),
        "rows": rows,
    }
    path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
