"""Torsion of a cylinder (Poynting's effect) and inflation of a thick sphere of Mooney-Rivlin rubber on
refined meshes, against references.

    python benchmarks/closed_bodies.py [--finest 16]

Writes benchmarks/results/closed_bodies.json: torque and thrust of a cylinder as long as its radius, twisted
by 0.6 rad, and the stretch of the inner wall of a sphere under pressure, with the default solver, for two
bulk moduli. Errors are relative to the problem in one dimension (tests/bodies_in_closed_form.py), and, in
"beside the closed form", those of rubber that keeps its volume; orders are of meshes that follow each other.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from supple.io.machine import machine

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from bodies_in_closed_form import (
    C01,
    C10,
    closed_inflation,
    closed_torsion,
    inflated_sphere,
    inflation,
    torsion,
    twisted_cylinder,
)

RESULTS = Path(__file__).parent / "results" / "closed_bodies.json"
RADIUS, LENGTH, TWIST = 0.5, 0.5, 1.2
INNER, OUTER, STRETCH = 1.0, 1.6, 1.3
BULKS = 10 * (C10 + C01), 100 * (C10 + C01)


def cylinder(resolution: int, bulk: float) -> dict[str, Any]:
    exact, closed = torsion(RADIUS, TWIST, bulk), closed_torsion(RADIUS, TWIST)
    *displacement, report = twisted_cylinder(RADIUS, LENGTH, TWIST, bulk, resolution)
    names = "torque", "thrust"
    return {
        "body": "cylinder",
        "errors": {n: f / e - 1 for n, f, e in zip(names, displacement, exact[1:3], strict=True)},
        "beside the closed form": {n: f / e - 1 for n, f, e in zip(names, displacement, closed, strict=True)},
        **about(report),
    }


def sphere(resolution: int, bulk: float) -> dict[str, Any]:
    """The pressure is that of the stretch in one dimension, whose difference from the closed form is
    known."""
    pressure = inflation(INNER, OUTER, STRETCH, bulk)
    displacement, report = inflated_sphere(INNER, OUTER, pressure, bulk, resolution)
    closed = pressure / closed_inflation(INNER, OUTER, STRETCH) - 1
    return {
        "body": "sphere",
        "errors": {"stretch": (displacement - STRETCH) / (STRETCH - 1)},
        "beside the closed form": {"pressure": closed},
        **about(report),
    }


def about(report: Any) -> dict[str, Any]:
    return {"ok": report.ok, "relative_residual": report.relative_residual, "seconds": report.seconds}


def series(make: Callable, bulk: float, finest: int) -> list[dict[str, Any]]:
    """Errors, each with its order since the previous mesh."""
    rows: list[dict[str, Any]] = []
    resolution = 2
    while resolution <= finest:
        row = {"resolution": resolution, "bulk": bulk, **make(resolution, bulk)}
        if rows:
            row["order"] = {
                name: float(np.log2(abs(rows[-1]["errors"][name] / error)))
                for name, error in row["errors"].items()
            }
        rows.append(row)
        print(row, flush=True)
        resolution *= 2
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--finest", type=int, default=16)
    finest = parser.parse_args().finest
    rows = [row for make in (cylinder, sphere) for bulk in BULKS for row in series(make, bulk, finest)]
    record = {"machine": machine(), "c10": C10, "c01": C01, "rows": rows}
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
