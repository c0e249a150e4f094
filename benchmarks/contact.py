"""Contact: Hertz's law for a rigid ball pressed into an elastic block, into results/contact.json.

A quarter of the block is solved, with cells that are finer towards the point of contact. Its sides are free
and its bottom is pinned, which the theory of half-spaces does not know: the force is larger by about 0.6 a/L.
Linear tetrahedra are too stiff by a part that falls as 1/cells; `extrapolated` is without it.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

import supple
from supple.io.machine import machine

YOUNG, POISSON, RADIUS = 1e6, 0.3, 1.0


def graded(cells: int, power: float, size: float) -> supple.TetMesh:
    """A block with cells refined towards (0, size, 0)."""
    block = supple.block(cells=(cells, cells, cells), size=(1, 1, 1))
    x, y, z = block.points.T
    points = size * np.column_stack([x**power, 1 - (1 - y) ** power, z**power])
    return supple.TetMesh(points, block.tets)


def indent(cells: int, depth: float, size: float = 2.0, power: float = 2.0, tolerance: float = 1e-5) -> dict:
    """Press a ball into the block by a depth [m]; its force and contact radius relative to Hertz's."""
    scene = supple.Scene(gravity=(0, 0, 0))
    mesh = graded(cells, power, size)
    body = scene.add_solid(mesh, supple.materials.LinearElastic(young=YOUNG, poisson=POISSON))
    scene.pin(body.where(lambda X: X[:, 1] <= 0))
    scene.pin(body.where(lambda X: X[:, 0] <= 0), axes="x")
    scene.pin(body.where(lambda X: X[:, 2] <= 0), axes="z")
    ball = supple.Sphere(radius=RADIUS, center=(0, size + RADIUS, 0))
    scene.add_obstacle(ball, supple.Translate((0, -depth, 0)), name="ball")
    began = perf_counter()
    result = supple.equilibrium(scene, solver=supple.PBNG(), tolerance=tolerance)
    (obstacle,) = result.report.contact.obstacles.each
    force = 4 * obstacle.force[1]
    expected = 4 / 3 * YOUNG / (1 - POISSON**2) * np.sqrt(RADIUS) * depth**1.5
    return {
        "cells": cells,
        "depth": depth,
        "vertices": len(mesh.points),
        "force": force,
        "hertz": expected,
        "ratio": force / expected,
        "contacts": obstacle.count,
        "radius": float(np.sqrt(RADIUS * depth)),
        "iterations": result.report.iterations,
        "relative_residual": result.report.relative_residual,
        "outcome": result.report.outcome.name.lower(),
        "seconds": perf_counter() - began,
    }


def extrapolated(rows: list[dict]) -> float:
    """The ratio of the force to Hertz's, extrapolated in 1/cells from the last two runs."""
    coarse, fine = rows[-2:]
    change = fine["cells"] * fine["ratio"] - coarse["cells"] * coarse["ratio"]
    return change / (fine["cells"] - coarse["cells"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", default="8,12,16", help="along an edge, one run each")
    parser.add_argument("--depth", type=float, default=0.02)
    parser.add_argument("--to", type=Path, default=Path(__file__).parent / "results" / "contact.json")
    given = parser.parse_args()
    rows = []
    for cells in map(int, given.cells.split(",")):
        rows.append(indent(cells, given.depth))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    results = {
        "machine": machine(),
        "hertz": rows,
        "extrapolated": extrapolated(rows),
        "half_space": 1 + 0.6 * rows[-1]["radius"] / 2,
    }
    given.to.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
