"""Ratio of PBNG sweep times with derivatives from ψ to those with formulas.

    python benchmarks/psi.py [--device cuda] [--rounds 30] [--only gent]

Writes benchmarks/results/psi.json, which docs/design/psi_only.md quotes. Each material alternates with its
reference on the block of 32,768 vertices: materials with formulas against their versions with only ψ
(tests/psi_only_materials.py), and neo-Hookean against materials that have only ψ. Gent is also measured
without its step limit, which shows the cost of the limit.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np

from supple.api.bench import SWEEPS, TIME_STEP, UNACCELERATED_PBNG, make_twisted_block
from supple.config.backend import Backend
from supple.io.machine import machine
from supple.materials import MATERIALS, Gent, Material
from supple.materials.parameters import Pa
from supple.solve.batch_solve import make_problem

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from psi_only_materials import PSI_ONLY, StretchedCorotated

CELLS = 31
RESULTS = Path(__file__).parent / "results" / "psi.json"


class ReadmeGent(Material):
    """The Gent material of the README."""

    mu: Pa
    kappa: Pa
    Jm: float = 30.0

    def psi(self, I1: Any, J: Any) -> Any:
        stretch = -0.5 * self.mu * self.Jm * math.log(1 - (I1 - 3) / self.Jm)
        return stretch - self.mu * math.log(J) + 0.5 * self.kappa * (J - 1) ** 2

    @classmethod
    def example(cls, **changes: Any) -> Any:
        return cls(mu=4e4, kappa=2e5, **changes)


class Unlimited(ReadmeGent):
    """A material without step limit."""

    barrier = False

    def psi(self, I1: Any, J: Any) -> Any:
        stretch = -0.5 * self.mu * self.Jm * math.log(1 - (I1 - 3) / self.Jm)
        return stretch - self.mu * math.log(J) + 0.5 * self.kappa * (J - 1) ** 2


class UnlimitedGent(Gent):
    """The built-in Gent material without step limit."""

    __slots__ = ()
    barrier = False
    psi = Gent.psi


COMPARED = {"readme_gent": ReadmeGent, "readme_gent_unlimited": Unlimited, "gent_unlimited": UnlimitedGent}


class Timed:
    """Sweeps of one material over the twisted block of `supple.api.bench`, restarted for every sample."""

    def __init__(self, name: str, device: str, precision: str) -> None:
        model = make_twisted_block(CELLS, name)
        self.problem = make_problem(model, True, Backend(device, precision, 1 if device == "cpu" else None))
        self.problem.set_inertia(TIME_STEP, model.rest)
        self.problem.begin_step(np.inf)
        self.start = self.problem.positions
        self.clock = process_time if device == "cpu" else perf_counter
        self.sample()

    def sample(self) -> float:
        """Milliseconds of one sweep; on a CPU of one core, other processes are excluded."""
        self.problem.positions = self.start
        run = UNACCELERATED_PBNG.begin(self.problem)
        run.advance(1)
        self.problem.device.wait()
        tick = self.clock()
        run.advance(SWEEPS)
        self.problem.device.wait()
        return 1e3 * (self.clock() - tick) / SWEEPS


def ratio(one: str, other: str, device: str, precision: str, rounds: int) -> dict[str, float]:
    """Milliseconds of both, and the median ratio of successive samples."""
    first, second = (Timed(name, device, precision) for name in (one, other))
    samples = [(first.sample(), second.sample()) for _ in range(rounds)]
    a, b = (min(column) for column in zip(*samples, strict=True))
    return {"formulas_ms": a, "derived_ms": b, "ratio": b / a, "median": median(y / x for x, y in samples)}


def pairs() -> list[tuple[str, str]]:
    for name, kind in {**PSI_ONLY, "stretched": StretchedCorotated}.items():
        MATERIALS[f"{name}_twin"] = kind
    MATERIALS.update(COMPARED)
    pairs_of_names = [("neo_hookean", name) for name in ("readme_gent", "gent", "log_neo_hookean", *COMPARED)]
    pairs_of_names += [(name, f"{name}_twin") for name in PSI_ONLY] + [("corotated", "stretched_twin")]
    rest = (
        "mooney_rivlin",
        "yeoh",
        "arruda_boyce",
        "fung",
        "ogden",
        "hencky",
        "holzapfel_gasser_ogden",
        "muscle",
    )
    return list(dict.fromkeys(pairs_of_names + [("neo_hookean", name) for name in rest]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--precisions", default="float32,float64")
    parser.add_argument("--only", default="", help="pairs of which one name has this in it")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    known = json.loads(options.output.read_text(encoding="utf-8")) if options.output.exists() else {}
    results = known.setdefault(options.device, {"sweeps": {}})
    results["machine"] = machine()
    for one, other in pairs():
        if options.only not in other:
            continue
        for precision in options.precisions.split(","):
            key = f"{other} over {one}, {precision}"
            figure = ratio(one, other, options.device, precision, options.rounds)
            results["sweeps"][key] = figure
            print(f"{key}:", {k: round(v, 3) for k, v in figure.items()}, flush=True)
            options.output.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
