"""How much longer a PBNG sweep takes with derivatives that were derived from ψ than with formulas.

    python benchmarks/psi.py [--device cuda]

Writes docs/design/psi_only.md's figures to benchmarks/results/psi.json. Each material and its twin, of which
only ψ is written (tests/twins.py), take turns on the block of 32,768 vertices.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from statistics import median
from typing import Any

from supple.bench import sweep
from supple.io.machine import machine
from supple.materials import MATERIALS

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from twins import TWINS, StretchedCorotated

CELLS, ROUNDS, REPEATS = 31, 5, 8
RESULTS = Path(__file__).parent / "results" / "psi.json"


def milliseconds(name: str, device: str, precision: str, repeats: int = REPEATS) -> float:
    return sweep(CELLS, material=name, device=device, precision=precision, repeats=repeats)["ms_min"]


def ratio(one: str, other: str, device: str, precision: str) -> dict[str, float]:
    """Milliseconds of both and the median ratio of samples that followed each other."""
    for name in (one, other):
        milliseconds(name, device, precision, repeats=1)
    samples = [tuple(milliseconds(name, device, precision) for name in (one, other)) for _ in range(ROUNDS)]
    return {
        "formulas_ms": min(a for a, _ in samples),
        "derived_ms": min(b for _, b in samples),
        "ratio": median(b / a for a, b in samples),
    }


def figures(device: str) -> dict[str, Any]:
    for name, kind in {**TWINS, "stretched": StretchedCorotated}.items():
        MATERIALS[f"{name}_twin"] = kind
    pairs = [(name, f"{name}_twin") for name in TWINS]
    pairs += [("corotated", "stretched_twin")]
    pairs += [("neo_hookean", name) for name in ("gent", "mooney_rivlin", "ogden", "holzapfel", "muscle")]
    found = {}
    for one, other in pairs:
        for precision in ("float32", "float64"):
            found[f"{other} over {one}, {precision}"] = figure = ratio(one, other, device, precision)
            print(
                f"{other} over {one}, {precision}:", {k: round(v, 3) for k, v in figure.items()}, flush=True
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    before = json.loads(options.output.read_text(encoding="utf-8")) if options.output.exists() else {}
    before[options.device] = {"machine": machine(), "sweeps": figures(options.device)}
    options.output.write_text(json.dumps(before, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
